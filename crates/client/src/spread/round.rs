//! Batches of items, split by shard and sent in parallel.
//!
//! The filters of a shard are its generations. All but the newest are full, and a full filter
//! always refuses new items. So an item goes into a generation only after the one before has
//! refused it, and then no earlier generation has it. When several programs add an item at the same
//! time, exactly one gets "new", although the programs do not coordinate.

use redis::bloom::{BloomFilterInsertOptions, BloomFilterScalingOptions};
use redis::{Pipeline, RedisError, RedisResult, Value};

use super::shards::Shards;
use crate::wire::{Action, SideBySide, read};
use crate::{BatchError, Error};

/// The most items in flight.
const ITEMS: usize = 16_384;
/// About the most bytes in flight.
const BYTES: usize = 4 << 20;

/// The items of a shard that have no answer yet, by their places in the batch.
struct Part {
    shard: usize,
    places: Vec<usize>,
    /// The newest generation that this part was sent to.
    newest: u32,
    /// Whether the items were looked up in all generations so far, and are in none: they are to be
    /// added to the newest.
    adding: bool,
}

/// Does something with items of any number.
pub(super) async fn run<W: SideBySide, T: AsRef<[u8]>>(
    wire: &mut W,
    filter: &Shards,
    items: &[T],
    action: Action,
) -> Result<Vec<bool>, BatchError> {
    let mut answers = vec![None; items.len()];
    let mut start = 0;
    while start < items.len() {
        let mut bytes = 0;
        let fits = items.iter().skip(start).take(ITEMS).take_while(|item| {
            bytes += item.as_ref().len();
            bytes <= BYTES
        });
        let end = start + fits.count().max(1);
        if let Some(error) = window(wire, filter, items, start..end, action, &mut answers).await {
            return Err(BatchError { answers, error });
        }
        start = end;
    }
    Ok(answers.into_iter().flatten().collect())
}

