//! The keys of a spread filter, and the known generations of each shard.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::Pipeline;

use super::parameters::{MAX_GENERATIONS, SpreadParameters};
use crate::Error;
use crate::name::check_untagged;

/// The first bit of a record that marks a generation as given up.
const GIVEN_UP: u32 = 32;

/// The generations of a shard, as its record tells them: bit `g` says that generation `g` was made,
/// bit `32 + g` that it was lost and is not made again.
///
/// The record is a bitmap, because `SETBIT` only ever adds to it: programs that make a shard grow
/// at the same time cannot take back what another one has recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generations(u64);

impl Generations {
    pub(super) const FIRST: Generations = Generations(1);

    /// The generations of a record; `None` if it is not a record.
    pub(super) fn parse(record: &[u8]) -> Option<Generations> {
        let mut bytes = [0; 8];
        bytes.get_mut(..record.len())?.copy_from_slice(record);
        // SETBIT counts from the highest bit of the first byte.
        let generations = Generations(u64::from_be_bytes(bytes).reverse_bits());
        (generations.live_bits() != 0).then_some(generations)
    }

    /// Generations that exist, without a record of them. There is always a first one.
    pub(super) fn of_existing(exists: impl Fn(u32) -> bool) -> Generations {
        let made = (1..MAX_GENERATIONS).filter(|generation| exists(*generation));
        Generations(made.fold(1, |bits, generation| bits | 1 << generation))
    }

    fn live_bits(self) -> u32 {
        let made = self.0 & u64::from(u32::MAX);
        u32::try_from(made & !(self.0 >> GIVEN_UP)).unwrap_or(0)
    }

    /// The generations that must exist, oldest first.
    pub(super) fn live(self) -> impl DoubleEndedIterator<Item = u32> {
        (0..MAX_GENERATIONS).filter(move |generation| self.live_bits() >> generation & 1 == 1)
    }

    pub(super) fn newest(self) -> u32 {
        self.live().next_back().unwrap_or(0)
    }

    pub(super) fn was_given_up(self, generation: u32) -> bool {
        self.0 >> GIVEN_UP >> generation & 1 == 1
    }

    #[must_use]
    pub(super) fn with(self, other: Generations) -> Generations {
        Generations(self.0 | other.0)
    }

    #[must_use]
    pub(super) fn with_made(self, generation: u32) -> Generations {
        Generations(self.0 | 1 << generation)
    }

    #[must_use]
    pub(super) fn with_given_up(self, generation: u32) -> Generations {
        Generations(self.0 | 1 << GIVEN_UP << generation)
    }

    /// The bits of the record that are set.
    fn bits(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |bit| self.0 >> bit & 1 == 1)
    }
}

/// How many replicas must have what was added, and how many milliseconds that may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) replicas: u32,
    milliseconds: u64,
}

impl Wait {
    pub(super) fn new(replicas: u32, within: Duration) -> Wait {
        // 0 would wait for ever.
        let milliseconds = u64::try_from(within.as_millis()).unwrap_or(u64::MAX).max(1);
        Wait {
            replicas,
            milliseconds,
        }
    }
}

/// The shards of a filter.
#[derive(Debug)]
pub(super) struct Shards {
    pub(super) name: String,
    pub(super) parameters: SpreadParameters,
    /// The generations of each shard that were seen: there may be newer ones.
    known: Vec<AtomicU64>,
}

impl Shards {
    pub(super) fn new(name: &str, parameters: SpreadParameters) -> Result<Shards, Error> {
        check_untagged(name)?;
        let known = (0..parameters.shards()).map(|_| AtomicU64::new(Generations::FIRST.0));
        Ok(Shards {
            name: name.to_owned(),
            parameters,
            known: known.collect(),
        })
    }

    pub(super) fn places(&self) -> Range<usize> {
        0..self.known.len()
    }

