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
    /// One part of a filter exists and another is missing. A program that used the rest would treat
    /// known items as new.
    #[error("of the filter {name:?} the key {present:?} is there, and {missing:?} is missing")]
    Incomplete {
        /// The filter.
        name: String,
        /// A key that exists.
        present: String,
        /// A key that is missing.
        missing: String,
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
    /// The key is on another node of a cluster, and the connection does not follow redirections. A
    /// cluster client may also return this while a slot moves; its next call finds the node.
    #[error("the key is on the node {node:?} of a cluster: use a cluster's client")]
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
    /// A retry never harms: an item is added once or twice with the same bits.
    ///
    /// ```
    /// use everbloom_client::Error;
    /// assert!(!Error::Shape("a filter needs at least one hash").is_temporary());
    /// ```
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::TimedOut(_) | Error::Lost(_) | Error::ReadOnly(_) => true,
            Error::Server(error) => matches!(
                error.kind(),
                ErrorKind::ClusterConnectionNotFound
                    | ErrorKind::Server(
                        ServerErrorKind::BusyLoading
                            | ServerErrorKind::TryAgain
                            | ServerErrorKind::ClusterDown
                            | ServerErrorKind::MasterDown
                    )
            ),
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
        if let Some((node, _)) = error.redirect_node() {
            return Error::Moved { node: node.into() };
        }
        // The errors of a transaction come in one, of which the first is meant.
        let errors = error.clone().into_server_errors().unwrap_or_default();
        match errors.first() {
            Some((_, first)) if first.kind() == Some(ServerErrorKind::ReadOnly) => {
                Error::ReadOnly(error)
            }
            Some((_, first)) if is_wrong_type(first) => Error::WrongType {
                name: name.to_owned(),
                message: first.to_string(),
            },
            _ => Error::Server(error),
        }
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
