//! A line of a manifest.
//!
//! A line is words, paired into keys and values. The keys `file`, `seq` and `type` must be there,
//! in any order and in either case; unknown keys are skipped, for the sake of later versions. A
//! word may be quoted as in an inline request. A line has at most 1024 bytes with its line feed,
//! which the last one must have too. `#` in the first column begins a comment.
//!
//! All that is Redis 7's. Where it takes what nobody writes, this reader refuses: a number with
//! something behind it or a negative one, a type of several letters, a key given twice, a name that
//! is not UTF-8.

use std::borrow::Cow;

use everbloom_resp::{quoted, split_words};
use thiserror::Error;

/// The longest line, its line feed included.
pub(super) const MAX_LINE_BYTES: usize = 1024;

/// The largest number of a file that is read, so that there is always a next one.
pub(super) const MAX_SEQ: u64 = 1 << 62;

/// One file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its name in the directory of the log.
    pub name: String,
    /// Its number among its kind, from 1.
    pub seq: u64,
}

/// What is wrong with a line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// There is no line at all.
    #[error("expected the line of a file, found an empty manifest")]
    Empty,
    /// It does not end with a line feed.
    #[error("expected a line feed at the end of the line, found the end of the file")]
    Unended,
    /// It is longer than Redis reads.
    #[error("expected a line of at most {MAX_LINE_BYTES} bytes, found a longer one")]
    TooLong,
    /// Its quotes do not match, it holds a zero byte, or it is not words in pairs.
    #[error("expected \"file NAME seq NUMBER type b|h|i\", found {0:?}")]
    Malformed(String),
    /// `file`, `seq` or `type` is missing.
    #[error("expected the key {0:?}, found none")]
    Missing(&'static str),
    /// `file`, `seq` or `type` is there twice.
    #[error("expected the key {0:?} once, found it again")]
    Repeated(&'static str),
    /// The name leads out of the directory.
    #[error("expected the name of a file without a path, found {0:?}")]
    Path(String),
    /// The number is not one.
    #[error("expected a number from 1 to {MAX_SEQ}, found {0:?}")]
    Number(String),
    /// The type is not one.
    #[error("expected type b, h or i, found {0:?}")]
    Type(String),
    /// A second base.
    #[error("expected one base file, found another: {0:?}")]
    SecondBase(String),
    /// An increment whose number is not above that of the one before.
    #[error("expected an increment with a number above {after}, found {found}")]
    NotRising {
        /// The number of the increment before.
        after: u64,
        /// The number of this one.
        found: u64,
    },
    /// The mark of an end is damaged, or there is a second one.
    #[error("expected one mark of 16 hexadecimal digits, found {0:?}")]
    Mark(String),
    /// A file that has a line already.
    #[error("expected one line per file, found {0:?} again")]
    SecondLine(String),
}

/// What the type letter of a line says.
pub(super) enum FileType {
    Base,
    History,
    Increment,
}

/// Reads a line, its line feed included.
pub(super) fn parse_line(line: &[u8]) -> Result<(FileInfo, FileType), Problem> {
    let Some(text) = line.strip_suffix(b"\n") else {
        return Err(Problem::Unended);
    };
    let words = words_of(text).filter(|words| words.len() >= 6 && words.len() % 2 == 0);
    let words = words.ok_or_else(|| Problem::Malformed(lossy(text)))?;
    let (mut name, mut seq, mut kind) = (None, None, None);
    for pair in words.chunks_exact(2) {
        let [key, value] = pair else { continue };
        if key.eq_ignore_ascii_case(b"file") {
            set(&mut name, "file", parse_name(value)?)?;
        } else if key.eq_ignore_ascii_case(b"seq") {
            set(&mut seq, "seq", parse_seq(value)?)?;
        } else if key.eq_ignore_ascii_case(b"type") {
            set(&mut kind, "type", parse_kind(value)?)?;
        }
    }
    let name = name.ok_or(Problem::Missing("file"))?;
    let seq = seq.ok_or(Problem::Missing("seq"))?;
    Ok((
        FileInfo { name, seq },
        kind.ok_or(Problem::Missing("type"))?,
    ))
}

/// The words of a line.
fn words_of(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    split_words(text).filter(|_| !text.contains(&0))
}

fn set<T>(field: &mut Option<T>, key: &'static str, value: T) -> Result<(), Problem> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(Problem::Repeated(key)),
    }
}

fn parse_name(value: &[u8]) -> Result<String, Problem> {
    let out_of_reach =
        |name: &str| matches!(name, "" | "." | "..") || name.contains(['/', '\\', '\0']);
    match std::str::from_utf8(value) {
        Ok(name) if !out_of_reach(name) => Ok(name.to_owned()),
        _ => Err(Problem::Path(lossy(value))),
    }
}

fn parse_seq(value: &[u8]) -> Result<u64, Problem> {
    let digits = value.iter().all(u8::is_ascii_digit);
    let seq = std::str::from_utf8(value)
        .ok()
        .filter(|_| digits)
        .and_then(|text| text.parse().ok());
    seq.filter(|seq| (1..=MAX_SEQ).contains(seq))
        .ok_or_else(|| Problem::Number(lossy(value)))
}

fn parse_kind(value: &[u8]) -> Result<FileType, Problem> {
    match value {
        b"b" => Ok(FileType::Base),
        b"h" => Ok(FileType::History),
        b"i" => Ok(FileType::Increment),
        _ => Err(Problem::Type(lossy(value))),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A name, quoted where Redis quotes one; and where it holds a single quote, which Redis writes
/// plainly and then cannot read.
pub(super) fn quoted_name(name: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'\'');
    match !name.is_empty() && name.bytes().all(plain) {
        true => name.into(),
        false => quoted(name.as_bytes()).into(),
    }
}
