//! The flags that say what a record is, and what of it counts.

use std::path::{Path, PathBuf};

use memchr::memmem::Finder;

use super::input::Source;
use super::json;
use super::keys::KeyOf;

// A comment for clap here would take the place of the subcommand's own.
#[derive(clap::Args, Debug)]
pub(crate) struct RecordArgs {
    /// Records end with NUL, not with a line feed
    #[arg(short = '0', long)]
    null: bool,
    /// Lines are JSON objects; compare this value of them, as in `.text` or `.meta.url`
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
    /// The byte at the end of a record.
    pub(crate) fn terminator(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    /// The part of a record that counts.
    pub(crate) fn key_of(&self) -> KeyOf {
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
