//! Finds where records end, and refuses quotes that are not those of CSV: a reader that guessed what
//! they mean would take many records for one.

use std::io;

use super::QUOTE;

/// What was read of the current field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    /// Only spaces and tabs.
    Spaces,
    Unquoted,
    /// The quote that opens it is open.
    Quoted,
    /// A quote within quotes: it closes the field, or is the first of two that stand for one.
    Quote,
    /// A carriage return that is not quoted. A line feed must follow.
    CarriageReturn,
}

/// Finds where records end. The bytes come in pieces of any length.
#[derive(Debug)]
pub(crate) struct Scanner {
    delimiter: u8,
    place: Place,
    /// The line of the next byte, from 1.
    line: u64,
    /// The line in which the last quoted field opened.
    opened: u64,
}

impl Scanner {
    pub(crate) fn new(delimiter: u8) -> Self {
        Self {
            delimiter,
            place: Place::Start,
            line: 1,
            opened: 0,
        }
    }

    /// Reads on. Adds to `ends` where records end; `start` is the place of the first byte.
    pub(crate) fn scan(
        &mut self,
        bytes: &[u8],
        start: usize,
        ends: &mut Vec<usize>,
    ) -> io::Result<()> {
        use Place::{CarriageReturn, Quote, Quoted, Spaces, Start, Unquoted};
        for (end, &byte) in (start + 1..).zip(bytes) {
            self.place = match (self.place, byte) {
                (Quoted, QUOTE) => Quote,
                (Quoted, _) | (Quote, QUOTE) => Quoted,
                (_, b'\n') => {
                    ends.push(end);
                    Start
                }
                (CarriageReturn, _) => {
                    return Err(self.error("a carriage return without a line feed behind it"));
                }
                (_, b'\r') => CarriageReturn,
                (_, delimiter) if delimiter == self.delimiter => Start,
                (Quote, _) => {
                    let why = "more of a field follows its closing quote; the quote opened in line";
                    return Err(self.error(&format!("{why} {}", self.opened)));
                }
                (Spaces, QUOTE) => {
                    let why = "spaces or tabs before a quote, so it would be part of a value";
                    return Err(self.error(why));
                }
                (Start, QUOTE) => {
                    self.opened = self.line;
                    Quoted
                }
                (Start | Spaces, b' ' | b'\t') => Spaces,
                (Start | Spaces | Unquoted, _) => Unquoted,
            };
            self.line += u64::from(byte == b'\n');
        }
        Ok(())
    }

    /// Why a record of this length that has not ended yet is refused.
    pub(crate) fn too_long(&self, mebibytes: usize) -> String {
        let Self { line, opened, .. } = self;
        let place = match self.place {
            Place::Quoted => {
                format!("; the quote that opens in line {opened} does not close in it")
            }
            _ => format!(", in line {line}"),
        };
        format!("a record is longer than {mebibytes} MiB{place}")
    }

    /// Fails when the bytes end within quotes.
    pub(crate) fn check_closed(&self) -> io::Result<()> {
        match self.place {
            Place::Quoted => Err(io::Error::other(format!(
                "the quote that opens in line {} never closes",
                self.opened
            ))),
            _ => Ok(()),
        }
    }

    fn error(&self, why: &str) -> io::Error {
        io::Error::other(format!("line {}: {why}", self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Parser, written_fields};
    use super::*;

    /// The records, or the error's text.
    fn records(text: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, String> {
        let mut scanner = Scanner::new(b',');
        let mut ends = Vec::new();
        let mut start = 0;
        for piece in text.chunks(piece) {
            let scanned = scanner.scan(piece, start, &mut ends);
            scanned.map_err(|error| error.to_string())?;
            start += piece.len();
        }
        let closed = scanner.check_closed();
        closed.map_err(|error| error.to_string())?;
        let starts = [0].into_iter().chain(ends.iter().copied());
        let spans = starts.zip(&ends);
        Ok(spans
            .map(|(start, end)| text[start..*end].to_vec())
            .collect())
    }

    /// The records that csv-core finds, each with its values.
    fn by_csv_core(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut reader = csv_core::Reader::new();
        let mut records = vec![Vec::new()];
        let (mut rest, mut value) = (text, Vec::new());
        loop {
            let mut place = [0; 64];
            let (result, read, written) = reader.read_field(rest, &mut place);
            rest = &rest[read..];
            value.extend_from_slice(&place[..written]);
            if let csv_core::ReadFieldResult::Field { record_end } = result {
                records.last_mut().unwrap().push(std::mem::take(&mut value));
                if record_end {
                    records.push(Vec::new());
                }
            } else if result == csv_core::ReadFieldResult::End {
                records.pop();
                return records;
            }
        }
    }

    /// All texts of six bytes: what is taken has the records and values that csv-core finds, and
    /// is taken in pieces of any length. csv-core leaves empty lines out.
    #[test]
    fn what_is_taken_is_read_as_csv_core_reads_it() {
        let alphabet = b"a \t\",\r\n";
        let mut parser = Parser::new(b',');
        let (mut taken, mut refused) = (0, 0);
        for number in 0..7_u32.pow(6) {
            let digit = |place| alphabet[(number / 7_u32.pow(place) % 7) as usize];
            let mut text: Vec<u8> = (0..6).map(digit).collect();
            text.push(b'\n');
            let found = records(&text, text.len());
            if number % 97 == 0 {
                for piece in 1..4 {
                    assert_eq!(records(&text, piece), found, "{text:?}");
                }
            }
            let Ok(found) = found else {
                refused += 1;
                continue;
            };
            taken += 1;
            assert_eq!(found.concat(), text, "{text:?}");
            let is_empty = |record: &&Vec<u8>| **record == b"\n" || **record == b"\r\n";
            let filled = found.iter().filter(|record| !is_empty(record));
            let values = filled.map(|record| {
                let line = record.strip_suffix(b"\n").unwrap();
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                parser.parse(line);
                assert_eq!(
                    written_fields(line, b',').count(),
                    parser.values().len(),
                    "{text:?}"
                );
                parser.values().map(<[u8]>::to_vec).collect::<Vec<_>>()
            });
            assert_eq!(values.collect::<Vec<_>>(), by_csv_core(&text), "{text:?}");
        }
        assert!(taken > 20_000 && refused > 20_000, "{taken} {refused}");
    }

    #[test]
    fn an_error_names_the_line() {
        for (text, why) in [
            (
                "a\n\"b\n\"c\n",
                "line 3: more of a field follows its closing quote; the quote opened in line 2",
            ),
            (
                "a\n\n\"b\n\n\n",
                "the quote that opens in line 3 never closes",
            ),
            (
                "\"\n\"\n\"\n",
                "the quote that opens in line 3 never closes",
            ),
            ("a\n  \"b\"\n", "line 2: spaces or tabs before a quote"),
            ("a\nb,\t\"b\"\n", "line 2: spaces or tabs before a quote"),
            ("a\rb\n", "line 1: a carriage return without"),
            ("a\r\r\n", "line 1: a carriage return without"),
        ] {
            let error = records(text.as_bytes(), 4).unwrap_err();
            assert!(error.starts_with(why), "{text:?}: {error}");
        }
    }
}
