//! Batches of items, split by shard and sent in parallel.
//!
//! The filters of a shard are its generations. All but the newest are full, and a full filter
//! always refuses new items. So an item goes into a generation only after the one before has
//! refused it, and then no earlier generation has it. When several programs add an item at the same
//! time, exactly one gets "new", although the programs do not coordinate.
//!
//! No command that adds makes a filter, and each look-up also asks which generations exist. So a
//! generation that was lost is an error, and not a filter that looks empty.

use redis::{Pipeline, RedisError, RedisResult, Value};

use super::parameters::MAX_GENERATIONS;
use super::shards::{Generations, Shards, Wait};
use crate::wire::{Action, Replies, SideBySide, read};
use crate::{BatchError, Error};

/// The most items in flight.
const ITEMS: usize = 16_384;
/// About the most bytes in flight.
const BYTES: usize = 4 << 20;

/// An operation on items.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub(super) action: Action,
    pub(super) wait: Wait,
}

/// What is done next for the items of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Look them up in all known generations, and read the record.
    LookUp,
    /// Add them to the newest generation.
    Add,
    /// Make this generation, because the one before is full.
    Make(u32),
    /// Record this generation. Nothing is added to one that is not recorded.
    Record(u32),
}

/// The items of a shard that have no answer yet, by their places in the batch.
struct Part {
    shard: usize,
    places: Vec<usize>,
    /// The generations that this part is sent to.
    known: Generations,
    /// A generation that has refused an item.
    full: Option<u32>,
    step: Step,
}

