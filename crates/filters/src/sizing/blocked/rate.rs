//! The error rate of the blocked layout at a load: the formula that [`super`] describes.
//!
//! A rate is stored in files and compared between filters, so its last bit counts: it is computed
//! with additions, multiplications, divisions and square roots only, which are the same everywhere.

use alloc::borrow::Cow;
use core::f64::consts::LN_2;

use super::{BlockedSize, COUNTS, MAX_LOAD, row};
use crate::math::{power, root, sqrt, whole};

/// The error rate as a function of the load, for one hash count.
pub(super) struct Curve {
    /// The error rate of a block that holds 0, 1, ... items.
    rates: Cow<'static, [f64]>,
}

impl Curve {
    /// For loads up to `most`.
    pub(super) fn new(hashes: u32, most: f64) -> Curve {
        let count = whole(most + spread(sqrt(most))) + 1;
        let known = row(&RATES, hashes).filter(|known| count <= known.len() as u64);
        let rates = match known {
            Some(known) => Cow::Borrowed(*known),
            None => {
                let mut cells = Occupancy::new(hashes);
                let rates = (0..count).map(|_| {
                    let rate = cells.all_occupied(sqrt(cells.variance()));
                    cells.throw();
                    rate
                });
                Cow::Owned(rates.collect())
            }
        };
        Curve { rates }
    }

    /// Ascends with the load.
    pub(super) fn error_rate(&self, load: f64) -> f64 {
        let spread = spread(sqrt(load));
        let index = |items| usize::try_from(whole(items)).unwrap_or(usize::MAX);
        let (first, last) = (index(load - spread), index(load + spread));
        let last = last.min(self.rates.len());
        let rates = self.rates.get(first..last).unwrap_or(&[]);
        // Weights are relative to the first one: e^-load may be too small for a number.
        let (mut weight, mut items) = (1.0, first as f64);
        let (mut sum, mut weights) = (0.0, 0.0);
        for rate in rates {
            sum += weight * rate;
            weights += weight;
            items += 1.0;
            weight *= load / items;
        }
        sum / weights
    }
}

/// How far from the mean items are counted, for a standard deviation: nine of them, beyond which
/// there are less than 10^-15 of the blocks.
const fn spread(deviation: f64) -> f64 {
    9.0 * deviation + 24.0
}

/// The rates of [`Curve`] for each hash count, for loads up to a fifth more than that for which the
/// classic layout would have so many hashes. They take 30 kB of a program. Without `std` that may
/// be too much, so there are none.
static RATES: [&[f64]; COUNTS] = {
    /// The rates of blocks with fewer items than `N`.
    #[expect(clippy::indexing_slicing, reason = "computed while compiling")]
    const fn rates<const N: usize>(hashes: u32) -> [f64; N] {
        let mut rates = [0.0; N];
        let mut cells = Occupancy::new(hashes);
        let mut items = 0;
        while items < N {
            rates[items] = cells.all_occupied(root(cells.variance()));
            cells.throw();
            items += 1;
        }
        rates
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "computed while compiling"
    )]
    const fn count(hashes: u32) -> usize {
        let load = 1.21 * CELLS * LN_2 / hashes as f64;
        if cfg!(feature = "std") {
            (load + spread(root(load))) as usize + 1
        } else {
            0
        }
    }

    macro_rules! rates_of {
        ($($hashes:literal)*) => { [$(&rates::<{ count($hashes) }>($hashes)),*] };
    }
    rates_of!(2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
};

/// The error rate at a load up to [`MAX_LOAD`].
pub(super) fn rate_at_load(load: f64, hashes: u32) -> f64 {
    let load = load.clamp(0.0, MAX_LOAD);
    Curve::new(hashes, load).error_rate(load)
}

/// 512 cells after some throws, a number of them at a time.
struct Occupancy {
    hashes: u32,
    /// `(1 - r / 512)^throws` for r = 1, 2, 3: the chance that r given cells are empty.
    empty: [f64; 3],
    /// What one item multiplies these by.
    step: [f64; 3],
}

/// Cells of a block.
const CELLS: f64 = BlockedSize::BLOCK_BITS as f64;

impl Occupancy {
    /// No throws yet.
    const fn new(hashes: u32) -> Occupancy {
        let step = [
            power(1.0 - 1.0 / CELLS, hashes),
            power(1.0 - 2.0 / CELLS, hashes),
            power(1.0 - 3.0 / CELLS, hashes),
        ];
        Occupancy {
            hashes,
            empty: [1.0; 3],
            step,
        }
    }

    const fn throw(&mut self) {
        self.empty[0] *= self.step[0];
        self.empty[1] *= self.step[1];
        self.empty[2] *= self.step[2];
    }

    /// The second moment of the part of the cells that are empty.
    const fn second_moment(&self) -> f64 {
        let [one, two, _] = self.empty;
        one / CELLS + two * (CELLS - 1.0) / CELLS
    }

    /// The variance of the part of the cells that are empty.
    const fn variance(&self) -> f64 {
        let mean = self.empty[0];
        (self.second_moment() - mean * mean).max(0.0)
    }

    /// The chance that as many cells as an item has bits, chosen at random, are all occupied:
    /// `E[(X / 512)^k]`. The deviation is the root of the [`variance`](Self::variance).
    ///
    /// For a normal `X` that is a polynomial's mean, which Gauss and Hermite's sum of five gives;
    /// the third moment adds what the normal distribution lacks (Edgeworth's first term).
    #[expect(clippy::indexing_slicing, reason = "an index below the length")]
    const fn all_occupied(&self, deviation: f64) -> f64 {
        const NODES: [(f64, f64); 5] = [
            (0.0, 8.0 / 15.0),
            (1.355_626_179_974_266, 0.222_075_922_005_612_6),
            (-1.355_626_179_974_266, 0.222_075_922_005_612_6),
            (2.856_970_013_872_806, 0.011_257_411_327_720_69),
            (-2.856_970_013_872_806, 0.011_257_411_327_720_69),
        ];
        let [mean, two, three] = self.empty;
        let third = mean / (CELLS * CELLS)
            + 3.0 * two * (CELLS - 1.0) / (CELLS * CELLS)
            + three * (CELLS - 1.0) * (CELLS - 2.0) / (CELLS * CELLS);
        let skew = third - 3.0 * mean * self.second_moment() + 2.0 * mean * mean * mean;
        let full = 1.0 - mean;
        let k = self.hashes as f64;
        let falling = k * (k - 1.0) * (k - 2.0) / 6.0;
        let (mut sum, mut at) = (0.0, 0);
        while at < NODES.len() {
            let (node, weight) = NODES[at];
            let x = (full + deviation * node).clamp(0.0, 1.0);
            // The occupied cells are skewed the other way round.
            let correction = if self.hashes > 2 {
                -falling * skew * power(x, self.hashes - 3)
            } else {
                0.0
            };
            sum += weight * (power(x, self.hashes) + correction);
            at += 1;
        }
        sum.clamp(0.0, 1.0)
    }
}
