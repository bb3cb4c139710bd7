//! The flags that say what a record is, and what of it counts.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem::Finder;

use super::case::Case;
use super::chunk::{Chunk, Digest};
use super::csv::columns::{ColumnList, CsvKey};
use super::input::Source;
use super::json;
use super::keys::KeyOf;
use super::pipeline::Pipeline;
use super::selection::Selection;
use super::shared::Shared;
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
    /// Records are CSV: a quoted field may contain delimiters and line ends, and is compared without
    /// its quotes
    #[arg(long, conflicts_with_all = ["null", "json"])]
    csv: bool,
    /// The first record of each input names its fields. That of the first input is printed, and the
    /// others must be equal to it; none is compared
    #[arg(long, requires = "csv")]
    header: bool,
    /// Compare only this field, counted from 1, or several together, as in 1,3. With --header, also
    /// by name, as in email,1
    #[arg(short, long, value_name = "N")]
    field: Vec<ColumnList>,
    /// What is between fields [default: a tab, and with --csv a comma]
    #[arg(short, long, value_name = "TEXT", value_parser = delimiter)]
    delimiter: Option<String>,
    /// Compare letters without regard to case; a filter remembers it
    #[arg(short, long)]
    pub(crate) ignore_case: bool,
    /// Go on although another part of the records was compared when the filter was filled
    #[arg(long)]
    any_selection: bool,
    /// Stop at a record without the field
    #[arg(long)]
    pub(crate) strict: bool,
}

impl RecordArgs {
    /// The part of a record that counts.
    pub(crate) fn key_of(&self) -> Result<KeyOf, Failure> {
        if self.delimiter.is_some() && !self.csv && self.field.is_empty() {
            return Err(Failure::other("--delimiter needs --field or --csv"));
        }
        if !self.json.is_empty() {
            return Ok(KeyOf::Json(self.json.clone()));
        }
        let columns: Vec<_> = self.field.iter().flat_map(|list| &list.0).collect();
        if !self.header
            && let Some(name) = columns.iter().find(|column| column.is_name())
        {
            return Err(Failure::Other(format!(
                "'{name}' is no number, and fields have names only with --csv --header"
            )));
        }
        if self.csv {
            let columns = columns.into_iter().cloned().collect();
            let delimiter = self.csv_delimiter()?;
            let key = CsvKey::new(columns, delimiter, self.header);
            return Ok(KeyOf::Csv(Box::new(key)));
        }
        if columns.is_empty() {
            return Ok(KeyOf::Whole);
        }
        let delimiter = self.delimiter.as_deref().unwrap_or("\t");
        Ok(KeyOf::Fields {
            numbers: columns
                .iter()
                .filter_map(|column| column.number())
                .collect(),
            delimiter: Box::new(Finder::new(delimiter).into_owned()),
        })
    }

