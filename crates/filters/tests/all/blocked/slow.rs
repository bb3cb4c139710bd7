//! The sizes of the blocked layout by searching: as directly as they are defined.

use std::f64::consts::LN_2;

use everbloom::sizing::{BlockedSize, RATE_CAP, textbook};

/// The largest load that keeps a rate, and its hash count.
pub(super) type Load = (f64, u32);

const HASHES: std::ops::RangeInclusive<u32> = BlockedSize::MIN_HASHES..=BlockedSize::MAX_HASHES;

pub(super) fn new(capacity: u64, error_rate: f64) -> Option<BlockedSize> {
    let in_range = capacity > 0 && (BlockedSize::MIN_RATE..1.0).contains(&error_rate);
    in_range.then(|| sized(capacity, error_rate, best_load(error_rate)))?
}

pub(super) fn sized(capacity: u64, error_rate: f64, (load, hashes): Load) -> Option<BlockedSize> {
    let blocks = ((capacity as f64 / load) as u64).saturating_add(1);
    (blocks <= (1 << 63) / 512).then(|| BlockedSize {
        capacity,
        error_rate,
        hashes,
        bytes: blocks * 64,
    })
}

pub(super) fn max_capacity(bits: u64, (load, _): Load) -> u64 {
    let blocks = bits / 512;
    let mut items = (load * blocks as f64) as u64;
    while items > 0 && ((items as f64 / load) as u64).saturating_add(1) > blocks {
        items -= 1 + items / (1 << 53);
    }
    items
}

pub(super) fn from_bits(bits: u64, hashes: u32, capacity: Option<u64>) -> BlockedSize {
    let blocks = bits.div_ceil(512);
    let capacity = capacity.unwrap_or_else(|| {
        let load = largest(512.0 * LN_2 / f64::from(hashes), |load| {
            hashes == 2 || rate_at_load(load, hashes) <= rate_at_load(load, hashes - 1)
        });
        ((load * blocks as f64) as u64).max(1)
    });
    let rate = rate_at_load(capacity as f64 / blocks as f64, hashes);
    BlockedSize {
        capacity,
        error_rate: rate.clamp(BlockedSize::MIN_RATE, 1.0_f64.next_down()),
        hashes,
        bytes: blocks * 64,
    }
}

pub(super) fn best_hashes(bits: u64, items: u64) -> u32 {
    let load = items as f64 / (bits / 512).max(1) as f64;
    let rates = HASHES.map(|hashes| (hashes, rate_at_load(load, hashes)));
    rates
        .min_by(|(_, one), (_, other)| one.total_cmp(other))
        .unwrap()
        .0
}

pub(super) fn first(capacity: u64, error_rate: f64) -> Option<BlockedSize> {
    let rate = error_rate.min(RATE_CAP);
    let (_, hashes) = best_load(rate * 0.3);
    in_chain(capacity, rate * BlockedSize::share(capacity), hashes)
}

/// A layer of this capacity, where `hashes` is that of the layer before.
pub(super) fn in_chain(capacity: u64, error_rate: f64, hashes: u32) -> Option<BlockedSize> {
    let best = new(capacity, error_rate)?;
    if best.hashes == hashes {
        return Some(best);
    }
    let load = load_of(hashes, error_rate * 0.99);
    let alike = sized(capacity, error_rate, (load, hashes));
    let alike =
        alike.filter(|alike| alike.bytes <= (best.bytes + best.bytes / 8).div_ceil(64) * 64);
    alike.or(Some(best))
}

pub(super) fn best_load(error_rate: f64) -> Load {
    let error_rate = error_rate * 0.99;
    let start = (-error_rate.ln() / LN_2).clamp(2.0, 32.0) as u32;
    let mut best = (load_of(start, error_rate), start);
    // Downhill from the optimum of the classic layout: the loads have one peak.
    let downwards: Vec<u32> = (2..start).rev().collect();
    for hashes in [downwards, (start + 1..=32).collect()] {
        let before = best.1;
        for hashes in hashes {
            let load = load_of(hashes, error_rate);
            if load <= best.0 {
                break;
            }
            best = (load, hashes);
        }
        if best.1 != before {
            break;
        }
    }
    best
}

pub(super) fn load_of(hashes: u32, error_rate: f64) -> f64 {
    let most = textbook::capacity_with_hashes(512.0, hashes.into(), error_rate);
    let most = (most * 1.05 + 1.0).min(4096.0);
    let rates = rates(hashes, most);
    largest(most, |load| mixed(&rates, load) <= error_rate)
}

fn largest(most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..44 {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

pub(super) fn rate_at_load(load: f64, hashes: u32) -> f64 {
    let load = load.clamp(0.0, 4096.0);
    mixed(&rates(hashes, load), load)
}

fn spread(load: f64) -> f64 {
    9.0 * load.sqrt() + 24.0
}

/// The mean over blocks whose numbers of items are Poisson distributed.
fn mixed(rates: &[f64], load: f64) -> f64 {
    let (first, last) = (load - spread(load), load + spread(load));
    let (first, last) = (first as u64, last as u64);
    let (mut weight, mut items) = (1.0, first as f64);
    let (mut sum, mut weights) = (0.0, 0.0);
    for rate in &rates[first as usize..last as usize] {
        sum += weight * rate;
        weights += weight;
        items += 1.0;
        weight *= load / items;
    }
    sum / weights
}

/// The rates of blocks that hold 0, 1, ... items.
fn rates(hashes: u32, most: f64) -> Vec<f64> {
    let mut empty = [1.0; 3];
    let step = [1.0, 2.0, 3.0].map(|cells| power(1.0 - cells / 512.0, hashes));
    let rates = (0..=(most + spread(most)) as u64).map(|_| {
        let rate = all_occupied(hashes, empty);
        for (empty, step) in empty.iter_mut().zip(step) {
            *empty *= step;
        }
        rate
    });
    rates.collect()
}

fn all_occupied(hashes: u32, [one, two, three]: [f64; 3]) -> f64 {
    const NODES: [(f64, f64); 5] = [
        (0.0, 8.0 / 15.0),
        (1.355_626_179_974_266, 0.222_075_922_005_612_6),
        (-1.355_626_179_974_266, 0.222_075_922_005_612_6),
        (2.856_970_013_872_806, 0.011_257_411_327_720_69),
        (-2.856_970_013_872_806, 0.011_257_411_327_720_69),
    ];
    let (n, k) = (512.0, f64::from(hashes));
    let second = one / n + two * (n - 1.0) / n;
    let third =
        one / (n * n) + 3.0 * two * (n - 1.0) / (n * n) + three * (n - 1.0) * (n - 2.0) / (n * n);
    let deviation = (second - one * one).max(0.0).sqrt();
    let skew = third - 3.0 * one * second + 2.0 * one * one * one;
    let falling = k * (k - 1.0) * (k - 2.0) / 6.0;
    let mut sum = 0.0;
    for (node, weight) in NODES {
        let x = (1.0 - one + deviation * node).clamp(0.0, 1.0);
        let correction = match hashes {
            ..=2 => 0.0,
            _ => -falling * skew * power(x, hashes - 3),
        };
        sum += weight * (power(x, hashes) + correction);
    }
    sum.clamp(0.0, 1.0)
}

fn power(x: f64, mut exponent: u32) -> f64 {
    let (mut result, mut base) = (1.0, x);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}
