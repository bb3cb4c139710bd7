//! Waiting, but not for ever.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take that should happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
