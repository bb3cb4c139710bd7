//! The formulas of the textbooks, with the true ln 2 and without rounding.
//!
//! `m` bits, `k` hashes, `n` items, error rate `p`. They assume that the hash positions are
//! independent, as in Bloom, "Space/time trade-offs in hash coding with allowable errors" (1970),
//! and section 2 of Broder and Mitzenmacher, "Network applications of Bloom filters: a survey"
//! (2004). Results are `f64`, so that the caller rounds where it must; arguments outside their
//! range give NaN or infinity as the formula does, never a panic.

use core::f64::consts::LN_2;

use crate::math::{exp_m1, ln, ln_1p, powf};

/// Bits for a capacity and an error rate with the best hash count: `m = -n ln p / (ln 2)^2`.
///
/// ```
/// use everbloom::sizing::textbook;
/// assert_eq!(textbook::bits(1e8, 0.0001).ceil(), 1_917_011_676.0);
/// ```
#[must_use]
pub fn bits(items: f64, error_rate: f64) -> f64 {
    -items * ln(error_rate) / (LN_2 * LN_2)
}

/// The best hash count for this many bits and items: `k = m / n * ln 2`.
///
/// ```
/// # use everbloom::sizing::textbook;
/// assert_eq!(textbook::hashes(9_585_059.0, 1e6).round(), 7.0);
/// ```
#[must_use]
pub fn hashes(bits: f64, items: f64) -> f64 {
    bits / items * LN_2
}

/// The error rate after `items` insertions: `p = (1 - e^(-k n / m))^k`.
///
/// ```
/// # use everbloom::sizing::textbook;
/// assert!((0.01..0.0101).contains(&textbook::error_rate(9_585_059.0, 7.0, 1e6)));
/// ```
#[must_use]
pub fn error_rate(bits: f64, hashes: f64, items: f64) -> f64 {
    powf(fill_ratio(bits, hashes, items), hashes)
}

/// Items for this many bits at an error rate, with the best hash count: `n = -m (ln 2)^2 / ln p`.
///
/// ```
/// # use everbloom::sizing::textbook;
/// assert_eq!(textbook::capacity(9_585_059.0, 0.01).floor(), 1e6);
/// ```
#[must_use]
pub fn capacity(bits: f64, error_rate: f64) -> f64 {
    -bits * (LN_2 * LN_2) / ln(error_rate)
}

/// Items until a filter of these bits and hashes reaches an error rate:
/// `n = -m / k * ln(1 - p^(1/k))`.
///
/// ```
/// # use everbloom::sizing::textbook;
/// assert_eq!(textbook::capacity_with_hashes(9_585_059.0, 4.0, 0.01).floor(), 910_893.0);
/// ```
#[must_use]
pub fn capacity_with_hashes(bits: f64, hashes: f64, error_rate: f64) -> f64 {
    -bits / hashes * ln_1p(-powf(error_rate, 1.0 / hashes))
}

/// Bits for a capacity and an error rate with a given hash count:
/// `m = -k n / ln(1 - p^(1/k))`.
///
/// ```
/// # use everbloom::sizing::textbook;
/// assert_eq!(textbook::bits_with_hashes(1e6, 0.01, 4.0).ceil(), 10_522_705.0);
/// ```
#[must_use]
pub fn bits_with_hashes(items: f64, error_rate: f64, hashes: f64) -> f64 {
    -hashes * items / ln_1p(-powf(error_rate, 1.0 / hashes))
}

/// The part of the bits that are expected to be 1 after `items` insertions:
/// `1 - e^(-k n / m)`.
///
/// ```
/// # use everbloom::sizing::textbook;
/// assert!((0.518..0.519).contains(&textbook::fill_ratio(9_585_059.0, 7.0, 1e6)));
/// ```
#[must_use]
pub fn fill_ratio(bits: f64, hashes: f64, items: f64) -> f64 {
    -exp_m1(-hashes * items / bits)
}

/// The number of items that most likely made `ones` of the bits 1: `n = -m / k * ln(1 - X / m)`.
/// (Swamidass and Baldi, "Mathematical correction for fingerprint similarity measures to improve
/// chemical retrieval", 2007.)
///
/// ```
/// # use everbloom::sizing::textbook;
/// let items = textbook::items_from_ones(9_585_059.0, 7.0, 4_792_530.0);
/// assert_eq!(items.round(), 949_123.0);
/// ```
#[must_use]
pub fn items_from_ones(bits: f64, hashes: f64, ones: f64) -> f64 {
    -bits / hashes * ln_1p(-ones / bits)
}

/// The error rate from the part of the bits that are 1: `fill^k`.
///
/// ```
/// # use everbloom::sizing::textbook;
/// assert_eq!(textbook::error_rate_from_fill(0.5, 7.0), 1.0 / 128.0);
/// ```
#[must_use]
pub fn error_rate_from_fill(fill_ratio: f64, hashes: f64) -> f64 {
    powf(fill_ratio, hashes)
}
