//! Slots that are a byte each, as in RedisBloom.

use core::ops::Range;

use smallvec::SmallVec;

use super::closed::are_closed;
use super::place::{Place, other};
use super::table::{Scheme, Table, Watch};

/// A slot is a byte.
pub(crate) struct Bytes;

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

    /// The fingerprint replaces another one in its first bucket, and that goes to its own other
    /// bucket, and so on, at most `max_kicks` times.
    #[cold]
    fn kick(
        table: &mut Table,
        place: Place,
        max_kicks: u16,
        watch: &mut Watch<'_>,
    ) -> Option<usize> {
        if table.used >= Self::capacity(table) {
            return None;
        }
        let mut in_hand = place.fingerprint;
        let mut bucket = Self::reduce(table, place.hash);
        let mut victim = 0;
        let mut trail = SmallVec::<[usize; 32]>::new();
        for _ in 0..max_kicks {
            let at = Self::slots(table, bucket).start + usize::from(victim);
            in_hand = table.exchange::<Self>(at, in_hand, watch);
            trail.push(at);
            bucket = Self::reduce(table, other(bucket, in_hand));
            if table.put::<Self>(bucket, in_hand, watch) {
                return Some(trail.len());
            }
            let two = [bucket, other(bucket, in_hand)];
            if are_closed::<Self>(table, two, trail.len()) {
                break;
            }
            victim = (victim + 1) % table.shape.bucket_size.max(1);
        }
        for at in trail.into_iter().rev() {
            in_hand = table.exchange::<Self>(at, in_hand, watch);
        }
        None
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

    fn used_in(table: &Table, part: &Range<usize>) -> u64 {
        let slots = table.slots.get(part.clone()).unwrap_or_default();
        slots.iter().filter(|slot| **slot != 0).count() as u64
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
