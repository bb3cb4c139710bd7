//! BF.LOAD, and the options of BF.INSERT and fields of BF.INFO that valkey-bloom has.

use crate::keyspace::{Keyspace, Value};
use everbloom::redisbloom::ValkeyBloom;
use everbloom_resp::{Protocol, Reply};

const SEED: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// BF.INSERT of these words, with SEED.
fn insert(keys: &mut Keyspace, key: &str, before: &str, after: &str) -> Reply {
    let mut words: Vec<&[u8]> = vec![b"BF.INSERT", key.as_bytes()];
    words.extend(before.split_whitespace().map(str::as_bytes));
    words.extend([b"SEED".as_slice(), SEED]);
    words.extend(after.split_whitespace().map(str::as_bytes));
    keys.call(&words)
}

/// What a primary with valkey-bloom sends makes the filters that it has.
#[test]
fn a_replica_makes_what_the_primary_made() {
    let mut keys = Keyspace::default();
    let created = insert(
        &mut keys,
        "f",
        "CAPACITY 100 ERROR 0.03 TIGHTENING 0.85",
        "EXPANSION 2 ITEMS a b",
    );
    assert_eq!(created.into_elements().unwrap().len(), 2);
    // BF.RESERVE arrives as a BF.INSERT without items.
    let reserved = insert(
        &mut keys,
        "empty",
        "CAPACITY 50 ERROR 0.01 TIGHTENING 0.5",
        "NONSCALING",
    );
    assert_eq!(reserved, Reply::Array(Vec::new()));
    let empty = keys.filter("empty");
    assert!(empty.is_empty() && empty.is_fixed());
    assert_eq!(empty.valkey().unwrap().seed, *SEED);
    for item in 0..1000 {
        keys.say(&format!("BF.ADD f {item}"));
    }
    let filter = keys.filter("f");
    assert_eq!(filter.layers().len(), 4);
    let expected = ValkeyBloom {
        seed: *SEED,
        tightening: 0.85,
    };
    assert_eq!(filter.valkey(), Some(&expected));
    assert_eq!(keys.say("BF.MEXISTS f a b 0 999 none"), "*5 :1 :1 :1 :1 :0");
    // Our own log makes it again.
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
    // A dump has the seed and the ratio.
    let mut copy = Keyspace::default();
    for (iterator, piece) in crate::keyspace::pieces(keys.filter("f")) {
        let iterator = iterator.to_string();
        let loaded = copy.call(&[b"BF.LOADCHUNK", b"f", iterator.as_bytes(), &piece]);
        assert_eq!(loaded, Reply::OK);
    }
    assert_eq!(copy.filter("f"), keys.filter("f"));
}

/// valkey-bloom allows larger numbers than RedisBloom, and its primary sends them.
#[test]
fn a_primary_may_send_numbers_that_redisbloom_refuses() {
    let mut keys = Keyspace::default();
    let (large, wide) = ("CAPACITY 2147483648 ERROR 0.999", "EXPANSION 100000");
    insert(
        &mut keys,
        "f",
        &format!("{large} TIGHTENING 0.5"),
        &format!("{wide} ITEMS a b"),
    );
    let filter = keys.filter("f");
    assert_eq!((filter.capacity(), filter.expansion()), (1 << 31, 100_000));
    assert_eq!(keys.say("BF.MEXISTS f a b"), "*2 :1 :1");
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
    // Whichever error comes first is the one that RedisBloom gives.
    for (options, error) in [(large, "-Bad capacity"), (wide, "-Bad expansion")] {
        for rest in ["ITEMS a", "WORD ITEMS a", "SEED x ITEMS a", ""] {
            let reply = keys.say(&format!("BF.INSERT g {options} {rest}"));
            assert_eq!(reply, error, "{options} {rest}");
        }
    }
    for options in ["CAPACITY 0", "CAPACITY 9223372036854775808", "CAPACITY x"] {
        let reply = keys.say(&format!("BF.INSERT g {options} TIGHTENING 0.5 ITEMS a"));
        assert_eq!(reply, "-Bad capacity", "{options}");
    }
    let reply = keys.say("BF.INSERT g EXPANSION 4294967296 TIGHTENING 0.5 ITEMS a");
    assert_eq!(reply, "-Bad expansion");
    assert_eq!(keys.keys.len(), 1);
}

