//! LAYOUT and SEED, the default layout, and what filters of the blocked layout answer.

use crate::keyspace::{Keyspace, Value, pieces, wire};
use everbloom::Layout;
use everbloom::hash::Key;
use everbloom_commands::{Context, Defaults, KeySource};
use everbloom_resp::{Protocol, Reply};

/// A host whose new filters are blocked.
fn blocked_by_default() -> Keyspace {
    let defaults = Defaults {
        layout: Layout::Blocked,
        ..Defaults::default()
    };
    Keyspace {
        context: Context {
            defaults,
            ..Context::default()
        },
        ..Keyspace::default()
    }
}

fn items(range: std::ops::Range<u32>) -> String {
    range.map(|n| format!(" item:{n}")).collect()
}

#[test]
fn reserve_takes_its_options_in_any_order() {
    let mut keys = Keyspace::default();
    for command in [
        "BF.RESERVE a 0.01 100 LAYOUT BLOCKED",
        "BF.RESERVE b 0.01 100 layout blocked SEED 7",
        "BF.RESERVE c 0.01 100 SEED 7 LAYOUT Blocked",
        "BF.RESERVE d 0.01 100 EXPANSION 4 LAYOUT BLOCKED SEED 7",
        "BF.RESERVE e 0.01 100 SEED 0 NONSCALING LAYOUT BLOCKED",
        "BF.RESERVE f 0.01 100 LAYOUT BLOCKED SEED 18446744073709551615 EXPANSION 0",
        "BF.RESERVE g 0.01 100 LAYOUT CLASSIC EXPANSION 3",
        "BF.RESERVE h 0.01 100 EXPANSION 0 NONSCALING LAYOUT BLOCKED SEED 7",
        // The key is not an option, and neither are words that RedisBloom ignores.
        "BF.RESERVE LAYOUT 0.01 100",
        "BF.RESERVE SEED 0.01 100 FOO BAR BAZ",
        // Of two equal options the first one counts, as in RedisBloom.
        "BF.RESERVE i 0.01 100 LAYOUT BLOCKED LAYOUT x",
    ] {
        assert_eq!(keys.say(command), "+OK", "{command}");
    }
    let of = |key: &str| {
        let filter = keys.filter(key);
        (filter.layout(), filter.expansion(), filter.is_fixed())
    };
    assert_eq!(of("a"), (Layout::Blocked, 2, false));
    assert_eq!(of("d"), (Layout::Blocked, 4, false));
    assert_eq!(of("e"), (Layout::Blocked, 2, true));
    assert_eq!(of("f"), (Layout::Blocked, 0, true));
    assert_eq!(of("g"), (Layout::Classic, 3, false));
    assert_eq!(of("h"), (Layout::Blocked, 0, true));
    assert_eq!(of("LAYOUT"), (Layout::Classic, 2, false));
    assert_eq!(of("SEED"), (Layout::Classic, 2, false));
    let seeded = Some(Key::from_seed(7));
    for key in ["b", "c", "d", "h"] {
        assert_eq!(keys.filter(key).key(), seeded);
    }
    assert_eq!(keys.filter("f").key(), Some(Key::from_seed(u64::MAX)));
    assert_eq!(keys.filter("g").key(), None);
}

/// For the time in which RedisBloom may have to follow.
#[test]
fn a_host_may_refuse_blocked_filters() {
    let mut keys = blocked_by_default();
    keys.say("BF.ADD blocked x");
    let header = pieces(keys.filter("blocked")).swap_remove(0).1;
    keys.context.classic_only = true;
    let refused = "-ERR blocked filters are refused while bf-redisbloom-compatible is on";
    for command in [
        "BF.ADD f x",
        "BF.MADD f x y",
        "BF.INSERT f ITEMS x",
        "BF.RESERVE f 0.01 100 LAYOUT BLOCKED",
    ] {
        assert_eq!(keys.say(command), refused, "{command}");
    }
    let loaded = keys.call(&[b"BF.LOADCHUNK", b"f", b"1", &header]);
    assert_eq!(wire(&loaded, Protocol::Resp2), refused);
    assert_eq!(keys.say("BF.RESERVE f 0.01 100 LAYOUT CLASSIC"), "+OK");
}

