//! The part of a record that decides whether it was seen before.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use memchr::memmem::Finder;

use super::case::Case;
use super::csv::columns::CsvKey;
use super::json;
use super::netstrings::joined;
use super::selection::{WHOLE_LINES, WHOLE_RECORDS, shell_word};

/// Where the key of a record is.
#[derive(Clone, Debug)]
pub(crate) enum KeyOf {
    /// The record itself.
    Whole,
    /// The fields of these numbers, from 0, between delimiters.
    Fields {
        numbers: Vec<usize>,
        delimiter: Box<Finder<'static>>,
    },
    /// The values of JSON at these paths.
    Json(Vec<json::Path>),
    /// The values of fields of CSV.
    Csv(Box<CsvKey>),
}

/// What a record may lack, behind "a".
impl fmt::Display for KeyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = |parts: Vec<String>| parts.join(" and ");
        match self {
            KeyOf::Whole => f.write_str("whole record"),
            KeyOf::Fields { numbers, delimiter } => {
                let numbers = numbers.iter().map(|number| (number + 1).to_string());
                let delimiter = delimiter.needle().escape_ascii();
                let numbers = texts(numbers.collect());
                write!(f, "field {numbers} with \"{delimiter}\" between fields")
            }
            KeyOf::Json(paths) => {
                let paths = texts(paths.iter().map(json::Path::to_string).collect());
                write!(f, "JSON value at {paths}")
            }
            KeyOf::Csv(key) => key.fmt(f),
        }
    }
}

impl KeyOf {
    /// The key of a record without its end; `None` when it lacks a part of it.
    pub(crate) fn find<'a>(&'a mut self, record: &'a [u8], case: Case) -> Option<Cow<'a, [u8]>> {
        match self {
            KeyOf::Whole => Some(case.of(Cow::Borrowed(record))),
            KeyOf::Fields { numbers, delimiter } => {
                let fields = numbers.iter();
                let fields = fields.map(|number| field(record, *number, delimiter));
                joined(fields.map(|field| field.map(Cow::Borrowed)), case)
            }
            KeyOf::Json(paths) => joined(paths.iter().map(|path| json::find(record, path)), case),
            KeyOf::Csv(key) => key.find(record, case),
        }
    }

    /// The options that select it, without those that select the same bytes in other words. The end
    /// of records is one of them where it decides whether a CR belongs to the key.
    pub(crate) fn options(&self, terminator: u8) -> String {
        let are_lines = terminator == b'\n';
        match self {
            KeyOf::Whole if are_lines => WHOLE_LINES.to_owned(),
            KeyOf::Whole => WHOLE_RECORDS.to_owned(),
            KeyOf::Fields { numbers, delimiter } => {
                let numbers = numbers.iter().map(|number| (number + 1).to_string());
                let mut options = format!("--field {}", numbers.collect::<Vec<_>>().join(","));
                if delimiter.needle() != b"\t" {
                    // It was an argument of the command line, which is text.
                    let delimiter = String::from_utf8_lossy(delimiter.needle());
                    options += &format!(" -d {}", shell_word(&delimiter));
                }
                if !are_lines {
                    options += " -0";
                }
                options
            }
            KeyOf::Json(paths) => {
                let paths = paths.iter().map(|path| shell_word(&path.to_string()));
                let options = paths.map(|path| format!("--json {path}"));
                options.collect::<Vec<_>>().join(" ")
            }
            KeyOf::Csv(key) => key.options(),
        }
    }

    /// Whether the key is one value as it is, and not several in one.
    pub(crate) fn is_one_value(&self) -> bool {
        match self {
            KeyOf::Whole => true,
            KeyOf::Fields { numbers, .. } => numbers.len() == 1,
            KeyOf::Json(paths) => paths.len() == 1,
            KeyOf::Csv(key) => key.is_one_value(),
        }
    }

    /// Whether records may have quotes that were not meant as they are read.
    pub(crate) fn may_misread_quotes(&self) -> bool {
        matches!(self, KeyOf::Fields { .. } | KeyOf::Csv(_))
    }

