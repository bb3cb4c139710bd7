//! A key with its value, its expiry and the time of its last access.

use std::sync::atomic::{AtomicU32, Ordering};

use everbloom_files::Value;
use everbloom_resp::is_same_word;
use smallvec::SmallVec;

use super::key::KeyRef;

/// No expiry.
const NEVER: u64 = u64::MAX;

/// One key of one database. A key of usual length and a small filter are stored inline, without
/// allocations.
#[derive(Debug)]
pub struct Entry {
    /// The keyspace's hash of the key.
    pub(super) hash: u64,
    key: SmallVec<[u8; 16]>,
    /// The value.
    pub value: Value,
    /// Unix time in milliseconds at which the key expires.
    expires_at: u64,
    accessed: AtomicU32,
    /// The number of the last snapshot that kept this entry or began before it was created.
    pub(super) epoch: u32,
}

impl Entry {
    /// Creates an entry; `clock` is the server's clock in seconds.
    pub fn new(key: KeyRef<'_>, value: Value, expires_at: Option<u64>, clock: u32) -> Self {
        Entry {
            hash: key.hash,
            key: SmallVec::from_slice(key.name),
            value,
            expires_at: expires_at.unwrap_or(NEVER),
            accessed: AtomicU32::new(clock),
            epoch: 0,
        }
    }

    /// The key's name.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Whether this is the entry of the key of this name, which has this hash.
    #[inline]
    pub(super) fn is(&self, hash: u64, name: &[u8]) -> bool {
        self.hash == hash && is_same_word(self.key(), name)
    }

    /// Whether its value has this reader.
    pub(super) fn is_read_by(&self, reader: u64) -> bool {
        self.value.capture().ids().any(|id| id == reader)
    }

    /// Whether the key has expired at `now`, milliseconds of Unix time.
    #[inline]
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires_at <= now
    }

    /// Unix time in milliseconds at which the key expires, if it has an expiry.
    #[inline]
    pub fn expires_at(&self) -> Option<u64> {
        (self.expires_at != NEVER).then_some(self.expires_at)
    }

    /// Sets or clears the expiry.
    pub(super) fn set_expires_at(&mut self, at: Option<u64>) {
        self.expires_at = at.unwrap_or(NEVER);
    }

    /// Records an access at `clock`, seconds of the server's clock.
    #[inline]
    pub fn access(&self, clock: u32) {
        self.accessed.store(clock, Ordering::Relaxed);
    }

    /// The time of the last access, in seconds of the server's clock.
    pub fn accessed(&self) -> u32 {
        self.accessed.load(Ordering::Relaxed)
    }

    /// Bytes of the entry, its key and its value.
    pub fn memory(&self) -> usize {
        self.memory_of_key() + self.value.memory()
    }

    /// The same without what the value takes beside the entry.
    #[inline]
    pub(super) fn memory_of_key(&self) -> usize {
        let key = if self.key.spilled() {
            self.key.capacity()
        } else {
            0
        };
        size_of::<Entry>() + key
    }
}

/// What a writing command finds under a key.
#[derive(Debug)]
pub enum ValueSlot<'v> {
    /// The value.
    Held(&'v mut Value),
    /// No value. If the command puts one here, the key is created.
    Vacant(&'v mut Option<Value>),
}

#[cfg(test)]
mod tests {
    use everbloom::Layout;
    use everbloom::host::LayeredFilter;

    use super::*;

    #[test]
    fn a_small_filter_is_one_allocation() {
        let mut filter = LayeredFilter::builder()
            .layout(Layout::Classic)
            .build()
            .unwrap();
        filter.insert("item");
        let key = KeyRef {
            db: 0,
            name: b"twelve bytes",
            hash: 0,
        };
        let entry = Entry::new(key, Value::Filter(filter.into()), None, 0);
        assert_eq!(entry.memory(), size_of::<Entry>());
        // With its slot in a half-empty table and the allocator's word it takes under 200 bytes.
        assert!(size_of::<Entry>() <= 136, "{}", size_of::<Entry>());
    }

    /// In the blocked layout, a filter for a hundred items, however many are in it.
    #[test]
    fn a_small_blocked_filter_is_small() {
        let builder = LayeredFilter::builder().layout(Layout::Blocked).seed(1);
        let mut filter = builder.build().unwrap();
        filter.extend(0..100);
        assert_eq!(filter.layers().len(), 1);
        let key = KeyRef {
            db: 0,
            name: b"twelve bytes",
            hash: 0,
        };
        let entry = Entry::new(key, Value::Filter(filter.into()), None, 0);
        assert!(entry.memory() <= 400, "{}", entry.memory());
    }
}
