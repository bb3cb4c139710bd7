use super::*;
use crate::encode::encode_request;
use crate::scan::EXAMINED;
use proptest::prelude::*;

mod oracle;

type Requests = Vec<Vec<Vec<u8>>>;

fn collect(batch: &Batch, buf: &[u8], into: &mut Requests) {
    let mut flat = Vec::new();
    batch.resolve(buf, &mut flat);
    let end = batch
        .len()
        .checked_sub(1)
        .map_or(0, |last| batch.range(last).end);
    assert_eq!(flat.len(), end, "every argument belongs to a request");
    for i in 0..batch.len() {
        let request: Vec<Vec<u8>> = batch.request(i, buf).map(<[u8]>::to_vec).collect();
        assert_eq!(request.len(), batch.range(i).len());
        assert_eq!(
            request,
            flat[batch.range(i)],
            "the two ways to the arguments agree"
        );
        assert!(!request.is_empty());
        into.push(request);
    }
}

/// Feeds the pieces to one parser in turn, as a connection does.
fn parse_pieces<'p>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    limits: &Limits,
) -> (Requests, Result<(), ProtocolError>, usize) {
    let (mut parser, mut batch) = (RequestParser::new(), Batch::new());
    let (mut buf, mut requests, mut taken) = (Vec::new(), Vec::new(), 0);
    for piece in pieces {
        buf.extend_from_slice(piece);
        loop {
            let result = parser.parse(&buf, limits, &mut batch);
            collect(&batch, &buf, &mut requests);
            let consumed = parser.consume();
            taken += consumed;
            buf.drain(..consumed);
            if result.is_err() {
                assert_eq!(
                    parser.parse(PING, limits, &mut batch),
                    result,
                    "an error stays"
                );
                assert!(batch.is_empty());
                return (requests, result, taken);
            }
            if !parser.has_more() {
                break;
            }
        }
    }
    (requests, Ok(()), taken)
}

fn parse_whole(bytes: &[u8], limits: &Limits) -> (Requests, Result<(), ProtocolError>, usize) {
    parse_pieces([bytes], limits)
}

