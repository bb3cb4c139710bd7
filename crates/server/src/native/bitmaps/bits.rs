//! The bits of a string, in Redis's order: the first bit is the highest of the first byte.
//!
//! ```text
//! offset   0   1  2  3  4 5 6 7    8   9 ...
//! byte     0                       1
//! weight   128 64 32 16 8 4 2 1    128 64 ...
//! ```
//!
//! Bits after the end are 0.

use std::ops::Range;

use everbloom::host;
use everbloom_files::{OutOfMemory, Text};

/// The number of bits.
pub fn len(bytes: &[u8]) -> u64 {
    bytes.len() as u64 * 8
}

/// The location of a bit: the byte, and how far to shift it right.
#[inline]
fn place(offset: u64) -> (usize, u64) {
    let byte = usize::try_from(offset / 8).unwrap_or(usize::MAX);
    (byte, 7 - offset % 8)
}

/// Prefetches the memory of a bit that will be read soon.
#[inline]
pub fn prefetch(bytes: &[u8], offset: u64) {
    if let Some(byte) = bytes.get(place(offset).0) {
        host::prefetch(byte);
    }
}

/// Whether a bit is 1.
#[inline]
pub fn get(bytes: &[u8], offset: u64) -> bool {
    let (byte, shift) = place(offset);
    bytes.get(byte).is_some_and(|byte| byte >> shift & 1 == 1)
}

/// Sets a bit to 1 or 0, and returns its old value. The string must reach to it.
#[inline]
pub fn set(text: &mut Text, offset: u64, on: bool) -> bool {
    let old = get(text, offset);
    if old != on {
        let (byte, shift) = place(offset);
        let part = text.part_mut(byte..byte.saturating_add(1));
        part.iter_mut().for_each(|byte| *byte ^= 1 << shift);
    }
    old
}

/// Whether a string reaches to a bit.
#[inline]
pub fn reaches(bytes: &[u8], offset: u64) -> bool {
    place(offset).0 < bytes.len()
}

/// Extends a string with zeros up to a bit; returns whether it had to grow.
#[inline]
pub fn reach(text: &mut Text, offset: u64) -> Result<bool, OutOfMemory> {
    let grows = !reaches(text, offset);
    if grows {
        text.fill_up(place(offset).0.saturating_add(1))?;
    }
    Ok(grows)
}

/// A range of bits as the bits before its first whole byte, its whole bytes, and the bits after
/// them.
fn split(bits: Range<u64>) -> (Range<u64>, Range<usize>, Range<u64>) {
    let whole = bits.start.next_multiple_of(8).min(bits.end);
    let rest = (bits.end / 8 * 8).max(whole);
    let bytes = place(whole).0..place(rest).0;
    (bits.start..whole, bytes, rest..bits.end)
}

/// How many bits of a range are 1.
pub fn count(bytes: &[u8], range: Range<u64>) -> u64 {
    let (head, whole, tail) = split(range);
    let edges = head.chain(tail).filter(|bit| get(bytes, *bit)).count();
    let (words, rest) = bytes.get(whole).unwrap_or_default().as_chunks::<8>();
    let words = words
        .iter()
        .map(|word| u64::from_ne_bytes(*word).count_ones());
    let rest = rest.iter().map(|byte| byte.count_ones());
    let whole: u64 = words.chain(rest).map(u64::from).sum();
    whole + edges as u64
}

/// The first bit of a range that is 1, or the first that is 0.
pub fn position(bytes: &[u8], range: Range<u64>, wanted: bool) -> Option<u64> {
    let (mut head, whole, mut tail) = split(range);
    let is_wanted = |bit: &u64| get(bytes, *bit) == wanted;
    let first = |whole: Range<usize>| {
        let start = whole.start as u64 * 8;
        let bytes = bytes.get(whole)?;
        // A byte without the wanted bit.
        let without = if wanted { 0 } else { u8::MAX };
        let (words, _) = bytes.as_chunks::<8>();
        let skipped = words
            .iter()
            .take_while(|word| **word == [without; 8])
            .count()
            * 8;
        let rest = bytes.get(skipped..)?;
        let at = rest.iter().position(|byte| *byte != without)?;
        let bit = (rest.get(at)? ^ without).leading_zeros();
        Some(start + (skipped + at) as u64 * 8 + u64::from(bit))
    };
    let found = head.find(is_wanted).or_else(|| first(whole));
    found.or_else(|| tail.find(is_wanted))
}

/// How strings are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Junction {
    /// Bits that all strings have.
    And,
    /// Bits that at least one string has.
    Or,
    /// Bits that an odd number of strings has.
    Xor,
    /// Bits that the only string does not have.
    Not,
}

/// Combines another string into `bytes`, which must not be the shorter one.
pub fn join(bytes: &mut [u8], other: &[u8], how: Junction) {
    let pairs = bytes.iter_mut().zip(other);
    match how {
        Junction::And => {
            pairs.for_each(|(byte, other)| *byte &= other);
            let behind = bytes.get_mut(other.len()..).unwrap_or_default();
            behind.fill(0);
        }
        Junction::Or => pairs.for_each(|(byte, other)| *byte |= other),
        Junction::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
        Junction::Not => pairs.for_each(|(byte, other)| *byte = !other),
    }
}

/// The bytes that may hold a number of up to 64 bits, at the end of 16.
const SPAN_BYTES: usize = 9;

