//! The false positive rates of the blocked layout, measured: filters that are sized for all their
//! items at once, and filters that grow from 100 and from 3000. Then those of the classic layout,
//! where they depend on which items it are: of filters that grow from 100 to 100 000, with five
//! sets of items; and of filters that are exactly full, the mean of many.
//!
//! `cargo run --release -p everbloom --example rates`

use std::ops::Range;

use everbloom::{BuildError, Layout, ScalableBloomFilter, ScalableBuilder};

const PROBES: u64 = 4_000_000;
const RATES: [f64; 4] = [0.1, 0.01, 0.001, 0.0001];

fn main() -> Result<(), BuildError> {
    println!("| items | from | 0.1 | 0.01 | 0.001 | 0.0001 |\n|---|---|--:|--:|--:|--:|");
    for items in [100_000, 10_000_000] {
        for first in [items, 3000, 100] {
            let rates = RATES.map(|rate| {
                let builder = ScalableBloomFilter::builder().layout(Layout::Blocked);
                let builder = builder.seed(7).error_rate(rate).capacity(first);
                if first == items {
                    measured(builder.fixed(), 0..items, PROBES, rate)
                } else {
                    measured(builder, 0..items, PROBES, rate)
                }
            });
            print_row(&format!("{items} | {first}"), rates)?;
        }
    }
    println!("\n| classic | set | 0.1 | 0.01 | 0.001 | 0.0001 |\n|---|---|--:|--:|--:|--:|");
    for set in 0..5 {
        let start = set * 1_000_000_000;
        let rates = RATES.map(|rate| {
            let builder = ScalableBloomFilter::builder().layout(Layout::Classic);
            let builder = builder.error_rate(rate);
            measured(builder, start..start + 100_000, PROBES, rate)
        });
        print_row(&format!("100 to 100000 | {set}"), rates)?;
    }
    println!("\n| just full | layout | 0.1 | 0.01 | 0.001 | 0.0001 |\n|---|---|--:|--:|--:|--:|");
    for (layout, name) in [(Layout::Classic, "classic"), (Layout::Blocked, "blocked")] {
        for items in [10, 100, 1000, 10_000, 100_000] {
            let rates = RATES.map(|rate| mean_of_full(layout, items, rate));
            print_row(&format!("{items} | {name}"), rates)?;
        }
    }
    Ok(())
}

/// Filters that cannot grow, each with as many items as it was made for.
fn mean_of_full(layout: Layout, items: u64, rate: f64) -> Result<f64, BuildError> {
    let filters = (1_000_000 / items).clamp(10, 2000);
    let mut sum = 0.0;
    for filter in 0..filters {
        let builder = ScalableBloomFilter::builder()
            .layout(layout)
            .error_rate(rate);
        let start = filter * 1_000_000_000;
        let builder = builder.capacity(items).fixed();
        sum += measured(builder, start..start + items, PROBES / filters, rate)?;
    }
    Ok(sum / filters as f64)
}

fn print_row(name: &str, rates: [Result<f64, BuildError>; RATES.len()]) -> Result<(), BuildError> {
    print!("| {name} |");
    for rate in rates {
        print!(" {:.3} |", rate?);
    }
    println!();
    Ok(())
}

/// The share of false positives among `probes`, divided by the given rate.
fn measured(
    builder: ScalableBuilder,
    items: Range<u64>,
    probes: u64,
    rate: f64,
) -> Result<f64, BuildError> {
    let mut filter = builder.build()?;
    filter.extend(items.clone().map(u64::to_le_bytes));
    let absent: Vec<[u8; 8]> = (items.end..items.end + probes)
        .map(u64::to_le_bytes)
        .collect();
    let mut found = 0_u32;
    filter.contains_each(&absent, |yes| found += u32::from(yes));
    Ok(f64::from(found) / probes as f64 / rate)
}
