//! A filter in a bitmap, from a client: everbloom-client's `BitmapFilter` beside the published
//! recipes, which send a pipeline of `SETBIT` or `GETBIT` for each item.
//!
//! All ways of a server use the same bits of one filter over one connection, so they must give the
//! same answers. Each round runs all ways on both servers in turn. A figure is the median of the
//! rounds.

use std::fmt::Write;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use everbloom::hash::{DoubleHash, HashWidth};
use everbloom_client::redis::{Client, Connection, Pipeline};
use everbloom_client::{BitmapFilter, BitmapParameters};
use serde::Serialize;

use crate::Options;
use crate::cpu::cpu_nanos;
use crate::machine::Machine;
use crate::server::process::{self, Server};
use crate::stats::{median, short};

const CAPACITY: u64 = 1_000_000;
const RATE: f64 = 0.001;
const ROUNDS: usize = 5;
/// The items of a batch.
const BATCH: usize = 100;
/// The first number of items that are never added.
const ABSENT: u64 = 1 << 40;

/// How items become round trips. The first one is the yardstick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Way {
    Recipe,
    OneByOne,
    Batches,
    BitBatches,
}

const WAYS: [Way; 4] = [Way::Recipe, Way::OneByOne, Way::Batches, Way::BitBatches];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Recipe => "the recipes: a pipeline of SETBIT or GETBIT an item",
            Way::OneByOne => "`add`, `contains`: one BITFIELD an item",
            Way::Batches => "`add_all`, `contains_all`: 100 BITFIELD a pipeline",
            Way::BitBatches => "100 items a pipeline of SETBIT or GETBIT",
        }
    }

    /// The items of a round trip.
    fn items(self) -> usize {
        match self {
            Way::Recipe | Way::OneByOne => 1,
            Way::Batches | Way::BitBatches => BATCH,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Operation {
    Add,
    Present,
    Absent,
}

const OPERATIONS: [Operation; 3] = [Operation::Add, Operation::Present, Operation::Absent];

/// A way on a server.
#[derive(Debug, Serialize)]
struct Line {
    server: String,
    way: Way,
    operation: Operation,
    /// Items a second in each round.
    rates: Vec<f64>,
    /// Microseconds of processor time an item in each round, which other programs hardly change.
    server_cpu: Vec<f64>,
    client_cpu: Vec<f64>,
}

/// A server, and the filter in it.
struct Subject {
    server: Server,
    connection: Connection,
    filter: BitmapFilter,
    parameters: BitmapParameters,
    added: u64,
    /// Each way's operations: see [`place`].
    lines: Vec<Line>,
}

/// Where a line is among those of its subject.
fn place(way: Way, operation: Operation) -> usize {
    way as usize * OPERATIONS.len() + operation as usize
}

/// How many items there are at first, and how many a round adds or looks up.
struct Scale {
    fill: u64,
    /// One by one, and in batches.
    items: [u64; 2],
}

pub fn run(options: &Options) -> Result<()> {
    let machine = Machine::this();
    let load = load();
    // At the end of the last round the filter is nearly full.
    let scale = if options.smoke {
        Scale {
            fill: 1000,
            items: [100, 500],
        }
    } else {
        Scale {
            fill: 300_000,
            items: [10_000, 50_000],
        }
    };
    let servers = [
        Server::redis(&options.redis_server, None)?,
        Server::everbloom(&options.everbloom)?,
    ];
    let pinned = process::can_pin();
    if pinned {
        process::pin_this()?;
    }
    let subjects = servers.into_iter();
    let subjects = subjects.map(|server| Subject::new(server, scale.fill));
    let mut subjects = subjects.collect::<Result<Vec<_>>>()?;
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        // A way after the other, each on both servers.
        for way in WAYS {
            let items = scale.items[usize::from(way.items() > 1)];
            for operation in OPERATIONS {
                for subject in &mut subjects {
                    subject.measure(way, operation, items)?;
                }
            }
        }
    }
    let text = markdown(&machine, &subjects, pinned, &load);
    println!("{text}");
    let lines: Vec<_> = subjects.iter().flat_map(|subject| &subject.lines).collect();
    machine.write(&options.results, "client", &text, &(&load, &lines))
}

impl Subject {
    fn new(server: Server, fill: u64) -> Result<Self> {
        let client = Client::open(format!("redis://127.0.0.1:{}", server.port))?;
        let mut connection = client.get_connection()?;
        let filter = BitmapFilter::create(&mut connection, "filter", CAPACITY, RATE)?;
        let items: Vec<_> = (0..fill).map(item).collect();
        filter.add_all(&mut connection, &items)?;
        let mut lines = Vec::new();
        for way in WAYS {
            lines.extend(OPERATIONS.map(|operation| Line {
                server: server.name.clone(),
                way,
                operation,
                rates: Vec::new(),
                server_cpu: Vec::new(),
                client_cpu: Vec::new(),
            }));
        }
        Ok(Self {
            server,
            connection,
            filter,
            parameters: BitmapParameters::new(CAPACITY, RATE)?,
            added: fill,
            lines,
        })
    }

    fn measure(&mut self, way: Way, operation: Operation, count: u64) -> Result<()> {
        let first = match operation {
            Operation::Add => self.added,
            Operation::Present => 0,
            Operation::Absent => ABSENT,
        };
        let items: Vec<_> = (first..first + count).map(item).collect();
        let add = operation == Operation::Add;
        let mut yes = 0;
        let server = cpu_nanos(self.server.id())?;
        let client = cpu_nanos(std::process::id())?;
        let start = Instant::now();
        for batch in items.chunks(way.items()) {
            yes += self.ask(way, add, batch)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let micros_since = |program, before: u64| -> Result<f64> {
            let nanos = cpu_nanos(program)?.saturating_sub(before);
            Ok(nanos as f64 / 1000.0 / count as f64)
        };
        let line = &mut self.lines[place(way, operation)];
        line.rates.push(count as f64 / seconds);
        line.server_cpu
            .push(micros_since(self.server.id(), server)?);
        line.client_cpu
            .push(micros_since(std::process::id(), client)?);
        if add {
            self.added += count;
        }
        // New items, present ones, and false positives.
        let all = yes == items.len();
        let right = match operation {
            Operation::Add => yes * 100 >= items.len() * 99,
            Operation::Present => all,
            Operation::Absent => yes * 100 <= items.len(),
        };
        ensure!(right, "{way:?}, {operation:?}: yes to {yes} of {count}");
        Ok(())
    }

    /// Adds a batch or looks it up; returns how many items were new or present.
    fn ask(&mut self, way: Way, add: bool, batch: &[Item]) -> Result<usize> {
        let Self {
            connection, filter, ..
        } = self;
        let answers = match (way, batch) {
            (Way::OneByOne, [item]) if add => vec![filter.add(connection, item)?],
            (Way::OneByOne, [item]) => vec![filter.contains(connection, item)?],
            (Way::Batches, _) if add => filter.add_all(connection, batch)?,
            (Way::Batches, _) => filter.contains_all(connection, batch)?,
            _ => self.ask_bits(add, batch)?,
        };
        Ok(answers.into_iter().filter(|yes| *yes).count())
    }

    /// The same in single bits, as the recipes have it.
    fn ask_bits(&mut self, add: bool, batch: &[Item]) -> Result<Vec<bool>> {
        let hashes = self.parameters.hashes();
        let keys = self.filter.keys();
        let key = keys.first().context("a filter has a key")?;
        let mut pipeline = Pipeline::with_capacity(batch.len() * hashes as usize);
        for item in batch {
            let pair = DoubleHash::new(item, HashWidth::Bits64);
            for bit in pair.positions(hashes, self.parameters.bits()) {
                if add {
                    pipeline.cmd("SETBIT").arg(key).arg(bit).arg(1);
                } else {
                    pipeline.cmd("GETBIT").arg(key).arg(bit);
                }
            }
        }
        let bits: Vec<bool> = pipeline.query(&mut self.connection)?;
        let answers = bits.chunks(hashes as usize);
        Ok(answers
            .map(|bits| bits.iter().all(|set| *set) != add)
            .collect())
    }
}

type Item = [u8; 16];

fn item(number: u64) -> Item {
    let mut item = *b"item:...........";
    item[8..].copy_from_slice(&number.to_be_bytes());
    item
}

/// The load of the machine, from other programs, before the run: of 1, 5 and 15 minutes.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn markdown(machine: &Machine, subjects: &[Subject], pinned: bool, load: &str) -> String {
    let mut text = format!(
        "# Filters over bitmaps, from a client\n\n{}\n",
        machine.markdown()
    );
    for Subject { server, .. } in subjects {
        let _ = writeln!(
            text,
            "- {}: {}, `{}`",
            server.name, server.version, server.command
        );
    }
    let hashes = subjects
        .first()
        .map_or(0, |subject| subject.parameters.hashes());
    let cores = if pinned {
        "servers on core 0, client on core 1 (`taskset`)"
    } else {
        "**not pinned to cores**"
    };
    let _ = write!(
        text,
        "- {cores}; the machine's load before the run: {load}\n\n\
         One connection over loopback. A filter for {} items at {RATE}, {hashes} bits an item of \
         16 bytes. Thousand items a second, medians of {ROUNDS}, and in brackets the ratio to the \
         recipes on the same server: the median of the rounds' ratios.\n\n\
         | | an item's way | add, new | look up, present | absent |\n|---|---|--:|--:|--:|\n",
        short(CAPACITY as f64),
    );
    rows(&mut text, subjects, |line, recipe| {
        let pairs = line.rates.iter().zip(&recipe.rates);
        let ratios: Vec<_> = pairs.map(|(rate, recipe)| rate / recipe).collect();
        let thousands = median(&line.rates) / 1000.0;
        format!("{thousands:.1} ({:.1})", median(&ratios))
    });
    text.push_str(
        "\nMicroseconds of processor time an item, of the server and of the client:\n\n\
         | | an item's way | add, new | look up, present | absent |\n|---|---|--:|--:|--:|\n",
    );
    rows(&mut text, subjects, |line, _| {
        let (server, client) = (median(&line.server_cpu), median(&line.client_cpu));
        format!("{server:.1} + {client:.1}")
    });
    text
}

/// A row for each way of each server, of cells made of a line and the recipes' line.
fn rows(text: &mut String, subjects: &[Subject], cell: impl Fn(&Line, &Line) -> String) {
    for subject in subjects {
        for way in WAYS {
            let _ = write!(text, "| {} | {} |", subject.server.name, way.name());
            for operation in OPERATIONS {
                let line = |way| &subject.lines[place(way, operation)];
                let _ = write!(text, " {} |", cell(line(way), line(Way::Recipe)));
            }
            text.push('\n');
        }
    }
}
