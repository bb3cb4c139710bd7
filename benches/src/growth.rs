//! What growth costs: filters that began with room for a hundred items, with several expansions,
//! beside one that was reserved for all of them.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use everbloom::ScalableBloomFilter;
use everbloom::host::LayeredFilter;
use serde::Serialize;

use crate::Options;
use crate::machine::Machine;
use crate::stats::median;

const RATE: f64 = 0.01;
const FIRST: u64 = 100;
const ROUNDS: usize = 5;
const EXPANSIONS: [u32; 3] = [2, 4, 18];
/// The number of the first absent item. Present ones have the numbers from 0 on.
const ABSENT: u64 = 1 << 40;

/// Items that are timed at once: few, so that what else the machine does is in few of the times.
const SLICE: usize = 1000;

/// A filter of so many items. Times are nanoseconds an item, by round.
#[derive(Debug, Serialize)]
struct Row {
    items: u64,
    /// `None`: reserved for all items.
    expansion: Option<u32>,
    layers: usize,
    bits_per_item: f64,
    present: Vec<f64>,
    absent: Vec<f64>,
    present_in_batches: Vec<f64>,
    absent_in_batches: Vec<f64>,
}

pub fn run(options: &Options) -> Result<()> {
    let sizes: &[u64] = match options.smoke {
        true => &[1000, 3000],
        false => &[1000, 3000, 10_000, 100_000, 1_000_000, 10_000_000],
    };
    let mut rows = Vec::new();
    for &items in sizes {
        eprintln!("{items} items");
        rows.extend(measure(
            items,
            if options.smoke { 1000 } else { 1_000_000 },
        )?);
    }
    let machine = Machine::this();
    let markdown = markdown(&machine, &rows);
    machine.write(&options.results, "growth", &markdown, &rows)?;
    println!("{markdown}");
    Ok(())
}

/// The filters of one size, timed in turn.
fn measure(items: u64, probes: u64) -> Result<Vec<Row>> {
    let expansions = [None].into_iter().chain(EXPANSIONS.map(Some));
    let built = expansions.map(|expansion| {
        let mut filter = empty(items, expansion)?;
        filter.extend((0..items).map(u64::to_le_bytes));
        let row = Row {
            items,
            expansion,
            layers: LayeredFilter::from(filter.clone()).layers().len(),
            bits_per_item: filter.stats().bits as f64 / items as f64,
            present: Vec::new(),
            absent: Vec::new(),
            present_in_batches: Vec::new(),
            absent_in_batches: Vec::new(),
        };
        Ok((filter, row))
    });
    let mut built = built.collect::<Result<Vec<_>>>()?;
    let numbers = |first: u64| {
        let scattered = (0..probes).map(|probe| probe.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
        let numbers = scattered.map(|number| (first + number % items).to_le_bytes());
        numbers.collect::<Vec<_>>()
    };
    let (present, absent) = (numbers(0), numbers(ABSENT));
    for _ in 0..ROUNDS {
        for (filter, row) in &mut built {
            let (time, found) = one_by_one(filter, &present);
            ensure!(found == present.len(), "an item is missing");
            row.present.push(time);
            row.absent.push(one_by_one(filter, &absent).0);
            let (time, found) = in_batches(filter, &present);
            ensure!(found == present.len(), "an item is missing");
            row.present_in_batches.push(time);
            row.absent_in_batches.push(in_batches(filter, &absent).0);
        }
    }
    Ok(built.into_iter().map(|(_, row)| row).collect())
}

fn empty(items: u64, expansion: Option<u32>) -> Result<ScalableBloomFilter> {
    let builder = ScalableBloomFilter::builder().error_rate(RATE).seed(items);
    Ok(match expansion {
        Some(expansion) => builder.capacity(FIRST).expansion(expansion).build()?,
        None => builder.capacity(items).build()?,
    })
}

/// Nanoseconds of a lookup, one by one, and how many items were found.
fn one_by_one(filter: &ScalableBloomFilter, items: &[[u8; 8]]) -> (f64, usize) {
    timed(items, |items| {
        let found = items
            .iter()
            .filter(|item| black_box(filter.contains(*item)));
        found.count()
    })
}

/// Nanoseconds of a lookup in batches, and how many items were found.
fn in_batches(filter: &ScalableBloomFilter, items: &[[u8; 8]]) -> (f64, usize) {
    timed(items, |items| {
        let mut found = 0;
        filter.contains_each(items, |is_found| found += usize::from(is_found));
        found
    })
}

/// The median of all slices, and the sum of what `look_up` returns of each.
fn timed(items: &[[u8; 8]], look_up: impl Fn(&[[u8; 8]]) -> usize) -> (f64, usize) {
    let (mut times, mut found) = (Vec::new(), 0);
    for slice in items.chunks(SLICE) {
        let start = Instant::now();
        found += look_up(slice);
        times.push(start.elapsed().as_nanos() as f64 / slice.len() as f64);
    }
    (median(&times), found)
}

fn markdown(machine: &Machine, rows: &[Row]) -> String {
    let mut text = format!(
        "# Growth\n\n{}\nBlocked filters at {RATE} that began with room for {FIRST} items, beside \
         one that was reserved. Nanoseconds of a lookup of a present / an absent item in random \
         order: medians of slices of {SLICE}, and of {ROUNDS} rounds in turn.\n\n\
         | items | EXPANSION | layers | bits an item | lookup | in batches of {SLICE} |\n\
         |--:|--:|--:|--:|--:|--:|\n",
        machine.markdown()
    );
    for row in rows {
        let expansion = row.expansion.map_or("reserved".into(), |it| it.to_string());
        let _ = writeln!(
            text,
            "| {} | {expansion} | {} | {:.1} | {:.1} / {:.1} | {:.1} / {:.1} |",
            row.items,
            row.layers,
            row.bits_per_item,
            median(&row.present),
            median(&row.absent),
            median(&row.present_in_batches),
            median(&row.absent_in_batches)
        );
    }
    text
}
