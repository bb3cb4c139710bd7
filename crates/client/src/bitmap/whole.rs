//! Whether the bits of a filter are still there, and their expiry.

use std::time::Duration;

use redis::{Cmd, Pipeline, RedisResult, Value};

use super::filter::BitmapFilter;
use super::layout::{Rule, key_of};
use crate::Error;
use crate::wire::{Action, Wire, ask, ask_one, doors, read};

/// Expiry.
impl BitmapFilter {
    doors! { [Send]
        /// Lets the filter expire after this duration: all its keys together. A bare `EXPIRE` of one
        /// key leaves the others, and the filter is then [incomplete](Error::Incomplete). After its
        /// end, every call returns [`Error::NotFound`] until [`create`](Self::create) makes a new
        /// filter. A duration of 0 deletes it.
        ///
        /// ```
        /// use std::time::Duration;
        /// use everbloom_client::BitmapFilter;
        /// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
        /// # let address = format!("redis://{}", server.addr);
        /// # let mut connection = redis::Client::open(address)?.get_connection()?;
        /// let seen = BitmapFilter::create(&mut connection, "seen", 1000, 0.01)?;
        /// seen.expire(&mut connection, Duration::from_secs(86_400))?;
        /// seen.persist(&mut connection)?;
        /// assert!(seen.add(&mut connection, "a")?);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Error::NotFound`] and [`Error::Incomplete`] when keys of the filter are missing or not
        /// whole; those that are there expire all the same. [`Error::Shape`] when the duration is
        /// over 2^63 milliseconds, and those of the connection.
        expire, expire_async(&self, duration: Duration) -> Result<(), Error> = set_expiry;

        /// Takes the expiry from all keys of the filter. [Example](Self::expire).
        ///
        /// # Errors
        ///
        /// [`Error::NotFound`] and [`Error::Incomplete`] when keys of the filter are missing or not
        /// whole; those that are there expire no more. And those of the connection.
        persist, persist_async(&self) -> Result<(), Error> = remove_expiry;
    }

    async fn set_expiry<W: Wire>(&self, wire: &mut W, duration: Duration) -> Result<(), Error> {
        let milliseconds = i64::try_from(duration.as_millis())
            .map_err(|_| Error::Shape("a duration has less than 2^63 milliseconds"))?;
        self.on_each_key(wire, |key| {
            let mut command = redis::cmd("PEXPIRE");
            command.arg(key).arg(milliseconds);
            command
        })
        .await
    }

    async fn remove_expiry<W: Wire>(&self, wire: &mut W) -> Result<(), Error> {
        self.on_each_key(wire, |key| redis::cmd("PERSIST").arg(key).take())
            .await
    }

    /// Sends a command for each key in one transaction, in which all keys must exist.
    async fn on_each_key<W: Wire>(
        &self,
        wire: &mut W,
        command: impl Fn(&str) -> Cmd,
    ) -> Result<(), Error> {
        // Parameters come first: if the clock moves between two commands they are gone before the
        // bits, and not the other way round.
        let keys: Vec<&String> = self.parameters.iter().chain(&self.bits).collect();
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        for key in &keys {
            pipeline.cmd("EXISTS").arg(key);
        }
        // Bits of ours that an item has made again are not whole.
        let whole = match self.layout.rule {
            Rule::Everbloom => self.bits.as_slice(),
            _ => &[],
        };
        for key in whole {
            pipeline.cmd("STRLEN").arg(key);
        }
        for key in &keys {
            pipeline.add_command(command(key));
        }
        let replies = ask(wire, &self.name, &pipeline).await?;
        let (mut present, mut missing) = (None, None);
        for (key, reply) in keys.iter().zip(&replies) {
            let side = if read(Some(reply))? {
                &mut present
            } else {
                &mut missing
            };
            side.get_or_insert((*key).clone());
        }
        for (key, reply) in whole.iter().zip(replies.iter().skip(keys.len())) {
            if read::<u64>(Some(reply))? < self.key_bytes() {
                missing.get_or_insert(key.clone());
            }
        }
        missing.map_or(Ok(()), |missing| Err(self.without(present, missing)))
    }

    /// The time until the filter expires, in milliseconds, if it does.
    pub(super) async fn remaining<W: Wire>(&self, wire: &mut W) -> Result<Option<i64>, Error> {
        let Some(key) = &self.parameters else {
            return Ok(None);
        };
        let remaining: i64 = ask_one(wire, &self.name, &redis::cmd("PTTL").arg(key).take()).await?;
        match remaining {
            -2 => Err(self.loss(wire, key).await?),
            remaining => Ok(u64::try_from(remaining).is_ok().then_some(remaining)),
        }
    }
}

