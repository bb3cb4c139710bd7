//! BF.CLEAR, BF.MERGE and BF.SHRINK.

use crate::keyspace::Keyspace;
use everbloom::Layout;

/// Adds numbers to a filter.
fn add(keys: &mut Keyspace, key: &str, items: std::ops::Range<u32>) {
    for item in items {
        let reply = keys.say(&format!("BF.ADD {key} {item}"));
        assert!(!reply.starts_with('-'), "{reply}");
    }
}

fn has_all(keys: &mut Keyspace, key: &str, mut items: std::ops::Range<u32>) -> bool {
    items.all(|item| keys.say(&format!("BF.EXISTS {key} {item}")) == ":1")
}

#[test]
fn a_cleared_filter_is_as_it_was_made() {
    let mut keys = Keyspace::default();
    for how in [
        "0.001 50 EXPANSION 3",
        "0.001 50 LAYOUT BLOCKED SEED 7",
        "0.01 500 NONSCALING",
    ] {
        keys.say(&format!("BF.RESERVE f {how}"));
        let made = keys.dumps();
        add(&mut keys, "f", 0..200);
        assert_eq!(keys.say("BF.CLEAR f"), "+OK");
        assert_eq!(keys.dumps(), made, "{how}");
        keys.keys.clear();
    }
    assert_eq!(keys.say("BF.CLEAR f"), "-ERR not found");
    keys.say("CF.ADD cuckoo x");
    assert!(keys.say("BF.CLEAR cuckoo").starts_with("-WRONGTYPE"));
}

#[test]
fn a_merged_filter_has_the_items_of_all() {
    let mut keys = Keyspace::default();
    for (key, from) in [("a", 0), ("b", 300), ("c", 600)] {
        keys.say(&format!(
            "BF.RESERVE {key} 0.001 1000 LAYOUT BLOCKED SEED 7"
        ));
        add(&mut keys, key, from..from + 300);
    }
    // A destination that is missing is made like the first source, even if that is itself.
    assert_eq!(keys.say("BF.MERGE all a b"), "+OK");
    assert_eq!(keys.say("BF.MERGE all c all"), "+OK");
    assert!(has_all(&mut keys, "all", 0..900));
    assert_eq!(keys.filter("all").layers().len(), 1);
    assert_eq!(keys.filter("all").error_rate(), 0.001);
    let log = std::mem::take(&mut keys.log);
    let mut replayed = Keyspace::default();
    replayed.replay(&log);
    assert!(replayed.dumps() == keys.dumps());
}

/// A source counts once, for the memory and for its items, however often it is named.
#[test]
fn a_source_that_is_named_again_is_merged_once() {
    let mut keys = Keyspace::default();
    for key in ["a", "b"] {
        keys.say(&format!("BF.RESERVE {key} 0.01 1000 LAYOUT BLOCKED SEED 7"));
        add(&mut keys, key, 0..300);
    }
    keys.context.max_filter_bytes = 3 * keys.filter("a").stream_len();
    assert_eq!(keys.say("BF.MERGE once a b"), "+OK");
    assert_eq!(keys.say("BF.MERGE again a b a b b a"), "+OK");
    assert!(keys.filter("again") == keys.filter("once"));
    assert_eq!(keys.say("BF.MERGE a a b a"), "+OK");
    assert!(keys.filter("a") == keys.filter("once"));
}

#[test]
fn a_merge_that_would_err_too_often_is_refused() {
    let mut keys = Keyspace::default();
    keys.context.now_ms = 1_700_000_000_000;
    for day in 0..3 {
        keys.say(&format!("BF.RESERVE day{day} 0.01 400 NONSCALING"));
        add(&mut keys, &format!("day{day}"), day * 400..day * 400 + 390);
    }
    let before = keys.dumps();
    let error = keys.say("BF.MERGE all day0 day1 day2");
    let expected = "-ERR the error rate would be 0.03, more than 0.01: merge into a filter \
                    that was made for the higher rate";
    assert_eq!(error, expected);
    assert!(keys.dumps() == before);
    // A log, which has no clock, says what was merged once: an earlier release may have allowed it.
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.say("BF.MERGE all day0 day1 day2"), "+OK");
    keys.say("BF.RESERVE all 0.03 400 NONSCALING");
    assert_eq!(keys.say("BF.MERGE all day0 day1 day2"), "+OK");
    assert!((0..3).all(|day| has_all(&mut keys, "all", day * 400..day * 400 + 390)));
}

