//! `everbloom dedup`: drops the records that were seen before.
//!
//! One thread reads pieces of the input that end where a record ends ([`reader`]), others find and
//! hash the keys ([`chunk`]), and the main thread takes the pieces in order, asks the filter, and
//! prints ([`judge`]). The pieces go round ([`pipeline`]).

mod args;
mod chunk;
mod input;
mod json;
mod judge;
mod keys;
mod loss;
mod memory;
mod output;
mod pipeline;
mod reader;
mod report;
mod server;
mod signals;
mod state;
mod unpack;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use memchr::memmem::Finder;

use crate::failure::Failure;
pub(crate) use args::Args;
use chunk::{Chunk, Digest};
use input::Source;
use judge::Judge;
use keys::KeyOf;
use loss::Loss;
use memory::{Local, Memory};
use output::Output;
use pipeline::Pipeline;
use reader::Shared;
use report::Progress;
use server::Server;
use signals::Signals;
use state::State;

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let sources = sources(args);
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
        None => Digest::Hashes(state.hasher()?, state.has_file()),
    };
    let output = (!args.count).then(Output::stdout).transpose()?;
    let terminator = if args.null { 0 } else { b'\n' };
    let key_of = key_of(args);
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
    let mut judge = Judge::new(memory, output, args.repeated, args.strict);

    let progress = Progress::new(sizes.stored, args);
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
        progress.update(shared, &judge.tally);
        next = pipeline.next()?;
    }
    Ok(())
}

fn sources(args: &Args) -> Vec<Source> {
    if args.files.is_empty() {
        return vec![Source::of(Path::new("-"))];
    }
    args.files.iter().map(|name| Source::of(name)).collect()
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

fn key_of(args: &Args) -> KeyOf {
    if let Some(path) = &args.json {
        return KeyOf::Json(path.clone());
    }
    let Some(number) = args.field else {
        return KeyOf::Whole;
    };
    let delimiter = args.delimiter.as_deref().unwrap_or("\t");
    KeyOf::Field {
        number: usize::try_from(number).unwrap_or(usize::MAX) - 1,
        delimiter: Box::new(Finder::new(delimiter).into_owned()),
    }
}