/// The bytes around a number as one integer, and how far to shift it right.
fn window(bytes: &[u8], offset: u64, width: u32) -> (u128, u64) {
    let (first, _) = place(offset);
    let there = bytes.get(first..).unwrap_or_default().iter();
    let padded = there.copied().chain(std::iter::repeat(0)).take(SPAN_BYTES);
    let window = padded.fold(0, |all, byte| all << 8 | u128::from(byte));
    (
        window,
        SPAN_BYTES as u64 * 8 - offset % 8 - u64::from(width),
    )
}

/// This many ones.
fn mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width).unwrap_or(0)
}

/// The number of `width` bits, 1 to 64, that begins at a bit. Its highest bit comes first.
pub fn read(bytes: &[u8], offset: u64, width: u32) -> u64 {
    let (window, shift) = window(bytes, offset, width);
    let number = window >> shift & u128::from(mask(width));
    u64::try_from(number).unwrap_or(0)
}

/// Writes the lowest `width` bits of a number. The string must reach to its last bit.
pub fn write(text: &mut Text, offset: u64, width: u32, number: u64) {
    let (window, shift) = window(text, offset, width);
    let mask = mask(width);
    let cleared = window & !(u128::from(mask) << shift);
    let written = cleared | u128::from(number & mask) << shift;
    let first = place(offset).0;
    let there = first..first.saturating_add(SPAN_BYTES).min(text.len());
    let new = written.to_be_bytes().into_iter().skip(16 - SPAN_BYTES);
    for (byte, new) in text.part_mut(there).iter_mut().zip(new) {
        *byte = new;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each bit of a string.
    fn bits(bytes: &[u8]) -> Vec<bool> {
        (0..len(bytes)).map(|bit| get(bytes, bit)).collect()
    }

    #[test]
    fn the_first_bit_is_the_highest_of_the_first_byte() {
        let mut text = Text::from(vec![0b1000_0001, 0b0100_0000]);
        let ones: Vec<u64> = (0..20).filter(|bit| get(&text, *bit)).collect();
        assert_eq!(ones, [0, 7, 9]);
        assert!(set(&mut text, 7, false) && !set(&mut text, 15, true));
        assert_eq!(*text, [0b1000_0000, 0b0100_0001]);
        assert!(!get(&text, u64::MAX) && !reaches(&text, 16));
        prefetch(&text, u64::MAX);
    }

    #[test]
    fn strings_grow_as_far_as_they_must() {
        for len in [0, 1, 100, 5000] {
            for byte in [0, 1, 99, 100, 112, 212, 12_500] {
                let mut text = Text::from(vec![7; len]);
                let grows = reach(&mut text, byte as u64 * 8 + 5).unwrap();
                let wanted = len.max(byte + 1);
                assert_eq!((grows, text.len()), (wanted > len, wanted));
                assert!(text[..len].iter().all(|byte| *byte == 7));
                assert!(text[len..].iter().all(|byte| *byte == 0));
            }
        }
    }

    proptest! {
        #[test]
        fn ranges_are_counted_and_searched_as_bit_by_bit(
            mut bytes in prop::collection::vec(prop::sample::select(vec![0, 255, 16, 254]), 0..60),
            (from, to) in (0_usize..500, 0_usize..500), fill: Option<u8>,
        ) {
            if let Some(fill) = fill {
                bytes.fill(if fill < 128 { 0 } else { 255 });
            }
            let all = bits(&bytes);
            let to = to.min(all.len());
            let from = from.min(to);
            let range = from as u64..to as u64;
            let ones = all[from..to].iter().filter(|bit| **bit).count();
            prop_assert_eq!(count(&bytes, range.clone()), ones as u64);
            for wanted in [false, true] {
                let first = all[from..to].iter().position(|bit| *bit == wanted);
                let first = first.map(|at| (from + at) as u64);
                prop_assert_eq!(position(&bytes, range.clone(), wanted), first);
            }
        }

        #[test]
        fn strings_are_joined_bit_by_bit(
            mut one in prop::collection::vec(any::<u8>(), 0..40),
            mut other in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            if one.len() < other.len() {
                std::mem::swap(&mut one, &mut other);
            }
            for (how, rule) in [
                (Junction::And, (|a, b| a && b) as fn(bool, bool) -> bool),
                (Junction::Or, |a, b| a || b),
                (Junction::Xor, |a, b| a != b),
            ] {
                let mut joined = one.clone();
                join(&mut joined, &other, how);
                for bit in 0..len(&one) {
                    let wanted = rule(get(&one, bit), get(&other, bit));
                    prop_assert_eq!(get(&joined, bit), wanted, "{:?} {}", how, bit);
                }
            }
            let mut inverted = one.clone();
            join(&mut inverted, &one, Junction::Not);
            prop_assert!((0..len(&one)).all(|bit| get(&one, bit) != get(&inverted, bit)));
        }

        #[test]
        fn numbers_are_read_and_written_bit_by_bit(
            bytes in prop::collection::vec(any::<u8>(), 0..20), offset in 0_u64..130,
            width in 1_u32..=64, number: u64,
        ) {
            let mut bytes = Text::from(bytes);
            let bit_by_bit = |bytes: &[u8]| {
                let bits = offset..offset + u64::from(width);
                bits.fold(0, |all, bit| all << 1 | u64::from(get(bytes, bit)))
            };
            prop_assert_eq!(read(&bytes, offset, width), bit_by_bit(&bytes));
            let end = offset + u64::from(width);
            reach(&mut bytes, end - 1).unwrap();
            let before = bits(&bytes);
            write(&mut bytes, offset, width, number);
            prop_assert_eq!(bit_by_bit(&bytes), number & mask(width));
            for (bit, old) in before.into_iter().enumerate() {
                let outside = !(offset..end).contains(&(bit as u64));
                prop_assert!(!outside || get(&bytes, bit as u64) == old);
            }
        }
    }
}