/// Does something with items of any number.
pub(super) async fn run<W: SideBySide, T: AsRef<[u8]>>(
    wire: &mut W,
    filter: &Shards,
    items: &[T],
    operation: Operation,
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
        if let Some(error) = window(wire, filter, items, start..end, operation, &mut answers).await
        {
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
    operation: Operation,
    answers: &mut [Option<bool>],
) -> Option<Error> {
    let mut of_shard = vec![Vec::new(); filter.places().len()];
    for (place, item) in items.iter().enumerate().take(places.end).skip(places.start) {
        if let Some(part) = of_shard.get_mut(filter.parameters.shard_of(item.as_ref())) {
            part.push(place);
        }
    }
    let parts = of_shard.into_iter().enumerate();
    let parts = parts.filter(|(_, places)| !places.is_empty());
    let begin = |(shard, places)| Part::new(filter, shard, places, operation.action);
    let mut parts: Vec<Part> = parts.map(begin).collect();
    let mut failure = None;
    while !parts.is_empty() {
        let pipelines: Vec<Pipeline> = parts
            .iter()
            .map(|part| part.question(filter, items, operation))
            .collect();
        let replies = wire.ask_each(&pipelines).await;
        let mut rest = Vec::new();
        for (part, replies) in parts.into_iter().zip(replies) {
            match part.take(filter, operation, replies, answers) {
                Ok(more) => rest.extend(more),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        parts = rest;
    }
    failure
}

impl Part {
    fn new(filter: &Shards, shard: usize, places: Vec<usize>, action: Action) -> Part {
        let known = filter.known(shard);
        let adds = action == Action::Add && known == Generations::FIRST;
        Part {
            shard,
            places,
            known,
            full: None,
            step: if adds { Step::Add } else { Step::LookUp },
        }
    }

    fn question<T: AsRef<[u8]>>(
        &self,
        filter: &Shards,
        items: &[T],
        operation: Operation,
    ) -> Pipeline {
        let shard = self.shard;
        let items = self.places.iter().filter_map(|place| items.get(*place));
        let items: Vec<&[u8]> = items.map(AsRef::as_ref).collect();
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        match self.step {
            Step::LookUp => {
                // While a slot moves, its new node answers the first command of a redirected
                // pipeline although it may not have the key yet. So this answer is not used.
                pipeline.get(filter.record(shard));
                for generation in self.known.live().rev() {
                    pipeline.bf_mexists(filter.key(shard, generation), &items);
                }
                // After the look-ups: what exists now was there when it was asked.
                for generation in self.known.live() {
                    pipeline.exists(filter.key(shard, generation));
                }
                pipeline.get(filter.record(shard));
            }
            Step::Add => {
                let key = filter.key(shard, self.known.newest());
                let insert = pipeline.cmd("BF.INSERT").arg(key);
                insert.arg("NOCREATE").arg("ITEMS").arg(&items);
            }
            Step::Make(generation) => filter.make(&mut pipeline, shard, generation),
            Step::Record(generation) => {
                let made = Generations::FIRST.with_made(generation);
                filter.note(&mut pipeline, shard, made);
            }
        }
        if self.must_wait(operation) {
            filter.wait(&mut pipeline, shard, operation.wait);
        }
        pipeline
    }

    /// Whether the answers count only when the replicas have everything. Those of a look-up do, too:
    /// what is known may be what a failed call has added.
    fn must_wait(&self, operation: Operation) -> bool {
        let has_answers = matches!(self.step, Step::LookUp | Step::Add);
        operation.action == Action::Add && operation.wait.replicas > 0 && has_answers
    }

    /// Takes the available answers. What is left needs another step.
    fn take(
        self,
        filter: &Shards,
        operation: Operation,
        replies: Replies,
        answers: &mut [Option<bool>],
    ) -> Result<Option<Part>, Error> {
        let mut replies = match replies {
            Ok(replies) => replies,
            // A cluster's blocking connection returns the first error instead of all replies.
            Err(error) => vec![Err(error)],
        };
        // An error comes first, because a wait behind it has waited for nothing.
        let fails = |reply: &RedisResult<Value>| match reply {
            Err(error) if !self.expects(error) => Some(Error::of(error.clone(), &filter.name)),
            _ => None,
        };
        if let Some(error) = replies.iter().find_map(fails) {
            return Err(error);
        }
        if self.must_wait(operation) && replies.first().is_some_and(Result::is_ok) {
            let reached: u32 = read(replies.pop().transpose().ok().flatten().as_ref())?;
            if reached < operation.wait.replicas {
                let wanted = operation.wait.replicas;
                return Err(Error::Replicas { reached, wanted });
            }
        }
        let first = replies.first().cloned();
        match (self.step, first) {
            (Step::LookUp, _) => {
                let replies = replies.into_iter().flatten().collect();
                self.take_found(filter, operation.action, replies, answers)
            }
            (Step::Add, Some(Err(error))) => Ok(Some(self.refused(refusal(&error)))),
            (Step::Add, reply) => {
                let reply = reply.and_then(Result::ok);
                self.take_added(filter, reply.as_ref(), answers)
            }
            (Step::Make(generation), _) => Ok(Some(Part {
                step: Step::Record(generation),
                ..self
            })),
            (Step::Record(generation), _) => {
                let known = self.known.with_made(generation);
                filter.remember(self.shard, known);
                Ok(Some(Part {
                    known,
                    step: Step::Add,
                    ..self
                }))
            }
        }
    }

    /// Whether an error is an answer to this step.
    fn expects(&self, error: &RedisError) -> bool {
        match refusal(error) {
            Some(Refusal::Full | Refusal::Missing) => self.step == Step::Add,
            Some(Refusal::Exists) => matches!(self.step, Step::Make(_)),
            None => false,
        }
    }

    fn take_found(
        self,
        filter: &Shards,
        action: Action,
        replies: Vec<Value>,
        answers: &mut [Option<bool>],
    ) -> Result<Option<Part>, Error> {
        let mut replies = replies.iter().skip(1);
        let mut found = vec![false; self.places.len()];
        for _ in self.known.live() {
            let known: Vec<bool> = read(replies.next())?;
            for (found, known) in found.iter_mut().zip(known) {
                *found |= known;
            }
        }
        let mut missing = Vec::new();
        for generation in self.known.live() {
            if !read::<bool>(replies.next())? {
                missing.push(generation);
            }
        }
        let record = filter.parse(self.shard, read(replies.next())?)?;
        let record = record.ok_or_else(|| filter.missing(vec![filter.record(self.shard)]))?;
        missing.retain(|generation| !record.was_given_up(*generation));
        if !missing.is_empty() {
            let keys = missing.into_iter();
            let keys = keys.map(|generation| filter.key(self.shard, generation));
            return Err(filter.missing(keys.collect()));
        }
        let known = self.known.with(record);
        filter.remember(self.shard, known);
        let is_newer = known
            .live()
            .any(|new| !self.known.live().any(|old| old == new));
        let mut left = Vec::new();
        for (place, found) in self.places.iter().zip(found) {
            let answer = match (action, found) {
                (Action::Add, true) => Some(false),
                (Action::LookUp, true) => Some(true),
                (Action::LookUp, false) if !is_newer => Some(false),
                _ => None,
            };
            match answers.get_mut(*place) {
                Some(slot) if answer.is_some() => *slot = answer,
                _ => left.push(*place),
            }
        }
        if left.is_empty() {
            return Ok(None);
        }
        let newest = known.newest();
        let step = match action {
            Action::LookUp => Step::LookUp,
            Action::Add if is_newer => Step::LookUp,
            Action::Add if self.full != Some(newest) => Step::Add,
            Action::Add if newest + 1 < MAX_GENERATIONS => Step::Make(newest + 1),
            Action::Add => return Err(Error::Shape("a spread filter has at most 31 generations")),
        };
        Ok(Some(Part {
            places: left,
            known,
            step,
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
        let mut left = Vec::new();
        for place in std::mem::take(&mut self.places) {
            match outcomes.next() {
                Some(Ok(new)) => {
                    if let Some(slot) = answers.get_mut(place) {
                        *slot = Some(new);
                    }
                }
                Some(Err(error)) if refusal(&error) != Some(Refusal::Full) => {
                    return Err(Error::of(error, &filter.name));
                }
                Some(Err(_)) | None => left.push(place),
            }
        }
        if left.is_empty() {
            return Ok(None);
        }
        self.places = left;
        Ok(Some(self.refused(Some(Refusal::Full))))
    }

    /// What is left when a filter has refused an item. What follows the first refused item was
    /// perhaps not asked, and may be in this generation. And another program may have made the next
    /// generation, which may be lost.
    fn refused(self, refusal: Option<Refusal>) -> Part {
        let full = match refusal {
            Some(Refusal::Full) => Some(self.known.newest()),
            _ => None,
        };
        Part {
            full,
            step: Step::LookUp,
            ..self
        }
    }
}

/// Why a server refuses to add to a filter, or to make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It has taken as many items as its capacity.
    Full,
    /// It does not exist.
    Missing,
    /// It exists.
    Exists,
}

/// Only the exact error says so: a disk that is full, say, must not start a new generation.
pub(super) fn refusal(error: &RedisError) -> Option<Refusal> {
    let errors = error.clone().into_server_errors().unwrap_or_default();
    let (_, error) = errors.first()?;
    match (error.code(), error.details().unwrap_or_default()) {
        ("ERR", "non scaling filter is full") => Some(Refusal::Full),
        // Without a code, as from older servers, the first word is taken for one.
        ("Non" | "non", "scaling filter is full") => Some(Refusal::Full),
        ("ERR", "not found") | ("not", "found") => Some(Refusal::Missing),
        ("ERR", "item exists") | ("item", "exists") => Some(Refusal::Exists),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_filter_is_full() {
        let refusal = |line: &str| {
            let reply = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
            refusal(&reply.extract_error().unwrap_err())
        };
        for full in [
            "ERR non scaling filter is full",
            "Non scaling filter is full",
        ] {
            assert_eq!(refusal(full), Some(Refusal::Full));
        }
        assert_eq!(refusal("ERR not found"), Some(Refusal::Missing));
        assert_eq!(refusal("ERR item exists"), Some(Refusal::Exists));
        for other in [
            "MISCONF Errors writing to the AOF file: the disk is full",
            "MISCONF a non scaling filter is full",
            "ERR a full resynchronization is under way",
            "ERR Filter is full",
            "ERR non scaling filter is full of surprises",
            "NOREPLICAS the disk of the replica is full",
            "OOM command not allowed: memory is full",
        ] {
            assert_eq!(refusal(other), None, "{other}");
        }
        let lost = std::io::Error::other("the disk is full");
        assert_eq!(super::refusal(&lost.into()), None);
    }
}
