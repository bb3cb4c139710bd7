//! One filter in many keys, which a cluster spreads over its nodes.

mod parameters;
mod round;
mod shards;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use crate::wire::{Action, SideBySide, doors};
use crate::{BatchError, Error};
pub use parameters::SpreadParameters;
use round::Operation;
use shards::{Shards, Wait};

/// One Bloom filter over many `BF` filters, the shards: `{name:0}`, `{name:1}`, ... Use it for a
/// filter that is too large or too busy for one node.
///
/// A hash that the server's filters do not use assigns each item to one shard. So an item takes one
/// round trip to one node, and the error rate is that of a single filter. A batch is split by
/// shard; async connections send the parts in parallel.
///
/// A full shard grows by a further filter of twice the capacity, `{name:0}:1` and so on. Programs
/// need no coordination: every size follows from the parameters, which are in `{name}:parameters`.
/// `{name:0}:generations` records which filters the shard has, and a program reads it with each
/// look-up.
///
/// Every key must survive: give each node persistence or replicas, and set `maxmemory-policy
/// noeviction`. When a key is missing, calls that need it fail with [`Error::MissingKeys`], in all
/// programs, until [`restore`](Self::restore) makes it again. What was in it is lost, but nothing
/// that is added later.
///
/// The server needs the `BF` commands: everbloom, its module, RedisBloom, or valkey-bloom.
///
/// ```
/// use everbloom_client::SpreadFilter;
/// # let any_port = everbloom_server::Settings { port: 0, ..Default::default() };
/// # let server = everbloom_server::Server::start(any_port)?;
/// # let address = format!("redis://{}", server.addr().unwrap());
/// let mut connection = redis::Client::open(address)?.get_connection()?;
/// let seen = SpreadFilter::create(&mut connection, "seen", 1_000_000, 0.01, 16)?;
/// assert!(seen.add(&mut connection, "https://a.example/")?);
/// let urls = ["https://a.example/", "https://b.example/"];
/// assert_eq!(seen.add_all(&mut connection, &urls)?, [false, true]);
/// assert_eq!(seen.contains_all(&mut connection, &urls)?, [true, true]);
/// assert_eq!(seen.count(&mut connection)?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpreadFilter {
    shards: Arc<Shards>,
    wait: Wait,
}

impl SpreadFilter {
    doors! { [Clone]
        /// Opens the filter of this name, or creates it if it does not exist. [Example](Self).
        ///
        /// # Errors
        ///
        /// [`Error::OtherParameters`] when another program created it with other parameters,
        /// [`Error::MissingKeys`] when it has lost keys, and others of the connection.
        create, create_async(name: &str, capacity: u64, error_rate: f64, shards: u32)
            -> Result<Self, Error> = make;

        /// Opens the filter of this name, with any dimensions.
        ///
        /// ```
        /// use everbloom_client::{Error, SpreadFilter};
        /// # let any_port = everbloom_server::Settings { port: 0, ..Default::default() };
        /// # let server = everbloom_server::Server::start(any_port)?;
        /// # let address = format!("redis://{}", server.addr().unwrap());
        /// # let mut connection = redis::Client::open(address)?.get_connection()?;
        /// let missing = SpreadFilter::open(&mut connection, "seen");
        /// assert!(matches!(missing, Err(Error::NotFound { .. })));
        /// SpreadFilter::create(&mut connection, "seen", 1000, 0.01, 4)?;
        /// assert_eq!(SpreadFilter::open(&mut connection, "seen")?.parameters().shards(), 4);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Error::NotFound`] when it does not exist, [`Error::MissingKeys`] when it has lost keys,
        /// and others of the connection.
        open, open_async(name: &str) -> Result<Self, Error> = find;

        /// Makes the keys again that the filter has lost, and returns their names. The items in
        /// them are lost: add again what you still have. If nothing is missing, it opens the
        /// filter; if the filter does not exist, it creates it.
        ///
        /// Use the returned filter from then on. An older one that knows of more than the server
        /// has keeps to its [`Error::MissingKeys`].
        ///
        /// ```
        /// use everbloom_client::{Error, SpreadFilter};
        /// # let any_port = everbloom_server::Settings { port: 0, ..Default::default() };
        /// # let server = everbloom_server::Server::start(any_port)?;
        /// # let address = format!("redis://{}", server.addr().unwrap());
        /// # let mut connection = redis::Client::open(address)?.get_connection()?;
        /// SpreadFilter::create(&mut connection, "seen", 1000, 0.01, 4)?;
        /// redis::cmd("DEL").arg("{seen:2}").exec(&mut connection)?;
        /// let damaged = SpreadFilter::open(&mut connection, "seen");
        /// assert!(matches!(damaged, Err(Error::MissingKeys { .. })));
        /// let (seen, lost) = SpreadFilter::restore(&mut connection, "seen", 1000, 0.01, 4)?;
        /// assert_eq!(lost, ["{seen:2}"]);
        /// assert!(seen.add(&mut connection, "a")?);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Error::OtherParameters`] when it was created with other parameters, and others of the
        /// connection.
        restore, restore_async(name: &str, capacity: u64, error_rate: f64, shards: u32)
            -> Result<(Self, Vec<String>), Error> = mend;

        /// Adds an item, and returns whether it was new: when several programs add it at the same
        /// time, exactly one gets `true`. [Example](Self). (A cluster's blocking connection hides
        /// some answers at the moment a shard becomes full. An item that this call added may then
        /// be reported as seen.)
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server. After [`Error::Lost`] and [`Error::TimedOut`]
        /// the item may have been added or not; it is safe to add it again.
        add, add_async(&self, item: impl AsRef<[u8]>) -> Result<bool, Error> = one(Action::Add);

        /// Whether an item is known: `false` is certain, and `true` is wrong for a small part of
        /// the items that were never added. [Example](Self::add_all).
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server.
        contains, contains_async(&self, item: impl AsRef<[u8]>) -> Result<bool, Error>
            = one(Action::LookUp);

        /// Adds items, and returns for each whether it was new.
        ///
        /// ```
        /// use everbloom_client::SpreadFilter;
        /// # let any_port = everbloom_server::Settings { port: 0, ..Default::default() };
        /// # let server = everbloom_server::Server::start(any_port)?;
        /// # let address = format!("redis://{}", server.addr().unwrap());
        /// # let mut connection = redis::Client::open(address)?.get_connection()?;
        /// let seen = SpreadFilter::create(&mut connection, "seen", 1000, 0.01, 4)?;
        /// assert_eq!(seen.add_all(&mut connection, &["a", "b", "a"])?, [true, true, false]);
        /// assert!(seen.contains(&mut connection, "b")?);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// When a node or the connection fails, the [`BatchError`] has the answers of the other
        /// nodes, and says which items may have been added or not.
        add_all, add_all_async(&self, items: &[impl AsRef<[u8]>]) -> Result<Vec<bool>, BatchError>
            = many(Action::Add);

        /// Looks items up. [Example](Self).
        ///
        /// # Errors
        ///
        /// When a node or the connection fails, the [`BatchError`] has the answers of the other
        /// nodes.
        contains_all, contains_all_async(&self, items: &[impl AsRef<[u8]>])
            -> Result<Vec<bool>, BatchError> = many(Action::LookUp);

        /// How many different items were added, except false positives. [Example](Self).
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server.
        count, count_async(&self) -> Result<u64, Error> = sum;

        /// Deletes the filter. A program that adds at the same time may leave a part of it.
        ///
        /// ```
        /// use everbloom_client::SpreadFilter;
        /// # let any_port = everbloom_server::Settings { port: 0, ..Default::default() };
        /// # let server = everbloom_server::Server::start(any_port)?;
        /// # let address = format!("redis://{}", server.addr().unwrap());
        /// # let mut connection = redis::Client::open(address)?.get_connection()?;
        /// let seen = SpreadFilter::create(&mut connection, "seen", 1000, 0.01, 4)?;
        /// seen.add(&mut connection, "a")?;
        /// seen.delete(&mut connection)?;
        /// assert!(SpreadFilter::open(&mut connection, "seen").is_err());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server.
        delete, delete_async(&self) -> Result<(), Error> = remove;
    }

