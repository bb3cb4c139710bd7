//! WINDOW, BF.ADVANCE, and what filters with a window answer.

use crate::keyspace::{Keyspace, pieces};
use everbloom::Span;
use everbloom_commands::flags::DENYOOM;
use everbloom_commands::format::header;

/// A host at a time.
fn host() -> Keyspace {
    let mut keys = Keyspace::default();
    keys.context.now_ms = 1_700_000_000_000;
    keys
}

#[test]
fn a_window_of_seconds_forgets() {
    let mut keys = host();
    assert_eq!(
        keys.say("BF.RESERVE k 0.001 1000 WINDOW SECONDS 100 SEED 1"),
        "+OK"
    );
    assert_eq!(keys.say("BF.ADD k a"), ":1");
    assert_eq!(keys.say("BF.ADD k b"), ":1");
    keys.context.now_ms += 90_000;
    assert_eq!(keys.say("BF.MADD k b b c"), "*3 :0 :0 :1");
    assert_eq!(keys.say("BF.CARD k"), ":4");
    keys.context.now_ms += 10_000;
    assert_eq!(keys.say("BF.MEXISTS k a b c d"), "*4 :1 :1 :1 :0");
    keys.context.now_ms += 25_000;
    assert_eq!(keys.say("BF.MEXISTS k a b c d"), "*4 :0 :1 :1 :0");
    assert_eq!(keys.say("BF.EXISTS k a"), ":0");
    assert_eq!(keys.say("BF.EXISTS k b"), ":1");
    assert_eq!(keys.say("BF.CARD k"), ":2");
    assert_eq!(keys.say("BF.INFO k ITEMS"), "*1 :2");
    // A week without a word.
    keys.context.now_ms += 7 * 86_400_000;
    assert_eq!(keys.say("BF.MEXISTS k a b c d"), "*4 :0 :0 :0 :0");
    assert_eq!(keys.say("BF.CARD k"), ":0");
    assert_eq!(keys.say("BF.ADD k b"), ":1");
    assert_eq!(keys.say("BF.CARD k"), ":1");
    assert_eq!(
        keys.log_text()[1..],
        [
            "BF.ADD k a",
            "BF.ADD k b",
            "BF.ADVANCE k 3 AT 1700000075000",
            "BF.MADD k b c",
            "BF.ADVANCE k 24194 AT 1700604925000",
            "BF.MADD k b",
        ]
    );
    // A log has a time of its own.
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
}

/// What a primary sends for a new window. A module without windows was given it, and answered `ERR
/// received bad data`. When this changes, one has to be asked again.
const REFUSED: [&str; 4] = [
    "65766572626c6f6f6d0d0a1a010001000000000000000000010000001500000002000000",
    "c15c0289ec2d0a9167ec8e65a18debbea08601000000000004000000e803000000000000",
    "fca9f1d24d62503f000000000000000001000000010000000068e5cf8b010000c0020000",
    "000000000000000000000000fa00000000000000623255302aa9233f0b000000",
];

#[test]
fn a_replica_that_refuses_a_window_refuses_its_items() {
    let mut keys = host();
    keys.context.has_replicas = true;
    keys.say("BF.RESERVE k 0.001 1000 WINDOW SECONDS 100 SEED 1");
    let header = keys.log[0][3].iter().map(|byte| format!("{byte:02x}"));
    assert_eq!(header.collect::<String>(), REFUSED.concat());
    keys.say("BF.ADD k a");
    keys.say("BF.MADD k a b c");
    keys.say("BF.INSERT k ITEMS d");
    keys.context.now_ms += 30_000;
    keys.say("BF.ADD k e");
    keys.say("BF.ADD plain a");
    keys.say("BF.ADD plain b");
    let log = keys.log_text();
    assert!(log[0].starts_with("BF.LOADCHUNK k 1 "), "{log:?}");
    assert_eq!(
        log[1..6],
        [
            "BF.INSERT k NOCREATE ITEMS a",
            "BF.INSERT k NOCREATE ITEMS b c",
            "BF.INSERT k NOCREATE ITEMS d",
            "BF.ADVANCE k 1 AT 1700000025000",
            "BF.INSERT k NOCREATE ITEMS e",
        ]
    );
    // Every other filter is followed as before.
    assert_eq!(log[7..], ["BF.MADD plain a", "BF.ADD plain b"]);
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
}

