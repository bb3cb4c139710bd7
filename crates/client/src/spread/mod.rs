//! One filter in many keys, which a cluster spreads over its nodes.

mod parameters;
mod round;
mod shards;

use std::sync::Arc;

use redis::{Cmd, Pipeline, Value};

use crate::name::parameters_key;
use crate::wire::{Action, SideBySide, ask_each, ask_one, doors, read};
use crate::{BatchError, Error};
pub use parameters::SpreadParameters;
use shards::Shards;

/// One Bloom filter over many `BF` filters, the shards: `{name:0}`, `{name:1}`, ... Use it for a
/// filter that is too large or too busy for one node.
///
/// A hash that the server's filters do not use assigns each item to one shard. So an item takes one
/// round trip to one node, and the error rate is that of a single filter. A batch is split by
/// shard; async connections send the parts in parallel.
///
/// A full shard grows by a further filter of twice the capacity, `{name:0}:1` and so on. Programs
/// need no coordination: every size follows from the parameters, which are in `{name}:parameters`,
/// and a program finds a newer filter at its next look-up.
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
}

impl SpreadFilter {
    doors! { [Clone]
        /// Opens the filter of this name, or creates it if it does not exist. [Example](Self).
        ///
        /// # Errors
        ///
        /// [`Error::OtherParameters`] when another program created it with other parameters, and
        /// others of the connection.
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
        /// [`Error::NotFound`] when it does not exist, and others of the connection.
        open, open_async(name: &str) -> Result<Self, Error> = find;

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

    async fn make<W: SideBySide>(
        wire: &mut W,
        name: &str,
        capacity: u64,
        error_rate: f64,
        shards: u32,
    ) -> Result<Self, Error> {
        let parameters = SpreadParameters::new(capacity, error_rate, shards)?;
        let (wanted, key) = (parameters.to_string(), parameters_key(name)?);
        let filter = SpreadFilter::of(name, parameters)?;
        // Reads first: the filter usually exists, and a replica allows only reads.
        let mut found: Option<String> = ask_one(wire, name, &Cmd::get(&key)).await?;
        if found.is_none() {
            let set = Cmd::set(&key, &wanted).arg("NX").take();
            ask_one::<_, ()>(wire, name, &set).await?;
            // Another program may have been faster.
            found = ask_one(wire, name, &Cmd::get(&key)).await?;
        }
        let name = name.to_owned();
        match found {
            Some(found) if found == wanted => Ok(filter),
            Some(found) => Err(Error::OtherParameters {
                name,
                wanted,
                found,
            }),
            None => Err(Error::NotFound { name, key }),
        }
    }

    async fn find<W: SideBySide>(wire: &mut W, name: &str) -> Result<Self, Error> {
        let key = parameters_key(name)?;
        let Some(found) = ask_one::<_, Option<String>>(wire, name, &Cmd::get(&key)).await? else {
            let name = name.to_owned();
            return Err(Error::NotFound { name, key });
        };
        match SpreadParameters::parse(&found) {
            Some(parameters) => SpreadFilter::of(name, parameters),
            None => Err(Error::Unreadable { key, found }),
        }
    }

    fn of(name: &str, parameters: SpreadParameters) -> Result<Self, Error> {
        let shards = Arc::new(Shards::new(name, parameters)?);
        Ok(SpreadFilter { shards })
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
        round::run(wire, &self.shards, items, action).await
    }

    async fn sum<W: SideBySide>(&self, wire: &mut W) -> Result<u64, Error> {
        let mut sum = 0;
        for reply in self.of_each_filter(wire, "BF.CARD").await?.iter().flatten() {
            sum += read::<u64>(Some(reply))?;
        }
        Ok(sum)
    }

    async fn remove<W: SideBySide>(&self, wire: &mut W) -> Result<(), Error> {
        self.of_each_filter(wire, "UNLINK").await?;
        let last = Cmd::unlink(parameters_key(self.name())?);
        ask_one(wire, self.name(), &last).await
    }

    /// Sends a command to every filter that exists; the replies by shard.
    async fn of_each_filter<W: SideBySide>(
        &self,
        wire: &mut W,
        command: &str,
    ) -> Result<Vec<Vec<Value>>, Error> {
        let shards = &*self.shards;
        loop {
            let next = |shard| vec![shards.newest(shard) + 1];
            let mut grown = false;
            for (shard, replies) in self.each(wire, "EXISTS", next).await?.iter().enumerate() {
                if read(replies.first())? {
                    shards.remember(shard, shards.newest(shard) + 1);
                    grown = true;
                }
            }
            if !grown {
                break;
            }
        }
        let all = |shard| (0..=shards.newest(shard)).collect();
        self.each(wire, command, all).await
    }

    /// Sends a command to some generations of each shard.
    async fn each<W: SideBySide>(
        &self,
        wire: &mut W,
        command: &str,
        generations: impl Fn(usize) -> Vec<u32>,
    ) -> Result<Vec<Vec<Value>>, Error> {
        let pipelines = self.shards.places().map(|shard| {
            let mut pipeline = redis::pipe();
            pipeline.ignore_errors();
            for generation in generations(shard) {
                let key = self.shards.key(shard, generation);
                pipeline.cmd(command).arg(key);
            }
            pipeline
        });
        let pipelines: Vec<Pipeline> = pipelines.collect();
        ask_each(wire, self.name(), &pipelines).await
    }
}
