//! A large filter at several fills: what it takes of memory, and how fast it is.

use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use everbloom::{BloomFilter, Layout};
use serde::Serialize;

use crate::Options;
use crate::machine::Machine;
use crate::stats::median;

const RATE: f64 = 0.01;
const ROUNDS: usize = 5;
const SMALL_PAGE: f64 = 4096.0;
const HUGE_PAGE: u64 = 2 << 20;

/// A fill of one layout. Sizes are bytes, times are nanoseconds an item.
#[derive(Debug, Serialize)]
struct Row {
    layout: &'static str,
    items: u64,
    /// What all items together touch of small pages, on average.
    touched: f64,
    resident: u64,
    on_huge_pages: u64,
    present: f64,
    absent: f64,
}

/// The time of single inserts, in microseconds, while a filter moves to huge pages.
#[derive(Debug, Serialize)]
struct Slowest {
    layout: &'static str,
    /// How many huge pages there are, and so many inserts are looked at: the slowest.
    inserts: usize,
    median: f64,
    worst: f64,
}

pub fn run(options: &Options) -> Result<()> {
    let capacity: u64 = if options.smoke {
        1_000_000
    } else {
        100_000_000
    };
    let (mut rows, mut slowest) = (Vec::new(), Vec::new());
    for (name, layout) in [("classic", Layout::Classic), ("blocked", Layout::Blocked)] {
        let (resident, huge) = (measured("Rss")?, measured("AnonHugePages")?);
        let builder = BloomFilter::builder().layout(layout);
        let mut filter = builder.capacity(capacity).error_rate(RATE).build()?;
        let mut times = Vec::new();
        for items in [1_000, capacity / 100, capacity / 10, capacity / 2, capacity] {
            insert(&mut filter, items, &mut times);
            rows.push(Row {
                layout: name,
                items,
                touched: touched(&filter, items),
                resident: measured("Rss")?.saturating_sub(resident),
                on_huge_pages: measured("AnonHugePages")?.saturating_sub(huge),
                present: look_up(&filter, 0, items, true)?,
                absent: look_up(&filter, 1 << 40, items, false)?,
            });
            if items == capacity / 100 {
                slowest.push(slowest_of(&mut times, name, &filter));
                // Resident, too.
                times = Vec::new();
            }
        }
    }
    let machine = Machine::this();
    let markdown = markdown(&machine, capacity, &rows, &slowest);
    machine.write(&options.results, "fills", &markdown, &(&rows, &slowest))?;
    println!("{markdown}");
    Ok(())
}

/// Inserts items until there are so many. The first hundredth is timed, one by one.
fn insert(filter: &mut BloomFilter, items: u64, times: &mut Vec<f64>) {
    let timed = filter.capacity() / 100;
    let mut number = filter.len();
    while filter.len() < items {
        let item = number.to_le_bytes();
        number += 1;
        if number > timed {
            filter.insert(&item);
            continue;
        }
        let start = Instant::now();
        filter.insert(&item);
        let micros = start.elapsed().as_nanos() as f64 / 1000.0;
        // An insert takes less than this, unless something happens.
        if micros > 20.0 {
            times.push(micros);
        }
    }
}

fn touched(filter: &BloomFilter, items: u64) -> f64 {
    let an_item = match filter.layout() {
        Layout::Classic => f64::from(filter.hashes()),
        Layout::Blocked => 1.0,
    };
    let bytes = filter.bits() as f64 / 8.0;
    -f64::exp_m1(-(items as f64) * an_item * SMALL_PAGE / bytes) * bytes
}

/// Nanoseconds of a lookup, one by one in random order, of items numbered from `first`.
fn look_up(filter: &BloomFilter, first: u64, items: u64, present: bool) -> Result<f64> {
    let probes = 1_000_000.min(filter.capacity());
    let mut rounds = Vec::new();
    for round in 0..ROUNDS as u64 {
        let start = Instant::now();
        let mut found = 0;
        for probe in 0..probes {
            let number = (probe + round * probes).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let item = (first + number % items).to_le_bytes();
            found += u64::from(black_box(filter.contains(&item)));
        }
        rounds.push(start.elapsed().as_nanos() as f64 / probes as f64);
        // An item that seemed to be there was inserted all the same, so none is missing.
        ensure!(!present || found == probes, "an item is missing");
    }
    Ok(median(&rounds))
}

fn slowest_of(times: &mut [f64], layout: &'static str, filter: &BloomFilter) -> Slowest {
    times.sort_by(|one, other| other.total_cmp(one));
    let inserts = (filter.bits() / 8 / HUGE_PAGE) as usize;
    let slowest = times.get(..inserts).unwrap_or(times);
    Slowest {
        layout,
        inserts,
        median: median(slowest),
        worst: slowest.first().copied().unwrap_or(0.0),
    }
}

/// Bytes in a line of this process's sum of mappings.
fn measured(line: &str) -> Result<u64> {
    let lines = fs::read_to_string("/proc/self/smaps_rollup").context("Linux only")?;
    let rest = lines.lines().find_map(|each| each.strip_prefix(line));
    let number = rest.and_then(|rest| rest.trim_start_matches(':').split_whitespace().next());
    Ok(number.context("no such line")?.parse::<u64>()? << 10)
}

fn markdown(machine: &Machine, capacity: u64, rows: &[Row], slowest: &[Slowest]) -> String {
    let mut text = format!(
        "# Fills\n\n{}\nOne filter for {capacity} items at {RATE}. Lookups one by one in random \
         order: nanoseconds, medians of {ROUNDS}.\n\n\
         | layout | items | small pages touched, MB | resident, MB | on huge pages, MB \
         | present | absent |\n|---|--:|--:|--:|--:|--:|--:|\n",
        machine.markdown()
    );
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
            row.layout,
            row.items,
            row.touched / 1e6,
            row.resident as f64 / 1e6,
            row.on_huge_pages as f64 / 1e6,
            row.present,
            row.absent
        );
    }
    text.push_str(
        "\nThe slowest inserts of the first hundredth, as many as there are huge pages:\n",
    );
    for Slowest {
        layout,
        inserts,
        median,
        worst,
    } in slowest
    {
        let _ = writeln!(
            text,
            "- {layout}: {inserts} inserts, median {median:.0} µs, worst {worst:.0} µs"
        );
    }
    text
}
