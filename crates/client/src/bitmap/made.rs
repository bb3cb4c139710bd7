//! Making and opening filters of our own layout.

use redis::Cmd;

use super::filter::BitmapFilter;
use super::layout::{Layout, Rule};
use super::parameters::BitmapParameters;
use crate::Error;
use crate::name::{beside, parameters_key};
use crate::wire::{Wire, ask, ask_one, doors, read};

/// Making and opening filters of our own layout.
impl BitmapFilter {
    doors! { [Send]
        /// Opens the filter of this name, or creates it if it does not exist. [Example](Self).
        ///
        /// Its dimensions are in `{name}:parameters`; in a cluster all its keys are in the slot of
        /// the name. On a read-only replica this opens an existing filter.
        ///
        /// # Errors
        ///
        /// [`Error::OtherParameters`] when another program created it with other parameters,
        /// [`Error::Incomplete`] when a part of it is missing, and others of the connection.
        create, create_async(name: &str, capacity: u64, error_rate: f64) -> Result<Self, Error>
            = make;

        /// As [`create`](Self::create), with explicit dimensions.
        ///
        /// ```
        /// use everbloom_client::{BitmapFilter, BitmapParameters};
        /// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
        /// # let address = format!("redis://{}", server.addr);
        /// # let mut connection = redis::Client::open(address)?.get_connection()?;
        /// let parameters = BitmapParameters::new(1_000_000, 0.001)?.in_keys(4)?;
        /// let seen = BitmapFilter::create_with(&mut connection, "seen", parameters)?;
        /// assert_eq!(seen.keys().len(), 5, "four of bits, and one of parameters");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As those of [`create`](Self::create).
        create_with, create_with_async(name: &str, parameters: BitmapParameters)
            -> Result<Self, Error> = make_with;

        /// Opens the filter of this name, with any dimensions.
        ///
        /// ```
        /// use everbloom_client::{BitmapFilter, Error};
        /// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
        /// # let address = format!("redis://{}", server.addr);
        /// # let mut connection = redis::Client::open(address)?.get_connection()?;
        /// let missing = BitmapFilter::open(&mut connection, "seen");
        /// assert!(matches!(missing, Err(Error::NotFound { .. })));
        /// let seen = BitmapFilter::create(&mut connection, "seen", 1000, 0.01)?;
        /// assert_eq!(BitmapFilter::open(&mut connection, "seen")?, seen);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Error::NotFound`] when it does not exist, [`Error::Incomplete`] when a part of it is
        /// missing, and others of the connection.
        open, open_async(name: &str) -> Result<Self, Error> = find;
    }

    async fn make<W: Wire>(
        wire: &mut W,
        name: &str,
        capacity: u64,
        error_rate: f64,
    ) -> Result<Self, Error> {
        let parameters = BitmapParameters::new(capacity, error_rate)?;
        BitmapFilter::make_with(wire, name, parameters).await
    }

    async fn make_with<W: Wire>(
        wire: &mut W,
        name: &str,
        wanted: BitmapParameters,
    ) -> Result<Self, Error> {
        let filter = BitmapFilter::ours(name, wanted)?;
        // Reads first: the filter usually exists, and a replica allows only reads.
        let mut found = filter.found(wire).await?;
        if found.present.is_none() {
            let mut pipeline = redis::pipe();
            let key = filter.parameters.as_ref();
            pipeline
                .atomic()
                .cmd("SET")
                .arg(key)
                .arg(wanted.to_string())
                .arg("NX");
            filter.make_bits(&mut pipeline);
            ask(wire, name, &pipeline).await?;
            // Another program may have been faster.
            found = filter.found(wire).await?;
        }
        filter.judged(found, wanted)
    }

