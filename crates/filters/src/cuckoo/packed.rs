//! Tables with packed slots, in filters with a chosen error rate.
//!
//! ```text
//! bucket    0                             1                of 4 slots, here of 10 bits
//! slot      0      1      2      3        4      5
//! bits      0..10  10..20 20..30 30..40   40..50 50..60    least significant bit of byte 0 first
//! ```
//!
//! The first bucket of an item is its hash, reduced to the number of buckets by multiplication
//! (Lemire, "Fast random integer generation in an interval", 2019). The other one is what is
//! missing to an odd number that follows from the fingerprint, modulo the number of buckets. So the
//! two lead to each other. The number of buckets is even and else any, so a table has the size that
//! is needed; and of the two buckets of a fingerprint one is even and the other odd.
//!
//! A later table has longer fingerprints, and 2^s times the buckets. Two items that share their
//! fingerprint and buckets there share them in all older tables, too: a fingerprint begins with that
//! of the first table, and the upper bits of a bucket's number are its number there. The other
//! bucket has in its lower s bits those of the first one, exclusive or others that follow from the
//! fingerprint. So it does not matter whose fingerprint a removal takes, as long as it takes the
//! longest: what is left serves the other item. And a fingerprint can move to an older table.

use core::num::NonZeroU8;
use core::ops::Range;

use smallvec::SmallVec;

use super::place::Place;
use super::shape::Packing;
use super::table::{Scheme, Table, Watch};
use crate::hash::split_mix;

/// Slots of a bucket.
pub(crate) const BUCKET_SIZE: u8 = 4;

/// The most fingerprints that are moved to free a slot for one.
pub(super) const MAX_KICKS: u16 = 500;

/// The least and the most bits of a slot. A slot of up to 57 bits lies within 8 bytes, wherever it
/// begins.
pub(crate) const WIDTHS: core::ops::RangeInclusive<u8> = 7..=56;

/// The fewest buckets that take so many items. An even number, so that a table is whole bytes
/// whatever the width.
pub(super) fn buckets_for(items: u64) -> Option<u64> {
    // 19 of 20 slots are used. Of small filters with 8 slots more, one in 1000 had to grow before; with
    // 24 more, none of 200 000.
    let slots = items.checked_add(items.div_ceil(19))?.checked_add(24)?;
    Some((slots / 4).next_multiple_of(2).max(2))
}

/// Slots of a number of bits, which lie without gaps.
pub(crate) struct Packed;

impl Scheme for Packed {
    #[inline]
    fn home(table: &Table, place: Place) -> ([u64; 2], u64) {
        let packing = packing(table);
        let number = product(place.fingerprint, packing.first_fingerprints());
        let fingerprint = high(number << packing.more) + (1 << packing.more);
        let first = scaled(place.hash, table.buckets());
        ([first, other(table, first, fingerprint)], fingerprint)
    }

