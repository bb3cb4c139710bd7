//! The results of a run as text or JSON.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::args::Args;
use super::load::Tally;
use super::setup::Setup;

/// Throughput, answers and latency of a run. The JSON has the same field names.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    server: String,
    command: &'static str,
    keys: u64,
    clients: usize,
    pipeline: usize,
    threads: usize,
    items_per_request: usize,
    /// More than 1 for a bitmap: there a request is the pipeline for one item.
    commands_per_request: usize,
    hit_share: f64,
    filled: u64,
    seed: u64,
    seconds: f64,
    requests: u64,
    requests_per_second: f64,
    commands_per_second: f64,
    items: u64,
    items_per_second: f64,
    /// Items whose answer was 1: a probe found them, or an add found them new.
    positives: u64,
    positive_share: Option<f64>,
    /// For probes only: the share found among the items that were never added.
    false_positive_share: Option<f64>,
    latency_us: Latency,
    /// The share of the time in which the load generator did not wait for the server.
    generator_busy: f64,
}

/// The latency of batches in microseconds, from the first byte sent to the last byte received.
#[derive(Clone, Copy, Debug, Serialize)]
struct Latency {
    mean: f64,
    p50: f64,
    p99: f64,
    p99_9: f64,
    max: f64,
}

impl Report {
    pub(super) fn new(args: &Args, setup: &Setup, tally: &Tally) -> Self {
        let recipe = &setup.recipe;
        let seconds = tally.elapsed.as_secs_f64();
        let a_second = |count: u64| count as f64 / seconds.max(f64::MIN_POSITIVE);
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let latency = &tally.latency;
        let threads_time = seconds * setup.threads as f64;
        Self {
            server: setup.target.place.to_string(),
            command: recipe.verb.name(),
            keys: recipe.keys.count(),
            clients: args.clients,
            pipeline: args.pipeline,
            threads: setup.threads,
            items_per_request: recipe.shape().items,
            commands_per_request: recipe.commands(),
            hit_share: recipe.hit_share,
            filled: recipe.present,
            seed: recipe.seed,
            seconds,
            requests: tally.requests,
            requests_per_second: a_second(tally.requests),
            commands_per_second: a_second(tally.requests) * recipe.commands() as f64,
            items: tally.items,
            items_per_second: a_second(tally.items),
            positives: tally.positives,
            positive_share: share(tally.positives, tally.items),
            false_positive_share: share(tally.other_positives, tally.others)
                .filter(|_| recipe.verb.probes()),
            latency_us: Latency {
                mean: micros(latency.mean()),
                p50: micros(latency.quantile(0.5)),
                p99: micros(latency.quantile(0.99)),
                p99_9: micros(latency.quantile(0.999)),
                max: micros(latency.max()),
            },
            generator_busy: 1.0 - (tally.waited.as_secs_f64() / threads_time).clamp(0.0, 1.0),
        }
    }

    pub(super) fn json(&self) -> String {
        // A report has only numbers and texts, so this cannot fail.
        let json = serde_json::to_string_pretty(self).unwrap_or_default();
        format!("{json}\n")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} at {}: {} clients, pipeline {}, {} thread{}\n",
            self.command,
            self.server,
            self.clients,
            self.pipeline,
            self.threads,
            if self.threads == 1 { "" } else { "s" }
        )?;
        let mut row = |name: &str, value: String| writeln!(f, "{name:<16}{value}");
        if self.keys > 1 {
            row("keys", grouped(self.keys as f64))?;
        }
        row(
            "requests",
            format!("{} in {:.2} s", grouped(self.requests as f64), self.seconds),
        )?;
        row("requests/s", grouped(self.requests_per_second))?;
        if self.commands_per_request > 1 {
            row("commands/s", grouped(self.commands_per_second))?;
        }
        if self.items > 0 {
            row("items/s", grouped(self.items_per_second))?;
        }
        if let Some(share) = self.positive_share {
            row("answered 1", format!("{:.3} %", 100.0 * share))?;
        }
        if let Some(share) = self.false_positive_share {
            let text = format!("{:.3} % of what was never added", 100.0 * share);
            row("false positives", text)?;
        }
        let latency = &self.latency_us;
        row(
            "latency",
            format!(
                "p50 {:.0} µs   p99 {:.0} µs   p99.9 {:.0} µs   max {:.0} µs",
                latency.p50, latency.p99, latency.p99_9, latency.max
            ),
        )?;
        let busy = format!("{:.0} % busy", 100.0 * self.generator_busy);
        row("load generator", busy)
    }
}

/// A whole number with its thousands separated.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in [
            (0.0, "0"),
            (999.4, "999"),
            (1000.0, "1 000"),
            (1_234_567.0, "1 234 567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
