//! What a filter with a chosen error rate has beside its tables.
//!
//! A lookup compares with the fingerprints of two buckets, which are 8 times the load, at most 7.6.
//! A fingerprint of w bits is one of 2^w - 1. So the first table errs for at most e = 7.6 / (2^w - 1)
//! of the items that it does not have. Table i after it has fingerprints of w + k + i bits and errs
//! for e / 2^(k + i). Together they err for less than e * (1 + 1/2^k). That is to be at most the
//! rate, so w is the least number for which there is a small enough k.

use core::num::NonZeroU8;

use super::packed::WIDTHS;
use super::place::Place;
use crate::error::CuckooError;
use crate::hash::item::Item;
use crate::hash::{Key, Secrets};

/// The error rates that can be chosen.
pub(crate) const RATES: core::ops::RangeInclusive<f64> = 1e-9..=0.5;

/// The fingerprints of two buckets that a lookup compares with, on average, in a full table.
const COMPARED: f64 = 7.6;

/// The largest k. It would be larger only where the first table is nearly as bad as the rate; then
/// that gets one more bit.
const MAX_STEP: u8 = 4;

/// The rounding errors that a rate may have in which it was computed on another machine.
const TOLERANCE: f64 = 1.0 + 1e-9;

/// What [`CuckooParts`](super::parts::CuckooParts) of a filter with a chosen error rate have in
/// addition. [Example](crate::CuckooBuilder::error_rate).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyedParts {
    /// The key of the hash.
    pub key: Key,
    /// The error rate that was asked for.
    pub error_rate: f64,
    /// The bits of a fingerprint in the first table.
    pub width: u8,
    /// How many more bits the second table has, less one. Each table after it has one bit more than
    /// the one before.
    pub step: u8,
}

impl KeyedParts {
    /// The widths for this error rate.
    pub(crate) fn new(key: Key, error_rate: f64, is_growing: bool) -> Option<KeyedParts> {
        if !RATES.contains(&error_rate) {
            return None;
        }
        let mut sizes = WIDTHS.flat_map(|width| (0..=MAX_STEP).map(move |step| (width, step)));
        let (width, step) = sizes.find(|(width, step)| {
            let step = is_growing.then_some(*step);
            most_errors(*width, step) <= error_rate
        })?;
        Some(KeyedParts {
            key,
            error_rate,
            width,
            step,
        })
    }

    /// The bits of a fingerprint in a table, by its number; `None` when they are too many.
    #[must_use]
    pub fn width_of(&self, table: usize) -> Option<NonZeroU8> {
        let more = match table {
            0 => 0,
            later => u8::try_from(later).ok()?.checked_add(self.step)?,
        };
        let width = self.width.checked_add(more)?;
        NonZeroU8::new(width).filter(|_| WIDTHS.contains(&width))
    }

    pub(super) fn validate(&self, is_growing: bool) -> Result<(), CuckooError> {
        let step = is_growing.then_some(self.step);
        let is_kept = most_errors(self.width, step) <= self.error_rate * TOLERANCE;
        let is_good = RATES.contains(&self.error_rate)
            && WIDTHS.contains(&self.width)
            && self.step <= *WIDTHS.end();
        match is_good && is_kept {
            true => Ok(()),
            false => Err(CuckooError::ErrorRate),
        }
    }
}

/// The error rate that full tables stay below: the first one, and all after it if there are some.
fn most_errors(width: u8, step: Option<u8>) -> f64 {
    let first = COMPARED / ((1_u64 << width.min(63)) - 1) as f64;
    first + step.map_or(0.0, |step| first / (1_u64 << step.min(63)) as f64)
}

/// The parts, and what makes them fast.
#[derive(Clone)]
pub(crate) struct Keyed {
    pub(crate) parts: KeyedParts,
    pub(crate) secrets: Secrets,
}

impl Keyed {
    pub(crate) fn new(parts: KeyedParts) -> Keyed {
        let secrets = Secrets::new(parts.key);
        Keyed { parts, secrets }
    }

    /// The item's place in every table.
    #[inline(never)]
    pub(super) fn place_of(&self, item: &(impl Item + ?Sized)) -> Place {
        Place::of_keyed(item.hash_with(&self.secrets))
    }
}

impl PartialEq for Keyed {
    fn eq(&self, other: &Keyed) -> bool {
        self.parts == other.parts
    }
}