fn words(request: &[&str]) -> Vec<Vec<u8>> {
    request
        .iter()
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

fn long(prefix: &str, digits: usize) -> Vec<u8> {
    [prefix.as_bytes(), &vec![b'1'; digits]].concat()
}

/// What redis-server 7.0.15 answered on a socket to these bytes. `None`: it waited for more.
#[test]
fn malformed_requests_get_the_texts_that_redis_sends() {
    let no_count = Some("invalid multibulk length");
    let no_len = Some("invalid bulk length");
    let table: &[(&[u8], Option<&str>)] = &[
        (b"*x\r\n", no_count),
        (b"*\r\n", no_count),
        (b"*1x\r\n", no_count),
        (b"*01\r\n", no_count),
        (b"*+1\r\n", no_count),
        (b"* 1\r\n", no_count),
        (b"*-0\r\n", no_count),
        (b"*9223372036854775808\r\n", no_count),
        (b"*2147483648\r\n", no_count),
        (b"*-9223372036854775809\r\nPING\r\n", no_count),
        (b"*1\r\nPING\r\n", Some("expected '$', got 'P'")),
        (b"*1\r\n:4\r\n", Some("expected '$', got ':'")),
        (b"*1\r\n*1\r\n", Some("expected '$', got '*'")),
        (b"*1\r\n\r\n", Some("expected '$', got ' '")),
        (b"*1\r\n\n\r\n", Some("expected '$', got ' '")),
        (b"*1\r\n\xff\r\n", Some("expected '$', got '\u{ff}'")),
        (b"*1\r\nx", None),
        (b"*1\r\nxx\n\n", None),
        (b"*1\r\n$-1\r\n", no_len),
        (b"*1\r\n$-0\r\n", no_len),
        (b"*1\r\n$x\r\n", no_len),
        (b"*1\r\n$\r\n", no_len),
        (b"*1\r\n$04\r\nPING\r\n", no_len),
        (b"*1\r\n$4 \r\nPING\r\n", no_len),
        (b"*1\r\n$536870913\r\n", no_len),
        (b"*1\r\n$536870912\r\n", None),
        (b"*1\r\n$9223372036854775808\r\n", no_len),
        (&long("*", 65_535), None),
        (&long("*", 65_536), Some("too big mbulk count string")),
        (&long("*1\r\n$", 65_535), None),
        (&long("*1\r\n$", 65_536), Some("too big bulk count string")),
        (&long("", 65_536), None),
        (&long("", 65_537), Some("too big inline request")),
        (b"ECHO \"a\"b\r\n", Some("unbalanced quotes in request")),
        (b"ECHO 'a'b\r\n", Some("unbalanced quotes in request")),
        (b"ECHO \"a\r\n", Some("unbalanced quotes in request")),
        (b"ECHO 'a\r\n", Some("unbalanced quotes in request")),
        (b"ECHO \"a\\\r\n", Some("unbalanced quotes in request")),
        (b"ECHO \"a\"\"b\"\r\n", Some("unbalanced quotes in request")),
        (
            b"ECHO \\\"a b\\\"\r\n",
            Some("unbalanced quotes in request"),
        ),
    ];
    for (bytes, expected) in table {
        let shown = bytes[..bytes.len().min(40)].escape_ascii();
        let (requests, result, _) = parse_whole(bytes, &Limits::default());
        let text = result.err().map(|error| error.to_string());
        let expected = expected.map(|text| format!("Protocol error: {text}"));
        assert_eq!(text, expected, "{shown}");
        assert!(requests.is_empty(), "{shown}");
    }
}

#[test]
fn a_control_character_in_an_inline_line_is_refused_at_once() {
    let error = ProtocolError::ControlCharacter;
    for byte in (0..0x20).filter(|byte| !b"\t\n\r".contains(byte)) {
        let lines: [&[u8]; 4] = [b"PING a", b"PING a\r\n", b"PING 'a'\r\n", b"PING \"a\"\r\n"];
        for line in lines {
            let bytes = [b"ECHO b\r\n", line].concat();
            let bytes = bytes
                .iter()
                .map(|old| if *old == b'a' { byte } else { *old });
            let bytes: Vec<u8> = bytes.collect();
            let (requests, result, _) = parse_whole(&bytes, &Limits::default());
            assert_eq!(result, Err(error), "{}", bytes.escape_ascii());
            assert_eq!(
                requests,
                [words(&["ECHO", "b"])],
                "{}",
                bytes.escape_ascii()
            );
        }
    }
    let beyond_the_limit = [&long("", 65_537)[..], b"\0"].concat();
    let (_, result, _) = parse_whole(&beyond_the_limit, &Limits::default());
    assert_eq!(result, Err(ProtocolError::TooBigInline));
}

/// The same server's answers, with `requirepass` set and before `AUTH`.
#[test]
fn before_authentication_requests_are_small() {
    let limits = Limits {
        authenticated: false,
        ..Limits::default()
    };
    let table: &[(&[u8], Option<&str>)] = &[
        (b"*10\r\n", None),
        (b"*11\r\n", Some("unauthenticated multibulk length")),
        (
            b"*11\r\n$4\r\nPING\r\n",
            Some("unauthenticated multibulk length"),
        ),
        (b"*2147483648\r\n", Some("invalid multibulk length")),
        (b"*1\r\n$16384\r\n", None),
        (b"*1\r\n$16385\r\n", Some("unauthenticated bulk length")),
        (b"*1\r\n$536870913\r\n", Some("invalid bulk length")),
        (b"A a a a a a a a a a a a a a\r\n", None),
    ];
    for (bytes, expected) in table {
        let text = parse_whole(bytes, &limits)
            .1
            .err()
            .map(|error| error.to_string());
        let expected = expected.map(|text| format!("Protocol error: {text}"));
        assert_eq!(text, expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_request_behind_auth_has_the_limits_that_auth_gave() {
    let mut buf = Vec::new();
    encode_request(&["AUTH", "secret"], &mut buf);
    encode_request(&["many"; 11], &mut buf);
    let mut limits = Limits {
        authenticated: false,
        ..Limits::default()
    };
    let (mut parser, mut batch) = (RequestParser::new(), Batch::new());

    assert_eq!(parser.parse(&buf, &limits, &mut batch), Ok(()));
    assert_eq!((batch.len(), batch.range(0).len()), (1, 2));
    assert!(parser.has_more());
    buf.drain(..parser.consume());

    limits.authenticated = true;
    assert_eq!(parser.parse(&buf, &limits, &mut batch), Ok(()));
    assert_eq!((batch.len(), batch.range(0).len()), (1, 11));
    assert!(!parser.has_more());
    assert_eq!(parser.consume(), buf.len());
}

/// How redis-server 7.0.15 read these lines, as `ECHO` and unknown commands show.
#[test]
fn lines_and_quotes_mean_what_they_mean_to_redis() {
    let table: &[(&[u8], &[&[&str]])] = &[
        (b"\r\nPING\r\n", &[&["PING"]]),
        (b"\nPING\n", &[&["PING"]]),
        (b"   \r\nPING\r\n", &[&["PING"]]),
        (b" PING \r\n", &[&["PING"]]),
        (b"\tPING\t\r\n", &[&["PING"]]),
        (b"\rPING\r\n", &[&["PING"]]),
        (b"PING\r\r\n", &[&["PING"]]),
        (b"ECHO a\rb\r\n", &[&["ECHO", "a", "b"]]),
        (b"ECHO \"a\"\tb\r\n", &[&["ECHO", "a", "b"]]),
        (
            b"ECHO \"a\\n\\r\\t\\b\\a\\x41\\xzz\\q\\\"\\\\\"\r\n",
            &[&["ECHO", "a\n\r\t\x08\x07Axzzq\"\\"]],
        ),
        (b"ECHO 'a\\'b\\n'\r\n", &[&["ECHO", "a'b\\n"]]),
        (b"ECHO a\"b c\"\r\n", &[&["ECHO", "ab c"]]),
        (b"ECHO a'b c'\r\n", &[&["ECHO", "ab c"]]),
        (b"ECHO \"\"\r\n", &[&["ECHO", ""]]),
        (b"ECHO ''\r\n", &[&["ECHO", ""]]),
        (b"ECHO a\\x41\r\n", &[&["ECHO", "a\\x41"]]),
        (b"ECHO \"\\x4\"\r\n", &[&["ECHO", "x4"]]),
        (b"ECHO \"a\\x00b\"\r\n", &[&["ECHO", "a\0b"]]),
        (b"\"\"\r\n", &[&[""]]),
        (b"a\" b\"\r\n", &[&["a b"]]),
        (b"ECHO \"it's\"\r\n", &[&["ECHO", "it's"]]),
        (b"ECHO 'a\"b'\r\n", &[&["ECHO", "a\"b"]]),
        (b"$4\r\nPING\r\n", &[&["$4"], &["PING"]]),
        (b"*1\r\n$0\r\n\r\n", &[&[""]]),
        (b"*-1\r\nPING\r\n", &[&["PING"]]),
        (b"*-5\r\nPING\r\n", &[&["PING"]]),
        (b"*0\r\nPING\r\n", &[&["PING"]]),
        (b"*-9223372036854775808\r\nPING\r\n", &[&["PING"]]),
        (
            b"*1\r\n$4\r\nPINGxy*1\r\n$4\r\nPING\r\n",
            &[&["PING"], &["PING"]],
        ),
        (b"*1\rX$4\rYPING\r\n", &[&["PING"]]),
        (b"*1\r\n$4\r\nPI\r\nxx", &[&["PI\r\n"]]),
    ];
    for (bytes, expected) in table {
        let (requests, result, taken) = parse_whole(bytes, &Limits::default());
        let expected: Requests = expected.iter().map(|request| words(request)).collect();
        assert_eq!(result, Ok(()), "{}", bytes.escape_ascii());
        assert_eq!(requests, expected, "{}", bytes.escape_ascii());
        assert_eq!(taken, bytes.len(), "{}", bytes.escape_ascii());
    }
    let (requests, ..) = parse_whole(b"ECHO \"\\xAf\\xaF\"\r\n", &Limits::default());
    assert_eq!(requests, [[b"ECHO".to_vec(), vec![0xaf, 0xaf]]]);
}

#[test]
fn the_error_reply_has_the_byte_that_is_no_text() {
    let mut out = Vec::new();
    ProtocolError::ExpectedDollar(0xff).encode(&mut out);
    assert_eq!(out, b"-ERR Protocol error: expected '$', got '\xff'\r\n");
    out.clear();
    ProtocolError::ExpectedDollar(b'\r').encode(&mut out);
    assert_eq!(out, b"-ERR Protocol error: expected '$', got ' '\r\n");
    out.clear();
    ProtocolError::UnbalancedQuotes.encode(&mut out);
    assert_eq!(
        out,
        b"-ERR Protocol error: unbalanced quotes in request\r\n"
    );
}

#[test]
fn requests_before_a_malformed_one_are_handed_out() {
    let bytes = [PING, PING, b"*2\r\n$4\r\nECHO\r\n:1\r\n", PING].concat();
    let (requests, result, taken) = parse_whole(&bytes, &Limits::default());
    assert_eq!(requests, [words(&["PING"]), words(&["PING"])]);
    assert_eq!(result, Err(ProtocolError::ExpectedDollar(b':')));
    assert_eq!(taken, 2 * PING.len());
}

#[test]
fn limits_are_inclusive() {
    let limits = Limits {
        max_args: 3,
        max_bulk: 200,
        max_inline: 12,
        ..Limits::default()
    };
    let request = |args: usize, len: usize| {
        let mut bytes = Vec::new();
        encode_request(&vec![vec![b'a'; len]; args], &mut bytes);
        parse_whole(&bytes, &limits).1
    };
    assert_eq!(request(3, 200), Ok(()));
    assert_eq!(request(4, 1), Err(ProtocolError::InvalidMultibulkLength));
    assert_eq!(request(12, 1), Err(ProtocolError::InvalidMultibulkLength));
    assert_eq!(request(1, 201), Err(ProtocolError::InvalidBulkLength));
    let inline = |len: usize| parse_whole(&[&vec![b'a'; len][..], b"\n"].concat(), &limits).1;
    assert_eq!(inline(12), Ok(()));
    assert_eq!(inline(13), Err(ProtocolError::TooBigInline));
}

#[test]
fn the_missing_part_of_an_argument_is_known() {
    let limits = Limits::default();
    let (mut parser, mut batch) = (RequestParser::new(), Batch::new());
    let mut buf = [PING, b"*2\r\n$3\r\nSET\r\n$100000\r\nabc"].concat();
    assert_eq!(parser.parse(&buf, &limits, &mut batch), Ok(()));
    assert_eq!(parser.bytes_wanted(), 100_000 - 3 + 2);
    buf.drain(..parser.consume());
    buf.extend_from_slice(b"defg");
    assert_eq!(parser.parse(&buf, &limits, &mut batch), Ok(()));
    assert_eq!(parser.bytes_wanted(), 100_000 - 7 + 2);
    buf.extend_from_slice(&vec![b'x'; 100_000 - 7 + 2]);
    assert_eq!(parser.parse(&buf, &limits, &mut batch), Ok(()));
    assert_eq!((batch.len(), parser.bytes_wanted()), (1, 0));
    assert_eq!(parser.consume(), buf.len());
}

#[test]
fn arguments_of_an_unfinished_request_are_counted_until_it_ends() {
    let (mut parser, mut batch) = (RequestParser::new(), Batch::new());
    let mut buf = b"*5001\r\n".to_vec();
    for args in [3000, 2000] {
        assert_eq!(parser.memory() > 0, args == 2000);
        buf.extend(b"$0\r\n\r\n".repeat(args));
        parser.parse(&buf, &Limits::default(), &mut batch).unwrap();
        assert!(batch.is_empty());
    }
    assert!(parser.memory() >= 5000 * size_of::<Span>());
    buf.extend(b"$1\r\nx\r\n");
    parser.parse(&buf, &Limits::default(), &mut batch).unwrap();
    assert_eq!((batch.len(), parser.memory()), (1, 0));
}

#[test]
fn a_caller_that_does_not_consume_gets_no_request_twice() {
    let limits = Limits::default();
    let (mut parser, mut batch) = (RequestParser::new(), Batch::new());
    let mut buf = [PING, b"*2\r\n$4\r\nECHO"].concat();
    assert_eq!(parser.parse(&buf, &limits, &mut batch), Ok(()));
    assert_eq!(batch.len(), 1);
    buf.extend_from_slice(b"\r\n$2\r\nhi\r\n");
    assert_eq!(parser.parse(&buf, &limits, &mut batch), Ok(()));
    let mut requests = Vec::new();
    collect(&batch, &buf, &mut requests);
    assert_eq!(requests, [words(&["ECHO", "hi"])]);
    assert_eq!(parser.consume(), buf.len());
}

#[test]
fn a_batch_reuses_its_memory() {
    let bytes = PING.repeat(1000);
    let limits = Limits::default();
    let (mut parser, mut batch) = (RequestParser::new(), Batch::new());
    assert_eq!(parser.parse(&bytes, &limits, &mut batch), Ok(()));
    let before = (batch.spans.as_ptr(), batch.ends.as_ptr());
    assert_eq!(parser.consume(), bytes.len());
    assert_eq!(parser.parse(&bytes, &limits, &mut batch), Ok(()));
    assert_eq!((batch.spans.as_ptr(), batch.ends.as_ptr()), before);
}

#[test]
fn a_recycled_list_keeps_its_allocation() {
    let mut args: Vec<&[u8]> = vec![b"a"; 100];
    args.reserve(100);
    let before = (args.as_ptr(), args.capacity());
    let args = crate::recycle(args);
    assert_eq!(
        (args.as_ptr(), args.capacity(), args.len()),
        (before.0, before.1, 0)
    );
}

/// The number of bytes that a parser looks at when `bytes` arrive in pieces of that size.
fn examined(bytes: &[u8], piece: usize) -> usize {
    EXAMINED.set(0);
    let (mut parser, mut batch) = (RequestParser::new(), Batch::new());
    let limits = Limits {
        max_inline: usize::MAX,
        ..Limits::default()
    };
    // The buffer grows in place, because draining it byte by byte would take quadratic time.
    let mut start = 0;
    for end in (0..bytes.len())
        .step_by(piece)
        .map(|at| (at + piece).min(bytes.len()))
    {
        assert_eq!(
            parser.parse(&bytes[start..end], &limits, &mut batch),
            Ok(())
        );
        start += parser.consume();
    }
    assert_eq!(start, bytes.len());
    EXAMINED.get()
}

#[test]
fn no_byte_is_looked_at_twice() {
    let mut many_args = Vec::new();
    encode_request(&vec!["0123456789"; 50_000], &mut many_args);
    // Only heads: payloads are never looked at, so they could hide a second look at a head.
    let mut empty_args = Vec::new();
    encode_request(&vec![""; 50_000], &mut empty_args);
    let mut one_long = Vec::new();
    encode_request(&[vec![b'x'; 1 << 20]], &mut one_long);
    let inline = [&vec![b'x'; 1 << 20][..], b"\r\n"].concat();
    let mut heads = PING.repeat(1000);
    heads.extend(b"*0\r\n\r\nPING\r\n*-12345\r\n".repeat(1000));
    for (name, bytes) in [
        ("many arguments", many_args),
        ("many empty arguments", empty_args),
        ("one long argument", one_long),
        ("inline", inline),
        ("many short requests", heads),
    ] {
        for piece in [1, 2, 3, 7, 1000, usize::MAX >> 1] {
            let examined = examined(&bytes, piece);
            assert!(
                examined <= bytes.len(),
                "{name} by {piece}: {examined} > {}",
                bytes.len()
            );
        }
    }
}
