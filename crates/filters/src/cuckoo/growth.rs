//! A forecast of how many more items a filter takes before it grows.
//!
//! A filter grows when an item finds no room after the maximum number of kicks, which is a matter
//! of chance. The load of a table at that moment was measured: [`MEAN_LOADS`] has means for filters
//! of one table. The forecast combines them with two facts.
//!
//! - **The larger a table, the earlier it grows.** Between two columns the mean load falls as a
//!   power of the number of slots, S<sup>−1/k</sup>. That is the law of the weakest of S links
//!   (Weibull, "A statistical distribution function of wide applicability", 1951): the table has
//!   not grown at load x with probability exp(−(x/λ)<sup>k</sup>). The mean is λ·Γ(1 + 1/k), so
//!   both columns give k and λ.
//! - **Older tables help.** An item that finds both of its buckets full in the newest table, which
//!   happens with probability x<sup>2b</sup>, goes to an older table that has room. With
//!   probability l<sup>c</sup>, where c is 5·t<sup>0.75</sup>, t older tables of load l have no
//!   room. This was measured in filters of up to four tables that grow by factors of 1 and 2.
//!
//! The forecast goes through the filling step by step, and adds up the items of each step times the
//! probability that it is reached. On average it is right to a few percent for one table, and to a
//! tenth, seldom a sixth, for several. With a bucket size of 1 it is up to half too high for
//! several tables: there it matters which multiples of the constant lead back to a bucket, and that
//! depends on the number of buckets.

use core::f64::consts::LN_2;

use super::table::Table;
use super::{CuckooFilter, MAX_TABLES};
use crate::math::{exp, ln, powf, whole};

/// The mean load at which a filter of one table grows, for the bucket sizes 1, 2, 4 and 8 with 5,
/// 20, 100 and 500 kicks at most, and 2<sup>10</sup>, 2<sup>15</sup> and 2<sup>20</sup> slots: of
/// 4000, 600 and 60 to 260 filters of random items. The standard deviation of a single filter is 7
/// to 17 % of the load with bucket sizes 1 and 2, 20 % in the largest tables, and 0.1 to 7 % with 4
/// and 8.
const MEAN_LOADS: [[[f64; COLUMNS]; 4]; 4] = [
    [
        [0.382, 0.237, 0.142],
        [0.513, 0.401, 0.272],
        [0.540, 0.450, 0.274],
        [0.540, 0.450, 0.274],
    ],
    [
        [0.586, 0.429, 0.312],
        [0.711, 0.607, 0.452],
        [0.736, 0.653, 0.455],
        [0.736, 0.653, 0.455],
    ],
    [
        [0.751, 0.620, 0.516],
        [0.896, 0.835, 0.780],
        [0.954, 0.934, 0.919],
        [0.967, 0.961, 0.956],
    ],
    [
        [0.850, 0.752, 0.676],
        [0.949, 0.905, 0.867],
        [0.988, 0.975, 0.963],
        [0.996, 0.992, 0.989],
    ],
];

const COLUMNS: usize = 3;

/// ln 2<sup>10</sup>, the slots of the first column, and ln 2<sup>5</sup>, how far the others are
/// apart.
const FIRST: f64 = 10.0 * LN_2;
const APART: f64 = 5.0 * LN_2;

/// The logarithms of the kicks of the rows.
const KICKS: [f64; 4] = [1.609, 2.996, 4.605, 6.215];

/// The steps of a forecast from an empty table to a full one.
const STEPS: u32 = 128;

