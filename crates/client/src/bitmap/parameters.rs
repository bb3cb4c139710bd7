//! The dimensions of a filter, and the text that stores them beside its bits.
//!
//! ```text
//! everbloom bitmap 1: capacity 1000000, error rate 0.01, 7 hashes, 9585088 bits in each of 1 keys
//! ```

use std::fmt;

use everbloom::sizing::{LayerSize, Rounding};

use crate::Error;

/// The most bits of a server's value: 512 MiB.
pub(crate) const MAX_KEY_BITS: u64 = 1 << 32;
/// More keys than anyone has memory for: 32 TiB.
const MAX_KEYS: u32 = 1 << 16;
const FORMAT: &str = "everbloom bitmap 1: ";

/// The dimensions of a filter in bitmaps.
///
/// ```
/// use everbloom_client::BitmapParameters;
/// let small = BitmapParameters::new(1_000_000, 0.01)?;
/// assert_eq!((small.bits(), small.hashes(), small.keys()), (9_585_088, 7, 1));
/// // A value on a server has at most 512 MiB.
/// let large = BitmapParameters::new(1_000_000_000, 0.01)?;
/// assert_eq!(large.keys(), 3);
/// # Ok::<(), everbloom_client::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitmapParameters {
    capacity: u64,
    error_rate: f64,
    hashes: u32,
    /// Of one key.
    bits: u64,
    keys: u32,
}

impl BitmapParameters {
    /// The dimensions for a capacity and an error rate, in the fewest keys that hold the bits.
    /// [Example](Self).
    ///
    /// # Errors
    ///
    /// [`Error::Size`] when no filter can have them.
    pub fn new(capacity: u64, error_rate: f64) -> Result<BitmapParameters, Error> {
        BitmapParameters::sized(capacity, error_rate, None)
    }

    /// The same dimensions in more and smaller keys, for servers on which large values cause
    /// trouble. All keys are in one slot of a cluster.
    ///
    /// **Give each key at least 10 000 items.** Items do not spread evenly over the keys, and double
    /// hashing repeats itself in few bits. So small keys exceed the error rate. With 10 000 items in
    /// each, a rate of 0.0001 or more holds within a tenth. One of 0.000001 becomes half as much
    /// again. A million items at 1 %, by simulation:
    ///
    /// | keys | items in each | error rate |
    /// |---|---|---|
    /// | 1 | 1 000 000 | 1.0 % |
    /// | 100 | 10 000 | 1.0 % |
    /// | 9 985 | 100 | 1.17 % |
    /// | 29 954 | 33 | 1.51 % |
    /// | 49 923 | 20 | 1.88 % |
    ///
    /// ```
    /// use everbloom_client::BitmapParameters;
    /// let parameters = BitmapParameters::new(1_000_000, 0.01)?.in_keys(8)?;
    /// assert_eq!((parameters.bits(), parameters.keys()), (9_585_152, 8));
    /// # Ok::<(), everbloom_client::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] when the bits do not fit in this many keys, or there are more than 65 536.
    pub fn in_keys(self, keys: u32) -> Result<BitmapParameters, Error> {
        BitmapParameters::sized(self.capacity, self.error_rate, Some(keys))
    }

    fn sized(capacity: u64, error_rate: f64, keys: Option<u32>) -> Result<Self, Error> {
        let none = Error::Size {
            capacity,
            error_rate,
        };
        let size = LayerSize::new(capacity, error_rate, Rounding::Words).ok_or(none)?;
        let least = u32::try_from(size.bits().div_ceil(MAX_KEY_BITS)).unwrap_or(u32::MAX);
        let keys = keys.unwrap_or(least);
        if keys < least || keys > MAX_KEYS {
            return Err(Error::Shape(
                "these are too few keys for the bits, or over 65536",
            ));
        }
        Ok(BitmapParameters {
            capacity,
            error_rate,
            hashes: size.hashes,
            bits: size.bits().div_ceil(u64::from(keys)).next_multiple_of(64),
            keys,
        })
    }

