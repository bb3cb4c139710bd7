//! Waiting, but not for ever.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Asks until there is an answer. An answer that never comes fails with the last error.
pub fn wait_for_ok<T, E: Display>(what: &str, mut ask: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(error) => assert!(
                Instant::now() < deadline,
                "waited in vain for {what}: {error}"
            ),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sets a flag when it is dropped: threads that run until the flag is set end when the test fails,
/// too. Without it, a scope would wait for them for ever, and the failure would be a hang.
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
