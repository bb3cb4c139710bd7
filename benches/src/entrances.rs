//! What the ways in cost: TCP, TLS and a Unix socket, of both servers; and what metrics cost.
//!
//! As in `server`, servers are on one core and the load on another, and rounds run all lines in
//! turn.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use everbloom_dev::free_port;
use serde::Serialize;

use crate::Options;
use crate::cpu::cpu_nanos;
use crate::load::Figures;
use crate::machine::Machine;
use crate::pauses::acts::get;
use crate::server::process::{Server, load_at};
use crate::stats::{median, short, spread};

const PIPELINES: [usize; 2] = [1, 128];
const NO_FILES: [&str; 4] = ["--save", "", "--appendonly", "no"];
const CERTIFICATES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../crates/cli/tests/certificates"
);

/// A server, and the addresses it listens on.
struct House {
    server: Server,
    /// A name, and the flags that `load` connects with.
    doors: Vec<(&'static str, Vec<String>)>,
    metrics: Option<u16>,
}

#[derive(Serialize)]
struct Line {
    server: String,
    entrance: &'static str,
    command: &'static str,
    pipeline: usize,
    rounds: Vec<Figures>,
    /// Nanoseconds that the server's threads worked for a request, of each round.
    work: Vec<f64>,
}

/// What differs by little is measured so many times as often.
const OFTEN: usize = 4;

pub fn run(options: &Options) -> Result<()> {
    let ours = House::open(&options.everbloom, &["serve", "--io-threads", "1"])?;
    let theirs = House::open(&options.redis_server, &[])?;
    let watched = House::watched(&options.everbloom)?;
    let (rounds, seconds) = if options.smoke { (1, "0.1") } else { (5, "1") };
    let mut lines = Vec::new();
    for pipeline in PIPELINES {
        for house in [&theirs, &ours] {
            for (entrance, _) in &house.doors {
                lines.push(Line::new(house, entrance, "echo", pipeline));
            }
        }
        lines.push(Line::new(&ours, "TCP", "exists", pipeline));
        lines.push(Line::new(&watched, "TCP, metrics read", "exists", pipeline));
    }
    let house = |line: &Line| match line.entrance {
        "TCP, metrics read" => &watched,
        _ if line.server == ours.server.name => &ours,
        _ => &theirs,
    };
    for round in 0..rounds * OFTEN {
        for line in &mut lines {
            if line.command == "exists" || round % OFTEN == 0 {
                let house = house(line);
                let before = cpu_nanos(house.server.id())?;
                let figures = measure(options, house, line, seconds)?;
                let worked = cpu_nanos(house.server.id())?.saturating_sub(before);
                line.work.push(worked as f64 / figures.requests as f64);
                line.rounds.push(figures);
            }
        }
    }
    let machine = Machine::this();
    let text = table(&machine, [&theirs, &ours], &lines);
    println!("{text}");
    machine.write(&options.results, "entrances", &text, &lines)
}

impl House {
    /// A server with three doors.
    fn open(program: &Path, words: &[&str]) -> Result<Self> {
        let tls = free_port().to_string();
        let [certificate, key, authority] = ["server.crt", "server.key", "authority.crt"]
            .map(|name| format!("{CERTIFICATES}/{name}"));
        let doors = [
            "--bind",
            "127.0.0.1",
            "--tls-port",
            &tls,
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &authority,
            "--tls-auth-clients",
            "no",
            "--unixsocket",
            "socket",
        ];
        let server = Server::with(program, &[words, &NO_FILES, &doors].concat())?;
        let doors = vec![
            ("TCP", flags(&["--port", &server.port.to_string()])),
            ("TLS", flags(&["--tls-port", &tls, "--cacert", &authority])),
            (
                "Unix socket",
                flags(&["--unix", &server.folder().join("socket").to_string_lossy()]),
            ),
        ];
        Ok(Self {
            server,
            doors,
            metrics: None,
        })
    }