#[test]
fn the_options_are_checked() {
    let mut keys = Keyspace::default();
    let mut refused = |words: &str, error: &str| {
        let reply = keys.say(&format!("BF.INSERT f {words}"));
        assert_eq!(reply, error, "{words}");
        assert!(keys.keys.is_empty());
    };
    let bad = "-ERR bad tightening ratio";
    refused("TIGHTENING 0 ITEMS a", bad);
    refused("TIGHTENING 1 ITEMS a", bad);
    refused("TIGHTENING x ITEMS a", bad);
    refused(
        "SEED 12345678901234567890123456789012x ITEMS a",
        "-Bad seed",
    );
    let degrades = "-ERR provided VALIDATESCALETO causes false positive to degrade to 0";
    refused(
        "TIGHTENING 0.0001 EXPANSION 1 CAPACITY 1 VALIDATESCALETO 1000",
        degrades,
    );
    let together = "-ERR cannot use NONSCALING and VALIDATESCALETO options together";
    refused("NONSCALING VALIDATESCALETO 1000", together);
    refused("EXPANSION 0 VALIDATESCALETO 1000", together);
    // So many layers are not counted one by one.
    refused(
        "TIGHTENING 0.9999999 EXPANSION 1 CAPACITY 1 VALIDATESCALETO 1073741824",
        degrades,
    );
    let classic = "-ERR TIGHTENING, VALIDATESCALETO and a seed of 32 bytes need LAYOUT CLASSIC";
    refused("TIGHTENING 0.5 LAYOUT BLOCKED ITEMS a", classic);
    let seed = "-ERR a seed needs LAYOUT BLOCKED";
    refused("TIGHTENING 0.5 SEED 7 ITEMS a", seed);
    let window = "-ERR a window needs LAYOUT BLOCKED";
    refused("TIGHTENING 0.5 WINDOW ITEMS ITEMS a", window);
    keys.context.max_filter_bytes = 1000;
    assert_eq!(
        keys.say("BF.INSERT f VALIDATESCALETO 1000"),
        "-ERR provided VALIDATESCALETO causes bloom object to exceed memory limit"
    );
    keys.context.max_filter_bytes = u64::MAX;
    assert_eq!(keys.say("BF.INSERT f VALIDATESCALETO 1000"), "*0");
    // Without a seed, it is the fixed one.
    let seed = keys.filter("f").valkey().unwrap().seed;
    assert_eq!(seed, ValkeyBloom::FIXED_SEED);
    keys.keys.clear();
    keys.context.classic_only = true;
    let refused = "-ERR blocked filters are refused while bf-redisbloom-compatible is on";
    assert_eq!(keys.say("BF.INSERT f TIGHTENING 0.5 ITEMS a"), refused);
    // Nor does the header of a dump bring one in.
    let mut source = Keyspace::default();
    source.say("BF.INSERT f TIGHTENING 0.5 ITEMS a");
    let (iterator, header) = &crate::keyspace::pieces(source.filter("f"))[0];
    let iterator = iterator.to_string();
    let reply = keys.call(&[b"BF.LOADCHUNK", b"f", iterator.as_bytes(), header]);
    assert_eq!(reply.as_error(), refused.strip_prefix('-'));
    assert!(keys.keys.is_empty());
}

#[test]
fn fields_of_valkey_bloom_are_bare_values() {
    let mut keys = Keyspace::default();
    keys.say("BF.INSERT f TIGHTENING 0.85 ERROR 0.03 ITEMS a");
    keys.say("BF.RESERVE fixed 0.01 100 NONSCALING");
    keys.context.max_filter_bytes = 128 << 20;
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        keys.context.protocol = protocol;
        assert_eq!(
            keys.call(&[b"BF.INFO", b"f", b"error"]),
            Reply::Double(0.03)
        );
        assert_eq!(
            keys.call(&[b"BF.INFO", b"f", b"tightening"]),
            Reply::Double(0.85)
        );
        assert_eq!(keys.say("BF.INFO f MaxScaledCapacity"), ":52428700");
    }
    keys.context.protocol = Protocol::Resp2;
    for field in ["TIGHTENING", "MAXSCALEDCAPACITY"] {
        let reply = keys.say(&format!("BF.INFO fixed {field}"));
        assert_eq!(reply, "-Invalid information value");
    }
    assert_eq!(
        keys.call(&[b"BF.INFO", b"fixed", b"ERROR"]),
        Reply::Double(0.01)
    );
}

