//! CF.MERGE.

use crate::keyspace::Keyspace;

/// Keys of a client: a log has no clock.
fn client() -> Keyspace {
    let mut keys = Keyspace::default();
    keys.context.now_ms = 1_700_000_000_000;
    keys
}

fn say(keys: &mut Keyspace, lines: &[&str]) {
    for line in lines {
        let reply = keys.say(line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
}

fn add(keys: &mut Keyspace, key: &str, items: std::ops::Range<u32>) {
    for item in items {
        say(keys, &[&format!("CF.ADD {key} {item}")]);
    }
}

fn has_all(keys: &mut Keyspace, key: &str, mut items: std::ops::Range<u32>) -> bool {
    items.all(|item| keys.say(&format!("CF.EXISTS {key} {item}")) == ":1")
}

const KINDS: [&str; 2] = ["1000", "1000 ERROR 0.001 SEED 7"];

#[test]
fn a_merged_filter_has_the_items_of_all_as_often_as_they_are_in_all() {
    for kind in KINDS {
        let mut keys = client();
        for (key, from) in [("a", 0), ("b", 300), ("c", 600)] {
            say(&mut keys, &[&format!("CF.RESERVE {key} {kind}")]);
            add(&mut keys, key, from..from + 300);
        }
        say(&mut keys, &["CF.ADD a twice", "CF.ADD b twice"]);
        // A destination that is missing begins as the first source.
        say(&mut keys, &["CF.MERGE all a b", "CF.MERGE all c all"]);
        assert!(has_all(&mut keys, "all", 0..900), "{kind}");
        assert_eq!(keys.say("CF.COUNT all twice"), ":2", "{kind}");
        // They can be deleted, and only the merged filter changes.
        for item in 0..900 {
            assert_eq!(keys.say(&format!("CF.DEL all {item}")), ":1", "{kind}");
        }
        assert_eq!(keys.say("CF.COUNT all twice"), ":2", "{kind}");
        assert!(has_all(&mut keys, "a", 0..300), "{kind}");
        let log = std::mem::take(&mut keys.log);
        let mut replayed = Keyspace::default();
        replayed.replay(&log);
        assert!(replayed.dumps() == keys.dumps(), "{kind}");
    }
}

#[test]
fn filters_that_have_grown_are_merged() {
    let room = "-ERR the tables have no room for the other filter's items: make both filters for \
                all items together";
    for (kind, reply) in [
        ("100", "+OK"),
        ("100 EXPANSION 2", room),
        ("100 ERROR 0.01 SEED 7", room),
        ("100 ERROR 0.01 SEED 7 EXPANSION 1", room),
    ] {
        let mut keys = client();
        for key in ["large", "small", "empty"] {
            say(&mut keys, &[&format!("CF.RESERVE {key} {kind}")]);
        }
        add(&mut keys, "large", 0..700);
        add(&mut keys, "small", 700..790);
        say(&mut keys, &["CF.MERGE empty large"]);
        assert!(has_all(&mut keys, "empty", 0..700), "{kind}");
        let before = keys.dumps();
        // The items of the first table of one belong into the first table of the other.
        assert_eq!(keys.say("CF.MERGE small large"), reply, "{kind}");
        if reply == room {
            assert!(keys.dumps() == before, "{kind}");
            continue;
        }
        assert!(has_all(&mut keys, "small", 0..790));
        for _ in 0..4 {
            say(&mut keys, &["CF.MERGE small large empty"]);
        }
        let count = keys.say("CF.COUNT small 1");
        assert!(count[1..].parse::<u32>().unwrap() >= 9, "{count}");
        let log = std::mem::take(&mut keys.log);
        let mut replayed = Keyspace::default();
        replayed.replay(&log);
        assert!(replayed.dumps() == keys.dumps());
    }
}

/// Where filters were made for the items of all, there is room for all.
#[test]
fn filters_that_were_made_for_the_items_of_all_are_merged() {
    for rate in ["0.1", "0.01", "0.000001"] {
        for half in [1, 10, 850] {
            let mut keys = client();
            for (key, from) in [("a", 0), ("b", half)] {
                say(
                    &mut keys,
                    &[&format!(
                        "CF.RESERVE {key} {} ERROR {rate} SEED 7",
                        2 * half
                    )],
                );
                add(&mut keys, key, from..from + half);
            }
            assert_eq!(keys.say("CF.MERGE a b"), "+OK", "{half}, {rate}");
            assert!(has_all(&mut keys, "a", 0..2 * half), "{half}, {rate}");
        }
    }
}

/// A source counts once, however often it is named: its items are there once more.
#[test]
fn a_source_that_is_named_again_is_merged_once() {
    for kind in KINDS {
        let mut keys = client();
        for key in ["a", "b"] {
            say(&mut keys, &[&format!("CF.RESERVE {key} {kind}")]);
            add(&mut keys, key, 0..100);
        }
        say(
            &mut keys,
            &["CF.MERGE once a b", "CF.MERGE again a b a b b a"],
        );
        let dumps = keys.dumps();
        say(&mut keys, &["CF.MERGE a a b a"]);
        assert_eq!(keys.say("CF.COUNT a 7"), ":2", "{kind}");
        say(&mut keys, &["CF.MERGE b b"]);
        assert_eq!(keys.say("CF.COUNT b 7"), ":1", "{kind}");
        assert_eq!(dumps[b"once".as_slice()], dumps[b"again".as_slice()]);
        assert_eq!(dumps[b"once".as_slice()], keys.dumps()[b"a".as_slice()]);
    }
}

#[test]
fn filters_that_differ_are_not_merged() {
    let mut keys = client();
    say(
        &mut keys,
        &[
            "CF.RESERVE plain 1000",
            "CF.RESERVE larger 5000",
            "CF.RESERVE grows 1000 EXPANSION 4",
            "CF.RESERVE keyed 1000 ERROR 0.001 SEED 1",
            "CF.RESERVE other 1000 ERROR 0.001 SEED 2",
            "CF.RESERVE worse 1000 ERROR 0.05 SEED 1",
            "BF.ADD bloom x",
        ],
    );
    let before = keys.dumps();
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    for (line, error) in [
        ("plain larger", "-ERR the filters have different capacities"),
        (
            "plain grows",
            "-ERR the filters do not grow in the same way",
        ),
        (
            "plain keyed",
            "-ERR the filters have different hashes: create all with ERROR, or all without",
        ),
        (
            "keyed other",
            "-ERR the filters have different keys: create them with the same SEED",
        ),
        ("keyed worse", "-ERR the filters have different error rates"),
        ("plain none", "-ERR not found"),
        ("none none", "-ERR not found"),
        ("plain bloom", wrong),
        ("bloom plain", wrong),
        ("none bloom", wrong),
    ] {
        assert_eq!(keys.say(&format!("CF.MERGE {line}")), error, "{line}");
    }
    assert!(keys.dumps() == before);
    keys.context.max_filter_bytes = 100;
    let error = "-ERR Insufficient memory to create filter";
    assert_eq!(keys.say("CF.MERGE new plain"), error);
    keys.context.max_filter_bytes = u64::MAX;
    keys.context.classic_only = true;
    let error = keys.say("CF.MERGE new plain");
    assert!(error.contains("'cf.merge' is refused while"), "{error}");
}