#[test]
fn a_window_of_items_remembers_the_last_ones() {
    let mut keys = host();
    assert_eq!(
        keys.say("BF.INSERT k CAPACITY 8 ERROR 0.000001 WINDOW ITEMS ITEMS a"),
        "*1 :1"
    );
    for item in ["b", "c", "d", "e", "f", "g", "h"] {
        assert_eq!(keys.say(&format!("BF.ADD k {item}")), ":1");
    }
    keys.context.now_ms = 0;
    assert_eq!(keys.say("BF.MADD k i j"), "*2 :1 :1");
    assert_eq!(keys.say("BF.MEXISTS k a b"), "*2 :1 :1");
    assert_eq!(keys.say("BF.ADD k k"), ":1");
    assert_eq!(keys.say("BF.MEXISTS k a b c d"), "*4 :0 :0 :1 :1");
    let window = keys.filter("k").window().unwrap();
    assert_eq!((window.span, window.kept.len()), (Span::Items, 5));
}

/// More generations than a log can say begin as many as it can.
#[test]
fn a_log_reads_how_many_generations_began() {
    let mut keys = host();
    keys.say("BF.RESERVE w 0.01 100 WINDOW SECONDS 60");
    keys.context.now_ms += 600_000;
    assert_eq!(keys.say("BF.ADVANCE w 9223372036854775807"), "+OK");
    assert_eq!(keys.say("BF.ADD w x"), ":1");
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
}

#[test]
fn a_user_may_begin_a_generation() {
    let mut keys = host();
    keys.say("BF.RESERVE day 0.001 1000 WINDOW SECONDS 86400 GENERATIONS 1");
    keys.say("BF.ADD day a");
    assert_eq!(keys.say("BF.ADVANCE day"), "+OK");
    assert_eq!(keys.say("BF.EXISTS day a"), ":1");
    assert_eq!(keys.say("BF.ADVANCE day 1 AT 1700000000007"), "+OK");
    assert_eq!(keys.say("BF.EXISTS day a"), ":0");
    let log = keys.log_text();
    assert_eq!(
        log[2..],
        [
            "BF.ADVANCE day 1 AT 1700000000000",
            "BF.ADVANCE day 1 AT 1700000000000"
        ]
    );
    keys.say("BF.ADD plain a");
    for (command, answer) in [
        ("BF.ADVANCE none", "-ERR not found"),
        ("BF.ADVANCE plain", "-ERR the filter has no window"),
        ("BF.ADVANCE day 0", "-ERR bad count of generations"),
        ("BF.ADVANCE day x", "-ERR bad count of generations"),
        (
            "BF.ADVANCE day 1 ON 3",
            "-ERR bad time: AT and Unix milliseconds",
        ),
        (
            "BF.ADVANCE day AT -3",
            "-ERR bad time: AT and Unix milliseconds",
        ),
        (
            "BF.ADVANCE day 1 AT 3 4",
            "-ERR bad time: AT and Unix milliseconds",
        ),
    ] {
        let before = keys.log.len();
        assert!(
            keys.say(command).starts_with(answer),
            "{command}: {}",
            keys.say(command)
        );
        assert_eq!(keys.log.len(), before);
    }
}

#[test]
fn advancing_is_refused_only_where_it_takes_more_memory() {
    let command = everbloom_commands::find(b"bf.advance").unwrap();
    assert!(!command.flags.has(DENYOOM), "a host would refuse it");
    let mut keys = host();
    keys.say("BF.RESERVE k 0.000001 1000 WINDOW SECONDS 100 GENERATIONS 1");
    keys.say("BF.ADD k a");
    keys.context.free_bytes = 0;
    let oom = "-OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(keys.say("BF.ADVANCE k"), oom, "nothing is dropped");
    keys.context.free_bytes = u64::MAX;
    assert_eq!(keys.say("BF.ADVANCE k"), "+OK");
    keys.say("BF.ADD k b");
    keys.context.free_bytes = 0;
    assert_eq!(keys.say("BF.ADVANCE k"), "+OK");
    assert_eq!(keys.say("BF.MEXISTS k a b"), "*2 :0 :1");
    // An empty generation ends without taking memory.
    assert_eq!(keys.say("BF.ADVANCE k"), "+OK");
    assert_eq!(keys.say("BF.MEXISTS k a b"), "*2 :0 :0");
    // A log has no free memory to look at.
    let mut replica = Keyspace::default();
    let (created, rest) = keys.log.split_at(1);
    replica.replay(created);
    replica.context.free_bytes = 0;
    replica.replay(rest);
    assert_eq!(replica.dumps(), keys.dumps());
}