    #[inline]
    fn reduce(_: &Table, bucket: u64) -> u64 {
        bucket
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the slots lie in the table, which is in memory"
    )]
    fn slots(_: &Table, bucket: u64) -> Range<usize> {
        let (start, size) = (bucket as usize, usize::from(BUCKET_SIZE));
        start * size..(start + 1) * size
    }

    #[inline]
    fn capacity(table: &Table) -> u64 {
        table.shape.capacity()
    }

    #[inline]
    fn contains(table: &Table, place: Place) -> bool {
        let ([first, second], fingerprint) = Self::home(table, place);
        let has = |bucket| {
            let [one, two] = matches(table, bucket, fingerprint);
            one | two
        };
        has(first) | has(second) != 0
    }

    /// As few as possible are moved.
    #[cold]
    fn kick(table: &mut Table, place: Place, _: u16, watch: &mut Watch<'_>) -> Option<usize> {
        if table.used >= Self::capacity(table) {
            return None;
        }
        let (buckets, fingerprint) = Self::home(table, place);
        let path = Path::shortest(table, buckets)?;
        let moved = path.slots.len();
        // From the end, where the slot is empty, so that no fingerprint is ever missing.
        let mut free = path.end;
        for at in path.slots {
            let moved = Self::get(table, at);
            table.exchange::<Self>(free, moved, watch);
            free = at;
        }
        table.fill::<Self>(free, fingerprint, watch);
        Some(moved)
    }

    fn next_used(table: &Table, from: usize) -> Option<(usize, Place)> {
        let at = Self::first_used(table, from)?;
        let packing = packing(table);
        // Only slots from outside have less.
        let number = Self::get(table, at).saturating_sub(1 << packing.more);
        let bucket = at as u64 / u64::from(BUCKET_SIZE);
        // The least numbers from which they follow.
        let hash = (u128::from(bucket) << 64).div_ceil(table.buckets().into());
        let number = u128::from(number) << (64 - packing.more);
        let place = Place {
            hash: low(hash),
            fingerprint: low(number.div_ceil(packing.first_fingerprints().into())),
        };
        Some((at, place))
    }

    #[inline]
    fn find(table: &Table, bucket: u64, value: u64) -> Option<usize> {
        let [one, two] = matches(table, bucket, value);
        let (before, found) = if one != 0 { (0, one) } else { (2, two) };
        // The first of two slots has its bit among the lower ones.
        let second = usize::from(u64::from(found.trailing_zeros()) >= bits(table));
        (found != 0).then(|| Self::slots(table, bucket).start + before + second)
    }

    #[inline]
    fn get(table: &Table, at: usize) -> u64 {
        word(&table.slots, at as u64 * bits(table)) & mask(table)
    }

    #[inline]
    fn set(table: &mut Table, at: usize, value: u64) {
        let (bit, mask) = (at as u64 * bits(table), mask(table));
        let Some(rest) = table.slots.get_mut(byte_of(bit)..) else {
            return;
        };
        let old = u64::from_le_bytes(read(rest, 0));
        let new = old & !(mask << (bit % 8)) | value << (bit % 8);
        for (byte, new) in rest.iter_mut().zip(new.to_le_bytes()) {
            *byte = new;
        }
    }

    #[inline]
    fn bytes(table: &Table, at: usize) -> Range<usize> {
        let start = at as u64 * bits(table);
        byte_of(start)..byte_of(start + bits(table) + 7)
    }

    fn used_in(table: &Table, part: &Range<usize>) -> u64 {
        let width = bits(table);
        let (start, end) = (part.start as u64 * 8, part.end as u64 * 8);
        let slots = (start / width..end.div_ceil(width)).map(|at| word(&table.slots, at * width));
        slots.filter(|slot| slot & mask(table) != 0).count() as u64
    }
}

impl Packed {
    /// The first slot from this one on that is not empty. Passes over zeros in steps of 8 bytes, as
    /// a table may have few fingerprints.
    fn first_used(table: &Table, from: usize) -> Option<usize> {
        let width = usize::from(packing(table).width.get());
        let mut at = from;
        loop {
            #[cfg(test)]
            super::table::LOOKED.set(super::table::LOOKED.get() + 1);
            let start = at * width / 8;
            let rest = table.slots.get(start..)?;
            let zeros = rest.chunks_exact(8).take_while(|chunk| **chunk == [0; 8]);
            let zeros = 8 * zeros.count();
            let byte = rest.iter().skip(zeros).position(|byte| *byte != 0)? + zeros + start;
            // The slots of which a bit lies in the byte; the first may be one before `from`.
            let end = (8 * byte + 8).div_ceil(width);
            let mut slots = at.max(8 * byte / width)..end;
            if let Some(used) = slots.find(|slot| Self::get(table, *slot) != 0) {
                return Some(used);
            }
            at = end;
        }
    }
}

/// The other bucket of a fingerprint that is in this one.
#[inline]
fn other(table: &Table, bucket: u64, fingerprint: u64) -> u64 {
    let Packing { more, shift, .. } = packing(table);
    let sum = scaled(split_mix(fingerprint >> more, 0), table.buckets());
    let (buckets, bucket_of_first) = (table.buckets() >> shift, bucket >> shift);
    let sum_of_first = (sum >> shift) | 1;
    // There are fewer than 2^56 buckets.
    let missing = match sum_of_first.checked_sub(bucket_of_first) {
        Some(missing) => missing,
        None => sum_of_first + buckets - bucket_of_first,
    };
    missing << shift | (sum ^ bucket) & ((1 << shift) - 1)
}

/// The shortest way from two full buckets to an empty slot: each fingerprint moves to the slot of
/// the one before it.
struct Path {
    /// The empty slot.
    end: usize,
    /// The fingerprints to move, the one that goes to the empty slot first.
    slots: SmallVec<[usize; 8]>,
}

