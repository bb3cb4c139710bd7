//! The flags that say what a record is, and what of it counts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem::Finder;

use super::chunk::{Chunk, Digest};
use super::input::Source;
use super::json;
use super::keys::KeyOf;
use super::pipeline::Pipeline;
use super::reader::Shared;
use crate::failure::Failure;

// A comment for clap here would take the place of the subcommand's own.
#[derive(clap::Args, Debug)]
pub(crate) struct RecordArgs {
    /// Records end with NUL, not with a line feed
    #[arg(short = '0', long)]
    null: bool,
    /// Lines are JSON; compare this value of them, as in `.text`, `.meta.url`, `.tags[0]` or
    /// `."a b"`
    #[arg(long, value_name = "PATH", conflicts_with_all = ["field", "delimiter"])]
    json: Option<json::Path>,
    /// Compare only this field, counted from 1
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    field: Option<u32>,
    /// What is between fields [default: a tab]
    #[arg(short, long, value_name = "TEXT", requires = "field", value_parser = delimiter)]
    delimiter: Option<String>,
    /// Stop at a record without the field
    #[arg(long)]
    pub(crate) strict: bool,
}

impl RecordArgs {
    /// Begins to read the inputs.
    pub(crate) fn start(
        &self,
        sources: &[Source],
        digest: &Digest,
        shared: &Arc<Shared>,
    ) -> io::Result<Pipeline> {
        let terminator = if self.null { 0 } else { b'\n' };
        let shared = Arc::clone(shared);
        Pipeline::start(sources.to_vec(), terminator, &self.key_of(), digest, shared)
    }

    /// With --strict, fails at the first record of a chunk without the field. `before` are the
    /// records before the chunk, and `then` says what follows.
    pub(crate) fn check(&self, chunk: &Chunk, before: u64, then: &str) -> Result<(), Failure> {
        match chunk.keyless.first().filter(|_| self.strict) {
            None => Ok(()),
            Some(first) => {
                let number = before + *first as u64 + 1;
                let why = format!("record {number} has no such field{then}");
                Err(Failure::Other(why))
            }
        }
    }

    /// Fails when there were records, and none of them had the field: it is a mistake then.
    pub(crate) fn check_any(&self, records: u64, keyless: u64, then: &str) -> Result<(), Failure> {
        if records == 0 || keyless < records {
            return Ok(());
        }
        let why = match (&self.json, self.field) {
            (Some(path), _) => format!("no record has a JSON value at {path}"),
            (None, Some(number)) => {
                let delimiter = self.delimiter.as_deref().unwrap_or("\t").escape_debug();
                format!("no record has a field {number} with \"{delimiter}\" between fields")
            }
            (None, None) => return Ok(()),
        };
        Err(Failure::Other(format!("{why}{then}")))
    }

    /// The part of a record that counts.
    fn key_of(&self) -> KeyOf {
        if let Some(path) = &self.json {
            return KeyOf::Json(path.clone());
        }
        let Some(number) = self.field else {
            return KeyOf::Whole;
        };
        let delimiter = self.delimiter.as_deref().unwrap_or("\t");
        KeyOf::Field {
            number: usize::try_from(number).unwrap_or(usize::MAX) - 1,
            delimiter: Box::new(Finder::new(delimiter).into_owned()),
        }
    }
}

/// The inputs with these names; without any, standard input.
pub(crate) fn sources(names: &[PathBuf]) -> Vec<Source> {
    if names.is_empty() {
        return vec![Source::of(Path::new("-"))];
    }
    names.iter().map(|name| Source::of(name)).collect()
}

fn delimiter(text: &str) -> Result<String, String> {
    match text {
        "" => Err("expected a character or a text, such as , or \\t".to_owned()),
        "\\t" => Ok("\t".to_owned()),
        other => Ok(other.to_owned()),
    }
}