/// A year.
const YEAR: u64 = 365 * 86_400_000;

/// A window that a wrong clock has moved, as a log of an earlier release may have it, and a filter
/// of today.
fn moved_ahead() -> Keyspace {
    let mut keys = host();
    keys.say("BF.RESERVE k 0.0001 100 WINDOW SECONDS 100 SEED 1");
    keys.say("BF.ADD k a");
    keys.context.now_ms += YEAR;
    keys.say("BF.ADD k b");
    keys.context.now_ms -= YEAR;
    assert_eq!(keys.say("BF.MEXISTS k a b"), "*2 :0 :1");
    keys
}

#[test]
fn a_window_begins_again_after_a_clock_that_was_ahead() {
    let mut keys = moved_ahead();
    keys.context.now_ms += 1_000_000;
    // It stays for one window from now on, and no longer than the last items.
    assert_eq!(keys.say("BF.ADD k c"), ":1");
    assert_eq!(
        keys.log_text()[4..],
        ["BF.ADVANCE k 0 AT 1700001000000", "BF.MADD k c"]
    );
    keys.context.now_ms += 100_000;
    assert_eq!(keys.say("BF.MEXISTS k b c"), "*2 :1 :1");
    keys.context.now_ms += 25_000;
    assert_eq!(keys.say("BF.MEXISTS k b c"), "*2 :0 :0");
    // A replica follows; it has no clock of its own.
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
    assert_eq!(
        keys.say("BF.ADVANCE k 0 AT 5"),
        "-ERR bad count of generations"
    );
}

#[test]
fn a_users_time_is_not_ahead_of_the_clock() {
    let mut keys = host();
    keys.say("BF.RESERVE k 0.0001 100 WINDOW SECONDS 100 SEED 1");
    keys.say("BF.ADD k a");
    assert_eq!(keys.say("BF.ADVANCE k 1 AT 9000000000000000000"), "+OK");
    let window = keys.filter("k").window().unwrap();
    assert_eq!(window.next_generation(), Some(1_700_000_025_000));
    assert_eq!(keys.log_text()[2], "BF.ADVANCE k 1 AT 1700000000000");
    keys.context.now_ms += 100_000;
    assert_eq!(keys.say("BF.EXISTS k a"), ":0");
    // What another host's log has is taken, and mended at the next command with a clock.
    let far: Vec<Vec<u8>> = ["BF.ADVANCE", "k", "1", "AT", "9000000000000000000"]
        .map(|word| word.as_bytes().to_vec())
        .into();
    keys.say("BF.ADD k b");
    keys.log.push(far);
    for command in ["BF.ADD k c", "BF.ADVANCE k"] {
        let mut host = Keyspace::default();
        host.replay(&keys.log);
        let far = host.filter("k").window().unwrap();
        assert!(far.is_ahead_of(keys.context.now_ms));
        host.context.now_ms = keys.context.now_ms;
        host.say(command);
        let window = host.filter("k").window().unwrap();
        assert!(!window.is_ahead_of(keys.context.now_ms), "{command}");
        assert_eq!(host.say("BF.EXISTS k b"), ":1");
        host.context.now_ms += 125_000;
        assert_eq!(host.say("BF.MEXISTS k b c"), "*2 :0 :0");
    }
}

#[test]
fn a_merge_does_not_spread_a_wrong_clock() {
    let mut keys = moved_ahead();
    keys.say("BF.RESERVE all 0.01 100 WINDOW SECONDS 100 SEED 1");
    keys.say("BF.ADD all x");
    let before = keys.dumps();
    let ahead = "-ERR a window lies ahead of the clock: BF.ADVANCE its key first";
    assert_eq!(keys.say("BF.MERGE all k"), ahead);
    assert_eq!(keys.dumps(), before);
    assert_eq!(keys.say("BF.ADVANCE k"), "+OK");
    assert_eq!(keys.say("BF.MERGE all k"), "+OK");
    assert_eq!(keys.say("BF.MEXISTS all x b"), "*2 :1 :1");
    keys.context.now_ms += 125_000;
    assert_eq!(keys.say("BF.MEXISTS all x b"), "*2 :0 :0");
    // Empty, it begins at the next item.
    let mut keys = moved_ahead();
    assert_eq!(keys.say("BF.CLEAR k"), "+OK");
    assert_eq!(keys.say("BF.ADD k d"), ":1");
    keys.context.now_ms += 125_000;
    assert_eq!(keys.say("BF.EXISTS k d"), ":0");
}

