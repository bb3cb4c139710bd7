//! Filters that Guava wrote: `BloomFilter.writeTo` of Google's library for Java.
//!
//! [`GuavaView`] finds items in the bytes, where they are, with Guava's answers. It only reads. To
//! add items, make a [`BloomFilter`](crate::BloomFilter) and insert all items into it.
//!
//! Guava hashes the bytes that a `Funnel` makes of an item, and does not record the funnel. Look it
//! up in the program that made the filter:
//!
//! | in Java | here |
//! |---|---|
//! | `Funnels.stringFunnel(UTF_8)` | `contains("text")` |
//! | `Funnels.unencodedCharsFunnel()` | [`contains_chars("text")`](GuavaView::contains_chars) |
//! | `Funnels.byteArrayFunnel()` | `contains(bytes)` |
//! | `Funnels.integerFunnel()` | `contains(7_i32.to_le_bytes())` |
//! | `Funnels.longFunnel()` | `contains(7_i64.to_le_bytes())` |
//! | your own funnel | `contains` of all bytes that it puts, concatenated, without lengths |
//!
//! In your own funnel `putInt` and the other numbers are little-endian, `putChar` is two
//! bytes, `putBoolean` is a byte 0 or 1, `putUnencodedChars` is UTF-16 little-endian, and
//! `putString` is the text in its charset. A sequential funnel puts its elements one after another.
//!
//! # The bytes
//!
//! ```text
//! offset  size  field
//!      0     1  strategy: 0 = MURMUR128_MITZ_32, 1 = MURMUR128_MITZ_64
//!      1     1  hashes: 1 to 255
//!      2     4  number of words, n: big-endian, more than 0, less than 2^31
//!      6   8 n  words: 64 bits each, big-endian, the lowest bit first
//! ```

use core::fmt;

use smallvec::SmallVec;

use crate::bits::array::{count_ones, test_bit};
use crate::bloom::stats::Stats;
use crate::hash::{Modulus, murmur3_x64_128};

/// A filter of Guava in borrowed bytes.
///
/// ```
/// use everbloom::guava::{GuavaView, Strategy};
///
/// // BloomFilter.create(Funnels.stringFunnel(UTF_8), 5, 0.01), with an apple and a pear
/// let bytes = [1, 7, 0, 0, 0, 1, 0x10, 0x51, 0x04, 0x98, 0x00, 0x44, 0x01, 0x26];
/// let fruit = GuavaView::new(&bytes)?;
/// assert!(fruit.contains("apple") && fruit.contains("pear"));
/// assert!(!fruit.contains("plum"));
/// assert_eq!((fruit.strategy(), fruit.hashes(), fruit.bits()), (Strategy::Mitz64, 7, 64));
/// # Ok::<(), everbloom::guava::GuavaError>(())
/// ```
///
/// The bytes have no checksum. A view of changed bits answers wrongly, and does nothing worse.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GuavaView<'a> {
    strategy: Strategy,
    hashes: u8,
    bits: Modulus,
    words: &'a [u8],
}

/// How positions follow from an item's hash, as Guava names it.
/// [Example](GuavaView).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// `MURMUR128_MITZ_32`, Guava's first. It uses no more than the first 2^31 bits.
    Mitz32,
    /// `MURMUR128_MITZ_64`, with which Guava makes filters today.
    Mitz64,
}

/// Why bytes are not a filter of Guava.
///
/// ```
/// use everbloom::guava::{GuavaError, GuavaView};
///
/// let error = GuavaView::new(&[9, 7, 0, 0, 0, 1]).unwrap_err();
/// assert_eq!(error, GuavaError::Strategy(9));
/// let error = GuavaView::new(&[1, 7, 0, 0, 0, 1]).unwrap_err();
/// assert_eq!(error, GuavaError::Length { expected: 14, found: 6 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GuavaError {
    /// They are fewer than the six before the bits.
    Truncated,
    /// The strategy is none that Guava has.
    Strategy(u8),
    /// Every item would be found.
    Hashes,
    /// The number of words is not more than 0.
    Words(i32),
    /// There are fewer bytes than the filter has, or more.
    Length {
        /// The length of the filter.
        expected: u64,
        /// The length of the bytes.
        found: u64,
    },
}

messages! {
    GuavaError {
        Truncated => "the bytes end before the filter does";
        Strategy(found) => "strategy {found} is not known";
        Hashes => "a filter without hashes";
        Words(found) => "{found} words are no number of words";
        Length { expected, found } => "the filter has {expected} bytes, not {found}";
    }
}

