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
use crate::number::grouped;

// A comment for clap here would take the place of the subcommand's own.
#[derive(clap::Args, Debug)]
pub(crate) struct RecordArgs {
    /// Records end with NUL, not with a line feed
    #[arg(short = '0', long)]
    null: bool,
    /// Lines are JSON; compare this value of them, as in `.text`, `.meta.url`, `.tags[0]` or
    /// `."a b"`. Given again, all of these values together
    #[arg(long, value_name = "PATH", conflicts_with_all = ["field", "delimiter"])]
    json: Vec<json::Path>,
    /// Compare only this field, counted from 1, or several together, as in 1,3
    #[arg(
        short,
        long,
        value_name = "N",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    field: Vec<u32>,
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
        let texts = |parts: &[String]| parts.join(" and ");
        let why = if self.json.is_empty() {
            let numbers: Vec<_> = self.field.iter().map(u32::to_string).collect();
            let delimiter = self.delimiter.as_deref().unwrap_or("\t").escape_debug();
            let numbers = texts(&numbers);
            format!("no record has a field {numbers} with \"{delimiter}\" between fields")
        } else {
            let paths: Vec<_> = self.json.iter().map(json::Path::to_string).collect();
            format!("no record has a JSON value at {}", texts(&paths))
        };
        Err(Failure::Other(format!("{why}{then}")))
    }

    /// The part of a record that counts.
    fn key_of(&self) -> KeyOf {
        if !self.json.is_empty() {
            return KeyOf::Json(self.json.clone());
        }
        if self.field.is_empty() {
            return KeyOf::Whole;
        }
        let delimiter = self.delimiter.as_deref().unwrap_or("\t");
        let number = |number: &u32| usize::try_from(*number).unwrap_or(usize::MAX) - 1;
        KeyOf::Fields {
            numbers: self.field.iter().map(number).collect(),
            delimiter: Box::new(Finder::new(delimiter).into_owned()),
        }
    }
}

/// What a summary says of the records in which a delimiter seems to lie within quotes.
pub(crate) fn cut_quotes(records: u64) -> Option<String> {
    (records > 0).then(|| {
        format!(
            "warning: in {} of the records a field begins with a quote and does not end with one; \
             --field does not know the quotes of CSV, and took parts of fields for fields",
            grouped(records)
        )
    })
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
