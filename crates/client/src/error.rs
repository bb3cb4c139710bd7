//! Errors of filters on a server.

use redis::{ErrorKind, RedisError, ServerError, ServerErrorKind};

use crate::name::NameError;

/// Why a filter cannot be created, opened or queried. The messages are sentences for people.
///
/// ```
/// use everbloom_client::{BitmapFilter, Error};
/// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
/// # let address = format!("redis://{}", server.addr);
/// # let mut connection = redis::Client::open(address)?.get_connection()?;
/// BitmapFilter::create(&mut connection, "seen", 1000, 0.01)?;
/// let other = BitmapFilter::create(&mut connection, "seen", 5000, 0.01);
/// assert!(matches!(other, Err(Error::OtherParameters { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No filter has such a capacity and error rate.
    #[error("no filter has a capacity of {capacity} and an error rate of {error_rate}")]
    Size {
        /// The requested capacity.
        capacity: u64,
        /// The requested error rate.
        error_rate: f64,
    },
    /// The number of bits, hashes, keys or shards is invalid.
    #[error("{0}")]
    Shape(&'static str),
    /// The filter name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is no such filter.
    #[error("there is no filter {name:?}: the key {key:?} is missing")]
    NotFound {
        /// The filter.
        name: String,
        /// The key that would hold its parameters.
        key: String,
    },
    /// Another program created the filter with other parameters.
    #[error("the filter {name:?} was made as `{found}`, and this program wants `{wanted}`")]
    OtherParameters {
        /// The filter.
        name: String,
        /// The parameters of this program.
        wanted: String,
        /// The parameters on the server.
        found: String,
    },
    /// The parameters on the server have a later version, or are not parameters of such a filter.
    #[error("the key {key:?} does not hold parameters that this version reads: {found:?}")]
    Unreadable {
        /// The key.
        key: String,
        /// The value of the key.
        found: String,
    },
    /// One part of a filter exists and another is missing, or not whole: it was lost, and an item has
    /// made it again. A program that used the rest would treat
    /// known items as new.
    #[error(
        "of the filter {name:?} the key {present:?} is there, and {missing:?} is not, or not whole"
    )]
    Incomplete {
        /// The filter.
        name: String,
        /// A key that exists.
        present: String,
        /// A key that is missing, or not whole.
        missing: String,
    },
    /// Keys of a spread filter are missing: a node without persistence was restarted, say, or a key
    /// was evicted. [`SpreadFilter::restore`](crate::SpreadFilter::restore) makes them again.
    #[error("the filter {name:?} has lost {keys:?}, and the items in them: restore it")]
    MissingKeys {
        /// The filter.
        name: String,
        /// The keys that a call has found missing.
        keys: Vec<String>,
    },
    /// Items were added, but [too few replicas](crate::SpreadFilter::with_replicas) have them yet.
    #[error("{reached} of {wanted} replicas have what was added")]
    Replicas {
        /// How many have it.
        reached: u32,
        /// How many must have it.
        wanted: u32,
    },
    /// A key of the filter holds a value of another type.
    #[error("a key of the filter {name:?} holds a value of another type: {message}")]
    WrongType {
        /// The filter.
        name: String,
        /// The server's message.
        message: String,
    },
    /// The server is a replica, or refuses writes for another reason. Look-ups still work.
    #[error("the server takes no writes: {0}")]
    ReadOnly(#[source] RedisError),
    /// The key is on another node of a cluster. A client of a cluster returns this while a slot
    /// moves, and finds the node at one of its next calls. Another client never finds it.
    #[error(
        "the key is on the node {node:?} of a cluster: call again, over a client of the cluster"
    )]
    Moved {
        /// Where the server said that the key is.
        node: String,
    },
    /// The server did not answer in time. It may or may not have executed the command.
    #[error("the server did not answer in time")]
    TimedOut(#[source] RedisError),
    /// There is no connection, or it broke. The server may or may not have executed the command.
    #[error("the connection to the server is lost: {0}")]
    Lost(#[source] RedisError),
    /// Any other error of the server or of the connection.
    #[error("the server refused: {0}")]
    Server(#[source] RedisError),
    /// The server's reply does not fit the command.
    #[error("the server's reply makes no sense here: {0}")]
    Reply(String),
}

impl Error {
    /// Whether the same call may succeed a little later, on a new connection if this one is lost.
    /// A retry never harms: an item is added once or twice with the same bits. While slots of a
    /// cluster move or a node fails over, calls fail with such errors.
    ///
    /// ```
    /// use everbloom_client::Error;
    /// assert!(!Error::Shape("a filter needs at least one hash").is_temporary());
    /// ```
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::TimedOut(_)
            | Error::Lost(_)
            | Error::ReadOnly(_)
            | Error::Moved { .. }
            | Error::Replicas { .. } => true,
            Error::Server(error) => match error.kind() {
                ErrorKind::ClusterConnectionNotFound => true,
                // A cluster's blocking client has reached no node.
                ErrorKind::Client => error.to_string().contains("Slot refresh error"),
                _ => first_of(error).is_some_and(|error| passes(&error)),
            },
            _ => false,
        }
    }

    /// Converts an error of the connection.
    pub(crate) fn of(error: RedisError, name: &str) -> Error {
        if error.is_timeout() {
            return Error::TimedOut(error);
        }
        if error.is_io_error() {
            return Error::Lost(error);
        }
        let Some(first) = first_of(&error) else {
            return Error::Server(error);
        };
        match first.kind() {
            Some(ServerErrorKind::Moved | ServerErrorKind::Ask) => {
                let node = first.details().and_then(|slot| slot.split(' ').nth(1));
                let node = node.unwrap_or_default().to_owned();
                Error::Moved { node }
            }
            Some(ServerErrorKind::ReadOnly) => Error::ReadOnly(error),
            _ if is_wrong_type(&first) => Error::WrongType {
                name: name.to_owned(),
                message: first.to_string(),
            },
            _ => Error::Server(error),
        }
    }
}