#[test]
fn what_is_wrong_with_the_options_of_reserve_is_said() {
    let mut keys = Keyspace::default();
    let arity = "-ERR wrong number of arguments for 'bf.reserve' command";
    let range = "-ERR seed must be in the range [0, 18446744073709551615]";
    let classic = "-ERR a seed needs LAYOUT BLOCKED";
    let cases = [
        ("LAYOUT", "-ERR no layout"),
        ("EXPANSION 2 LAYOUT", "-ERR no layout"),
        ("LAYOUT x", "-ERR bad layout"),
        ("LAYOUT BLOCKEDX", "-ERR bad layout"),
        ("LAYOUT NONSCALING", "-ERR bad layout"),
        ("LAYOUT BLOCKED SEED", "-ERR no seed"),
        ("LAYOUT BLOCKED SEED x", "-ERR bad seed"),
        ("LAYOUT BLOCKED SEED 01", "-ERR bad seed"),
        ("LAYOUT BLOCKED SEED -1", range),
        ("LAYOUT BLOCKED SEED 18446744073709551616", range),
        ("SEED 1", classic),
        ("SEED 1 LAYOUT CLASSIC", classic),
        // The expansion is checked first.
        ("EXPANSION x LAYOUT x", "-ERR bad expansion"),
        ("EXPANSION LAYOUT BLOCKED", "-ERR bad expansion"),
        (
            "NONSCALING EXPANSION 2 LAYOUT BLOCKED",
            "-Nonscaling filters cannot expand",
        ),
        // The two words allow no other extra arguments.
        ("a b c d", arity),
        ("a b c d LAYOUT BLOCKED", arity),
        ("a b c d LAYOUT BLOCKED SEED 1", arity),
        ("a b c d SEED 1", arity),
    ];
    for (options, reply) in cases {
        let command = format!("BF.RESERVE k 0.01 100 {options}");
        assert_eq!(keys.say(&command), reply, "{command}");
    }
    assert_eq!(keys.say("BF.RESERVE k x x LAYOUT x"), "-ERR bad error rate");
    assert_eq!((keys.touched, keys.log.len(), keys.keys.len()), (0, 0, 0));
}

#[test]
fn insert_takes_both_options_and_refuses_what_is_wrong() {
    let mut keys = Keyspace::default();
    for (command, reply) in [
        ("BF.INSERT a LAYOUT BLOCKED ITEMS x y", "*2 :1 :1"),
        ("BF.INSERT b SEED 7 layout blocked ITEMS x", "*1 :1"),
        (
            "BF.INSERT c LAYOUT CLASSIC SEED 1 SEED 7 LAYOUT BLOCKED i x",
            "*1 :1",
        ),
        ("BF.INSERT d LAYOUT BLOCKED LAYOUT CLASSIC ITEMS x", "*1 :1"),
        (
            "BF.INSERT e NONSCALING LAYOUT BLOCKED CAPACITY 1 ITEMS x y",
            "*2 :1 -ERR non scaling filter is full",
        ),
        // An existing filter keeps its layout.
        ("BF.INSERT a LAYOUT CLASSIC ITEMS x", "*1 :0"),
        (
            "BF.INSERT z NOCREATE LAYOUT BLOCKED ITEMS x",
            "-ERR not found",
        ),
        ("BF.INSERT z LAYOUT x ITEMS x", "-Bad layout"),
        ("BF.INSERT z LAYOUT BLOCKED SEED -1 ITEMS x", "-Bad seed"),
        ("BF.INSERT z LAYOUT BLOCKED SEED x ITEMS x", "-Bad seed"),
        (
            "BF.INSERT z SEED 1 ITEMS x",
            "-ERR a seed needs LAYOUT BLOCKED",
        ),
        (
            "BF.INSERT z LAYOUT BLOCKED",
            "-ERR wrong number of arguments for 'bf.insert' command",
        ),
        ("BF.INSERT z ITEMS LAYOUT", "*1 :1"),
        // RedisBloom knows its own words by their first letters. These are not among them.
        (
            "BF.INSERT y LAY BLOCKED ITEMS x",
            "-Unknown argument received",
        ),
        ("BF.INSERT y SEEDS 1 ITEMS x", "-Unknown argument received"),
    ] {
        assert_eq!(keys.say(command), reply, "{command}");
    }
    let layout = |key| keys.filter(key).layout();
    assert_eq!(
        ["a", "b", "c", "d", "e"].map(layout),
        [
            Layout::Blocked,
            Layout::Blocked,
            Layout::Blocked,
            Layout::Classic,
            Layout::Blocked
        ]
    );
    assert_eq!(keys.filter("b").key(), Some(Key::from_seed(7)));
    assert_eq!(keys.filter("c").key(), Some(Key::from_seed(7)));
}