/// The clock may go back by a generation without a window that begins again.
#[test]
fn a_merge_forgets_nothing_that_the_clock_has_not_ended() {
    let mut keys = host();
    let began = keys.context.now_ms;
    for key in ["one", "other"] {
        keys.say(&format!(
            "BF.RESERVE {key} 0.01 100 WINDOW SECONDS 60 GENERATIONS 1 SEED 1"
        ));
    }
    keys.context.now_ms = began + 59_000;
    keys.say("BF.ADD one b");
    keys.context.now_ms = began + 120_000;
    keys.say("BF.ADD other a");
    keys.context.now_ms = began + 60_000;
    let before = keys.dumps();
    let ahead = "-ERR a window lies ahead of the clock: merge again in 60 seconds";
    for names in ["one other", "other one", "all one other"] {
        assert_eq!(keys.say(&format!("BF.MERGE {names}")), ahead, "{names}");
        assert_eq!(keys.dumps(), before, "{names}");
    }
    assert_eq!(keys.say("BF.EXISTS one b"), ":1");
    // By now, the clock has ended what the merge drops.
    keys.context.now_ms = began + 120_000;
    assert_eq!(keys.say("BF.EXISTS one b"), ":0");
    assert_eq!(keys.say("BF.MERGE one other"), "+OK");
    assert_eq!(keys.say("BF.MEXISTS one a b"), "*2 :1 :0");
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
}

/// Threads read the clock at slightly different times.
#[test]
fn a_merge_that_loses_nothing_does_not_wait_for_the_clock() {
    let mut keys = host();
    let began = keys.context.now_ms;
    for key in ["one", "other"] {
        keys.say(&format!(
            "BF.RESERVE {key} 0.01 100 WINDOW SECONDS 100 SEED 1"
        ));
    }
    keys.say("BF.ADD one x");
    keys.context.now_ms = began + 25_000;
    keys.say("BF.ADD other y");
    keys.context.now_ms = began + 24_999;
    assert_eq!(keys.say("BF.MERGE one other"), "+OK");
    keys.context.now_ms = began + 100_000;
    assert_eq!(keys.say("BF.MEXISTS one x y"), "*2 :1 :1");
    let mut replica = Keyspace::default();
    replica.replay(&keys.log);
    assert_eq!(replica.dumps(), keys.dumps());
}

#[test]
fn the_limit_is_for_all_generations_of_a_window() {
    let mut keys = host();
    keys.context.max_filter_bytes = 1 << 20;
    let refused = "-ERR Insufficient memory to create filter";
    let window = "WINDOW SECONDS 64 GENERATIONS 64";
    let reply = keys.say(&format!("BF.RESERVE w 0.001 1000000 {window}"));
    assert_eq!(reply, refused);
    let insert = format!("BF.INSERT w ERROR 0.001 CAPACITY 1000000 {window} ITEMS a");
    assert_eq!(keys.say(&insert), refused);
    assert!(keys.keys.is_empty() && keys.log.is_empty());
    let reply = keys.say(&format!("BF.RESERVE w 0.001 100000 {window}"));
    assert_eq!(reply, "+OK");
    for item in 0..65 {
        keys.say(&format!("BF.ADD w {item}"));
        assert_eq!(keys.say("BF.ADVANCE w"), "+OK");
    }
    assert_eq!(keys.filter("w").layers().len(), 65);
    assert!(keys.filter("w").stream_len() <= 1 << 20);
}

#[test]
fn a_generation_that_a_limit_refuses_loses_nothing() {
    let mut keys = host();
    keys.say("BF.RESERVE k 0.001 1000 WINDOW SECONDS 100");
    keys.say("BF.ADD k a");
    keys.context.max_filter_bytes = keys.filter("k").stream_len();
    let refused = "-ERR Insufficient memory to create filter";
    assert_eq!(keys.say("BF.ADVANCE k"), refused);
    assert_eq!(keys.say("BF.MADD k a b"), "*2 :0 :1");
    // The clock still ends generations.
    keys.context.now_ms += 25_000;
    assert_eq!(keys.say("BF.MADD k a c"), "*2 :0 :1");
    assert_eq!(keys.filter("k").layers().len(), 2);
}

