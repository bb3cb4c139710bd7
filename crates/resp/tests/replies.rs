//! Replies: how both protocols write them, and what a client reads.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use everbloom_resp::encode::{
    encode_array_len, encode_boolean, encode_bulk, encode_double, encode_error, encode_integer,
    encode_map_len, encode_null, encode_simple, format_double,
};
use everbloom_resp::{
    DecodeError, DecodeLimits, Decoder, Protocol, Reply, decode, encode, encode_request,
};
use proptest::prelude::*;

fn encoded(reply: &Reply, protocol: Protocol) -> Vec<u8> {
    let mut out = Vec::new();
    encode(reply, protocol, &mut out);
    out
}

fn decoded(bytes: &[u8]) -> Result<Option<(Reply, usize)>, DecodeError> {
    decode(bytes, &DecodeLimits::default())
}

/// A reply, and its bytes in RESP2 and in RESP3.
type Row = (Reply, &'static [u8], &'static [u8]);

fn check_bytes(table: &[Row]) {
    for (reply, resp2, resp3) in table {
        let shown = |protocol| encoded(reply, protocol).escape_ascii().to_string();
        let (resp2, resp3) = (resp2.escape_ascii(), resp3.escape_ascii());
        assert_eq!(shown(Protocol::Resp2), resp2.to_string(), "{reply:?}");
        assert_eq!(shown(Protocol::Resp3), resp3.to_string(), "{reply:?}");
    }
}

#[test]
fn every_kind_of_single_reply_in_both_protocols() {
    check_bytes(&[
        (Reply::OK, b"+OK\r\n", b"+OK\r\n"),
        (Reply::simple("a\r\nb"), b"+a  b\r\n", b"+a  b\r\n"),
        (Reply::error("ERR no"), b"-ERR no\r\n", b"-ERR no\r\n"),
        (Reply::error("ERR a\nb"), b"-ERR a b\r\n", b"-ERR a b\r\n"),
        (Reply::Integer(0), b":0\r\n", b":0\r\n"),
        (Reply::Integer(1), b":1\r\n", b":1\r\n"),
        (
            Reply::Integer(i64::MIN),
            b":-9223372036854775808\r\n",
            b":-9223372036854775808\r\n",
        ),
        (
            Reply::bulk("a\r\nb"),
            b"$4\r\na\r\nb\r\n",
            b"$4\r\na\r\nb\r\n",
        ),
        (Reply::bulk(""), b"$0\r\n\r\n", b"$0\r\n\r\n"),
        (
            Reply::verbatim("some"),
            b"$4\r\nsome\r\n",
            b"=8\r\ntxt:some\r\n",
        ),
        (Reply::Null, b"$-1\r\n", b"_\r\n"),
        (Reply::NullArray, b"*-1\r\n", b"_\r\n"),
        (true.into(), b":1\r\n", b"#t\r\n"),
        (false.into(), b":0\r\n", b"#f\r\n"),
        (Reply::Double(1.5), b"$3\r\n1.5\r\n", b",1.5\r\n"),
        (Reply::Double(f64::INFINITY), b"$3\r\ninf\r\n", b",inf\r\n"),
        (
            Reply::Double(f64::NEG_INFINITY),
            b"$4\r\n-inf\r\n",
            b",-inf\r\n",
        ),
        (Reply::Double(f64::NAN), b"$3\r\nnan\r\n", b",nan\r\n"),
        (
            Reply::BigNumber("-123".to_owned()),
            b"$4\r\n-123\r\n",
            b"(-123\r\n",
        ),
    ]);
}

#[test]
fn every_kind_of_collection_in_both_protocols() {
    check_bytes(&[
        (Reply::Array(vec![]), b"*0\r\n", b"*0\r\n"),
        (
            Reply::Array(vec![1.into(), Reply::Null]),
            b"*2\r\n:1\r\n$-1\r\n",
            b"*2\r\n:1\r\n_\r\n",
        ),
        (Reply::Set(vec![7.into()]), b"*1\r\n:7\r\n", b"~1\r\n:7\r\n"),
        (
            Reply::Push(vec![7.into()]),
            b"*1\r\n:7\r\n",
            b">1\r\n:7\r\n",
        ),
        (
            Reply::Map(vec![
                (Reply::simple("a"), 1.into()),
                (Reply::simple("b"), true.into()),
            ]),
            b"*4\r\n+a\r\n:1\r\n+b\r\n:1\r\n",
            b"%2\r\n+a\r\n:1\r\n+b\r\n#t\r\n",
        ),
    ]);
}

