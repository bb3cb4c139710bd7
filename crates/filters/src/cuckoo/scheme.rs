//! How the fingerprints of a table are kept: a byte each as in RedisBloom, or packed.

use core::ops::Range;

use super::place::Place;
use super::table::{Table, Watch};

/// One way of keeping fingerprints in slots. Slots are numbered through the table, 0 is an empty
/// one. A bucket may be given before it is reduced to the number of buckets.
pub(super) trait Scheme {
    /// Both buckets of a place, and its fingerprint in this table.
    fn home(table: &Table, place: Place) -> ([u64; 2], u64);

    /// The number of a bucket.
    fn reduce(table: &Table, bucket: u64) -> u64;

    /// The slots of a bucket.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a reduced bucket's slots lie in the table, which is in memory"
    )]
    fn slots(table: &Table, bucket: u64) -> Range<usize> {
        let size = usize::from(table.shape.bucket_size);
        let start = Self::reduce(table, bucket) as usize * size;
        start..start + size
    }

    /// The most slots in use.
    fn capacity(table: &Table) -> u64;

    /// Whether one of both buckets of a place has its fingerprint.
    fn contains(table: &Table, place: Place) -> bool;

    /// Puts the fingerprint of a place into a slot that it frees by moving others. False when it
    /// found no empty slot; then everything is as it was.
    fn kick(table: &mut Table, place: Place, max_kicks: u16, watch: &mut Watch<'_>) -> bool;

    /// The first slot from this one on that is not empty, and a place that has its fingerprint and
    /// its buckets, in this table and in all older ones.
    fn next_used(table: &Table, from: usize) -> Option<(usize, Place)>;

    /// The first slot of a bucket with this in it.
    fn find(table: &Table, bucket: u64, value: u64) -> Option<usize>;

    /// What is in a slot.
    fn get(table: &Table, at: usize) -> u64;

    /// Puts a value into a slot.
    fn set(table: &mut Table, at: usize, value: u64);

    /// The bytes in which a slot lies.
    fn bytes(table: &Table, at: usize) -> Range<usize>;
}

/// A slot is a byte.
pub(super) struct Bytes;

impl Scheme for Bytes {
    #[inline]
    fn home(_: &Table, place: Place) -> ([u64; 2], u64) {
        (place.buckets(), place.fingerprint)
    }

    #[inline]
    fn reduce(table: &Table, bucket: u64) -> u64 {
        let buckets = table.shape.buckets;
        // Filters made here have a power of two of buckets.
        if buckets.is_power_of_two() {
            bucket & (buckets.get() - 1)
        } else {
            bucket % buckets
        }
    }

    #[inline]
    fn capacity(table: &Table) -> u64 {
        table.bytes()
    }

    #[inline]
    fn contains(table: &Table, place: Place) -> bool {
        let fingerprint = byte(place.fingerprint);
        let has = |bucket| {
            let slots = table.slots.get(Self::slots(table, bucket));
            let slots = slots.unwrap_or_default().iter();
            slots.fold(false, |found, slot| found | (*slot == fingerprint))
        };
        let [first, second] = place.buckets();
        has(first) | has(second)
    }

    fn kick(table: &mut Table, place: Place, max_kicks: u16, watch: &mut Watch<'_>) -> bool {
        table.kick_along(place, max_kicks, watch)
    }

    fn next_used(table: &Table, from: usize) -> Option<(usize, Place)> {
        let rest = table.slots.get(from..)?;
        let (next, fingerprint) = rest.iter().enumerate().find(|(_, slot)| **slot != 0)?;
        let at = from + next;
        let place = Place {
            hash: at as u64 / u64::from(table.shape.bucket_size.max(1)),
            fingerprint: u64::from(*fingerprint),
        };
        Some((at, place))
    }

    #[inline]
    fn find(table: &Table, bucket: u64, value: u64) -> Option<usize> {
        let mut slots = Self::slots(table, bucket);
        slots.find(|at| table.slots.get(*at) == Some(&byte(value)))
    }

    #[inline]
    fn get(table: &Table, at: usize) -> u64 {
        table.slots.get(at).copied().unwrap_or_default().into()
    }

    #[inline]
    fn set(table: &mut Table, at: usize, value: u64) {
        if let Some(slot) = table.slots.get_mut(at) {
            *slot = byte(value);
        }
    }

    #[inline]
    fn bytes(_: &Table, at: usize) -> Range<usize> {
        at..at + 1
    }
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "fingerprints are bytes here"
)]
fn byte(fingerprint: u64) -> u8 {
    fingerprint as u8
}
