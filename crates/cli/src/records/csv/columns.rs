//! The fields of a record that are compared.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use memchr::memchr;

use super::QUOTE;
use super::record::{Parser, written_fields};
use super::scanner::Scanner;
use crate::records::case::Case;
use crate::records::netstrings::{joined, netstrings};
use crate::records::selection::{printable, shell_word};

/// What an error lists of a header at most.
const MOST_NAMES: usize = 20;
const MOST_BYTES: usize = 200;

/// A field, as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// From 0.
    Number(usize),
    /// As the header has it.
    Name(String),
}

impl Column {
    pub(crate) fn is_name(&self) -> bool {
        matches!(self, Column::Name(_))
    }

    pub(crate) fn number(&self) -> Option<usize> {
        match self {
            Column::Number(number) => Some(*number),
            Column::Name(_) => None,
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::Number(number) => write!(f, "{}", number + 1),
            Column::Name(name) if is_plain(name) => f.write_str(name),
            Column::Name(name) => write!(f, "\"{}\"", name.replace('"', "\"\"")),
        }
    }
}

/// Whether a name on the command line needs no quotes.
fn is_plain(name: &str) -> bool {
    !is_number(name) && !name.contains(['"', ',', '\n', '\r'])
}

/// Whether there are only digits, or nothing.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Fields with commas between them, which is a record of CSV: a number, a name, or a name in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnList(pub(crate) Vec<Column>);

impl FromStr for ColumnList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let record = format!("{text}\n");
        let mut ends = Vec::new();
        let scanned = Scanner::new(b',').scan(record.as_bytes(), 0, &mut ends);
        if scanned.is_err() || ends != [record.len()] {
            return Err("its quotes are not those of CSV, as in \"a, b\",email".to_owned());
        }
        let mut reader = csv_core::Reader::new();
        let mut place = vec![0; record.len()];
        let mut rest = record.as_bytes();
        let mut columns = Vec::new();
        while !rest.is_empty() {
            let is_quoted = rest.first() == Some(&QUOTE);
            let (_, read, written) = reader.read_field(rest, &mut place);
            rest = rest.get(read..).unwrap_or_default();
            let value = String::from_utf8_lossy(place.get(..written).unwrap_or_default());
            columns.push(match value.parse::<usize>() {
                _ if is_quoted => Column::Name(value.into_owned()),
                Ok(0) => return Err("fields are counted from 1".to_owned()),
                Ok(number) => Column::Number(number - 1),
                Err(_) if is_number(&value) => {
                    return Err(format!("expected a number or a name, not '{value}'"));
                }
                Err(_) => Column::Name(value.into_owned()),
            });
        }
        Ok(Self(columns))
    }
}

/// Finds the key of a record.
#[derive(Clone, Debug)]
pub(crate) struct CsvKey {
    pub(crate) delimiter: u8,
    pub(crate) has_header: bool,
    /// None: all fields.
    pub(super) columns: Vec<Column>,
    /// The numbers of these columns, from 0. The reader sets them when it has read a header.
    numbers: Arc<OnceLock<Vec<usize>>>,
    pub(super) parser: Parser,
}

impl CsvKey {
    pub(crate) fn new(columns: Vec<Column>, delimiter: u8, has_header: bool) -> Self {
        let key = Self {
            delimiter,
            has_header,
            columns,
            numbers: Arc::default(),
            parser: Parser::new(delimiter),
        };
        if !has_header {
            // Ignore the error: a name needs a header.
            let _ = key.resolve(&[]);
        }
        key
    }

    /// Finds the columns in a header.
    pub(super) fn resolve(&self, names: &[Vec<u8>]) -> Result<(), String> {
        let number = |column: &Column| match column {
            Column::Number(number) => Ok(*number),
            Column::Name(name) => number_of(name, names),
        };
        let numbers = self.columns.iter().map(number).collect::<Result<_, _>>()?;
        // Ignore the error: the header is read once.
        let _ = self.numbers.set(numbers);
        Ok(())
    }

    /// The key of a record without its end; `None` when it lacks a field.
    ///
    /// The one field of a record is its key, so that it equals a line. Where it looks like a key of
    /// several fields, it is written as such a key, so that it equals none of them.
    pub(crate) fn find(&mut self, record: &[u8], case: Case) -> Option<Cow<'_, [u8]>> {
        self.parser.parse(record);
        let parser = &self.parser;
        if !self.columns.is_empty() {
            let numbers = self.numbers.get()?.iter();
            let values = numbers.map(|number| parser.value(*number).map(Cow::Borrowed));
            return joined(values, case);
        }
        match parser.value(0)? {
            [b'0'..=b'9', .., b','] => {}
            value if parser.values().len() == 1 => return Some(case.of(Cow::Borrowed(value))),
            _ => {}
        }
        let values = parser.values().map(Cow::Borrowed);
        netstrings(values.map(|value| Some(case.of(value))))
    }

    /// Whether a record has more than one field.
    pub(crate) fn has_several_fields(&self, record: &[u8]) -> bool {
        written_fields(record, self.delimiter).nth(1).is_some()
    }

    /// Whether one of the fields up to the last that counts has a quote and is not quoted.
    pub(crate) fn has_bare_quotes(&self, record: &[u8]) -> bool {
        if memchr(QUOTE, record).is_none() {
            return false;
        }
        let last = self.numbers.get().and_then(|numbers| numbers.iter().max());
        let count = last.map_or(usize::MAX, |last| last.saturating_add(1));
        let mut fields = written_fields(record, self.delimiter).take(count);
        fields.any(|field| field.first() != Some(&QUOTE) && memchr(QUOTE, field).is_some())
    }

    /// The options that select it. A header is skipped, and matters only to names.
    pub(crate) fn options(&self) -> String {
        let mut options = "--csv".to_owned();
        if self.columns.iter().any(Column::is_name) {
            options += " --header";
        }
        if !self.columns.is_empty() {
            let columns: Vec<_> = self.columns.iter().map(Column::to_string).collect();
            options += &format!(" --field {}", shell_word(&columns.join(",")));
        }
        if self.delimiter != b',' {
            let delimiter = char::from(self.delimiter).to_string();
            options += &format!(" -d {}", shell_word(&delimiter));
        }
        options
    }

    /// Whether the key is one value as it is. All fields together are none, though a record may have
    /// one only.
    pub(crate) fn is_one_value(&self) -> bool {
        self.columns.len() == 1
    }
}

