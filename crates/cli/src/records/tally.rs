//! Reading all records, and what was counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::args::RecordArgs;
use super::case::Case;
use super::chunk::{Chunk, Digest};
use super::input::{self, Source};
use super::shared::Shared;
use crate::failure::Failure;
use crate::number::grouped;
use crate::progress::Progress;

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) records: u64,
    /// Records that have the field.
    pub(crate) keys: u64,
    /// Those that lack it. An empty line of a table lacks nothing.
    lacking: u64,
    cut_quotes: u64,
}

impl Tally {
    /// What a summary says of records that were left out, or are perhaps not what they seem.
    pub(crate) fn left_out(&self, records: &RecordArgs) -> String {
        let mut text = String::new();
        if self.lacking > 0 {
            let lacking = grouped(self.lacking);
            text += &format!("{lacking} had no such field and were left out\n");
        }
        if let Some(warning) = records.cut_quotes(self.cut_quotes) {
            text += &format!("{warning}\n");
        }
        text
    }
}

/// Reads all inputs, and gives what the digest has of the records to `take`.
pub(crate) fn read(
    (records, quiet): (&RecordArgs, bool),
    sources: &[Source],
    (case, digest): (Case, &Digest),
    shared: &Arc<Shared>,
    mut take: impl FnMut(&Chunk) -> Result<(), Failure>,
) -> Result<Tally, Failure> {
    let mut pipeline = records.start(sources, case, digest, shared)?;
    let progress = Progress::of_input(input::sizes(sources).stored, quiet);
    let mut tally = Tally::default();
    while let Some(chunk) = pipeline.next()? {
        let then = ", and no filter was written; without --strict it would be left out";
        records.check(&chunk, tally.records, then)?;
        tally.records += chunk.ends.len() as u64;
        tally.keys += (chunk.ends.len() - chunk.keyless.len()) as u64;
        tally.lacking += chunk.lacking.len() as u64;
        tally.cut_quotes += chunk.cut_quotes;
        take(&chunk)?;
        pipeline.recycle(chunk);
        progress.update(shared.read.load(Ordering::Relaxed), || {
            format!("{} records", grouped(tally.records))
        });
    }
    drop(progress);
    if shared.failed.load(Ordering::Relaxed) > 0 {
        return Err(Failure::other(
            "no filter was written, because some of the input could not be read",
        ));
    }
    if !shared.stop.load(Ordering::Relaxed) {
        let then = ", and no filter was written";
        records.check_any(tally.keys, tally.lacking, then)?;
    }
    Ok(tally)
}
