//! Encodes replies and requests.
//!
//! Every function appends to a `Vec<u8>`. The caller keeps and reuses it, so a steady stream of
//! replies allocates nothing. [`encode()`] takes a whole [`Reply`]. The `encode_*` functions are
//! for hot paths that answer without building one.

use std::collections::TryReserveError;

use crate::protocol::Protocol;
use crate::reply::Reply;

/// Appends a reply as this protocol writes it.
///
/// Line breaks in simple strings and errors become spaces, as in Redis. Otherwise they would end
/// the line, and the client would read the rest as another reply.
pub fn encode(reply: &Reply, protocol: Protocol, out: &mut Vec<u8>) {
    use Protocol::{Resp2, Resp3};
    match reply {
        Reply::Simple(text) => encode_simple(text, out),
        Reply::Error(text) => encode_error(text, out),
        Reply::Integer(number) => encode_integer(*number, out),
        Reply::Bulk(bytes) => encode_bulk(bytes, out),
        Reply::Verbatim(text) => match protocol {
            Resp2 => encode_bulk(text.as_bytes(), out),
            Resp3 => {
                // The length counts the four bytes of the format mark.
                encode_number(b'=', text.len().saturating_add(4), out);
                out.extend_from_slice(b"txt:");
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
        },
        Reply::NullArray if protocol == Resp2 => out.extend_from_slice(b"*-1\r\n"),
        Reply::Null | Reply::NullArray => encode_null(protocol, out),
        Reply::Set(items) if protocol == Resp3 => encode_items(b'~', items, protocol, out),
        Reply::Push(items) if protocol == Resp3 => encode_items(b'>', items, protocol, out),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            encode_items(b'*', items, protocol, out);
        }
        Reply::Map(pairs) => encode_pairs(pairs, protocol, out),
        Reply::Boolean(value) => encode_boolean(*value, protocol, out),
        Reply::Double(value) => encode_double(*value, protocol, out),
        Reply::BigNumber(digits) => match protocol {
            Resp2 => encode_bulk(digits.as_bytes(), out),
            Resp3 => encode_text(b'(', digits, out),
        },
    }
}

/// The same, but when there is no memory for the reply, nothing is appended.
///
/// # Errors
/// There is no memory for it.
pub fn try_encode(
    reply: &Reply,
    protocol: Protocol,
    out: &mut Vec<u8>,
) -> Result<(), TryReserveError> {
    try_reserve(bytes_of(reply), out)?;
    encode(reply, protocol, out);
    Ok(())
}

