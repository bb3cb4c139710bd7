//! The keys that the load works on. They are made before the run and deleted after it.

use std::ops::Range;

use anyhow::{Context, Result, ensure};
use everbloom_dev::Client;

use super::items::{ItemKind, item};
use super::keys::Keys;
use super::requests::{Recipe, Verb};
use super::reservation::{DEFAULT_KEY, Reservation};
use super::setup::Setup;
use super::stream::Target;

/// The number of keys that one EXISTS or DEL names. The server answers nobody else meanwhile.
const KEYS_PER_COMMAND: u64 = 1000;

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
            let number = ItemKind::Present(index).number();
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
