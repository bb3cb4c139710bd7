//! Decodes replies for clients: both protocols, in pieces, within limits.
//!
//! The first byte of a reply says what it is, so one decoder reads both protocols. The decoder
//! keeps nested replies on a stack of its own. So depth costs no call stack, and a reply that
//! arrives in pieces is not decoded again from its beginning.

use std::borrow::Cow;

use thiserror::Error;

use crate::number::integer;
use crate::reply::Reply;
use crate::scan::find;

/// The most elements of a collection for which memory is reserved before they arrive. The length
/// that the other side announces must not decide how much memory is taken.
const RESERVED_ITEMS: usize = 256;

/// What one reply may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// The most collections that may be nested in each other. Default 128.
    pub max_depth: usize,
    /// The longest string in bytes. Default 512 MiB.
    pub max_bulk: usize,
    /// The most elements of one collection; a pair of a map counts as two. Default 2^31 - 1.
    pub max_items: usize,
    /// The longest line in bytes: a simple string, an error, a number. Default 64 KiB.
    pub max_line: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self {
            max_depth: 128,
            max_bulk: 512 << 20,
            max_items: 0x7fff_ffff,
            max_line: 64 << 10,
        }
    }
}

/// Why bytes are not a reply. The connection cannot be used afterwards.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// No reply begins with this byte.
    #[error("a reply cannot begin with the byte {0:#04x}")]
    UnknownType(u8),
    /// A length is not a number, or is negative where that has no meaning.
    #[error("invalid length in a reply")]
    InvalidLength,
    /// A value does not have the form of its type.
    #[error("invalid value in a reply")]
    InvalidValue,
    /// A line or a string does not end in CR LF.
    #[error("missing line end in a reply")]
    MissingLineEnd,
    /// Collections are nested deeper than [`DecodeLimits::max_depth`].
    #[error("a reply is nested too deeply")]
    TooDeep,
    /// A string, a line or a collection is longer than its limit.
    #[error("a reply is too long")]
    TooLong,
    /// A streamed string or collection. No server sends these unasked.
    #[error("streamed replies are not supported")]
    Streamed,
}

/// Decodes the reply at the beginning of `buf`.
///
/// Returns the reply and its length in bytes, or `None` when it is not complete. To read a reply
/// that arrives in pieces, use a [`Decoder`]: it does not start again with every piece.
///
/// # Errors
/// When the bytes are not a reply, or the reply is over a limit.
pub fn decode(buf: &[u8], limits: &DecodeLimits) -> Result<Option<(Reply, usize)>, DecodeError> {
    Decoder::new(limits.clone()).decode(buf)
}

/// Reads replies that arrive in pieces. One decoder belongs to one connection.
///
/// It skips attributes (`|` in RESP3). In simple strings, errors and verbatim strings it replaces
/// bytes that are not UTF-8 by U+FFFD. Bulk strings keep every byte.
#[derive(Debug, Default)]
pub struct Decoder {
    limits: DecodeLimits,
    /// Where the next element begins, counted from the first byte of the reply.
    at: usize,
    /// Where the search for the end of that element's line continues.
    scanned: usize,
    /// The collections that are not complete, outermost first.
    open: Vec<Collection>,
    /// The error that ended this connection.
    failed: Option<DecodeError>,
}

/// A collection that is not complete: `left` elements are missing.
#[derive(Debug)]
struct Collection {
    /// The first byte of its head.
    mark: u8,
    left: usize,
    /// The elements so far. Of a map these are keys and values in turn. Those of an attribute are
    /// dropped.
    elements: Vec<Reply>,
}

/// One element: a value, or the head of a collection that has elements.
enum Element {
    Value(Reply),
    Open(Collection),
    /// An attribute without pairs.
    Nothing,
}

impl Decoder {
    /// A decoder at the beginning of a connection.
    #[must_use]
    pub fn new(limits: DecodeLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Decodes the reply at the beginning of `buf`.
    ///
    /// Returns the reply and its length in bytes. Drop these bytes from `buf` before the next call.
    /// Returns `None` when the reply is not complete. Then call again with the same bytes and more.
    ///
    /// # Errors
    /// When the bytes are not a reply, or the reply is over a limit. Every further call returns the
    /// same error.
    pub fn decode(&mut self, buf: &[u8]) -> Result<Option<(Reply, usize)>, DecodeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.decode_elements(buf);
        if let Err(error) = result {
            self.failed = Some(error);
            self.open = Vec::new();
        }
        result
    }

