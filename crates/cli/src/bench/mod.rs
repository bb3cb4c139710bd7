//! `everbloom bench`: how many commands a second a server answers, and with what latency.
//!
//! - [`items`], [`keys`]: the items, each a function of its number, and the keys that hold them
//! - [`requests`]: requests encoded before the clock starts
//! - [`mod@load`]: the event loop that sends them
//! - [`scan`]: checks every reply as it arrives
//! - [`histogram`], [`report`]: the results

mod histogram;
mod items;
mod keys;
mod load;
mod report;
mod requests;
mod scan;
mod target;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::Failure;
use crate::client::{Client, LoginArgs, Target};
use items::Bitmap;
use keys::Keys;
use load::{Limit, Load, LoadError, Shared, Tally};
use report::Report;
use requests::{Recipe, Ring, Verb};
use target::{DEFAULT_KEY, Prepared, Reservation};

/// Put a load on a server and measure throughput and latency
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The server as `redis://HOST[:PORT]`, in place of --host and --port
    #[arg(long, value_name = "URL", conflicts_with_all = ["host", "port"])]
    url: Option<String>,
    /// The server's host name or address
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The server's port
    #[arg(long, default_value_t = 6379)]
    port: u16,
    #[command(flatten)]
    login: LoginArgs,
    /// What to send
    #[arg(long, value_enum, default_value_t = Verb::Exists)]
    command: Verb,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    clients: usize,
    /// Requests that a connection sends before it waits for the replies
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pipeline: usize,
    /// Items of one BF.MADD or BF.MEXISTS
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = at_least_one)]
    items_per_command: usize,
    /// The share of items that were added before [default: 0.5 for probes, 0 for adds]
    #[arg(long, value_name = "SHARE")]
    hit_share: Option<f64>,
    /// Stop after so many requests
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Stop after so many seconds [default: 5 without --requests]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// The filter to make, and more words for BF.RESERVE [default: 1000000,0.01; 100,0.01 for each
    /// of several bitmaps]
    #[arg(long, value_name = "CAPACITY,ERROR[,WORD...]")]
    reserve: Option<Reservation>,
    /// Items to add before the measured part [default: 0 for adds, 100000 for probes, one for each
    /// key for probes of several keys]
    #[arg(long, value_name = "N")]
    fill: Option<u64>,
    /// Use the keys as a run with --keep and this --fill, --keys and --seed left them
    #[arg(long, value_name = "N", conflicts_with = "fill")]
    filled: Option<u64>,
    /// Leave the keys on the server
    #[arg(long)]
    keep: bool,
    /// The key of the filter; any but the default must not exist, unless --filled is given
    #[arg(long, default_value = DEFAULT_KEY)]
    key: String,
    /// Spread the items over so many keys, KEY:0, KEY:1 and so on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    keys: usize,
    /// Threads to send from
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    threads: usize,
    /// The seed of the items
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Every reply is checked: an error, a byte that was not due, or an added item that the filter does
not know ends the run with exit code 1. Latency is that of a batch: from the first byte of
--pipeline requests to the last byte of their replies. When the load generator is busy all the
time, it is what was measured, not the server: give it --threads and cores of its own.

The commands setbit and getbit are what clients without filter commands do: a request is then one
item, its k SETBIT or GETBIT in a pipeline; --reserve says how large the bitmap is.

With --keys, each request of add, exists, setbit or getbit names one of many small filters or
bitmaps. The item decides the key, and an added item is looked for under its own key. --fill gives
all keys the same number of items, in turn; the measured requests name the keys in random order.
The first add makes a filter, with the settings that the server uses by default, so --reserve is
only for bitmaps. The numbers in the keys have zeros in front: of 300000 keys the first is
KEY:000000.

Examples:
  everbloom bench --command echo --pipeline 128
  everbloom bench --command mexists --reserve 10000000,0.001 --fill 10000000 --pipeline 16
  everbloom bench --command mexists --reserve 10000000,0.001,LAYOUT,BLOCKED
  everbloom bench --command getbit --url redis://127.0.0.1:7000 --json
  everbloom bench --command exists --keys 300000 --fill 3000000 --pipeline 128";

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1_000_000) => Ok(number),
        _ => Err("expected a number from 1 to 1000000".to_owned()),
    }
}