/// What BF.LOAD takes: a filter of so many empty layers.
fn load_data(layers: u64, tightening: f64) -> Vec<u8> {
    let mut bitmap = vec![1];
    bitmap.extend(8_u64.to_le_bytes());
    bitmap.extend(3_u32.to_le_bytes());
    bitmap.extend(SEED);
    bitmap.extend([0; 8]);
    let mut data = vec![1];
    data.extend(2_u32.to_le_bytes());
    data.extend(0.01_f64.to_le_bytes());
    data.extend(tightening.to_le_bytes());
    data.push(1);
    data.extend(layers.to_le_bytes());
    for _ in 0..layers {
        data.extend((bitmap.len() as u64).to_le_bytes());
        data.extend(&bitmap);
        data.extend(0_u64.to_le_bytes());
        data.extend(5_u64.to_le_bytes());
    }
    data
}

/// As BF.LOADCHUNK refuses it to a client, and never to a log.
#[test]
fn a_client_loads_no_object_of_very_many_layers() {
    let mut keys = Keyspace::default();
    let most = load_data(16_384, 0.9999);
    let more = load_data(16_385, 0.9999);
    assert_eq!(keys.call(&[b"BF.LOAD", b"log", &more]), Reply::OK);
    keys.context.now_ms = 1_700_000_000_000;
    assert_eq!(keys.call(&[b"BF.LOAD", b"most", &most]), Reply::OK);
    let refused = keys.call(&[b"BF.LOAD", b"more", &more]);
    let text = "ERR a filter of more than 16384 layers is not loaded";
    assert_eq!(refused, Reply::error(text));
}

#[test]
fn bf_load_needs_a_free_key_and_whole_data() {
    let mut keys = Keyspace::default();
    keys.keys.insert(b"s".to_vec(), Value::Other);
    keys.say("BF.ADD f a");
    let busy = "-BUSYKEY Target key name already exists.";
    assert_eq!(keys.say("BF.LOAD s x"), busy);
    assert_eq!(keys.say("BF.LOAD f x"), busy);
    assert_eq!(
        keys.say("BF.LOAD new x"),
        "-ERR bloom object decoding failed"
    );
    assert!(!keys.keys.contains_key(b"new".as_slice()));
    let blob = load_data(1, 0.5);
    assert_eq!(keys.call(&[b"BF.LOAD", b"new", &blob]), Reply::OK);
    assert_eq!(keys.say("BF.ADD new x"), ":1");
    assert_eq!(keys.filter("new").capacity(), 5);
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.filter("new"), keys.filter("new"));
}

#[test]
fn merging_and_clearing_keep_the_hash() {
    let mut keys = Keyspace::default();
    keys.context.now_ms = 1_700_000_000_000;
    keys.say("BF.INSERT a CAPACITY 100 ERROR 0.01 TIGHTENING 0.5 ITEMS x");
    keys.say("BF.INSERT b CAPACITY 100 ERROR 0.01 TIGHTENING 0.5 ITEMS y");
    assert_eq!(keys.say("BF.MERGE a b"), "+OK");
    assert_eq!(keys.say("BF.MEXISTS a x y none"), "*3 :1 :1 :0");
    let hash = *keys.filter("a").valkey().unwrap();
    insert(&mut keys, "seed", "CAPACITY 100 TIGHTENING 0.5", "ITEMS x");
    let refused = "-ERR the filters have different hashes";
    assert_eq!(keys.say("BF.MERGE a seed"), refused);
    // A filter that has grown is above the rate of its first layer.
    for item in 0..300 {
        keys.say(&format!("BF.ADD b {item}"));
    }
    let refused = keys.say("BF.MERGE new b");
    assert!(
        refused.starts_with("-ERR the error rate would be 0.01"),
        "{refused}"
    );
    keys.say("BF.INSERT wide CAPACITY 1000 ERROR 0.05 TIGHTENING 0.5");
    assert_eq!(keys.say("BF.MERGE wide a b"), "+OK");
    assert_eq!(
        keys.say("BF.MEXISTS wide x y 0 299 none"),
        "*5 :1 :1 :1 :1 :0"
    );
    let refused = "-ERR only a filter in the blocked layout can be made smaller";
    assert_eq!(keys.say("BF.SHRINK b 10"), refused);
    assert_eq!(keys.say("BF.CLEAR b"), "+OK");
    assert!(keys.filter("b").is_empty());
    assert_eq!(keys.filter("b").valkey(), Some(&hash));
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
}
