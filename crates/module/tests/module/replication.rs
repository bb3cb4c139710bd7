//! Replicas: equal to their primary, whatever they are configured to.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use everbloom_dev::StopOnDrop;
use everbloom_resp::Reply;

use crate::lifetime::{answers, fill};
use crate::support::{Client, Host, from_redis_7, set, wait_for};

/// A setting that hosts have from Redis 7.0 on, under this name in all of them.
const LIMIT: &str = "--bf.bloom-memory-usage-limit";

/// Other defaults than the primary's, and a limit that its filters exceed.
const OTHER_DEFAULTS: [&str; 8] = [
    "ERROR_RATE",
    "0.2",
    "INITIAL_SIZE",
    "3",
    "EXPANSION",
    "0",
    "LAYOUT",
    "BLOCKED",
];

pub fn replica_of(primary: &Host, settings: &[&str], words: &[&str]) -> Host {
    let port = primary.port.to_string();
    let more = ["--replicaof", "127.0.0.1", port.as_str()];
    let known = !settings[..].contains(&LIMIT) || from_redis_7();
    let settings = if known { settings } else { &[] };
    let host = Host::with_args(&[settings, &more].concat(), words).unwrap();
    host.client().until("master_link_status", "up");
    host
}

/// Waits until the replicas have all that the primary has, and compares everything. Windows lose
/// generations as time passes, so what has changed meanwhile is compared again.
pub fn check_equal(primary: &Host, replicas: &[&Host]) {
    let mut client = primary.client();
    for replica in replicas {
        let mut replica = replica.client();
        wait_for("an equal replica", || {
            let digest = client.digest();
            let offset: u64 = client.info("master_repl_offset").parse().unwrap();
            wait_for("the replica's offset", || {
                replica.info("slave_repl_offset").parse::<u64>().unwrap() >= offset
            });
            let found = replica.digest();
            assert!(
                found == digest || client.digest() != digest,
                "{found} is not {digest}"
            );
            found == digest
        });
    }
}

/// Adds to many filters, in every way, until it is told to stop; answers how many commands.
fn load(client: &mut Client, seed: u64, stop: &AtomicBool) -> u64 {
    let mut i = seed;
    let mut commands = 0;
    while !stop.load(Ordering::Relaxed) {
        i = i
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (key, a, b) = (i >> 32 & 31, i >> 40 & 0xffff, i >> 50 & 0x3ff);
        // One in three is on cuckoo filters.
        if (i >> 20).is_multiple_of(3) {
            change_cuckoo(client, i);
            commands += 1;
            continue;
        }
        let reply = match i >> 60 {
            0..=5 => client.line(&format!("BF.ADD f{key} {a}")),
            6..=9 => client.line(&format!("BF.MADD f{key} {a} {b} {a} z{b}")),
            10 | 11 => client.line(&format!(
                "BF.INSERT i{key} CAPACITY 10 NONSCALING ITEMS {a} {b}"
            )),
            12 => client.line(&format!("BF.RESERVE r{b} 0.001 20 EXPANSION 3")),
            13 => client.line(&format!("BF.ADD r{b} {a}")),
            14 if a % 4 == 0 => client.line(&format!("BF.MERGE m{key} f{key} f{} r{b}", b & 31)),
            14 if a % 4 == 1 => client.line(&format!("BF.CLEAR f{key}")),
            14 if a % 4 == 2 => client.line(&format!("BF.SHRINK b{key} {b}")),
            14 => client.line(&format!("PEXPIRE r{b} 100")),
            15 if a % 8 == 1 => client.line(&format!("BF.ADVANCE w{key}")),
            15 if a % 8 == 2 => client.line(&format!("BF.MERGE w{key} w{}", b & 31)),
            15 if a % 8 > 4 => client.line(&format!(
                "BF.INSERT w{key} CAPACITY 10 SEED 7 WINDOW {} GENERATIONS 3 ITEMS {a} {b}",
                if key % 4 == 0 { "ITEMS" } else { "SECONDS 1" }
            )),
            // Keys of the hash are made on the primary, and only there.
            15 if a % 4 > 0 => client.line(&format!(
                "BF.INSERT b{key} CAPACITY 1000 LAYOUT BLOCKED ITEMS {a} {b}"
            )),
            _ => client.line(&format!("DEL i{key} b{key}")),
        };
        let expected = [
            "ERR item exists",
            "ERR non scaling filter is full",
            "ERR not found",
            "ERR the error rate would be",
            "ERR the filters have different windows",
            "ERR filters that remember a number of items",
            "ERR the filter needs a capacity of",
            "ERR the filter becomes smaller only for",
            "ERR no smaller size",
            "ERR capacity must be",
        ];
        let is_expected = |text: &str| expected.iter().any(|start| text.starts_with(start));
        assert!(reply.as_error().is_none_or(is_expected), "{reply:?}");
        commands += 1;
    }
    commands
}

