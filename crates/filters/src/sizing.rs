//! How large a filter must be: bits and hash count from capacity and error rate, and back.
//!
//! The functions of this module are RedisBloom's, with its exact constants; what they return is what
//! a filter of this crate has.

use crate::math::{ceil, ln, whole};

/// RedisBloom's ln 2. It differs from the true value in the fifteenth digit, and that shows: an
/// error rate of 0.25 gives 3 hashes, not 2.
#[expect(
    clippy::approx_constant,
    reason = "the layout is defined with this value"
)]
pub const LN2: f64 = 0.693_147_180_559_945;
/// RedisBloom's (ln 2)^2.
pub const LN2_SQUARED: f64 = 0.480_453_013_918_201;
/// The highest error rate of a scalable filter; a higher one is lowered to it.
pub const RATE_CAP: f64 = 0.25;
/// The most hashes a layer can have: what the smallest positive `f64` as an error rate needs.
pub const MAX_HASHES: u32 = 1075;

/// How the bit count of a layer follows from its capacity.
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

/// The dimensions of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerSize {
    /// Items it is made for.
    pub capacity: u64,
    /// The error rate when it is full.
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
    /// Dimensions for a capacity and an error rate; `None` when the capacity is 0, the error rate
    /// is not strictly between 0 and 1, or the bits would be 2^63 or more.
    ///
    /// ```
    /// use everbloom::sizing::{LayerSize, Rounding};
    /// let size = LayerSize::new(100, 0.005, Rounding::Words).unwrap();
    /// assert_eq!((size.bits(), size.hashes), (1152, 8));
    /// ```
    #[must_use]
    pub fn new(capacity: u64, error_rate: f64, rounding: Rounding) -> Option<LayerSize> {
        if capacity == 0 || !(error_rate > 0.0 && error_rate < 1.0) {
            return None;
        }
        let bits_per_entry = bits_per_entry(error_rate);
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
        let hashes = hashes(bits_per_entry)?;
        Some(LayerSize {
            capacity,
            error_rate,
            bits_per_entry,
            hashes,
            bytes,
            log2_bits,
        })
    }

    /// Length of the bit array in bits, saturating.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bytes.saturating_mul(8)
    }
}

/// Bits per item for an error rate: `|ln(rate) / (ln 2)^2|`.
#[must_use]
pub fn bits_per_entry(error_rate: f64) -> f64 {
    (ln(error_rate) / LN2_SQUARED).abs()
}

/// Hash count for bits per item: `ceil(ln 2 * bits_per_entry)`; `None` when that is no number from 0
/// to [`MAX_HASHES`].
#[must_use]
pub fn hashes(bits_per_entry: f64) -> Option<u32> {
    let count = ceil(LN2 * bits_per_entry);
    if !(0.0..=f64::from(MAX_HASHES)).contains(&count) {
        return None;
    }
    u32::try_from(whole(count)).ok()
}

/// `floor(log2(x)) + 1` when that is 1 to 63.
fn exponent(x: f64) -> Option<u8> {
    let biased = (x.to_bits() >> 52) & 0x7ff;
    u8::try_from(biased.checked_sub(1022)?)
        .ok()
        .filter(|n| (1..=63).contains(n))
}
