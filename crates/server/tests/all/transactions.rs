//! MULTI, EXEC, DISCARD and WATCH with several clients: what Redis answers, and that nobody sees
//! half a transaction.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{Client, OfRunning, Redis, server};
use everbloom_dev::StopOnDrop;
use everbloom_resp::Reply;
use everbloom_server::Settings;

/// Scenes: who sends what. Each begins with an empty keyspace and new connections.
const SCENES: &[&[(usize, &str)]] = &[
    &[
        (0, "MULTI"),
        (0, "SET a 1"),
        (0, "GET a"),
        (1, "GET a"),
        (0, "EXEC"),
        (1, "GET a"),
    ],
    &[
        (0, "EXEC"),
        (0, "DISCARD"),
        (0, "MULTI"),
        (0, "MULTI"),
        (0, "DISCARD"),
        (0, "EXEC"),
    ],
    &[
        (0, "MULTI"),
        (0, "NOSUCH x"),
        (0, "SET a 1"),
        (0, "EXEC"),
        (0, "GET a"),
    ],
    &[
        (0, "MULTI"),
        (0, "GET"),
        (0, "EXEC"),
        (0, "MULTI"),
        (0, "EXEC"),
    ],
    // An EXEC that is refused ends the transaction.
    &[
        (0, "EXEC x"),
        (0, "MULTI"),
        (0, "SET a 1"),
        (0, "EXEC x"),
        (0, "GET a"),
        (0, "EXEC"),
    ],
    &[
        (1, "SET a 1"),
        (0, "MULTI"),
        (0, "SET b 1"),
        (1, "CONFIG SET maxmemory 1"),
        (0, "EXEC"),
        (0, "GET b"),
        (0, "MULTI"),
        (0, "SET b 1"),
        (0, "EXEC"),
        (1, "CONFIG SET maxmemory 0"),
    ],
    &[
        (0, "SET a x"),
        (0, "MULTI"),
        (0, "INCR a"),
        (0, "SET b 1"),
        (0, "EXEC"),
        (0, "GET b"),
    ],
    // A queued UNWATCH ends no watch of its own EXEC, and of no later one.
    &[
        (0, "WATCH a"),
        (0, "MULTI"),
        (0, "SET a 1"),
        (0, "UNWATCH"),
        (0, "EXEC"),
        (1, "SET a 2"),
        (0, "MULTI"),
        (0, "GET a"),
        (0, "EXEC"),
    ],
    &[
        (0, "WATCH a"),
        (1, "SET a 1"),
        (0, "MULTI"),
        (0, "UNWATCH"),
        (0, "FLUSHALL"),
        (0, "EXEC"),
        (0, "GET a"),
    ],
    // Watched keys that others change, make, remove, or leave alone.
    &[
        (0, "WATCH a"),
        (1, "SET a 1"),
        (0, "MULTI"),
        (0, "SET a 2"),
        (0, "EXEC"),
        (0, "GET a"),
    ],
    &[
        (0, "WATCH a"),
        (1, "SET b 1"),
        (0, "MULTI"),
        (0, "SET a 2"),
        (0, "EXEC"),
        (0, "GET a"),
    ],
    &[
        (0, "SET a 1"),
        (0, "WATCH a"),
        (1, "DEL a"),
        (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC"),
    ],
    &[
        (0, "WATCH a"),
        (1, "DEL a"),
        (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC"),
    ],
    &[
        (0, "WATCH a b"),
        (1, "SET b 1"),
        (0, "UNWATCH"),
        (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC"),
    ],
    &[
        (0, "WATCH a"),
        (1, "SET a 1"),
        (0, "MULTI"),
        (0, "DISCARD"),
        (0, "MULTI"),
        (0, "EXEC"),
    ],
    &[
        (0, "WATCH a"),
        (0, "SET a 1"),
        (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC"),
    ],
    &[(0, "MULTI"), (0, "WATCH a"), (0, "EXEC")],
    &[
        (0, "SET a 1"),
        (0, "WATCH a"),
        (1, "EXPIRE a 100"),
        (0, "MULTI"),
        (0, "EXEC"),
    ],
    &[
        (0, "SET a 1"),
        (0, "WATCH a"),
        (1, "FLUSHALL"),
        (0, "MULTI"),
        (0, "EXEC"),
    ],
    &[(0, "WATCH a"), (1, "FLUSHALL"), (0, "MULTI"), (0, "EXEC")],
    &[
        (0, "SET a 1"),
        (0, "WATCH a"),
        (1, "RENAME a b"),
        (0, "MULTI"),
        (0, "EXEC"),
    ],
    &[
        (0, "SET a 1"),
        (0, "WATCH b"),
        (1, "RENAME a b"),
        (0, "MULTI"),
        (0, "EXEC"),
    ],
    &[
        (0, "WATCH a"),
        (1, "SELECT 1"),
        (1, "SET a 1"),
        (0, "MULTI"),
        (0, "EXEC"),
    ],
    &[
        (1, "SELECT 1"),
        (1, "SET a 1"),
        (0, "WATCH a"),
        (1, "SWAPDB 0 1"),
        (0, "MULTI"),
        (0, "EXEC"),
    ],
    &[(0, "WATCH a"), (1, "SWAPDB 0 1"), (0, "MULTI"), (0, "EXEC")],
    &[
        (0, "MULTI"),
        (0, "SELECT 3"),
        (0, "SET a 1"),
        (0, "EXEC"),
        (0, "GET a"),
        (1, "GET a"),
    ],
    &[
        (0, "MULTI"),
        (0, "FLUSHALL"),
        (0, "SET a 1"),
        (0, "DBSIZE"),
        (0, "KEYS *"),
        (0, "EXEC"),
    ],
    &[
        (0, "MULTI"),
        (0, "SET a 1"),
        (0, "RENAME a b"),
        (0, "COPY b c"),
        (0, "MGET a b c"),
        (0, "EXEC"),
    ],
    // A key that had expired when it was watched does not change when it is removed at last, whoever
    // removes it. (DEBUG SLEEP waits until the key has expired, without a race.)
    &[
        (0, "DEBUG SET-ACTIVE-EXPIRE 0"),
        (0, "PSETEX a 1 old"),
        (0, "DEBUG SLEEP 0.005"),
        (0, "WATCH a"),
        (1, "FLUSHDB"),
        (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC"),
        (0, "DEBUG SET-ACTIVE-EXPIRE 1"),
    ],
    &[
        (0, "DEBUG SET-ACTIVE-EXPIRE 0"),
        (0, "PSETEX a 1 old"),
        (0, "DEBUG SLEEP 0.005"),
        (0, "WATCH a"),
        (1, "SWAPDB 0 1"),
        (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC"),
        // Back again: an expired key in the place of none.
        (0, "WATCH a"),
        (1, "SWAPDB 0 1"),
        (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC"),
        (0, "DEBUG SET-ACTIVE-EXPIRE 1"),
    ],
    &[
        (0, "DEBUG SET-ACTIVE-EXPIRE 0"),
        (0, "PSETEX a 1 old"),
        (0, "DEBUG SLEEP 0.005"),
        (0, "WATCH a"),
        (1, "DEL a"),
        (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC"),
        (0, "DEBUG SET-ACTIVE-EXPIRE 1"),
    ],
    // It changes when it is there again, and one that expires meanwhile changes.
    &[
        (0, "DEBUG SET-ACTIVE-EXPIRE 0"),
        (0, "PSETEX a 1 old"),
        (0, "DEBUG SLEEP 0.005"),
        (0, "WATCH a"),
        (1, "SET a new"),
        (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC"),
        (0, "PSETEX b 50 old"),
        (0, "WATCH b"),
        (0, "DEBUG SLEEP 0.06"),
        (1, "FLUSHDB"),
        (0, "MULTI"),
        (0, "PING"),
        (0, "EXEC"),
        (0, "DEBUG SET-ACTIVE-EXPIRE 1"),
    ],
];

#[test]
fn each_reply_of_a_transaction_has_the_protocol_of_its_moment() {
    let running = server(Settings::default());
    let redis = Redis::start(&[]);
    for addr in [running.addr(), redis.as_ref().map(|redis| redis.addr)]
        .into_iter()
        .flatten()
    {
        let mut client = Client::connect(addr);
        client.ok("MULTI");
        for line in ["GET none", "HELLO 3", "GET none"] {
            assert_eq!(client.line(line), Reply::simple("QUEUED"));
        }
        client.send(&["EXEC"]);
        let (_, bytes) = client.raw_reply().unwrap();
        assert!(bytes.starts_with(b"*3\r\n$-1\r\n%"), "{bytes:?}");
        assert!(bytes.ends_with(b"_\r\n"), "{bytes:?}");
    }
}

/// From 7.4 on; Redis 7.0 refuses them.
#[test]
fn above_maxmemory_reads_are_queued() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    for line in ["SET a 1", "CONFIG SET maxmemory 1", "MULTI"] {
        client.ok(line);
    }
    for line in ["GET a", "BF.EXISTS f x"] {
        assert_eq!(client.line(line), Reply::simple("QUEUED"));
    }
    let replies = vec![Reply::bulk("1"), Reply::Integer(0)];
    assert_eq!(client.line("EXEC"), Reply::Array(replies));
    client.ok("MULTI");
    for (line, start) in [("SET a 2", "OOM"), ("EXEC", "EXECABORT")] {
        let reply = client.line(line);
        assert!(reply.as_error().unwrap().starts_with(start), "{reply:?}");
    }
}

#[test]
fn a_transaction_has_a_greatest_length() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    client.ok("CONFIG SET client-query-buffer-limit 1mb");
    client.ok("MULTI");
    let text = "x".repeat(200_000);
    for _ in 0..5 {
        assert_eq!(client.call(&["SET", "a", &text]), Reply::simple("QUEUED"));
    }
    assert!(client.call(&["SET", "a", &text]).is_error());
    assert_eq!(client.try_reply(), None);
    assert_eq!(Client::of(&running).line("EXISTS a"), Reply::Integer(0));
}

#[test]
fn scenes_play_as_in_redis() {
    let Some(redis) = Redis::start(&["--enable-debug-command", "yes"]) else {
        return;
    };
    let running = server(Settings {
        enable_debug_command: "yes".into(),
        ..Settings::default()
    });
    for (number, scene) in SCENES.iter().enumerate() {
        let mut ours = [Client::of(&running), Client::of(&running)];
        let mut theirs = [Client::connect(redis.addr), Client::connect(redis.addr)];
        assert_eq!(ours[0].line("FLUSHALL"), theirs[0].line("FLUSHALL"));
        for (step, (who, line)) in scene.iter().enumerate() {
            let (ours, theirs) = (ours[*who].line(line), theirs[*who].line(line));
            assert_eq!(ours, theirs, "scene {number}, step {step}: {line}");
        }
    }
}

/// A write that counts as one for WATCH although it changed nothing: RedisBloom's way.
#[test]
fn commands_on_filters_touch_what_they_name() {
    let running = server(Settings::default());
    let mut ours = [Client::of(&running), Client::of(&running)];
    let touching = [
        "BF.ADD k a",
        "BF.ADD k a",
        "BF.RESERVE k 0.01 100",
        "BF.MADD s x",
        "BF.INSERT none NOCREATE ITEMS a",
    ];
    let harmless = [
        "BF.EXISTS k a",
        "BF.ADD k",
        "BF.RESERVE k 2 100",
        "BF.CARD k",
        "BF.INFO k",
    ];
    ours[0].line("SET s text");
    let cases = touching
        .map(|line| (line, false))
        .into_iter()
        .chain(harmless.map(|l| (l, true)));
    for (line, holds) in cases {
        ours[0].line("WATCH k s none");
        ours[1].line(line);
        ours[0].line("MULTI");
        ours[0].line("PING");
        assert_eq!(
            ours[0].line("EXEC") != Reply::Null && holds,
            holds,
            "{line}"
        );
        ours[0].line("UNWATCH");
    }
}

/// A batch in a transaction is there whole or not at all, whoever looks.
#[test]
fn nobody_sees_half_a_transaction() {
    let running = server(Settings {
        io_threads: 4,
        ..Settings::default()
    });
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let _stop = StopOnDrop(&done);
            let mut client = Client::of(&running);
            for value in 0..3000 {
                for line in [
                    "MULTI",
                    &format!("MSET x {value} y {value}"),
                    "BF.ADD f it",
                    "EXEC",
                ] {
                    client.line(line);
                }
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = Client::of(&running);
                while !done.load(Ordering::Relaxed) {
                    client.line("MULTI");
                    client.line("GET x");
                    client.line("GET y");
                    match client.line("EXEC") {
                        Reply::Array(both) => assert_eq!(both[0], both[1]),
                        other => panic!("{other:?}"),
                    }
                    match client.line("MGET y x") {
                        Reply::Array(both) => assert_eq!(both[0], both[1]),
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
        writer.join().unwrap();
    });
}

/// Each client sets its own key only if the other one's is not set. Both must not succeed.
#[test]
fn of_two_that_watch_what_the_other_sets_one_at_most_succeeds() {
    const ROUNDS: usize = 3000;
    let running = server(Settings {
        io_threads: 4,
        ..Settings::default()
    });
    let meet = Barrier::new(2);
    let set = [AtomicBool::new(false), AtomicBool::new(false)];
    thread::scope(|scope| {
        for who in 0..2 {
            let (running, meet, set) = (&running, &meet, &set);
            scope.spawn(move || {
                let mut client = Client::of(running);
                for round in 0..ROUNDS {
                    client.line(&format!("WATCH {}:{round}", 1 - who));
                    let is_free = client.line(&format!("EXISTS {}:{round}", 1 - who));
                    client.line("MULTI");
                    client.line(&format!("SET {who}:{round} 1"));
                    meet.wait();
                    let ran = client.line("EXEC") != Reply::NullArray;
                    set[who].store(is_free == Reply::Integer(0) && ran, Ordering::Relaxed);
                    meet.wait();
                    let both = set.iter().all(|it| it.load(Ordering::Relaxed));
                    assert!(!both, "both in round {round}");
                    meet.wait();
                }
            });
        }
    });
}
