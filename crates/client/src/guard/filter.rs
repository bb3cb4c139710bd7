//! The filter of a guard, on a server with BF.* commands.

use redis::Pipeline;

use crate::Error;
use crate::wire::{Wire, doors, read};

/// The types of Bloom filters: RedisBloom's and ours, in both layouts, and valkey-bloom's.
const BLOOM_TYPES: [&str; 3] = ["MBbloom--", "everbloom", "bloomfltr"];

/// A filter on a server with BF.* commands, for [`Source::may_exist`](crate::Source::may_exist). A
/// missing filter is an error here. `BF.EXISTS` answers 0 for a missing key: a guard would take
/// that for "does not exist", and would hide every row after `DEL`, `FLUSHALL`, an eviction, or
/// when the connection has another database.
///
/// ```
/// use everbloom_client::{Error, ServerFilter};
/// use redis::TypedCommands;
/// # let server = everbloom_server::Settings { port: 0, ..Default::default() };
/// # let server = everbloom_server::Server::start(server)?;
/// # let address = format!("redis://{}", server.addr().unwrap());
/// let mut connection = redis::Client::open(address)?.get_connection()?;
/// let filter = ServerFilter::new("goods");
/// let missing = filter.contains(&mut connection, "17");
/// assert!(matches!(missing, Err(Error::NotFound { .. })));
/// assert!(filter.add(&mut connection, "17").is_err(), "and it is not made by an item");
///
/// connection.bf_reserve("goods", 0.01, 1000)?;
/// filter.add(&mut connection, "17")?;
/// assert!(filter.contains(&mut connection, "17")?);
/// assert!(!filter.contains(&mut connection, "18")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFilter {
    key: String,
}

impl ServerFilter {
    /// The filter of this key. Nothing is sent yet. [Example](Self).
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        ServerFilter { key: key.into() }
    }

    doors! { [Send]
        /// Whether an item may be in the filter: `false` is certain. It takes one round trip.
        /// [Example](Self).
        ///
        /// # Errors
        ///
        /// [`Error::NotFound`] when the filter is missing; those of the connection and of the
        /// server.
        contains, contains_async(&self, item: impl AsRef<[u8]>) -> Result<bool, Error> = look_up;

        /// Adds an item, and returns whether it was new. A missing filter is not made: it would
        /// have this item only, and hide all others. [Example](Self).
        ///
        /// # Errors
        ///
        /// [`Error::NotFound`] when the filter is missing; those of the connection and of the
        /// server.
        add, add_async(&self, item: impl AsRef<[u8]>) -> Result<bool, Error> = insert;
    }

    async fn look_up<W: Wire>(&self, wire: &mut W, item: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut pipeline = self.begun();
        pipeline.cmd("BF.EXISTS").arg(&self.key).arg(item.as_ref());
        self.answer(wire, &pipeline).await
    }

    async fn insert<W: Wire>(&self, wire: &mut W, item: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut pipeline = self.begun();
        let insert = pipeline.cmd("BF.INSERT").arg(&self.key).arg("NOCREATE");
        insert.arg("ITEMS").arg(item.as_ref());
        self.answer(wire, &pipeline).await
    }

    /// A transaction, so that the key cannot disappear between its two commands. `TYPE` says
    /// whether it exists, and also whether it is a Bloom filter: `BF.EXISTS` answers 0 for a key of
    /// another type, too.
    fn begun(&self) -> Pipeline {
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors().atomic();
        pipeline.cmd("TYPE").arg(&self.key);
        pipeline
    }

    async fn answer<W: Wire>(&self, wire: &mut W, pipeline: &Pipeline) -> Result<bool, Error> {
        let replies = wire.ask(pipeline).await;
        let mut replies = replies
            .map_err(|error| Error::of(error, &self.key))?
            .into_iter();
        let mut next = || {
            let reply = replies.next();
            let reply = reply.ok_or_else(|| Error::Reply("a reply is missing".into()))?;
            reply.map_err(|error| Error::of(error, &self.key))
        };
        let (kind, answer) = (next()?, next());
        let name = self.key.clone();
        match read::<String>(Some(&kind))?.as_str() {
            "none" => {
                let key = self.key.clone();
                return Err(Error::NotFound { name, key });
            }
            kind if !BLOOM_TYPES.contains(&kind) => {
                let message = format!("{kind} is not a Bloom filter");
                return Err(Error::WrongType { name, message });
            }
            _ => {}
        }
        match answer? {
            // The reply to an insertion has an answer for each item.
            redis::Value::Array(answers) => match answers.as_slice() {
                [redis::Value::ServerError(error)] => {
                    Err(Error::of(error.clone().into(), &self.key))
                }
                answers => read(answers.first()),
            },
            answer => read(Some(&answer)),
        }
    }
}
