//! The plan as text.

use everbloom_plot::label;

use super::question::Plan;
use super::sizes::{Choice, Size};
use crate::number::grouped;

/// The most items that BF.RESERVE takes.
const RESERVE_MOST: u64 = 1 << 30;

/// How far above the rate asked for a filter counts as one that keeps it: the whole number of hashes
/// alone makes up to a tenth.
const TOLERANCE: f64 = 1.1;

pub(super) fn render(plan: &Plan) -> String {
    let mut text = format!("{}\n\n", headline(plan));
    text += &filters(plan);
    text += &to_copy(plan);
    text += &others(plan);
    text += &around(plan);
    if plan.overfill {
        text += &overfill(plan);
    }
    text
}

/// What is planned, or what was found.
fn headline(plan: &Plan) -> String {
    let rate = plan.question.rate.unwrap_or(plan.rate());
    let capacity = grouped(plan.question.capacity.unwrap_or(plan.capacity()));
    let (percent, one_in) = (label::percent(rate), grouped_float(1.0 / rate));
    let found = format!("{capacity} items at an error rate of {percent} (one in {one_in})");
    match plan.question.memory {
        None => found,
        Some(memory) => {
            let (bytes, short) = (grouped(memory), label::bytes(memory as f64));
            format!("{bytes} bytes ({short}) hold {found}")
        }
    }
}

fn filters(plan: &Plan) -> String {
    let mut text = format!(
        "{:<22} {:>15} {:>10} {:>18} {:>10} {:>9} {:>6}\n",
        "filter", "items", "rate", "bytes", "memory", "bits/item", "hashes"
    );
    for size in &plan.filters {
        text += &format!(
            "{:<22} {:>15} {:>10} {:>18} {:>10} {:>9.2} {:>6}\n",
            size.kind.name(),
            grouped(size.capacity),
            label::percent(size.rate),
            grouped(size.bytes),
            label::bytes(size.bytes as f64),
            size.bits_per_item(),
            size.hashes
        );
    }
    text + &exceeding(plan) + "\n"
}

/// The filters that are expected to exceed the rate they are made for, and why.
fn exceeding(plan: &Plan) -> String {
    let exceeds = |size: &&Size| size.expected_rate() > size.rate * TOLERANCE;
    let (by_hashes, by_size): (Vec<_>, Vec<_>) = plan
        .filters
        .iter()
        .filter(exceeds)
        .partition(|size| size.textbook_rate() > size.rate * TOLERANCE);
    listed(
        "The number of hashes is rounded up, so these err",
        &by_hashes,
    ) + &listed("Small filters of the classic layout err", &by_size)
}

/// Filters that err more often than they are made for; `why` begins the sentence.
fn listed(why: &str, filters: &[&Size]) -> String {
    if filters.is_empty() {
        return String::new();
    }
    let mut text = format!("{why} more often. Expected when they are full:\n");
    for size in filters {
        let (name, rate) = (size.kind.name(), label::percent(size.expected_rate()));
        text += &format!("  {name:<22} {rate:>10}\n");
    }
    text
}

/// What makes these filters elsewhere.
fn to_copy(plan: &Plan) -> String {
    let seconds = plan.window.map_or(0, |window| window.div_ceil(1000));
    let line = |size: &Size| {
        let (rate, capacity, bits) = (size.rate, size.capacity, size.bits());
        match (size.kind, plan.question.hashes) {
            // Only two kinds take a number of hashes. Their names are those of the layouts.
            (kind, Some(hashes)) => format!(
                "In Rust: everbloom::BloomFilter::builder().layout(Layout::{kind:?}).bits({bits})\n\
                 \x20        .hashes({hashes}).capacity({capacity}).build()\n"
            ),
            (Choice::RedisBloom, _) if capacity > RESERVE_MOST => {
                format!(
                    "BF.RESERVE takes at most {} items.\n",
                    grouped(RESERVE_MOST)
                )
            }
            (Choice::RedisBloom, _) => {
                format!("In RedisBloom: BF.RESERVE KEY {rate} {capacity}\n")
            }
            (Choice::Blocked, _) => format!(
                "In Rust:       everbloom::BloomFilter::new({capacity}, {rate})\n\
                 In Python:     everbloom.BloomFilter({capacity}, {rate})\n"
            ),
            (Choice::BlockedGrowing, _) if capacity <= RESERVE_MOST => {
                format!("On everbloom:  BF.RESERVE KEY {rate} {capacity} LAYOUT BLOCKED\n")
            }
            (Choice::Windowed, _) => {
                format!(
                    "With a window: BF.RESERVE KEY {rate} {capacity} WINDOW SECONDS {seconds}\n"
                )
            }
            _ => String::new(),
        }
    };
    plan.filters.iter().map(line).collect()
}

fn others(plan: &Plan) -> String {
    let mut text = format!(
        "\n{:<22} {:>10}  assumed\n",
        "instead of a filter", "memory"
    );
    for other in &plan.others {
        let memory = label::bytes(other.bytes);
        text += &format!("{:<22} {memory:>10}  {}\n", other.name, other.assumed);
    }
    text
}

fn around(plan: &Plan) -> String {
    let mut text = format!("\n{:<15}", "memory around it");
    for rate in plan.rates() {
        text += &format!("  {:>21}", label::percent(rate));
    }
    text += &format!("\n{:>15}", "items");
    for _ in plan.rates() {
        text += &format!("  {:>10} {:>10}", "classic", "blocked");
    }
    text.push('\n');
    for capacity in plan.capacities() {
        text += &format!("{:>15}", grouped(capacity));
        for rate in plan.rates() {
            let [classic, blocked] = [Choice::Classic, Choice::Blocked].map(|kind| {
                let size = plan.size(kind, capacity, rate);
                size.map_or("-".into(), |size: Size| label::bytes(size.bytes as f64))
            });
            text += &format!("  {classic:>10} {blocked:>10}");
        }
        text.push('\n');
    }
    text
}

fn overfill(plan: &Plan) -> String {
    let mut text = format!(
        "\n{:>15} {:>15} {:>10} {:>10}\n",
        "times full", "items", "classic", "blocked"
    );
    for (times, classic, blocked) in plan.overfilled() {
        let items = grouped_float(times * plan.capacity() as f64);
        let [classic, blocked] = [classic, blocked].map(label::percent);
        text += &format!("{times:>15} {items:>15} {classic:>10} {blocked:>10}\n");
    }
    text + "This is a filter that takes more items than its capacity. One that may grow adds a layer\n\
            instead, and one of BF.RESERVE ... NONSCALING refuses more items.\n"
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of items; saturates"
)]
fn grouped_float(number: f64) -> String {
    grouped(number.round() as u64)
}
