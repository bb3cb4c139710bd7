//! Keys whose filters must stay as they are while another filter is made of them.
//!
//! A filter that is made of large ones is of no use if these change meanwhile. So in the end their
//! keys are held: who adds to one of them waits until the filter is there. All others go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::server::Server;

/// How often somebody waits for a key, and how long at a time.
const MAX_WAITS: usize = 2000;
const WAIT: Duration = Duration::from_millis(2);

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
    server: Arc<Server>,
    keys: Vec<HeldKey>,
}

impl Hold {
    /// Holds keys.
    pub fn new(server: &Arc<Server>, keys: Vec<HeldKey>) -> Self {
        let mut held = server.holds.keys.lock();
        held.extend_from_slice(&keys);
        server.holds.count.store(held.len(), Ordering::Relaxed);
        Hold {
            server: Arc::clone(server),
            keys,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.server.holds.keys.lock();
        for key in &self.keys {
            if let Some(at) = held.iter().position(|it| it == key) {
                held.swap_remove(at);
            }
        }
        self.server.holds.count.store(held.len(), Ordering::Relaxed);
    }
}

/// Waits until a key is held no more, on a thread that may wait. Not for ever: then the key changes,
/// and the filter is made under the locks.
pub fn wait(server: &Server, db: usize, key: &[u8]) {
    for _ in 0..MAX_WAITS {
        if !server.holds.has(db, key) || server.is_stopping() {
            return;
        }
        server.store.machine.sleep(WAIT);
    }
}
