//! Frees removed values on a separate thread.
//!
//! Freeing millions of small values, or one of gigabytes, takes longer than clients may wait. The
//! thread starts at the first use and ends with its keyspace.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;

use everbloom::host::memory;

use crate::limits::BACKGROUND_BYTES;
use crate::machine::{Machine, System};
use crate::pace::Pace;

/// After this many bytes in this many values were freed, unused memory goes back to the system. The
/// allocator would keep it, and what one thread has freed may not serve another.
const PURGED_BYTES: usize = 64 << 20;
const PURGED_VALUES: usize = 1000;

/// The channel to the thread; `None` inside when it could not be started.
#[derive(Debug, Default)]
pub(super) struct Release(OnceLock<Option<Sender<Work>>>);

/// A value to free with pauses, because the workers' allocations wait for the thread that frees.
type Work = Box<dyn FnOnce() + Send>;

impl Release {
    /// Whether the thread had anything to do.
    #[cfg(test)]
    pub(super) fn is_started(&self) -> bool {
        self.0.get().is_some()
    }

    /// Frees values of about this many bytes, one after the other. The caller should hold no lock.
    pub(super) fn free(&self, removed: impl IntoIterator + Send + 'static, bytes: usize) {
        if bytes < BACKGROUND_BYTES.get() {
            return;
        }
        if let Some(thread) = self.0.get_or_init(start) {
            // If the thread has ended, the error holds the values, and they are freed here.
            drop(thread.send(Box::new(move || {
                let machine: Arc<dyn Machine> = Arc::new(System::default());
                let pace = Pace::new(&machine);
                let mut freed = 0;
                for one in removed {
                    drop(one);
                    freed += 1;
                    pace.rest();
                }
                if bytes >= PURGED_BYTES && freed >= PURGED_VALUES {
                    memory::purge();
                }
            })));
        }
    }
}

fn start() -> Option<Sender<Work>> {
    let (sender, works) = mpsc::channel::<Work>();
    let thread = thread::Builder::new().name("release".into());
    let started = thread.spawn(move || works.into_iter().for_each(|work| work()));
    started.ok().map(|_| sender)
}

#[cfg(test)]
mod tests {
    use std::thread::ThreadId;

    use super::*;

    /// Reports which thread frees it.
    struct Witness(Sender<ThreadId>);

    impl Drop for Witness {
        fn drop(&mut self) {
            self.0.send(thread::current().id()).unwrap();
        }
    }

    #[test]
    fn much_is_freed_by_a_thread_of_its_own() {
        let (sender, freed_by) = mpsc::channel();
        let (release, here) = (Release::default(), thread::current().id());
        release.free(
            vec![Witness(sender.clone())],
            BACKGROUND_BYTES.ordinary() - 1,
        );
        assert_eq!(freed_by.try_recv(), Ok(here));
        release.free(vec![Witness(sender.clone())], BACKGROUND_BYTES.ordinary());
        let other = freed_by.recv().unwrap();
        assert_ne!(other, here);
        release.free(vec![Witness(sender)], usize::MAX);
        assert_eq!(freed_by.recv(), Ok(other));
    }
}
