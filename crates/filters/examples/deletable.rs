//! What deleting costs: cuckoo filters with an error rate, beside RedisBloom's kind, Bloom filters
//! and windows. All are made for the same number of items, and hold as many.
//!
//! `cargo run --release -p everbloom --example deletable`; `-- --items 100000` makes it smaller.

mod support;

use std::time::Instant;

use everbloom::{BloomFilter, CuckooFilter, Item, Span, WindowedBloomFilter};
use support::{Outcome, argument, mixed};

/// The items of a timed slice: so few that another process seldom interrupts it.
const SLICE: u64 = 2000;
/// How often the filter is filled, to take the best time of each slice.
const ROUNDS: u32 = 3;
/// Absent items have the numbers from this one on.
const ABSENT: u64 = 1 << 40;

/// A filter that is measured.
trait Subject: Clone {
    fn insert(&mut self, item: &impl Item) -> Outcome;
    fn contains(&self, item: &impl Item) -> bool;
    fn bits(&self) -> u64;
}

impl Subject for CuckooFilter {
    fn insert(&mut self, item: &impl Item) -> Outcome {
        Ok(CuckooFilter::insert(self, item)?)
    }

    fn contains(&self, item: &impl Item) -> bool {
        CuckooFilter::contains(self, item)
    }

    fn bits(&self) -> u64 {
        self.stats().bits
    }
}

impl Subject for BloomFilter {
    fn insert(&mut self, item: &impl Item) -> Outcome {
        BloomFilter::insert(self, item);
        Ok(())
    }

    fn contains(&self, item: &impl Item) -> bool {
        BloomFilter::contains(self, item)
    }

    fn bits(&self) -> u64 {
        self.stats().bits
    }
}

impl Subject for WindowedBloomFilter {
    fn insert(&mut self, item: &impl Item) -> Outcome {
        self.insert_at(item, 0);
        Ok(())
    }

    fn contains(&self, item: &impl Item) -> bool {
        self.contains_at(item, 0)
    }

    fn bits(&self) -> u64 {
        self.stats().bits
    }
}

fn main() -> Outcome {
    let items = argument("items", 1_000_000)?;
    let probes = argument("probes", 20_000_000)?;
    println!("{items} items, {probes} others\n");
    println!("| filter | bits an item | error rate | insert | lookup | of others |");
    println!("|---|--:|--:|--:|--:|--:|");
    for (name, rate) in [
        ("1 %", 0.01),
        ("0.1 %", 0.001),
        ("0.01 %", 0.0001),
        ("1e-6", 1e-6),
    ] {
        let cuckoo = CuckooFilter::builder().capacity(items).error_rate(rate);
        measure(
            &format!("deletable, {name}"),
            cuckoo.build()?,
            items,
            probes,
        )?;
        let bloom = BloomFilter::builder().capacity(items).error_rate(rate);
        measure(
            &format!("blocked Bloom, {name}"),
            bloom.build()?,
            items,
            probes,
        )?;
        let mut window = WindowedBloomFilter::new(items, rate, Span::Items);
        // It has forgotten some before, as it always has.
        (0..items).for_each(|number| _ = window.insert_at(&(2 * ABSENT + number), 0));
        measure(&format!("window of items, {name}"), window, items, probes)?;
    }
    for (bucket_size, kicks) in [(2, 20), (4, 500)] {
        let plain = CuckooFilter::builder().capacity(items);
        let plain = plain.bucket_size(bucket_size).max_kicks(kicks).build()?;
        let name = format!("RedisBloom's cuckoo, bucket size {bucket_size}, {kicks} kicks");
        measure(&name, plain, items, probes)?;
    }
    Ok(())
}

fn measure(name: &str, empty: impl Subject, items: u64, probes: u64) -> Outcome {
    let (mut filter, mut inserts) = (empty.clone(), Vec::new());
    for _ in 0..ROUNDS {
        filter = empty.clone();
        let round = slices(items, |number| filter.insert(&number.to_le_bytes()))?;
        match inserts.is_empty() {
            true => inserts = round,
            false => {
                for (best, time) in inserts.iter_mut().zip(round) {
                    *best = time.min(*best);
                }
            }
        }
    }
    // A full filter takes longer, so all slices count.
    let inserts = inserts.iter().sum::<f64>() / inserts.len() as f64;
    let lookups = median(slices(items, |number| {
        match filter.contains(&(mixed(number) % items).to_le_bytes()) {
            true => Ok(()),
            false => Err("an item is missing".into()),
        }
    })?);
    let mut errors = 0_u64;
    let others = median(slices(probes, |number| {
        let is_found = filter.contains(&(ABSENT + number).to_le_bytes());
        errors += u64::from(is_found);
        Ok(())
    })?);
    let bits = filter.bits() as f64 / items as f64;
    let rate = support::rate(errors, probes) * 100.0;
    let digits = if rate >= 0.1 { 2 } else { 5 };
    println!(
        "| {name} | {bits:.1} | {rate:.digits$} % | {inserts:.0} ns | {lookups:.0} ns | {others:.0} ns |"
    );
    Ok(())
}

/// The nanoseconds an item, for each slice.
fn slices(items: u64, mut act: impl FnMut(u64) -> Outcome) -> Outcome<Vec<f64>> {
    let mut times = Vec::new();
    let mut next = 0;
    while next < items {
        let end = items.min(next + SLICE);
        let start = Instant::now();
        (next..end).try_for_each(&mut act)?;
        times.push(start.elapsed().as_secs_f64() * 1e9 / (end - next) as f64);
        next = end;
    }
    Ok(times)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