/// Adds to cuckoo filters and deletes from them, in every way. They kick, grow, compact themselves
/// and are full: `c` grows, `g` grows by small tables, and `n` does not grow.
fn change_cuckoo(client: &mut Client, i: u64) {
    let key = format!(
        "{}{}",
        ["c", "g", "n", "rated"][(i >> 30 & 0xff) as usize % 4],
        i >> 38 & 3
    );
    let (item, other) = (i >> 40 & 0x7f, i >> 48 & 0x7f);
    let reply = match i >> 56 & 31 {
        0 => client.line(&match key.as_bytes()[0] {
            b'c' => format!("CF.RESERVE {key} 64 EXPANSION 2"),
            b'g' => format!("CF.RESERVE {key} 8 BUCKETSIZE 1 MAXITERATIONS 5"),
            // Keys of the hash are made on the primary, and only there, unless there is a seed.
            b'r' if item % 2 == 0 => format!("CF.RESERVE {key} 40 ERROR 0.01"),
            b'r' => format!("CF.RESERVE {key} 40 ERROR 0.01 SEED 7"),
            _ => format!("CF.RESERVE {key} 40 BUCKETSIZE 4 EXPANSION 0"),
        }),
        1 => client.line(&format!("DEL {key}")),
        2 if item % 2 == 0 => client.line(&format!("CF.COMPACT {key}")),
        2 => {
            let kind = key.trim_end_matches(|it: char| it.is_ascii_digit());
            client.line(&format!("CF.MERGE {kind}{} {key}", other & 3))
        }
        3..=9 => client.line(&format!("CF.ADD {key} {item}")),
        10..=12 => client.line(&format!("CF.ADDNX {key} {item}")),
        13 | 14 => client.line(&format!("CF.INSERT {key} ITEMS {item} {other} {item}")),
        15 => client.line(&format!("CF.INSERT {key} NOCREATE ITEMS {other} {item}")),
        16 | 17 => client.line(&format!("CF.INSERTNX {key} ITEMS {item} {other}")),
        _ => client.line(&format!("CF.DEL {key} {item}")),
    };
    let expected = [
        "ERR item exists",
        "ERR not found",
        "Not found",
        "Cuckoo filter was not found",
        "Filter is full",
        "Maximum expansions reached",
        "ERR the filters have different capacities",
        "ERR the filters have different hashes: create all with ERROR, or all without",
        "ERR the filters have different keys: create them with the same SEED",
        "ERR the filters do not grow in the same way",
        "ERR the tables have no room for the other filter's items: make both filters for all items \
         together",
    ];
    assert!(
        reply.as_error().is_none_or(|text| expected.contains(&text)),
        "{reply:?}"
    );
}

/// Other settings of cuckoo filters than the primary's; with these it would refuse and make others.
fn set_other_cuckoo_defaults(client: &mut Client) {
    for (name, value) in [
        ("cf-initial-size", "1000"),
        ("cf-bucket-size", "100"),
        ("cf-max-iterations", "1"),
        ("cf-expansion-factor", "4"),
        ("cf-max-expansions", "1"),
    ] {
        set(client, name, value);
    }
}