impl<'a> GuavaView<'a> {
    /// A view of the filter in these bytes. Checks the first six bytes and the number of bytes.
    ///
    /// # Errors
    ///
    /// [`GuavaError`] says what is wrong. Bytes behind the filter are an error too.
    pub fn new(bytes: &'a [u8]) -> Result<GuavaView<'a>, GuavaError> {
        let (head, words) = bytes
            .split_first_chunk::<6>()
            .ok_or(GuavaError::Truncated)?;
        let [strategy, hashes, count @ ..] = *head;
        let strategy = match strategy {
            0 => Strategy::Mitz32,
            1 => Strategy::Mitz64,
            other => return Err(GuavaError::Strategy(other)),
        };
        if hashes == 0 {
            return Err(GuavaError::Hashes);
        }
        let count = i32::from_be_bytes(count);
        let Ok(len) = u32::try_from(count).map(|count| u64::from(count) * 8) else {
            return Err(GuavaError::Words(count));
        };
        if len == 0 {
            return Err(GuavaError::Words(count));
        }
        if words.len() as u64 != len {
            let (expected, found) = (len + 6, bytes.len() as u64);
            return Err(GuavaError::Length { expected, found });
        }
        Ok(GuavaView {
            strategy,
            hashes,
            bits: Modulus::new(len * 8),
            words,
        })
    }

    /// Whether the item may be in the filter, as `mightContain` says. The bytes are those that the
    /// [funnel](self) puts. Takes time linear in their number and in the hashes.
    #[must_use]
    pub fn contains(&self, item: impl AsRef<[u8]>) -> bool {
        let (low, high) = murmur3_x64_128(item.as_ref(), 0);
        match self.strategy {
            Strategy::Mitz32 => self.all_are_set(positions_32(low)),
            Strategy::Mitz64 => self.all_are_set(positions_64(low, high)),
        }
    }

    /// The same for text that was put as Java's own characters, by
    /// `Funnels.unencodedCharsFunnel()`.
    ///
    /// ```
    /// # use everbloom::guava::GuavaView;
    /// # let bytes = [1, 7, 0, 0, 0, 1, 0x10, 0x51, 0x04, 0x98, 0x00, 0x44, 0x01, 0x26];
    /// # let view = GuavaView::new(&bytes)?;
    /// assert_eq!(view.contains_chars("€"), view.contains([0xac, 0x20]));
    /// # Ok::<(), everbloom::guava::GuavaError>(())
    /// ```
    #[must_use]
    pub fn contains_chars(&self, text: &str) -> bool {
        let chars = text.encode_utf16().flat_map(u16::to_le_bytes);
        self.contains(chars.collect::<SmallVec<[u8; 128]>>())
    }

    /// The hash strategy of the filter.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// How many bits an item sets.
    #[must_use]
    pub fn hashes(&self) -> u8 {
        self.hashes
    }

    /// How many bits there are, a multiple of 64.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits.get()
    }

    /// The contents and error rate of the filter; Guava does not store the capacity. The estimated
    /// items are those of `approximateElementCount`, and the error rate is that of `expectedFpp`.
    /// Takes time linear in the bits.
    ///
    /// ```
    /// # use everbloom::guava::GuavaView;
    /// # let bytes = [1, 7, 0, 0, 0, 1, 0x10, 0x51, 0x04, 0x98, 0x00, 0x44, 0x01, 0x26];
    /// # let fruit = GuavaView::new(&bytes)?;
    /// assert_eq!((fruit.stats().items, fruit.stats().capacity), (2, None));
    /// assert!((2.3e-5..2.4e-5).contains(&fruit.stats().estimated_error_rate));
    /// # Ok::<(), everbloom::guava::GuavaError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of_array(count_ones(self.words), self.bits(), self.hashes.into())
    }

    fn all_are_set(&self, positions: impl Iterator<Item = u64>) -> bool {
        let mut positions = positions.take(self.hashes.into());
        // The lowest byte of a word is its last one.
        positions.all(|position| test_bit(self.words, self.bits.reduce(position) ^ 0b11_1000))
    }
}

impl fmt::Debug for GuavaView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuavaView")
            .field("strategy", &self.strategy)
            .field("hashes", &self.hashes)
            .field("bits", &self.bits())
            .finish_non_exhaustive()
    }
}

/// Splits the lower half of the hash into `a` and `b`. The positions are `a + i b` for
/// `i = 1, 2, ...` in signed 32 bits, or the complement if that is negative.
fn positions_32(low: u64) -> impl Iterator<Item = u64> {
    let (a, b) = ((low & 0xffff_ffff) as u32, (low >> 32) as u32);
    let sums = (1..).map(move |i: u32| a.wrapping_add(b.wrapping_mul(i)));
    sums.map(|sum| u64::from(if sum >> 31 == 1 { !sum } else { sum }))
}

/// `low + i high` for `i = 0, 1, ...`, without the sign of a sum of 64 bits.
fn positions_64(low: u64, high: u64) -> impl Iterator<Item = u64> {
    let sums = (0..).map(move |i: u64| low.wrapping_add(high.wrapping_mul(i)));
    sums.map(|sum| sum & (u64::MAX >> 1))
}
