//! Running the commands of a log again. The store knows no command: its host does.

use thiserror::Error;

/// Why a command could not be run again.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// There is none of this name.
    #[error(
        "unknown command '{0}' (to leave such commands out, start with --rdb-unknown-values skip)"
    )]
    Unknown(String),
    /// It has too many arguments, or too few.
    #[error("wrong number of arguments for '{0}'")]
    Arity(&'static str),
    /// It selects a database that is not there.
    #[error("it selects a database beyond the {0} that the setting `databases` gives")]
    Database(usize),
}

/// Runs commands one after the other, as a client with all rights would.
pub trait Replay {
    /// Begins a file: in database 0, and with no command answered with an error yet.
    fn begin(&mut self);

    /// Runs a command. An error that it answers is counted only, for Redis does not look at it.
    ///
    /// # Errors
    ///
    /// It could not be run.
    fn run(&mut self, args: &[&[u8]]) -> Result<(), ReplayError>;

    /// How many commands were answered with an error, and the first of them with its answer.
    fn refusals(&self) -> Option<(u64, &str)>;
}
