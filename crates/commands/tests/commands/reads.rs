//! BF.EXISTS, BF.MEXISTS, BF.INFO, BF.CARD and BF.DEBUG.

use crate::keyspace::{Keyspace, Value};
use everbloom_resp::Protocol;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

fn keys() -> Keyspace {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE k 0.001 1000 EXPANSION 3");
    keys.say("BF.MADD k a b c");
    keys.say("BF.RESERVE n 0.001 1000 NONSCALING");
    keys.keys.insert(b"s".to_vec(), Value::Other);
    keys
}

#[test]
fn membership_tests_never_fail() {
    let mut keys = keys();
    assert_eq!(keys.say("BF.EXISTS k a"), ":1");
    assert_eq!(keys.say("BF.MEXISTS k a z c"), "*3 :1 :0 :1");
    for key in ["s", "none"] {
        assert_eq!(keys.say(&format!("BF.EXISTS {key} a")), ":0");
        assert_eq!(keys.say(&format!("BF.MEXISTS {key} a b")), "*2 :0 :0");
    }
    keys.context.protocol = Protocol::Resp3;
    assert_eq!(keys.say("BF.MEXISTS k a z"), "*2 #t #f");
    assert_eq!(keys.say("BF.EXISTS none z"), "#f");
}

#[test]
fn info_in_both_protocols() {
    let mut keys = keys();
    let whole = "+Capacity :1000 +Size :2080 +Number of filters :1 \
                 +Number of items inserted :3 +Expansion rate :3";
    assert_eq!(keys.say("BF.INFO k"), format!("*10 {whole}"));
    assert_eq!(keys.say("BF.INFO k Items"), "*1 :3");
    assert_eq!(keys.say("BF.INFO n expansion"), "*1 $-1");
    keys.context.protocol = Protocol::Resp3;
    assert_eq!(keys.say("BF.INFO k"), format!("%5 {whole}"));
    assert_eq!(keys.say("BF.INFO k FILTERS"), "%1 +Number of filters :1");
    assert_eq!(keys.say("BF.INFO n EXPANSION"), "%1 +Expansion rate _");
    assert_eq!(keys.say("BF.INFO k SIZE"), "%1 +Size :2080");
    assert_eq!(keys.say("BF.INFO k CAPACITY"), "%1 +Capacity :1000");
}

#[test]
fn info_looks_at_the_key_before_the_word() {
    let mut keys = keys();
    let arity = "-ERR wrong number of arguments for 'bf.info' command";
    assert_eq!(keys.say("BF.INFO none items more"), arity);
    assert_eq!(keys.say("BF.INFO none bogus"), "-ERR not found");
    assert_eq!(keys.say("BF.INFO s bogus"), WRONG_TYPE);
    assert_eq!(keys.say("BF.INFO k bogus"), "-Invalid information value");
    assert_eq!(keys.say("BF.INFO k "), "-Invalid information value");
}

#[test]
fn card_and_debug() {
    let mut keys = keys();
    assert_eq!(keys.say("BF.CARD k"), ":3");
    assert_eq!(keys.say("BF.CARD none"), ":0");
    assert_eq!(keys.say("BF.CARD s"), WRONG_TYPE);
    assert_eq!(
        keys.say("BF.DEBUG k"),
        "*2 $6 size:3 $78 bytes:1984 bits:15872 hashes:11 hashwidth:64 capacity:1000 size:3 \
         ratio:0.0005"
    );
    assert_eq!(keys.say("BF.DEBUG none"), "-ERR not found");
    assert_eq!(keys.say("BF.DEBUG s"), WRONG_TYPE);
}

#[test]
fn reads_leave_no_trace() {
    let mut keys = keys();
    let before = keys.clone();
    for command in [
        "BF.EXISTS none a",
        "BF.INFO none",
        "BF.CARD none",
        "BF.SCANDUMP none 0",
    ] {
        keys.say(command);
    }
    assert_eq!((keys.keys, keys.touched), (before.keys, before.touched));
}
