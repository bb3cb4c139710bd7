//! A spread filter is created, opened, checked, and repaired.
//!
//! The first generation and the record of every shard are made with the filter. So a shard whose
//! keys are all missing was lost: no shard begins without them.

use redis::{Cmd, Pipeline, RedisResult, Value};

use super::SpreadFilter;
use super::parameters::{MAX_GENERATIONS, SpreadParameters};
use super::round::{Refusal, refusal};
use super::shards::Generations;
use crate::Error;
use crate::name::parameters_key;
use crate::wire::{SideBySide, ask_each, ask_one, read};

/// Follows the parameters while the first keys are being created.
const UNFINISHED: &str = ", unfinished";

/// What the server has of a shard.
struct Found {
    record: Option<Generations>,
    /// Which generations exist.
    exists: Vec<bool>,
}

impl Found {
    fn exists(&self, generation: u32) -> bool {
        let at = usize::try_from(generation).ok();
        at.and_then(|at| self.exists.get(at)).is_some_and(|it| *it)
    }

    fn is_empty(&self) -> bool {
        self.record.is_none() && !self.exists.contains(&true)
    }
}

impl SpreadFilter {
    pub(super) async fn make<W: SideBySide>(
        wire: &mut W,
        name: &str,
        capacity: u64,
        error_rate: f64,
        shards: u32,
    ) -> Result<Self, Error> {
        let filter = SpreadFilter::of(name, SpreadParameters::new(capacity, error_rate, shards)?)?;
        let key = parameters_key(name)?;
        // Reads first: the filter usually exists, and a replica allows only reads.
        let mut found = filter.made_as(wire).await?;
        if found.is_none() {
            let is_new = filter.find_all(wire).await?.iter().all(Found::is_empty);
            found = filter.made_as(wire).await?;
            if found.is_none() && !is_new {
                return Err(filter.shards.missing(vec![key]));
            }
        }
        let unfinished = format!("{}{UNFINISHED}", filter.parameters());
        if found.is_none() {
            let set = Cmd::set(&key, &unfinished).arg("NX").take();
            ask_one::<_, ()>(wire, name, &set).await?;
            // Another program may have been faster.
            found = filter.made_as(wire).await?;
        }
        match found {
            Some(made) if made == unfinished => {
                let all = filter
                    .shards
                    .places()
                    .map(|shard| (shard, Generations::FIRST));
                filter.make_again(wire, all.collect()).await?;
                filter.finish(wire).await?;
                Ok(filter)
            }
            Some(_) => {
                filter.check(wire).await?;
                Ok(filter)
            }
            None => Err(Error::NotFound {
                name: name.to_owned(),
                key,
            }),
        }
    }

    pub(super) async fn find<W: SideBySide>(wire: &mut W, name: &str) -> Result<Self, Error> {
        let key = parameters_key(name)?;
        let found: Option<String> = ask_one(wire, name, &Cmd::get(&key)).await?;
        let Some(found) = found.filter(|found| !found.ends_with(UNFINISHED)) else {
            let name = name.to_owned();
            return Err(Error::NotFound { name, key });
        };
        let Some(parameters) = SpreadParameters::parse(&found) else {
            return Err(Error::Unreadable { key, found });
        };
        let filter = SpreadFilter::of(name, parameters)?;
        filter.check(wire).await?;
        Ok(filter)
    }

    pub(super) async fn mend<W: SideBySide>(
        wire: &mut W,
        name: &str,
        capacity: u64,
        error_rate: f64,
        shards: u32,
    ) -> Result<(Self, Vec<String>), Error> {
        let filter = SpreadFilter::of(name, SpreadParameters::new(capacity, error_rate, shards)?)?;
        let made = filter.made_as(wire).await?;
        let found = filter.find_all(wire).await?;
        let is_new = made.is_none() && found.iter().all(Found::is_empty);
        let is_unfinished = made.as_ref().is_some_and(|text| text.ends_with(UNFINISHED));
        if is_new || is_unfinished {
            let made = SpreadFilter::make(wire, name, capacity, error_rate, shards).await?;
            return Ok((made, Vec::new()));
        }
        let mut missing = Vec::new();
        if made.is_none() {
            missing.push(parameters_key(name)?);
        }
        let mut again = Vec::new();
        for (shard, found) in found.iter().enumerate() {
            let before = missing.len();
            let generations = filter.repaired(shard, found, &mut missing);
            if missing.len() > before {
                again.push((shard, generations));
            }
            filter.shards.remember(shard, generations);
        }
        filter.make_again(wire, again).await?;
        if made.is_none() {
            filter.finish(wire).await?;
        }
        Ok((filter, missing))
    }

    /// The generations of a shard after its repair. Of those that are missing, only the newest is
    /// made again: the others were full, and must not take items that a newer one may have.
    fn repaired(&self, shard: usize, found: &Found, missing: &mut Vec<String>) -> Generations {
        let existing = Generations::of_existing(|generation| found.exists(generation));
        let mut generations = found.record.unwrap_or(existing);
        let newest = generations.newest();
        for generation in generations.live() {
            if !found.exists(generation) {
                missing.push(self.shards.key(shard, generation));
                if generation != newest {
                    generations = generations.with_given_up(generation);
                }
            }
        }
        if found.record.is_none() {
            missing.push(self.shards.record(shard));
        }
        generations
    }

