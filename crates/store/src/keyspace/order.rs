//! The order in which keys are walked: by the bits of their hashes, the lowest bit first.
//!
//! A table looks for an entry from the bucket that the lowest bits of the hash name. It skips
//! entries whose seven highest bits, the tag, differ. So the entries of a narrow slice of this
//! order are found by looking for every tag from a few buckets, without visiting the others. The
//! order depends only on the hashes, however the table is rebuilt.

use std::ops::Range;

use hashbrown::HashTable;

use super::entry::Entry;

/// Bits of a position. The bits of a hash that name its shard are not among them.
pub(super) const POSITION_BITS: u32 = 40;
/// All positions are below this.
pub(super) const POSITIONS: u64 = 1 << POSITION_BITS;

/// Where the tag is in a hash.
const TAG_SHIFT: u32 = 64 - 7;
const TAGS: u64 = 1 << 7;

/// Looking for all tags from one bucket takes as long as visiting this many entries.
const ENTRIES_PER_BUCKET: u64 = 16;

/// The position of a hash in the order.
fn position(hash: u64) -> u64 {
    hash.reverse_bits() >> (64 - POSITION_BITS)
}

/// Calls `look` with every entry whose position is in the slice, once.
pub(super) fn slice(table: &HashTable<Box<Entry>>, slice: Range<u64>, look: impl FnMut(&Entry)) {
    match buckets(table.num_buckets(), table.len(), &slice) {
        Some((bits, buckets)) => from_buckets(table, &slice, bits, buckets, look),
        None => {
            let inside = |entry: &&Entry| slice.contains(&position(entry.hash));
            let entries = table.iter().map(|entry| &**entry);
            entries.filter(inside).for_each(look);
        }
    }
}

/// How many bits name a bucket, and the buckets to look from, with their bits reversed. `None` when
/// visiting all entries is faster.
fn buckets(buckets: usize, len: usize, slice: &Range<u64>) -> Option<(u32, Range<u64>)> {
    // Where a hash has 32 bits, the table takes tags from other bits.
    if cfg!(not(target_pointer_width = "64")) || slice.is_empty() {
        return None;
    }
    let bits = buckets.checked_ilog2()?;
    let shift = POSITION_BITS.checked_sub(bits)?;
    let named = slice.start >> shift..((slice.end - 1) >> shift) + 1;
    let cost = (named.end - named.start).saturating_mul(ENTRIES_PER_BUCKET);
    (cost < u64::try_from(len).ok()?).then_some((bits, named))
}

fn from_buckets(
    table: &HashTable<Box<Entry>>,
    slice: &Range<u64>,
    bits: u32,
    buckets: Range<u64>,
    mut look: impl FnMut(&Entry),
) {
    for bucket in buckets {
        let low = bucket.reverse_bits() >> (64 - bits);
        for tag in 0..TAGS {
            let found = table.iter_hash(tag << TAG_SHIFT | low);
            // The table may return other entries, too.
            let right = found.filter(|entry| {
                let at = position(entry.hash);
                entry.hash >> TAG_SHIFT == tag
                    && at >> (POSITION_BITS - bits) == bucket
                    && slice.contains(&at)
            });
            right.for_each(|entry| look(entry));
        }
    }
}

#[cfg(test)]
mod tests {
    use everbloom_files::Value;

    use super::super::key::KeyRef;
    use super::*;

    fn entry(hash: u64) -> Box<Entry> {
        let (db, name) = (0, &b""[..]);
        let key = KeyRef { db, name, hash };
        Box::new(Entry::new(key, Value::Text(Vec::new().into()), None, 0))
    }

    /// Well mixed hashes (splitmix64), of which the first four bits below the tag are the same, as
    /// in a shard.
    fn hash(number: u64) -> u64 {
        let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) & !(0xf << 53)
    }

    /// The slices together return every entry, each once and in its slice. The tables have all
    /// sizes, with and without the traces of removed entries.
    #[test]
    fn slices_hold_all_entries_once() {
        for (keys, removed) in [
            (0, 0),
            (1, 0),
            (9, 3),
            (40, 0),
            (500, 0),
            (3000, 0),
            (5000, 2500),
        ] {
            let mut table = HashTable::new();
            for number in 0..keys {
                table.insert_unique(hash(number), entry(hash(number)), |e| e.hash);
            }
            table.retain(|entry| (removed..keys).any(|number| hash(number) == entry.hash));
            for slices in [1, 2, 64, 512] {
                let width = POSITIONS / slices;
                let mut seen = Vec::new();
                for number in 0..slices {
                    let range = number * width..(number + 1) * width;
                    slice(&table, range.clone(), |entry| {
                        assert!(range.contains(&position(entry.hash)));
                        seen.push(entry.hash);
                    });
                }
                seen.sort_unstable();
                let mut expected: Vec<u64> = (removed..keys).map(hash).collect();
                expected.sort_unstable();
                assert_eq!(seen, expected, "{keys} keys in {slices} slices");
            }
        }
    }

    /// Slices that begin and end within a bucket's slice.
    #[test]
    fn any_slice_is_what_a_visit_of_all_entries_finds() {
        let mut table = HashTable::new();
        for number in 0..4000 {
            table.insert_unique(hash(number), entry(hash(number)), |e| e.hash);
        }
        for number in 0..500 {
            let from = position(hash(10_000 + number));
            let range = from..from.saturating_add(number << 22).min(POSITIONS);
            let mut seen = Vec::new();
            slice(&table, range.clone(), |entry| seen.push(entry.hash));
            let all = (0..4000).map(hash);
            let mut expected: Vec<u64> = all.filter(|h| range.contains(&position(*h))).collect();
            seen.sort_unstable();
            expected.sort_unstable();
            assert_eq!(seen, expected, "{range:?}");
        }
    }

    /// The number of entries looked at grows with the slice and not with the table.
    #[test]
    fn a_slice_costs_what_it_holds() {
        for keys in [100_usize, 3000, 100_000, 10_000_000] {
            let table = (keys * 8 / 7).next_power_of_two();
            for count in [10, 100, 1000] {
                let slices = (keys / count).max(1).next_power_of_two();
                let width = POSITIONS / slices as u64;
                let cost = match buckets(table, keys, &(0..width)) {
                    Some((_, buckets)) => (buckets.end - buckets.start) * ENTRIES_PER_BUCKET,
                    None => keys as u64,
                };
                let most = 64 * count as u64;
                assert!(cost <= most, "{keys} keys, COUNT {count}: {cost}");
            }
        }
    }
}
