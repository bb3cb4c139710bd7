//! Cuckoo filters with a chosen error rate, which RedisBloom does not have.

use crate::keyspace::{Keyspace, Value, wire};
use everbloom::hash::Key;
use everbloom::redisbloom::CuckooParts;
use everbloom::{CuckooBuilder, CuckooFilter};
use everbloom_commands::format::header::cuckoo::{decode, encode};
use everbloom_commands::{Filter, FilterKind, KeySource};
use everbloom_resp::{Protocol, Reply};
use proptest::prelude::*;

const NOW: u64 = 1_700_000_000_000;
const KEY: &[u8; 16] = b"sixteen bytes ok";

/// Keys of a client: a log has no clock.
fn client() -> Keyspace {
    let mut keys = Keyspace::default();
    keys.context.now_ms = NOW;
    keys.context.keys = KeySource(|| Key::from_bytes(*KEY));
    keys
}

fn cuckoo<'k>(keys: &'k Keyspace, key: &str) -> &'k CuckooFilter {
    match &keys.keys[key.as_bytes()] {
        Value::Filter(Filter::Cuckoo(filter)) => filter,
        _ => panic!("{key} is no cuckoo filter"),
    }
}

fn builder(capacity: u64, rate: f64) -> CuckooBuilder {
    CuckooFilter::builder().capacity(capacity).error_rate(rate)
}

#[test]
fn reserve_makes_what_the_library_makes() {
    let key = Key::from_bytes(*KEY);
    for (options, made) in [
        ("1000 ERROR 0.001 SEED 7", builder(1000, 0.001).seed(7)),
        ("1000 seed 7 error 1e-3", builder(1000, 0.001).seed(7)),
        ("1000 ERROR 0.001", builder(1000, 0.001).key(key)),
        ("1 ERROR 0.5", builder(1, 0.5).key(key)),
        ("1 ERROR 1e-9", builder(1, 1e-9).key(key)),
        (
            "9 EXPANSION 0 ERROR 0.01",
            builder(9, 0.01).key(key).expansion(0),
        ),
        (
            "9 ERROR 0.01 EXPANSION 3",
            builder(9, 0.01).key(key).expansion(4),
        ),
        (
            "9 ERROR 0.01 SEED 18446744073709551615",
            builder(9, 0.01).seed(u64::MAX),
        ),
    ] {
        let mut keys = client();
        // These settings are for RedisBloom's kind.
        keys.context.cuckoo.expansion = 8;
        keys.context.cuckoo.bucket_size = 100;
        assert_eq!(keys.say(&format!("CF.RESERVE k {options}")), "+OK");
        assert_eq!(*cuckoo(&keys, "k"), made.build().unwrap(), "{options}");
        assert_eq!(keys.log_text(), ["CF.LOADCHUNK k 1 <80 bytes>"]);
        keys.check_kept();
    }
}

/// Nothing that stands beside ERROR is ignored.
#[test]
fn what_reserve_does_not_understand_is_refused() {
    let options = "-ERROR goes together with SEED and EXPANSION only, each once";
    let range = "-ERROR: value must be in the range [1e-9, 0.5]";
    let capacity = "-ERR capacity must be in the range [1, 1073741824]";
    let mut keys = client();
    keys.say("CF.RESERVE c 8");
    let before = keys.clone();
    for (line, error) in [
        ("n 100 ERROR 0.01 BUCKETSIZE 4", options),
        ("n 100 MAXITERATIONS 20 ERROR 0.01", options),
        ("n 100 ERROR 0.01 CAPCITY 20", options),
        ("n 100 ERROR 0.01 ERROR 0.01", options),
        ("n 100 ERROR 0.01 SEED 1 SEED 1", options),
        ("n 100 ERROR 0.01 EXPANSION 1 EXPANSION 1", options),
        ("n 100 ERROR x", "-Couldn't parse ERROR"),
        ("n 100 ERROR nan", "-Couldn't parse ERROR"),
        ("n 100 ERROR 0", range),
        ("n 100 ERROR -1", range),
        ("n 100 ERROR 0.9e-9", range),
        ("n 100 ERROR 0.51", range),
        ("n 100 ERROR 1", range),
        ("c 100 ERROR 1", range),
        ("n 100 ERROR 0.01 SEED x", "-ERR bad seed"),
        (
            "n 100 ERROR 0.01 SEED 18446744073709551616",
            "-ERR seed must be in the range [0, 18446744073709551615]",
        ),
        ("n 100 ERROR 0.01 EXPANSION x", "-Couldn't parse EXPANSION"),
        (
            "n 100 ERROR 0.01 EXPANSION 32769",
            "-EXPANSION: value must be in the range [0, 32768]",
        ),
        ("n x ERROR 0.01", "-Bad capacity"),
        ("n 0 ERROR 0.01", capacity),
        ("n -1 ERROR 0.01", capacity),
        ("n 1073741825 ERROR 0.01", capacity),
        (
            "n 100 ERROR",
            "-ERR wrong number of arguments for 'cf.reserve' command",
        ),
        ("c 100 ERROR 0.01", "-ERR item exists"),
    ] {
        assert_eq!(keys.say(&format!("CF.RESERVE {line}")), error, "{line}");
        assert_eq!((&keys.keys, &keys.log), (&before.keys, &before.log));
    }
}

