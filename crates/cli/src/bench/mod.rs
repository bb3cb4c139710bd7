//! `everbloom bench`: how many commands a second a server answers, and with what latency.
//!
//! - [`mod@args`], [`setup`]: the flags, and what they mean together
//! - [`target`]: the key that the load works on
//! - [`items`], [`keys`]: the items, each a function of its number, and the keys that hold them
//! - [`requests`]: requests encoded before the clock starts
//! - [`mod@load`]: the event loop that sends them
//! - [`scan`]: checks every reply as it arrives
//! - [`histogram`], [`report`]: the results

mod args;
mod histogram;
mod items;
mod keys;
mod load;
mod report;
mod requests;
mod scan;
mod setup;
mod target;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::client::Client;
use crate::failure::Failure;
use load::{BenchError, Limit, Load, Shared, Tally};
use report::Report;
use requests::{Recipe, Ring, Verb};
use setup::{NO_LIMIT, Setup};
use target::Prepared;

pub(crate) use args::Args;

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let setup = Setup::new(args)?;
    let mut key = Prepared::new(&setup.target, &setup.recipe, &setup.reserve, setup.fill)?;
    if let Some(items) = setup.fill {
        fill(&setup, items, &mut key)?;
    }
    let shares = split(args.clients, setup.threads);
    let tally = load(&setup, &setup.recipe, args.pipeline, &shares, setup.limit)?;
    if !args.keep {
        key.delete()?;
    }
    let report = Report::new(args, &setup, &tally);
    let text = if args.json {
        report.json()
    } else {
        report.to_string()
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The number of connections for each thread, as even as possible.
fn split(clients: usize, threads: usize) -> Vec<usize> {
    (0..threads)
        .map(|thread| clients / threads + usize::from(thread < clients % threads))
        .collect()
}

/// Adds the items that the measured part will find.
fn fill(setup: &Setup, items: u64, key: &mut Prepared) -> Result<(), Failure> {
    let (verb, per_request, batch) = match setup.recipe.verb {
        verb if verb.is_bitmap() => (Verb::Setbit, 1, 64),
        // Items that follow each other have different keys, so each needs a request.
        verb if setup.recipe.keys.several() && verb.is_cuckoo() => (Verb::CfAdd, 1, 64),
        _ if setup.recipe.keys.several() => (Verb::Add, 1, 64),
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
        ..NO_LIMIT
    };
    if whole.requests > 0 {
        load(setup, &recipe, batch, &[4], whole)?;
    }
    key.add_rest(&recipe, items - items % per_request..items)
}

/// Runs the load with one thread for each share of the connections.
fn load(
    setup: &Setup,
    recipe: &Recipe,
    batch: usize,
    shares: &[usize],
    limit: Limit,
) -> Result<Tally, Failure> {
    let shared = Shared::default();
    let shape = recipe.shape();
    let mut loads = Vec::new();
    let mut left = limit.requests;
    for (thread, &clients) in shares.iter().enumerate() {
        let streams = (0..clients)
            .map(|_| Ok(Client::connect(&setup.target)?.into_stream()))
            .collect::<Result<Vec<_>, Failure>>()?;
        let ring = Ring::new(recipe.clone(), batch, clients, thread as u64);
        let requests = left / (shares.len() - thread) as u64;
        left -= requests;
        let limit = Limit { requests, ..limit };
        let load = Load::new(streams, ring, (recipe.verb, &shape), batch, limit, &shared)?;
        loads.push(load);
    }
    let bar = if setup.quiet {
        ProgressBar::hidden()
    } else {
        progress(if recipe.filling { "filling" } else { "load" }, limit)
    };
    let outcome = wait(loads, &shared, &bar, limit);
    bar.finish_and_clear();
    outcome.map_err(|error| Failure::Server(error.to_string()))
}

/// Runs the threads and moves the bar.
fn wait(
    loads: Vec<Load<'_>>,
    shared: &Shared,
    bar: &ProgressBar,
    limit: Limit,
) -> Result<Tally, BenchError> {
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for load in loads {
            let sender = sender.clone();
            // Sending succeeds, because the receiver lives until all threads have sent.
            scope.spawn(move || sender.send(load.run()).is_ok());
        }
        drop(sender);
        let mut total = Ok(Tally::default());
        loop {
            match receiver.recv_timeout(Duration::from_millis(100)) {
                Ok(Ok(tally)) => {
                    if let Ok(total) = &mut total {
                        total.merge(&tally);
                    }
                }
                Ok(Err(error)) => {
                    shared.stop.store(true, Ordering::Relaxed);
                    // Keep the first error.
                    total = total.and(Err(error));
                }
                Err(RecvTimeoutError::Disconnected) => return total,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if limit.requests == NO_LIMIT.requests {
                bar.set_position(u64::try_from(bar.elapsed().as_millis()).unwrap_or(u64::MAX));
            } else {
                bar.set_position(shared.done.load(Ordering::Relaxed));
            }
        }
    })
}

/// A bar on stderr, of requests or of time. indicatif shows nothing when stderr is not a terminal.
fn progress(what: &'static str, limit: Limit) -> ProgressBar {
    let steps = if limit.requests == NO_LIMIT.requests {
        u64::try_from(limit.time.as_millis()).unwrap_or(u64::MAX)
    } else {
        limit.requests
    };
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent}%") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}
