//! A filter, its items, and the commands for them.

use everbloom::sizing::textbook;
use redis::{Cmd, Pipeline, Value};

use super::layout::{Layout, Rule, key_of};
use crate::wire::{Action, Wire, ask, ask_one, doors, read};
use crate::{BatchError, Error};

/// A Bloom filter in bitmaps of a server. It needs no module: any Valkey works, and any Redis from
/// 6.0 on.
///
/// The value holds the filter's name and dimensions, but no connection: share it, clone it, and
/// pass a connection to each call. One item takes one round trip; many items are sent in pipelines
/// of a bounded length. An item is always bytes; text is its UTF-8.
///
/// [`create`](Self::create) and [`open`](Self::open) keep the dimensions beside the bits and check
/// them. [`python`](Self::python), [`java`](Self::java) and [`redisson`](Self::redisson) open
/// filters that other programs made.
///
/// A server that evicts keys when its memory is full may evict the bits, too. Their items are then
/// lost, and every call returns [`Error::Incomplete`] until [`clear`](Self::clear) makes the bits
/// again, without items. When it has evicted the parameters, look-ups still answer, and additions
/// return that error until [`delete`](Self::delete) and [`create`](Self::create). Choose an eviction
/// policy or a memory limit that protects both.
///
/// [`expire`](Self::expire) gives all keys of the filter the same expiry.
///
/// ```
/// use everbloom_client::BitmapFilter;
/// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
/// # let address = format!("redis://{}", server.addr);
/// let mut connection = redis::Client::open(address)?.get_connection()?;
/// let seen = BitmapFilter::create(&mut connection, "seen", 1_000_000, 0.01)?;
/// assert!(seen.add(&mut connection, "https://a.example/")?);
/// assert!(!seen.add(&mut connection, "https://a.example/")?, "it is not new");
/// assert!(seen.contains(&mut connection, "https://a.example/")?);
///
/// let urls = ["https://a.example/", "https://b.example/"];
/// assert_eq!(seen.add_all(&mut connection, &urls)?, [false, true]);
/// assert_eq!(seen.contains_all(&mut connection, &urls)?, [true, true]);
/// assert_eq!(seen.count(&mut connection)?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BitmapFilter {
    pub(super) name: String,
    pub(super) layout: Layout,
    /// The keys of the bits.
    pub(super) bits: Vec<String>,
    /// The key of the filter's parameters, if there is one.
    pub(super) parameters: Option<String>,
}

/// Items.
impl BitmapFilter {
    doors! { [Send]
        /// Adds an item, and returns whether it was new: when several programs add it at the same
        /// time, exactly one gets `true`. [Example](Self).
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server. After an error the item may have been added or
        /// not; it is safe to add it again.
        add, add_async(&self, item: impl AsRef<[u8]>) -> Result<bool, Error> = one(Action::Add);

        /// Whether an item is known: `false` is certain, and `true` is wrong for a small part of
        /// the items that were never added. [Example](Self).
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server.
        contains, contains_async(&self, item: impl AsRef<[u8]>) -> Result<bool, Error>
            = one(Action::LookUp);

        /// Adds items in few round trips, and returns for each whether it was new. [Example](Self).
        ///
        /// # Errors
        ///
        /// When the server or the connection fails in the middle, the [`BatchError`] has the
        /// answers so far, and says which items may have been added or not.
        add_all, add_all_async(&self, items: &[impl AsRef<[u8]>]) -> Result<Vec<bool>, BatchError>
            = many(Action::Add);

        /// Looks items up in few round trips. [Example](Self).
        ///
        /// # Errors
        ///
        /// When the server or the connection fails in the middle, the [`BatchError`] has the
        /// answers so far.
        contains_all, contains_all_async(&self, items: &[impl AsRef<[u8]>])
            -> Result<Vec<bool>, BatchError> = many(Action::LookUp);

        /// About how many different items were added, from the part of the bits that are set
        /// (Swamidass and Baldi, "Mathematical correction for fingerprint similarity measures",
        /// 2007). The server counts all bits for this: about ten milliseconds for 512 MiB.
        /// [Example](Self).
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server.
        count, count_async(&self) -> Result<u64, Error> = estimate;

        /// Removes all items. An item that another program adds at the same time may be removed,
        /// too.
        ///
        /// ```
        /// use everbloom_client::BitmapFilter;
        /// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
        /// # let address = format!("redis://{}", server.addr);
        /// # let mut connection = redis::Client::open(address)?.get_connection()?;
        /// let seen = BitmapFilter::create(&mut connection, "seen", 1000, 0.01)?;
        /// seen.add(&mut connection, "a")?;
        /// seen.clear(&mut connection)?;
        /// assert!(!seen.contains(&mut connection, "a")?);
        /// seen.delete(&mut connection)?;
        /// assert!(BitmapFilter::open(&mut connection, "seen").is_err());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Error::NotFound`] when the filter is gone, [`Error::Incomplete`] when only its
        /// parameters are: [`delete`](Self::delete) the rest and create it again. And those of the
        /// connection and of the server.
        clear, clear_async(&self) -> Result<(), Error> = empty;

        /// Deletes the filter: its bits and its parameters. [Example](Self::clear).
        ///
        /// # Errors
        ///
        /// Those of the connection and of the server.
        delete, delete_async(&self) -> Result<(), Error> = remove;
    }

    async fn one<W: Wire>(
        &self,
        wire: &mut W,
        item: impl AsRef<[u8]>,
        action: Action,
    ) -> Result<bool, Error> {
        let answers = self.many(wire, &[item], action).await?;
        Ok(answers.contains(&true))
    }

