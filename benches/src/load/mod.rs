//! `load`: puts a load on one server and prints throughput and latency as JSON.
//!
//! - [`setup`]: the flags, and what they mean together
//! - [`prepared`]: the keys that the load works on
//! - [`items`], [`keys`]: the items, each a function of its number, and the keys that hold them
//! - [`requests`]: requests encoded before the clock starts
//! - [`stream`]: TCP, TLS and Unix sockets that do not block
//! - [`answers`], [`tally`]: what replies say, and the counts of a run
//! - [`connections`]: the event loop that sends the requests and checks every reply
//! - [`paced`]: the event loop that sends them by a schedule

mod answers;
mod connections;
mod items;
mod keys;
mod paced;
mod prepared;
mod requests;
mod reservation;
mod setup;
mod stream;
mod tally;

use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use connections::{Limit, Load};
use paced::Paced;
use prepared::Prepared;
use requests::{Recipe, Ring, Verb};
use setup::Setup;
use stream::Stream;
use tally::Tally;

/// What a run prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    pub requests_per_second: f64,
    pub items_per_second: f64,
    pub requests: u64,
    pub seconds: f64,
    /// The share of items whose answer was 1: a probe found them, or an add found them new.
    pub positive_share: Option<f64>,
    /// For probes only: the share found among the items that were never added.
    pub false_positive_share: Option<f64>,
    pub latency_us: Latency,
    /// The share of the time in which the load generator did not wait for the server.
    pub generator_busy: f64,
    /// The share of one processor that the load generator took.
    pub generator_cpu: f64,
    /// With --server-process: the processor time of the server for a request.
    pub server_us: Option<f64>,
    /// With --server-process: the share of one processor that other programs took.
    pub others_cpu: Option<f64>,
    /// With --rate.
    pub schedule: Option<Lateness>,
}

/// The latency of batches in microseconds, from the first byte sent to the last byte received.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// How well the load generator kept its schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lateness {
    /// By how many microseconds requests were sent after they were due.
    pub late_us: Latency,
    /// The share of the requests that were sent on a connection that waited for an earlier one.
    pub behind_share: f64,
}

/// Runs `load` with these flags and prints the figures.
pub fn run(flags: &[String]) -> Result<()> {
    let setup = Setup::new(flags)?;
    let mut key = Prepared::new(&setup)?;
    if let Some(items) = setup.fill {
        fill(&setup, items, &mut key)?;
    }
    let tally = match setup.rate {
        Some(rate) => paced(&setup, rate)?,
        None => load(
            &setup,
            &setup.recipe,
            setup.pipeline,
            setup.clients,
            setup.limit,
        )?,
    };
    if !setup.keep {
        key.delete()?;
    }
    let figures = Figures::new(&setup.recipe, &tally);
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

/// Adds the items that the measured part will find.
fn fill(setup: &Setup, items: u64, key: &mut Prepared) -> Result<()> {
    let several = setup.recipe.keys.several();
    let (verb, per_request, batch) = match setup.recipe.verb {
        verb if verb.is_bitmap() => (Verb::Setbit, 1, 64),
        // Items that follow each other have different keys, so each needs a request.
        verb if several && verb.is_cuckoo() => (Verb::CfAdd, 1, 64),
        _ if several => (Verb::Add, 1, 64),
        verb if verb.is_cuckoo() => (Verb::CfInsert, 100, 16),
        _ => (Verb::Madd, 100, 16),
    };
    let recipe = Recipe {
        verb,
        items: per_request,
        hit_share: 0.0,
        filling: true,
        ..setup.recipe.clone()
    };
    let per_request = per_request as u64;
    let whole = Limit {
        requests: items / per_request,
        time: Duration::MAX,
    };
    if whole.requests > 0 {
        load(setup, &recipe, batch, 4, whole)?;
    }
    key.add_rest(&recipe, items - items % per_request..items)
}

fn load(
    setup: &Setup,
    recipe: &Recipe,
    batch: usize,
    clients: usize,
    limit: Limit,
) -> Result<Tally> {
    let ring = Ring::new(recipe.clone(), batch, clients);
    let tally = Tally::new(setup.server_process)?;
    Load::new(open(setup, clients)?, ring, recipe, batch, limit, tally).run()
}

fn paced(setup: &Setup, rate: f64) -> Result<Tally> {
    let streams = open(setup, setup.clients)?;
    let ring = Ring::new(setup.recipe.clone(), 1, setup.clients);
    let tally = Tally::new(setup.server_process)?;
    Paced::new(streams, ring, &setup.recipe, setup.limit, rate, tally)?.run()
}

fn open(setup: &Setup, clients: usize) -> Result<Vec<Stream>> {
    (0..clients).map(|_| setup.target.open()).collect()
}

impl Figures {
    fn new(recipe: &Recipe, tally: &Tally) -> Self {
        let seconds = tally.elapsed.as_secs_f64();
        let a_second = |count: u64| count as f64 / seconds.max(f64::MIN_POSITIVE);
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let per_request = |time: Duration| time.as_secs_f64() * 1e6 / tally.requests.max(1) as f64;
        Self {
            requests_per_second: a_second(tally.requests),
            items_per_second: a_second(tally.items),
            requests: tally.requests,
            seconds,
            positive_share: share(tally.positives, tally.items),
            false_positive_share: share(tally.other_positives, tally.others)
                .filter(|_| recipe.verb.probes()),
            latency_us: Latency::of(&tally.latency),
            generator_busy: 1.0 - (tally.waited.as_secs_f64() / seconds).clamp(0.0, 1.0),
            generator_cpu: tally.generator.as_secs_f64() / seconds,
            server_us: tally.server.map(per_request),
            others_cpu: tally.server.map(|server| {
                let others = tally.busy.saturating_sub(server + tally.generator);
                others.as_secs_f64() / seconds
            }),
            schedule: (!tally.lateness.is_empty()).then(|| Lateness {
                late_us: Latency::of(&tally.lateness),
                behind_share: tally.behind as f64 / tally.lateness.len() as f64,
            }),
        }
    }
}

impl Latency {
    fn of(nanos: &Histogram<u64>) -> Self {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        Self {
            p50: micros(nanos.value_at_quantile(0.5)),
            p99: micros(nanos.value_at_quantile(0.99)),
            p99_9: micros(nanos.value_at_quantile(0.999)),
            max: micros(nanos.max()),
        }
    }
}
