//! Runs the commands of a log again. The store knows no commands; its host does.

use everbloom_resp::Batch;
use thiserror::Error;

/// Why a command could not be run again.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The command is unknown.
    #[error(
        "unknown command '{0}' (to leave such commands out, start with --rdb-unknown-values skip)"
    )]
    Unknown(String),
    /// The word is unknown, and is all that the command has. Nobody writes a command of another
    /// server without arguments to an AOF, so it cannot be left out.
    #[error("unknown command '{0}', without arguments")]
    UnknownWord(String),
    /// It has too many arguments, or too few.
    #[error("wrong number of arguments for '{0}'")]
    Arity(&'static str),
    /// There is no memory for what it makes.
    #[error("there is no memory to run '{0}'")]
    OutOfMemory(&'static str),
    /// It selects a database that does not exist.
    #[error("it selects a database beyond the {0} that the setting `databases` gives")]
    Database(usize),
}

/// Runs commands one after the other, with the rights of an unrestricted client.
pub trait Replay {
    /// Begins a file: in database 0, and with no command answered with an error yet.
    fn begin(&mut self);

    /// Whether the command is known, and can have as many arguments as it has.
    ///
    /// # Errors
    ///
    /// The command could not be run.
    fn check(&self, args: &[&[u8]]) -> Result<(), ReplayError>;

    /// Runs a command. If it replies with an error, that is only counted, because Redis ignores it.
    ///
    /// # Errors
    ///
    /// The command could not be run.
    fn run(&mut self, args: &[&[u8]]) -> Result<(), ReplayError>;

    /// Runs the commands of a batch from number `first` on; `args` are the arguments of all.
    ///
    /// # Errors
    ///
    /// A command could not be run: its number, and why. Those before it have run.
    fn run_batch(
        &mut self,
        batch: &Batch,
        args: &[&[u8]],
        first: usize,
    ) -> Result<(), (usize, ReplayError)>;

    /// How many commands replied with an error, and the first of them with its reply.
    fn refusals(&self) -> Option<(u64, &str)>;
}
