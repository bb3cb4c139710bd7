//! The filters as libraries: the times of an insert and a lookup, the false positive rate, and the
//! memory.
//!
//! All subjects of a setting are in memory together and are timed in turn. A figure is the median
//! of five. Nobody wins by being wrong: the measured false positive rate and the bits an item are
//! shown beside the times, and a present item that is not found ends the run.

mod items;
mod report;
mod subjects;

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::stats::median;
use crate::{HEAP, Options};
use items::{ABSENT, Items, mix};
use subjects::{Entry, SUBJECTS, Subject};

/// How many times everything is measured.
const ROUNDS: usize = 5;

/// The number of items that are made before they are inserted.
const CHUNK: usize = 1 << 16;

/// Filters up to this size are built in every round. Larger ones are built once, a fifth of them in
/// each round.
const SMALL: usize = 1_000_000;

/// One table of the report.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Setting {
    items: usize,
    rate: f64,
    item_bytes: usize,
}

impl Setting {
    /// Parses `ITEMS,RATE,BYTES`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let setting = Setting {
            items: parts.next()?.parse().ok()?,
            rate: parts.next()?.parse().ok()?,
            item_bytes: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(setting)
    }

    /// The name of the file for the results.
    fn name(self) -> String {
        let rate = self.rate.to_string().replace('.', "_");
        format!("library-{}-{rate}-{}", self.items, self.item_bytes)
    }
}

/// One row of a table. Times are nanoseconds an item.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: &'static str,
    insert: f64,
    insert_batch: Option<f64>,
    extend: Option<f64>,
    hit: f64,
    miss: f64,
    hit_batch: Option<f64>,
    miss_batch: Option<f64>,
    false_positive_rate: f64,
    probes: usize,
    bits_per_item: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Table {
    setting: Setting,
    rows: Vec<Row>,
}

pub fn run(options: &Options) -> Result<()> {
    let machine = crate::machine::Machine::this();
    let sizes: &[usize] = if options.smoke {
        &[10_000, 100_000]
    } else {
        &[10_000, 100_000, 1_000_000, 10_000_000, 50_000_000]
    };
    let mut tables = Vec::new();
    if let Some(setting) = options.at {
        tables.push(Table {
            setting,
            rows: measure(setting, options)?,
        });
        let markdown = report::markdown(&machine, &tables);
        machine.write(&options.results, &setting.name(), &markdown, &tables)?;
        println!("{markdown}");
        return Ok(());
    }
    for &items in sizes {
        for rate in [0.01, 0.001] {
            for item_bytes in [16, 64] {
                let setting = Setting {
                    items,
                    rate,
                    item_bytes,
                };
                eprintln!("{items} items of {item_bytes} bytes at {rate}");
                let rows = measure(setting, options)?;
                tables.push(Table { setting, rows });
                let markdown = report::markdown(&machine, &tables);
                machine.write(&options.results, "library", &markdown, &tables)?;
            }
        }
    }
    println!("{}", report::markdown(&machine, &tables));
    Ok(())
}

fn measure(setting: Setting, options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut filters = Vec::new();
    let subjects: Vec<&Entry> = SUBJECTS
        .iter()
        .filter(|entry| options.wants(entry.name))
        .collect();
    let built = build_all(&subjects, setting, Way::Each);
    for (entry, (filter, insert, bytes)) in subjects.iter().zip(built) {
        filters.push(filter);
        rows.push(Row {
            name: entry.name,
            insert,
            insert_batch: None,
            extend: None,
            hit: 0.0,
            miss: 0.0,
            hit_batch: None,
            miss_batch: None,
            false_positive_rate: 0.0,
            probes: 0,
            bits_per_item: bytes as f64 * 8.0 / setting.items as f64,
        });
    }
    for (row, (_, insert, _)) in rows
        .iter_mut()
        .zip(build_all(&subjects, setting, Way::Batches))
    {
        row.insert_batch = insert.is_finite().then_some(insert);
    }
    for (row, (_, insert, _)) in rows
        .iter_mut()
        .zip(build_all(&subjects, setting, Way::Extend))
    {
        row.extend = insert.is_finite().then_some(insert);
    }

    let probes = match (options.smoke, setting.items <= 100_000) {
        (true, _) => 20_000,
        (false, true) => 200_000,
        (false, false) => 1_000_000,
    };
    // The order is random. Otherwise lookups would read memory in the order of the inserts.
    let count = setting.items as u64;
    let hits = (0..probes).map(|index| mix(!index) % count);
    let hits = Items::new(hits, setting.item_bytes);
    let misses = Items::new(ABSENT..ABSENT + probes, setting.item_bytes);
    look_up(&filters, &hits.slices(), &misses.slices(), &mut rows)?;
    Ok(rows)
}

/// The times of one filter, a list for each kind of lookup.
#[derive(Default)]
struct Times {
    hit: Vec<f64>,
    miss: Vec<f64>,
    hit_batch: Vec<f64>,
    miss_batch: Vec<f64>,
}