/// RedisBloom ignores ERROR and SEED. So does who reads its log.
#[test]
fn where_redisbloom_is_heard_error_is_ignored() {
    let plain = CuckooFilter::builder().slots(100).build().unwrap();
    let mut keys = Keyspace::default();
    assert_eq!(keys.say("CF.RESERVE k 100 ERROR 0.01 SEED 7"), "+OK");
    assert_eq!(*cuckoo(&keys, "k"), plain);
    let mut keys = client();
    assert_eq!(keys.say("CF.RESERVE k 100 SEED 7"), "+OK");
    assert_eq!(*cuckoo(&keys, "k"), plain);
    assert_eq!(keys.say("CF.RESERVE error 100"), "+OK");
    assert_eq!(*cuckoo(&keys, "error"), plain);
}

#[test]
fn where_redisbloom_must_follow_no_such_filter_is_made() {
    let mut keys = client();
    keys.context.classic_only = true;
    let header = encode(&builder(9, 0.01).seed(7).parts().unwrap());
    let reply = keys.call(&[b"CF.LOADCHUNK", b"k", b"1", &header]);
    let refused =
        "-ERR cuckoo filters with an error rate are refused while bf-redisbloom-compatible is on";
    assert_eq!(wire(&reply, Protocol::Resp2), refused);
    assert_eq!(keys.say("CF.RESERVE k 100 ERROR 0.01"), refused);
    assert!(keys.keys.is_empty() && keys.log.is_empty());
}

/// Each table has longer fingerprints than the one before.
#[test]
fn a_filter_at_its_widest_says_so() {
    let mut keys = client();
    keys.context.cuckoo.max_expansions = 100;
    keys.say("CF.RESERVE k 1 ERROR 1e-9 EXPANSION 1 SEED 7");
    let mut items = 0..10_000;
    let refused = items.find_map(|item| {
        let reply = keys.say(&format!("CF.ADD k {item}"));
        reply.starts_with('-').then_some(reply)
    });
    let text = "-ERR The filter has as many tables as its error rate allows";
    assert_eq!(refused.as_deref(), Some(text));
    assert_eq!(cuckoo(&keys, "k").tables(), 21);
    let stats = keys.say("CF.STATS k");
    assert!(stats.ends_with("+items-until-next-table $-1"), "{stats}");
}

