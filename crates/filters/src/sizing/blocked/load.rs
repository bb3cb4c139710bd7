//! The load that a block may have at an error rate, and the best hash count: the inverse of
//! [`super::rate`].
//!
//! The formula has no inverse, and a search takes a hundred thousand instructions or more. So
//! [`super::table`] says what the load is, nearly. That decides the number of blocks, unless the
//! load is too near the one at which another number begins. Then the search decides, and so it does
//! for error rates above 0.44. Sizes are always those that the search finds.

use super::rate::Curve;
use super::table::{HIGHEST, LOWEST, ROWS, Row};
use super::{BlockedSize, MAX_LOAD, row};
use crate::math::{ln, powf, whole};
use crate::sizing::textbook;

/// The part by which a load of the table may be wrong. It is wrong by half of this at most.
pub(super) const TOLERANCE: f64 = 5e-8;

/// The part by which rates or loads must differ from those where another hash count becomes the
/// best, or else the search decides. The formula's rounding errors are a thousand times smaller.
const CLOSE: f64 = 1e-9;

/// The largest load that keeps an error rate with so many hashes.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) hashes: u32,
    error_rate: f64,
}

impl Load {
    pub(super) fn new(hashes: u32, error_rate: f64) -> Load {
        Load { hashes, error_rate }
    }

    /// The load with the best hash count for this rate.
    pub(super) fn best(error_rate: f64) -> Load {
        let hashes = decide(error_rate, CLOSE, |rate| last_row(|row| rate <= row.rate));
        Load::new(
            hashes.unwrap_or_else(|| best_load(error_rate).1),
            error_rate,
        )
    }

    /// A number that follows from the load, and that ascends or descends with it.
    pub(super) fn decide(self, number: impl Fn(f64) -> u64) -> u64 {
        let about = about(self.hashes, self.error_rate);
        about
            .and_then(|load| decide(load, TOLERANCE, &number))
            .unwrap_or_else(|| number(load_of(self.hashes, self.error_rate)))
    }
}

/// The best hash count at a load; `None` where two are nearly as good.
pub(super) fn best_hashes(load: f64) -> Option<u32> {
    decide(load, CLOSE, |load| last_row(|row| load <= row.load))
}

/// The largest load for which so many hashes are the best, and are not more than in the classic
/// layout.
pub(super) fn last_load(hashes: u32) -> f64 {
    let most = f64::from(BlockedSize::BLOCK_BITS) * core::f64::consts::LN_2 / f64::from(hashes);
    // The row has such a load as the search finds it, so that this one ends there.
    let last = row(&ROWS, hashes).map_or(most, |row| row.load);
    largest(most, |load| load <= last)
}

/// What follows from a number that is known within a part of it, if it is the same for all of them.
fn decide<T: PartialEq>(about: f64, part: f64, result: impl Fn(f64) -> T) -> Option<T> {
    let of_least = result(about * (1.0 - part));
    (of_least == result(about * (1.0 + part))).then_some(of_least)
}

/// The hash count of the last row of those for which this is true: the first ones, or none.
fn last_row(is_better: impl Fn(&Row) -> bool) -> u32 {
    let better = u32::try_from(ROWS.partition_point(is_better)).unwrap_or(0);
    BlockedSize::MIN_HASHES + better.saturating_sub(1)
}

/// The load according to the table, where that has one.
pub(super) fn about(hashes: u32, error_rate: f64) -> Option<f64> {
    let row = row(&ROWS, hashes)?;
    let fill = powf(error_rate / row.rate, 1.0 / f64::from(hashes));
    if !(LOWEST..=HIGHEST).contains(&fill) {
        return None;
    }
    // Clenshaw's sum of the Chebyshev series.
    let x = (2.0 * fill - LOWEST - HIGHEST) / (HIGHEST - LOWEST);
    let terms = row.series.iter().rev();
    let (sum, before) = terms.fold((0.0, 0.0), |(sum, before), term| {
        (2.0 * x * sum - before + term, sum)
    });
    Some(sum - x * before)
}

/// The largest load that keeps the error rate, and its hash count.
fn best_load(error_rate: f64) -> (f64, u32) {
    // From the optimum of the classic layout, which is higher, downhill: the loads have one peak.
    let start = (-ln(error_rate) / core::f64::consts::LN_2).clamp(
        f64::from(BlockedSize::MIN_HASHES),
        f64::from(BlockedSize::MAX_HASHES),
    );
    let mut hashes = u32::try_from(whole(start)).unwrap_or(BlockedSize::MAX_HASHES);
    let mut load = load_of(hashes, error_rate);
    let mut improve = |step: fn(u32) -> u32| {
        let mut improved = false;
        loop {
            let next = step(hashes);
            if !(BlockedSize::MIN_HASHES..=BlockedSize::MAX_HASHES).contains(&next) {
                return improved;
            }
            let other = load_of(next, error_rate);
            if other <= load {
                return improved;
            }
            (hashes, load, improved) = (next, other, true);
        }
    };
    if !improve(|hashes| hashes - 1) {
        improve(|hashes| hashes + 1);
    }
    (load, hashes)
}

/// The load at which a rate is reached, rounded down.
pub(super) fn load_of(hashes: u32, error_rate: f64) -> f64 {
    // If all blocks held the same, the load could be a little higher than this.
    let most =
        textbook::capacity_with_hashes(BlockedSize::BLOCK_BITS.into(), hashes.into(), error_rate);
    let most = (most * 1.05 + 1.0).min(MAX_LOAD);
    let curve = Curve::new(hashes, most);
    largest(most, |load| curve.error_rate(load) <= error_rate)
}

/// The largest load up to `most` of which something is true that is true of all smaller ones.
pub(super) fn largest(most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..44 {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
