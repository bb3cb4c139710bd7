//! The keys of a run: one, or several that the items are spread over.

use std::fmt;
use std::ops::Range;

use super::items;

/// `NAME`, or `NAME:0` to `NAME:9` for ten keys. All keys of a run have the same length, so that a
/// request can be patched: a hundred keys are `NAME:00` to `NAME:99`.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    name: String,
    count: u64,
    /// The digits at the end of each key. None when there is only one key.
    digits: usize,
}

impl Keys {
    pub(super) fn new(name: &str, count: u64) -> Self {
        let several = count > 1;
        Self {
            name: name.to_owned(),
            count,
            digits: if several {
                (count - 1).to_string().len()
            } else {
                0
            },
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn several(&self) -> bool {
        self.count > 1
    }

    pub(super) fn digits(&self) -> usize {
        self.digits
    }

    /// The key with this number.
    pub(super) fn key(&self, number: u64) -> Vec<u8> {
        let (name, digits) = (&self.name, self.digits);
        let key = if self.several() {
            format!("{name}:{number:0digits$}")
        } else {
            name.clone()
        };
        key.into_bytes()
    }

    /// The number of the key that holds the item with this number.
    pub(super) fn of_item(&self, item: u64) -> u64 {
        items::share(item, self.count)
    }

    /// All keys, this many at a time.
    pub(super) fn chunks(&self, size: u64) -> impl Iterator<Item = Vec<Vec<u8>>> {
        let starts = (0..self.count.div_ceil(size)).map(move |chunk| chunk * size);
        starts.map(move |start| {
            let chunk: Range<u64> = start..self.count.min(start + size);
            chunk.map(|number| self.key(number)).collect()
        })
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |number| String::from_utf8_lossy(&self.key(number)).into_owned();
        if self.several() {
            write!(
                f,
                "one of the keys {} to {}",
                shown(0),
                shown(self.count - 1)
            )
        } else {
            write!(f, "the key {}", self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_one_length() {
        for (count, first, last) in [
            (1, "k", "k"),
            (10, "k:0", "k:9"),
            (11, "k:00", "k:10"),
            (300_000, "k:000000", "k:299999"),
        ] {
            let keys = Keys::new("k", count);
            assert_eq!(keys.key(0), first.as_bytes());
            assert_eq!(keys.key(count - 1), last.as_bytes());
        }
        assert_eq!(Keys::new("k", 1).to_string(), "the key k");
        let several = "one of the keys k:0 to k:2";
        assert_eq!(Keys::new("k", 3).to_string(), several);
    }

    #[test]
    fn chunks_have_each_key_once() {
        for (count, sizes) in [(1, vec![1]), (4, vec![4]), (9, vec![4, 4, 1])] {
            let keys = Keys::new("k", count);
            let chunks: Vec<_> = keys.chunks(4).collect();
            assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
            let all: Vec<_> = (0..count).map(|number| keys.key(number)).collect();
            assert_eq!(chunks.concat(), all);
        }
    }
}