impl CuckooFilter {
    /// The expected number of further items until the filter grows by a table; `None` if it does
    /// not grow, or has as many tables as it can have. An expected value: one filter may take a
    /// tenth more or less, and a large one with a bucket size of 1 or 2 a quarter. Takes time linear
    /// in the number of tables.
    ///
    /// It assumes that all items are different. An item that is inserted repeatedly makes the
    /// filter grow at once.
    ///
    /// ```
    /// # use everbloom::CuckooFilter;
    /// let mut filter = CuckooFilter::new(1000);
    /// let expected = filter.expected_until_growth().unwrap() as f64;
    /// let mut items = 0;
    /// while filter.tables() == 1 {
    ///     filter.insert(&items)?;
    ///     items += 1;
    /// }
    /// assert!((items as f64 / expected - 1.0).abs() < 0.25);
    /// # Ok::<(), everbloom::InsertError>(())
    /// ```
    #[must_use]
    pub fn expected_until_growth(&self) -> Option<u64> {
        let is_growing = self.expansion > 0 && self.tables.len() < MAX_TABLES;
        if !is_growing || self.parts().shape(self.tables.len()).is_none() {
            return None;
        }
        let (newest, older) = self.tables.split_last()?;
        if self.keyed.is_some() {
            return Some(newest.capacity().saturating_sub(newest.used));
        }
        let sizes = (self.bucket_size, self.max_kicks);
        Some(expected(newest.len(), newest.used, sizes, Older::of(older)))
    }
}

/// The expected number of items that a filter's first table, of this many slots, takes before it
/// has no room for one.
pub(super) fn expected_items(slots: u64, bucket_size: u8, max_kicks: u16) -> u64 {
    expected(slots, 0, (bucket_size, max_kicks), Older::of(&[]))
}

/// The expected number of further items of a table of so many slots, of which some are used.
fn expected(slots: u64, used: u64, (bucket_size, max_kicks): (u8, u16), older: Older) -> u64 {
    let (slots, mut older) = (slots as f64, older);
    let survival = Survival::of(bucket_size, max_kicks, slots);
    let both_full = 2.0 * f64::from(bucket_size);
    let from = used as f64 / slots;
    let step = 1.0 / f64::from(STEPS);
    let (mut load, mut reached, mut expected) = (from, 1.0, 0.0);
    while load < 1.0 && reached > 1e-6 {
        let next = f64::min(load + step, 1.0);
        let hazard = survival.hazard(next) - survival.hazard(load);
        let passed = reached * exp(-hazard * older.full());
        // The number of items of this step that find room only in older tables.
        let past = powf((load + next) / 2.0, both_full) * (1.0 - older.full());
        let items = (next - load) * slots / f64::max(1.0 - past, 0.01);
        older.take(items * past);
        expected += items * (reached + passed) / 2.0;
        (load, reached) = (next, passed);
    }
    whole(expected)
}

/// The chance that a table alone is filled up to a load without growing: exp(−hazard).
struct Survival {
    scale: f64,
    shape: f64,
}

impl Survival {
    fn of(bucket_size: u8, max_kicks: u16, slots: f64) -> Survival {
        let size = ln(f64::from(bucket_size.max(1))) / LN_2;
        let kicks = ln(f64::from(max_kicks.max(1)));
        let rows = KICKS.windows(2).zip(0_u8..);
        let kicks = rows.fold(0.0, |at, (pair, row)| match pair {
            [low, high] if kicks > *low => {
                f64::from(row) + f64::min((kicks - low) / (high - low), 1.0)
            }
            _ => at,
        });
        let mean = |column| ln(mean_load(size, kicks, column));
        let slots = ln(slots);
        let middle = FIRST + APART;
        let (before, after, at) = if slots < middle {
            (mean(0), mean(1), FIRST)
        } else {
            (mean(1), mean(2), middle)
        };
        let slope = (before - after) / APART;
        let mean = f64::min(exp(before - slope * (slots - at)), 1.0);
        Survival {
            // Divided by Γ(1 + 1/k), which is this to a hundredth for k from 5 on.
            scale: mean * (1.0 + (0.577 - 0.989 * slope) * slope),
            shape: 1.0 / slope,
        }
    }

    fn hazard(&self, load: f64) -> f64 {
        powf(load / self.scale, self.shape)
    }
}