/// Does it with the items from one place to another; the first error, if any.
async fn window<W: SideBySide, T: AsRef<[u8]>>(
    wire: &mut W,
    filter: &Shards,
    items: &[T],
    places: std::ops::Range<usize>,
    action: Action,
    answers: &mut [Option<bool>],
) -> Option<Error> {
    let mut of_shard = vec![Vec::new(); filter.places().len()];
    for (place, item) in items.iter().enumerate().take(places.end).skip(places.start) {
        if let Some(part) = of_shard.get_mut(filter.parameters.shard_of(item.as_ref())) {
            part.push(place);
        }
    }
    let parts = of_shard
        .into_iter()
        .enumerate()
        .filter(|(_, places)| !places.is_empty());
    let mut parts: Vec<Part> = parts
        .map(|(shard, places)| {
            let newest = filter.newest(shard);
            Part {
                shard,
                places,
                newest,
                adding: action == Action::Add && newest == 0,
            }
        })
        .collect();
    let mut failure = None;
    while !parts.is_empty() {
        let pipelines: Vec<Pipeline> = parts
            .iter()
            .map(|part| part.question(filter, items))
            .collect();
        let replies = wire.ask_each(&pipelines).await;
        let mut rest = Vec::new();
        for (part, replies) in parts.into_iter().zip(replies) {
            let left = match replies {
                Ok(replies) => part.take(filter, action, &replies, answers),
                // A cluster's blocking connection returns the first error instead of all replies.
                // Items that this call added are then reported as known.
                Err(error) if part.adding && is_full(&error) => part.refused(filter).map(Some),
                Err(error) => Err(Error::of(error, &filter.name)),
            };
            match left {
                Ok(more) => rest.extend(more),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        parts = rest;
    }
    failure
}

impl Part {
    fn question<T: AsRef<[u8]>>(&self, filter: &Shards, items: &[T]) -> Pipeline {
        let items = self.places.iter().filter_map(|place| items.get(*place));
        let items: Vec<&[u8]> = items.map(AsRef::as_ref).collect();
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        if self.adding {
            // It is made if it is not there, and every program would make the same.
            let options = BloomFilterInsertOptions::default()
                .capacity(filter.parameters.capacity_of(self.newest))
                .error_rate(filter.parameters.error_rate_of(self.newest))
                .expansion(BloomFilterScalingOptions::NonScaling);
            pipeline.bf_insert_options(filter.key(self.shard, self.newest), items, options);
            return pipeline;
        }
        for generation in (0..=self.newest).rev() {
            pipeline.bf_mexists(filter.key(self.shard, generation), &items);
        }
        pipeline.exists(filter.key(self.shard, self.newest + 1));
        pipeline
    }

    /// Takes the available answers; the remaining items are sent again.
    fn take(
        self,
        filter: &Shards,
        action: Action,
        replies: &[RedisResult<Value>],
        answers: &mut [Option<bool>],
    ) -> Result<Option<Part>, Error> {
        let mut replies = replies.iter().map(|reply| match reply {
            Ok(reply) => Ok(reply),
            Err(error) => Err(Error::of(error.clone(), &filter.name)),
        });
        if self.adding {
            return self.take_added(filter, replies.next().transpose()?, answers);
        }
        let newer: bool = read(replies.next_back().transpose()?)?;
        let mut found = vec![false; self.places.len()];
        for reply in replies {
            let known: Vec<bool> = read(Some(reply?))?;
            for (found, known) in found.iter_mut().zip(known) {
                *found |= known;
            }
        }
        let mut left = Vec::new();
        for (place, found) in self.places.into_iter().zip(found) {
            let answer = match (action, found) {
                (Action::Add, true) => Some(false),
                (Action::LookUp, true) => Some(true),
                (Action::LookUp, false) if !newer => Some(false),
                _ => None,
            };
            match answers.get_mut(place) {
                Some(slot) if answer.is_some() => *slot = answer,
                _ => left.push(place),
            }
        }
        let newest = if newer {
            filter.grown(self.shard, self.newest)?
        } else {
            self.newest
        };
        Ok((!left.is_empty()).then_some(Part {
            places: left,
            newest,
            adding: action == Action::Add && !newer,
            ..self
        }))
    }

    fn take_added(
        mut self,
        filter: &Shards,
        reply: Option<&Value>,
        answers: &mut [Option<bool>],
    ) -> Result<Option<Part>, Error> {
        // A full filter refuses an item: some servers continue with the next item, others stop.
        let outcomes: Vec<RedisResult<bool>> = read(reply)?;
        let mut outcomes = outcomes.into_iter();
        let mut refused = Vec::new();
        for place in std::mem::take(&mut self.places) {
            match outcomes.next() {
                Some(Ok(new)) => {
                    if let Some(slot) = answers.get_mut(place) {
                        *slot = Some(new);
                    }
                }
                Some(Err(error)) if !is_full(&error) => {
                    return Err(Error::of(error, &filter.name));
                }
                Some(Err(_)) | None => refused.push(place),
            }
        }
        if refused.is_empty() {
            return Ok(None);
        }
        let left = Part {
            places: refused,
            ..self
        };
        left.refused(filter).map(Some)
    }

    /// What is left when a filter is full: what follows the first refused item was perhaps not
    /// asked, and may be in this generation.
    fn refused(self, filter: &Shards) -> Result<Part, Error> {
        Ok(Part {
            newest: filter.grown(self.shard, self.newest)?,
            adding: false,
            ..self
        })
    }
}

/// Whether a filter has taken as many items as its capacity. Only the exact error says so: a disk
/// that is full, say, must not start a new generation.
fn is_full(error: &RedisError) -> bool {
    let errors = error.clone().into_server_errors().unwrap_or_default();
    errors.first().is_some_and(|(_, error)| {
        let text = error.details().unwrap_or_default();
        match error.code() {
            "ERR" => text == "non scaling filter is full",
            // Without a code, as from older servers, the first word is taken for one.
            "Non" | "non" => text == "scaling filter is full",
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_filter_is_full() {
        let is_full = |line: &str| {
            let reply = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
            is_full(&reply.extract_error().unwrap_err())
        };
        assert!(is_full("ERR non scaling filter is full"));
        assert!(is_full("Non scaling filter is full"));
        for other in [
            "MISCONF Errors writing to the AOF file: the disk is full",
            "MISCONF a non scaling filter is full",
            "ERR a full resynchronization is under way",
            "ERR Filter is full",
            "ERR non scaling filter is full of surprises",
            "NOREPLICAS the disk of the replica is full",
            "OOM command not allowed: memory is full",
        ] {
            assert!(!is_full(other), "{other}");
        }
        let lost = std::io::Error::other("the disk is full");
        assert!(!super::is_full(&lost.into()));
    }
}