/// The checked flags, and what follows from them.
#[derive(Debug)]
struct Setup {
    target: Target,
    recipe: Recipe,
    reserve: Reservation,
    /// The number of items to add first. `None` when the key is used as it is.
    fill: Option<u64>,
    limit: Limit,
    threads: usize,
}

/// No limit on requests or time.
const NO_LIMIT: Limit = Limit {
    requests: u64::MAX,
    time: Duration::MAX,
};

/// The number of items added to a single key before the measured part when no flag states it.
const FILL: u64 = 100_000;

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

impl Setup {
    fn new(args: &Args) -> Result<Self, Failure> {
        let (host, port) = match &args.url {
            Some(url) => crate::client::parse_url(url).map_err(Failure::Usage)?,
            None => (args.host.clone(), args.port),
        };
        let target = Target {
            host,
            port,
            protocol: everbloom_resp::Protocol::Resp2,
            credentials: args.login.credentials(),
        };
        let verb = args.command;
        let keys = keys(args)?;
        let usual = match keys.count() {
            _ if !verb.probes() => 0,
            1 => FILL,
            count => count,
        };
        let present = args.filled.or(args.fill).unwrap_or(usual);
        let (hit_share, limit) = (hit_share(args, present)?, limit(args)?);
        let reserve = args.reserve.clone();
        let reserve = reserve.unwrap_or_else(|| Reservation::usual(keys.several()));
        let bitmap = if verb.is_bitmap() {
            Bitmap::new(reserve.capacity, reserve.error_rate).ok_or_else(|| {
                let text = "--reserve: a Redis string has not enough bits for such a filter";
                Failure::Usage(text.to_owned())
            })?
        } else {
            // Filters may be larger than any bitmap, so this does not check the size.
            Bitmap::default()
        };
        Ok(Self {
            target,
            recipe: Recipe {
                verb,
                keys,
                items: if verb.takes_several() {
                    args.items_per_command
                } else {
                    1
                },
                bitmap,
                seed: args.seed,
                present,
                hit_share,
                filling: false,
            },
            reserve,
            fill: (args.filled.is_none() && verb != Verb::Echo).then_some(present),
            limit,
            threads: args.threads.min(args.clients),
        })
    }
}

fn keys(args: &Args) -> Result<Keys, Failure> {
    let keys = Keys::new(&args.key, args.keys as u64);
    let wrong = if !keys.several() {
        None
    } else if !args.command.takes_keys() {
        Some("--keys goes with the commands add, exists, setbit and getbit")
    } else if args.reserve.is_some() && !args.command.is_bitmap() {
        Some("--reserve makes one filter: with --keys, the first add makes each filter")
    } else {
        None
    };
    wrong.map_or(Ok(keys), |text| Err(Failure::Usage(text.to_owned())))
}

fn hit_share(args: &Args, present: u64) -> Result<f64, Failure> {
    let usual = if args.command.probes() && present > 0 {
        0.5
    } else {
        0.0
    };
    let share = args.hit_share.unwrap_or(usual);
    if !(0.0..=1.0).contains(&share) {
        return Err(Failure::Usage("--hit-share goes from 0 to 1".to_owned()));
    }
    if share > 0.0 && present == 0 {
        let text = "--hit-share needs items that were added: give --fill";
        return Err(Failure::Usage(text.to_owned()));
    }
    Ok(share)
}

fn limit(args: &Args) -> Result<Limit, Failure> {
    let seconds = match (args.seconds, args.requests) {
        (None, None) => Some(5.0),
        (seconds, _) => seconds,
    };
    let time = match seconds.map(Duration::try_from_secs_f64) {
        Some(Ok(time)) => time,
        Some(Err(_)) => {
            return Err(Failure::Usage("--seconds is not a time".to_owned()));
        }
        None => NO_LIMIT.time,
    };
    Ok(Limit {
        requests: args.requests.unwrap_or(NO_LIMIT.requests),
        time,
    })
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
        _ if setup.recipe.keys.several() => (Verb::Add, 1, 64),
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
    let bar = progress(if recipe.filling { "filling" } else { "load" }, limit);
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
) -> Result<Tally, LoadError> {
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
