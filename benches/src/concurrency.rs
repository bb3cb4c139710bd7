//! One hot filter and several threads: how lookups and adds scale when each batch takes the lock
//! once, as the server does.

use std::fmt::Write;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use everbloom::{Layout, ScalableBloomFilter};
use parking_lot::RwLock;
use serde::Serialize;

use crate::Options;
use crate::machine::Machine;
use crate::stats::{median, short};

/// The number of items in a batch, as a client sends them in one pipeline.
const BATCH: usize = 128;
const ROUNDS: usize = 5;

/// One line of the table.
#[derive(Debug, Serialize)]
struct Line {
    layout: &'static str,
    what: &'static str,
    threads: usize,
    /// Items a second in each round.
    rates: Vec<f64>,
}

pub fn run(options: &Options) -> Result<()> {
    let machine = Machine::this();
    let capacity: u64 = if options.smoke { 100_000 } else { 10_000_000 };
    let time = Duration::from_millis(if options.smoke { 20 } else { 1000 });
    let mut lines = Vec::new();
    for (name, layout) in [("classic", Layout::Classic), ("blocked", Layout::Blocked)] {
        let full = RwLock::new(filter(layout, capacity)?);
        for start in (0..capacity).step_by(BATCH) {
            add(&full, start);
        }
        ensure!(contains(&full, 0) == BATCH, "an added item is missing");
        for threads in [1, 2] {
            let mut rates = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS {
                rates[0].push(rate(threads, time, |n| {
                    black_box(contains(&full, n * 7919 % capacity));
                }));
                let empty = RwLock::new(filter(layout, capacity)?);
                rates[1].push(rate(threads, time, |n| add(&empty, n * BATCH as u64)));
            }
            for (what, rates) in ["lookups", "adds"].into_iter().zip(rates) {
                lines.push(Line {
                    layout: name,
                    what,
                    threads,
                    rates,
                });
            }
        }
    }
    let text = table(&machine, capacity, &lines);
    println!("{text}");
    machine.write(&options.results, "concurrency", &text, &lines)
}

fn filter(layout: Layout, capacity: u64) -> Result<ScalableBloomFilter> {
    let builder = ScalableBloomFilter::builder().layout(layout);
    Ok(builder.capacity(capacity).error_rate(0.001).build()?)
}

fn item(number: u64) -> [u8; 16] {
    let spread = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    u128::from(number).wrapping_mul(spread).to_le_bytes()
}

fn batch(start: u64) -> [[u8; 16]; BATCH] {
    std::array::from_fn(|index| item(start + index as u64))
}

/// Looks a batch up under one lock. Returns how many items were found.
fn contains(filter: &RwLock<ScalableBloomFilter>, start: u64) -> usize {
    let items = batch(start);
    let mut found = 0;
    let items = items.iter().map(<[u8; 16]>::as_slice);
    filter
        .read()
        .contains_each(items, |yes| found += usize::from(yes));
    found
}

/// Adds a batch under one lock.
fn add(filter: &RwLock<ScalableBloomFilter>, start: u64) {
    let items = batch(start);
    let items = items.iter().map(<[u8; 16]>::as_slice);
    filter.write().insert_each(items, drop);
}

/// The items a second of this many threads together. Every call of `work` gets another number.
fn rate(threads: usize, time: Duration, work: impl Fn(u64) + Sync) -> f64 {
    let ready = Barrier::new(threads);
    let run = |thread: usize| {
        ready.wait();
        let start = Instant::now();
        let mut done = 0;
        while start.elapsed() < time {
            for _ in 0..16 {
                work(done * threads as u64 + thread as u64);
                done += 1;
            }
        }
        (done, start.elapsed().as_secs_f64())
    };
    let run = &run;
    let batches: Vec<(u64, f64)> = thread::scope(|scope| {
        let start = |thread| scope.spawn(move || run(thread));
        let handles: Vec<_> = (0..threads).map(start).collect();
        let join = |handle: thread::ScopedJoinHandle<'_, _>| handle.join().expect("a thread");
        handles.into_iter().map(join).collect()
    });
    let rate = |(done, seconds): (u64, f64)| done as f64 * BATCH as f64 / seconds;
    batches.into_iter().map(rate).sum()
}

fn table(machine: &Machine, capacity: u64, lines: &[Line]) -> String {
    let mut text = format!(
        "# One hot filter, several threads\n\n{}\n\nA filter of {} items at 0.001, batches of \
         {BATCH} items of 16 bytes, one lock a batch; medians of {ROUNDS}.\n\n\
         | layout | | 1 thread | 2 threads | ratio |\n|---|---|---|---|---|\n",
        machine.markdown(),
        short(capacity as f64)
    );
    let rate = |layout, what, threads| {
        let line = lines
            .iter()
            .find(|line| (line.layout, line.what, line.threads) == (layout, what, threads));
        line.map_or(f64::NAN, |line| median(&line.rates))
    };
    for layout in ["classic", "blocked"] {
        for what in ["lookups", "adds"] {
            let (one, two) = (rate(layout, what, 1), rate(layout, what, 2));
            let _ = writeln!(
                text,
                "| {layout} | {what} | {}/s | {}/s | {:.2} |",
                short(one),
                short(two),
                two / one
            );
        }
    }
    text
}