impl Path {
    /// Searches the buckets that can be reached from these two, the nearest first, and gives up
    /// after a number of them.
    ///
    /// A shortest path goes through no bucket twice, so that no move changes what a later one moves.
    fn shortest(table: &Table, two: [u64; 2]) -> Option<Path> {
        let mut reached = SmallVec::<[u64; 64]>::from_slice(&two);
        let mut number = 0;
        loop {
            let bucket = *reached.get(number)?;
            let fingerprints = fingerprints(table, bucket);
            for (slot, fingerprint) in fingerprints.into_iter().enumerate() {
                let next = other(table, bucket, fingerprint);
                if let Some(end) = Packed::find(table, next, 0) {
                    let reached_as = 2 + number * fingerprints.len() + slot;
                    let slots = Path::back(table, &reached, reached_as);
                    return Some(Path { end, slots });
                }
                if reached.len() < usize::from(MAX_KICKS) {
                    reached.push(next);
                }
            }
            number += 1;
        }
    }

    /// The slots through which a bucket was reached, the last one first.
    fn back(table: &Table, reached: &[u64], mut number: usize) -> SmallVec<[usize; 8]> {
        let mut slots = SmallVec::new();
        while let Some(child) = number.checked_sub(2) {
            let size = usize::from(BUCKET_SIZE);
            number = child / size;
            let bucket = reached.get(number).copied().unwrap_or_default();
            slots.push(Packed::slots(table, bucket).start + child % size);
        }
        slots
    }
}

/// Which slots of a bucket have this value: two numbers, for two slots each. The lowest bit that is
/// 1 is of the first such slot: within its lower `width` bits, or the `width` bits above them.
///
/// In the difference to the value, such a slot is 0. Subtracting 1 borrows from the highest bit of a
/// 0 (Mycroft's test); a wrong bit can follow only above a right one.
#[inline(always)]
fn matches(table: &Table, bucket: u64, value: u64) -> [u64; 2] {
    let width = bits(table);
    let start = bucket * u64::from(BUCKET_SIZE) * width;
    // 8 bytes hold two slots of up to 28 bits, wherever they begin.
    if width <= 28 {
        let ones = 1 | 1 << width;
        let highest = ones << (width - 1);
        return [start, start + 2 * width].map(|bit| {
            let difference = word(&table.slots, bit) ^ (value * ones);
            difference.wrapping_sub(ones) & !difference & highest
        });
    }
    let [a, b, c, d] = fingerprints(table, bucket).map(|slot| u64::from(slot == value));
    [a | b << width, c | d << width]
}

/// What is in the slots of a bucket.
#[inline]
fn fingerprints(table: &Table, bucket: u64) -> [u64; BUCKET_SIZE as usize] {
    let start = Packed::slots(table, bucket).start;
    [0, 1, 2, 3].map(|slot| Packed::get(table, start + slot))
}

/// At least 57 bits from this one on.
#[inline(always)]
fn word(bytes: &[u8], bit: u64) -> u64 {
    u64::from_le_bytes(read(bytes, byte_of(bit))) >> (bit % 8)
}

/// The byte in which a bit lies.
#[inline(always)]
fn byte_of(bit: u64) -> usize {
    (bit / 8) as usize
}

/// 8 bytes from here on, and zeros where the array ends.
#[inline(always)]
fn read(bytes: &[u8], at: usize) -> [u8; 8] {
    let rest = bytes.get(at..);
    match rest.and_then(<[u8]>::first_chunk) {
        Some(chunk) => *chunk,
        None => padded(rest.unwrap_or_default()),
    }
}

#[cold]
fn padded(bytes: &[u8]) -> [u8; 8] {
    let mut out = [0; 8];
    for (out, byte) in out.iter_mut().zip(bytes) {
        *out = *byte;
    }
    out
}

#[inline]
fn bits(table: &Table) -> u64 {
    packing(table).width.get().into()
}

/// A slot whose bits are all 1.
#[inline]
fn mask(table: &Table) -> u64 {
    (1 << bits(table)) - 1
}

#[inline]
fn packing(table: &Table) -> Packing {
    /// Of a table that is not packed; nobody asks.
    const BYTES: Packing = Packing {
        width: NonZeroU8::new(8).unwrap(),
        more: 0,
        shift: 0,
    };
    table.shape.packing.unwrap_or(BYTES)
}

/// Maps an evenly spread number to one below `end`, by its high bits.
#[inline]
fn scaled(number: u64, end: u64) -> u64 {
    high(product(number, end))
}

#[inline]
fn product(x: u64, y: u64) -> u128 {
    u128::from(x) * u128::from(y)
}