#[test]
fn the_pieces_write_what_the_whole_writes() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let mut pieces = Vec::new();
        encode_array_len(7, &mut pieces);
        encode_simple("OK", &mut pieces);
        encode_error("ERR a\rb", &mut pieces);
        encode_integer(42, &mut pieces);
        encode_boolean(true, protocol, &mut pieces);
        encode_double(0.25, protocol, &mut pieces);
        encode_null(protocol, &mut pieces);
        encode_map_len(1, protocol, &mut pieces);
        encode_bulk(b"key", &mut pieces);
        encode_bulk(b"value", &mut pieces);
        let whole = Reply::Array(vec![
            Reply::OK,
            Reply::error("ERR a b"),
            42.into(),
            true.into(),
            Reply::Double(0.25),
            Reply::Null,
            Reply::Map(vec![(Reply::bulk("key"), Reply::bulk("value"))]),
        ]);
        assert_eq!(pieces, encoded(&whole, protocol));
    }
}

#[test]
fn doubles_are_short_and_laid_out_as_redis_does() {
    for (value, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (0.01, "0.01"),
        (0.001, "0.001"),
        (0.0001, "0.0001"),
        (0.000_001, "0.000001"),
        (0.000_000_1, "1e-7"),
        (1.0 / 3.0, "0.3333333333333333"),
        (100.0, "100"),
        (10_000_000.0, "10000000"),
        (123_456_789.0, "123456789"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (f64::MAX, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
        (-f64::NAN, "nan"),
    ] {
        assert_eq!(format_double(value), text);
    }
}

#[test]
fn what_only_a_server_of_another_make_sends() {
    for (bytes, reply) in [
        (&b"!8\r\nERR a\r\nb\r\n"[..], Reply::error("ERR a\r\nb")),
        (b"=8\r\nmkd:some\r\n", Reply::verbatim("some")),
        (b"|1\r\n+ttl\r\n:3\r\n:7\r\n", Reply::Integer(7)),
        (b"|0\r\n:7\r\n", Reply::Integer(7)),
        (
            b"*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:1\r\n|1\r\n+b\r\n#t\r\n:2\r\n",
            Reply::Array(vec![1.into(), 2.into()]),
        ),
        (
            b"|1\r\n+a\r\n|1\r\n+b\r\n+c\r\n+d\r\n+e\r\n",
            Reply::simple("e"),
        ),
        (b",1e3\r\n", Reply::Double(1000.0)),
        (b"(+12\r\n", Reply::BigNumber("+12".to_owned())),
        (b"+caf\xe9\r\n", Reply::simple("caf\u{fffd}")),
    ] {
        assert_eq!(
            decoded(bytes),
            Ok(Some((reply, bytes.len()))),
            "{}",
            bytes.escape_ascii()
        );
    }
    assert!(matches!(decoded(b",-nan\r\n"), Ok(Some((Reply::Double(d), 7))) if d.is_nan()));
}

#[test]
fn what_is_no_reply_is_refused() {
    use DecodeError::*;
    for (bytes, error) in [
        (&b"hello\r\n"[..], UnknownType(b'h')),
        (b"\r\n", UnknownType(b'\r')),
        (b":\r\n", InvalidValue),
        (b":01\r\n", InvalidValue),
        (b":9223372036854775808\r\n", InvalidValue),
        (b"_x\r\n", InvalidValue),
        (b"#x\r\n", InvalidValue),
        (b",x\r\n", InvalidValue),
        (b"(\r\n", InvalidValue),
        (b"(1x\r\n", InvalidValue),
        (b"=3\r\ntxt\r\n", InvalidValue),
        (b"$-2\r\n", InvalidLength),
        (b"$x\r\n", InvalidLength),
        (b"*-2\r\n", InvalidLength),
        (b"%-1\r\n", InvalidLength),
        (b"=-1\r\n", InvalidLength),
        (b"$1\r\nab\r\n", MissingLineEnd),
        (b"+OK\rx", MissingLineEnd),
        (b"$536870913\r\n", TooLong),
        (b"*2147483648\r\n", TooLong),
        (b"%1073741824\r\n", TooLong),
        (b"$?\r\n", Streamed),
        (b"*?\r\n", Streamed),
        (b"%?\r\n", Streamed),
        (b";4\r\n", Streamed),
        (b".\r\n", Streamed),
        (b"*1\r\n.\r\n", Streamed),
    ] {
        assert_eq!(decoded(bytes), Err(error), "{}", bytes.escape_ascii());
    }
    assert_eq!(decoded(&[b'+'; 65_536]), Ok(None));
    assert_eq!(decoded(&[b'+'; 65_537]), Err(TooLong));
}

#[test]
fn depth_is_limited_and_costs_no_call_stack() {
    let nested = |depth: usize| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
    let (mut reply, _) = decoded(&nested(128)).unwrap().unwrap();
    for _ in 0..128 {
        let Reply::Array(mut items) = reply else {
            panic!("an array in each array")
        };
        reply = items.remove(0);
    }
    assert_eq!(reply, Reply::Integer(1));
    assert_eq!(decoded(&nested(129)), Err(DecodeError::TooDeep));
    assert_eq!(
        decoded(&b"|1\r\n".repeat(1_000_000)),
        Err(DecodeError::TooDeep)
    );
    // A large announced length must not reserve memory: this would be 128 times 2^31 replies.
    assert_eq!(decoded(&b"*2147483647\r\n".repeat(128)), Ok(None));
}

#[test]
fn an_error_of_the_decoder_stays() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.decode(b"?"), Ok(None));
    assert_eq!(
        decoder.decode(b"?\r\n"),
        Err(DecodeError::UnknownType(b'?'))
    );
    assert_eq!(
        decoder.decode(b":1\r\n"),
        Err(DecodeError::UnknownType(b'?'))
    );
}

