//! The latency of single requests that come by a schedule, at parts of each server's own peak.
//!
//! First the same client measures the peak, with all connections always busy. Then requests come
//! at a fifth, a half and four fifths of it, whatever the server does, and the latency of each
//! counts from the moment that it was due. Each round measures the peak anew, so a slow minute of
//! the machine lowers the rates, too. Servers take turns within a round.
//!
//! A measurement beside which other programs ran is repeated a few times, and the one with the least
//! beside it counts, whatever its figures are.

use std::fmt::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::Options;
use crate::load::Figures;
use crate::machine::Machine;
use crate::server::process::{self, Server};
use crate::stats::{median, short};

/// The parts of the peak.
const SHARES: [f64; 3] = [0.2, 0.5, 0.8];

const CONNECTIONS: &str = "50";

const NO_LOG: [&str; 6] = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];

/// Rewrites of the log are left to `pauses`.
const LOG: [&str; 10] = [
    "--bind",
    "127.0.0.1",
    "--save",
    "",
    "--appendonly",
    "yes",
    "--appendfsync",
    "everysec",
    "--auto-aof-rewrite-percentage",
    "0",
];

/// The share of a core that other programs may take beside a measurement.
const QUIET: f64 = 0.05;

/// Before each measurement, so that the server is at rest.
const PAUSE: Duration = Duration::from_millis(300);

#[derive(Clone, Copy)]
struct Scale {
    rounds: usize,
    /// How often a measurement is taken at most, for a quiet one.
    tries: usize,
    /// Of the peak.
    seconds: &'static str,
    /// Of each rate, so that the 99.9th percentile is of as many.
    requests: &'static str,
    /// Of the filter, and items in it before.
    capacity: u64,
    fill: u64,
}