    async fn find<W: Wire>(wire: &mut W, name: &str) -> Result<Self, Error> {
        let key = parameters_key(name)?;
        let text: Option<String> = ask_one(wire, name, &Cmd::get(&key)).await?;
        let parameters = match text {
            Some(text) => {
                BitmapParameters::parse(&text).ok_or(Error::Unreadable { key, found: text })?
            }
            // Without parameters it is not our filter; any dimensions show whether bits exist.
            None => BitmapParameters::new(1, 0.5)?,
        };
        let filter = BitmapFilter::ours(name, parameters)?;
        let found = filter.found(wire).await?;
        filter.judged(found, parameters)
    }

    fn ours(name: &str, parameters: BitmapParameters) -> Result<Self, Error> {
        let bits = match parameters.keys() {
            1 => vec![name.to_owned()],
            keys => (0..keys)
                .map(|key| beside(name, &key.to_string()))
                .collect::<Result<_, _>>()?,
        };
        Ok(BitmapFilter {
            name: name.to_owned(),
            layout: Layout {
                rule: Rule::Everbloom,
                bits: parameters.key_bits(),
                hashes: parameters.hashes(),
            },
            bits,
            parameters: Some(parameters_key(name)?),
        })
    }

    /// The state on the server.
    async fn found<W: Wire>(&self, wire: &mut W) -> Result<Found, Error> {
        let found = self.look(wire).await?;
        // Another program may have made it between the first of these commands and the last.
        match (&found.present, &found.missing) {
            (Some(_), Some(_)) => self.look(wire).await,
            _ => Ok(found),
        }
    }

    async fn look<W: Wire>(&self, wire: &mut W) -> Result<Found, Error> {
        let mut pipeline = redis::pipe();
        pipeline
            .ignore_errors()
            .cmd("GET")
            .arg(self.parameters.as_ref());
        let otherwise = self.first_if_otherwise()?;
        // A key that was lost and made again by an item is shorter, unless that has the last byte.
        for bits in self.bits.iter().chain([&otherwise]) {
            pipeline.cmd("STRLEN").arg(bits);
        }
        let replies = ask(wire, &self.name, &pipeline).await?;
        let text: Option<String> = read(replies.first())?;
        let mut lengths = vec![text.as_ref().map_or(0, |_| u64::MAX)];
        for reply in replies.iter().skip(1) {
            lengths.push(read(Some(reply))?);
        }
        let is_otherwise = lengths.pop() > Some(0);
        let whole = self.key_bytes();
        let keys = self.parameters.iter().chain(&self.bits);
        let first = |is_it: &dyn Fn(u64) -> bool| {
            let mut keys = keys.clone().zip(&lengths);
            keys.find_map(|(key, length)| is_it(*length).then(|| key.clone()))
        };
        Ok(Found {
            present: first(&|length| length > 0).or_else(|| is_otherwise.then_some(otherwise)),
            missing: first(&|length| length < whole),
            text,
        })
    }

    /// The first key of bits of a filter of this name in several keys instead of one, or in one
    /// instead of several. Without parameters only the keys show which it was.
    fn first_if_otherwise(&self) -> Result<String, Error> {
        match self.bits.len() {
            1 => Ok(beside(&self.name, "0")?),
            _ => Ok(self.name.clone()),
        }
    }

    /// The filter, if its state on the server is valid.
    fn judged(self, found: Found, wanted: BitmapParameters) -> Result<Self, Error> {
        let (name, wanted) = (self.name.clone(), wanted.to_string());
        match (found.text, found.present, found.missing) {
            (Some(found), ..) if found != wanted => Err(Error::OtherParameters {
                name,
                wanted,
                found,
            }),
            (_, Some(present), Some(missing)) => Err(Error::Incomplete {
                name,
                present,
                missing,
            }),
            (_, None, Some(key)) => Err(Error::NotFound { name, key }),
            _ => Ok(self),
        }
    }
}

/// The state of a filter on the server.
struct Found {
    /// Its parameters.
    text: Option<String>,
    /// The first of its keys that exists, beginning with that of its parameters. If it has none,
    /// that of a filter of its name in another number of keys.
    present: Option<String>,
    /// The first that does not, or not with all its bits.
    missing: Option<String>,
}