#[test]
fn a_long_reply_in_small_pieces_takes_linear_time() {
    let mut bytes = Vec::new();
    encode(
        &Reply::Array(vec![Reply::bulk("0123456789"); 200_000]),
        Protocol::Resp2,
        &mut bytes,
    );
    let mut decoder = Decoder::default();
    // Starting from the beginning each time, these 50 000 calls would look at 87 GB.
    for end in (64..bytes.len()).step_by(64) {
        assert_eq!(decoder.decode(&bytes[..end]), Ok(None));
    }
    let (reply, len) = decoder.decode(&bytes).unwrap().unwrap();
    assert_eq!(len, bytes.len());
    assert!(matches!(reply, Reply::Array(items) if items.len() == 200_000));
}

/// The reply that a client reads when RESP2 has carried this one.
fn through_resp2(reply: &Reply) -> Reply {
    let all = |items: &[Reply]| Reply::Array(items.iter().map(through_resp2).collect());
    match reply {
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => all(items),
        Reply::Map(pairs) => Reply::Array(
            pairs
                .iter()
                .flat_map(|(key, value)| [key, value])
                .map(through_resp2)
                .collect(),
        ),
        Reply::Verbatim(text) => Reply::bulk(text.as_bytes()),
        Reply::Boolean(value) => Reply::Integer((*value).into()),
        Reply::Double(value) => Reply::bulk(format_double(*value)),
        Reply::BigNumber(digits) => Reply::bulk(digits.as_bytes()),
        plain => plain.clone(),
    }
}