#[test]
fn every_command_works_on_it() {
    let mut keys = client();
    keys.say("CF.RESERVE k 100 ERROR 0.001 SEED 7");
    for (line, answer) in [
        ("CF.ADD k a", ":1"),
        ("CF.ADD k a", ":1"),
        ("CF.ADDNX k a", ":0"),
        ("CF.ADDNX k b", ":1"),
        ("CF.INSERT k ITEMS c d", "*2 :1 :1"),
        ("CF.INSERTNX k NOCREATE ITEMS d e", "*2 :0 :1"),
        ("CF.EXISTS k a", ":1"),
        ("CF.EXISTS k f", ":0"),
        ("CF.MEXISTS k a f", "*2 :1 :0"),
        ("CF.COUNT k a", ":2"),
        ("CF.DEL k a", ":1"),
        ("CF.DEL k f", ":0"),
        ("CF.COUNT k a", ":1"),
        ("CF.COMPACT k", "+OK"),
        (
            "CF.DEBUG k",
            "$79 bktsize:4 buckets:32 items:5 deletes:0 filters:1 max_iterations:500 expansion:2",
        ),
        (
            "CF.INFO k",
            // 128 slots of 13 bits, and what RedisBloom adds.
            "*16 +Size :264 +Number of buckets :32 +Number of filters :1 +Number of items inserted \
             :5 +Number of items deleted :0 +Bucket size :4 +Expansion rate :2 +Max iterations :500",
        ),
    ] {
        assert_eq!(keys.say(line), answer, "{line}");
    }
    keys.check_kept();
    let stats = keys.say("CF.STATS k");
    assert!(stats.contains("+slots :128 "), "{stats}");
    // The rate that was asked for, and what is to be expected.
    let rates = " +error-rate $5 0.001 +expected-error-rate ";
    let (_, expected) = stats.split_once(rates).unwrap();
    let expected: f64 = expected.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(expected > 0.0 && expected < 0.0001, "{stats}");
    assert!(stats.ends_with("+items-until-next-table :116"), "{stats}");
}

/// A replica of an older version refuses the header, and so does an older program on this log. It
/// must not make a plain filter of the items.
#[test]
fn who_lacks_the_filter_makes_no_other() {
    let mut keys = client();
    for line in [
        "CF.RESERVE k 100 ERROR 0.001 SEED 7",
        "CF.ADD k a",
        "CF.ADDNX k b",
        "CF.ADDNX k b",
        "CF.INSERT k ITEMS c d",
        "CF.INSERTNX k ITEMS d e",
        "CF.DEL k a",
        "CF.ADD plain a",
        "CF.ADD plain a",
    ] {
        assert!(!keys.say(line).starts_with('-'), "{line}");
    }
    let log = [
        "CF.LOADCHUNK k 1 <80 bytes>",
        "CF.INSERT k NOCREATE ITEMS a",
        "CF.INSERT k NOCREATE ITEMS b",
        "CF.INSERT k NOCREATE ITEMS c d",
        "CF.INSERT k NOCREATE ITEMS e",
        "CF.DEL k a",
        "CF.LOADCHUNK plain 1 <38 bytes>",
        "CF.INSERT plain ITEMS a",
        "CF.ADD plain a",
    ];
    assert_eq!(keys.log_text(), log);
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.keys, keys.keys);
}

/// Without items it is shown, too: CF.INFO does not have the key.
#[test]
fn an_empty_filter_has_a_header() {
    let mut keys = client();
    keys.say("CF.RESERVE k 100 ERROR 0.001");
    let header = encode(&cuckoo(&keys, "k").parts());
    let dumped = keys.call(&[b"CF.SCANDUMP", b"k", b"0"]);
    let expected = Reply::Array(vec![Reply::Integer(1), Reply::Bulk(header)]);
    assert_eq!(dumped, expected);
    let bytes = cuckoo(&keys, "k").stream_len();
    let last = keys.call(&[b"CF.SCANDUMP", b"k", (bytes + 1).to_string().as_bytes()]);
    assert_eq!(last, Reply::Array(vec![Reply::Integer(0), Reply::Null]));
}

/// `CF.RESERVE k 20 ERROR 0.01 SEED 1`, as docs/formats.md has it.
#[test]
fn a_header_never_changes() {
    let header = [
        "65 76 65 72 62 6c 6f 6f 6d 0d 0a 1a  01 00  03 00",
        "00 00 00 00 00 00 00 00  0c 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00",
        "01 00 00 00 00 00 00 00  04 00  f4 01  02 00",
        "c1 5c 02 89 ec 2d 0a 91 67 ec 8e 65 a1 8d eb be",
        "7b 14 ae 47 e1 7a 84 3f  0a  02",
    ];
    let bytes = header.iter().flat_map(|line| line.split_whitespace());
    let header: Vec<u8> = bytes
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    let parts = builder(20, 0.01).seed(1).parts().unwrap();
    assert_eq!(encode(&parts), header);
    assert_eq!(decode(&header), Some(parts));
}

