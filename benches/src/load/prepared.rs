//! The keys that the load works on. They are made before the run and deleted after it.

use std::ops::Range;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};
use everbloom_dev::Client;

use super::items::{Kind, item};
use super::keys::Keys;
use super::requests::{Recipe, Verb};
use super::setup::Setup;
use super::stream::Target;

/// The default key. A run may delete it, whatever it holds.
pub(super) const DEFAULT_KEY: &str = "everbloom:bench";

/// The number of keys that one EXISTS or DEL names. The server answers nobody else meanwhile.
const KEYS_PER_COMMAND: u64 = 1000;

/// The value of `--reserve`: `CAPACITY,ERROR[,WORD...]`, without the rate for a cuckoo filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reservation {
    pub(super) capacity: u64,
    pub(super) error_rate: Option<f64>,
    /// Further arguments of the command, such as NONSCALING.
    words: Vec<String>,
}

impl Reservation {
    /// The size when no flag states it. One of several keys is as large as the filter that the
    /// first BF.ADD makes.
    pub(super) fn usual(several_keys: bool, cuckoo: bool) -> Self {
        Self {
            capacity: match (several_keys, cuckoo) {
                (true, _) => 100,
                (false, false) => 1_000_000,
                // So large that it does not grow by a million items.
                (false, true) => 4_000_000,
            },
            error_rate: (!cuckoo).then_some(0.01),
            words: Vec::new(),
        }
    }
}

impl FromStr for Reservation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split(',').peekable();
        let capacity = parts.next().unwrap_or_default().parse()?;
        let is_number = |part: &&str| part.starts_with(|c: char| !c.is_ascii_alphabetic());
        let error_rate = parts.next_if(is_number).map(str::parse).transpose()?;
        ensure!(capacity > 0 && error_rate.is_none_or(|rate| 0.0 < rate && rate < 1.0));
        Ok(Self {
            capacity,
            error_rate,
            words: parts.map(str::to_owned).collect(),
        })
    }
}

/// The keys, ready for the load.
pub(super) struct Prepared {
    /// `None` for ECHO, which has no key.
    client: Option<Client>,
    keys: Keys,
    /// Whether this run made the keys, so that it may delete them.
    ours: bool,
}

impl Prepared {
    /// Makes the filter or the bitmap, unless the key is used as it is. The first add makes each of
    /// several small ones.
    pub(super) fn new(setup: &Setup) -> Result<Self> {
        let client = match &setup.target {
            _ if setup.recipe.verb == Verb::Echo => None,
            Target::Tcp(port) => Some(Client::try_connect(("127.0.0.1", *port))?),
            Target::Tls(..) | Target::Unix(_) => None,
        };
        let mut prepared = Self {
            client,
            keys: setup.recipe.keys.clone(),
            ours: setup.fill.is_some(),
        };
        if prepared.ours {
            prepared.clear()?;
            if !setup.recipe.keys.several() {
                prepared.reserve(&setup.recipe, &setup.reserve)?;
            }
        }
        Ok(prepared)
    }

    fn client(&mut self) -> Result<&mut Client> {
        self.client.as_mut().context("keys need a server over TCP")
    }

    /// Deletes the default keys. Other keys must not exist.
    fn clear(&mut self) -> Result<()> {
        if self.keys.name() == DEFAULT_KEY {
            return self.remove();
        }
        let keys = self.keys.clone();
        for chunk in keys.chunks(KEYS_PER_COMMAND) {
            let found = self.client()?.call(&command(b"EXISTS", chunk));
            ensure!(
                found.as_integer() == Some(0),
                "{keys} exists already: give another --key, or --filled"
            );
        }
        Ok(())
    }

    fn reserve(&mut self, recipe: &Recipe, reserve: &Reservation) -> Result<()> {
        let key = self.keys.key(0);
        let reply = if recipe.verb.is_bitmap() {
            // Make the whole bitmap at once, so that the load does not measure its growing.
            let last = recipe.bitmap.last().to_string();
            let args: [&[u8]; 4] = [b"SETBIT", &key, last.as_bytes(), b"0"];
            self.client()?.call(&args)
        } else {
            let error_rate = reserve.error_rate.map(|rate| rate.to_string());
            let capacity = reserve.capacity.to_string();
            let command: &[u8] = if recipe.verb.is_cuckoo() {
                b"CF.RESERVE"
            } else {
                b"BF.RESERVE"
            };
            let mut args: Vec<&[u8]> = vec![command, &key];
            args.extend(error_rate.as_deref().map(str::as_bytes));
            args.push(capacity.as_bytes());
            args.extend(reserve.words.iter().map(String::as_bytes));
            self.client()?.call(&args)
        };
        ensure!(!reply.is_error(), "--reserve: {reply:?}");
        Ok(())
    }

    /// Adds the last items of a fill, which are too few for one of its requests.
    pub(super) fn add_rest(&mut self, recipe: &Recipe, items: Range<u64>) -> Result<()> {
        for index in items {
            let number = Kind::Present(index).number();
            let key = self.keys.key(self.keys.of_item(number));
            let verb = if recipe.verb.is_cuckoo() {
                Verb::CfAdd
            } else {
                Verb::Add
            };
            let args: [&[u8]; 3] = [verb.name().as_bytes(), &key, &item(number)];
            let reply = self.client()?.call(&args);
            ensure!(reply.as_integer().is_some(), "{}: {reply:?}", verb.name());
        }
        Ok(())
    }

    /// Deletes the keys if this run made them.
    pub(super) fn delete(&mut self) -> Result<()> {
        if self.ours { self.remove() } else { Ok(()) }
    }

    fn remove(&mut self) -> Result<()> {
        let keys = self.keys.clone();
        for chunk in keys.chunks(KEYS_PER_COMMAND) {
            let reply = self.client()?.call(&command(b"DEL", chunk));
            ensure!(!reply.is_error(), "DEL: {reply:?}");
        }
        Ok(())
    }
}

/// A command that names these keys.
fn command(name: &[u8], keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut args = vec![name.to_vec()];
    args.extend(keys);
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations() {
        let parsed: Reservation = "1000,0.001,EXPANSION,4".parse().unwrap();
        assert_eq!((parsed.capacity, parsed.error_rate), (1000, Some(0.001)));
        assert_eq!(parsed.words, ["EXPANSION", "4"]);
        let parsed: Reservation = "1000,BUCKETSIZE,4".parse().unwrap();
        assert_eq!((parsed.capacity, parsed.error_rate), (1000, None));
        assert_eq!(parsed.words, ["BUCKETSIZE", "4"]);
        for wrong in ["", "0,0.1", "x,0.1", "10,0", "10,1", "10,-1"] {
            assert!(wrong.parse::<Reservation>().is_err(), "{wrong}");
        }
    }
}
