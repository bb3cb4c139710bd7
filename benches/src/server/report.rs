//! The table as markdown: everything as a ratio to redis-server's ECHO at the same pipeline.

use std::fmt::Write;

use super::plan::{CLIENTS, ECHO, PIPELINES, Peer, RATE};
use super::{Outcome, Results};
use crate::machine::Machine;
use crate::stats::{median, short, spread};

pub fn markdown(machine: &Machine, results: &Results) -> String {
    let mut text = String::from("# Servers\n\n");
    text.push_str(&machine.markdown());
    let scale = &results.scale;
    let _ = writeln!(
        text,
        "\n- everbloom: {}, `{}`\n- redis: {}, `{}`\n- {}; {CLIENTS} connections, {} s a run, \
         medians of {} rounds; filters of {} items at {RATE}, full when probed, the bitmap for as many \
         holding {}\n",
        results.everbloom.version,
        results.everbloom.command,
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
        short(scale.bitmap_items as f64),
    );
    text.push_str(
        "Latency is of a batch, a whole pipeline. Ratio: to redis-server's ECHO at the same \
         pipeline; of BF.MEXISTS and BF.MADD the items, of GETBIT and SETBIT the items. Spread: \
         slowest to fastest run, in parts of the median. Load: the part of the time that the load \
         generator was busy; near 100 % it is the limit.\n",
    );
    for pipeline in PIPELINES {
        table(&mut text, &results.outcomes, pipeline);
    }
    text
}

fn table(text: &mut String, outcomes: &[Outcome], pipeline: usize) {
    let _ = write!(
        text,
        "\n## Pipeline {pipeline}\n\n\
         | | command | requests/s | items/s | ratio | p50 µs | p99 µs | spread | load |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    let here = || outcomes.iter().filter(|o| o.case.pipeline == pipeline);
    let echo = here()
        .find(|o| o.case.peer == Peer::Redis && o.case.label == ECHO)
        .map_or(f64::NAN, |o| o.median(|f| f.requests_per_second));
    for outcome in here() {
        let requests = outcome.median(|f| f.requests_per_second);
        let items = outcome.median(|f| f.items_per_second);
        let all: Vec<_> = outcome
            .rounds
            .iter()
            .map(|f| f.requests_per_second)
            .collect();
        let peer = match outcome.case.peer {
            Peer::Everbloom => "everbloom",
            Peer::Redis => "redis",
        };
        let _ = writeln!(
            text,
            "| {peer} | {} | {} | {} | {:.2} | {:.0} | {:.0} | {:.0} % | {:.0} % |",
            outcome.case.label,
            short(requests),
            if items > 0.0 {
                short(items)
            } else {
                String::new()
            },
            requests.max(items) / echo,
            outcome.median(|f| f.latency_us.p50),
            outcome.median(|f| f.latency_us.p99),
            100.0 * spread(&all),
            100.0 * outcome.median(|f| f.generator_busy),
        );
    }
}

impl Outcome {
    fn median(&self, of: impl Fn(&super::Figures) -> f64) -> f64 {
        median(&self.rounds.iter().map(of).collect::<Vec<_>>())
    }
}
