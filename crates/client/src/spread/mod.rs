//! One filter in many keys, which a cluster spreads over its nodes.

mod parameters;
mod round;
mod shards;

use std::sync::Arc;

use redis::Pipeline;

use crate::name::beside;
use crate::wire::{SideBySide, ask, doors, entrances, read};
use crate::{BatchError, Error};
pub use parameters::SpreadParameters;
use round::Action;
use shards::Shards;

/// The suffix of the parameters' key after the name.
const PARAMETERS: &str = "parameters";

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
    name: String,
    parameters: SpreadParameters,
    shards: Arc<Shards>,
}

impl SpreadFilter {
    entrances! { [Clone]
        /// Opens the filter of this name, or creates it if it does not exist. [Example](Self).
        ///
        /// # Errors
        ///
        /// [`Error::OtherParameters`] when another program created it with other parameters, and
        /// others of the connection.
        create, create_async(name: &str, capacity: u64, error_rate: f64, shards: u32) = make;

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
        open, open_async(name: &str) = find;
    }

    doors! { [Clone]
        /// Adds an item, and returns whether it was new: when several programs add it at the same
        /// time, exactly one gets `true`. [Example](Self). (A cluster's blocking connection hides
        /// some answers at the moment a shard becomes full. An item that this call added may then
        /// be reported as seen.)
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server. After [`Error::Lost`] and [`Error::TimedOut`]
        /// the item may have been added or not; it is safe to add it again.
        add, add_async(item: impl AsRef<[u8]>) -> Result<bool, Error> = add_one;

        /// Whether an item is known: `false` is certain, and `true` is wrong for a small part of
        /// the items that were never added. [Example](Self::add_all).
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server.
        contains, contains_async(item: impl AsRef<[u8]>) -> Result<bool, Error> = look_up_one;

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
        add_all, add_all_async(items: &[impl AsRef<[u8]>]) -> Result<Vec<bool>, BatchError>
            = add_many;

        /// Looks items up. [Example](Self).
        ///
        /// # Errors
        ///
        /// When a node or the connection fails, the [`BatchError`] has the answers of the other
        /// nodes.
        contains_all, contains_all_async(items: &[impl AsRef<[u8]>])
            -> Result<Vec<bool>, BatchError> = look_up_many;

        /// How many different items were added, except false positives. [Example](Self).
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server.
        count, count_async() -> Result<u64, Error> = sum;

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
        delete, delete_async() -> Result<(), Error> = remove;
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
        &self.name
    }

    /// The dimensions. [Example](Self::open).
    #[must_use]
    pub fn parameters(&self) -> SpreadParameters {
        self.parameters
    }

    async fn make<W: SideBySide>(
        wire: &mut W,
        name: &str,
        capacity: u64,
        error_rate: f64,
        shards: u32,
    ) -> Result<Self, Error> {
        let parameters = SpreadParameters::new(capacity, error_rate, shards)?;
        let (wanted, key) = (parameters.to_string(), beside(name, PARAMETERS)?);
        let filter = SpreadFilter::of(name, parameters)?;
        // Reads first: the filter usually exists, and a replica allows only reads.
        let mut found = text(wire, name, &key).await?;
        if found.is_none() {
            let mut set = redis::pipe();
            set.ignore_errors()
                .cmd("SET")
                .arg(&key)
                .arg(&wanted)
                .arg("NX");
            ask(wire, name, &set).await?;
            // Another program may have been faster.
            found = text(wire, name, &key).await?;
        }
        match found {
            Some(found) if found == wanted => Ok(filter),
            Some(found) => Err(Error::OtherParameters {
                name: filter.name,
                wanted,
                found,
            }),
            None => Err(Error::NotFound {
                name: filter.name,
                key,
            }),
        }
    }

    async fn find<W: SideBySide>(wire: &mut W, name: &str) -> Result<Self, Error> {
        let key = beside(name, PARAMETERS)?;
        let Some(found) = text(wire, name, &key).await? else {
            return Err(Error::NotFound {
                name: name.to_owned(),
                key,
            });
        };
        match SpreadParameters::parse(&found) {
            Some(parameters) => SpreadFilter::of(name, parameters),
            None => Err(Error::Unreadable { key, found }),
        }
    }

