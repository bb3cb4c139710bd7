//! RedisBloom's sizes, with its exact constants and roundings.

use super::textbook;
use crate::math::{ceil, exp, ln, powf, whole};

/// RedisBloom's (ln 2)^2. It is a little less than the true value, and that shows: an error rate
/// of 0.25 gives 3 hashes, not 2.
const LN2_SQUARED: f64 = 0.480_453_013_918_201;
/// The highest error rate of a scalable filter; a higher one is lowered to it.
/// [Example](LayerSize::only).
pub const RATE_CAP: f64 = 0.25;

/// How the bit count of a layer follows from its capacity. [Example](LayerSize::new).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// Up to a whole number of 64-bit words: every filter made today.
    #[default]
    Words,
    /// Up to a power of two, the spare bits being spare capacity: filters made long ago.
    PowerOfTwo,
    /// The number given as the capacity is the logarithm of the bit count.
    Log2,
}

/// The dimensions of one layer. [Example](Self::new).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerSize {
    /// Items it is made for.
    pub capacity: u64,
    /// The error rate that it is made for. A small layer of the classic layout errs more often when
    /// it is full: see [`rate_at`](Self::rate_at).
    pub error_rate: f64,
    /// Bits per item of the capacity, before any rounding.
    pub bits_per_entry: f64,
    /// Bits set by an item.
    pub hashes: u32,
    /// Length of the bit array in bytes.
    pub bytes: u64,
    /// Logarithm of the modulus of bit positions; 0 when the modulus is the bit count.
    pub log2_bits: u8,
}