#[test]
fn a_header_of_a_window_of_any_size_is_refused() {
    let mut keys = host();
    keys.say("BF.RESERVE k 0.001 1000 WINDOW SECONDS 100");
    let good = keys.filter("k").parts();
    keys.context.max_filter_bytes = 1 << 20;
    let mut load = |key: &str, capacity, error_rate| {
        let mut parts = good.clone();
        let window = parts.window.as_mut().unwrap();
        (window.capacity, window.error_rate) = (capacity, error_rate);
        let header = header::encode_parts(&parts);
        let reply = keys.call(&[b"BF.LOADCHUNK", key.as_bytes(), b"1", &header]);
        reply.is_error()
    };
    assert!(!load("a", 1000, 0.001));
    assert!(load("b", 40_000_000_000, 0.001));
    assert!(load("b", 1000, 1e-300));
}

#[test]
fn a_window_is_blocked_and_has_its_words_in_order() {
    let mut keys = host();
    for window in [
        "WINDOW ITEMS",
        "window seconds 1 generations 64",
        "LAYOUT BLOCKED WINDOW ITEMS GENERATIONS 1 SEED 3",
        "WINDOW SECONDS 4294967296 EXPANSION 4",
        "NONSCALING WINDOW SECONDS 5",
    ] {
        assert_eq!(
            keys.say(&format!("BF.RESERVE k 0.01 10 {window}")),
            "+OK",
            "{window}"
        );
        assert_eq!(
            keys.say(&format!("BF.INSERT l {window} ITEMS a")),
            "*1 :1",
            "{window}"
        );
        keys.keys.clear();
    }
    let bad = "-ERR bad window";
    for (window, error) in [
        (
            "LAYOUT CLASSIC WINDOW ITEMS",
            "-ERR a window needs LAYOUT BLOCKED",
        ),
        ("WINDOW WINDOW", bad),
        ("WINDOW DAYS 3", bad),
        ("WINDOW SECONDS", bad),
        ("WINDOW SECONDS 0", bad),
        ("WINDOW SECONDS 1.5", bad),
        ("WINDOW SECONDS 4294967297", bad),
        ("WINDOW ITEMS GENERATIONS", bad),
        ("WINDOW ITEMS GENERATIONS 0", bad),
        ("WINDOW ITEMS GENERATIONS 65", bad),
    ] {
        let reply = keys.say(&format!("BF.RESERVE k 0.01 10 {window}"));
        assert!(reply.starts_with(error), "{window}: {reply}");
        let reply = keys.say(&format!("BF.INSERT k {window} ITEMS a"));
        assert!(reply.starts_with(error), "{window}: {reply}");
    }
    keys.context.classic_only = true;
    let refused = "-ERR blocked filters are refused while bf-redisbloom-compatible is on";
    assert_eq!(keys.say("BF.RESERVE k 0.01 10 WINDOW ITEMS"), refused);
    assert!(keys.keys.is_empty());
}

#[test]
fn a_dump_has_the_generations() {
    let mut keys = host();
    keys.say("BF.RESERVE k 0.001 100 WINDOW SECONDS 40");
    for item in 0..200 {
        keys.context.now_ms += 300;
        keys.say(&format!("BF.ADD k {item}"));
    }
    assert_eq!(keys.filter("k").window().unwrap().kept.len(), 5);
    let mut copy = host();
    for (iterator, piece) in pieces(keys.filter("k")) {
        let iterator = iterator.to_string();
        copy.call(&[b"BF.LOADCHUNK", b"k", iterator.as_bytes(), &piece]);
    }
    assert_eq!(copy.filter("k"), keys.filter("k"));
}

/// A dump that a rotation overtakes is refused where the copy would be wrong, and goes on where not.
#[test]
fn a_dump_survives_a_rotation_or_says_that_it_did_not() {
    let mut keys = host();
    keys.say("BF.RESERVE k 0.001 100 WINDOW SECONDS 40");
    for item in 0..200 {
        keys.context.now_ms += 300;
        keys.say(&format!("BF.ADD k {item}"));
    }
    let whole = pieces(keys.filter("k"));
    let before = keys.filter("k").clone();
    let window = before.window().unwrap();
    assert!(window.dropped > 0);
    assert_eq!(whole[0].0 as u64, window.dropped + 1);
    // The dump has come to the second layer when the first is dropped.
    assert_eq!(keys.say("BF.ADVANCE k"), "+OK");
    let outdated = "-ERR a generation of the window ended during this dump";
    let reply = keys.say(&format!("BF.SCANDUMP k {}", whole[0].0));
    assert!(reply.starts_with(outdated), "{reply}");
    let reply = keys.say("BF.SCANDUMP k 1");
    assert!(reply.starts_with(outdated), "{reply}");
    let mut copy = host();
    let mut load = |(iterator, piece): &(i64, Vec<u8>)| {
        let iterator = iterator.to_string();
        copy.call(&[b"BF.LOADCHUNK", b"k", iterator.as_bytes(), piece])
    };
    whole[..2].iter().for_each(|piece| drop(load(piece)));
    let rest = &pieces(keys.filter("k"))[1..whole.len() - 1];
    assert_eq!(rest, &whole[2..]);
    rest.iter().for_each(|piece| drop(load(piece)));
    assert_eq!(copy.filter("k"), &before);
    // What was read before BF.CLEAR does not mix with what came after.
    keys.say("BF.CLEAR k");
    let reply = keys.say(&format!("BF.SCANDUMP k {}", whole[1].0));
    assert!(reply.starts_with(outdated), "{reply}");
}

