//! What a command comes to: a reply, or work that leads to one.
//!
//! A worker runs each command to its end, while its other connections wait. So a command that must
//! copy or read megabytes returns [`Work`]. Its connection waits for a thread that does it, and the
//! worker serves the others. The result of the work is the reply, or the rest of the command, which
//! runs under the locks of its keys.

use std::fmt;
use std::time::{Duration, Instant};

use everbloom_commands::CommandError;
use everbloom_resp::Reply;

use crate::call::Call;
use crate::locked::Locked;

/// What a command comes to.
#[derive(Debug)]
pub enum Outcome {
    /// The reply.
    Reply(Reply),
    /// Work for another thread. Only the call of a connection that can [wait](Call::can_wait) comes
    /// to it.
    Work(Work),
}

impl Outcome {
    /// The reply to a call that cannot wait.
    pub fn into_reply(self) -> Reply {
        match self {
            Outcome::Reply(reply) => reply,
            Outcome::Work(_) => Reply::error("ERR the command has to wait"),
        }
    }
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
        Outcome::Reply(reply)
    }
}

impl From<Work> for Outcome {
    fn from(work: Work) -> Self {
        Outcome::Work(work)
    }
}

/// Work for another thread. Nothing is locked meanwhile.
pub struct Work {
    run: Run,
    /// How long the same command has worked before.
    took: Duration,
}

/// What is done, with the arguments of the request.
type Run = Box<dyn FnOnce(&[&[u8]]) -> Done + Send>;

/// The result of work.
pub enum Done {
    /// The reply.
    Reply(Reply),
    /// The reply, encoded.
    Encoded(Vec<u8>),
    /// The rest of the command.
    Rest(Rest),
}

/// The rest of a command whose work is done. It runs once, while the keys of the command are
/// locked. What it has is dropped behind the locks.
pub type Rest = Box<dyn FnMut(&Call<'_>, &mut Locked<'_>) -> Result<Outcome, Reply> + Send>;

/// Work that is done.
#[derive(Debug)]
pub struct Finished {
    /// Its result.
    pub done: Done,
    /// How long it took.
    pub took: Duration,
}

impl Work {
    /// Work on the arguments of the request.
    pub fn new(run: impl FnOnce(&[&[u8]]) -> Done + Send + 'static) -> Self {
        Work {
            run: Box::new(run),
            took: Duration::ZERO,
        }
    }

    /// Does the work of this request.
    pub fn run(self, request: &[&[u8]]) -> Finished {
        let begun = Instant::now();
        let done = (self.run)(request);
        Finished {
            done,
            took: self.took + begun.elapsed(),
        }
    }

    /// Refuses it: there is no memory to begin.
    pub fn refused(self) -> Finished {
        Finished {
            done: Done::Reply(CommandError::OutOfMemory.into()),
            took: self.took,
        }
    }

    /// The same work of a command that has worked for so long before.
    pub fn behind(self, took: Duration) -> Self {
        Work { took, ..self }
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("work")
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Done::Reply(reply) => reply.fmt(f),
            Done::Encoded(reply) => write!(f, "{} bytes", reply.len()),
            Done::Rest(_) => f.write_str("the rest of the command"),
        }
    }
}
