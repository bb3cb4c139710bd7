//! Keys whose filters must stay as they are while another filter is made of them.
//!
//! A filter that is made of large ones is of no use if these change meanwhile. So in the end their
//! keys are held: who adds to one of them waits until the filter is there. All others go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// A database and a key in it.
type HeldKey = (usize, Vec<u8>);

/// All keys that are held.
#[derive(Debug, Default)]
pub struct Holds {
    count: AtomicUsize,
    keys: Mutex<Vec<HeldKey>>,
}

impl Holds {
    /// Whether any key is held.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Whether this key is held.
    pub fn has(&self, db: usize, key: &[u8]) -> bool {
        let is_key = |held: &HeldKey| held.0 == db && held.1 == key;
        self.any() && self.keys.lock().iter().any(is_key)
    }
}

/// Keys that are held until it is dropped.
#[derive(Debug)]
pub struct Hold {
    all: Arc<Holds>,
    keys: Vec<HeldKey>,
}

impl Hold {
    /// Holds keys.
    pub fn new(all: &Arc<Holds>, keys: Vec<HeldKey>) -> Self {
        let mut held = all.keys.lock();
        held.extend_from_slice(&keys);
        all.count.store(held.len(), Ordering::Relaxed);
        Hold {
            all: Arc::clone(all),
            keys,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.all.keys.lock();
        for key in &self.keys {
            if let Some(at) = held.iter().position(|it| it == key) {
                held.swap_remove(at);
            }
        }
        self.all.count.store(held.len(), Ordering::Relaxed);
    }
}
