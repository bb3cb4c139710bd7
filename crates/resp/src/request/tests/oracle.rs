//! Any stream, cut anywhere, beside a parser that is slow and simple.

use super::*;

/// Bytes that are likely to be a request or nearly one.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let arg = proptest::collection::vec(any::<u8>(), 0..130);
    let request = proptest::collection::vec(arg, 1..14).prop_map(|args| {
        let mut bytes = Vec::new();
        encode_request(&args, &mut bytes);
        bytes
    });
    let piece = prop_oneof![
        6 => request,
        2 => "[a-z]{1,4}( [a-z\"'\\\\x0-9\t\x0b]{0,6}){0,3}\r?\n".prop_map(String::into_bytes),
        1 => "[*$][-0-9]{0,3}\r\n".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..10),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn cuts(bytes: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let (mut rest, mut pieces) = (bytes, Vec::new());
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, tail) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece.to_vec());
        rest = tail;
    }
    pieces
}

/// The slow, obvious parser. It takes one request from the front of complete bytes, without state.
fn oracle(mut bytes: &[u8], limits: &Limits) -> (Requests, Result<(), ProtocolError>) {
    let mut requests = Vec::new();
    loop {
        match oracle_request(&mut bytes, limits) {
            Ok(Some(request)) if request.is_empty() => {}
            Ok(Some(request)) => requests.push(request),
            Ok(None) => return (requests, Ok(())),
            Err(error) => return (requests, Err(error)),
        }
    }
}

fn oracle_line<'b>(
    bytes: &mut &'b [u8],
    limits: &Limits,
    error: ProtocolError,
) -> Result<Option<&'b [u8]>, ProtocolError> {
    let end = bytes.iter().position(|byte| *byte == b'\r');
    if end.unwrap_or(bytes.len()) > limits.max_inline {
        return Err(error);
    }
    let Some(end) = end.filter(|end| end + 2 <= bytes.len()) else {
        return Ok(None);
    };
    let line = &bytes[..end];
    *bytes = &bytes[end + 2..];
    Ok(Some(line))
}

fn oracle_number(digits: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(digits).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn oracle_request(
    bytes: &mut &[u8],
    limits: &Limits,
) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
    if bytes.first() != Some(&b'*') {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let line = &bytes[..end.unwrap_or(bytes.len())];
        let control = |byte: &u8| *byte < 0x20 && !matches!(byte, b'\t' | b'\r');
        if line.iter().take(limits.max_inline + 1).any(control) {
            return Err(ProtocolError::ControlCharacter);
        }
        if line.len() > limits.max_inline {
            return Err(ProtocolError::TooBigInline);
        }
        let Some(end) = end else { return Ok(None) };
        let line = &bytes[..end];
        *bytes = &bytes[end + 1..];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut batch = Batch::new();
        inline::split(line, 0, line.len(), &mut batch)?;
        batch.end_request();
        return Ok(Some(batch.request(0, line).map(<[u8]>::to_vec).collect()));
    }
    let Some(line) = oracle_line(bytes, limits, ProtocolError::TooBigMultibulkCount)? else {
        return Ok(None);
    };
    // A negative count means no arguments. A count that does not fit is above the limit.
    let count = oracle_number(&line[1..]).and_then(|count| usize::try_from(count.max(0)).ok());
    let count = count.filter(|count| *count <= limits.max_args);
    let count = count.ok_or(ProtocolError::InvalidMultibulkLength)?;
    let mut args = Vec::new();
    for _ in 0..count {
        let Some(line) = oracle_line(bytes, limits, ProtocolError::TooBigBulkCount)? else {
            return Ok(None);
        };
        let mark = line.first().copied().unwrap_or(b'\r');
        if mark != b'$' {
            return Err(ProtocolError::ExpectedDollar(mark));
        }
        let len = oracle_number(&line[1..]).and_then(|len| usize::try_from(len).ok());
        let len = len.filter(|len| *len <= limits.max_bulk);
        let len = len.ok_or(ProtocolError::InvalidBulkLength)?;
        if bytes.len() < len + 2 {
            return Ok(None);
        }
        args.push(bytes[..len].to_vec());
        *bytes = &bytes[len + 2..];
    }
    Ok(Some(args))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn pieces_of_any_size_give_what_the_whole_gives(
        bytes in stream(),
        sizes in proptest::collection::vec(1usize..40, 1..10),
        authenticated: bool,
        strict: bool,
    ) {
        let limits = Limits { max_args: 12, max_bulk: 120, max_inline: 40, authenticated, strict };
        let pieces = cuts(&bytes, &sizes);
        let chunked = parse_pieces(pieces.iter().map(Vec::as_slice), &limits);
        prop_assert_eq!(chunked, parse_whole(&bytes, &limits));
    }

    #[test]
    fn the_parser_agrees_with_the_slow_obvious_one(bytes in stream()) {
        let limits = Limits { max_args: 12, max_bulk: 120, max_inline: 40, authenticated: true, strict: false };
        let (requests, result, _) = parse_whole(&bytes, &limits);
        prop_assert_eq!((requests, result), oracle(&bytes, &limits));
    }

    /// Each number has one spelling, so each request has one, too.
    #[test]
    fn strict_requests_are_those_that_are_encoded_so(
        bytes in stream(),
        changed: proptest::sample::Index,
        byte: u8,
    ) {
        let mut bytes = bytes;
        if !bytes.is_empty() && byte % 2 == 0 {
            let at = changed.index(bytes.len());
            bytes[at] = byte;
        }
        let limits = Limits { strict: true, ..Limits::default() };
        let (requests, result, taken) = parse_whole(&bytes, &limits);
        let mut encoded = Vec::new();
        for request in &requests {
            encode_request(request, &mut encoded);
        }
        prop_assert_eq!(&encoded[..], &bytes[..taken]);
        let rest = &bytes[taken..];
        prop_assert!(rest.is_empty() || result.is_err() || rest[0] == b'*');
        // The next one, if it is whole, is not encoded so.
        if let Some(next) = parse_whole(rest, &Limits::default()).0.first() {
            let mut encoded = Vec::new();
            encode_request(next, &mut encoded);
            prop_assert!(!rest.starts_with(&encoded));
        }
    }

    #[test]
    fn what_a_client_encodes_is_what_the_server_parses(
        requests in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..1200), 1..5),
            0..5,
        ),
    ) {
        let mut bytes = Vec::new();
        for request in &requests {
            encode_request(request, &mut bytes);
        }
        let (parsed, result, taken) = parse_whole(&bytes, &Limits::default());
        prop_assert_eq!(parsed, requests);
        prop_assert_eq!(result, Ok(()));
        prop_assert_eq!(taken, bytes.len());
    }

    #[test]
    fn any_bytes_make_progress_and_no_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let limits = Limits { max_inline: 100, ..Limits::default() };
        let (_, result, taken) = parse_whole(&bytes, &limits);
        // The rest is one unfinished request, and not even one whole line of it.
        let left = &bytes[taken..];
        if result.is_ok() && !left.is_empty() && left[0] != b'*' {
            prop_assert!(!left.contains(&b'\n'));
        }
    }
}
