//! The CF commands beyond what was recorded: effects, limits, and what RedisBloom does wrongly.

use crate::keyspace::{Keyspace, Value};
use everbloom_commands::{Context, CuckooDefaults};
use everbloom_resp::{Protocol, Reply};
use proptest::prelude::*;

fn with_defaults(change: impl FnOnce(&mut CuckooDefaults)) -> Keyspace {
    let mut cuckoo = CuckooDefaults::default();
    change(&mut cuckoo);
    Keyspace {
        context: Context {
            cuckoo,
            ..Context::default()
        },
        ..Keyspace::default()
    }
}

#[test]
fn the_log_has_what_changed_and_nothing_else() {
    let mut keys = Keyspace::default();
    for command in [
        "CF.ADD c a",
        "CF.ADD c a",
        "CF.ADDNX c a",
        "CF.ADDNX c b",
        "CF.INSERT c CAPACITY 50 ITEMS d e",
        "CF.INSERTNX c NOCREATE ITEMS d f",
        "CF.INSERTNX c ITEMS d",
        "CF.DEL c a",
        "CF.DEL c nobody",
        "CF.COMPACT c",
        "CF.COMPACT c",
        "CF.RESERVE r 100 BUCKETSIZE 4",
        "CF.EXISTS c a",
    ] {
        let reply = keys.say(command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
    }
    let log = [
        "CF.LOADCHUNK c 1 <38 bytes>",
        "CF.INSERT c ITEMS a",
        "CF.ADD c a",
        "CF.ADDNX c b",
        "CF.INSERT c ITEMS d e",
        "CF.INSERT c ITEMS f",
        "CF.DEL c a",
        "CF.COMPACT c",
        "CF.LOADCHUNK r 1 <38 bytes>",
    ];
    assert_eq!(keys.log_text(), log);
}

#[test]
fn a_full_filter_answers_for_each_item() {
    let mut keys = Keyspace::default();
    keys.say("CF.RESERVE c 4 EXPANSION 0");
    assert_eq!(
        keys.say("CF.INSERT c ITEMS foo foo foo foo foo"),
        "*5 :1 :1 :1 :1 :-1"
    );
    assert_eq!(keys.say("CF.ADD c foo"), "-Filter is full");
    keys.context.protocol = Protocol::Resp3;
    assert_eq!(keys.say("CF.INSERT c ITEMS foo"), "*1 #f");
    assert_eq!(keys.say("CF.INSERTNX c ITEMS foo"), "*1 :0");
    let log = [
        "CF.LOADCHUNK c 1 <38 bytes>",
        "CF.INSERT c ITEMS foo foo foo foo",
    ];
    assert_eq!(keys.log_text(), log);
}

/// RedisBloom looks at `cf-max-expansions` once for a request, so one request may pass it. But what
/// a client adds must stay a filter that a client may load.
#[test]
fn one_request_makes_no_filter_that_no_client_may_load() {
    let items = ["foo"; 4110].join(" ");
    for (most, tables) in [(32, 1024), (1025, 1025)] {
        let mut keys = with_defaults(|cuckoo| cuckoo.max_expansions = most);
        keys.context.now_ms = 1_700_000_000_000;
        keys.say("CF.RESERVE c 4");
        let replies = keys.say(&format!("CF.INSERT c ITEMS {items}"));
        let (added, refused) = (
            replies.matches(" :1").count(),
            replies.matches(" :-1").count(),
        );
        assert_eq!((added, refused), (tables * 4, 4110 - tables * 4), "{most}");
        assert!(
            keys.say("CF.DEBUG c")
                .contains(&format!("filters:{tables} "))
        );
        assert_eq!(keys.say("CF.ADD c foo"), "-Maximum expansions reached");
        let dump = keys.dumps();
        let log = std::mem::take(&mut keys.log);
        keys.keys.clear();
        for (iterator, chunk) in &dump[&b"c"[..]] {
            let iterator = iterator.to_string();
            let load: [&[u8]; 4] = [b"CF.LOADCHUNK", b"c", iterator.as_bytes(), chunk];
            assert_eq!(keys.call(&load), Reply::OK);
        }
        assert_eq!(keys.dumps(), dump);
        // A log has no clock, and repeats what was accepted.
        let mut replayed = with_defaults(|cuckoo| cuckoo.max_expansions = u32::MAX);
        replayed.replay(&log);
        assert_eq!(replayed.dumps(), dump);
        replayed.say(&format!("CF.INSERT c ITEMS {items}"));
        assert!(replayed.say("CF.DEBUG c").contains("filters:20"));
    }
}

/// RedisBloom makes an empty key here, which its replicas do not have.
#[test]
fn nothing_is_made_where_nothing_may_be_added() {
    let mut keys = with_defaults(|cuckoo| cuckoo.max_expansions = 1);
    assert_eq!(keys.say("CF.ADD c a"), "-Maximum expansions reached");
    assert!(keys.keys.is_empty() && keys.log.is_empty());
}

/// RedisBloom reads past its arguments.
#[test]
fn a_word_without_a_number_is_an_error() {
    let mut keys = Keyspace::default();
    for word in ["EXPANSION", "BUCKETSIZE", "MAXITERATIONS"] {
        let reply = keys.say(&format!("CF.RESERVE k 100 x {word}"));
        assert_eq!(reply, format!("-Couldn't parse {word}"));
    }
}

#[test]
fn new_tables_stay_within_the_limits() {
    for limit in [
        |context: &mut Context| context.max_filter_bytes = 3000,
        |context: &mut Context| context.free_bytes = 2000,
    ] {
        let mut keys = Keyspace::default();
        keys.say("CF.ADD c a");
        limit(&mut keys.context);
        let replies = keys.say("CF.INSERT c ITEMS a a a a a a a a a a");
        assert_eq!(replies, "*10 :1 :1 :1 :1 :1 :1 :1 :-1 :-1 :-1");
        keys.context.free_bytes = keys.context.free_bytes.min(1000);
        assert_eq!(keys.say("CF.ADD c a"), "-ERR Insufficient memory");
        assert!(keys.say("CF.DEBUG c").contains("filters:2"));
        let reply = keys.say("CF.RESERVE big 1000000");
        assert_eq!(reply, "-ERR Insufficient memory to create filter");
    }
}

/// Half of a dump came: what RedisBloom crashes on.
#[test]
fn a_half_loaded_filter_takes_commands() {
    let mut keys = Keyspace::default();
    keys.say("CF.RESERVE c 4");
    keys.say("CF.INSERT c ITEMS a a a a a a a a a a");
    let header = keys.dumps()[&b"c"[..]][0].1.clone();
    assert!(
        !keys
            .call(&[b"CF.LOADCHUNK", b"half", b"1", &header])
            .is_error()
    );
    for command in [
        "CF.DEL half a",
        "CF.COMPACT half",
        "CF.ADD half a",
        "CF.DEL half a",
    ] {
        assert!(!keys.say(command).starts_with('-'), "{command}");
    }
    assert!(keys.say("CF.DEBUG half").contains("filters:1"));
    let refused = keys.say("CF.LOADCHUNK half 100 xxxx");
    assert_eq!(refused, "-Couldn't load chunk!");
}

#[test]
fn filters_of_the_other_family_are_another_type() {
    let mut keys = Keyspace::default();
    keys.say("CF.ADD c a");
    keys.say("BF.ADD b a");
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(keys.say("BF.ADD c a"), wrong);
    assert_eq!(keys.say("CF.ADD b a"), wrong);
    assert_eq!(keys.say("CF.STATS b"), wrong);
    assert_eq!(keys.say("CF.EXISTS b a"), ":0");
    assert_eq!(keys.say("CF.DEL b a"), "-Not found");
    assert_eq!(keys.say("CF.COMPACT b"), "-Cuckoo filter was not found");
}

#[test]
fn stats() {
    let mut keys = Keyspace::default();
    keys.say("CF.RESERVE c 1024");
    keys.say("CF.ADD c a");
    let stats = keys.say("CF.STATS c");
    let (facts, rates) = stats.split_once(" +items :1 ").unwrap();
    assert!(
        facts.starts_with("*16 +tables :1 +slots :1024 +memory :1"),
        "{facts}"
    );
    assert_eq!(
        rates,
        "+load $11 9.765625e-4 +error-rate $20 0.015594243304818291 +expected-error-rate $21 \
         1.5348624942594503e-5 +items-until-next-table :726"
    );
    // It never has a next one.
    keys.say("CF.RESERVE fixed 1024 EXPANSION 0");
    assert!(
        keys.say("CF.STATS fixed")
            .ends_with("+items-until-next-table $-1")
    );
    assert_eq!(keys.say("CF.STATS none"), "-ERR not found");
    assert!(keys.say("CF.STATS").starts_with("-ERR wrong number"));
    assert!(keys.say("CF.STATS c x").starts_with("-ERR wrong number"));
}

fn command() -> impl Strategy<Value = String> {
    let item = 0..40;
    let items = prop::collection::vec(0..40, 1..9);
    prop_oneof![
        4 => item.clone().prop_map(|item| format!("CF.ADD c {item}")),
        2 => item.clone().prop_map(|item| format!("CF.ADDNX c {item}")),
        4 => item.prop_map(|item| format!("CF.DEL c {item}")),
        2 => (any::<bool>(), items).prop_map(|(nx, items)| {
            let items: Vec<_> = items.iter().map(ToString::to_string).collect();
            let name = if nx { "CF.INSERTNX" } else { "CF.INSERT" };
            format!("{name} c CAPACITY 16 ITEMS {}", items.join(" "))
        }),
        1 => Just("CF.COMPACT c".to_owned()),
        1 => Just("CF.RESERVE c 8 BUCKETSIZE 1 EXPANSION 0".to_owned()),
    ]
}

proptest! {
    /// A replica ends with the same filter, whatever its own settings are.
    #[test]
    fn the_log_makes_the_same_filter_under_other_settings(
        commands in prop::collection::vec(command(), 0..80), max_expansions in 1_u32..6,
    ) {
        let mut keys = with_defaults(|cuckoo| cuckoo.max_expansions = max_expansions);
        keys.context.cuckoo.initial_size = 4;
        for command in &commands {
            let before = keys.dumps();
            let had = keys.log.len();
            keys.say(command);
            // Whatever changes the filter is in the log, and nothing else is, but a compaction
            // that moved nothing.
            let (changed, logged) = (keys.dumps() != before, keys.log.len() > had);
            let may = command.starts_with("CF.COMPACT") && logged;
            prop_assert_eq!(changed || may, logged, "{}", command);
        }
        let mut replica = with_defaults(|cuckoo| {
            (cuckoo.bucket_size, cuckoo.initial_size) = (100, 1000);
            (cuckoo.expansion, cuckoo.max_iterations) = (4, 1);
            cuckoo.max_expansions = u32::MAX;
        });
        let log = std::mem::take(&mut keys.log);
        replica.replay(&log);
        prop_assert_eq!(replica.dumps(), keys.dumps());
    }
}

#[test]
fn other_values_are_not_touched() {
    let mut keys = Keyspace::default();
    keys.keys.insert(b"s".to_vec(), Value::Other);
    for command in [
        "CF.ADD s a",
        "CF.RESERVE s 100",
        "CF.LOADCHUNK s 1 x",
        "CF.INFO s",
    ] {
        assert!(keys.say(command).starts_with("-WRONGTYPE"), "{command}");
    }
}

/// A filter that was allowed to grow may be loaded where the same limit holds: what its tables take
/// beside their slots counts for both.
#[test]
fn a_filter_at_its_limit_can_be_loaded_again() {
    // Many small tables, and few large ones.
    for (slots, limit) in [(4, 300), (4, 301), (4, 1000), (1024, 3072), (1024, 6072)] {
        let mut keys = Keyspace::with_limit(limit);
        keys.context.cuckoo.initial_size = slots;
        let items = " foo".repeat(100);
        let replies = keys.say(&format!("CF.INSERT c ITEMS{items}"));
        assert!(replies.contains(":-1"), "{limit}: {replies}");
        for _ in 0..20 {
            keys.say("CF.ADD c foo");
        }
        let mut other = Keyspace::with_limit(limit);
        for (position, data) in &keys.dumps()[&b"c"[..]] {
            let position = position.to_string();
            let reply = other.call(&[b"CF.LOADCHUNK", b"c", position.as_bytes(), data]);
            assert!(!reply.is_error(), "{limit}: {reply:?}");
        }
        assert_eq!(other.dumps(), keys.dumps());
    }
}