/// The mean load of a column, between the rows.
fn mean_load(size: f64, kicks: f64, column: usize) -> f64 {
    let mut mean = 0.0;
    for (row, i) in MEAN_LOADS.iter().zip(0_u8..) {
        for (cell, j) in row.iter().zip(0_u8..) {
            let near = |at: f64, point: u8| f64::max(1.0 - (at - f64::from(point)).abs(), 0.0);
            let weight = near(f64::min(size, 3.0), i) * near(kicks, j);
            mean += weight * cell.get(column).copied().unwrap_or_default();
        }
    }
    mean
}

/// The tables before the newest, taken as one.
struct Older {
    slots: f64,
    used: f64,
    /// The exponent of the load.
    exponent: f64,
}

impl Older {
    fn of(tables: &[Table]) -> Older {
        Older {
            slots: tables.iter().map(Table::len).sum::<u64>() as f64,
            used: tables.iter().map(|table| table.used).sum::<u64>() as f64,
            exponent: 5.0 * powf(tables.len() as f64, 0.75),
        }
    }

    /// The probability that an item finds no room there.
    fn full(&self) -> f64 {
        if self.slots == 0.0 {
            return 1.0;
        }
        powf(self.used / self.slots, self.exponent)
    }

    fn take(&mut self, items: f64) {
        self.used = f64::min(self.used + items, self.slots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of what is left, forecast and counted, when filters are at a share of their way to
    /// the next table. Returns the mean error of the forecasts.
    fn error(bucket_size: u8, kicks: u16, slots: u64, expansion: u16, tables: usize) -> f64 {
        let runs = (200_000 / slots).clamp(4, 40);
        let (mut forecast, mut counted) = (0.0, 0.0);
        for run in 0..runs {
            let builder = CuckooFilter::builder().bucket_size(bucket_size);
            let builder = builder.slots(slots).max_kicks(kicks).expansion(expansion);
            let mut filter = builder.build().unwrap();
            let mut items = (run << 40)..;
            let mut next = || items.next().unwrap();
            while filter.tables() < tables {
                filter.insert(&next()).unwrap();
            }
            // A third of the way that is forecast from here.
            for _ in 0..filter.expected_until_growth().unwrap() / 3 {
                filter.insert(&next()).unwrap();
            }
            if filter.tables() > tables {
                continue;
            }
            forecast += filter.expected_until_growth().unwrap() as f64;
            while filter.tables() == tables {
                filter.insert(&next()).unwrap();
                counted += 1.0;
            }
        }
        forecast / counted - 1.0
    }

    #[test]
    fn forecasts_are_right_on_average() {
        for (bucket_size, kicks) in [(1, 20), (2, 20), (2, 500), (3, 20), (4, 20), (4, 100)] {
            for slots in [1 << 8, 1 << 12, 1 << 15] {
                for (expansion, tables) in [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4)] {
                    let error = error(bucket_size, kicks, slots, expansion, tables);
                    let case = (bucket_size, kicks, slots, expansion, tables);
                    // A few filters are not a thousand.
                    let most = match (tables, bucket_size) {
                        (1, _) => 0.15,
                        (_, 1) => 0.6,
                        _ => 0.25,
                    };
                    assert!(error.abs() < most, "{case:?}: {error}");
                }
            }
        }
    }

    #[test]
    fn every_filter_has_a_forecast() {
        for slots in [2, 4, 64, 1 << 20] {
            for bucket_size in [1, 2, 5, 9, 255] {
                for kicks in [1, 3, 20, 65535] {
                    let builder = CuckooFilter::builder().bucket_size(bucket_size);
                    let builder = builder.slots(slots).max_kicks(kicks);
                    let Ok(mut filter) = builder.build() else {
                        continue;
                    };
                    let expected = filter.expected_until_growth().unwrap();
                    assert!(
                        (1..=filter.slots()).contains(&expected),
                        "{filter:?} {expected}"
                    );
                    for item in 0..1000 {
                        filter.insert(&item).unwrap();
                    }
                    let expected = filter.expected_until_growth().unwrap();
                    assert!(expected <= filter.slots(), "{filter:?} {expected}");
                }
            }
        }
        let fixed = CuckooFilter::builder().expansion(0).build().unwrap();
        assert_eq!(fixed.expected_until_growth(), None);
    }
}
