//! The parameters of a spread filter, and the text that stores them.
//!
//! ```text
//! everbloom spread 2: capacity 1000000, error rate 0.01, 16 shards
//! ```
//!
//! Everything else follows from it, so programs need not agree on anything later. Version 1 had no
//! records of the generations, so a loss could not be noticed; it is not read.

use std::fmt;

use everbloom::hash::murmur64a;

use crate::Error;

const FORMAT: &str = "everbloom spread 2: ";
/// More shards than a cluster has slots make no sense.
const MAX_SHARDS: u32 = 16_384;
/// The most generations: the last one is 2^30 times as large as the first.
pub(super) const MAX_GENERATIONS: u32 = 31;
/// The seed of the hash that chooses an item's shard: not one that a server's filters use.
const SHARD_SEED: u64 = 0x7368_6172_6420_6f66;

/// The dimensions of a spread filter.
///
/// ```
/// use everbloom_client::SpreadParameters;
/// let parameters = SpreadParameters::new(1_000_000, 0.01, 16)?;
/// assert_eq!((parameters.capacity(), parameters.shards()), (1_000_000, 16));
/// # Ok::<(), everbloom_client::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadParameters {
    capacity: u64,
    error_rate: f64,
    shards: u32,
}

impl SpreadParameters {
    /// The dimensions for a capacity, an error rate and a number of shards. Choose a few times the
    /// largest number of nodes that the cluster will have. [Example](Self).
    ///
    /// # Errors
    ///
    /// [`Error::Size`] when no filter can have them; [`Error::Shape`] without a shard or with over
    /// 16 384.
    pub fn new(capacity: u64, error_rate: f64, shards: u32) -> Result<SpreadParameters, Error> {
        if capacity == 0 || !(error_rate > 0.0 && error_rate < 1.0) {
            return Err(Error::Size {
                capacity,
                error_rate,
            });
        }
        if !(1..=MAX_SHARDS).contains(&shards) {
            return Err(Error::Shape("a spread filter has from 1 shard to 16384"));
        }
        Ok(SpreadParameters {
            capacity,
            error_rate,
            shards,
        })
    }

    /// The items that the first generation is made for. [Example](Self).
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The error rate of the whole, however far it grows.
    ///
    /// ```
    /// use everbloom_client::SpreadParameters;
    /// assert_eq!(SpreadParameters::new(1000, 0.01, 4)?.error_rate(), 0.01);
    /// # Ok::<(), everbloom_client::Error>(())
    /// ```
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.error_rate
    }

    /// The shards. [Example](Self).
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// The capacity of a shard's filter: its part of the whole and four standard deviations,
    /// because items are not spread evenly; each generation has twice the capacity of the one
    /// before.
    pub(super) fn capacity_of(&self, generation: u32) -> usize {
        let part = self.capacity.div_ceil(u64::from(self.shards));
        let first = part.saturating_add(part.isqrt().saturating_mul(4));
        let all = first.saturating_mul(1 << generation.min(MAX_GENERATIONS));
        usize::try_from(all).unwrap_or(usize::MAX)
    }

    /// The error rate of a generation's filters: half, a quarter, ... of the whole, so that the sum
    /// stays below it.
    pub(super) fn error_rate_of(&self, generation: u32) -> f64 {
        self.error_rate / f64::from(2_u32 << generation.min(MAX_GENERATIONS - 1))
    }

    /// The shard of an item: its hash as a fraction of 2^64, times their number.
    pub(super) fn shard_of(&self, item: &[u8]) -> usize {
        let hash = u128::from(murmur64a(item, SHARD_SEED));
        usize::try_from((hash * u128::from(self.shards)) >> 64).unwrap_or(0)
    }

    /// Parses the text; `None` when its format or version is unknown.
    pub(super) fn parse(text: &str) -> Option<SpreadParameters> {
        let text = text.strip_prefix(FORMAT)?.strip_prefix("capacity ")?;
        let (capacity, text) = text.split_once(", error rate ")?;
        let (error_rate, text) = text.split_once(", ")?;
        let shards = text.strip_suffix(" shards")?.parse().ok()?;
        SpreadParameters::new(capacity.parse().ok()?, error_rate.parse().ok()?, shards).ok()
    }
}

impl fmt::Display for SpreadParameters {
    /// The text on the server.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpreadParameters {
            capacity,
            error_rate,
            shards,
        } = self;
        write!(
            f,
            "{FORMAT}capacity {capacity}, error rate {error_rate}, {shards} shards"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::SpreadParameters;

    #[test]
    fn text_is_read_as_it_was_written_and_never_changes() {
        let parameters = SpreadParameters::new(1_000_000, 0.01, 16).unwrap();
        let text = "everbloom spread 2: capacity 1000000, error rate 0.01, 16 shards";
        assert_eq!(parameters.to_string(), text);
        assert_eq!(SpreadParameters::parse(text), Some(parameters));
        for wrong in [
            text.replace(" 2:", " 1:"),
            text.replace("16 ", "0 "),
            text.replace("0.01", "NaN"),
            format!("{text} "),
        ] {
            assert_eq!(SpreadParameters::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_error_rates_of_all_generations_stay_below_the_whole() {
        let parameters = SpreadParameters::new(1_000_000, 0.01, 16).unwrap();
        let sum: f64 = (0..31)
            .map(|generation| parameters.error_rate_of(generation))
            .sum();
        assert!(sum < 0.01, "{sum}");
        assert_eq!(parameters.capacity_of(0), 62_500 + 4 * 250);
        assert_eq!(parameters.capacity_of(3), 8 * (62_500 + 4 * 250));
    }
}
