//! Seeds: those that failed once, and some hundred more.

mod traces;

use std::time::{Duration, Instant};

use everbloom_simulation::{Plan, play, report};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Seeds that have found a defect.
const CORPUS: &str = include_str!("../../corpus.txt");

fn check(seed: u64) {
    assert!(play(&Plan::of(seed)).is_ok(), "{}", report::failure(seed));
}

#[test]
fn seeds_that_failed_once_pass() {
    let numbers = CORPUS.lines().filter(|line| !line.starts_with('#'));
    for number in numbers.filter_map(|line| line.split(' ').next()?.parse().ok()) {
        check(number);
    }
}

#[test]
fn some_hundred_seeds_pass() {
    let begun = Instant::now();
    // On a slow machine fewer of them.
    (0..300)
        .take_while(|_| begun.elapsed() < Duration::from_secs(20))
        .for_each(check);
}
