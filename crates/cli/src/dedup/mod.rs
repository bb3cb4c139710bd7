//! `everbloom dedup`: drops the records that were seen before.
//!
//! The main thread takes the records in order ([`crate::records`]), asks the filter, and prints
//! ([`judge`]).

mod args;
mod judge;
mod loss;
mod memory;
mod report;
mod server;
mod state;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::failure::Failure;
use crate::records::args::sources;
use crate::records::chunk::{Chunk, Digest};
use crate::records::input;
use crate::records::output::Output;
use crate::records::pipeline::Pipeline;
use crate::records::progress::Progress;
use crate::records::reader::Shared;
use crate::records::signals::Signals;
pub(crate) use args::Args;
use judge::Judge;
use loss::Loss;
use memory::{Local, Memory};
use server::Server;
use state::State;

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let sources = sources(&args.files);
    let sizes = input::sizes(&sources);
    let mut state = State::open(args)?;
    let server = server(args)?;
    let shared = Arc::new(Shared::default());
    // Without a memory that outlives it, a run has nothing to do at its end.
    let signals = if state.has_file() || server.is_some() {
        Signals::catch(Arc::clone(&shared))?
    } else {
        Signals::default()
    };
    let digest = match server {
        Some(_) => Digest::Keys,
        None => Digest::Hashes(state.hasher(), state.has_file()),
    };
    let output = (!args.count).then(Output::stdout).transpose()?;
    let (terminator, key_of) = (args.records.terminator(), args.records.key_of());
    let mut pipeline = Pipeline::start(sources, terminator, &key_of, &digest, Arc::clone(&shared))?;
    let first = pipeline.next()?;
    let memory = match server {
        Some(server) => Memory::Server(Box::new(server)),
        None => Memory::Local(Box::new(Local {
            filter: state.take_filter(first.as_ref(), sizes.unpacked)?,
            loss: Loss::default(),
            lasts: state.has_file(),
        })),
    };
    let mut judge = Judge::new(memory, output, args.repeated, args.records.strict);

    // Where the records go to the same terminal, it would be in their way.
    let hidden = args.quiet || (!args.count && io::stdout().is_terminal());
    let progress = Progress::new(sizes.stored, hidden);
    let judged = judge_all(&mut judge, &mut pipeline, first, &shared, &progress);
    progress.end();
    if let (Memory::Local(local), false) = (&judge.memory, args.count) {
        state.save(&local.filter)?;
    }
    judged?;
    if args.count {
        writeln!(io::stdout(), "{}", judge.tally.kept)?;
    }
    report::summarize(&judge.tally, &judge.memory, args);
    Ok(match signals.exit_code() {
        Some(code) => ExitCode::from(code),
        None => ExitCode::from(u8::from(shared.failed.load(Ordering::Relaxed) > 0)),
    })
}

fn judge_all(
    judge: &mut Judge,
    pipeline: &mut Pipeline,
    first: Option<Chunk>,
    shared: &Shared,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut next = first;
    while let Some(mut chunk) = next {
        judge.judge(&mut chunk)?;
        pipeline.recycle(chunk);
        progress.update(shared, || judge.tally.progress());
        next = pipeline.next()?;
    }
    Ok(())
}

fn server(args: &Args) -> Result<Option<Server>, Failure> {
    let (Some(url), Some(key)) = (&args.url, &args.key) else {
        return Ok(None);
    };
    let error_rate = args.error_rate.unwrap_or(args::ERROR_RATE);
    Server::connect(url, &args.login, key, args.capacity, error_rate)
        .map(Some)
        // Whether a server refuses or is not there, the run has not begun: the exit code is 2.
        .map_err(|failure| Failure::Usage(failure.to_string()))
}
