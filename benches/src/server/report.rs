//! The tables as markdown. They show ratios to the yardsticks at the same pipeline.

use std::fmt::Write;

use super::plan::{CLIENTS, Case, ECHO, PIPELINES, Peer, RATE, SETBIT, SMALL_FILL, What};
use super::{Outcome, Results};
use crate::machine::Machine;
use crate::stats::{median, short, spread};

/// A column of ratios.
struct Yardstick {
    head: &'static str,
    /// Whether the second case is the yardstick of the first one. Both have the same pipeline.
    measures: fn(&Case, &Case) -> bool,
}

const TO_ECHO: fn(&Case, &Case) -> bool = |_, of| of.peer == Peer::Redis && of.label == ECHO;
const TO_SETBIT: fn(&Case, &Case) -> bool = |_, of| of.peer == Peer::Redis && of.label == SETBIT;
const TO_REDIS: fn(&Case, &Case) -> bool =
    |case, of| case.peer == Peer::Everbloom && of.peer == Peer::Redis && of.label == case.label;
const TO_SERVE: fn(&Case, &Case) -> bool =
    |case, of| case.peer != Peer::Everbloom && of.peer == Peer::Everbloom && of.label == case.label;

const TO_VALKEY_BLOOM: fn(&Case, &Case) -> bool =
    |case, of| case.peer == Peer::Module && of.peer == Peer::ValkeyBloom && of.label == case.label;

impl What {
    fn title(self) -> &'static str {
        match self {
            What::Server => "Servers",
            What::Module => "The module",
        }
    }

    fn yardsticks(self) -> &'static [Yardstick] {
        const fn to(head: &'static str, measures: fn(&Case, &Case) -> bool) -> Yardstick {
            Yardstick { head, measures }
        }
        match self {
            What::Server => const { &[to("to ECHO", TO_ECHO), to("to redis", TO_REDIS)] },
            What::Module => {
                const {
                    &[
                        to("to ECHO", TO_ECHO),
                        to("to SETBIT", TO_SETBIT),
                        to("to serve", TO_SERVE),
                        to("to valkey-bloom", TO_VALKEY_BLOOM),
                    ]
                }
            }
        }
    }

    /// The text about bitmaps in the head of the report.
    fn bitmaps(self, results: &Results) -> String {
        match self {
            What::Server => format!(
                "the bitmap for as many holding {}, and bitmaps of 10 M and 1000 M bits; {} \
                 filters as BF.ADD makes them and as many bitmaps of 125 bytes, with {SMALL_FILL} \
                 items each at first",
                short(results.scale.bitmap_items as f64),
                results.scale.keys
            ),
            What::Module => "the bitmap of as many bits as the classic one".to_owned(),
        }
    }

    /// The text about the ratios.
    fn ratios(self, host: &str) -> String {
        match self {
            What::Server => format!(
                "Ratios: to {host}'s ECHO and to its own same command at the same pipeline; of \
                 BF.MEXISTS and BF.MADD the items, of GETBIT and SETBIT the items."
            ),
            What::Module => format!(
                "Ratios: to {host}'s ECHO and SETBIT at the same pipeline, and to the same command \
                 of `everbloom serve`; of BF.MEXISTS and BF.MADD the items. ECHO, SETBIT and the \
                 module are one process."
            ),
        }
    }
}

pub fn markdown(machine: &Machine, what: What, results: &Results) -> String {
    let mut text = format!("# {}\n\n{}", what.title(), machine.markdown());
    let scale = &results.scale;
    let _ = writeln!(
        text,
        "\n- everbloom: {}, `{}`\n- {}: {}, `{}`\n- {}; {CLIENTS} connections, {} s a run, \
         medians of {} rounds; filters of {} items at {RATE}, full when probed, {}\n",
        results.everbloom.version,
        results.everbloom.command,
        results.short_name(Peer::Redis),
        results.redis.version,
        results.redis.command,
        if results.pinned {
            "servers on core 0, load on core 1 (`taskset`)"
        } else {
            "**not pinned to cores**"
        },
        scale.seconds,
        results.outcomes.last().map_or(0, |o| o.rounds.len()),
        short(scale.items as f64),
        what.bitmaps(results),
    );
    if let Some(theirs) = &results.valkey_bloom {
        let _ = writeln!(
            text,
            "- valkey-bloom: {}, `{}`\n",
            theirs.version, theirs.command
        );
    }
    let _ = writeln!(
        text,
        "Latency is of a batch, a whole pipeline. {} Spread: slowest to fastest run, in parts of \
         the median. Load: the part of the time that the load generator was busy; near 100 % it is \
         the limit.",
        what.ratios(&results.redis.name)
    );
    for pipeline in PIPELINES {
        table(&mut text, what.yardsticks(), results, pipeline);
    }
    text
}

fn table(text: &mut String, yardsticks: &[Yardstick], results: &Results, pipeline: usize) {
    let heads: Vec<_> = yardsticks.iter().map(|yardstick| yardstick.head).collect();
    let _ = write!(
        text,
        "\n## Pipeline {pipeline}\n\n\
         | | command | requests/s | items/s | {} | p50 µs | p99 µs | spread | load |\n\
         |---|---|--:|--:|{}--:|--:|--:|--:|\n",
        heads.join(" | "),
        "--:|".repeat(heads.len())
    );
    let here: Vec<_> = results
        .outcomes
        .iter()
        .filter(|o| o.case.pipeline == pipeline)
        .collect();
    for outcome in &here {
        let items = outcome.median(|f| f.items_per_second);
        let ratio = |yardstick: &Yardstick| {
            let measures = |of: &&&Outcome| (yardstick.measures)(&outcome.case, &of.case);
            let of = here.iter().find(measures);
            of.map_or_else(String::new, |of| {
                format!("{:.2}", outcome.rate() / of.rate())
            })
        };
        let ratios: Vec<_> = yardsticks.iter().map(ratio).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.0} | {:.0} | {:.0} % | {:.0} % |",
            results.short_name(outcome.case.peer),
            outcome.case.label,
            short(outcome.median(|f| f.requests_per_second)),
            if items > 0.0 {
                short(items)
            } else {
                String::new()
            },
            ratios.join(" | "),
            outcome.median(|f| f.latency_us.p50),
            outcome.median(|f| f.latency_us.p99),
            100.0 * outcome.spread(),
            100.0 * outcome.median(|f| f.generator_busy),
        );
    }
}

impl Results {
    /// The name of a peer in a table. The host has its own name.
    fn short_name(&self, peer: Peer) -> &str {
        match peer {
            Peer::Everbloom => "everbloom",
            Peer::Module => "module",
            Peer::ValkeyBloom => "valkey-bloom",
            Peer::Redis => self.redis.name.trim_end_matches("-server"),
        }
    }
}

impl Outcome {
    fn median(&self, of: impl Fn(&super::Figures) -> f64) -> f64 {
        median(&self.rounds.iter().map(of).collect::<Vec<_>>())
    }

    /// The rate that ratios use: items a second, or requests a second without items.
    fn rate(&self) -> f64 {
        let requests = self.median(|f| f.requests_per_second);
        requests.max(self.median(|f| f.items_per_second))
    }

    fn spread(&self) -> f64 {
        let all: Vec<_> = self.rounds.iter().map(|f| f.requests_per_second).collect();
        spread(&all)
    }
}