    fn decode_elements(&mut self, buf: &[u8]) -> Result<Option<(Reply, usize)>, DecodeError> {
        loop {
            let Some((element, next)) = self.element(buf)? else {
                return Ok(None);
            };
            self.at = next;
            self.scanned = next;
            match element {
                Element::Value(value) => {
                    if let Some(reply) = self.place(value) {
                        self.at = 0;
                        self.scanned = 0;
                        return Ok(Some((reply, next)));
                    }
                }
                Element::Open(_) if self.open.len() >= self.limits.max_depth => {
                    return Err(DecodeError::TooDeep);
                }
                Element::Open(collection) => self.open.push(collection),
                Element::Nothing => {}
            }
        }
    }

    /// Puts a value into the innermost open collection. Returns the whole reply when the value
    /// completes it.
    fn place(&mut self, mut value: Reply) -> Option<Reply> {
        loop {
            let Some(collection) = self.open.last_mut() else {
                return Some(value);
            };
            collection.left -= 1;
            if collection.mark != b'|' {
                collection.elements.push(value);
            }
            if collection.left > 0 {
                return None;
            }
            value = self.open.pop()?.finish()?;
        }
    }

    /// The element at `self.at` and the position behind it, or `None` when it is not complete.
    fn element(&mut self, buf: &[u8]) -> Result<Option<(Element, usize)>, DecodeError> {
        let Some((line, next)) = self.line(buf)? else {
            return Ok(None);
        };
        let Some((&mark, text)) = line.split_first() else {
            return Err(DecodeError::UnknownType(b'\r'));
        };
        let value = match mark {
            b'$' | b'=' | b'!' => return self.string(buf, mark, text, next),
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                return Ok(Some((self.collection(mark, text)?, next)));
            }
            b'+' => Reply::Simple(lossy(text)),
            b'-' => Reply::Error(lossy(text)),
            b':' => Reply::Integer(integer(text).ok_or(DecodeError::InvalidValue)?),
            b'_' if text.is_empty() => Reply::Null,
            b'#' if text == b"t" => Reply::Boolean(true),
            b'#' if text == b"f" => Reply::Boolean(false),
            b',' => Reply::Double(parse_double(text).ok_or(DecodeError::InvalidValue)?),
            b'(' => Reply::BigNumber(parse_big(text).ok_or(DecodeError::InvalidValue)?),
            b'_' | b'#' => return Err(DecodeError::InvalidValue),
            b';' | b'.' => return Err(DecodeError::Streamed),
            other => return Err(DecodeError::UnknownType(other)),
        };
        Ok(Some((Element::Value(value), next)))
    }

    /// The line at `self.at` without its end, and the position behind its end.
    fn line<'b>(&mut self, buf: &'b [u8]) -> Result<Option<(&'b [u8], usize)>, DecodeError> {
        let end = find(b'\r', buf, self.scanned).unwrap_or(buf.len());
        if end.saturating_sub(self.at) > self.limits.max_line {
            return Err(DecodeError::TooLong);
        }
        self.scanned = end;
        match buf.get(end..) {
            Some([b'\r', b'\n', ..]) => {
                let line = buf.get(self.at..end).unwrap_or_default();
                Ok(Some((line, end + 2)))
            }
            Some([b'\r', _, ..]) => Err(DecodeError::MissingLineEnd),
            _ => Ok(None),
        }
    }

    /// A string. `text` is its length, and its bytes begin at `start`.
    fn string(
        &self,
        buf: &[u8],
        mark: u8,
        text: &[u8],
        start: usize,
    ) -> Result<Option<(Element, usize)>, DecodeError> {
        if mark == b'$' && text == b"-1" {
            return Ok(Some((Element::Value(Reply::Null), start)));
        }
        let len = parse_len(text, self.limits.max_bulk)?;
        let Some((bytes, end)) = buf.get(start..).and_then(|rest| rest.split_at_checked(len))
        else {
            return Ok(None);
        };
        match end {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Ok(None),
            _ => return Err(DecodeError::MissingLineEnd),
        }
        let value = match (mark, bytes) {
            (b'$', bytes) => Reply::Bulk(bytes.to_vec()),
            (b'!', bytes) => Reply::Error(lossy(bytes)),
            // Three bytes name the format: "txt" or "mkd".
            (_, [_, _, _, b':', text @ ..]) => Reply::Verbatim(lossy(text)),
            _ => return Err(DecodeError::InvalidValue),
        };
        Ok(Some((Element::Value(value), start + len + 2)))
    }

    /// The collection whose head has this mark and this length.
    fn collection(&self, mark: u8, text: &[u8]) -> Result<Element, DecodeError> {
        if mark == b'*' && text == b"-1" {
            return Ok(Element::Value(Reply::NullArray));
        }
        let len = parse_len(text, self.limits.max_items)?;
        let left = match mark {
            b'%' | b'|' => len.saturating_mul(2),
            _ => len,
        };
        if left > self.limits.max_items {
            return Err(DecodeError::TooLong);
        }
        let elements = Vec::with_capacity(left.min(RESERVED_ITEMS));
        let collection = Collection {
            mark,
            left,
            elements,
        };
        Ok(match left {
            0 => collection.finish().map_or(Element::Nothing, Element::Value),
            _ => Element::Open(collection),
        })
    }
}

