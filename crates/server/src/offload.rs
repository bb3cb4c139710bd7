//! Long work, offloaded to another thread before its command runs.
//!
//! A worker runs each command to its end, while its other connections wait. So a command that must
//! copy or read megabytes offloads that first ([`Offload::request`]) and returns. Its connection
//! waits for a thread, and the worker serves the others. Then the command runs again, and finds the
//! result here.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use everbloom_files::{Text, Value};
use everbloom_resp::Reply;
use everbloom_store::reader::Reader;

/// Work on more bytes than this is offloaded.
pub const MIN_OFFLOADED_BYTES: usize = 1 << 20;

/// Work for another thread. It gets the arguments of the request.
pub type Work = Box<dyn FnOnce(&[&[u8]]) -> Done + Send>;

/// The result of the work.
#[derive(Debug)]
pub enum Done {
    /// None: the command does everything itself.
    Nothing,
    /// The reply, encoded.
    Encoded(Vec<u8>),
    /// The reply.
    Reply(Reply),
    /// A copy of a string, until it is taken, and the reader that has the later changes.
    Copied(Option<Text>, Reader),
    /// A value made from the arguments, or their refusal, until it is taken.
    Made(Option<Result<Value, Reply>>),
}

/// The offloaded work of the next command of a connection.
#[derive(Default)]
pub struct Offload(RefCell<State>);

#[derive(Default)]
enum State {
    /// No connection can wait: the command comes from the log.
    #[default]
    Disabled,
    Idle,
    Requested(Work),
    Done(Done, Duration),
}

impl Offload {
    /// From now on, commands may offload work.
    pub fn enable(&self) {
        self.0.replace(State::Idle);
    }

    /// Offloads work; the caller then returns. False if no connection can wait, or the work was
    /// offloaded before.
    pub fn request(&self, work: impl FnOnce() -> Work) -> bool {
        let mut state = self.0.borrow_mut();
        let can = matches!(*state, State::Idle);
        if can {
            *state = State::Requested(work());
        }
        can
    }

    /// Whether the command that was just run has offloaded work.
    #[inline]
    pub fn is_requested(&self) -> bool {
        matches!(*self.0.borrow(), State::Requested(_))
    }

    /// Takes the work, to run it.
    pub fn take_work(&self) -> Option<Work> {
        match self.0.replace(State::Idle) {
            State::Requested(work) => Some(work),
            other => {
                self.0.replace(other);
                None
            }
        }
    }

    /// Stores the result of the work, and how long it took.
    pub fn set_done(&self, done: Done, took: Duration) {
        self.0.replace(State::Done(done, took));
    }

    /// The reply, if that is the result: the command need not run.
    #[inline]
    pub fn take_reply(&self) -> Option<Done> {
        let mut state = self.0.borrow_mut();
        match &*state {
            State::Done(Done::Encoded(_) | Done::Reply(_), _) => {
                match std::mem::replace(&mut *state, State::Idle) {
                    State::Done(done, _) => Some(done),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Extracts a value from the result of the running command's work.
    pub fn find<R>(&self, find: impl FnOnce(&mut Done) -> Option<R>) -> Option<R> {
        match &mut *self.0.borrow_mut() {
            State::Done(done, _) => find(done),
            _ => None,
        }
    }

    /// How long the work of the running command took.
    #[inline]
    pub fn took(&self) -> Duration {
        match &*self.0.borrow() {
            State::Done(_, took) => *took,
            _ => Duration::ZERO,
        }
    }

    /// Drops the result, once the command has run. No shard may be locked.
    #[inline]
    pub fn forget(&self) {
        if matches!(*self.0.borrow(), State::Done(..)) {
            // Dropped after the cell is released.
            let _done = self.0.replace(State::Idle);
        }
    }
}

impl fmt::Debug for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.0.borrow() {
            State::Disabled => "disabled",
            State::Idle => "idle",
            State::Requested(_) => "requested",
            State::Done(..) => "done",
        })
    }
}
