//! Work that takes long, done on a thread of its own before its command is run.
//!
//! A worker runs each command to its end, and the other connections of the worker wait. So a
//! command that must copy or read megabytes asks for that to be done first ([`Ahead::ask`]) and
//! does nothing. Its connection waits for a thread, and the worker serves the others. Then the
//! command is run once more, and finds here what was done.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use everbloom_files::Value;
use everbloom_resp::Reply;
use everbloom_store::steps::Watching;

/// What takes this many bytes takes long.
pub const LONG: usize = 1 << 20;

/// Work for another thread. It gets the arguments of the request.
pub type Work = Box<dyn FnOnce(&[&[u8]]) -> Done + Send>;

/// What was done.
#[derive(Debug)]
pub enum Done {
    /// Nothing: the command does all by itself.
    Nothing,
    /// The reply, encoded.
    Encoded(Vec<u8>),
    /// The reply.
    Reply(Reply),
    /// A copy of a value, until it is taken. It is good while its key is as it was.
    Copied(Option<Value>, Watching),
    /// A value made of the arguments, or their refusal, until it is taken.
    Made(Option<Result<Value, Reply>>),
}

/// What is known of work for the next command of a connection.
#[derive(Default)]
pub struct Ahead(RefCell<State>);

#[derive(Default)]
enum State {
    /// Nobody can wait: no connection, but the log, gives the commands.
    #[default]
    Off,
    Ready,
    Asked(Work),
    Done(Done, Duration),
}

impl Ahead {
    /// From now on, a command may ask.
    pub fn enable(&self) {
        self.0.replace(State::Ready);
    }

    /// Asks for work to be done. The caller does nothing, unless this says false: nobody can wait,
    /// or the work was asked for before.
    pub fn ask(&self, work: impl FnOnce() -> Work) -> bool {
        let mut state = self.0.borrow_mut();
        let can = matches!(*state, State::Ready);
        if can {
            *state = State::Asked(work());
        }
        can
    }

    /// Whether the command that was just run asked.
    #[inline]
    pub fn is_asked(&self) -> bool {
        matches!(*self.0.borrow(), State::Asked(_))
    }

    /// The work that was asked for.
    pub fn take_work(&self) -> Option<Work> {
        match self.0.replace(State::Ready) {
            State::Asked(work) => Some(work),
            other => {
                self.0.replace(other);
                None
            }
        }
    }

    /// Hands over what was done, and how long that took.
    pub fn set_done(&self, done: Done, took: Duration) {
        self.0.replace(State::Done(done, took));
    }

    /// The reply, if that was made, which leaves nothing more to be done.
    #[inline]
    pub fn take_reply(&self) -> Option<Done> {
        let mut state = self.0.borrow_mut();
        match &*state {
            State::Done(Done::Encoded(_) | Done::Reply(_), _) => {
                match std::mem::replace(&mut *state, State::Ready) {
                    State::Done(done, _) => Some(done),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Looks for something in what was done for the command that is being run.
    pub fn find<R>(&self, find: impl FnOnce(&mut Done) -> Option<R>) -> Option<R> {
        match &mut *self.0.borrow_mut() {
            State::Done(done, _) => find(done),
            _ => None,
        }
    }

    /// How long the work took that was done for the command that runs now.
    #[inline]
    pub fn took(&self) -> Duration {
        match &*self.0.borrow() {
            State::Done(_, took) => *took,
            _ => Duration::ZERO,
        }
    }

    /// Forgets what was done for a command that has run. No shard may be locked.
    #[inline]
    pub fn forget(&self) {
        if matches!(*self.0.borrow(), State::Done(..)) {
            // Dropped when the cell is free again.
            let _done = self.0.replace(State::Ready);
        }
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.0.borrow() {
            State::Off => "off",
            State::Ready => "ready",
            State::Asked(_) => "asked",
            State::Done(..) => "done",
        })
    }
}
