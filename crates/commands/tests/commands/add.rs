//! BF.ADD, BF.MADD and batches of BF.ADD.

use crate::keyspace::{Keyspace, Value, wire};
use everbloom_resp::Protocol;
use proptest::prelude::*;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const FULL: &str = "-ERR non scaling filter is full";
const CANNOT_GROW: &str = "-ERR problem inserting into filter";

#[test]
fn an_item_is_new_once() {
    let mut keys = Keyspace::default();
    assert_eq!(keys.say("BF.ADD k a"), ":1");
    assert_eq!(keys.say("BF.ADD k a"), ":0");
    assert_eq!(keys.say("BF.MADD k a b b"), "*3 :0 :1 :0");
    assert_eq!(keys.say("BF.ADD k "), ":1", "the empty item is an item");
    keys.context.protocol = Protocol::Resp3;
    assert_eq!(keys.say("BF.MADD k a c"), "*2 #f #t");
    assert_eq!(keys.say("BF.ADD k c"), "#f");
    assert_eq!(keys.filter("k").len(), 4);
    // An add that adds nothing touches the key but is not logged.
    assert_eq!(keys.touched, 6);
    let log = [
        "BF.LOADCHUNK k 1 <73 bytes>",
        "BF.MADD k a",
        "BF.MADD k b",
        "BF.ADD k ",
        "BF.MADD k c",
    ];
    assert_eq!(keys.log_text(), log);
}

#[test]
fn a_full_filter_ends_the_command() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE k 0.01 3 NONSCALING");
    let reply = format!("*5 :1 :1 :1 :0 {FULL}");
    assert_eq!(keys.say("BF.MADD k a b c a d e a"), reply);
    assert_eq!(keys.say("BF.ADD k e"), FULL);
    assert_eq!(keys.say("BF.ADD k a"), ":0");
    assert_eq!(
        keys.say("BF.INSERT k ITEMS a zz b"),
        format!("*2 :0 {FULL}")
    );
    assert_eq!(keys.log_text()[1..], ["BF.MADD k a b c"]);
}

#[test]
fn a_filter_that_cannot_grow_goes_on_to_the_next_item() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE k 1e-323 1");
    let reply = format!("*4 :1 {CANNOT_GROW} :0 {CANNOT_GROW}");
    assert_eq!(keys.say("BF.MADD k a b a c"), reply);
    assert_eq!(keys.say("BF.ADD k b"), CANNOT_GROW);
    assert_eq!(keys.filter("k").layers().len(), 1);
}

/// An existing filter may grow into the free memory, however large it already is.
#[test]
fn growth_is_limited_by_what_is_free_and_not_by_what_the_filter_has() {
    let mut keys = Keyspace::default();
    assert_eq!(keys.say("BF.RESERVE k 0.01 10000"), "+OK");
    keys.context.free_bytes = 30_000;
    let items: Vec<String> = (0..40_000).map(|i| i.to_string()).collect();
    let replies = keys.say(&format!("BF.MADD k {}", items.join(" ")));
    // The first layer has 13 792 bytes. The second needs 31 176 and is refused.
    assert!(replies.contains("problem inserting into filter"));
    keys.context.free_bytes = 40_000;
    assert_eq!(keys.say("BF.ADD k another"), ":1");
}

#[test]
fn growth_stops_at_the_limit_and_the_filter_stays_whole() {
    let mut keys = Keyspace::with_limit(1000);
    let items: Vec<String> = (0..2000).map(|item| item.to_string()).collect();
    for start in [
        "BF.RESERVE two 0.01 10",
        "BF.RESERVE one 0.01 10 EXPANSION 1",
    ] {
        assert_eq!(keys.say(start), "+OK");
        let key = start.split(' ').nth(1).unwrap();
        let reply = keys.say(&format!("BF.MADD {key} {}", items.join(" ")));
        assert!(reply.ends_with(CANNOT_GROW));
        let filter = keys.filter(key);
        let bytes: u64 = filter.layers().iter().map(|layer| layer.bytes()).sum();
        // The limit holds for all layers together, also within one command.
        assert!(bytes <= 1000 && bytes > 300, "{bytes}");
        assert_eq!(reply.matches(":1").count() as u64, filter.len());
        assert_eq!(
            filter.len(),
            filter.layers().iter().map(|layer| layer.len()).sum::<u64>()
        );
        assert_eq!(keys.say(&format!("BF.ADD {key} 0")), ":0");
    }
}

#[test]
fn other_types_are_refused_and_touched() {
    let mut keys = Keyspace::default();
    keys.keys.insert(b"s".to_vec(), Value::Other);
    assert_eq!(keys.say("BF.ADD s a"), WRONG_TYPE);
    assert_eq!(keys.say("BF.MADD s a b"), WRONG_TYPE);
    assert_eq!((keys.touched, keys.log.len()), (2, 0));
}

#[test]
fn creation_follows_the_configuration() {
    let mut keys = Keyspace::with_defaults(0.001, 1000, 0);
    assert_eq!(keys.say("BF.ADD k a"), ":1");
    let filter = keys.filter("k");
    assert!(filter.is_fixed());
    assert_eq!(
        (filter.capacity(), filter.layers()[0].error_rate()),
        (1000, 0.001)
    );

    let mut keys = Keyspace::with_defaults(5e-324, 1, 2);
    assert_eq!(keys.say("BF.ADD k a"), "-ERR could not create filter");
    assert_eq!(keys.say("BF.MADD k a b"), "-ERR could not create filter");
    assert!(keys.keys.is_empty());
}

#[test]
fn a_run_on_a_key_of_another_type_answers_every_item() {
    let mut keys = Keyspace::default();
    keys.keys.insert(b"s".to_vec(), Value::Other);
    let replies = keys.pipeline("BF.ADD", b"s", &[b"a", b"b"]);
    let replies = replies.iter().map(|reply| wire(reply, Protocol::Resp2));
    assert_eq!(replies.collect::<Vec<_>>(), [WRONG_TYPE, WRONG_TYPE]);
    assert!(keys.log.is_empty());
}

fn starts() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "BF.RESERVE k 0.01 3 NONSCALING",
        "BF.RESERVE k 0.2 2 EXPANSION 1",
        "BF.RESERVE k 1e-323 1",
        "BF.RESERVE k 0.25 4",
    ])
}

proptest! {
    /// A batch has the same replies, filter and log in effect as its commands one by one.
    #[test]
    fn a_run_is_its_commands_one_by_one(
        start in starts(),
        items in prop::collection::vec("[a-z]{0,2}", 0..120),
        limit in prop::sample::select(vec![u64::MAX, 200, 0]),
    ) {
        let mut one_by_one = Keyspace::with_limit(limit);
        if !start.is_empty() {
            one_by_one.say(start);
        }
        let mut at_once = one_by_one.clone();

        let mut expected = Vec::new();
        for item in &items {
            expected.push(one_by_one.say(&format!("BF.ADD k {item}")));
        }

        let items: Vec<&[u8]> = items.iter().map(|item| item.as_bytes()).collect();
        let mut replies = Vec::new();
        // A host starts no run without a request in it.
        if !items.is_empty() {
            replies = at_once.pipeline("BF.ADD", b"k", &items);
        }
        let replies: Vec<_> = replies.iter().map(|it| wire(it, Protocol::Resp2)).collect();

        prop_assert_eq!(replies, expected);
        prop_assert_eq!(at_once.dumps(), one_by_one.dumps());
        let mut replica = Keyspace::default();
        replica.replay(&at_once.log);
        prop_assert_eq!(replica.dumps(), one_by_one.dumps());
    }
}
