//! What the store needs of its machine besides the disk: the time, threads, and a secret.
//!
//! [`Persistence::on_machine`](crate::persistence::Persistence::on_machine) gets the disk and the machine together.
//! Tests replace both.

use std::cell::RefCell;
use std::fmt::Debug;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use foldhash::quality::SeedableRandomState;

use crate::clock::Now;
use crate::limits::LOCKS_WITHOUT_PAUSE;

/// Work for a thread of its own.
pub type Work = Box<dyn FnOnce() + Send>;

/// The time, threads, and a secret.
pub trait Machine: Send + Sync + Debug {
    /// The time.
    fn now(&self) -> Now;

    /// The time since some moment. Unlike [`Machine::now`], it never goes back.
    fn uptime(&self) -> Duration;

    /// The secret by which this process hashes its keys.
    fn key_hasher(&self) -> SeedableRandomState;

    /// Starts a thread.
    fn start(&self, name: &str, work: Work) -> io::Result<Box<dyn Running>>;

    /// Pauses this thread. The caller holds no lock.
    fn sleep(&self, time: Duration);
}

/// A thread that was started.
pub trait Running: Send + Debug {
    /// Returns once the thread has ended; false if it has panicked.
    fn join(self: Box<Self>) -> bool;
}

/// A pause that a thread makes.
type Pause = Box<dyn FnOnce()>;

thread_local! {
    static BEFORE_NEXT_LOCK: RefCell<Option<Pause>> = const { RefCell::new(None) };
}

/// Lets this thread pause before it next locks the keys of a command, where it holds no lock. Only
/// a simulation does that, which then lets other threads go on.
pub fn before_next_lock(pause: impl FnOnce() + 'static) {
    BEFORE_NEXT_LOCK.set(Some(Box::new(pause)));
}

/// Pauses if this thread is to. It is nothing in a program, where the limit is a constant.
#[inline]
pub(crate) fn pause_before_lock() {
    if LOCKS_WITHOUT_PAUSE.get() == 0
        && let Some(pause) = BEFORE_NEXT_LOCK.take()
    {
        pause();
    }
}

/// The machine that this process runs on.
#[derive(Debug)]
pub struct System {
    began: Instant,
}

impl Default for System {
    fn default() -> Self {
        let began = Instant::now();
        System { began }
    }
}

impl Machine for System {
    fn now(&self) -> Now {
        Now::read()
    }

    fn uptime(&self) -> Duration {
        self.began.elapsed()
    }

    fn key_hasher(&self) -> SeedableRandomState {
        SeedableRandomState::random()
    }

    fn start(&self, name: &str, work: Work) -> io::Result<Box<dyn Running>> {
        let thread = thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(Box::new(thread))
    }

    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }
}

impl Running for JoinHandle<()> {
    fn join(self: Box<Self>) -> bool {
        JoinHandle::join(*self).is_ok()
    }
}