#[test]
fn the_default_layout_is_for_filters_that_do_not_say_theirs() {
    let mut keys = blocked_by_default();
    for command in [
        "BF.ADD a x",
        "BF.MADD b x",
        "BF.INSERT c ITEMS x",
        "BF.RESERVE d 0.01 100",
        "BF.RESERVE e 0.01 100 SEED 1",
        "BF.INSERT f SEED 1 ITEMS x",
    ] {
        assert!(!keys.say(command).contains('-'), "{command}");
    }
    for key in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(keys.filter(key).layout(), Layout::Blocked);
    }
    keys.say("BF.RESERVE g 0.01 100 LAYOUT CLASSIC");
    keys.say("BF.INSERT h LAYOUT CLASSIC ITEMS x");
    for key in ["g", "h"] {
        assert_eq!(keys.filter(key).layout(), Layout::Classic);
    }
    let keys_of_a_and_b = (keys.filter("a").key(), keys.filter("b").key());
    assert_ne!(keys_of_a_and_b.0, keys_of_a_and_b.1);
    assert_eq!(keys.filter("e").key(), Some(Key::from_seed(1)));
}

#[test]
fn the_host_gives_the_keys() {
    let mut keys = blocked_by_default();
    keys.context.keys = KeySource(|| Key::from_bytes(*b"sixteen bytes ok"));
    keys.say("BF.ADD a x");
    keys.say("BF.RESERVE b 0.01 10");
    for key in ["a", "b"] {
        let key = keys.filter(key).key().unwrap();
        assert_eq!(key.to_bytes(), *b"sixteen bytes ok");
    }
}

#[test]
fn what_is_too_small_a_rate_for_blocks_is_refused() {
    let mut keys = Keyspace::default();
    assert_eq!(
        keys.say("BF.RESERVE k 1e-14 10 LAYOUT BLOCKED"),
        "-ERR could not create filter"
    );
    assert_eq!(keys.say("BF.RESERVE k 1e-14 10 LAYOUT CLASSIC"), "+OK");
}

#[test]
fn a_dump_moves_to_a_host_with_other_defaults() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE k 0.01 10 LAYOUT BLOCKED");
    keys.say(&format!("BF.MADD k{}", items(0..500)));
    let filter = keys.filter("k").clone();
    assert!(filter.layers().len() > 1);

    let mut other = Keyspace::with_defaults(0.25, 3, 0);
    for (iterator, data) in pieces(&filter) {
        let iterator = iterator.to_string();
        let reply = other.call(&[b"BF.LOADCHUNK", b"k", iterator.as_bytes(), &data]);
        assert_eq!(wire(&reply, Protocol::Resp2), "+OK");
    }
    assert_eq!(*other.filter("k"), filter);
    // The loaded filter grows as the original does.
    for host in [&mut keys, &mut other] {
        host.say(&format!("BF.MADD k{}", items(500..9000)));
    }
    assert_eq!(pieces(other.filter("k")), pieces(keys.filter("k")));
    assert!(keys.filter("k").layers().len() > filter.layers().len());
}

#[test]
fn a_run_of_adds_creates_what_one_add_would() {
    let mut keys = blocked_by_default();
    let replies = keys.pipeline("BF.ADD", b"k", &[b"a", b"b", b"a"]);
    assert_eq!(replies, [true, true, false].map(Reply::Boolean));
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
}

