//! Bytes that only an attacker sends.

use crate::keyspace::{Keyspace, Value};
use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{FilterParts, LayerParts};
use everbloom_commands::format::header;
use everbloom_commands::{COMMANDS, Run};
use everbloom_resp::Reply;
use proptest::prelude::*;

fn good() -> FilterParts {
    LayeredFilter::builder()
        .layout(Layout::Classic)
        .capacity(10)
        .build()
        .unwrap()
        .parts()
}

/// Loads the header as key `k`. When it is refused, the key must not exist.
fn load(header: &[u8]) -> String {
    let mut keys = Keyspace::with_limit(1 << 30);
    let reply = keys.call(&[b"BF.LOADCHUNK", b"k", b"1", header]);
    assert_eq!(reply.is_error(), keys.keys.is_empty());
    assert_eq!(reply.is_error(), keys.log.is_empty());
    crate::keyspace::wire(&reply, keys.context.protocol)
}

const BAD: &str = "-ERR received bad data";

/// What makes a good header bad, and how.
type Change<T> = (&'static str, fn(&mut T));

fn check_bad<T>(part: fn(&mut FilterParts) -> &mut T, changes: &[Change<T>]) {
    assert_eq!(load(&header::encode_parts(&good())), "+OK");
    for (what, change) in changes {
        let mut parts = good();
        change(part(&mut parts));
        assert_eq!(load(&header::encode_parts(&parts)), BAD, "{what}");
    }
}

#[test]
fn hostile_layers_are_bad_data() {
    let changes: &[Change<LayerParts>] = &[
        ("2^60 bytes", |l| (l.bytes, l.bits) = (1 << 60, 1 << 63)),
        ("bits wrap to 0", |l| (l.bytes, l.bits) = (1 << 61, 0)),
        ("bits wrap to 128", |l| {
            (l.bytes, l.bits) = ((1 << 61) + 16, 128)
        }),
        ("all ones", |l| (l.bytes, l.bits) = (u64::MAX, u64::MAX)),
        ("no bytes", |l| (l.bytes, l.bits) = (0, 0)),
        ("more bits than bytes", |l| l.bits = 256),
        ("fewer bits than bytes", |l| l.bits = 64),
        ("modulus over bits", |l| l.log2_bits = 8),
        ("modulus 2^63", |l| l.log2_bits = 63),
        ("modulus 2^64", |l| l.log2_bits = 64),
        ("modulus 2^255", |l| l.log2_bits = 255),
        ("no hashes", |l| l.hashes = 0),
        ("a million hashes", |l| l.hashes = 1_000_000),
        ("a million hashes that agree", |l| {
            (l.hashes, l.bits_per_entry) =
                (1_000_000, 999_999.5 / everbloom::sizing::LayerSize::LN2);
        }),
        ("2^31 hashes of NaN", |l| {
            (l.hashes, l.bits_per_entry) = (1 << 31, f64::NAN)
        }),
        ("infinite hashes", |l| {
            (l.hashes, l.bits_per_entry) = (u32::MAX, f64::INFINITY);
        }),
        ("no hashes of NaN", |l| {
            (l.hashes, l.bits_per_entry) = (0, f64::NAN)
        }),
        ("negative bits per item", |l| {
            (l.hashes, l.bits_per_entry) = (0, -0.5)
        }),
        ("NaN rate", |l| l.error_rate = f64::NAN),
        ("rate 0", |l| l.error_rate = 0.0),
        ("rate -0", |l| l.error_rate = -0.0),
        ("rate 1", |l| l.error_rate = 1.0),
        ("infinite rate", |l| l.error_rate = f64::INFINITY),
        ("item sum", |l| l.items = 1),
    ];
    check_bad(|parts| &mut parts.layers[0], changes);
}

#[test]
fn hostile_headers_are_bad_data() {
    let changes: &[Change<FilterParts>] = &[
        ("item sum", |f| f.items = u64::MAX),
        ("item sum wraps", |f| {
            f.layers.push(f.layers[0]);
            (f.layers[0].items, f.layers[1].items, f.items) = (u64::MAX, 2, 1);
        }),
        ("unknown option", |f| f.options = 16),
        ("all options", |f| f.options = u32::MAX),
        ("no layers", |f| f.layers.clear()),
        ("together over the limit", |f| {
            (f.layers[0].bytes, f.layers[0].bits) = (1 << 28, 1 << 31);
            f.layers = vec![f.layers[0]; 5];
        }),
        ("bytes sum wraps", |f| {
            (f.layers[0].bytes, f.layers[0].bits) = (1 << 60, 1 << 63);
            f.layers = vec![f.layers[0]; 16];
        }),
    ];
    check_bad(|parts| parts, changes);
}

#[test]
fn headers_of_the_wrong_length_are_bad_data() {
    let header = header::encode_parts(&good());
    for len in 0..header.len() {
        assert_eq!(load(&header[..len]), BAD, "{len}");
    }
    assert_eq!(load(&[&header[..], b"\0"].concat()), BAD);
    for layers in [0, 2, u32::MAX] {
        let mut header = header.clone();
        header[8..12].copy_from_slice(&layers.to_le_bytes());
        assert_eq!(load(&header), BAD, "{layers} layers");
    }
}

#[test]
fn a_loaded_filter_that_cannot_grow_fails_clean() {
    let mut parts = good();
    (parts.layers[0].capacity, parts.expansion) = (1 << 62, 3);
    (parts.layers[0].items, parts.items) = (1 << 62, 1 << 62);
    let mut keys = Keyspace::with_limit(1 << 20);
    keys.call(&[b"BF.LOADCHUNK", b"k", b"1", &header::encode_parts(&parts)]);
    let cannot = "-ERR problem inserting into filter";
    assert_eq!(keys.say("BF.MADD k a b"), format!("*2 {cannot} {cannot}"));
    assert_eq!(keys.say("BF.ADD k a"), cannot);
    assert_eq!(keys.filter("k").parts(), parts);

    // Numbers too large for RESP must not become negative.
    (parts.layers[0].capacity, parts.layers[0].items, parts.items) = (u64::MAX, 1 << 63, 1 << 63);
    keys.call(&[b"BF.LOADCHUNK", b"l", b"1", &header::encode_parts(&parts)]);
    assert_eq!(keys.say("BF.CARD l"), ":9223372036854775807");
    assert_eq!(keys.say("BF.INFO l CAPACITY"), "*1 :9223372036854775807");
}

#[test]
fn a_filter_that_has_counted_as_far_as_it_can_dumps_and_loads() {
    let mut parts = good();
    parts.layers.push(parts.layers[0]);
    (parts.layers[0].items, parts.items) = (u64::MAX, u64::MAX);
    let mut keys = Keyspace::with_limit(1 << 20);
    keys.call(&[b"BF.LOADCHUNK", b"k", b"1", &header::encode_parts(&parts)]);
    assert_eq!(keys.say("BF.ADD k a"), ":1");
    assert_eq!(keys.say("BF.EXISTS k a"), ":1");
    assert_eq!(load(&header::encode(keys.filter("k"))), "+OK");
}

#[test]
fn several_growths_in_one_command_keep_to_the_limit() {
    // When capacities are logarithms, a layer of 2^12 bits takes at most five items at this rate.
    // The layer after it has 2^20 bits.
    let mut parts = good();
    (parts.options, parts.expansion) = (6, 4);
    let layer = &mut parts.layers[0];
    (layer.capacity, layer.items, parts.items) = (3, 3, 3);
    layer.error_rate = 1e-156;
    let mut keys = Keyspace::with_limit((1 << 17) + 16);
    let reply = keys.call(&[b"BF.LOADCHUNK", b"k", b"1", &header::encode_parts(&parts)]);
    assert!(!reply.is_error(), "{reply:?}");
    keys.say("BF.MADD k a b c d e f g h i j k l m n o p q r s t u v w x y z");
    let bytes = keys.filter("k").stream_len();
    assert!(bytes <= keys.context.max_filter_bytes, "{bytes} bytes");
}

fn argument() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<Vec<u8>> = [
        "k",
        "f",
        "s",
        "0",
        "1",
        "-1",
        "9",
        "100",
        "0.01",
        "1e-323",
        "nan",
        "EXPANSION",
        "NONSCALING",
        "ITEMS",
        "CAPACITY",
        "ERROR",
        "NOCREATE",
        "i",
        "e",
        "n",
        "",
        "size",
        "9223372036854775807",
        "-9223372036854775808",
        "1073741824",
        "32768",
    ]
    .iter()
    .map(|word| word.as_bytes().to_vec())
    .collect();
    let near_header = (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| {
        let mut header = header::encode_parts(&good());
        let at = at.index(header.len());
        header[at] = byte;
        header
    });
    prop_oneof![
        6 => prop::sample::select(words),
        1 => near_header,
        2 => prop::collection::vec(any::<u8>(), 0..80),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// No bytes make a command panic, also when a host skips the arity check. A refused command
    /// changes nothing.
    #[test]
    fn no_arguments_make_a_command_panic(
        command in prop::sample::select((0..COMMANDS.len()).collect::<Vec<_>>()),
        args in prop::collection::vec(argument(), 0..7),
        name in prop::bool::weighted(0.95),
    ) {
        let mut keys = Keyspace::with_limit(1 << 16);
        keys.say("BF.RESERVE f 0.01 2");
        keys.say("BF.MADD f a b c d");
        keys.keys.insert(b"s".to_vec(), Value::Other);
        let before = keys.clone();

        let command = &COMMANDS[command];
        let args: Vec<&[u8]> = name
            .then_some(command.name.as_bytes())
            .into_iter()
            .chain(args.iter().map(Vec::as_slice))
            .collect();
        let replies = keys.run(command.handler, &mut Run::one(&args));

        if replies.iter().all(Reply::is_error) || !command.handler.is_write() {
            prop_assert_eq!(keys.dumps(), before.dumps());
            prop_assert_eq!(keys.log, before.log);
        }
    }

    /// Any bytes as a header are refused, or make a working filter that dumps the same header.
    #[test]
    fn near_headers_are_refused_or_work(
        changes in prop::collection::vec((0_usize..73, any::<u8>()), 0..4),
    ) {
        let mut bytes = header::encode_parts(&good());
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        let mut keys = Keyspace::with_limit(1 << 20);
        let reply = keys.call(&[b"BF.LOADCHUNK", b"k", b"1", &bytes]);
        if reply.is_error() {
            prop_assert!(keys.keys.is_empty());
        } else {
            prop_assert_eq!(&header::encode(keys.filter("k")), &bytes);
            keys.say("BF.MADD k a b c");
            keys.say("BF.INFO k");
            keys.say("BF.DEBUG k");
        }
    }
}
