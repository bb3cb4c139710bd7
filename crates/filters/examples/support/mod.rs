//! What the examples share: their arguments, numbers that only look random, and the figures at
//! their end.

#![allow(dead_code, reason = "each example uses a part of it")]

use std::env;
use std::error::Error;
use std::fmt::Display;

/// What `main` returns: a problem ends the program with its text.
pub(crate) type Outcome<T = ()> = Result<T, Problem>;
pub(crate) type Problem = Box<dyn Error + Send + Sync>;

/// The value after `--NAME`, if it is there.
pub(crate) fn text_argument(name: &str) -> Option<String> {
    let flag = format!("--{name}");
    env::args().skip_while(|word| *word != flag).nth(1)
}

/// The number after `--NAME`, or the usual one.
pub(crate) fn argument(name: &str, usual: u64) -> Outcome<u64> {
    match text_argument(name) {
        None => Ok(usual),
        Some(text) => text
            .parse()
            .map_err(|_| format!("--{name} needs a number, not {text}").into()),
    }
}

/// A number that looks random and is the same every time for the same `n` (SplitMix64).
pub(crate) fn mixed(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The share of some in all.
pub(crate) fn rate(some: u64, all: u64) -> f64 {
    some as f64 / all.max(1) as f64
}

/// Prints a figure. All figures are printed at the end, one on each line.
pub(crate) fn figure(name: &str, value: impl Display) {
    println!("  {name:<42} {value}");
}
