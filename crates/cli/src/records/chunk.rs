//! A piece of the input that ends where a record ends, and what is known of its records.

use everbloom::hash::{DoubleHash, ItemHasher};
use everbloom::{Item, ItemHash};
use memchr::memchr_iter;

use super::case::Case;
use super::keys::KeyOf;

/// A piece of the input. It goes round: filled, digested, judged, written, filled again.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// The place of the bytes; `filled` of them are records.
    pub(crate) buffer: Vec<u8>,
    pub(crate) filled: usize,
    /// The header of a table, if it came before these records: it is printed, and not compared.
    pub(crate) header: Vec<u8>,
    /// Where each record ends, its end included.
    pub(crate) ends: Vec<usize>,
    /// The first record that has a key although it is empty. Those before lie in a table of CSV,
    /// where an empty line is no record.
    pub(crate) empty_from: usize,
    /// The records without a key, ascending. There is nothing about them in what follows.
    pub(crate) keyless: Vec<usize>,
    /// Those of them that lack the field. The others are empty lines of a table.
    pub(crate) lacking: Vec<usize>,
    /// The records in which a delimiter seems to lie within quotes.
    pub(crate) cut_quotes: u64,
    /// The hash of each key, for a filter in memory.
    pub(crate) hashes: Vec<DoubleHash>,
    /// Whether the key was in the chunk before, for a filter that outlives the run.
    pub(crate) again: Vec<bool>,
    /// All keys, one after the other, and where each ends, for a server.
    pub(crate) keys: Vec<u8>,
    pub(crate) key_ends: Vec<usize>,
}

impl Chunk {
    /// The keys, where they were asked for.
    pub(crate) fn each_key(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.key_ends.iter().map(move |&end| {
            let key = self.keys.get(start..end).unwrap_or_default();
            start = end;
            key
        })
    }

    /// Removes the first record.
    pub(super) fn drop_first(&mut self) {
        if self.ends.is_empty() {
            return;
        }
        let len = self.ends.remove(0);
        shift(&mut self.buffer, len, self.filled, 0);
        self.filled -= len;
        self.empty_from = self.empty_from.saturating_sub(1);
        self.ends.iter_mut().for_each(|end| *end -= len);
    }

    /// Moves the records to keep together, to the front. Returns their bytes and their number.
    pub(crate) fn compact(&mut self, keep: &[bool]) -> (usize, usize) {
        let (mut to, mut kept) = (0, 0);
        // The records from here on are to be kept, and not moved yet.
        let mut from = 0;
        let mut start = 0;
        for (&end, &keep) in self.ends.iter().zip(keep) {
            if keep {
                kept += 1;
            } else {
                to = shift(&mut self.buffer, from, start, to);
                from = end;
            }
            start = end;
        }
        (shift(&mut self.buffer, from, start, to), kept)
    }
}

/// What the memory needs to know of the keys.
#[derive(Clone, Debug)]
pub(crate) enum Digest {
    /// Hashes, and whether to look for repeats within the chunk.
    Hashes(ItemHash, bool),
    Keys,
    /// Only which records have no key.
    Count,
}

/// A hash as an item, for a filter with the same hasher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashed(pub(crate) DoubleHash);

impl Item for Hashed {
    #[inline]
    fn hash_with<H: ItemHasher>(&self, _: &H) -> DoubleHash {
        self.0
    }
}

/// Digests chunks, one at a time.
#[derive(Debug)]
pub(crate) struct Digester {
    pub(super) terminator: u8,
    pub(super) key_of: KeyOf,
    pub(super) case: Case,
    pub(super) digest: Digest,
    /// The hash table of the chunk's keys: 1 + the number of a hash, or 0.
    pub(super) table: Vec<u32>,
}