#[inline]
fn high(x: u128) -> u64 {
    (x >> 64) as u64
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower half is asked for"
)]
fn low(x: u128) -> u64 {
    x as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cuckoo::CuckooFilter;
    use crate::layer::capture::Capture;

    proptest! {
        /// A slot tells the fingerprint and the buckets of its item in its own table and in all
        /// older ones, whichever of its two buckets it is in.
        #[test]
        fn a_slot_tells_the_place_in_older_tables(
            hash: u64, fingerprint: u64, capacity in 1..100_u64, is_second: bool,
            rate in prop::sample::select(alloc::vec![0.5, 0.01, 1e-4, 1e-9]),
            expansion in prop::sample::select(alloc::vec![1, 2, 8_u16]),
        ) {
            let builder = CuckooFilter::builder().capacity(capacity).error_rate(rate).seed(1);
            let mut parts = builder.expansion(expansion).parts().unwrap();
            parts.tables = 4;
            let mut filter = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
            let place = Place { hash, fingerprint };
            for number in 0..4 {
                let (older, rest) = filter.tables.split_at_mut(number);
                let table = &mut rest[0];
                let (buckets, fingerprint) = Packed::home(table, place);
                prop_assert_ne!(buckets[0], buckets[1]);
                prop_assert_eq!(other(table, buckets[1], fingerprint), buckets[0]);
                let at = Packed::slots(table, buckets[usize::from(is_second)]).start + 2;
                Packed::set(table, at, fingerprint);
                prop_assert_eq!(Packed::find(table, buckets[usize::from(is_second)], fingerprint), Some(at));
                let (found, told) = Packed::next_used(table, 0).unwrap();
                prop_assert_eq!(found, at);
                for table in older.iter().chain([&*table]) {
                    let (mut own, mut others) = (Packed::home(table, place), Packed::home(table, told));
                    own.0.sort_unstable();
                    others.0.sort_unstable();
                    prop_assert_eq!(own, others);
                }
            }
        }

        /// In each of four slots, of every width.
        #[test]
        fn a_slot_holds_what_was_put_there(
            slots: [u64; 8], value: u64, rate in prop::sample::select(alloc::vec![0.5, 1e-2, 1e-5, 1e-8, 1e-9]),
            number in 0..10_usize,
        ) {
            let builder = CuckooFilter::builder().capacity(1).error_rate(rate).seed(1);
            let mut parts = builder.expansion(1).parts().unwrap();
            (parts.tables, parts.buckets) = (10, 2);
            let mut filter = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
            let table = &mut filter.tables[number];
            let slots = slots.map(|slot| slot % 3 * (slot & mask(table)) / 2);
            for (at, slot) in slots.into_iter().enumerate() {
                Packed::set(table, at, slot);
            }
            prop_assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|at| Packed::get(table, at)), slots);
            for bucket in 0..2 {
                let four = &slots[4 * bucket..][..4];
                prop_assert_eq!(&fingerprints(table, bucket as u64), four);
                for value in four.iter().copied().chain([0, value & mask(table)]) {
                    let at = four.iter().position(|slot| *slot == value).map(|at| 4 * bucket + at);
                    prop_assert_eq!(Packed::find(table, bucket as u64, value), at);
                }
            }
            for from in 0..9 {
                let next = (from..8).find(|at| slots[*at] != 0);
                prop_assert_eq!(Packed::next_used(table, from).map(|(at, _)| at), next);
            }
            let used = slots.iter().filter(|slot| **slot != 0).count() as u64;
            prop_assert_eq!(Packed::used_in(table, &(0..table.slots.len())), used);
        }
    }

    /// A search gives up when the buckets that it can reach are full.
    #[test]
    fn a_search_among_full_buckets_ends() {
        let parts = CuckooFilter::builder()
            .capacity(30)
            .error_rate(0.01)
            .seed(1)
            .parts();
        let mut filter = CuckooFilter::from_parts(&parts.unwrap(), u64::MAX).unwrap();
        let table = &mut filter.tables[0];
        for at in 0..usize::try_from(table.len()).unwrap() {
            Packed::set(table, at, 1 + at as u64);
        }
        assert!(Path::shortest(table, [0, 1]).is_none());
        // One empty slot is found from everywhere, and everything stays.
        Packed::set(table, 5, 0);
        table.used = 0;
        let (capture, number) = (&mut Capture::default(), 0);
        let place = Place {
            hash: u64::MAX,
            fingerprint: u64::MAX,
        };
        let watch = &mut Watch { capture, number };
        assert!(Packed::kick(table, place, MAX_KICKS, watch).is_some());
        let mut found = (0..table.slots.len() * 8 / 10)
            .map(|at| Packed::get(table, at))
            .collect::<alloc::vec::Vec<_>>();
        found.sort_unstable();
        let mut expected: alloc::vec::Vec<u64> = (1..=found.len() as u64)
            .filter(|it| *it != 6)
            .chain([1023])
            .collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
