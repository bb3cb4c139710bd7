//! The false positive rates of the blocked layout, measured: filters that are sized for all their
//! items at once, and filters that grow from 100 and from 3000.
//!
//! `cargo run --release -p everbloom --example rates`

use everbloom::{BuildError, Layout, ScalableBloomFilter};

const PROBES: u64 = 4_000_000;

fn main() -> Result<(), BuildError> {
    println!("| items | from | 0.1 | 0.01 | 0.001 | 0.0001 |\n|---|---|--:|--:|--:|--:|");
    for items in [100_000, 10_000_000] {
        for first in [items, 3000, 100] {
            let rates = [0.1, 0.01, 0.001, 0.0001].map(|rate| measured(items, first, rate));
            print!("| {items} | {first} |");
            for rate in rates {
                print!(" {:.3} |", rate?);
            }
            println!();
        }
    }
    Ok(())
}

/// The share of false positives, in parts of the rate asked for.
fn measured(items: u64, first: u64, rate: f64) -> Result<f64, BuildError> {
    let builder = ScalableBloomFilter::builder().layout(Layout::Blocked);
    let builder = builder.seed(7).error_rate(rate).capacity(first);
    let mut filter = if first == items {
        builder.fixed().build()?
    } else {
        builder.build()?
    };
    filter.extend((0..items).map(u64::to_le_bytes));
    let absent: Vec<[u8; 8]> = (items..items + PROBES).map(u64::to_le_bytes).collect();
    let found = filter.contains_all(&absent);
    let false_positives = found.iter().filter(|found| **found).count();
    Ok(false_positives as f64 / PROBES as f64 / rate)
}