#[test]
fn info_has_redisblooms_five_fields_for_both_layouts() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE k 0.01 100 LAYOUT BLOCKED");
    keys.say("BF.MADD k a b c");
    let bytes = keys.filter("k").stream_len();
    let size = 32 + 64 + bytes;
    assert_eq!(
        keys.say("BF.INFO k"),
        format!(
            "*10 +Capacity :100 +Size :{size} +Number of filters :1 \
             +Number of items inserted :3 +Expansion rate :2"
        )
    );
    assert_eq!(keys.say("BF.INFO k ITEMS"), "*1 :3");
    assert_eq!(keys.say("BF.CARD k"), ":3");
    assert_eq!(keys.say("BF.INFO k LAYOUT"), "-Invalid information value");
}

#[test]
fn debug_says_how_large_blocks_are() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE k 0.01 100 NONSCALING LAYOUT BLOCKED");
    keys.say("BF.ADD k a");
    assert_eq!(
        keys.say("BF.DEBUG k"),
        "*2 $6 size:1 $86 bytes:128 bits:1024 hashes:6 hashwidth:64 capacity:100 size:1 \
         ratio:0.01 blockbits:512"
    );
}

#[test]
fn stats_tell_the_rest() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE c 0.01 100");
    keys.say("BF.MADD c a b c");
    let memory = keys.filter("c").memory_usage();
    assert_eq!(
        keys.say("BF.STATS c"),
        format!(
            "*24 +layout +classic +key $-1 +layers :1 +bits :1152 +memory :{memory} +items :3 \
             +capacity :100 +fill-ratio $20 {:?} +error-rate $4 0.01 \
             +expected-error-rate $20 {:?} +items-until-next-layer :97 \
             +sampling-error $1 0",
            keys.filter("c").stats().fill_ratio,
            keys.filter("c").stats().estimated_error_rate,
        )
    );
    keys.context.protocol = Protocol::Resp3;
    keys.say("BF.RESERVE b 0.01 100 LAYOUT BLOCKED SEED 7 NONSCALING");
    let seed_7: String = Key::from_seed(7)
        .to_bytes()
        .map(|byte| format!("{byte:02x}"))
        .concat();
    let memory = keys.filter("b").memory_usage();
    assert_eq!(
        keys.say("BF.STATS b"),
        format!(
            "%12 +layout +blocked +key $32 {seed_7} +layers :1 +bits :1024 +memory :{memory} \
             +items :0 +capacity :100 +fill-ratio ,0 +error-rate ,0.01 +expected-error-rate ,0 \
             +items-until-next-layer _ +sampling-error ,0"
        )
    );
}

#[test]
fn stats_need_a_filter() {
    let mut keys = Keyspace::default();
    keys.keys.insert(b"s".to_vec(), Value::Other);
    for (command, reply) in [
        ("BF.STATS none", "-ERR not found"),
        (
            "BF.STATS s",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        (
            "BF.STATS",
            "-ERR wrong number of arguments for 'bf.stats' command",
        ),
        (
            "BF.STATS s x",
            "-ERR wrong number of arguments for 'bf.stats' command",
        ),
    ] {
        assert_eq!(keys.say(command), reply);
    }
}

/// The statistics of a filter of 5000 items show the error rate that is measured afterwards.
#[test]
fn the_expected_error_rate_is_the_measured_one() {
    for layout in ["CLASSIC", "BLOCKED"] {
        let mut keys = Keyspace::default();
        keys.say(&format!("BF.RESERVE k 0.05 5000 LAYOUT {layout}"));
        keys.say(&format!("BF.MADD k{}", items(0..5000)));
        let expected = keys.filter("k").stats().estimated_error_rate;
        let absent = keys.say(&format!("BF.MEXISTS k{}", items(10_000..50_000)));
        let wrong = absent.matches(":1").count() as f64 / 40_000.0;
        assert!((wrong / expected - 1.0).abs() < 0.2, "{wrong} {expected}");
    }
}