/// The first error of the server. Those of a pipeline or a transaction come in one.
pub(crate) fn first_of(error: &RedisError) -> Option<ServerError> {
    let errors = error.clone().into_server_errors()?;
    errors.first().map(|(_, first)| first.clone())
}

/// Whether an error of the server passes by itself.
fn passes(error: &ServerError) -> bool {
    match error.kind() {
        Some(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown,
        ) => true,
        // A WAIT that a failover ended, and a primary without its replicas.
        _ => matches!(error.code(), "UNBLOCKED" | "NOREPLICAS"),
    }
}

fn is_wrong_type(error: &ServerError) -> bool {
    // RedisBloom's own text has no code.
    error.code() == "WRONGTYPE"
        || error
            .details()
            .is_some_and(|text| text.contains("WRONGTYPE"))
}

/// Why some items of a batch have no answer, and the answers so far.
///
/// An item without an answer may have been added or not. A retry is safe: at worst it reports an
/// item as seen that this batch added.
///
/// ```
/// use everbloom_client::{BatchError, Error};
/// let lost = BatchError {
///     answers: vec![Some(true), None],
///     error: Error::Reply("none".into()),
/// };
/// assert_eq!(lost.unknown().collect::<Vec<_>>(), [1]);
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error("{} of {} items have no answer: {error}", self.unknown().count(), self.answers.len())]
pub struct BatchError {
    /// One answer per item, in the order of the items; `None` where it is unknown.
    pub answers: Vec<Option<bool>>,
    /// The first error.
    #[source]
    pub error: Error,
}

impl BatchError {
    /// The indices of the items without an answer. [Example](Self).
    pub fn unknown(&self) -> impl Iterator<Item = usize> {
        let answers = self.answers.iter().enumerate();
        answers.filter_map(|(place, answer)| answer.is_none().then_some(place))
    }
}

impl From<BatchError> for Error {
    fn from(batch: BatchError) -> Error {
        batch.error
    }
}