/// Appends a bulk string; when there is no memory for it, nothing.
///
/// # Errors
/// There is no memory for it.
pub fn try_encode_bulk(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TryReserveError> {
    try_reserve(bytes.len() + FRAMING, out)?;
    encode_bulk(bytes, out);
    Ok(())
}

/// Makes room for so many bytes, and for more if there is memory for that.
///
/// # Errors
/// There is no memory for them.
pub fn try_reserve(bytes: usize, out: &mut Vec<u8>) -> Result<(), TryReserveError> {
    let grown = out.try_reserve(bytes);
    grown.or_else(|_| out.try_reserve_exact(bytes))
}

/// At least the bytes that a reply takes besides those of its text.
const FRAMING: usize = 32;

/// At least the bytes that a reply takes, but for doubles, which are short.
fn bytes_of(reply: &Reply) -> usize {
    let all = |replies: &[Reply]| replies.iter().map(bytes_of).sum();
    let inner = match reply {
        Reply::Simple(text) | Reply::Error(text) | Reply::Verbatim(text) => text.len(),
        Reply::BigNumber(digits) => digits.len(),
        Reply::Bulk(bytes) => bytes.len(),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => all(items),
        Reply::Map(pairs) => {
            let pairs = pairs
                .iter()
                .map(|(key, value)| bytes_of(key) + bytes_of(value));
            pairs.sum()
        }
        Reply::Integer(_)
        | Reply::Double(_)
        | Reply::Boolean(_)
        | Reply::Null
        | Reply::NullArray => 0,
    };
    inner + FRAMING
}

/// Appends a request as an array of bulk strings. Every server accepts this form.
///
/// An append-only file holds commands in the same form.
pub fn encode_request<T: AsRef<[u8]>>(args: &[T], out: &mut Vec<u8>) {
    encode_array_len(args.len(), out);
    for arg in args {
        encode_bulk(arg.as_ref(), out);
    }
}

/// Appends a simple string: `+OK`.
pub fn encode_simple(text: &str, out: &mut Vec<u8>) {
    encode_text(b'+', text, out);
}

/// Appends an error. The text begins with its code, such as `ERR`.
pub fn encode_error(text: &str, out: &mut Vec<u8>) {
    encode_text(b'-', text, out);
}

/// Appends an integer: `:7`.
#[inline]
pub fn encode_integer(number: i64, out: &mut Vec<u8>) {
    match number {
        0 => out.extend_from_slice(b":0\r\n"),
        1 => out.extend_from_slice(b":1\r\n"),
        _ => encode_number(b':', number, out),
    }
}

/// Appends a boolean: `#t` or `#f` in RESP3, `:1` or `:0` in RESP2.
#[inline]
pub fn encode_boolean(value: bool, protocol: Protocol, out: &mut Vec<u8>) {
    out.extend_from_slice(match (protocol, value) {
        (Protocol::Resp2, true) => b":1\r\n",
        (Protocol::Resp2, false) => b":0\r\n",
        (Protocol::Resp3, true) => b"#t\r\n",
        (Protocol::Resp3, false) => b"#f\r\n",
    });
}

/// Appends the head of an array. `len` replies must follow.
#[inline]
pub fn encode_array_len(len: usize, out: &mut Vec<u8>) {
    encode_len(b'*', len, out);
}

/// Appends the head of a map. `pairs` pairs of replies must follow.
#[inline]
pub fn encode_map_len(pairs: usize, protocol: Protocol, out: &mut Vec<u8>) {
    match protocol {
        Protocol::Resp2 => encode_number(b'*', pairs.saturating_mul(2), out),
        Protocol::Resp3 => encode_number(b'%', pairs, out),
    }
}

/// Appends the head of a bulk string. So many bytes and a line end must follow.
#[inline]
pub fn encode_bulk_len(len: usize, out: &mut Vec<u8>) {
    encode_len(b'$', len, out);
}

/// Appends a bulk string.
#[inline]
pub fn encode_bulk(bytes: &[u8], out: &mut Vec<u8>) {
    encode_bulk_len(bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a null: `_` in RESP3, `$-1` in RESP2.
pub fn encode_null(protocol: Protocol, out: &mut Vec<u8>) {
    out.extend_from_slice(match protocol {
        Protocol::Resp2 => b"$-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
}

/// Appends a double: `,1.5` in RESP3, the bulk string `1.5` in RESP2.
pub fn encode_double(value: f64, protocol: Protocol, out: &mut Vec<u8>) {
    let text = format_double(value);
    match protocol {
        Protocol::Resp2 => encode_bulk(text.as_bytes(), out),
        Protocol::Resp3 => encode_text(b',', &text, out),
    }
}

/// The shortest decimal text that reads back as the same double, in Redis's form.
///
/// The text is plain when it needs few zeros, and has an exponent otherwise: `1`, `1.5`, `0.0001`,
/// `1e-7`, `1.7976931348623157e+308`, `inf`, `-inf`, `nan`.
#[must_use]
pub fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    // Rust's `e` form has the shortest digits, too: "-1.2345e-7". Only the form differs.
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // The mantissa has one digit before its point. The other digits are decimals.
    let decimals = mantissa
        .split_once('.')
        .map_or(0, |(_, digits)| digits.len());
    let decimals = i32::try_from(decimals).unwrap_or(i32::MAX);
    // The value is the digits, read as an integer, times ten to the `power`.
    let power = exponent - decimals;
    let plain_integer = power >= 0 && exponent.abs() < decimals + 8;
    let plain_fraction = power < 0 && (power > -7 || exponent.abs() < 4);
    if plain_integer || plain_fraction {
        // Display never uses an exponent, and its digits are the same shortest ones.
        format!("{value}")
    } else if exponent < 0 {
        scientific
    } else {
        format!("{mantissa}e+{exponent}")
    }
}

fn encode_items(mark: u8, items: &[Reply], protocol: Protocol, out: &mut Vec<u8>) {
    encode_number(mark, items.len(), out);
    for item in items {
        encode(item, protocol, out);
    }
}

fn encode_pairs(pairs: &[(Reply, Reply)], protocol: Protocol, out: &mut Vec<u8>) {
    encode_map_len(pairs.len(), protocol, out);
    for (key, value) in pairs {
        encode(key, protocol, out);
        encode(value, protocol, out);
    }
}

/// [`encode_number`] for a length. Nearly all have one digit or two, and are written at once: a log
/// has one for each item.
#[inline]
fn encode_len(mark: u8, len: usize, out: &mut Vec<u8>) {
    match u8::try_from(len) {
        Ok(len @ 0..=9) => out.extend_from_slice(&[mark, b'0' + len, b'\r', b'\n']),
        Ok(len @ 10..=99) => {
            out.extend_from_slice(&[mark, b'0' + len / 10, b'0' + len % 10, b'\r', b'\n']);
        }
        _ => encode_number(mark, len, out),
    }
}

fn encode_number(mark: u8, number: impl itoa::Integer, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    out.push(mark);
    out.extend_from_slice(digits.format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn encode_text(mark: u8, text: &str, out: &mut Vec<u8>) {
    out.push(mark);
    let start = out.len();
    out.extend_from_slice(text.as_bytes());
    for byte in out.iter_mut().skip(start) {
        if matches!(*byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}
