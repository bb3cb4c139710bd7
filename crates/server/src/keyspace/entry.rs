//! A key with its value, its expiry and the time of its last access.

use std::sync::atomic::{AtomicU32, Ordering};

use everbloom::ScalableBloomFilter;

/// What a key can hold.
#[derive(Debug, Clone)]
pub enum Value {
    /// A string of bytes.
    Text(Vec<u8>),
    /// A Bloom filter.
    Filter(Box<ScalableBloomFilter>),
}

impl Value {
    /// The name that `TYPE` answers.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Text(_) => "string",
            Value::Filter(_) => "MBbloom--",
        }
    }

    /// Heap bytes of the value.
    pub fn memory(&self) -> usize {
        match self {
            Value::Text(text) => text.capacity(),
            Value::Filter(filter) => filter.memory_usage(),
        }
    }
}

/// One key of one database.
#[derive(Debug)]
pub struct Entry {
    key: Box<[u8]>,
    /// The value.
    pub value: Value,
    /// Unix time in milliseconds from which the key is gone.
    pub expires_at: Option<u64>,
    accessed: AtomicU32,
    /// The number of the last snapshot that has kept this entry, or is older than it.
    pub(super) epoch: u32,
}

impl Entry {
    /// A key made now; `clock` is the server's clock in seconds.
    pub fn new(key: &[u8], value: Value, expires_at: Option<u64>, clock: u32) -> Self {
        Entry {
            key: key.into(),
            value,
            expires_at,
            accessed: AtomicU32::new(clock),
            epoch: 0,
        }
    }

    /// The key's name.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Whether the key is gone at `now`, milliseconds of Unix time.
    #[inline]
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Notes an access at `clock`, seconds of the server's clock.
    #[inline]
    pub fn access(&self, clock: u32) {
        self.accessed.store(clock, Ordering::Relaxed);
    }

    /// When the key was accessed last, in seconds of the server's clock.
    pub fn accessed(&self) -> u32 {
        self.accessed.load(Ordering::Relaxed)
    }

    /// Bytes of the entry, its key and its value.
    pub fn memory(&self) -> usize {
        size_of::<Entry>() + self.key.len() + self.value.memory()
    }
}
