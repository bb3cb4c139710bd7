//! `everbloom serve` with one thread beside redis-server: commands a second on one core.
//!
//! Both servers run pinned to one core, of which the one that is not under load takes nothing;
//! `everbloom bench` runs on another. The cases come in turn, all of them once a round, so that a
//! slow minute of the machine hits all alike; a figure is the median of the rounds.

mod plan;
mod process;
mod report;

use anyhow::Result;
use serde::Serialize;

use crate::Options;
use plan::{Case, Peer, Scale};
use process::{Figures, Server};

/// A case and what its rounds gave.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(flatten)]
    case: Case,
    rounds: Vec<Figures>,
}

/// Everything that is written as JSON.
#[derive(Debug, Serialize)]
struct Results {
    scale: Scale,
    pinned: bool,
    everbloom: Named,
    redis: Named,
    outcomes: Vec<Outcome>,
}

/// A server as the report names it.
#[derive(Debug, Serialize)]
struct Named {
    version: String,
    command: String,
}

pub fn run(options: &Options) -> Result<()> {
    let machine = crate::machine::Machine::this();
    let scale = if options.smoke {
        Scale::SMOKE
    } else {
        Scale::FULL
    };
    let program = &options.everbloom;
    let everbloom = Server::everbloom(program)?;
    let redis = Server::redis()?;
    let server = |peer| match peer {
        Peer::Everbloom => &everbloom,
        Peer::Redis => &redis,
    };
    for (peer, flags) in plan::preparations(&scale) {
        eprintln!("filling: {}", server(peer).version);
        process::bench(program, server(peer), &flags)?;
    }
    let named = |server: &Server| Named {
        version: server.version.clone(),
        command: server.command.clone(),
    };
    let mut results = Results {
        scale,
        pinned: process::can_pin(),
        everbloom: named(&everbloom),
        redis: named(&redis),
        outcomes: plan::cases(&scale).into_iter().map(Outcome::new).collect(),
    };
    for round in 1..=scale.rounds {
        eprintln!("round {round} of {}", scale.rounds);
        for outcome in &mut results.outcomes {
            let case = &outcome.case;
            let figures = process::bench(program, server(case.peer), &case.args)?;
            outcome.rounds.push(figures);
        }
        let markdown = report::markdown(&machine, &results);
        machine.write(&options.results, "server", &markdown, &results)?;
    }
    println!("{}", report::markdown(&machine, &results));
    Ok(())
}

impl Outcome {
    fn new(case: Case) -> Self {
        Self {
            case,
            rounds: Vec::new(),
        }
    }
}