impl Scale {
    const FULL: Scale = Scale {
        rounds: 5,
        tries: 3,
        seconds: "0.5",
        requests: "60000",
        capacity: 10_000_000,
        fill: 1_000_000,
    };
    const SMOKE: Scale = Scale {
        rounds: 1,
        tries: 1,
        seconds: "0.1",
        requests: "2000",
        capacity: 100_000,
        fill: 1000,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Peer {
    Redis,
    Everbloom,
    RedisBloom,
}

/// A command on a server.
struct Case {
    peer: Peer,
    name: &'static str,
    /// For `load`, as is the word of the layout.
    command: &'static str,
    layout: Option<&'static str>,
    /// Whether it adds items, so that the log is written.
    adds: bool,
}

impl Case {
    const fn new(
        peer: Peer,
        name: &'static str,
        command: &'static str,
        layout: Option<&'static str>,
        adds: bool,
    ) -> Self {
        Self {
            peer,
            name,
            command,
            layout,
            adds,
        }
    }
}

/// Those of redis-server come first: they are what others are compared with.
const CASES: [Case; 8] = [
    Case::new(Peer::Redis, "redis-server: SETBIT", "setbit", None, true),
    Case::new(
        Peer::Everbloom,
        "everbloom, blocked: BF.ADD",
        "add",
        Some("BLOCKED"),
        true,
    ),
    Case::new(
        Peer::Everbloom,
        "everbloom, classic: BF.ADD",
        "add",
        Some("CLASSIC"),
        true,
    ),
    Case::new(Peer::RedisBloom, "RedisBloom: BF.ADD", "add", None, true),
    Case::new(Peer::Redis, "redis-server: GETBIT", "getbit", None, false),
    Case::new(
        Peer::Everbloom,
        "everbloom, blocked: BF.EXISTS",
        "exists",
        Some("BLOCKED"),
        false,
    ),
    Case::new(
        Peer::Everbloom,
        "everbloom, classic: BF.EXISTS",
        "exists",
        Some("CLASSIC"),
        false,
    ),
    Case::new(
        Peer::RedisBloom,
        "RedisBloom: BF.EXISTS",
        "exists",
        None,
        false,
    ),
];

/// What a round measures of a case.
#[derive(Debug, Serialize)]
struct Round {
    peak: Figures,
    /// In the order of the shares.
    rates: Vec<Figures>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: &'static str,
    peer: Peer,
    adds: bool,
    rounds: Vec<Round>,
}

/// A server without a log, and one with it.
struct Pair {
    peer: Peer,
    without_log: Server,
    with_log: Server,
}

impl Pair {
    fn new(peer: Peer, program: &Path, words: &[&str]) -> Result<Self> {
        let start = |log: &[&str]| {
            let server = Server::with(program, &[words, log].concat());
            server.context("latency compares everbloom serve and redis-server")
        };
        Ok(Self {
            peer,
            without_log: start(&NO_LOG)?,
            with_log: start(&LOG)?,
        })
    }

    fn of(&self, case: &Case) -> &Server {
        if case.adds {
            &self.with_log
        } else {
            &self.without_log
        }
    }
}

pub fn run(options: &Options) -> Result<()> {
    let machine = Machine::this();
    let scale = if options.smoke {
        Scale::SMOKE
    } else {
        Scale::FULL
    };
    let pairs = start(options)?;
    let mut cases = Vec::new();
    for case in &CASES {
        if let Some(pair) = pairs.iter().find(|pair| pair.peer == case.peer)
            && options.wants(case.name)
        {
            cases.push((case, pair.of(case)));
        }
    }
    for (case, server) in &cases {
        if !case.adds {
            let fill = scale.fill.to_string();
            let more = ["--fill", &fill, "--requests", "1", "--keep"];
            process::load(server, &flags(case, scale, &more))?;
        }
    }
    let mut lines: Vec<Line> = Vec::new();
    lines.extend(cases.iter().map(|(case, _)| Line {
        name: case.name,
        peer: case.peer,
        adds: case.adds,
        rounds: Vec::new(),
    }));
    for round in 1..=scale.rounds {
        eprintln!("round {round} of {}", scale.rounds);
        for ((case, server), line) in cases.iter().zip(&mut lines) {
            line.rounds.push(measure(case, server, scale)?);
        }
        let text = markdown(&machine, &pairs, &lines);
        machine.write(&options.results, "latency", &text, &lines)?;
    }
    println!("{}", markdown(&machine, &pairs, &lines));
    Ok(())
}

fn start(options: &Options) -> Result<Vec<Pair>> {
    let one_thread = ["serve", "--io-threads", "1"];
    let mut pairs = vec![
        Pair::new(Peer::Redis, &options.redis_server, &[])?,
        Pair::new(Peer::Everbloom, &options.everbloom, &one_thread)?,
    ];
    if let Some(module) = &options.redisbloom {
        let module = module.to_string_lossy();
        let words = ["--loadmodule", &module];
        let pair = Pair::new(Peer::RedisBloom, &options.redis_server, &words)?;
        pairs.push(pair);
    } else {
        eprintln!("WITHOUT REDISBLOOM: its rows are left out, name its module by --redisbloom");
    }
    Ok(pairs)
}

/// The flags of `load` for this case, and these.
fn flags(case: &Case, scale: Scale, more: &[&str]) -> Vec<String> {
    // SETBIT and GETBIT of one bit, in a string as large as the filter.
    let mut reserve = match case.command {
        "setbit" | "getbit" => format!("{},0.5", scale.capacity * 10),
        _ => format!("{},0.001,NONSCALING", scale.capacity),
    };
    if let Some(layout) = case.layout {
        reserve.push_str(",LAYOUT,");
        reserve.push_str(layout);
    }
    let mut flags = vec![
        "--command",
        case.command,
        "--clients",
        CONNECTIONS,
        "--reserve",
        &reserve,
    ];
    if !case.adds {
        flags.extend(["--key", case.layout.unwrap_or("plain")]);
    }
    flags.extend(more);
    flags.into_iter().map(str::to_owned).collect()
}

/// Measures the peak, then the latency at each part of it.
fn measure(case: &Case, server: &Server, scale: Scale) -> Result<Round> {
    let process = server.id().to_string();
    // Each load makes a key to add to. The items that it adds first touch all its pages, and are
    // few, because they are logged.
    let (items, fill) = if case.adds {
        ("--fill", scale.fill / 10)
    } else {
        ("--filled", scale.fill)
    };
    let fill = fill.to_string();
    let load = |more: &[&str]| {
        let more = [&["--server-process", &process, items, &fill], more].concat();
        quiet_load(server, &flags(case, scale, &more), scale.tries).context(case.name)
    };
    let peak = load(&["--seconds", scale.seconds])?;
    let mut rates = Vec::new();
    for share in SHARES {
        let rate = (peak.requests_per_second * share).to_string();
        rates.push(load(&["--rate", &rate, "--requests", scale.requests])?);
    }
    let p99_9: Vec<f64> = rates.iter().map(|rate| rate.latency_us.p99_9).collect();
    eprintln!("{}: p99.9 {p99_9:.0?} µs", case.name);
    Ok(Round { peak, rates })
}

/// The quietest of so many loads, or the first that is quiet.
fn quiet_load(server: &Server, flags: &[String], tries: usize) -> Result<Figures> {
    let others = |figures: &Figures| figures.others_cpu.unwrap_or(0.0);
    let mut quietest: Option<Figures> = None;
    for _ in 0..tries {
        sleep(PAUSE);
        let figures = process::load(server, flags)?;
        let is_better = |known: &Figures| others(&figures) < others(known);
        if quietest.as_ref().is_none_or(is_better) {
            quietest = Some(figures);
        }
        if quietest
            .as_ref()
            .is_some_and(|known| others(known) <= QUIET)
        {
            break;
        }
    }
    quietest.context("a load was measured")
}

fn markdown(machine: &Machine, pairs: &[Pair], lines: &[Line]) -> String {
    let mut text = format!("# Latency by a schedule\n\n{}\n", machine.markdown());
    for pair in pairs {
        for server in [&pair.without_log, &pair.with_log] {
            let _ = writeln!(text, "- {}, `{}`", server.version, server.command);
        }
    }
    if !pairs.iter().any(|pair| pair.peer == Peer::RedisBloom) {
        text.push_str("- **RedisBloom was not measured**: no `--redisbloom FILE`\n");
    }
    let cores = if process::can_pin() {
        "Servers are on core 0, the load on core 1 (`taskset`)."
    } else {
        "**Not pinned to cores.**"
    };
    let _ = write!(
        text,
        "\n{cores} {CONNECTIONS} connections. Requests come at random moments, at a part of the \
         server's own peak, and latency counts from when a request was due. Adds are logged with \
         `appendfsync everysec`, lookups have no log. Microseconds; medians of {} rounds, the \
         lowest p99.9 of them, to which other programs added least, and the worst of all. \"to SETBIT, GETBIT\" is p99.9 divided by redis-server's at the same part \
         of its peak, the median of the rounds' ratios. \"late\" is how long after it was due the \
         load generator sent a request, and is contained in the latency. \"server\" is its \
         processor time for a request; \"generator\" is how much of its core the load generator \
         took, and how much without the time in epoll. \"others\" is how much of a core other programs took, of two.\n\n\
         | command | of its peak | requests/s | p50 | p99 | p99.9 | lowest | max | worst | to SETBIT, \
         GETBIT | late: p50 | p99 | p99.9 | max | server | generator | others |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        lines.first().map_or(0, |line| line.rounds.len())
    );
    for line in lines {
        row(&mut text, line, "peak", &|round| Some(&round.peak), None);
        let is_peer = |other: &&Line| other.peer == Peer::Redis && other.adds == line.adds;
        let peer = lines.iter().find(is_peer);
        for (index, share) in SHARES.iter().enumerate() {
            let share = format!("{:.0} %", share * 100.0);
            row(
                &mut text,
                line,
                &share,
                &|round| round.rates.get(index),
                peer,
            );
        }
    }
    text
}

/// A row of the figures that `of` takes from each round.
fn row(
    text: &mut String,
    line: &Line,
    share: &str,
    of: &dyn Fn(&Round) -> Option<&Figures>,
    peer: Option<&Line>,
) {
    let all =
        |line: &Line| -> Vec<Figures> { line.rounds.iter().filter_map(of).cloned().collect() };
    let figures = all(line);
    let values = |of: &dyn Fn(&Figures) -> f64| figures.iter().map(of).collect::<Vec<_>>();
    let middle = |of: &dyn Fn(&Figures) -> f64| median(&values(of));
    let late = |of: fn(&crate::load::Latency) -> f64| {
        let late = figures.iter().filter_map(|f| f.schedule.as_ref());
        let late: Vec<f64> = late.map(|schedule| of(&schedule.late_us)).collect();
        if late.is_empty() {
            String::new()
        } else {
            format!("{:.0}", median(&late))
        }
    };
    let ratio = peer.map_or(String::new(), |peer| {
        let pairs = figures.iter().zip(all(peer));
        let ratios: Vec<f64> = pairs
            .map(|(ours, theirs)| ours.latency_us.p99_9 / theirs.latency_us.p99_9)
            .collect();
        format!("{:.2}", median(&ratios))
    });
    let worst = values(&|f| f.latency_us.max)
        .into_iter()
        .fold(0.0, f64::max);
    let lowest = values(&|f| f.latency_us.p99_9)
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    let _ = writeln!(
        text,
        "| {} | {share} | {} | {:.0} | {:.0} | {:.0} | {lowest:.0} | {:.0} | {worst:.0} | {ratio} | {} | {} | {} | {} | {:.1} | {:.0} / {:.0} % | {:.0} % |",
        line.name,
        short(middle(&|f| f.requests_per_second)),
        middle(&|f| f.latency_us.p50),
        middle(&|f| f.latency_us.p99),
        middle(&|f| f.latency_us.p99_9),
        middle(&|f| f.latency_us.max),
        late(|l| l.p50),
        late(|l| l.p99),
        late(|l| l.p99_9),
        late(|l| l.max),
        middle(&|f| f.server_us.unwrap_or(f64::NAN)),
        middle(&|f| f.generator_cpu) * 100.0,
        middle(&|f| f.generator_busy) * 100.0,
        middle(&|f| f.others_cpu.unwrap_or(f64::NAN)) * 100.0,
    );
}