    /// The same filter, whose additions count only when so many replicas have them.
    ///
    /// A primary acknowledges a write before its replicas have it, and a failover may lose it. So
    /// each request that adds ends with a write to `{name:0}:wait` and `WAIT`, on one connection.
    /// While a slot moves, such requests fail with [`Error::Moved`] until all its keys have moved.
    ///
    /// Without this many replicas in time, calls fail with [`Error::Replicas`]: the items were added,
    /// and may be lost in a failover. Make the call again.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use everbloom_client::{SpreadFilter, cluster_client};
    ///
    /// let mut connection = cluster_client(["redis://127.0.0.1:7021"]).build()?.get_connection()?;
    /// let seen = SpreadFilter::open(&mut connection, "seen")?;
    /// let seen = seen.with_replicas(1, Duration::from_secs(1));
    /// assert!(seen.add(&mut connection, "a")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_replicas(self, replicas: u32, within: Duration) -> Self {
        let wait = Wait::new(replicas, within);
        SpreadFilter { wait, ..self }
    }

    /// The name.
    ///
    /// ```
    /// # use everbloom_client::SpreadFilter;
    /// # let any_port = everbloom_server::Settings { port: 0, ..Default::default() };
    /// # let server = everbloom_server::Server::start(any_port)?;
    /// # let address = format!("redis://{}", server.addr().unwrap());
    /// # let mut connection = redis::Client::open(address)?.get_connection()?;
    /// let seen = SpreadFilter::create(&mut connection, "seen", 1000, 0.01, 4)?;
    /// assert_eq!(seen.name(), "seen");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shards.name
    }

    /// The dimensions. [Example](Self::open).
    #[must_use]
    pub fn parameters(&self) -> SpreadParameters {
        self.shards.parameters
    }

    fn of(name: &str, parameters: SpreadParameters) -> Result<Self, Error> {
        let shards = Arc::new(Shards::new(name, parameters)?);
        let wait = Wait::default();
        Ok(SpreadFilter { shards, wait })
    }

    async fn one<W: SideBySide>(
        &self,
        wire: &mut W,
        item: impl AsRef<[u8]>,
        action: Action,
    ) -> Result<bool, Error> {
        let answers = self.many(wire, &[item], action).await?;
        Ok(answers.contains(&true))
    }

    async fn many<W: SideBySide>(
        &self,
        wire: &mut W,
        items: &[impl AsRef<[u8]>],
        action: Action,
    ) -> Result<Vec<bool>, BatchError> {
        let operation = Operation {
            action,
            wait: self.wait,
        };
        round::run(wire, &self.shards, items, operation).await
    }
}