/// Loss.
impl BitmapFilter {
    /// The keys of bits that these items need. A filter of another program has none here: its bits
    /// are missing until the first item.
    pub(super) fn needed(&self, items: &[impl AsRef<[u8]>]) -> Vec<&String> {
        if self.layout.rule != Rule::Everbloom {
            return Vec::new();
        }
        match self.bits.as_slice() {
            [only] => vec![only],
            bits => {
                let keys = items.iter().map(|item| key_of(item.as_ref(), bits.len()));
                let mut keys: Vec<usize> = keys.collect();
                keys.sort_unstable();
                keys.dedup();
                keys.iter().filter_map(|key| bits.get(*key)).collect()
            }
        }
    }

    /// Sends commands on these keys of bits, and returns their replies, or an error if bits are
    /// lost: bits that are missing would answer that no item is known.
    pub(super) async fn on_bits<W: Wire>(
        &self,
        wire: &mut W,
        keys: &[&String],
        commands: Vec<Cmd>,
        action: Action,
    ) -> Result<Vec<RedisResult<Value>>, Error> {
        let mut pipeline = Pipeline::with_capacity(keys.len() + commands.len() + 1);
        pipeline.ignore_errors();
        let lengths = |pipeline: &mut Pipeline| {
            for key in keys {
                pipeline.cmd("STRLEN").arg(key);
            }
        };
        let count = commands.len();
        // An addition makes missing bits again, so the lengths are read before it. Bits may expire
        // before a look-up, so they are read after it.
        if action == Action::Add {
            lengths(&mut pipeline);
        }
        for command in commands {
            pipeline.add_command(command);
        }
        if action == Action::LookUp {
            lengths(&mut pipeline);
        }
        // Bits that expire between their length and an addition are made again by it. The
        // parameters expire no later than they do, so they are missing then. STRLEN needs no right
        // that an addition does not need for the bits, and parameters are never empty.
        let parameters = self.parameters.as_ref();
        let parameters = parameters.filter(|_| action == Action::Add && !keys.is_empty());
        if let Some(key) = parameters {
            pipeline.cmd("STRLEN").arg(key);
        }
        let replies = wire.ask(&pipeline).await;
        let mut replies = replies.map_err(|error| Error::of(error, &self.name))?;
        if replies.len() != pipeline.len() {
            return Err(Error::Reply(format!("{} replies", replies.len())));
        }
        let mut lost = None;
        if let (Some(key), Some(length)) = (parameters, parameters.and_then(|_| replies.pop())) {
            lost = (self.number(length)? == 0).then_some(key);
        }
        let rest = replies.split_off(match action {
            Action::Add => keys.len(),
            Action::LookUp => count,
        });
        let (lengths, replies) = match action {
            Action::Add => (replies, rest),
            Action::LookUp => (rest, replies),
        };
        for (key, length) in keys.iter().zip(lengths) {
            if self.number(length)? < self.key_bytes() {
                lost.get_or_insert(*key);
            }
        }
        let Some(lost) = lost else {
            return Ok(replies);
        };
        if action == Action::Add {
            self.undo(wire, keys).await?;
        }
        Err(self.loss(wire, lost).await?)
    }

    fn number(&self, reply: RedisResult<Value>) -> Result<u64, Error> {
        read(Some(&reply.map_err(|error| Error::of(error, &self.name))?))
    }

    /// The bytes of each key of bits.
    pub(super) fn key_bytes(&self) -> u64 {
        self.layout.bits.div_ceil(8)
    }

    /// Removes what additions made of missing bits. It would look like a filter once they set the
    /// last bits, and it would prevent that a filter which has expired is created again.
    async fn undo<W: Wire>(&self, wire: &mut W, keys: &[&String]) -> Result<(), Error> {
        for key in keys {
            // Another program may just have made the whole filter.
            let length: u64 =
                ask_one(wire, &self.name, &redis::cmd("STRLEN").arg(key).take()).await?;
            if length < self.key_bytes() {
                let unlink = redis::cmd("UNLINK").arg(key).take();
                ask_one::<W, Value>(wire, &self.name, &unlink).await?;
            }
        }
        Ok(())
    }

    /// The error for a key whose bits are lost.
    async fn loss<W: Wire>(&self, wire: &mut W, key: &str) -> Result<Error, Error> {
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        let keys: Vec<&String> = self.parameters.iter().chain(&self.bits).collect();
        for key in &keys {
            pipeline.cmd("EXISTS").arg(key);
        }
        let mut present = None;
        for (other, reply) in keys.iter().zip(&ask(wire, &self.name, &pipeline).await?) {
            if present.is_none() && read(Some(reply))? {
                present = Some((*other).clone());
            }
        }
        Ok(self.without(present, key.to_owned()))
    }

    fn without(&self, present: Option<String>, missing: String) -> Error {
        let name = self.name.clone();
        match present {
            Some(present) => Error::Incomplete {
                name,
                present,
                missing,
            },
            None => Error::NotFound { name, key: missing },
        }
    }
}