impl Digester {
    /// Finds the records of a chunk, their keys, and which of these are there twice.
    pub(crate) fn digest(&mut self, chunk: &mut Chunk) {
        let bytes = chunk.buffer.get(..chunk.filled).unwrap_or_default();
        // The reader has found the ends of records of CSV.
        if !matches!(self.key_of, KeyOf::Csv(_)) {
            chunk.ends.clear();
            chunk
                .ends
                .extend(memchr_iter(self.terminator, bytes).map(|at| at + 1));
        }
        chunk.keyless.clear();
        chunk.lacking.clear();
        chunk.hashes.clear();
        chunk.again.clear();
        chunk.keys.clear();
        chunk.key_ends.clear();

        let (hashes, keys, key_ends) = (&mut chunk.hashes, &mut chunk.keys, &mut chunk.key_ends);
        let keyless = (&mut chunk.keyless, &mut chunk.lacking);
        let records = || contents(bytes, &chunk.ends, self.terminator);
        chunk.cut_quotes = match self.key_of.may_misread_quotes() {
            true => {
                let cut = records().filter(|record| self.key_of.cuts_quotes(record));
                cut.count() as u64
            }
            false => 0,
        };
        let records = (records(), chunk.empty_from);
        let keys_of = (&mut self.key_of, self.case);
        match &self.digest {
            Digest::Hashes(hasher, _) => {
                each_key(records, keys_of, keyless, |key| {
                    hashes.push(hasher.hash(key));
                });
            }
            Digest::Count => each_key(records, keys_of, keyless, |_| ()),
            Digest::Keys => {
                each_key(records, keys_of, keyless, |key| {
                    keys.extend_from_slice(key);
                    key_ends.push(keys.len());
                });
            }
        }
        if matches!(self.digest, Digest::Hashes(_, true)) {
            self.mark_repeats(chunk);
        }
    }

    /// Open addressing, in a table that is at most half full.
    fn mark_repeats(&mut self, chunk: &mut Chunk) {
        let size = (chunk.hashes.len() * 2).next_power_of_two();
        self.table.clear();
        self.table.resize(size, 0);
        let mask = size - 1;
        for (number, hash) in (1..).zip(&chunk.hashes) {
            // Only the place in the table: the upper bits do not matter.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "any bits of the hash will do"
            )]
            let mut place = hash.a as usize & mask;
            let again = loop {
                let Some(slot) = self.table.get_mut(place) else {
                    break false;
                };
                if *slot == 0 {
                    *slot = number;
                    break false;
                }
                if chunk.hashes.get(*slot as usize - 1) == Some(hash) {
                    break true;
                }
                place = (place + 1) & mask;
            };
            chunk.again.push(again);
        }
    }
}

/// What counts of each record: its bytes without the end. The end of a line may be CRLF, as on
/// Windows; a record that ends with NUL is taken as it is.
#[inline]
pub(super) fn contents<'a>(
    bytes: &'a [u8],
    ends: &'a [usize],
    terminator: u8,
) -> impl Iterator<Item = &'a [u8]> {
    let are_lines = terminator == b'\n';
    let mut start = 0;
    let mut rest = bytes;
    ends.iter().map_while(move |&end| {
        let (record, after) = rest.split_at_checked(end - start)?;
        (rest, start) = (after, end);
        let (_, record) = record.split_last()?;
        Some(match record.split_last() {
            Some((b'\r', line)) if are_lines => line,
            _ => record,
        })
    })
}

/// Calls `take` with the key of each record that has one. An empty record before `empty_from` has
/// none, and lacks nothing.
#[inline]
fn each_key<'a>(
    (records, empty_from): (impl Iterator<Item = &'a [u8]>, usize),
    (key_of, case): (&mut KeyOf, Case),
    (keyless, lacking): (&mut Vec<usize>, &mut Vec<usize>),
    mut take: impl FnMut(&[u8]),
) {
    if matches!((&key_of, case), (KeyOf::Whole, Case::Kept)) {
        return records.for_each(take);
    }
    for (number, record) in records.enumerate() {
        let is_nothing = record.is_empty() && number < empty_from;
        match key_of.find(record, case).filter(|_| !is_nothing) {
            Some(key) => take(&key),
            None => {
                keyless.push(number);
                if !is_nothing {
                    lacking.push(number);
                }
            }
        }
    }
}

/// Moves a range of bytes towards the front. Returns where it ends there.
fn shift(bytes: &mut [u8], from: usize, end: usize, to: usize) -> usize {
    if from != to && from < end {
        bytes.copy_within(from..end, to);
    }
    to + (end - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_moves_together() {
        for (keep, expected) in [
            ([true; 4], "a\nbb\nccc\nd\n"),
            ([false; 4], ""),
            ([true, false, true, true], "a\nccc\nd\n"),
            ([false, true, false, true], "bb\nd\n"),
            ([true, true, true, false], "a\nbb\nccc\n"),
        ] {
            let mut chunk = Chunk {
                buffer: b"a\nbb\nccc\nd\n".to_vec(),
                ends: vec![2, 5, 9, 11],
                ..Chunk::default()
            };
            let (len, kept) = chunk.compact(&keep);
            assert_eq!(&chunk.buffer[..len], expected.as_bytes());
            assert_eq!(kept, keep.iter().filter(|keep| **keep).count());
        }
    }
}