    /// The items that the filter is made for. [Example](Self::error_rate).
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The error rate when it holds as many items as its capacity.
    ///
    /// ```
    /// use everbloom_client::BitmapParameters;
    /// let parameters = BitmapParameters::new(1_000_000, 0.01)?;
    /// assert_eq!((parameters.capacity(), parameters.error_rate()), (1_000_000, 0.01));
    /// # Ok::<(), everbloom_client::Error>(())
    /// ```
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.error_rate
    }

    /// The bits that an item sets. [Example](Self).
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.hashes
    }

    /// The bits of all keys. [Example](Self).
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits * u64::from(self.keys)
    }

    /// The keys that hold the bits. [Example](Self).
    #[must_use]
    pub fn keys(&self) -> u32 {
        self.keys
    }

    /// The bits of one key.
    pub(crate) fn key_bits(&self) -> u64 {
        self.bits
    }

    /// Parses the text; `None` when its format or version is unknown, or no filter can have its
    /// dimensions.
    pub(crate) fn parse(text: &str) -> Option<BitmapParameters> {
        let text = text.strip_prefix(FORMAT)?.strip_prefix("capacity ")?;
        let (capacity, text) = text.split_once(", error rate ")?;
        let (error_rate, text) = text.split_once(", ")?;
        let (hashes, text) = text.split_once(" hashes, ")?;
        let (bits, text) = text.split_once(" bits in each of ")?;
        let found = BitmapParameters {
            capacity: capacity.parse().ok()?,
            error_rate: error_rate.parse().ok()?,
            hashes: hashes.parse().ok()?,
            bits: bits.parse().ok()?,
            keys: text.strip_suffix(" keys")?.parse().ok()?,
        };
        let sane = found.error_rate > 0.0
            && found.error_rate < 1.0
            && (1..=everbloom::sizing::LayerSize::MAX_HASHES).contains(&found.hashes)
            && (1..=MAX_KEY_BITS).contains(&found.bits)
            && (1..=MAX_KEYS).contains(&found.keys);
        sane.then_some(found)
    }
}

impl fmt::Display for BitmapParameters {
    /// The text beside the bits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BitmapParameters {
            capacity,
            error_rate,
            hashes,
            bits,
            keys,
        } = self;
        write!(
            f,
            "{FORMAT}capacity {capacity}, error rate {error_rate}, {hashes} hashes, \
             {bits} bits in each of {keys} keys"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::BitmapParameters;

    #[test]
    fn text_is_read_as_it_was_written() {
        for (capacity, rate) in [
            (1, 0.5),
            (1000, 0.01),
            (5_000_000_000, 1e-9),
            (77, 0.1 + 0.2),
        ] {
            let parameters = BitmapParameters::new(capacity, rate).unwrap();
            let read = BitmapParameters::parse(&parameters.to_string());
            assert_eq!(read, Some(parameters));
        }
    }

    /// Programs that run may be of another version than the one that made the filter.
    #[test]
    fn text_never_changes() {
        let text = "everbloom bitmap 1: capacity 1000000, error rate 0.01, 7 hashes, \
            9585088 bits in each of 1 keys";
        let parameters = BitmapParameters::new(1_000_000, 0.01).unwrap();
        assert_eq!(parameters.to_string(), text);
        for wrong in [
            text.replace(" 1:", " 2:"),
            text.replace("7 hashes", "0 hashes"),
            text.replace("0.01", "2"),
            text.replace("1 keys", "0 keys"),
            text.replace("9585088", "0"),
            text.replace("9585088", "4294967297"),
            text.replace("everbloom", "other"),
            format!("{text}!"),
            String::new(),
        ] {
            assert_eq!(BitmapParameters::parse(&wrong), None, "{wrong}");
        }
    }
}
