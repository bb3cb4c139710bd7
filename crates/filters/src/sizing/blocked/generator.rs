//! Writes `table.rs` from the formula: `UPDATE_DOCS=1 cargo test -p everbloom --lib generator`.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;
use core::f64::consts::{LN_2, PI};
use core::fmt::Write;

use super::load::{Load, TOLERANCE, about, largest, load_of};
use super::rate::rate_at_load;
use super::table::{HIGHEST, LOWEST, ROWS};
use super::{BlockedSize, RATE_CAP, SIZED_FOR, blocks_of};
use crate::math::power;

const HASHES: core::ops::RangeInclusive<u32> = BlockedSize::MIN_HASHES..=BlockedSize::MAX_HASHES;

/// The load above which one hash fewer is better, and the rate at it.
fn crossing(hashes: u32) -> (f64, f64) {
    if hashes == BlockedSize::MIN_HASHES {
        let rate = 1.0 / 3.0;
        return (load_of(hashes, rate), rate);
    }
    let better = |load| rate_at_load(load, hashes) <= rate_at_load(load, hashes - 1);
    let most = f64::from(BlockedSize::BLOCK_BITS) * LN_2 / f64::from(hashes);
    let within = largest(most, better);
    // The search of a filter's capacity ends at `most`. Few hashes are the best even beyond it.
    let load = match most - within < 1e-9 {
        true => largest(2.0 * most, better),
        false => within,
    };
    (load, rate_at_load(load, hashes))
}

/// The Chebyshev series of so many terms that agrees with the loads in as many places.
fn series(hashes: u32, rate: f64, terms: usize) -> Vec<f64> {
    let angles = (0..terms).map(|place| PI * (place as f64 + 0.5) / terms as f64);
    let loads = angles.clone().map(|angle| {
        let fill = (LOWEST + HIGHEST + (HIGHEST - LOWEST) * angle.cos()) / 2.0;
        load_of(hashes, rate * power(fill, hashes))
    });
    let places: Vec<(f64, f64)> = angles.zip(loads).collect();
    let term = |degree: usize| {
        let sum: f64 = places
            .iter()
            .map(|(angle, load)| load * (degree as f64 * angle).cos())
            .sum();
        sum * if degree == 0 { 1.0 } else { 2.0 } / terms as f64
    };
    (0..terms).map(term).collect()
}

fn table() -> String {
    let terms = ROWS[0].series.len();
    let old = include_str!("table.rs");
    let head = old.split_inclusive("= [\n").next().unwrap();
    let mut text = head.to_owned();
    for hashes in HASHES {
        let (load, rate) = crossing(hashes);
        let series: Vec<String> = series(hashes, rate, terms)
            .iter()
            .map(|term| format!("{term:.9}"))
            .collect();
        let (one, two) = series.split_at(terms / 2);
        let (one, two) = (one.join(", "), two.join(", "));
        write!(
            text,
            "    Row {{ load: {load:?}, rate: {rate:?}, series: [ // {hashes}
        {one},
        {two} ] }},
"
        )
        .unwrap();
    }
    text + "];\n"
}

#[test]
fn the_table_is_what_the_formula_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sizing/blocked/table.rs");
    let table = table();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    assert!(
        table == std::fs::read_to_string(path).unwrap(),
        "run: UPDATE_DOCS=1 cargo test -p everbloom --lib generator"
    );
}

#[test]
fn the_loads_of_the_table_are_within_half_the_tolerance() {
    let (mut worst, mut seen) = (0.0_f64, 0);
    for hashes in HASHES {
        let row = &ROWS[hashes as usize - 2];
        for step in 0..=130 {
            let fill = LOWEST + (HIGHEST - LOWEST) * f64::from(step) / 130.0;
            let rate = row.rate * power(fill, hashes);
            if rate < BlockedSize::MIN_RATE * SIZED_FOR {
                continue;
            }
            let Some(about) = about(hashes, rate) else {
                assert!([0, 130].contains(&step), "{hashes} {fill}");
                continue;
            };
            worst = worst.max((about / load_of(hashes, rate) - 1.0).abs());
            seen += 1;
        }
    }
    assert!(
        worst < TOLERANCE / 2.0 && seen > 3000,
        "{worst:e} of {seen}"
    );
}

/// A search costs as much as thousands of insertions.
#[test]
fn searches_are_rare() {
    let mut searches = 0;
    for step in 0..2000_u64 {
        // From 1e-12 to the highest rate of a filter that grows.
        let rate = RATE_CAP * f64::exp(-0.013 * step as f64);
        let calls = Cell::new(0);
        Load::best(rate * SIZED_FOR).decide(|load| {
            calls.set(calls.get() + 1);
            blocks_of(100 + 517 * step, load)
        });
        searches += usize::from(calls.get() > 2);
        // A filter that grows to a million items. To fill the memory of further layers with zeros
        // takes longer than a search.
        let (mut hashes, mut left) = (Load::best(rate * 0.3 * SIZED_FOR).hashes, rate);
        for share in [0.125; 14].into_iter().chain([0.5]) {
            let part = left * share;
            let Some(layer) = BlockedSize::in_chain(10_000_000, part, hashes) else {
                break;
            };
            assert!(
                about(hashes, part * SIZED_FOR).is_some(),
                "{part:e} of {rate:e}"
            );
            (hashes, left) = (layer.hashes, left - part);
        }
    }
    assert!(searches < 20, "{searches}");
}