    /// Whether a delimiter seems to lie within quotes. Up to the last field that counts, one begins
    /// with a quote and does not end with one; of CSV, one has a quote and does not begin with it.
    pub(crate) fn cuts_quotes(&self, record: &[u8]) -> bool {
        let (numbers, delimiter) = match self {
            KeyOf::Fields { numbers, delimiter } => (numbers, delimiter),
            KeyOf::Csv(key) => return key.has_bare_quotes(record),
            KeyOf::Whole | KeyOf::Json(_) => return false,
        };
        if memchr(b'"', record).is_none() {
            return false;
        }
        let last = numbers.iter().max().copied().unwrap_or(0);
        let width = delimiter.needle().len();
        let ends = delimiter.find_iter(record).chain([record.len()]);
        let mut start = 0;
        ends.take(last.saturating_add(1)).any(|end| {
            let field = record.get(start..end).unwrap_or_default();
            start = end + width;
            matches!(field.strip_prefix(b"\""), Some(after) if !after.ends_with(b"\""))
        })
    }
}

fn field<'a>(record: &'a [u8], number: usize, delimiter: &Finder<'_>) -> Option<&'a [u8]> {
    let width = delimiter.needle().len();
    let mut ends = delimiter.find_iter(record);
    let start = match number.checked_sub(1) {
        None => 0,
        Some(before) => ends.nth(before)? + width,
    };
    record.get(start..ends.next().unwrap_or(record.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields_of(numbers: &[usize], delimiter: &str) -> KeyOf {
        KeyOf::Fields {
            numbers: numbers.to_vec(),
            delimiter: Box::new(Finder::new(delimiter).into_owned()),
        }
    }

    fn find(record: &[u8], number: usize, delimiter: &str) -> Option<Vec<u8>> {
        let mut key_of = fields_of(&[number], delimiter);
        key_of.find(record, Case::Kept).map(Cow::into_owned)
    }

    #[test]
    fn several_fields_are_one_key_that_no_others_make() {
        let key = |record: &[u8]| {
            fields_of(&[0, 2], ";")
                .find(record, Case::Kept)
                .map(Cow::into_owned)
        };
        assert_eq!(key(b"a;x;bc"), Some(b"1:a,2:bc,".to_vec()));
        assert_eq!(key(b"a;x"), None);
        let records: [&[u8]; 7] = [
            b"ab;x;c",
            b"a;x;bc",
            b"abc;x;",
            b";x;abc",
            b"1:a,;x;b",
            b"a,1:b;x;",
            b"c;x;ab",
        ];
        let keys: std::collections::HashSet<_> = records.iter().map(|record| key(record)).collect();
        assert_eq!(keys.len(), records.len());
        let mut turned = fields_of(&[2, 0], ";");
        assert_eq!(
            turned.find(b"a;x;bc", Case::Kept).as_deref(),
            Some(&b"2:bc,1:a,"[..])
        );
    }

    #[test]
    fn quotes_that_a_delimiter_cuts() {
        for (record, number, cuts) in [
            (&b"\"Smith, John\",1"[..], 0, true),
            (b"\"Smith, John\",1", 2, true),
            (b"1,\"Smith, John\"", 0, false),
            (b"1,\"Smith, John\"", 1, true),
            (b"\"Smith\",1", 0, false),
            (b"\"Smith\",1", 9, false),
            (b"5\" disk,1", 1, false),
            (b"\"\",1", 1, false),
            (b"\",\",1", 0, true),
            (b"\"a", 0, true),
            (b"", 0, false),
        ] {
            let key_of = fields_of(&[number], ",");
            let record_text = String::from_utf8_lossy(record);
            assert_eq!(key_of.cuts_quotes(record), cuts, "{record_text} {number}");
        }
    }

    #[test]
    fn fields() {
        let bytes = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(find(b"a,b,c", 0, ","), bytes("a"));
        assert_eq!(find(b"a,b,c", 1, ","), bytes("b"));
        assert_eq!(find(b"a,b,c", 2, ","), bytes("c"));
        assert_eq!(find(b"a,b,c", 3, ","), None);
        assert_eq!(find(b"a,,c", 1, ","), bytes(""));
        assert_eq!(find(b"a, b, c", 1, ", "), bytes("b"));
        assert_eq!(find(b"", 0, ","), bytes(""));
        assert_eq!(find(b"\xff,\xfe", 1, ","), Some(vec![0xfe]));
    }
}
