//! Inline requests: a line of words as a person types it.
//!
//! Blanks separate words. A word may contain a quoted part, whose closing quote must end the word.
//! Between double quotes `\n`, `\r`, `\t`, `\b`, `\a` and `\xHH` mean one byte, and a backslash
//! before any other character means that character. Between single quotes only `\'` is special.

use std::fmt::Write;

use crate::batch::{Batch, Span};
use crate::limits::ProtocolError;

/// The words of a line, split as those of an inline request; `None` when a quote is not closed, or
/// does not end its word. Redis splits the lines of its files like this, too.
///
/// ```
/// let words = everbloom_resp::split_words(br#"a "b\x20c" 'd'"#).unwrap();
/// assert_eq!(words, [&b"a"[..], b"b c", b"d"]);
/// assert_eq!(everbloom_resp::split_words(b"'a'b"), None);
/// ```
#[must_use]
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut batch = Batch::new();
    split(line, 0, line.len(), &mut batch).ok()?;
    batch.end_request();
    Some(batch.request(0, line).map(<[u8]>::to_vec).collect())
}

/// The bytes in double quotes, as redis-cli prints them: from this [`split_words`] gives them back.
///
/// ```
/// assert_eq!(everbloom_resp::quoted(b"say \"hi\"\n\0"), r#""say \"hi\"\n\x00""#);
/// ```
#[must_use]
pub fn quoted(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x07 => text.push_str("\\a"),
            0x08 => text.push_str("\\b"),
            b' '..=b'~' => text.push(char::from(byte)),
            // Writing to a String does not fail.
            _ => drop(write!(text, "\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

/// Adds the words of `buf[start..end]`, if there are any, to the open request of the batch.
pub(crate) fn split(
    buf: &[u8],
    start: usize,
    end: usize,
    batch: &mut Batch,
) -> Result<(), ProtocolError> {
    let line = buf.get(..end).unwrap_or_default();
    let mut at = start;
    loop {
        at += run(line, at, is_space);
        if at >= end {
            return Ok(());
        }
        let plain = run(line, at, |byte| {
            !ends_word(byte) && !matches!(byte, b'"' | b'\'')
        });
        match line.get(at + plain) {
            Some(b'"' | b'\'') => at = unquote(line, at, batch)?,
            _ => {
                batch.spans.push(Span {
                    start: at,
                    len: plain,
                });
                at += plain;
            }
        }
    }
}

/// Adds the word at `at`, which contains quotes. Returns the position behind it.
fn unquote(line: &[u8], mut at: usize, batch: &mut Batch) -> Result<usize, ProtocolError> {
    let owned = batch.owned.len();
    loop {
        match line.get(at) {
            Some(&quote @ (b'"' | b'\'')) => {
                at = read_quoted(line, quote, at + 1, &mut batch.owned)?;
                break;
            }
            Some(&byte) if !ends_word(byte) => {
                batch.owned.push(byte);
                at += 1;
            }
            _ => break,
        }
    }
    batch.push_owned(owned);
    Ok(at)
}

/// Reads a quoted part of a word, up to its closing quote, which a space or the end must follow.
/// Between double quotes there are escapes; between single ones `\'` is the only one.
fn read_quoted(
    line: &[u8],
    quote: u8,
    mut at: usize,
    out: &mut Vec<u8>,
) -> Result<usize, ProtocolError> {
    loop {
        let rest = line.get(at..).unwrap_or_default();
        let (byte, taken) = match *rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [byte, ref next @ ..] if byte == quote => {
                return match next.first() {
                    Some(&next) if !is_space(next) => Err(ProtocolError::UnbalancedQuotes),
                    _ => Ok(at + 1),
                };
            }
            [b'\\', b'\'', ..] => (b'\'', 2),
            [b'\\', b'x', high, low, ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex_digit(high) << 4 | hex_digit(low), 4)
            }
            [b'\\', escaped, ..] if quote == b'"' => (escape(escaped), 2),
            [byte, ..] => (byte, 1),
        };
        out.push(byte);
        at += taken;
    }
}

/// The number of bytes of this kind that follow each other from `at` on.
fn run(line: &[u8], at: usize, kind: impl Fn(u8) -> bool) -> usize {
    line.get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(|byte| kind(**byte))
        .count()
}

/// The bytes that may stand between words and behind a closing quote: C's `isspace`.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// The bytes that end a word without quotes. As in Redis, these are fewer than [`is_space`]:
/// vertical tab and form feed are skipped before a word, but are part of it inside.
const fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

const fn escape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// The value of a hexadecimal digit.
const fn hex_digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        _ => byte - b'A' + 10,
    }
}
