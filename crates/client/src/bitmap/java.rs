//! The layout of the recipe in Java: `(item.hashCode() >>> shift) % 10_000_000` for the shifts 1, 2
//! and 3.
//!
//! `>>>` shifts zeros in, so that no position is negative.

/// The bits that an item sets.
pub(super) const HASHES: u32 = 3;
/// The bits of the filter.
pub(super) const BITS: u64 = 10_000_000;

pub(super) fn positions(item: &[u8]) -> Vec<u64> {
    let hash = hash_code(&String::from_utf8_lossy(item));
    let position = |shift| u64::from(hash >> shift) % BITS;
    (1..=HASHES).map(position).collect()
}

/// The bits of `String.hashCode()`: 31 times the code so far plus the next unit of UTF-16.
fn hash_code(text: &str) -> u32 {
    let units = text.encode_utf16();
    units.fold(0, |hash: u32, unit| {
        hash.wrapping_mul(31).wrapping_add(unit.into())
    })
}
