//! What is asked, and the filters that answer it.

use serde::Serialize;

use super::sizes::{self, CHOICES, Choice, Other, Size};
use crate::failure::Failure;
use crate::number::{self, grouped};

/// A plan: the filters, and what they are compared with.
pub(super) struct Plan {
    pub(super) question: Question,
    pub(super) filters: Vec<Size>,
    /// The filters of the two layouts that do not grow, at a capacity and a rate that both keep.
    pub(super) classic: Size,
    pub(super) blocked: Size,
    pub(super) others: [Other; 3],
    pub(super) overfill: bool,
    /// The milliseconds that a filter with a window remembers.
    pub(super) window: Option<u64>,
}

/// What was given: two of the three, and perhaps the hashes.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Question {
    pub(super) capacity: Option<u64>,
    pub(super) rate: Option<f64>,
    pub(super) memory: Option<u64>,
    pub(super) hashes: Option<u32>,
}

impl Question {
    /// The filter of a kind that answers it. The error says what to give instead.
    fn answer(self, kind: Choice) -> Result<Option<Size>, Failure> {
        let hashes = self.hashes;
        match (self.capacity, self.rate, self.memory) {
            (Some(capacity), Some(rate), None) => Ok(kind.size(capacity, rate, hashes)),
            (None, Some(rate), Some(memory)) => Ok(kind.most_items(rate, memory, hashes)),
            (Some(capacity), None, Some(memory)) => Ok(match hashes {
                Some(hashes) => kind.of_bytes(memory, hashes, capacity),
                None => kind.lowest_rate(capacity, memory),
            }),
            (Some(_), Some(_), Some(_)) => Err(Failure::other(
                "capacity, rate and memory are all given: leave out the one to be found",
            )),
            _ => Err(Failure::other(
                "give two of capacity, rate and memory, such as `everbloom plan 900M 0.1%` or \
                 `everbloom plan -e 0.1% --memory 512M`",
            )),
        }
    }

    fn nothing_fits(self) -> Failure {
        let memory = grouped(self.memory.unwrap_or_default());
        Failure::Other(match (self.capacity, self.rate) {
            (Some(_), Some(_)) => "such a filter would have more than 2^63 bits: plan for fewer \
                                   items, or a higher rate"
                .into(),
            (None, _) => format!(
                "not even one item fits into {memory} bytes in both layouts at this rate: give \
                 more memory, or a higher rate"
            ),
            (Some(capacity), None) => format!(
                "{} items do not fit into {memory} bytes at any rate: give more memory, or \
                 fewer items",
                grouped(capacity)
            ),
        })
    }
}

impl Plan {
    pub(super) fn new(
        question: Question,
        item_bytes: u64,
        overfill: bool,
        window: Option<u64>,
    ) -> Result<Plan, Failure> {
        let nothing_fits = || question.nothing_fits();
        let classic = question.answer(Choice::Classic)?.ok_or_else(nothing_fits)?;
        let blocked = question.answer(Choice::Blocked)?.ok_or_else(nothing_fits)?;
        let capacity = classic.capacity.min(blocked.capacity);
        let rate = classic.rate.max(blocked.rate);
        let common = |kind: Choice| {
            let size = kind.size(capacity, rate, question.hashes);
            size.ok_or_else(nothing_fits)
        };
        Ok(Plan {
            question,
            filters: CHOICES
                .iter()
                .chain(window.map(|_| &Choice::Windowed))
                .filter_map(|kind| question.answer(*kind).ok().flatten())
                .collect(),
            classic: common(Choice::Classic)?,
            blocked: common(Choice::Blocked)?,
            others: sizes::others(capacity, rate, item_bytes),
            overfill,
            window,
        })
    }

    /// A filter of a kind with the hashes that are given.
    pub(super) fn size(&self, kind: Choice, capacity: u64, rate: f64) -> Option<Size> {
        kind.size(capacity, rate, self.question.hashes)
    }

    pub(super) fn capacity(&self) -> u64 {
        self.classic.capacity
    }

    pub(super) fn rate(&self) -> f64 {
        self.classic.rate
    }

    /// Capacities around the planned one.
    pub(super) fn capacities(&self) -> Vec<u64> {
        let capacity = self.capacity();
        let mut near = vec![
            capacity / 10,
            capacity / 2,
            capacity,
            capacity.saturating_mul(2),
            capacity.saturating_mul(10),
        ];
        near.retain(|capacity| *capacity > 0);
        near.dedup();
        near
    }

    /// Rates around the planned one that a filter can keep.
    pub(super) fn rates(&self) -> Vec<f64> {
        let rates = [10.0, 1.0, 0.1].map(|factor| number::rounded(self.rate() * factor));
        let is_kept = |rate: &f64| number::is_rate(*rate);
        rates.into_iter().filter(is_kept).collect()
    }

    /// How many times their capacity filters hold, and the error rates of the two layouts then.
    pub(super) fn overfilled(&self) -> [(f64, f64, f64); 5] {
        [1.0, 1.5, 2.0, 3.0, 4.0].map(|times| {
            let items = times * self.capacity() as f64;
            (
                times,
                self.classic.rate_at(items),
                self.blocked.rate_at(items),
            )
        })
    }
}
