//! `everbloom dedup`: drops the records that were seen before.
//!
//! The main thread takes the records in order ([`crate::records`]), asks the filter, and prints
//! ([`deduplicator`]).

mod args;
mod deduplicator;
mod loss;
mod memory;
mod report;
mod saver;
mod server;
mod state;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::client::is_url;
use crate::failure::{Failure, say};
use crate::progress::Progress;
use crate::records::args::sources;
use crate::records::chunk::{Chunk, Digest};
use crate::records::input::{self, Source};
use crate::records::output::Output;
use crate::records::pipeline::Pipeline;
use crate::records::shared::Shared;
use crate::records::signals::Signals;
pub(crate) use args::Args;
use deduplicator::Deduplicator;
use loss::Loss;
use memory::{Local, Memory};
use report::Tally;
use saver::Saver;
use server::ServerFilter;
use state::State;

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    // Before anything is made for a run that cannot be.
    args.records.key_of()?;
    let (server, files) = server(args)?;
    let sources = sources(&files);
    let sizes = input::sizes(&sources);
    let mut state = State::open(args)?;
    // A filter that outlives the run looks a whole chunk up before it adds any of it, so its errors
    // depend on where the chunks end.
    let shared = Arc::new(Shared {
        full_chunks: args.seed.is_some() && state.has_file(),
        ..Shared::default()
    });
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
    let own = args.state.clone().map(Source::File);
    let inputs = sources.iter().chain(&own);
    let output = (!args.count).then(|| Output::stdout(inputs));
    let output = output.transpose()?;
    let records = &args.records;
    let mut pipeline = records.start(&sources, state.case(), &digest, &shared)?;
    let first = pipeline.next()?;
    // The first chunk of a pipe tells how fast lines came, too.
    let bytes = match sizes.stored {
        None if args.seed.is_some() => 0,
        _ => sizes.unpacked,
    };
    let memory = match server {
        Some(server) => Memory::Server(Box::new(server)),
        None => Memory::Local(Box::new(Local {
            filter: state.take_filter(first.as_ref(), bytes)?,
            loss: Loss::default(),
            lasts: state.has_file(),
        })),
    };
    let mut deduplicator = Deduplicator {
        memory,
        output,
        repeated: args.repeated,
        strict: args.records.strict,
        tally: Tally::default(),
        new: Vec::new(),
        keep: Vec::new(),
    };

    // On a terminal the bar would mix with the records.
    let hidden = args.quiet || (!args.count && io::stdout().is_terminal());
    let progress = Progress::of_input(sizes.stored, hidden);
    let every = Duration::from_millis(args.save_every.unwrap_or(args::SAVE_EVERY));
    let mut saver = Saver::new(state, every);
    let processed = process_all(
        &mut deduplicator,
        &mut saver,
        (&mut pipeline, first),
        |run| progress.update(shared.read.load(Ordering::Relaxed), || run.tally.progress()),
    );
    drop(progress);
    saver.finish(&mut deduplicator)?;
    processed?;
    if args.count {
        writeln!(io::stdout(), "{}", deduplicator.tally.kept)?;
    }
    let code = summarize(&deduplicator, args, &signals, &shared);
    if signals.exit_code().is_none() {
        let tally = &deduplicator.tally;
        let then = ", so none was compared";
        args.records.check_any(tally.keys, tally.lacking, then)?;
    }
    Ok(code)
}

/// Says how the run went. Returns the exit code that tells it, too.
fn summarize(run: &Deduplicator, args: &Args, signals: &Signals, shared: &Shared) -> ExitCode {
    let failed = shared.failed.load(Ordering::Relaxed) > 0;
    // The errors have said all there is to say of a run that read nothing.
    if !(failed && run.tally.records == 0) {
        report::summarize(&run.tally, &run.memory, args);
    }
    if let (Some(_), Some(path), false) = (signals.exit_code(), &args.state, args.quiet) {
        say(&format!(
            "ended by a signal; {} has what was printed",
            path.display()
        ));
    }
    match signals.exit_code() {
        Some(code) => ExitCode::from(code),
        None if failed => ExitCode::from(2),
        None => ExitCode::SUCCESS,
    }
}

/// Handles all chunks, and saves the state from time to time. Calls `show` after each chunk.
fn process_all(
    run: &mut Deduplicator,
    saver: &mut Saver,
    (pipeline, first): (&mut Pipeline, Option<Chunk>),
    show: impl Fn(&Deduplicator),
) -> Result<(), Failure> {
    let mut next = first;
    while let Some(mut chunk) = next {
        run.process(&mut chunk)?;
        pipeline.recycle(chunk);
        show(run);
        saver.save_if_due(run)?;
        next = pipeline.next_or(|| saver.save_if_due(run))?;
    }
    Ok(())
}

/// The server that remembers, if one does, and the files without its URL.
fn server(args: &Args) -> Result<(Option<ServerFilter>, Vec<PathBuf>), Failure> {
    let mut files = args.files.clone();
    let url = |file: &PathBuf| file.to_str().is_some_and(is_url);
    let word = files.iter().position(url).map(|at| files.remove(at));
    let url = args.server.url(word.as_deref().and_then(Path::to_str))?;
    let server = match (&args.key, url) {
        (Some(key), url) => Some(ServerFilter::connect(&url.unwrap_or_default(), args, key)?),
        (None, None) => None,
        (None, Some(url)) => {
            return Err(Failure::Other(format!(
                "{url} needs a key for its filter; give --key NAME"
            )));
        }
    };
    Ok((server, files))
}