    fn of(name: &str, parameters: SpreadParameters) -> Result<Self, Error> {
        Ok(SpreadFilter {
            name: name.to_owned(),
            parameters,
            shards: Arc::new(Shards::new(name, parameters)?),
        })
    }

    async fn add_one<W: SideBySide>(
        &self,
        wire: &mut W,
        item: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        let answers = self.add_many(wire, &[item]).await?;
        Ok(answers.contains(&true))
    }

    async fn look_up_one<W: SideBySide>(
        &self,
        wire: &mut W,
        item: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        let answers = self.look_up_many(wire, &[item]).await?;
        Ok(answers.contains(&true))
    }

    async fn add_many<W: SideBySide>(
        &self,
        wire: &mut W,
        items: &[impl AsRef<[u8]>],
    ) -> Result<Vec<bool>, BatchError> {
        round::run(wire, &self.shards, items, Action::Add).await
    }

    async fn look_up_many<W: SideBySide>(
        &self,
        wire: &mut W,
        items: &[impl AsRef<[u8]>],
    ) -> Result<Vec<bool>, BatchError> {
        round::run(wire, &self.shards, items, Action::LookUp).await
    }

    async fn sum<W: SideBySide>(&self, wire: &mut W) -> Result<u64, Error> {
        let mut sum = 0;
        let count = |pipeline: &mut Pipeline, key: String| {
            pipeline.cmd("BF.CARD").arg(key);
        };
        for replies in self.of_each_shard(wire, count).await? {
            for reply in replies {
                sum += read::<u64>(Some(&reply))?;
            }
        }
        Ok(sum)
    }

    async fn remove<W: SideBySide>(&self, wire: &mut W) -> Result<(), Error> {
        let unlink = |pipeline: &mut Pipeline, key: String| {
            pipeline.cmd("UNLINK").arg(key);
        };
        self.of_each_shard(wire, unlink).await?;
        let mut last = redis::pipe();
        last.ignore_errors()
            .cmd("UNLINK")
            .arg(beside(&self.name, PARAMETERS)?);
        ask(wire, &self.name, &last).await.map(drop)
    }

    /// Sends a command to every filter that exists; the replies by shard.
    async fn of_each_shard<W: SideBySide>(
        &self,
        wire: &mut W,
        question: impl Fn(&mut Pipeline, String),
    ) -> Result<Vec<Vec<redis::Value>>, Error> {
        let shards = &*self.shards;
        loop {
            let pipelines = shards.places().map(|place| {
                let mut pipeline = redis::pipe();
                pipeline
                    .ignore_errors()
                    .cmd("EXISTS")
                    .arg(shards.key(place, shards.newest(place) + 1));
                pipeline
            });
            let pipelines: Vec<Pipeline> = pipelines.collect();
            let mut grown = false;
            for (place, replies) in self.each(wire, &pipelines).await?.into_iter().enumerate() {
                if read(replies.first())? {
                    shards.remember(place, shards.newest(place) + 1);
                    grown = true;
                }
            }
            if !grown {
                break;
            }
        }
        let pipelines = shards.places().map(|place| {
            let mut pipeline = redis::pipe();
            pipeline.ignore_errors();
            for generation in 0..=shards.newest(place) {
                question(&mut pipeline, shards.key(place, generation));
            }
            pipeline
        });
        let pipelines: Vec<Pipeline> = pipelines.collect();
        self.each(wire, &pipelines).await
    }

    async fn each<W: SideBySide>(
        &self,
        wire: &mut W,
        pipelines: &[Pipeline],
    ) -> Result<Vec<Vec<redis::Value>>, Error> {
        let replies = wire.ask_each(pipelines).await.into_iter();
        let replies = replies.map(|replies| replies.and_then(|r| r.into_iter().collect()));
        let replies: Result<_, redis::RedisError> = replies.collect();
        replies.map_err(|error| Error::of(error, &self.name))
    }
}

/// The text of the parameters, if there is one.
async fn text<W: SideBySide>(wire: &mut W, name: &str, key: &str) -> Result<Option<String>, Error> {
    let mut get = redis::pipe();
    get.ignore_errors().cmd("GET").arg(key);
    read(ask(wire, name, &get).await?.first())
}