    /// Ours, with metrics.
    fn watched(program: &Path) -> Result<Self> {
        let metrics = free_port();
        let words = ["serve", "--io-threads", "1", "--bind", "127.0.0.1"];
        let port = metrics.to_string();
        let more = ["--metrics-port", &port];
        let server = Server::with(program, &[&words[..], &NO_FILES, &more].concat())?;
        let doors = vec![("TCP", flags(&["--port", &server.port.to_string()]))];
        Ok(Self {
            server,
            doors,
            metrics: Some(metrics),
        })
    }

    /// The flags for an entrance.
    fn address(&self, entrance: &str) -> &[String] {
        let door = self.doors.iter().find(|door| entrance.starts_with(door.0));
        door.map_or(&[], |door| &door.1)
    }
}

impl Line {
    fn new(house: &House, entrance: &'static str, command: &'static str, pipeline: usize) -> Self {
        Self {
            server: house.server.name.clone(),
            entrance,
            command,
            pipeline,
            rounds: Vec::new(),
            work: Vec::new(),
        }
    }

    fn rates(&self) -> Vec<f64> {
        let rates = self.rounds.iter().map(|round| round.requests_per_second);
        rates.collect()
    }
}

fn measure(options: &Options, house: &House, line: &Line, seconds: &str) -> Result<Figures> {
    let pipeline = line.pipeline.to_string();
    let mut args = vec!["--command", line.command, "--seconds", seconds];
    args.extend(["--pipeline", &pipeline]);
    match line.command {
        "exists" if options.smoke => args.extend(["--reserve", "1000,0.001", "--fill", "1000"]),
        "exists" => args.extend(["--reserve", "1000000,0.001", "--fill", "1000000"]),
        _ => {}
    }
    let address = house.address(line.entrance).iter().map(String::as_str);
    let address: Vec<&str> = address.collect();
    let scraped = line.entrance == "TCP, metrics read";
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let scraper = house.metrics.filter(|_| scraped).map(|port| {
            let done = &done;
            scope.spawn(move || scrape(port, done))
        });
        let figures = load_at(&address, &flags(&args));
        done.store(true, Ordering::Relaxed);
        if let Some(scraper) = scraper {
            scraper.join().expect("the scraper does not panic")?;
        }
        figures
    })
}

/// Reads the metrics ten times a second, until the end. Prometheus does it every 15 seconds.
fn scrape(port: u16, done: &AtomicBool) -> Result<()> {
    while !done.load(Ordering::Relaxed) {
        get(port, "/metrics")?
            .contains("everbloom_commands")
            .then_some(())
            .context("no metrics")?;
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn flags(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn table(machine: &Machine, houses: [&House; 2], lines: &[Line]) -> String {
    let versions = houses.map(|house| house.server.version.as_str());
    let mut text = format!(
        "# What the ways in cost\n\n{}\n\n{}. Medians of {} rounds, of {OFTEN} times as many for \
         exists. The ratios are to TCP of the same server, command and pipeline; work is how long \
         the server's threads worked for a request, in nanoseconds. Metrics are read ten times a \
         second.\n\n\
         | pipeline | server | command | entrance | requests/s | ratio | p99 µs | spread | work | \
         ratio |\n\
         |--:|---|---|---|--:|--:|--:|--:|--:|--:|\n",
        machine.markdown(),
        versions.join(", "),
        lines.first().map_or(0, |line| line.rounds.len()),
    );
    for line in lines {
        let rate = median(&line.rates());
        let plain = lines.iter().find(|other| {
            other.entrance == "TCP"
                && (&other.server, other.command, other.pipeline)
                    == (&line.server, line.command, line.pipeline)
        });
        let ratio = rate / plain.map_or(f64::NAN, |plain| median(&plain.rates()));
        let work = median(&line.work);
        let more = work / plain.map_or(f64::NAN, |plain| median(&plain.work));
        let p99: Vec<f64> = line
            .rounds
            .iter()
            .map(|round| round.latency_us.p99)
            .collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {ratio:.2} | {:.0} | {:.0} % | {work:.0} | {more:.2} |",
            line.pipeline,
            line.server,
            line.command,
            line.entrance,
            short(rate),
            median(&p99),
            spread(&line.rates()) * 100.0,
        );
    }
    text
}
