//! The key that the load works on. It is made before the run and deleted after it.

use std::ops::Range;
use std::str::FromStr;

use everbloom_resp::Reply;

use super::items::{Kind, item};
use super::requests::{Recipe, Verb};
use crate::client::{Client, ClientError, Target};
use crate::failure::Failure;

/// The default key. A run may delete it, whatever it holds.
pub(super) const DEFAULT_KEY: &str = "everbloom:bench";

/// The value of `--reserve`: `CAPACITY,ERROR[,WORD...]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reservation {
    pub(super) capacity: u64,
    pub(super) error_rate: f64,
    /// Further arguments of BF.RESERVE, such as NONSCALING.
    words: Vec<String>,
}

impl FromStr for Reservation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let capacity = parts.next().and_then(|part| part.parse().ok());
        let error_rate = parts.next().and_then(|part| part.parse().ok());
        let (Some(capacity @ 1..), Some(error_rate)) = (capacity, error_rate) else {
            return Err("expected a capacity and an error rate, as in 1000000,0.01".to_owned());
        };
        if !(error_rate > 0.0 && error_rate < 1.0) {
            return Err("the error rate lies between 0 and 1".to_owned());
        }
        Ok(Self {
            capacity,
            error_rate,
            words: parts.map(str::to_owned).collect(),
        })
    }
}

/// The key, ready for the load.
#[derive(Debug)]
pub(super) struct Prepared {
    client: Client,
    key: Vec<u8>,
    /// Whether this run made the key, so that it may delete it.
    ours: bool,
}

impl Prepared {
    /// Makes the filter or the bitmap, unless the key is used as it is.
    pub(super) fn new(
        target: &Target,
        recipe: &Recipe,
        reserve: &Reservation,
        fill: Option<u64>,
    ) -> Result<Self, Failure> {
        let mut prepared = Self {
            client: Client::connect(target)?,
            key: recipe.key.clone(),
            ours: fill.is_some(),
        };
        if prepared.ours {
            prepared.clear()?;
            prepared.reserve(recipe, reserve)?;
        }
        Ok(prepared)
    }

    /// Deletes the default key. Another key must not exist.
    fn clear(&mut self) -> Result<(), Failure> {
        if self.key != DEFAULT_KEY.as_bytes() {
            let exists: [&[u8]; 2] = [b"EXISTS", &self.key];
            if self.client.demand(&exists)? != Reply::Integer(0) {
                let key = String::from_utf8_lossy(&self.key);
                return Err(Failure::Usage(format!(
                    "the key {key} exists already: delete it, or give another --key, or --filled"
                )));
            }
        }
        self.remove()
    }

    fn reserve(&mut self, recipe: &Recipe, reserve: &Reservation) -> Result<(), Failure> {
        if matches!(recipe.verb, Verb::Setbit | Verb::Getbit) {
            // Make the whole bitmap at once, so that the load does not measure its growing.
            let last = recipe.bitmap.last().to_string();
            let args: [&[u8]; 4] = [b"SETBIT", &self.key, last.as_bytes(), b"0"];
            self.client.demand(&args)?;
            return Ok(());
        }
        let error_rate = reserve.error_rate.to_string();
        let capacity = reserve.capacity.to_string();
        let mut args: Vec<&[u8]> = vec![b"BF.RESERVE", &self.key];
        args.push(error_rate.as_bytes());
        args.push(capacity.as_bytes());
        args.extend(reserve.words.iter().map(String::as_bytes));
        self.client.demand(&args)?;
        Ok(())
    }

    /// Adds the last items of a fill, which are too few for one of its requests.
    pub(super) fn add_rest(&mut self, recipe: &Recipe, items: Range<u64>) -> Result<(), Failure> {
        for index in items {
            let item = item(recipe.seed, Kind::Present(index).number(0));
            let args: [&[u8]; 3] = [b"BF.ADD", &self.key, &item];
            match self.client.demand(&args)? {
                Reply::Integer(_) => {}
                _ => return Err(ClientError::Unexpected { command: "BF.ADD" }.into()),
            }
        }
        Ok(())
    }

    /// Deletes the key if this run made it.
    pub(super) fn delete(&mut self) -> Result<(), Failure> {
        if self.ours { self.remove() } else { Ok(()) }
    }

    fn remove(&mut self) -> Result<(), Failure> {
        let args: [&[u8]; 2] = [b"DEL", &self.key];
        self.client.demand(&args)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations() {
        let parsed: Reservation = "1000,0.001,EXPANSION,4".parse().unwrap();
        assert_eq!((parsed.capacity, parsed.error_rate), (1000, 0.001));
        assert_eq!(parsed.words, ["EXPANSION", "4"]);
        for wrong in ["", "1000", "0,0.1", "x,0.1", "10,0", "10,1", "10,nan"] {
            assert!(wrong.parse::<Reservation>().is_err(), "{wrong}");
        }
    }
}
