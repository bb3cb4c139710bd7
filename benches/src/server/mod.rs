//! Commands a second of servers on one core. `server` compares `everbloom serve` with one thread
//! and redis-server. `module` compares the module, its host's own commands and `everbloom serve`.
//!
//! The servers are pinned to one core; idle servers take nothing of it. The load runs on another
//! core. Each round runs all cases in turn, so that a slow minute of the machine hits all of them.
//! A figure is the median of the rounds.

mod plan;
pub mod process;
mod report;

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::Options;
use crate::load::Figures;
pub use plan::What;
use plan::{Case, Peer, Scale};
use process::Server;

/// A case and the figures of its rounds.
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
    /// redis-server, or the host with the module in it when the module is measured.
    redis: Named,
    valkey_bloom: Option<Named>,
    outcomes: Vec<Outcome>,
}

/// A server as the report describes it.
#[derive(Debug, Serialize)]
struct Named {
    /// The program: redis-server, valkey-server.
    name: String,
    version: String,
    command: String,
}

pub fn run(options: &Options, what: What) -> Result<()> {
    let machine = crate::machine::Machine::this();
    let scale = if options.smoke {
        Scale::SMOKE
    } else {
        Scale::FULL
    };
    let everbloom = Server::everbloom(&options.everbloom)?;
    let module = match what {
        What::Server => None,
        What::Module => Some(options.module.as_path()),
    };
    let redis = Server::redis(&options.redis_server, module)?;
    let theirs = match what {
        What::Server => None,
        What::Module => std::env::var_os("EVERBLOOM_VALKEY_BLOOM"),
    };
    let theirs = theirs.map(|file| Server::redis(&options.redis_server, Some(Path::new(&file))));
    let theirs = theirs.transpose()?;
    let server = |peer| match (peer, &theirs) {
        (Peer::ValkeyBloom, Some(theirs)) => theirs,
        (Peer::Everbloom, _) => &everbloom,
        _ => &redis,
    };
    let mut cases = what.cases(&scale, theirs.is_some());
    // ECHO is what others are compared with.
    cases.retain(|case| case.label == plan::ECHO || options.wants(case.label));
    for (peer, flags) in what.preparations(&scale, theirs.is_some()) {
        eprintln!("filling: {}", server(peer).version);
        process::load(server(peer), &flags)?;
    }
    let named = |server: &Server| Named {
        name: server.name.clone(),
        version: server.version.clone(),
        command: server.command.clone(),
    };
    let mut results = Results {
        scale,
        pinned: process::can_pin(),
        everbloom: named(&everbloom),
        redis: named(&redis),
        valkey_bloom: theirs.as_ref().map(named),
        outcomes: cases.into_iter().map(Outcome::new).collect(),
    };
    for round in 1..=scale.rounds {
        eprintln!("round {round} of {}", scale.rounds);
        for outcome in &mut results.outcomes {
            let case = &outcome.case;
            let figures = process::load(server(case.peer), &case.args)?;
            outcome.rounds.push(figures);
        }
        let markdown = report::markdown(&machine, what, &results);
        machine.write(&options.results, what.name(), &markdown, &results)?;
    }
    println!("{}", report::markdown(&machine, what, &results));
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