    /// The text of the parameters on the server; an error if another one has made the filter.
    async fn made_as<W: SideBySide>(&self, wire: &mut W) -> Result<Option<String>, Error> {
        let get = Cmd::get(parameters_key(self.name())?);
        let found: Option<String> = ask_one(wire, self.name(), &get).await?;
        let wanted = self.parameters().to_string();
        match found {
            Some(found) if found.strip_suffix(UNFINISHED).unwrap_or(&found) != wanted => {
                Err(Error::OtherParameters {
                    name: self.name().to_owned(),
                    wanted,
                    found,
                })
            }
            found => Ok(found),
        }
    }

    /// Says that all keys are made.
    async fn finish<W: SideBySide>(&self, wire: &mut W) -> Result<(), Error> {
        let key = parameters_key(self.name())?;
        let set = Cmd::set(key, self.parameters().to_string());
        ask_one(wire, self.name(), &set).await
    }

    /// Makes the newest generation of these shards, unless it exists, and then their records.
    async fn make_again<W: SideBySide>(
        &self,
        wire: &mut W,
        shards: Vec<(usize, Generations)>,
    ) -> Result<(), Error> {
        let makes = shards.iter().map(|(shard, generations)| {
            let mut pipeline = pipeline();
            self.shards
                .make(&mut pipeline, *shard, generations.newest());
            pipeline
        });
        let makes: Vec<Pipeline> = makes.collect();
        let is_made = |reply: RedisResult<Value>| match reply {
            Err(error) if refusal(&error) != Some(Refusal::Exists) => Err(error),
            _ => Ok(()),
        };
        for replies in wire.ask_each(&makes).await {
            // A cluster's blocking connection returns the first error instead of all replies.
            let replies = replies.unwrap_or_else(|error| vec![Err(error)]);
            let made: RedisResult<()> = replies.into_iter().try_for_each(is_made);
            made.map_err(|error| Error::of(error, self.name()))?;
        }
        let notes = shards.iter().map(|(shard, generations)| {
            let mut pipeline = pipeline();
            self.shards.note(&mut pipeline, *shard, *generations);
            pipeline
        });
        let notes: Vec<Pipeline> = notes.collect();
        ask_each(wire, self.name(), &notes).await.map(drop)
    }

    /// Whether all keys of all shards exist.
    pub(super) async fn check<W: SideBySide>(&self, wire: &mut W) -> Result<(), Error> {
        let mut missing = Vec::new();
        for (shard, found) in self.find_all(wire).await?.iter().enumerate() {
            let shards = &self.shards;
            if found.record.is_none() {
                missing.push(shards.record(shard));
            }
            let generations = found.record.unwrap_or_else(|| shards.known(shard));
            let lost = generations.live().filter(|it| !found.exists(*it));
            missing.extend(lost.map(|generation| shards.key(shard, generation)));
            shards.remember(shard, generations);
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(self.shards.missing(missing)),
        }
    }

    /// Finds out which keys of each shard exist.
    async fn find_all<W: SideBySide>(&self, wire: &mut W) -> Result<Vec<Found>, Error> {
        let replies = self.each(wire, |shard, pipeline| {
            pipeline.get(self.shards.record(shard));
            for generation in 0..MAX_GENERATIONS {
                pipeline.exists(self.shards.key(shard, generation));
            }
        });
        let mut all = Vec::new();
        for (shard, replies) in replies.await?.iter().enumerate() {
            let mut replies = replies.iter();
            let record = self.shards.parse(shard, read(replies.next())?)?;
            let exists = replies.map(|reply| read(Some(reply)));
            all.push(Found {
                record,
                exists: exists.collect::<Result<_, _>>()?,
            });
        }
        Ok(all)
    }

    pub(super) async fn sum<W: SideBySide>(&self, wire: &mut W) -> Result<u64, Error> {
        self.check(wire).await?;
        let mut sum = 0;
        let replies = self.each(wire, |shard, pipeline| {
            for generation in self.shards.known(shard).live() {
                pipeline
                    .cmd("BF.CARD")
                    .arg(self.shards.key(shard, generation));
            }
        });
        for reply in replies.await?.iter().flatten() {
            sum += read::<u64>(Some(reply))?;
        }
        Ok(sum)
    }

    pub(super) async fn remove<W: SideBySide>(&self, wire: &mut W) -> Result<(), Error> {
        let replies = self.each(wire, |shard, pipeline| {
            let shards = &self.shards;
            let generations = (0..MAX_GENERATIONS).map(|generation| shards.key(shard, generation));
            for key in generations.chain([shards.record(shard), shards.marker(shard)]) {
                pipeline.cmd("UNLINK").arg(key);
            }
        });
        replies.await?;
        let last = Cmd::unlink(parameters_key(self.name())?);
        ask_one(wire, self.name(), &last).await
    }

    /// Sends commands to each shard; the replies by shard.
    async fn each<W: SideBySide>(
        &self,
        wire: &mut W,
        commands: impl Fn(usize, &mut Pipeline),
    ) -> Result<Vec<Vec<Value>>, Error> {
        let pipelines = self.shards.places().map(|shard| {
            let mut pipeline = pipeline();
            commands(shard, &mut pipeline);
            pipeline
        });
        let pipelines: Vec<Pipeline> = pipelines.collect();
        ask_each(wire, self.name(), &pipelines).await
    }
}

fn pipeline() -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.ignore_errors();
    pipeline
}
