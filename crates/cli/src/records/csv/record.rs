//! The values of a record.

use std::iter;

use csv_core::{ReadRecordResult, ReaderBuilder, Terminator};
use memchr::memchr;

use super::QUOTE;

/// Takes records apart, one at a time.
#[derive(Debug)]
pub(super) struct Parser {
    delimiter: u8,
    reader: csv_core::Reader,
    /// The values of the last record, one after the other, and where each ends.
    values: Vec<u8>,
    ends: Vec<usize>,
    /// How many of `ends` are those of the last record.
    count: usize,
}

/// A clone of csv-core's reader has lost the tables by which it reads, so this one is made anew.
impl Clone for Parser {
    fn clone(&self) -> Self {
        Self::new(self.delimiter)
    }
}

impl Parser {
    pub(super) fn new(delimiter: u8) -> Self {
        let mut builder = ReaderBuilder::new();
        // The scanner has found the end: a carriage return before it is no part of the record.
        let builder = builder.terminator(Terminator::Any(b'\n'));
        let mut reader = builder.delimiter(delimiter).quote(QUOTE).build();
        // A reader that has read something takes a byte order mark for a part of a value.
        reader.read_record(b"\n", &mut [], &mut []);
        Self {
            delimiter,
            reader,
            values: Vec::new(),
            ends: vec![0; 16],
            count: 0,
        }
    }

    /// Finds the values of a record without its end. The scanner has taken the record.
    pub(super) fn parse(&mut self, record: &[u8]) {
        self.count = 0;
        if record.is_empty() {
            // One empty value; csv-core would skip the line.
            if let Some(end) = self.ends.first_mut() {
                *end = 0;
            }
            self.count = 1;
            return;
        }
        // One byte more, so that it is never full.
        self.values.resize(record.len() + 1, 0);
        let mut parts = [record, b"\n"].into_iter();
        let mut rest = parts.next().unwrap_or_default();
        let mut written = 0;
        loop {
            let values = self.values.get_mut(written..).unwrap_or_default();
            let ends = self.ends.get_mut(self.count..).unwrap_or_default();
            let (result, read, bytes, fields) = self.reader.read_record(rest, values, ends);
            rest = rest.get(read..).unwrap_or_default();
            written += bytes;
            self.count += fields;
            match result {
                ReadRecordResult::InputEmpty => rest = parts.next().unwrap_or_default(),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::OutputFull => self.values.resize(self.values.len() * 2, 0),
                ReadRecordResult::Record | ReadRecordResult::End => return,
            }
        }
    }

    pub(super) fn values(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.count).map(|number| self.value(number).unwrap_or_default())
    }

    /// The value of this number, from 0.
    pub(super) fn value(&self, number: usize) -> Option<&[u8]> {
        let ends = self.ends.get(..self.count)?;
        let start = match number.checked_sub(1) {
            None => 0,
            Some(before) => *ends.get(before)?,
        };
        self.values.get(start..*ends.get(number)?)
    }
}

/// The fields of a record as they are written, with their quotes. The scanner has taken the record.
pub(super) fn written_fields(record: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(record);
    iter::from_fn(move || {
        let (field, after) = rest?.split_at_checked(field_len(rest?, delimiter))?;
        rest = after.get(1..);
        Some(field)
    })
}

/// The bytes before the delimiter that ends the first field.
fn field_len(record: &[u8], delimiter: u8) -> usize {
    let after = |start: usize, byte| {
        let rest = record.get(start..).unwrap_or_default();
        memchr(byte, rest).map(|at| start + at)
    };
    let mut start = 0;
    // The quote that opens the field, or the second of two that stand for one.
    while record.get(start) == Some(&QUOTE) {
        start = after(start + 1, QUOTE).map_or(record.len(), |close| close + 1);
    }
    after(start, delimiter).unwrap_or(record.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_as_they_are_written() {
        for fields in [
            &["a", "b"][..],
            &[""],
            &["", ""],
            &["\"\""],
            &["\"\"", ""],
            &["\"a\"\"\n;b\"", "\"\"", "5\" disk", "\"\"\"\""],
            &["\";\"\";\"", "o\"neil", "a\""],
        ] {
            let record = fields.join(";");
            let written = written_fields(record.as_bytes(), b';');
            let written: Vec<_> = written.map(|field| field.to_vec()).collect();
            let expected: Vec<_> = fields.iter().map(|field| field.as_bytes()).collect();
            assert_eq!(written, expected, "{record}");
        }
    }

    #[test]
    fn values() {
        let mut parser = Parser::new(b';');
        let mut values = |record: &str| -> Vec<String> {
            parser.parse(record.as_bytes());
            let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
            parser.values().map(text).collect()
        };
        for (record, expected) in [
            ("\u{feff}a;\u{feff}b", &["\u{feff}a", "\u{feff}b"][..]),
            ("a;b", &["a", "b"]),
            ("", &[""]),
            (";", &["", ""]),
            ("\"\"", &[""]),
            ("\"a\"\"\n;b\";\"\";5\"", &["a\"\n;b", "", "5\""]),
            ("a,b", &["a,b"]),
        ] {
            assert_eq!(values(record), expected, "{record:?}");
        }
        let many = vec!["x"; 1000];
        assert_eq!(values(&many.join(";")), many);
    }
}