/// The number of dropped bytes is what a client says it is. At its maximum it begins at 0 again, so
/// that the filter can be written and read; and the iterators of a dump that is in progress stand
/// for nothing, instead of for other bytes.
#[test]
fn a_window_that_has_dropped_as_much_as_it_can_is_kept() {
    for change in [
        "BF.ADVANCE k",
        "BF.CLEAR k",
        "BF.MERGE k k",
        "BF.MADD k f g",
    ] {
        let mut keys = host();
        keys.say("BF.RESERVE made 0.001 8 WINDOW SECONDS 40 GENERATIONS 1");
        for item in ["a", "b", "c"] {
            keys.context.now_ms += 30_000;
            keys.say(&format!("BF.ADD made {item}"));
        }
        let mut parts = keys.filter("made").parts();
        parts.window.as_mut().unwrap().dropped = 1 << 62;
        let iterator = ((1_u64 << 62) + 1).to_string();
        let words = [b"BF.LOADCHUNK", &b"k"[..], iterator.as_bytes()];
        let header = header::encode_parts(&parts);
        let reply = keys.call(&[&words[..], &[&header]].concat());
        assert_eq!(reply, everbloom_resp::Reply::OK);
        let whole = pieces(keys.filter("k"));
        keys.context.now_ms += 70_000;
        assert!(!keys.say(change).starts_with('-'), "{change}");
        let window = keys.filter("k").window().unwrap();
        assert!(window.dropped < 1000, "{change}: {window:?}");
        keys.check_kept();
        for (iterator, _) in whole {
            let reply = keys.say(&format!("BF.SCANDUMP k {iterator}"));
            assert!(reply.starts_with("-ERR a generation"), "{change}: {reply}");
        }
    }
}

/// A filter that may not grow answers as many elements as it has announced, whichever generation
/// the items enter.
#[test]
fn a_full_generation_ends_an_array() {
    let mut keys = host();
    keys.say("BF.RESERVE k 0.001 8 NONSCALING WINDOW SECONDS 40");
    assert_eq!(keys.say("BF.MADD k a b"), "*2 :1 :1");
    let full = "-ERR non scaling filter is full";
    assert_eq!(keys.say("BF.MADD k c d e"), format!("*1 {full}"));
    keys.context.now_ms += 10_000;
    assert_eq!(keys.say("BF.MADD k c d e f"), format!("*3 :1 :1 {full}"));
}

#[test]
fn stats_show_the_generations() {
    let mut keys = host();
    keys.say("BF.RESERVE k 0.01 100 SEED 1 WINDOW SECONDS 40 GENERATIONS 2");
    keys.say("BF.MADD k a b c");
    keys.context.now_ms += 25_000;
    keys.say("BF.MADD k c d");
    let stats = keys.say("BF.STATS k");
    let window = "+window :40 +generations *2 *4 +age :25 +items :3 *4 +age :5 +items :2 \
                  +next-generation :15";
    assert!(stats.ends_with(window), "{stats}");
    assert!(stats.contains("+items :5 "), "{stats}");
    // What is past its time does not count, though it is still there.
    keys.context.now_ms += 40_000;
    assert!(keys.say("BF.STATS k").contains("+items :2 "));
    keys.say("BF.RESERVE last 0.01 100 WINDOW ITEMS");
    let stats = keys.say("BF.STATS last");
    let window = "+window $-1 +generations *1 *4 +age $-1 +items :0 +next-generation $-1";
    assert!(stats.ends_with(window), "{stats}");
}