    async fn estimate<W: Wire>(&self, wire: &mut W) -> Result<u64, Error> {
        let keys: Vec<&String> = match self.layout.rule {
            Rule::Everbloom => self.bits.iter().collect(),
            _ => Vec::new(),
        };
        let counts = self
            .bits
            .iter()
            .map(|key| redis::cmd("BITCOUNT").arg(key).take());
        let replies = self.on_bits(wire, &keys, counts.collect(), Action::LookUp);
        let (bits, hashes) = (self.layout.bits as f64, f64::from(self.layout.hashes));
        let mut items = 0.0;
        for reply in replies.await? {
            let reply = reply.map_err(|error| Error::of(error, &self.name))?;
            let ones: u64 = read(Some(&reply))?;
            items += textbook::items_from_ones(bits, hashes, ones as f64);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a bitmap whose bits are all set stands for any number of items"
        )]
        Ok(items.round() as u64)
    }

    /// Commands that create missing bits and change no existing ones.
    pub(super) fn make_bits(&self, pipeline: &mut Pipeline) {
        let last = self.layout.bits - 1;
        for key in &self.bits {
            // Adding 0 to the last bit creates all bits up to it.
            pipeline
                .cmd("BITFIELD")
                .arg(key)
                .arg("INCRBY")
                .arg("u1")
                .arg(last)
                .arg(0);
        }
    }

    async fn empty<W: Wire>(&self, wire: &mut W) -> Result<(), Error> {
        let remaining = self.remaining(wire).await?;
        let mut pipeline = redis::pipe();
        pipeline.atomic().cmd("UNLINK").arg(&self.bits);
        if self.layout.rule == Rule::Everbloom {
            self.make_bits(&mut pipeline);
        }
        if let Some(milliseconds) = remaining {
            // The new bits have no expiry yet.
            for key in self.parameters.iter().chain(&self.bits) {
                pipeline.cmd("PEXPIRE").arg(key).arg(milliseconds);
            }
        }
        ask(wire, &self.name, &pipeline).await.map(drop)
    }

    async fn remove<W: Wire>(&self, wire: &mut W) -> Result<(), Error> {
        let unlink = redis::cmd("UNLINK").arg(self.keys()).take();
        ask_one(wire, &self.name, &unlink).await
    }
}

/// For programs that send the commands themselves, in their own pipelines or connections.
impl BitmapFilter {
    /// The name.
    ///
    /// ```
    /// use everbloom_client::BitmapFilter;
    /// assert_eq!(BitmapFilter::python("bloom", 1000, 7)?.name(), "bloom");
    /// # Ok::<(), everbloom_client::Error>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All keys of the filter: those of the bits first. [Example](Self::java).
    #[must_use]
    pub fn keys(&self) -> Vec<&str> {
        let keys = self.bits.iter().chain(&self.parameters);
        keys.map(String::as_str).collect()
    }

    /// The command that adds an item; [`was_new`](Self::was_new) reads its reply. It does not notice
    /// lost bits, as [`add`](Self::add) does.
    ///
    /// ```
    /// use everbloom_client::BitmapFilter;
    /// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
    /// # let address = format!("redis://{}", server.addr);
    /// # let mut connection = redis::Client::open(address)?.get_connection()?;
    /// let seen = BitmapFilter::create(&mut connection, "seen", 1000, 0.01)?;
    /// let mut pipeline = redis::pipe();
    /// pipeline.cmd("INCR").arg("visits").add_command(seen.adding("user:17"));
    /// let (visits, reply): (u64, redis::Value) = pipeline.query(&mut connection)?;
    /// assert_eq!((visits, seen.was_new(&reply)?), (1, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn adding(&self, item: impl AsRef<[u8]>) -> Cmd {
        self.command(Action::Add, item.as_ref())
    }

    /// Whether an item was new, from the reply to [`adding`](Self::adding) it.
    ///
    /// # Errors
    ///
    /// [`Error::Reply`] when this is the reply to something else.
    pub fn was_new(&self, reply: &Value) -> Result<bool, Error> {
        Action::Add.answer(reply, self.layout.hashes)
    }

    /// The command that looks an item up; [`is_known`](Self::is_known) reads its reply. It does not
    /// notice lost bits, as [`contains`](Self::contains) does.
    ///
    /// ```
    /// use everbloom_client::BitmapFilter;
    /// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
    /// # let address = format!("redis://{}", server.addr);
    /// # let mut connection = redis::Client::open(address)?.get_connection()?;
    /// let seen = BitmapFilter::create(&mut connection, "seen", 1000, 0.01)?;
    /// let reply = seen.looking_up("user:17").query(&mut connection)?;
    /// assert!(!seen.is_known(&reply)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn looking_up(&self, item: impl AsRef<[u8]>) -> Cmd {
        self.command(Action::LookUp, item.as_ref())
    }

    /// Whether an item is known, from the reply to [`looking_up`](Self::looking_up) it.
    ///
    /// # Errors
    ///
    /// [`Error::Reply`] when this is the reply to something else.
    pub fn is_known(&self, reply: &Value) -> Result<bool, Error> {
        Action::LookUp.answer(reply, self.layout.hashes)
    }

    pub(super) fn command(&self, action: Action, item: &[u8]) -> Cmd {
        let key = self.bits.get(key_of(item, self.bits.len()));
        let positions = self.layout.positions(item);
        action.command(key.unwrap_or(&self.name), &positions)
    }
}
