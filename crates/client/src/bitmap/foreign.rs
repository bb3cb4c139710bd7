//! Opening filters that other programs made, in their layouts.

use redis::Cmd;

use super::filter::BitmapFilter;
use super::layout::{Layout, Rule};
use super::parameters::MAX_KEY_BITS;
use super::{java, redisson};
use crate::Error;
use crate::wire::{Wire, ask_one, doors};

/// Filters that other programs made, in their layouts.
impl BitmapFilter {
    /// The filter of the well-known recipe in Python: a bitmap of this key, in which an item's bits
    /// are `mmh3.hash(item, seed) % bits` for as many seeds from 0 on as there are hashes.
    ///
    /// ```
    /// use everbloom_client::BitmapFilter;
    /// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
    /// # let address = format!("redis://{}", server.addr);
    /// # let mut connection = redis::Client::open(address)?.get_connection()?;
    /// let seen = BitmapFilter::python("bloom", 10_000_000, 7)?;
    /// assert!(seen.add(&mut connection, "user:17")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] without a bit or a hash, or with over 2^32 bits.
    pub fn python(key: &str, bits: u64, hashes: u32) -> Result<Self, Error> {
        checked(bits, hashes)?;
        Ok(BitmapFilter::foreign(key, Rule::Python, bits, hashes))
    }

    /// The filter of the well-known recipe in Java: a bitmap of the key `bf-` and the given one, in
    /// which an item's bits are `(item.hashCode() >>> shift) % 10_000_000` for the shifts 1, 2 and
    /// 3. All three come from one number of 32 bits, so its error rate is far above that of
    /// three independent hashes.
    ///
    /// An item is text. In bytes that are not UTF-8, U+FFFD replaces each invalid part before
    /// hashing.
    ///
    /// ```
    /// use everbloom_client::BitmapFilter;
    /// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
    /// # let address = format!("redis://{}", server.addr);
    /// # let mut connection = redis::Client::open(address)?.get_connection()?;
    /// let users = BitmapFilter::java("users");
    /// assert!(users.add(&mut connection, "user:17")?);
    /// assert_eq!(users.keys(), ["bf-users"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn java(key: &str) -> Self {
        BitmapFilter::foreign(&format!("bf-{key}"), Rule::Java, java::BITS, java::HASHES)
    }

    doors! { [Send]
        /// The filter of this name that Redisson's `RBloomFilter` made, with the dimensions in
        /// `{name}:config`.
        ///
        /// Redisson hashes the bytes that its codec makes of an item. With `StringCodec` these are
        /// the text itself. The default codec adds bytes to a text:
        /// [`redisson_default_item`](crate::redisson_default_item) does the same.
        ///
        /// ```no_run
        /// use everbloom_client::{BitmapFilter, redisson_default_item};
        /// # let mut connection = redis::Client::open("redis://127.0.0.1/")?.get_connection()?;
        /// let seen = BitmapFilter::redisson(&mut connection, "seen")?;
        /// let known = seen.contains(&mut connection, redisson_default_item("user:17"))?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Error::NotFound`] when there are no dimensions, [`Error::Unreadable`] when they are
        /// invalid, and others of the connection.
        redisson, redisson_async(name: &str) -> Result<Self, Error> = find_redisson;
    }

    /// A filter of Redisson's layout with known dimensions, for a server without hashes, or a
    /// filter whose configuration is lost. Redisson calls them `getSize()` and
    /// `getHashIterations()`.
    ///
    /// ```
    /// use everbloom_client::BitmapFilter;
    /// let seen = BitmapFilter::redisson_with("seen", 9_585_058, 7)?;
    /// assert_eq!(seen.keys(), ["seen", "{seen}:config"]);
    /// # Ok::<(), everbloom_client::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] without a bit or a hash, or with over 2^32 bits.
    pub fn redisson_with(name: &str, bits: u64, hashes: u32) -> Result<Self, Error> {
        checked(bits, hashes)?;
        Ok(BitmapFilter {
            parameters: Some(redisson::config_key(name)),
            ..BitmapFilter::foreign(name, Rule::Redisson, bits, hashes)
        })
    }

    async fn find_redisson<W: Wire>(wire: &mut W, name: &str) -> Result<Self, Error> {
        let key = redisson::config_key(name);
        let get = Cmd::hmget(&key, &["size", "hashIterations"]);
        let fields: Vec<Option<String>> = ask_one(wire, name, &get).await?;
        let number = |place: usize| fields.get(place)?.as_ref()?.parse::<u64>().ok();
        match (
            number(0),
            number(1).and_then(|hashes| u32::try_from(hashes).ok()),
        ) {
            (Some(bits), Some(hashes)) => BitmapFilter::redisson_with(name, bits, hashes),
            _ if fields.iter().all(Option::is_none) => Err(Error::NotFound {
                name: name.to_owned(),
                key,
            }),
            _ => Err(Error::Unreadable {
                key,
                found: format!("{fields:?}"),
            }),
        }
    }

    fn foreign(key: &str, rule: Rule, bits: u64, hashes: u32) -> Self {
        BitmapFilter {
            name: key.to_owned(),
            layout: Layout { rule, bits, hashes },
            bits: vec![key.to_owned()],
            parameters: None,
        }
    }
}

/// Checks that a server's bitmap can have these dimensions.
fn checked(bits: u64, hashes: u32) -> Result<(), Error> {
    if !(1..=MAX_KEY_BITS).contains(&bits) {
        return Err(Error::Shape("a bitmap has from 1 bit to 2^32"));
    }
    if !(1..=everbloom::sizing::LayerSize::MAX_HASHES).contains(&hashes) {
        return Err(Error::Shape("a filter has from 1 hash to 1075"));
    }
    Ok(())
}
