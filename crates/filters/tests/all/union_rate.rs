//! A union that returns at most the error rate that was asked for keeps it, whatever the filter
//! takes afterwards.

use everbloom::host::LayeredFilter;
use everbloom::{Layout, Span};

/// The part of items that were never added which the filter finds, and how far it may be from the
/// truth: four standard deviations.
fn measured(filter: &LayeredFilter) -> (f64, f64) {
    let (probes, mut found) = (300_000_u32, 0);
    let absent = (0..probes).map(|probe| u64::from(probe) + (1 << 40));
    filter.contains_each(absent, |is| found += u32::from(is));
    let rate = f64::from(found) / f64::from(probes);
    (rate, 4.0 * (rate / f64::from(probes)).sqrt())
}

fn assert_keeps(filter: &LayeredFilter, asked: f64, what: &str) {
    let (rate, spread) = measured(filter);
    assert!(
        rate - spread <= asked,
        "{what}: {rate} is {:.2} times what was asked for",
        rate / asked
    );
}

/// Numbers that look random.
fn scramble(number: u64) -> u64 {
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

const ASKED: f64 = 0.02;
const TICKS: u64 = 1200;
const PLANNED: u64 = 12_000;

fn window(generations: u32) -> LayeredFilter {
    let builder = LayeredFilter::builder()
        .capacity(PLANNED)
        .error_rate(ASKED)
        .seed(7);
    let builder = builder.window(Span::Ticks(TICKS), generations, 0);
    builder.build().unwrap()
}

/// Each generation gets what the plan says, or more, until the end.
fn lived(generations: u32, random: u64, name: u64) -> LayeredFilter {
    let mut filter = window(generations);
    let each = TICKS / u64::from(generations);
    let plan = PLANNED / u64::from(generations);
    let begun = 1 + random % (u64::from(generations) + 2);
    for generation in 0..begun {
        filter.advance_to(generation * each).unwrap();
        // A union often comes just after a rotation.
        let is_new = generation + 1 == begun && random & 64 == 0;
        let parts = match is_new {
            true => 0,
            false => scramble(random ^ generation) % 8,
        };
        let items = name + generation * plan * 4..;
        filter.extend(items.take(usize::try_from(plan * parts / 4).unwrap()));
    }
    filter
}

#[test]
fn a_window_keeps_its_rate_after_a_union() {
    let mut merged = [0; 3];
    for (case, generations) in [1, 2, 4].into_iter().enumerate() {
        let each = TICKS / u64::from(generations);
        let plan = PLANNED / u64::from(generations);
        for seed in 0..36 {
            // BF.MERGE with and without a destination, and one that is as new as the newest source.
            let one = lived(generations, scramble(seed), 1 << 32);
            let other = lived(generations, scramble(seed + 100), 2 << 32);
            let mut all = match seed % 3 {
                0 => window(generations),
                1 => one.empty_like().unwrap(),
                _ => one.clone(),
            };
            if seed % 3 == 0 {
                let newest =
                    [&one, &other].map(|it| it.window().unwrap().kept.last().unwrap().began);
                all.advance_to(newest[0].max(newest[1])).unwrap();
            }
            all.union(&one).unwrap();
            all.union(&other).unwrap();
            if all.rate_to_come() > ASKED {
                continue;
            }
            merged[case] += 1;
            let what = format!("{generations} generations, {seed}");
            assert_keeps(&all, ASKED, &what);
            // The newest generation takes what it was planned for, or three times as many, and so do
            // the next ones.
            let mut next = 3 << 32;
            for _ in 0..=generations {
                let window = all.window().unwrap();
                let items = window.items(all.layers().iter().map(everbloom::host::Layer::len));
                let has = items.last().map_or(0, |(_, items)| items);
                let room = (plan * (1 + 2 * (seed / 3 % 2))).saturating_sub(has);
                all.extend(next..next + room);
                next += room;
                assert_keeps(&all, ASKED, &what);
                let began = all.window().unwrap().next_generation().unwrap();
                assert!(all.advance_to(began).unwrap().is_some(), "{each}");
            }
        }
    }
    assert!(merged.iter().all(|merged| *merged >= 4), "{merged:?}");
}

#[test]
fn a_growing_filter_keeps_its_rate_after_a_union() {
    let mut merged = 0;
    for layout in [Layout::Blocked, Layout::Classic] {
        for (capacity, rate) in [(3000, ASKED), (3000, ASKED / 2.0), (700, ASKED / 3.0)] {
            let made = |capacity, rate| {
                let builder = LayeredFilter::builder().layout(layout);
                let builder = builder.capacity(capacity).error_rate(rate);
                match layout {
                    Layout::Blocked => builder.seed(7),
                    Layout::Classic => builder,
                }
                .build()
                .unwrap()
            };
            let mut all = made(3000, ASKED);
            for part in 1..40_u64 {
                let mut other = made(capacity, rate);
                other.extend(part << 32..(part << 32) + capacity);
                let mut more = all.clone();
                more.union(&other).unwrap();
                if more.rate_to_come() > ASKED {
                    break;
                }
                all = more;
                merged += 1;
            }
            all.extend(0..200_000_u64);
            assert_keeps(&all, ASKED, &format!("{layout:?} {capacity} {rate}"));
        }
    }
    assert!(merged >= 8, "{merged}");
}