#[test]
fn only_good_headers_are_taken() {
    let good = builder(20, 0.01).seed(1).parts().unwrap();
    let mut keys = client();
    keys.context.max_filter_bytes = 1 << 20;
    let mut load = |data: &[u8]| {
        let reply = keys.call(&[b"CF.LOADCHUNK", b"k", b"1", data]);
        assert_eq!(keys.keys.is_empty(), reply.is_error());
        assert_eq!(keys.log.is_empty(), reply.is_error());
        (keys.keys, keys.log) = Default::default();
        reply
    };
    let bytes = encode(&good);
    assert_eq!(load(&bytes), Reply::OK);
    for end in (0..bytes.len()).filter(|end| *end != 38) {
        let reply = load(&bytes[..end]);
        assert_eq!(reply, Reply::error("Invalid header"), "{end}");
    }
    let refused = Reply::error("Couldn't create filter!");
    // Another magic, version or layout.
    for at in 0..16 {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        assert_eq!(load(&bytes), refused, "{at}");
    }
    // A number that is wider than its place.
    for at in [42, 47, 49, 53] {
        let mut bytes = bytes.clone();
        bytes[at] = 0xff;
        assert_eq!(load(&bytes), refused, "{at}");
    }
    let forged: [fn(&mut CuckooParts); 16] = [
        |parts| parts.buckets = 0,
        |parts| parts.buckets = 11,
        |parts| parts.buckets = 1 << 56,
        |parts| parts.buckets = 1 << 20,
        |parts| parts.tables = 0,
        |parts| parts.tables = 60,
        |parts| (parts.tables, parts.expansion) = (2, 0),
        |parts| parts.bucket_size = 3,
        |parts| parts.max_kicks = 0,
        |parts| parts.expansion = 3,
        |parts| parts.expansion = 32769,
        |parts| parts.keyed.as_mut().unwrap().error_rate = f64::NAN,
        |parts| parts.keyed.as_mut().unwrap().error_rate = 0.001,
        |parts| parts.keyed.as_mut().unwrap().width = 9,
        |parts| parts.keyed.as_mut().unwrap().width = 57,
        |parts| parts.keyed.as_mut().unwrap().step = 255,
    ];
    for (number, forge) in forged.into_iter().enumerate() {
        let mut parts = good;
        forge(&mut parts);
        assert_eq!(load(&encode(&parts)), refused, "{number}: {parts:?}");
    }
}

/// A header of one kind is not one of another, whatever its bytes are.
#[test]
fn headers_of_other_filters_are_not_confused_with_it() {
    let ours = encode(&builder(20, 0.01).seed(1).parts().unwrap());
    let mut keys = client();
    let reply = keys.call(&[b"BF.LOADCHUNK", b"k", b"1", &ours]);
    assert_eq!(reply, Reply::error("ERR received bad data"));
    // The first 38 bytes are a header of RedisBloom's with very many items.
    let mut theirs = ours[..38].to_vec();
    theirs[8..].copy_from_slice(&encode(&CuckooFilter::builder().parts().unwrap())[8..]);
    let reply = keys.call(&[b"CF.LOADCHUNK", b"k", b"1", &theirs]);
    assert_eq!(reply, Reply::OK);
    let Value::Filter(filter) = &keys.keys[&b"k"[..]] else {
        panic!("no filter");
    };
    assert_eq!(filter.kind(), FilterKind::Cuckoo);
    assert_eq!(filter.items(), u64::from_le_bytes(*b"everbloo"));
}