    /// The key of a shard's filter, in a slot of its own.
    pub(super) fn key(&self, shard: usize, generation: u32) -> String {
        let name = &self.name;
        match generation {
            0 => format!("{{{name}:{shard}}}"),
            _ => format!("{{{name}:{shard}}}:{generation}"),
        }
    }

    /// The key of a shard's record, in the same slot.
    pub(super) fn record(&self, shard: usize) -> String {
        format!("{{{}:{shard}}}:generations", self.name)
    }

    pub(super) fn known(&self, shard: usize) -> Generations {
        let known = self.known.get(shard);
        known.map_or(Generations::FIRST, |known| {
            Generations(known.load(Ordering::Relaxed))
        })
    }

    pub(super) fn remember(&self, shard: usize, generations: Generations) {
        if let Some(known) = self.known.get(shard) {
            known.fetch_or(generations.0, Ordering::Relaxed);
        }
    }

    /// Makes a generation of a shard. Every program would make the same.
    pub(super) fn make(&self, pipeline: &mut Pipeline, shard: usize, generation: u32) {
        let reserve = pipeline.cmd("BF.RESERVE").arg(self.key(shard, generation));
        reserve
            .arg(self.parameters.error_rate_of(generation))
            .arg(self.parameters.capacity_of(generation))
            .arg("NONSCALING");
    }

    /// Records generations of a shard.
    pub(super) fn note(&self, pipeline: &mut Pipeline, shard: usize, generations: Generations) {
        for bit in generations.bits() {
            pipeline
                .cmd("SETBIT")
                .arg(self.record(shard))
                .arg(bit)
                .arg(1);
        }
    }

    /// The key that is written before each `WAIT`.
    pub(super) fn marker(&self, shard: usize) -> String {
        format!("{{{}:{shard}}}:wait", self.name)
    }

    /// Ends a pipeline that adds: waits for replicas. `WAIT` waits for what its connection has
    /// written last. A connection that has only read is answered at once, although the replicas may
    /// lack what it has read. So something is written in any case.
    pub(super) fn wait(&self, pipeline: &mut Pipeline, shard: usize, wait: Wait) {
        pipeline.set(self.marker(shard), 1);
        let command = pipeline.cmd("WAIT");
        command.arg(wait.replicas).arg(wait.milliseconds);
    }

    /// The error for keys that are missing.
    pub(super) fn missing(&self, keys: Vec<String>) -> Error {
        Error::MissingKeys {
            name: self.name.clone(),
            keys,
        }
    }

    /// Reads a record.
    pub(super) fn parse(
        &self,
        shard: usize,
        record: Option<Vec<u8>>,
    ) -> Result<Option<Generations>, Error> {
        let Some(record) = record else {
            return Ok(None);
        };
        let generations = Generations::parse(&record).ok_or_else(|| Error::Unreadable {
            key: self.record(shard),
            found: String::from_utf8_lossy(&record).into_owned(),
        })?;
        Ok(Some(generations))
    }
}

#[cfg(test)]
mod tests {
    use super::Generations;

    #[test]
    fn a_record_is_read_as_setbit_writes_it() {
        assert_eq!(Generations::parse(&[0x80]), Some(Generations::FIRST));
        // SETBIT of 0, 1, 9 and 32 + 1.
        let record = [0xc0, 0x40, 0, 0, 0x40];
        let generations = Generations::parse(&record).unwrap();
        let expected = Generations::FIRST.with_made(1).with_made(9);
        assert_eq!(generations, expected.with_given_up(1));
        assert_eq!(generations.live().collect::<Vec<_>>(), [0, 9]);
        assert_eq!((generations.newest(), expected.newest()), (9, 9));
        assert!(generations.was_given_up(1) && !generations.was_given_up(9));
        assert_eq!(generations.bits().collect::<Vec<_>>(), [0, 1, 9, 33]);
        for wrong in [&b""[..], &[0], &[0, 0, 0, 0, 0x80], &[0xff; 9], &[0xff; 8]] {
            assert_eq!(Generations::parse(wrong), None, "{wrong:?}");
        }
    }
}