impl Collection {
    /// A complete collection as a reply, or `None` for an attribute.
    fn finish(self) -> Option<Reply> {
        let elements = self.elements;
        Some(match self.mark {
            b'*' => Reply::Array(elements),
            b'~' => Reply::Set(elements),
            b'>' => Reply::Push(elements),
            b'%' => {
                let mut elements = elements.into_iter();
                let pair = || Some((elements.next()?, elements.next()?));
                Reply::Map(std::iter::from_fn(pair).collect())
            }
            _ => return None,
        })
    }
}

fn parse_len(text: &[u8], limit: usize) -> Result<usize, DecodeError> {
    if text == b"?" {
        return Err(DecodeError::Streamed);
    }
    let len = integer(text).and_then(|len| usize::try_from(len).ok());
    match len.ok_or(DecodeError::InvalidLength)? {
        len if len > limit => Err(DecodeError::TooLong),
        len => Ok(len),
    }
}

/// Accepts decimal and exponent forms, `inf`, `-inf`, and `nan` with or without the sign that C
/// prints.
fn parse_double(text: &[u8]) -> Option<f64> {
    match text {
        b"-nan" => Some(f64::NAN),
        text => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

fn parse_big(text: &[u8]) -> Option<String> {
    let digits = text
        .strip_prefix(b"-")
        .or_else(|| text.strip_prefix(b"+"))
        .unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    String::from_utf8(text.to_vec()).ok()
}

fn lossy(text: &[u8]) -> Cow<'static, str> {
    match text {
        b"OK" => Cow::Borrowed("OK"),
        text => Cow::Owned(String::from_utf8_lossy(text).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;
    use crate::scan::EXAMINED;

    #[test]
    fn no_byte_of_a_line_is_looked_at_twice() {
        let mut bytes = Vec::new();
        let long = Reply::simple("x".repeat(60_000));
        let many = vec![Reply::Map(vec![(1000.into(), Reply::bulk("abc"))]); 1000];
        crate::encode(
            &Reply::Array([vec![long], many].concat()),
            Protocol::Resp3,
            &mut bytes,
        );
        EXAMINED.set(0);
        let mut decoder = Decoder::default();
        for end in 1..bytes.len() {
            assert_eq!(decoder.decode(&bytes[..end]), Ok(None));
        }
        assert!(matches!(decoder.decode(&bytes), Ok(Some((_, len))) if len == bytes.len()));
        // The end of a line is looked at again while its second byte or its payload is missing.
        // Here that is at most 7 times for a bulk string and twice for any other line.
        let lines = 1 + 1 + 1000 * 3;
        assert!(
            EXAMINED.get() <= bytes.len() + 7 * lines,
            "{}",
            EXAMINED.get()
        );
    }
}