/// The reply that a client reads when RESP3 has carried this one. RESP3 has only one null.
fn through_resp3(reply: &Reply) -> Reply {
    let all = |items: &[Reply]| items.iter().map(through_resp3).collect();
    match reply {
        Reply::NullArray => Reply::Null,
        Reply::Array(items) => Reply::Array(all(items)),
        Reply::Set(items) => Reply::Set(all(items)),
        Reply::Push(items) => Reply::Push(all(items)),
        Reply::Map(pairs) => Reply::Map(
            pairs
                .iter()
                .map(|(key, value)| (through_resp3(key), through_resp3(value)))
                .collect(),
        ),
        plain => plain.clone(),
    }
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let leaf = prop_oneof![
        "[^\r\n]{0,20}".prop_map(Reply::simple),
        "[^\r\n]{0,20}".prop_map(Reply::error),
        any::<i64>().prop_map(Reply::Integer),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Reply::Bulk),
        any::<String>().prop_map(Reply::verbatim),
        Just(Reply::Null),
        Just(Reply::NullArray),
        any::<bool>().prop_map(Reply::Boolean),
        // NaN is not equal to itself. It has its own row in the table above.
        any::<f64>()
            .prop_filter("equal to itself", |d| !d.is_nan())
            .prop_map(Reply::Double),
        "-?[0-9]{1,40}".prop_map(Reply::BigNumber),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        let items = || proptest::collection::vec(inner.clone(), 0..8);
        prop_oneof![
            items().prop_map(Reply::Array),
            items().prop_map(Reply::Set),
            items().prop_map(Reply::Push),
            proptest::collection::vec((inner.clone(), inner.clone()), 0..4).prop_map(Reply::Map),
        ]
    })
}

/// All replies of a stream that arrives in pieces, and how it ended: the length read, or the error.
fn decode_pieces(bytes: &[u8], sizes: &[usize]) -> (Vec<Reply>, Result<usize, DecodeError>) {
    let mut decoder = Decoder::new(DecodeLimits {
        max_line: 200,
        ..DecodeLimits::default()
    });
    let (mut replies, mut start, mut end) = (Vec::new(), 0, 0);
    let mut sizes = sizes.iter().cycle();
    loop {
        match decoder.decode(&bytes[start..end]) {
            Ok(Some((reply, len))) => {
                assert!(len > 0, "a reply takes bytes");
                replies.push(reply);
                start += len;
            }
            Ok(None) if end == bytes.len() => return (replies, Ok(start)),
            Ok(None) => end = bytes.len().min(end + sizes.next().unwrap()),
            Err(error) => return (replies, Err(error)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn doubles_read_back(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        prop_assert_eq!(format_double(value).parse::<f64>().unwrap().to_bits(), bits);
        prop_assert!(format_double(value).len() <= 25);
    }

    #[test]
    fn replies_survive_both_protocols(reply in any_reply()) {
        let resp2 = encoded(&reply, Protocol::Resp2);
        prop_assert_eq!(decoded(&resp2), Ok(Some((through_resp2(&reply), resp2.len()))));
        let resp3 = encoded(&reply, Protocol::Resp3);
        prop_assert_eq!(decoded(&resp3), Ok(Some((through_resp3(&reply), resp3.len()))));
    }

    #[test]
    fn a_reply_is_complete_at_its_last_byte_only(reply in any_reply()) {
        let bytes = encoded(&reply, Protocol::Resp3);
        for end in 0..bytes.len() {
            prop_assert_eq!(decoded(&bytes[..end]), Ok(None));
        }
    }

    #[test]
    fn pieces_of_any_size_give_what_the_whole_gives(
        replies in proptest::collection::vec(any_reply(), 0..4),
        garbage in proptest::collection::vec(any::<u8>(), 0..20),
        sizes in proptest::collection::vec(1usize..30, 1..10),
    ) {
        let mut bytes = Vec::new();
        for reply in &replies {
            encode(reply, Protocol::Resp3, &mut bytes);
        }
        bytes.extend(garbage);
        let whole = decode_pieces(&bytes, &[bytes.len().max(1)]);
        let expected: Vec<Reply> = replies.iter().map(through_resp3).collect();
        prop_assert!(whole.0.starts_with(&expected));
        prop_assert_eq!(decode_pieces(&bytes, &sizes), whole);
    }

    #[test]
    fn any_bytes_make_progress_and_no_panic(
        bytes in proptest::collection::vec(
            prop_oneof![
                4 => prop::sample::select(&b"*$+-:_#,(=!%~>|;.?\r\n0123"[..]),
                1 => any::<u8>(),
            ],
            0..200,
        ),
    ) {
        let _ = decode_pieces(&bytes, &[bytes.len().max(1)]);
    }

    #[test]
    fn a_request_is_an_array_of_bulk_strings(
        args in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..9),
    ) {
        let mut bytes = Vec::new();
        encode_request(&args, &mut bytes);
        let array = Reply::Array(args.into_iter().map(Reply::Bulk).collect());
        prop_assert_eq!(decoded(&bytes), Ok(Some((array, bytes.len()))));
    }
}
