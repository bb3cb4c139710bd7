//! What a window must remember, and what it must have forgotten.

use std::collections::BTreeMap;

/// A filter that forgets.
#[derive(Debug, Clone)]
pub struct Window {
    /// 0 is a window of items.
    pub span_ms: u64,
    /// Items of a window of items.
    pub capacity: u64,
    /// Its generations.
    pub generations: u64,
    /// The rate that must hold, if one must.
    pub rate: Option<f64>,
    /// The latest clock that it may have seen.
    pub latest: u64,
    /// How many items were added in all.
    pub added: u64,
    /// How many generations were begun by BF.ADVANCE.
    pub advanced: u64,
    /// How often it was merged with another one or began again. Each may keep items for longer.
    pub merged: u64,
    /// The last addition of each item.
    pub items: BTreeMap<u32, Addition>,
}

/// The last addition of an item.
#[derive(Debug, Clone, Copy)]
pub struct Addition {
    /// The clock.
    pub at: u64,
    /// How many were added before.
    pub added: u64,
    /// How many generations were begun before.
    pub advanced: u64,
}

/// How many generations a window of so many milliseconds or items has, for which so many were asked. With
/// more of them each is shorter, so that an item is kept at most that part of the span longer.
pub fn generations(span: u64, asked: u64) -> u64 {
    let most = span.min(64);
    let least = asked.min(most);
    let kept = |generations: &u64| span.div_ceil(*generations) * (generations + 1);
    let promised = span as f64 * (1.01 + 1.0 / least as f64);
    let keeps_promise = |generations: &u64| kept(generations) as f64 <= promised;
    let nearest = || (1..=most).min_by_key(kept);
    (least..=most)
        .find(keeps_promise)
        .or_else(nearest)
        .unwrap_or(asked)
}

impl Window {
    /// Whether an item must be found at a time.
    pub fn remembers(&self, addition: &Addition, now: u64) -> bool {
        let begun = self.advanced - addition.advanced;
        let generation = |span: u64| span.div_ceil(self.generations);
        let (age, span) = match self.span_ms {
            0 => (self.added - addition.added, self.capacity),
            span => (now.max(self.latest).saturating_sub(addition.at), span),
        };
        match begun {
            0 => age < span,
            // The generation that has begun may have begun in the middle of another.
            _ => age + (begun + 1) * generation(span) < span,
        }
    }

    /// Whether an item must have been forgotten.
    pub fn has_forgotten(&self, addition: &Addition, now: u64) -> bool {
        if self.span_ms == 0 || addition.at < self.latest && now < self.latest {
            return false;
        }
        let generation = self.span_ms.div_ceil(self.generations);
        now.saturating_sub(addition.at) > self.span_ms + (2 + self.merged) * generation
    }

    /// Adds the items of another one.
    pub fn merge(&mut self, from: &Window) {
        self.latest = self.latest.max(from.latest);
        self.merged = 1 + self.merged.max(from.merged);
        // Both count from a common beginning.
        let (ours, generation) = (self.advanced, self.span_ms.div_ceil(self.generations));
        self.advanced += from.advanced;
        for addition in self.items.values_mut() {
            addition.advanced += from.advanced;
        }
        let until = |it: &Addition| it.at + it.advanced * generation;
        for (number, addition) in &from.items {
            let advanced = addition.advanced + ours;
            let other = Addition {
                advanced,
                ..*addition
            };
            let known = self.items.entry(*number).or_insert(other);
            if until(known) < until(&other) {
                *known = other;
            }
        }
    }

    /// The clock that it sees when it changes.
    pub fn see(&mut self, now: u64) {
        let generation = self.span_ms.div_ceil(self.generations);
        if self.span_ms > 0 && self.latest > now + generation {
            self.begin_again(now);
        }
        self.latest = self.latest.max(now);
    }

    /// The clock was wrong. What the window still has is found for one window from now on.
    fn begin_again(&mut self, now: u64) {
        let mut items = std::mem::take(&mut self.items);
        items.retain(|_, addition| self.remembers(addition, self.latest));
        for addition in items.values_mut() {
            addition.at = addition.at.min(now);
        }
        self.items = items;
        self.latest = now;
        self.merged += 1;
    }
}