fn look_up(
    filters: &[Box<dyn Subject>],
    hits: &[&[u8]],
    misses: &[&[u8]],
    rows: &mut [Row],
) -> Result<()> {
    let mut times: Vec<Times> = filters.iter().map(|_| Times::default()).collect();
    for _ in 0..ROUNDS {
        for ((filter, times), row) in filters.iter().zip(&mut times).zip(rows.iter_mut()) {
            // The first pass is not timed. It brings the filter into the caches that it fits into.
            let found = black_box(filter.count_each(hits));
            ensure!(found == hits.len(), "{} lost an item", row.name);
            times.hit.push(time(hits, || filter.count_each(hits)).0);
            let (nanos, false_positives) = time(misses, || filter.count_each(misses));
            times.miss.push(nanos);
            row.false_positive_rate = false_positives as f64 / misses.len() as f64;
            row.probes = misses.len();
            if filter.count_batches(hits).is_some() {
                let (nanos, found) = time(hits, || filter.count_batches(hits).unwrap_or(0));
                ensure!(found == hits.len(), "{} lost an item in a batch", row.name);
                times.hit_batch.push(nanos);
                let (nanos, found) = time(misses, || filter.count_batches(misses).unwrap_or(0));
                ensure!(
                    found == false_positives,
                    "{}: a batch answers otherwise",
                    row.name
                );
                times.miss_batch.push(nanos);
            }
        }
    }
    for (times, row) in times.iter().zip(rows) {
        row.hit = median(&times.hit);
        row.miss = median(&times.miss);
        row.hit_batch = (!times.hit_batch.is_empty()).then(|| median(&times.hit_batch));
        row.miss_batch = (!times.miss_batch.is_empty()).then(|| median(&times.miss_batch));
    }
    Ok(())
}

/// The time in nanoseconds an item, and the answer.
fn time<T>(items: &[&[u8]], run: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let answer = black_box(run());
    (
        start.elapsed().as_nanos() as f64 / items.len() as f64,
        answer,
    )
}

/// How items are inserted.
#[derive(Clone, Copy)]
enum Way {
    Each,
    Batches,
    Extend,
}

/// Every subject with all items in it, the time of an insert, and the size in bytes. The time is
/// infinite for a subject that has no such way.
fn build_all(
    subjects: &[&'static Entry],
    setting: Setting,
    way: Way,
) -> Vec<(Box<dyn Subject>, f64, usize)> {
    let mut builds: Vec<_> = subjects
        .iter()
        .map(|entry| Build::new(entry, setting, way))
        .collect();
    for round in 0..ROUNDS {
        for build in &mut builds {
            build.round(round);
        }
    }
    builds.into_iter().map(Build::finish).collect()
}

/// A filter that is being filled.
struct Build {
    entry: &'static Entry,
    setting: Setting,
    way: Way,
    filter: Box<dyn Subject>,
    /// The bytes that the filter takes on the heap.
    heap: usize,
    /// Nanoseconds an item of each round, and of each `finish`.
    rounds: Vec<f64>,
    finishes: Vec<f64>,
}

impl Build {
    fn new(entry: &'static Entry, setting: Setting, way: Way) -> Self {
        let before = HEAP.current_usage();
        let filter = (entry.make)(setting.items, setting.rate);
        Self {
            entry,
            setting,
            way,
            heap: HEAP.current_usage().saturating_sub(before),
            filter,
            rounds: Vec::new(),
            finishes: Vec::new(),
        }
    }

    fn round(&mut self, round: usize) {
        if self.unsupported() {
            return;
        }
        let items = self.setting.items;
        if items > SMALL {
            let nanos = self.insert(items * round / ROUNDS..items * (round + 1) / ROUNDS);
            self.rounds.push(nanos);
            return;
        }
        // A small filter is built several times, because the clock is too coarse for one build.
        let builds = (200_000 / items).max(1);
        let mut sum = 0.0;
        for build in 0..builds {
            if round + build > 0 {
                let before = HEAP.current_usage();
                let filter = (self.entry.make)(items, self.setting.rate);
                self.heap = HEAP.current_usage().saturating_sub(before);
                self.filter = filter;
            }
            sum += self.insert(0..items);
            if sum.is_infinite() {
                break;
            }
            if round + 1 < ROUNDS || build + 1 < builds {
                self.finish_filter();
            }
        }
        self.rounds.push(sum / builds as f64);
    }

    /// Whether there is no such call, so that nothing can be measured.
    fn unsupported(&self) -> bool {
        self.rounds.last().is_some_and(|nanos| nanos.is_infinite())
    }

    /// Inserts items. Returns nanoseconds an item, or infinity when there is no such call.
    fn insert(&mut self, numbers: std::ops::Range<usize>) -> f64 {
        let (count, before) = (numbers.len(), HEAP.current_usage());
        let mut nanos = 0.0;
        for start in numbers.clone().step_by(CHUNK) {
            let chunk = start as u64..(start + CHUNK).min(numbers.end) as u64;
            let items = Items::new(chunk, self.setting.item_bytes);
            let slices = items.slices();
            let start = Instant::now();
            let done = match self.way {
                Way::Each => {
                    self.filter.insert_each(&slices);
                    true
                }
                Way::Batches => self.filter.insert_batches(&slices),
                Way::Extend => self.filter.extend(&slices),
            };
            if !done {
                return f64::INFINITY;
            }
            nanos += start.elapsed().as_nanos() as f64;
        }
        // A filter may have grown.
        self.heap += HEAP.current_usage().saturating_sub(before);
        nanos / count as f64
    }

    fn finish_filter(&mut self) {
        if self.unsupported() {
            return;
        }
        let start = Instant::now();
        self.filter.finish();
        let nanos = start.elapsed().as_nanos() as f64;
        self.finishes.push(nanos / self.setting.items as f64);
    }

    fn finish(mut self) -> (Box<dyn Subject>, f64, usize) {
        self.finish_filter();
        let bytes = self.filter.bytes().unwrap_or(self.heap);
        let nanos = median(&self.rounds) + median(&self.finishes);
        (self.filter, nanos, bytes)
    }
}