#[test]
fn replicas_under_load_are_equal_and_catch_up() {
    let Some(primary) = Host::start(&["--repl-backlog-size", "64mb"]) else {
        return;
    };
    let limits = [LIMIT, "1kb"];
    let steady = replica_of(&primary, &limits, &OTHER_DEFAULTS);
    let mut restarted = replica_of(&primary, &["--appendonly", "yes"], &[]);
    if from_redis_7() {
        set_other_cuckoo_defaults(&mut steady.client());
    }
    let stop = AtomicBool::new(false);
    let total: u64 = thread::scope(|scope| {
        let loads: Vec<_> = (0..3)
            .map(|seed| {
                let (mut client, stop) = (primary.client(), &stop);
                scope.spawn(move || load(&mut client, seed, stop))
            })
            .collect();
        let stopper = StopOnDrop(&stop);
        let mut client = primary.client();
        thread::sleep(std::time::Duration::from_millis(700));
        // The link breaks and the replica comes back: it gets what it missed.
        let before = client.info("sync_partial_ok");
        restarted.client().ok("CLIENT KILL TYPE master");
        wait_for("a partial sync", || {
            client.info("sync_partial_ok") != before
        });
        // The replica's process ends and starts again on its own log, with nothing to go on from.
        let before = client.info("sync_full");
        restarted.restart("NOSAVE");
        restarted.client().until("master_link_status", "up");
        assert_ne!(client.info("sync_full"), before);
        // A replica that loads while it still serves what it had.
        steady.client().ok("CONFIG SET repl-diskless-load swapdb");
        steady.client().ok("REPLICAOF NO ONE");
        steady.client().ok("BF.ADD only-here x");
        steady
            .client()
            .ok(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        steady.client().until("master_link_status", "up");
        thread::sleep(std::time::Duration::from_millis(500));
        drop(stopper);
        loads.into_iter().map(|load| load.join().unwrap()).sum()
    });
    assert!(total > 500, "{total}");
    // Nothing expires on a replica by itself; those that are due are deleted by the primary.
    thread::sleep(std::time::Duration::from_millis(300));
    wait_for("expiries", || {
        primary.client().text("INFO keyspace").contains("expires=0")
    });
    check_equal(&primary, &[&steady, &restarted]);
}

#[test]
fn a_replica_has_everything_that_its_primary_had_and_gets() {
    let Some(primary) = Host::start(&[]) else {
        return;
    };
    fill(&mut primary.client());
    let replica = replica_of(&primary, &[], &OTHER_DEFAULTS);
    check_equal(&primary, &[&replica]);
    let mut client = primary.client();
    client.ok("BF.ADD made-later x");
    client.ok("BF.INSERT blocked-later LAYOUT BLOCKED ITEMS x");
    client.ok("BF.ADD grown-blocked later");
    client.ok("COPY grown-blocked blocked-copy");
    client.ok("MULTI");
    client.ok("BF.MADD made-later y z");
    client.ok("BF.ADD another x");
    client.ok("EXEC");
    let script = "for i = 1, 200 do redis.call('BF.ADD', KEYS[1], i) end";
    client.call(&["EVAL", script, "1", "by-script"]);
    client.ok("COPY grown copied");
    for line in [
        "CF.ADD cuckoo-later x",
        "CF.ADD grown-cuckoo later",
        "COPY grown-cuckoo cuckoo-copy",
        "MULTI",
        "CF.INSERTNX cuckoo-later ITEMS x y z",
        "CF.DEL cuckoo-later x",
        "CF.ADD another-cuckoo x",
        "EXEC",
    ] {
        client.ok(line);
    }
    let script = "for i = 1, 300 do redis.call('CF.ADD', KEYS[1], i % 7)
        if i % 3 == 0 then redis.call('CF.DEL', KEYS[1], i % 5) end end";
    client.call(&["EVAL", script, "1", "cuckoo-by-script"]);
    check_equal(&primary, &[&replica]);
    assert_eq!(answers(&mut replica.client()), answers(&mut client));
    // It refuses its clients, not its primary.
    assert!(
        replica
            .client()
            .error("BF.ADD grown x")
            .starts_with("READONLY")
    );
}

/// An older module refuses the header of a window. Here the key is missing for another reason.
#[test]
fn a_replica_without_a_window_does_not_make_a_filter_that_never_forgets() {
    let Some(primary) = Host::start(&[]) else {
        return;
    };
    let replica = replica_of(&primary, &["--replica-read-only", "no"], &[]);
    let (mut client, mut follower) = (primary.client(), replica.client());
    client.ok("BF.RESERVE w 0.01 100 WINDOW SECONDS 3600");
    wait_for("the window", || follower.number("EXISTS w") == 1);
    follower.ok("DEL w");
    client.ok("BF.ADD w a");
    client.ok("BF.MADD w b c");
    client.ok("BF.INSERT w ITEMS d");
    client.ok("SET last 1");
    wait_for("what came last", || follower.number("EXISTS last") == 1);
    assert_eq!(follower.number("EXISTS w"), 0);
    if from_redis_7() {
        assert!(replica.log().contains("not found"), "{}", replica.log());
    }
}

/// Replicas and sub-replicas are told what changed, and nothing else.
#[test]
fn what_changes_nothing_is_not_sent() {
    let Some(primary) = Host::start(&[]) else {
        return;
    };
    let replica = replica_of(&primary, &[], &[]);
    let mut client = primary.client();
    client.ok("BF.RESERVE f 0.01 3 NONSCALING");
    client.ok("BF.MADD f a b c");
    check_equal(&primary, &[&replica]);
    client.ok("CF.RESERVE c 4 EXPANSION 0");
    client.ok("CF.INSERT c ITEMS foo foo foo foo");
    check_equal(&primary, &[&replica]);
    let calls = |host: &Host| {
        let stats = host.client().text("INFO commandstats");
        let ours = |line: &&str| {
            ["cmdstat_bf.", "cmdstat_cf."]
                .iter()
                .any(|it| line.starts_with(it))
        };
        // Sorted: the host lists a hash table, and resizes it while it is idle.
        let calls: BTreeSet<String> = stats.lines().filter(ours).map(str::to_owned).collect();
        assert!(!calls.is_empty());
        calls
    };
    let before = calls(&replica);
    for line in [
        "BF.ADD f a",
        "BF.MADD f a b",
        "BF.MADD f d e",
        "BF.INSERT f ITEMS a d",
        "BF.EXISTS f a",
        "CF.ADDNX c foo",
        "CF.INSERT c ITEMS foo bar",
        "CF.INSERTNX c ITEMS foo foo",
        "CF.DEL c nobody",
        "CF.COMPACT c",
    ] {
        client.ok(line);
    }
    client.error("CF.ADD c foo");
    client.error("CF.INSERT none NOCREATE ITEMS a");
    check_equal(&primary, &[&replica]);
    assert_eq!(calls(&replica), before);
    // A batch that fits in part is sent in part.
    client.ok("BF.RESERVE g 0.001 4 NONSCALING");
    let reply = client.ok("BF.MADD g a a b c d e f");
    let full = Reply::error("ERR non scaling filter is full");
    assert_eq!(crate::support::elements(reply).last(), Some(&full));
    check_equal(&primary, &[&replica]);
    assert_eq!(replica.client().number("BF.CARD g"), 4);
}

/// What an insertion that failed moved is where it was before, and nothing of it is sent.
#[test]
fn a_full_cuckoo_filter_changes_nothing_anywhere() {
    let Some(primary) = Host::start(&[]) else {
        return;
    };
    let replica = replica_of(&primary, &[], &[]);
    if from_redis_7() {
        set_other_cuckoo_defaults(&mut replica.client());
    }
    let mut client = primary.client();
    client.ok("CF.RESERVE full 64 EXPANSION 0");
    client.ok("CF.RESERVE small 8");
    let mut refused = 0;
    for item in 0..100 {
        let before = client.digest();
        let offset = client.info("master_repl_offset");
        if client.line(&format!("CF.ADD full {item}")).is_error() {
            refused += 1;
            assert_eq!(client.digest(), before, "{item}");
            let sent: u64 = client.info("master_repl_offset").parse().unwrap();
            // At most a PING and what replicas are asked for.
            assert!(sent - offset.parse::<u64>().unwrap() < 200);
        }
        // Some of its items find no room.
        client.ok(&format!("CF.INSERT full ITEMS {item} x{item}"));
        client.ok(&format!("CF.ADD small {}", item % 3));
        if item % 4 == 0 {
            client.ok(&format!("CF.DEL small {}", item % 5));
            client.ok(&format!("CF.DEL full {}", item / 4));
        }
    }
    assert!(refused > 10, "{refused}");
    check_equal(&primary, &[&replica]);
    for line in ["CF.DEBUG full", "CF.DEBUG small"] {
        assert_eq!(replica.client().ok(line), client.ok(line));
    }
}

/// Deny-oom is for clients: a replica whose memory is over its own limit takes what comes.
#[test]
fn a_replica_over_its_limit_follows() {
    let Some(primary) = Host::start(&[]) else {
        return;
    };
    let replica = replica_of(&primary, &[LIMIT, "100"], &[]);
    replica.client().ok("CONFIG SET maxmemory 1");
    replica
        .client()
        .ok("CONFIG SET replica-ignore-maxmemory yes");
    let mut client = primary.client();
    client.ok("BF.RESERVE f 0.01 1000");
    for i in 0..3000 {
        client.ok(&format!("BF.ADD f {i}"));
        client.ok(&format!("CF.ADD c {i}"));
    }
    check_equal(&primary, &[&replica]);
}

/// The primary goes, a replica takes over, and the rest follows it.
#[test]
fn a_replica_takes_over() {
    let Some(mut primary) = Host::start(&[]) else {
        return;
    };
    let one = replica_of(&primary, &[], &OTHER_DEFAULTS);
    let two = replica_of(&primary, &[], &[]);
    fill(&mut primary.client());
    check_equal(&primary, &[&one, &two]);
    let before = answers(&mut primary.client());
    primary.kill();
    one.client().ok("REPLICAOF NO ONE");
    two.client()
        .ok(&format!("REPLICAOF 127.0.0.1 {}", one.port));
    two.client().until("master_link_status", "up");
    assert_eq!(answers(&mut one.client()), before);
    assert_eq!(one.client().number("BF.ADD grown new-one"), 1);
    check_equal(&one, &[&two]);
}
