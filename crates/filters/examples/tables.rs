//! A lookup in sorted tables, as a storage engine has them: a filter for each table tells which
//! tables to skip.
//!
//! `cargo run --release --example tables`; `-- --items 20000` makes it smaller.

mod support;

use std::time::Instant;

use everbloom::{BloomFilter, BuildError};
use support::{Outcome, argument, figure, mixed, rate};

const TABLES: u64 = 20;
const ERROR_RATE: f64 = 0.01;
/// Filters with the same seed hash alike, so a key is hashed once for all of them.
const SEED: u64 = 7;

/// A table: keys and values sorted by key. In an engine it is a file, and a lookup reads it.
struct Table {
    rows: Vec<(u64, u64)>,
    filter: BloomFilter,
}

impl Table {
    fn new(mut rows: Vec<(u64, u64)>) -> Result<Table, BuildError> {
        rows.sort_unstable();
        let builder = BloomFilter::builder().capacity(rows.len().max(1) as u64);
        let mut filter = builder.error_rate(ERROR_RATE).seed(SEED).build()?;
        filter.extend(rows.iter().map(|(key, _)| key));
        Ok(Table { rows, filter })
    }

    fn read(&self, key: u64) -> Option<u64> {
        let place = self.rows.binary_search_by_key(&key, |row| row.0).ok()?;
        self.rows.get(place).map(|row| row.1)
    }
}

/// What lookups cost: how many tables were read, and how many of these in vain.
#[derive(Default)]
struct Reads {
    all: u64,
    in_vain: u64,
}

impl Reads {
    fn read(&mut self, table: &Table, key: u64) -> Option<u64> {
        let value = table.read(key);
        self.all += 1;
        self.in_vain += u64::from(value.is_none());
        value
    }
}

/// Reads tables, newest first, until one has the key.
fn find(tables: &[Table], key: u64, reads: &mut Reads) -> Option<u64> {
    tables.iter().rev().find_map(|table| reads.read(table, key))
}

/// The same, without the tables whose filter says no.
fn find_filtered(tables: &[Table], key: u64, reads: &mut Reads) -> Option<u64> {
    let hash = tables.first()?.filter.hash(&key);
    let mut newest_first = tables.iter().rev();
    newest_first.find_map(|table| {
        let maybe = table.filter.contains_hash(hash);
        maybe.then(|| reads.read(table, key)).flatten()
    })
}

fn main() -> Outcome {
    let items = argument("items", 1_000_000)?;
    let in_each = items.div_ceil(TABLES);
    let tables: Result<Vec<Table>, _> = (0..TABLES)
        .map(|table| {
            let keys = table * in_each..(table + 1) * in_each;
            Table::new(keys.map(|n| (mixed(n), n)).collect())
        })
        .collect();
    let tables = tables?;
    println!("{TABLES} sorted tables have {in_each} keys each, and a filter each.");

    // Half of the keys are in a table.
    let keys = || (0..2 * in_each * TABLES).step_by(2).map(mixed);
    let (mut without, mut with) = (Reads::default(), Reads::default());
    let found: Vec<Option<u64>> = keys().map(|key| find(&tables, key, &mut without)).collect();
    println!(
        "{} keys were looked up in every table, newest first.",
        found.len()
    );
    let started = Instant::now();
    let again: Vec<Option<u64>> = keys()
        .map(|key| find_filtered(&tables, key, &mut with))
        .collect();
    let seconds = started.elapsed().as_secs_f64();
    println!("They were looked up again in the tables whose filter said maybe.");

    let differences = found.iter().zip(&again).filter(|(a, b)| a != b).count();
    let bytes: usize = tables.iter().map(|table| table.filter.memory_usage()).sum();
    // Each table without the key was read in vain or skipped.
    let spared = without.in_vain;
    println!("\nFigures");
    figure("items", in_each * TABLES);
    figure("lookups", found.len());
    figure("of keys that are there", found.iter().flatten().count());
    figure("missed or different answers", differences);
    figure("table reads without filters", without.all);
    figure("table reads with filters", with.all);
    figure("of these in vain", with.in_vain);
    figure("table reads saved", without.all - with.all);
    figure("memory of the filters, bytes", bytes);
    figure("seconds, with filters", format!("{seconds:.2}"));
    figure("error rate, expected", format!("{ERROR_RATE:.6}"));
    figure(
        "error rate, measured",
        format!("{:.6}", rate(with.in_vain, spared)),
    );
    Ok(())
}
