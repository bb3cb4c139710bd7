//! The plan as text.

use std::fmt::Write as _;

use everbloom_plot::label;

use super::question::Plan;
use super::sizes::{Kind, Size};
use crate::number::grouped;

/// The most items that BF.RESERVE takes.
const RESERVE_MOST: u64 = 1 << 30;

pub(super) fn render(plan: &Plan) -> String {
    let mut text = format!("{}\n\n", headline(plan));
    // Writing to a String cannot fail.
    let _ = filters(plan, &mut text);
    let _ = others(plan, &mut text);
    let _ = around(plan, &mut text);
    if plan.overfill {
        let _ = overfill(plan, &mut text);
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

fn filters(plan: &Plan, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "{:<22} {:>15} {:>10} {:>18} {:>10} {:>9} {:>6}",
        "filter", "items", "rate", "bytes", "memory", "bits/item", "hashes"
    )?;
    for size in &plan.filters {
        writeln!(
            text,
            "{:<22} {:>15} {:>10} {:>18} {:>10} {:>9.2} {:>6}",
            size.kind.name(),
            grouped(size.capacity),
            label::percent(size.rate),
            grouped(size.bytes),
            label::bytes(size.bytes as f64),
            size.bits_per_item(),
            size.hashes
        )?;
    }
    text.push('\n');
    to_copy(plan, text)
}

/// What makes these filters elsewhere.
fn to_copy(plan: &Plan, text: &mut String) -> std::fmt::Result {
    if let Some(hashes) = plan.question.hashes {
        for (size, layout) in plan
            .filters
            .iter()
            .zip(["Layout::Classic", "Layout::Blocked"])
        {
            let (bits, capacity) = (size.bits(), size.capacity);
            writeln!(
                text,
                "In Rust: everbloom::BloomFilter::builder().layout({layout}).bits({bits})\n         \
                 .hashes({hashes}).capacity({capacity}).build()"
            )?;
        }
        return Ok(());
    }
    for Size {
        kind,
        capacity,
        rate,
        ..
    } in &plan.filters
    {
        match kind {
            Kind::RedisBloom if *capacity > RESERVE_MOST => writeln!(
                text,
                "BF.RESERVE takes at most {} items.",
                grouped(RESERVE_MOST)
            )?,
            Kind::RedisBloom => {
                writeln!(text, "In RedisBloom: BF.RESERVE KEY {rate} {capacity}")?;
            }
            Kind::Blocked => writeln!(
                text,
                "In Rust:       everbloom::BloomFilter::new({capacity}, {rate})\n\
                 In Python:     everbloom.BloomFilter({capacity}, {rate})"
            )?,
            Kind::BlockedGrowing if *capacity <= RESERVE_MOST => writeln!(
                text,
                "On everbloom:  BF.RESERVE KEY {rate} {capacity} LAYOUT BLOCKED"
            )?,
            Kind::Windowed => {
                let seconds = plan.window.map_or(0, |window| window.div_ceil(1000));
                writeln!(
                    text,
                    "With a window: BF.RESERVE KEY {rate} {capacity} WINDOW SECONDS {seconds}"
                )?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn others(plan: &Plan, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "\n{:<22} {:>10}  assumed",
        "instead of a filter", "memory"
    )?;
    for other in &plan.others {
        writeln!(
            text,
            "{:<22} {:>10}  {}",
            other.name,
            label::bytes(other.bytes),
            other.assumed
        )?;
    }
    Ok(())
}

fn around(plan: &Plan, text: &mut String) -> std::fmt::Result {
    write!(text, "\n{:<15}", "memory around it")?;
    for rate in plan.rates() {
        write!(text, "  {:>21}", label::percent(rate))?;
    }
    write!(text, "\n{:>15}", "items")?;
    for _ in plan.rates() {
        write!(text, "  {:>10} {:>10}", "classic", "blocked")?;
    }
    text.push('\n');
    for capacity in plan.capacities() {
        write!(text, "{:>15}", grouped(capacity))?;
        for rate in plan.rates() {
            let [classic, blocked] = [Kind::Classic, Kind::Blocked].map(|kind| {
                let size = plan.size(kind, capacity, rate);
                size.map_or("-".into(), |size: Size| label::bytes(size.bytes as f64))
            });
            write!(text, "  {classic:>10} {blocked:>10}")?;
        }
        text.push('\n');
    }
    Ok(())
}

fn overfill(plan: &Plan, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "\n{:>15} {:>15} {:>10} {:>10}",
        "times full", "items", "classic", "blocked"
    )?;
    for (times, classic, blocked) in plan.overfilled() {
        writeln!(
            text,
            "{times:>15} {:>15} {:>10} {:>10}",
            grouped_float(times * plan.capacity() as f64),
            label::percent(classic),
            label::percent(blocked)
        )?;
    }
    writeln!(
        text,
        "This is a filter that takes more items than its capacity. One that may grow adds a layer\n\
         instead, and one of BF.RESERVE ... NONSCALING refuses more items."
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of items; saturates"
)]
fn grouped_float(number: f64) -> String {
    grouped(number.round() as u64)
}