impl fmt::Display for CsvKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> = self.columns.iter().map(Column::to_string).collect();
        let delimiter = char::from(self.delimiter).escape_debug();
        let columns = match columns.join(" and ") {
            all if all.is_empty() => all,
            columns => format!(" {columns}"),
        };
        write!(
            f,
            "field{columns} of CSV with \"{delimiter}\" between fields"
        )
    }
}

/// The number of the field with this name, from 0.
fn number_of(name: &str, names: &[Vec<u8>]) -> Result<usize, String> {
    let mut places = (0..)
        .zip(names)
        .filter(|(_, other)| *other == name.as_bytes());
    match (places.next(), places.count()) {
        (Some((number, _)), 0) => Ok(number),
        (Some(_), more) => {
            let count = more + 1;
            Err(format!(
                "{count} fields are called {name}; give the number of one"
            ))
        }
        (None, _) => {
            let names = listed(names);
            Err(format!("no field is called {name}; the names are {names}"))
        }
    }
}

/// Names as an error lists them: not all of many, and the beginning of long ones.
pub(super) fn listed(names: &[Vec<u8>]) -> String {
    let texts = names.iter().take(MOST_NAMES).map(|name| {
        let start = name.get(..=MOST_BYTES).unwrap_or(name);
        printable(&String::from_utf8_lossy(start))
    });
    let text = texts.collect::<Vec<_>>().join(", ");
    let cut = (0..=MOST_BYTES).rfind(|at| text.is_char_boundary(*at));
    let start = cut.and_then(|at| text.get(..at)).unwrap_or(&text);
    let count = names.len();
    if start.len() < text.len() || count > MOST_NAMES {
        return format!("{start}... ({count} in all)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Column {
        Column::Name(text.to_owned())
    }

    #[test]
    fn columns_of_the_command_line() {
        let list = |text: &str| text.parse().map(|ColumnList(columns)| columns);
        for (text, expected) in [
            ("1,3", vec![Column::Number(0), Column::Number(2)]),
            ("email,2", vec![name("email"), Column::Number(1)]),
            (
                "\"2024\",\"a, \"\"b\"\"\",\"\"",
                vec![name("2024"), name("a, \"b\""), name("")],
            ),
            ("1-3,5\" disk", vec![name("1-3"), name("5\" disk")]),
        ] {
            assert_eq!(list(text), Ok(expected.clone()), "{text}");
            let again: Vec<_> = expected.iter().map(Column::to_string).collect();
            assert_eq!(list(&again.join(",")), Ok(expected), "{text}");
        }
        for text in [
            "",
            "0",
            "1,",
            ",a",
            "99999999999999999999",
            "\"a",
            "\"a\"b",
            "a\nb",
            "a,\n",
        ] {
            assert!(list(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn keys_of_records() {
        let key = |columns: Vec<Column>, record: &str| {
            let mut key = CsvKey::new(columns, b',', false);
            key.find(record.as_bytes(), Case::Kept).map(Cow::into_owned)
        };
        let all = |record: &str| String::from_utf8(key(Vec::new(), record).unwrap()).unwrap();
        for (record, expected) in [
            ("a", "a"),
            ("\"a, b\"", "a, b"),
            ("", ""),
            ("a,\"bc\"", "1:a,2:bc,"),
            ("a,", "1:a,0:,"),
            // This value looks like the key of two.
            ("\"1:a,2:bc,\"", "9:1:a,2:bc,,"),
        ] {
            assert_eq!(all(record), expected, "{record}");
        }
        let two = |record| key(vec![Column::Number(1)], record);
        assert_eq!(two("a,\"b\",c"), Some(b"b".to_vec()));
        assert_eq!(two("a"), None);
    }

    #[test]
    fn names_are_found_once() {
        let names = [b"id".to_vec(), b"a".to_vec(), b"a".to_vec()];
        let key = CsvKey::new(vec![name("id")], b',', true);
        assert_eq!(
            key.clone().find(b"x,y", Case::Kept),
            None,
            "it has no header yet"
        );
        key.resolve(&names).unwrap();
        let mut key = key.clone();
        assert_eq!(key.find(b"X,y", Case::Kept).as_deref(), Some(&b"X"[..]));
        assert_eq!(key.find(b"X,y", Case::Ignored).as_deref(), Some(&b"x"[..]));
        assert!(number_of("a", &names).unwrap_err().contains("2 fields"));
        assert!(number_of("b", &names).unwrap_err().contains("id, a, a"));
    }
}