impl LayerSize {
    /// RedisBloom's ln 2, a little less than the true value.
    ///
    /// ```
    /// use everbloom::sizing::LayerSize;
    /// assert!(LayerSize::LN2 < std::f64::consts::LN_2);
    /// ```
    #[expect(
        clippy::approx_constant,
        reason = "the layout is defined with this value"
    )]
    pub const LN2: f64 = 0.693_147_180_559_945;

    /// The most hashes a layer can have: what the smallest positive `f64` as an error rate needs.
    /// [Example](Self::hashes_of).
    pub const MAX_HASHES: u32 = 1075;

    /// Dimensions for a capacity and an error rate; `None` when the capacity is 0, the error rate
    /// is not strictly between 0 and 1, or the bits would be 2^63 or more.
    ///
    /// ```
    /// use everbloom::sizing::{LayerSize, Rounding};
    /// let size = LayerSize::new(100, 0.005, Rounding::Words).unwrap();
    /// assert_eq!((size.bits(), size.hashes), (1152, 8));
    /// let old = LayerSize::new(100, 0.005, Rounding::PowerOfTwo).unwrap();
    /// assert_eq!((old.bits(), old.capacity), (2048, 185));
    /// ```
    #[must_use]
    pub fn new(capacity: u64, error_rate: f64, rounding: Rounding) -> Option<LayerSize> {
        if capacity == 0 || !(error_rate > 0.0 && error_rate < 1.0) {
            return None;
        }
        let bits_per_entry = Self::bits_per_entry_of(error_rate);
        let exact = capacity as f64 * bits_per_entry;
        let (bits, capacity, log2_bits) = match rounding {
            Rounding::Words => (whole(exact).max(1), capacity, 0),
            Rounding::PowerOfTwo => {
                let log2_bits = exponent(exact)?;
                let bits = 1_u64 << log2_bits;
                let spare = whole(whole(bits as f64 - exact) as f64 / bits_per_entry);
                (bits, capacity.checked_add(spare)?, log2_bits)
            }
            Rounding::Log2 => {
                let log2_bits = u8::try_from(capacity).ok().filter(|&n| n <= 63)?;
                let bits = 1_u64 << log2_bits;
                (bits, whole(bits as f64 / bits_per_entry), log2_bits)
            }
        };
        if bits > 1 << 63 {
            return None;
        }
        let bytes = bits.div_ceil(64) * 8;
        let hashes = Self::hashes_of(bits_per_entry)?;
        Some(LayerSize {
            capacity,
            error_rate,
            bits_per_entry,
            hashes,
            bytes,
            log2_bits,
        })
    }

    /// Dimensions of a layer with at least this many bits and exactly this many hashes; `None` when
    /// a count is 0, the bits are more than 2^63 or the hashes more than
    /// [`MAX_HASHES`](Self::MAX_HASHES).
    ///
    /// The capacity is the given one, or else the one for which the hash count is the best; the
    /// error rate is the expected one at that capacity.
    ///
    /// ```
    /// use everbloom::sizing::LayerSize;
    /// let size = LayerSize::from_bits(1 << 20, 7, None).unwrap();
    /// assert_eq!((size.bytes, size.capacity), (131_072, 103_831));
    /// ```
    #[must_use]
    pub fn from_bits(bits: u64, hashes: u32, capacity: Option<u64>) -> Option<LayerSize> {
        let count = f64::from(hashes);
        if bits == 0 || bits > 1 << 63 || !(1..=Self::MAX_HASHES).contains(&hashes) {
            return None;
        }
        // A dump stores both, and its reader derives the one from the other; the quotient may be
        // a last bit too large for that.
        let mut bits_per_entry = count / Self::LN2;
        while ceil(Self::LN2 * bits_per_entry) > count {
            bits_per_entry = bits_per_entry.next_down();
        }
        let bytes = bits.div_ceil(64) * 8;
        let bits = bytes as f64 * 8.0;
        let capacity = capacity.unwrap_or_else(|| whole(bits / bits_per_entry).max(1));
        let error_rate = textbook::error_rate(bits, count, capacity as f64);
        let error_rate = error_rate.clamp(0.0_f64.next_up(), 1.0_f64.next_down());
        Some(LayerSize {
            capacity,
            error_rate,
            bits_per_entry,
            hashes,
            bytes,
            log2_bits: 0,
        })
    }

    /// Dimensions of the first layer of a filter that grows: half the error rate, so that the
    /// layers' rates add up to the whole. A rate above [`RATE_CAP`] is lowered to it first.
    ///
    /// ```
    /// use everbloom::sizing::LayerSize;
    /// assert_eq!(LayerSize::first(100, 0.01).unwrap().bytes, 144);
    /// ```
    #[must_use]
    pub fn first(capacity: u64, error_rate: f64) -> Option<LayerSize> {
        LayerSize::new(capacity, error_rate.min(RATE_CAP) * 0.5, Rounding::Words)
    }

    /// Dimensions of the only layer of a filter that does not grow. A rate above [`RATE_CAP`] is
    /// lowered to it.
    ///
    /// ```
    /// use everbloom::sizing::{LayerSize, RATE_CAP};
    /// assert_eq!(LayerSize::only(100, 0.01).unwrap().bytes, 120);
    /// assert_eq!(LayerSize::only(100, 0.9).unwrap().error_rate, RATE_CAP);
    /// ```
    #[must_use]
    pub fn only(capacity: u64, error_rate: f64) -> Option<LayerSize> {
        LayerSize::new(capacity, error_rate.min(RATE_CAP), Rounding::Words)
    }

    /// Dimensions of the layer after this one in a chain that grows by `expansion`; `None` when
    /// there is none.
    ///
    /// ```
    /// use everbloom::sizing::{LayerSize, Rounding};
    /// let first = LayerSize::first(100, 0.01).unwrap();
    /// let second = first.next(2, Rounding::Words).unwrap();
    /// assert_eq!((second.capacity, second.error_rate), (200, 0.0025));
    /// ```
    #[must_use]
    pub fn next(&self, expansion: u32, rounding: Rounding) -> Option<LayerSize> {
        let capacity = self.capacity.checked_mul(u64::from(expansion))?;
        LayerSize::new(capacity, self.error_rate * 0.5, rounding)
    }

    /// Bits per item for an error rate: `|ln(rate) / (ln 2)^2|`.
    ///
    /// ```
    /// # use everbloom::sizing::LayerSize;
    /// assert!((9.58..9.59).contains(&LayerSize::bits_per_entry_of(0.01)));
    /// ```
    #[must_use]
    pub fn bits_per_entry_of(error_rate: f64) -> f64 {
        (ln(error_rate) / LN2_SQUARED).abs()
    }

    /// Hash count for bits per item: `ceil(ln 2 * bits_per_entry)`; `None` when that is no number
    /// from 0 to [`MAX_HASHES`](Self::MAX_HASHES).
    ///
    /// ```
    /// # use everbloom::sizing::LayerSize;
    /// assert_eq!(LayerSize::hashes_of(LayerSize::bits_per_entry_of(0.01)), Some(7));
    /// assert_eq!(LayerSize::hashes_of(f64::from(2 * LayerSize::MAX_HASHES)), None);
    /// ```
    #[must_use]
    pub fn hashes_of(bits_per_entry: f64) -> Option<u32> {
        let count = ceil(Self::LN2 * bits_per_entry);
        if !(0.0..=f64::from(Self::MAX_HASHES)).contains(&count) {
            return None;
        }
        u32::try_from(whole(count)).ok()
    }

    /// The largest capacity of a layer of at most this many bits at an error rate; 0 when not even
    /// one item fits.
    ///
    /// ```
    /// use everbloom::sizing::LayerSize;
    /// assert_eq!(LayerSize::max_capacity(1152, 0.005), 104);
    /// ```
    #[must_use]
    pub fn max_capacity(bits: u64, error_rate: f64) -> u64 {
        let words = bits / 64 * 64;
        let fits = |items: u64| {
            LayerSize::new(items, error_rate, Rounding::Words)
                .is_some_and(|size| size.bits() <= words)
        };
        // The search keeps `low` fitting, 0 by definition, and `high` not fitting.
        let (mut low, mut high) = (0, u64::MAX);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The error rate for which a layer with this many bits and items is made: `e^(-bits / items *
    /// (ln 2)^2)`.
    ///
    /// ```
    /// # use everbloom::sizing::LayerSize;
    /// assert!((0.0099..0.01).contains(&LayerSize::rate_of(9_585_059, 1_000_000)));
    /// ```
    #[must_use]
    pub fn rate_of(bits: u64, items: u64) -> f64 {
        exp(-(bits as f64) / items as f64 * LN2_SQUARED)
    }

    /// The error rate of a layer in the classic layout from the part of its bits that are 1:
    /// `fill^k`, and what double hashing adds to it.
    ///
    /// The positions of an item are `a + i b`. Two items with the same `b` modulo `m` share many of
    /// them, and a `b` near a simple fraction of 2^64 may give few different ones. Either happens
    /// to about one item in `m`, so it counts in small arrays and at small error rates. The
    /// addition is fitted to measurements of arrays of 200 bits or more that are up to 0.7 full,
    /// with 5 to 30 hashes. It is right within a quarter.
    ///
    /// ```
    /// use everbloom::sizing::{LayerSize, textbook};
    /// // For 100 items at 0.1 %, and for a million.
    /// assert!(LayerSize::rate_from_fill(0.5, 1440, 10) > 1.3 * textbook::error_rate_from_fill(0.5, 10.0));
    /// assert!(LayerSize::rate_from_fill(0.5, 14_400_000, 10) < 0.000_98);
    /// ```
    #[must_use]
    pub fn rate_from_fill(fill_ratio: f64, bits: u64, hashes: u32) -> f64 {
        let independent = textbook::error_rate_from_fill(fill_ratio, f64::from(hashes));
        if hashes < 2 {
            return independent;
        }
        let (m, k) = (bits as f64, f64::from(hashes));
        // `a + i b` wraps at 2^64. This moves the positions, unless `m` divides 2^64.
        let moved = if bits.is_power_of_two() { 4.0 } else { k };
        let alike = 2.0 * fill_ratio * powf(1.0 - fill_ratio, -2.3);
        let added = alike * (1.0 + k * k / m) / (moved * m);
        (independent + added).min(1.0)
    }

    /// The error rate of a layer in the classic layout that holds so many items: that of
    /// [`rate_from_fill`](Self::rate_from_fill) for the part of the bits that they make 1.
    ///
    /// ```
    /// use everbloom::sizing::{LayerSize, Rounding};
    /// // A filter for 10 items at 0.0001 % keeps 0.14 %. One for a million keeps its rate.
    /// let small = LayerSize::new(10, 1e-6, Rounding::Words).unwrap();
    /// let rate = LayerSize::rate_at(small.bits(), small.hashes, 10.0);
    /// assert!((0.0012..0.0015).contains(&rate));
    /// let large = LayerSize::new(1_000_000, 1e-6, Rounding::Words).unwrap();
    /// assert!(LayerSize::rate_at(large.bits(), large.hashes, 1e6) < 1.05e-6);
    /// ```
    #[must_use]
    pub fn rate_at(bits: u64, hashes: u32, items: f64) -> f64 {
        let fill = textbook::fill_ratio(bits as f64, f64::from(hashes), items);
        Self::rate_from_fill(fill, bits, hashes)
    }

    /// Length of the bit array in bits, saturating. [Example](Self::new).
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bytes.saturating_mul(8)
    }
}

/// `floor(log2(x)) + 1` when that is 1 to 63.
fn exponent(x: f64) -> Option<u8> {
    let biased = (x.to_bits() >> 52) & 0x7ff;
    u8::try_from(biased.checked_sub(1022)?)
        .ok()
        .filter(|n| (1..=63).contains(n))
}