#[test]
fn pieces_of_any_length_make_the_filter() {
    let mut keys = client();
    keys.say("CF.RESERVE k 20 ERROR 0.0001 SEED 7 EXPANSION 1");
    for item in 0..100 {
        keys.say(&format!("CF.ADD k {item}"));
    }
    let filter = cuckoo(&keys, "k").clone();
    assert!(filter.tables() > 2);
    for most in [1, 2, 3, 7, 8, 9, 64, usize::MAX] {
        let mut other = client();
        let header = encode(&filter.parts());
        assert_eq!(
            other.call(&[b"CF.LOADCHUNK", b"k", b"1", &header]),
            Reply::OK
        );
        let mut at = 0;
        while let Some(chunk) = filter.stream_chunk(at, most) {
            at += chunk.len() as u64;
            let position = (at + 1).to_string();
            let load: [&[u8]; 4] = [b"CF.LOADCHUNK", b"k", position.as_bytes(), &chunk];
            assert_eq!(other.call(&load), Reply::OK);
        }
        assert_eq!(at, filter.stream_len());
        assert_eq!(*cuckoo(&other, "k"), filter, "{most}");
        let end = (at + 2).to_string();
        let beyond = other.call(&[b"CF.LOADCHUNK", b"k", end.as_bytes(), b"x"]);
        assert_eq!(beyond, Reply::error("Couldn't load chunk!"));
    }
}

/// The bytes of tables count, not their slots.
#[test]
fn limits_hold() {
    let mut keys = client();
    let filter = builder(1000, 0.001).seed(7).build().unwrap();
    keys.context.max_filter_bytes = filter.table_bytes() - 1;
    let line = "CF.RESERVE k 1000 ERROR 0.001 SEED 7";
    let why = "-ERR Insufficient memory to create filter";
    assert_eq!(keys.say(line), why);
    keys.context.max_filter_bytes += 1;
    assert_eq!(keys.say(line), "+OK");
    let mut added = 0;
    let refused = loop {
        match keys.say(&format!("CF.ADD k {added}")) {
            answer if answer == ":1" => added += 1,
            answer => break answer,
        }
    };
    assert_eq!(refused, "-ERR Insufficient memory");
    assert!(added >= 1000 && cuckoo(&keys, "k").len() == added);
    keys.context.max_filter_bytes = u64::MAX;
    keys.context.free_bytes = 3 * filter.table_bytes();
    assert_eq!(keys.say("CF.ADD k more"), ":1");
    assert_eq!(cuckoo(&keys, "k").tables(), 2);
    keys.say("CF.RESERVE fixed 10 ERROR 0.01 EXPANSION 0");
    let full = (0..100).map(|item| keys.say(&format!("CF.ADD fixed {item}")));
    assert_eq!(full.last().unwrap(), "-Filter is full");
}

fn command() -> impl Strategy<Value = String> {
    let item = 0..60;
    let items = prop::collection::vec(0..60, 1..30);
    prop_oneof![
        4 => item.clone().prop_map(|item| format!("CF.ADD c {item}")),
        2 => item.clone().prop_map(|item| format!("CF.ADDNX c {item}")),
        4 => item.prop_map(|item| format!("CF.DEL c {item}")),
        4 => (any::<bool>(), items).prop_map(|(nx, items)| {
            let items: Vec<_> = items.iter().map(ToString::to_string).collect();
            let name = if nx { "CF.INSERTNX" } else { "CF.INSERT" };
            format!("{name} c ITEMS {}", items.join(" "))
        }),
        1 => Just("CF.COMPACT c".to_owned()),
    ]
}

proptest! {
    /// A log makes the same filter, which is kept in each format, and has what is in it.
    #[test]
    fn the_log_makes_the_same_filter(
        commands in prop::collection::vec(command(), 0..60),
        expansion in 0_u16..4, rate in prop::sample::select(vec![0.3, 0.01, 1e-6]),
    ) {
        let mut keys = client();
        let reserve = format!("CF.RESERVE c 5 ERROR {rate} SEED 7 EXPANSION {expansion}");
        prop_assert_eq!(keys.say(&reserve), "+OK");
        for command in &commands {
            keys.say(command);
        }
        keys.check_kept();
        let mut replica = Keyspace::default();
        replica.context.cuckoo.max_expansions = u32::MAX;
        replica.replay(&keys.log);
        prop_assert_eq!(&replica.keys, &keys.keys);
    }
}
