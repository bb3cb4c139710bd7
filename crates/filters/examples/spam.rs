//! Detects repeated content, even with small changes: the runs of four words of each message go
//! into a filter with a window, which forgets old ones.
//!
//! `cargo run --release --example spam`; `-- --items 20000` makes it smaller.

mod support;

use std::collections::HashSet;
use std::time::Instant;

use everbloom::{Span, WindowedBloomFilter};
use support::{Outcome, argument, figure, mixed, rate};

/// How many words make a run.
const RUN: usize = 4;
/// A message is a repeat when so many percent of its runs are known.
const KNOWN_PERCENT: usize = 60;
const ERROR_RATE: f64 = 0.001;
/// How many messages are remembered: those of a day, say.
const WINDOW: u64 = 100_000;
const WORDS_IN_MESSAGE: usize = 14;
const ADVERTISEMENTS: u64 = 100;

/// Whether a message repeats recent content. Its runs are remembered either way, from now on: the
/// clock counts messages.
fn is_repeat(recent: &mut WindowedBloomFilter, message: &str, now: u64) -> bool {
    let words = normalised(message);
    let (mut runs, mut known) = (0, 0);
    for run in words.windows(RUN) {
        runs += 1;
        known += usize::from(!recent.insert_at(&run.join(" "), now));
    }
    runs > 0 && known * 100 >= runs * KNOWN_PERCENT
}

/// The words of a message, in small letters and without signs.
fn normalised(message: &str) -> Vec<String> {
    let words = message.split_whitespace().map(|word| {
        let letters = word.chars().filter(|letter| letter.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect::<String>()
    });
    words.filter(|word| !word.is_empty()).collect()
}

/// A message whose words come from a number, each of 50 000 words.
fn words_of(n: u64) -> Vec<String> {
    let word = |place| format!("w{}", mixed(mixed(n) ^ place) % 50_000);
    (0..WORDS_IN_MESSAGE as u64).map(word).collect()
}

/// One more copy of an advertisement: one word is another, a letter is large, signs are added.
fn advertisement(campaign: u64, copy: u64) -> String {
    let mut words = words_of(u64::MAX - campaign);
    let changed = usize::try_from(mixed(copy) % 3).unwrap_or(0);
    if let Some(word) = words.get_mut(changed) {
        *word = format!("Name{copy}");
    }
    words
        .join(if copy.is_multiple_of(2) { "  " } else { "! " })
        .to_uppercase()
}

fn main() -> Outcome {
    let items = argument("items", 1_000_000)?;
    let window = WINDOW.min(items / 4).max(1);
    let runs_in_window = window * WORDS_IN_MESSAGE as u64;
    let mut recent = WindowedBloomFilter::new(runs_in_window, ERROR_RATE, Span::Ticks(window));
    println!("{items} messages arrive. One of five is one of {ADVERTISEMENTS} advertisements.");
    println!("No copy is like another: a word, the letters and the signs change.");
    let started = Instant::now();
    let (mut copies, mut stopped, mut others, mut wrong) = (0, 0, 0, 0);
    let mut sent = HashSet::new();
    for n in 0..items {
        let campaign = mixed(n) % (5 * ADVERTISEMENTS);
        let is_advertisement = campaign < ADVERTISEMENTS;
        // The first copy repeats nothing.
        let is_copy = is_advertisement && !sent.insert(campaign);
        let message = if is_advertisement {
            advertisement(campaign, n)
        } else {
            words_of(n).join(" ")
        };
        let is_stopped = u64::from(is_repeat(&mut recent, &message, n));
        if is_copy {
            copies += 1;
            stopped += is_stopped;
        } else {
            others += 1;
            wrong += is_stopped;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "A message is stopped when {KNOWN_PERCENT} of 100 of its runs of {RUN} words are known."
    );

    // So many runs of a message must be false positives.
    let runs = WORDS_IN_MESSAGE - RUN + 1;
    let needed = (runs * KNOWN_PERCENT).div_ceil(100);
    println!("\nFigures");
    figure("items", items);
    figure("repeats", copies);
    figure("of these stopped", stopped);
    figure("missed", copies - stopped);
    figure("messages that are no repeat", others);
    figure("of these stopped by mistake", wrong);
    figure(
        "runs that must be false positives",
        format!("{needed} of {runs}"),
    );
    figure("error rate of a run, at most", ERROR_RATE);
    figure(
        "error rate of a message, measured",
        format!("{:.6}", rate(wrong, others)),
    );
    figure("memory of the filter, bytes", recent.stats().bytes());
    figure("seconds", format!("{seconds:.2}"));
    Ok(())
}