    fn csv_delimiter(&self) -> Result<u8, Failure> {
        match self.delimiter.as_deref().unwrap_or(",").as_bytes() {
            [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(*byte),
            _ => Err(Failure::other(
                "with --csv a delimiter is one character of ASCII, and no quote or line end",
            )),
        }
    }

    /// What the options select.
    pub(crate) fn selection(&self) -> Result<Selection, Failure> {
        Ok(Selection {
            part: Some(self.key_of()?.options(self.terminator())),
            case: match self.ignore_case {
                true => Case::Ignored,
                false => Case::Kept,
            },
        })
    }

    /// What the filter of a file remembers after this run, which compares records with those that
    /// are in it. Fails when they cannot be equal. `file` names it, `filled` is what it remembers,
    /// and one that `is_empty` has no items.
    pub(crate) fn agree(
        &self,
        file: impl Display,
        filled: &Selection,
        is_empty: bool,
    ) -> Result<Selection, Failure> {
        let case = self.agree_on_case(&file, filled, is_empty)?;
        self.check_part(file, filled)?;
        let part = filled.part.clone().or(self.selection()?.part);
        Ok(Selection { part, case })
    }

    /// The case for a run that only looks records up. A list is asked for any one field of a record.
    pub(crate) fn agree_to_look_up(
        &self,
        file: impl Display,
        filled: &Selection,
        is_empty: bool,
    ) -> Result<Case, Failure> {
        let case = self.agree_on_case(&file, filled, is_empty)?;
        if !filled.is_whole() || !self.key_of()?.is_one_value() {
            self.check_part(file, filled)?;
        }
        Ok(case)
    }

    /// Fails when the filter was filled with another part of the records.
    fn check_part(&self, file: impl Display, filled: &Selection) -> Result<(), Failure> {
        let own = self.selection()?;
        if self.any_selection || filled.part.is_none() || filled.part == own.part {
            return Ok(());
        }
        Err(Failure::Other(format!(
            "{file} remembers {filled}; this run compares {own}; give the options that it \
             remembers, or name another file, or give --any-selection if the values are of one \
             kind all the same"
        )))
    }

    /// Whether case is ignored: when the filter remembers it, or this run asks for it and the filter
    /// has no items with capital letters.
    fn agree_on_case(
        &self,
        file: impl Display,
        filled: &Selection,
        is_empty: bool,
    ) -> Result<Case, Failure> {
        if !self.ignore_case {
            return Ok(filled.case);
        }
        let why = match filled {
            filled if filled.case == Case::Ignored || is_empty => return Ok(Case::Ignored),
            filled if filled.part.is_some() => {
                "was made without --ignore-case, so it has capital letters as they were; leave \
                 --ignore-case off, or make another one with it"
            }
            _ if self.any_selection => return Ok(Case::Ignored),
            _ => {
                "remembers nothing, so it may have capital letters as they were; leave \
                 --ignore-case off, or make another one with it, or give --any-selection if all \
                 that was put in is in small letters"
            }
        };
        Err(Failure::Other(format!("{file} {why}")))
    }

    /// Begins to read the inputs.
    pub(crate) fn start(
        &self,
        sources: &[Source],
        case: Case,
        digest: &Digest,
        shared: &Arc<Shared>,
    ) -> Result<Pipeline, Failure> {
        let keys = (&self.key_of()?, case);
        let (sources, shared) = (sources.to_vec(), Arc::clone(shared));
        let started = Pipeline::start(sources, self.terminator(), keys, digest, shared);
        Ok(started?)
    }

    /// What ends a record.
    fn terminator(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    /// With --strict, fails at the first record of a chunk without the field. `before` are the
    /// records before the chunk, and `then` says what follows.
    pub(crate) fn check(&self, chunk: &Chunk, before: u64, then: &str) -> Result<(), Failure> {
        match chunk.lacking.first().filter(|_| self.strict) {
            None => Ok(()),
            Some(first) => {
                let number = before + *first as u64 + 1;
                let why = format!("record {number} has no such field{then}");
                Err(Failure::Other(why))
            }
        }
    }

    /// Fails when there were records that lack the field, and none that has it: it is a mistake
    /// then.
    pub(crate) fn check_any(&self, keys: u64, lacking: u64, then: &str) -> Result<(), Failure> {
        if keys > 0 || lacking == 0 {
            return Ok(());
        }
        let what = self.key_of()?;
        Err(Failure::Other(format!("no record has a {what}{then}")))
    }

    /// What a summary says of the records in which a delimiter seems to lie within quotes.
    pub(crate) fn cut_quotes(&self, records: u64) -> Option<String> {
        let what = if self.csv {
            "a quote is within a field that does not begin with one; it was taken as text, and a \
             delimiter behind it as the end of the field"
        } else {
            "a field begins with a quote and does not end with one; --field took parts of fields \
             for fields; if the quotes are those of CSV, give --csv"
        };
        let count = grouped(records);
        (records > 0).then(|| format!("warning: in {count} of the records {what}"))
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