#[test]
fn filters_that_differ_are_not_merged() {
    let mut keys = Keyspace::default();
    for line in [
        "BF.RESERVE classic 0.01 100",
        "BF.RESERVE blocked 0.01 100 LAYOUT BLOCKED SEED 1",
        "BF.RESERVE other 0.01 100 LAYOUT BLOCKED SEED 2",
        "BF.RESERVE fixed 0.01 100 NONSCALING",
        "CF.ADD cuckoo x",
    ] {
        assert!(!keys.say(line).starts_with('-'), "{line}");
    }
    for (line, error) in [
        (
            "classic blocked",
            "-ERR the filters have different layouts: create them with the same LAYOUT, and blocked \
             ones also with the same SEED",
        ),
        (
            "blocked other",
            "-ERR the filters have different keys: create them with the same SEED",
        ),
        (
            "classic fixed",
            "-ERR the filters do not grow in the same way",
        ),
        ("classic none", "-ERR not found"),
        ("none none", "-ERR not found"),
        (
            "classic cuckoo",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        (
            "cuckoo classic",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ] {
        assert_eq!(keys.say(&format!("BF.MERGE {line}")), error, "{line}");
    }
    keys.context.free_bytes = 100;
    let error = "-ERR Insufficient memory to create filter";
    assert_eq!(keys.say("BF.MERGE new classic"), error);
}

#[test]
fn a_filter_is_made_smaller() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE f 0.01 1000000 LAYOUT BLOCKED");
    add(&mut keys, "f", 0..1000);
    let large = keys.filter("f").memory_usage();
    let reply = keys.say("BF.SHRINK f 2000");
    assert!(!reply.starts_with('-'), "{reply}");
    assert!(keys.filter("f").memory_usage() * 300 < large);
    assert!(has_all(&mut keys, "f", 0..1000));
    // Its size would still be the same, so it says so and does nothing.
    let before = keys.dumps();
    assert!((2000..4000).contains(&keys.filter("f").capacity()));
    let refused = keys.say("BF.SHRINK f 2000");
    let most = refused.strip_prefix("-ERR the filter becomes smaller only for a capacity of ");
    let most = most.and_then(|text| text.strip_suffix(" or less"));
    let most = most.unwrap_or_else(|| panic!("{refused}"));
    assert!(keys.dumps() == before);
    let reply = keys.say(&format!("BF.SHRINK f {most}"));
    assert!(!reply.starts_with('-'), "{reply}");
    assert_eq!(keys.filter("f").capacity().to_string(), most);
    assert!(has_all(&mut keys, "f", 0..1000));
    let items = keys.filter("f").len();
    let smallest = "-ERR no smaller size keeps the error rate for the items of the filter";
    assert_eq!(keys.say(&format!("BF.SHRINK f {items}")), smallest);
    for (line, error) in [
        (
            "f 900",
            format!("-ERR the filter needs a capacity of {items}"),
        ),
        (
            "f 0",
            "-ERR capacity must be in the range [1, 1073741824]".into(),
        ),
        ("f x", "-ERR bad capacity".into()),
        ("none 10", "-ERR not found".into()),
        (
            "classic 10",
            "-ERR only a filter in the blocked layout can be made smaller".into(),
        ),
    ] {
        keys.say("BF.ADD classic x");
        assert_eq!(keys.say(&format!("BF.SHRINK {line}")), error, "{line}");
    }
}

#[test]
fn they_are_refused_where_redisbloom_may_follow() {
    let mut keys = Keyspace::default();
    keys.context.defaults.layout = Layout::Classic;
    keys.say("BF.ADD f x");
    keys.context.classic_only = true;
    for line in ["bf.clear f", "bf.merge f f", "bf.shrink f 10"] {
        let name = line.split(' ').next().unwrap();
        let error = format!("-ERR '{name}' is refused while bf-redisbloom-compatible is on");
        assert_eq!(keys.say(line), error);
    }
}

#[test]
fn windows_of_seconds_become_one() {
    let mut keys = Keyspace::default();
    keys.context.now_ms = 1_000_000;
    for key in ["a", "b"] {
        keys.say(&format!(
            "BF.RESERVE {key} 0.001 1000 WINDOW SECONDS 40 SEED 7"
        ));
    }
    keys.say("BF.RESERVE longer 0.001 1000 WINDOW SECONDS 41 SEED 7");
    keys.say("BF.RESERVE plain 0.001 1000 LAYOUT BLOCKED SEED 7");
    keys.say("BF.ADD a early");
    keys.context.now_ms += 35_000;
    keys.say("BF.ADD b late");
    assert_eq!(keys.say("BF.MERGE both a b"), "+OK");
    assert_eq!(keys.say("BF.MEXISTS both early late"), "*2 :1 :1");
    keys.context.now_ms += 15_000;
    assert_eq!(keys.say("BF.MEXISTS both early late"), "*2 :0 :1");
    keys.context.now_ms += 25_000;
    assert_eq!(keys.say("BF.EXISTS both late"), ":1");
    keys.context.now_ms += 10_000;
    assert_eq!(keys.say("BF.EXISTS both late"), ":0");
    for other in ["longer", "plain"] {
        let reply = keys.say(&format!("BF.MERGE both {other}"));
        assert_eq!(reply, "-ERR the filters have different windows");
    }
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
}

#[test]
fn a_window_of_items_is_cleared_and_neither_merged_nor_made_smaller() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE f 0.01 1000 LAYOUT BLOCKED SEED 7 WINDOW ITEMS");
    add(&mut keys, "f", 0..5000);
    assert_eq!(keys.say("BF.CLEAR f"), "+OK");
    assert!(!has_all(&mut keys, "f", 4000..5000));
    add(&mut keys, "f", 0..3000);
    assert!(has_all(&mut keys, "f", 2000..3000));
    assert_eq!(keys.say("BF.ADVANCE f"), "+OK");
    let error = "-ERR filters that remember a number of items cannot be united";
    assert_eq!(keys.say("BF.MERGE f f"), error);
    let error = "-ERR a filter with a window cannot be made smaller";
    assert_eq!(keys.say("BF.SHRINK f 5000"), error);
}
