//! The key of a load, and how large its filter is.

use std::str::FromStr;

use anyhow::{Error, Result, ensure};

/// The default key. A run may delete it, whatever it holds.
pub(super) const DEFAULT_KEY: &str = "everbloom:bench";

/// The value of `--reserve`: `CAPACITY,ERROR[,WORD...]`, without the rate for a cuckoo filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reservation {
    pub(super) capacity: u64,
    pub(super) error_rate: Option<f64>,
    /// Further arguments of the command, such as NONSCALING.
    pub(super) words: Vec<String>,
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
