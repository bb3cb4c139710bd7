//! One hot filter and several threads: how lookups and adds scale when each batch takes the lock
//! once, as the server does, and when filters need no lock.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use everbloom::{AtomicBloomFilter, Layout, ScalableBloomFilter};
use foldhash::fast::FixedState;
use parking_lot::RwLock;
use serde::Serialize;

use crate::Options;
use crate::machine::Machine;
use crate::stats::{median, short};

/// The number of items in a batch, as a client sends them in one pipeline.
const BATCH: usize = 128;
const ROUNDS: usize = 5;
const ERROR_RATE: f64 = 0.001;

/// One line of the table.
#[derive(Debug, Serialize)]
struct Line {
    filter: &'static str,
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
    measure::<Classic>(capacity, time, &mut lines)?;
    measure::<Blocked>(capacity, time, &mut lines)?;
    measure::<Batches>(capacity, time, &mut lines)?;
    measure::<AtomicBloomFilter>(capacity, time, &mut lines)?;
    measure::<Fastbloom>(capacity, time, &mut lines)?;
    let text = table(&machine, capacity, &lines);
    println!("{text}");
    machine.write(&options.results, "concurrency", &text, &lines)
}

fn measure<F: Shared>(capacity: u64, time: Duration, lines: &mut Vec<Line>) -> Result<()> {
    let full = F::with_capacity(capacity)?;
    for start in (0..capacity).step_by(BATCH) {
        full.add(&batch(start));
    }
    ensure!(
        full.contains(&batch(0)) == BATCH,
        "an added item is missing"
    );
    for threads in [1, 2] {
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            rates[0].push(rate(threads, time, |n| {
                black_box(full.contains(&batch(n * 7919 % capacity)));
            }));
            let empty = F::with_capacity(capacity)?;
            rates[1].push(rate(threads, time, |n| empty.add(&batch(n * BATCH as u64))));
        }
        for (what, rates) in ["lookups", "adds"].into_iter().zip(rates) {
            lines.push(Line {
                filter: F::NAME,
                what,
                threads,
                rates,
            });
        }
    }
    Ok(())
}

type Item = [u8; 16];

/// A filter that several threads use.
trait Shared: Sized + Sync {
    const NAME: &str;
    fn with_capacity(capacity: u64) -> Result<Self>;
    /// How many of the items are found.
    fn contains(&self, items: &[Item; BATCH]) -> usize;
    fn add(&self, items: &[Item; BATCH]);
}

/// A filter of the server, under one lock a batch.
struct Locked(RwLock<ScalableBloomFilter>);

impl Locked {
    fn new(layout: Layout, capacity: u64) -> Result<Locked> {
        let builder = ScalableBloomFilter::builder().layout(layout);
        let builder = builder.capacity(capacity).error_rate(ERROR_RATE);
        Ok(Locked(RwLock::new(builder.build()?)))
    }

    fn contains(&self, items: &[Item; BATCH]) -> usize {
        let mut found = 0;
        let items = items.iter().map(Item::as_slice);
        let filter = self.0.read();
        filter.contains_each(items, |yes| found += usize::from(yes));
        found
    }

    fn add(&self, items: &[Item; BATCH]) {
        let items = items.iter().map(Item::as_slice);
        self.0.write().insert_each(items, drop);
    }
}

macro_rules! locked {
    ($type:ident, $name:literal, $layout:ident) => {
        struct $type(Locked);

        impl Shared for $type {
            const NAME: &str = $name;

            fn with_capacity(capacity: u64) -> Result<Self> {
                Ok($type(Locked::new(Layout::$layout, capacity)?))
            }

            fn contains(&self, items: &[Item; BATCH]) -> usize {
                self.0.contains(items)
            }

            fn add(&self, items: &[Item; BATCH]) {
                self.0.add(items);
            }
        }
    };
}

locked!(Classic, "classic, a lock", Classic);
locked!(Blocked, "blocked, a lock", Blocked);

impl Shared for AtomicBloomFilter {
    const NAME: &str = "atomic, one by one";

    fn with_capacity(capacity: u64) -> Result<Self> {
        Ok(AtomicBloomFilter::new(capacity, ERROR_RATE))
    }

    fn contains(&self, items: &[Item; BATCH]) -> usize {
        items.iter().filter(|item| self.contains(*item)).count()
    }

    fn add(&self, items: &[Item; BATCH]) {
        for item in items {
            black_box(self.insert(item));
        }
    }
}

/// The same in batches.
struct Batches(AtomicBloomFilter);

impl Shared for Batches {
    const NAME: &str = "atomic, batches";

    fn with_capacity(capacity: u64) -> Result<Self> {
        Ok(Batches(AtomicBloomFilter::new(capacity, ERROR_RATE)))
    }

    fn contains(&self, items: &[Item; BATCH]) -> usize {
        let mut found = 0;
        let items = items.iter().map(Item::as_slice);
        self.0.contains_each(items, |yes| found += usize::from(yes));
        found
    }

    fn add(&self, items: &[Item; BATCH]) {
        let items = items.iter().map(Item::as_slice);
        self.0.insert_each(items, |new| _ = black_box(new));
    }
}

type Fastbloom = fastbloom::AtomicBloomFilter<FixedState>;

impl Shared for Fastbloom {
    const NAME: &str = "fastbloom's atomic, foldhash";

    fn with_capacity(capacity: u64) -> Result<Self> {
        let builder = fastbloom::AtomicBloomFilter::with_false_pos(ERROR_RATE);
        let builder = builder.hasher(FixedState::default());
        Ok(builder.expected_items(capacity as usize))
    }

    fn contains(&self, items: &[Item; BATCH]) -> usize {
        items.iter().filter(|item| self.contains(*item)).count()
    }

    fn add(&self, items: &[Item; BATCH]) {
        for item in items {
            black_box(self.insert(item));
        }
    }
}

fn item(number: u64) -> Item {
    let spread = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    u128::from(number).wrapping_mul(spread).to_le_bytes()
}

fn batch(start: u64) -> [Item; BATCH] {
    std::array::from_fn(|index| item(start + index as u64))
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
        "# One hot filter, several threads\n\n{}\n\nA filter of {} items at {ERROR_RATE}, batches \
         of {BATCH} items of 16 bytes; where there is a lock, one a batch; medians of {ROUNDS}.\n\n\
         | filter | | 1 thread | 2 threads | ratio |\n|---|---|---|---|---|\n",
        machine.markdown(),
        short(capacity as f64)
    );
    // Those of one thread come before those of two.
    let (one, two): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| line.threads == 1);
    for (line, both) in one.into_iter().zip(two) {
        let (one, two) = (median(&line.rates), median(&both.rates));
        let _ = writeln!(
            text,
            "| {} | {} | {}/s | {}/s | {:.2} |",
            line.filter,
            line.what,
            short(one),
            short(two),
            two / one
        );
    }
    text
}
