//! What outlives a server, and what a value leaves behind.

use std::fs;

use everbloom_dev::{peers, wait_for_ok};
use everbloom_resp::Reply;

use crate::support::{Client, Host, elements, from_redis_7, set, wait_for};

/// The filters of [`fill`] that have names of one word, in the classic layout and in the blocked.
pub const CLASSIC: [&str; 4] = ["grown", "fixed", "empty", "large"];
pub const BLOCKED: [&str; 4] = [
    "grown-blocked",
    "fixed-blocked",
    "empty-blocked",
    "large-blocked",
];

pub const CUCKOO: [&str; 4] = [
    "grown-cuckoo",
    "fixed-cuckoo",
    "empty-cuckoo",
    "large-cuckoo",
];

/// Those with a chosen error rate.
pub const KEYED: [&str; 4] = ["grown-keyed", "fixed-keyed", "empty-keyed", "large-keyed"];

/// All of them, each with the type that TYPE says.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let classic = CLASSIC.map(|key| (key, "MBbloom--"));
    classic
        .into_iter()
        .chain(BLOCKED.map(|key| (key, "everbloom")))
        .chain(CUCKOO.map(|key| (key, "MBbloomCF")))
        .chain(KEYED.map(|key| (key, "everblmCF")))
}

/// How the commands on a filter of this name begin.
pub fn family(key: &str) -> &'static str {
    if CUCKOO.contains(&key) || KEYED.contains(&key) {
        "CF"
    } else {
        "BF"
    }
}

/// Filters of several kinds, in both layouts: grown, fixed, reserved and empty, with binary items,
/// large, expiring. Keys of the hash come from a seed, and the digests of two servers compare.
pub fn fill(client: &mut Client) {
    for ([grown, fixed, empty, large], layout) in [
        (CLASSIC, "LAYOUT CLASSIC"),
        (BLOCKED, "LAYOUT BLOCKED SEED 7"),
    ] {
        client.ok(&format!("BF.RESERVE {grown} 0.001 10 {layout}"));
        for i in 0..500 {
            client.ok(&format!("BF.ADD {grown} item:{i}"));
        }
        client.ok(&format!("BF.RESERVE {fixed} 0.01 50 NONSCALING {layout}"));
        for i in 0..60 {
            client.line(&format!("BF.ADD {fixed} {i}"));
        }
        let parameters = "0.0001 1000 EXPANSION 4";
        client.ok(&format!("BF.RESERVE {empty} {parameters} {layout}"));
        client.ok(&format!("BF.RESERVE {large} 0.001 20000000 {layout}"));
        for batch in 0..20 {
            let items = (0..500).map(|i| format!("url/{batch}/{i}"));
            let command: Vec<String> = ["BF.MADD".into(), large.into()]
                .into_iter()
                .chain(items)
                .collect();
            client.call(&command);
        }
    }
    client.call(&[
        &b"BF.INSERT"[..],
        b"bin\r\n\0ary",
        b"ITEMS",
        b"",
        b"\0",
        b"\xff\r\n",
    ]);
    for (key, span) in [("window", "SECONDS 3600"), ("last", "ITEMS")] {
        client.ok(&format!("BF.RESERVE {key} 0.001 100 WINDOW {span}"));
        for round in 0..7 {
            client.ok(&format!("BF.MADD {key} {round} a b c"));
            client.ok(&format!("BF.ADVANCE {key}"));
        }
    }
    fill_cuckoo(client);
    client.ok("SELECT 5");
    client.ok("BF.ADD expiring soon");
    client.ok("PEXPIREAT expiring 4102444800000");
    client.ok("SET text beside");
    client.ok("SELECT 0");
}

/// The same of cuckoo filters: items were moved, tables added, and dropped by compactions.
fn fill_cuckoo(client: &mut Client) {
    let sizes = [
        "16 EXPANSION 2",
        "64 BUCKETSIZE 4 EXPANSION 0",
        "1000 MAXITERATIONS 7 EXPANSION 3",
        "20000000",
    ];
    fill_cuckoo_as(client, CUCKOO, sizes);
    let sizes = [
        "16 ERROR 0.01 SEED 7",
        "40 ERROR 0.3 SEED 7 EXPANSION 0",
        "1000 SEED 7 ERROR 1e-9 EXPANSION 3",
        "10000000 ERROR 0.001 SEED 7",
    ];
    fill_cuckoo_as(client, KEYED, sizes);
}

/// Reserved with these sizes and options.
fn fill_cuckoo_as(client: &mut Client, names: [&str; 4], sizes: [&str; 4]) {
    let [grown, fixed, _, large] = names;
    for (name, size) in names.iter().zip(sizes) {
        client.ok(&format!("CF.RESERVE {name} {size}"));
    }
    for i in 0..400 {
        client.ok(&format!("CF.ADD {grown} item:{i}"));
        if i % 3 == 0 {
            client.ok(&format!("CF.DEL {grown} item:{}", i / 2));
        }
    }
    let refused = "Filter is full";
    let full = (0..90).filter(|i| {
        let reply = client.line(&format!("CF.ADD {fixed} {i}"));
        reply.as_error().is_some_and(|text| text == refused)
    });
    assert!(full.count() > 25);
    for batch in 0..20 {
        let items = (0..500).map(|i| format!("url/{batch}/{i}"));
        let head = ["CF.INSERT", large, "ITEMS"].map(str::to_owned);
        client.call(&head.into_iter().chain(items).collect::<Vec<_>>());
    }
}

/// BF.STATS or CF.STATS, the same in every host to the last digit.
pub fn stats(client: &mut Client, family: &str, key: &str) -> Reply {
    client.ok(&format!("{family}.STATS {key}"))
}

/// All that can be asked of what [`fill`] made.
pub fn answers(client: &mut Client) -> Vec<Reply> {
    let mut answers = vec![Reply::simple(client.digest())];
    for (key, kind) in kinds() {
        assert_eq!(client.ok(&format!("TYPE {key}")), Reply::simple(kind));
        let family = family(key);
        answers.push(client.ok(&format!("{family}.DEBUG {key}")));
        answers.push(client.ok(&format!("{family}.INFO {key}")));
        answers.push(stats(client, family, key));
    }
    for [grown, _, _, large] in [CLASSIC, BLOCKED] {
        let known = format!("BF.MEXISTS {grown} item:0 item:499");
        assert_eq!(
            elements(client.ok(&known)),
            [Reply::Integer(1), Reply::Integer(1)]
        );
        answers.push(client.ok(&format!("BF.MEXISTS {grown} item:500 no")));
        let some = format!("BF.MEXISTS {large} url/0/0 url/19/499 url/20/0");
        answers.push(client.ok(&some));
    }
    for [grown, _, _, large] in [CUCKOO, KEYED] {
        assert_eq!(client.number(&format!("CF.EXISTS {grown} item:399")), 1);
        answers.push(client.ok(&format!("CF.MEXISTS {grown} item:0 item:1 item:300 no")));
        answers.push(client.ok(&format!("CF.COUNT {large} url/19/499")));
    }
    answers.push(client.call(&[
        &b"BF.MEXISTS"[..],
        b"bin\r\n\0ary",
        b"",
        b"\0",
        b"\xff\r\n",
        b"x",
    ]));
    client.ok("SELECT 5");
    answers.push(client.ok("BF.EXISTS expiring soon"));
    answers.push(Reply::Boolean(client.number("PTTL expiring") > 0));
    // Redis 7.0 on; an error elsewhere.
    answers.push(client.line("PEXPIRETIME expiring"));
    client.ok("SELECT 0");
    answers
}

#[test]
fn a_snapshot_brings_everything_back() {
    for compression in ["yes", "no"] {
        let Some(mut host) = Host::start(&["--rdbcompression", compression]) else {
            return;
        };
        let mut client = host.client();
        fill(&mut client);
        let before = answers(&mut client);
        client.ok("SAVE");
        host.restart("NOSAVE");
        assert_eq!(answers(&mut host.client()), before);
        // A child writes it while the parent goes on.
        let mut client = host.client();
        client.ok("BF.ADD grown later");
        client.ok("CF.DEL grown-cuckoo item:399");
        client.ok("CF.ADD grown-cuckoo item:399");
        let before = answers(&mut client);
        client.ok("BGSAVE");
        client.until("rdb_bgsave_in_progress", "0");
        client.until("rdb_last_bgsave_status", "ok");
        client.ok("BF.ADD grown after-the-snapshot");
        client.ok("CF.DEL grown-cuckoo item:399");
        host.kill();
        host.start_again();
        assert_eq!(answers(&mut host.client()), before);
    }
}

#[test]
fn a_log_brings_everything_back() {
    for preamble in ["yes", "no"] {
        let settings = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble];
        let Some(mut host) = Host::start(&settings) else {
            return;
        };
        fill(&mut host.client());
        let before = answers(&mut host.client());
        // The log alone, command by command.
        host.restart("");
        assert_eq!(answers(&mut host.client()), before);
        // A log that was rewritten, and what came after.
        let mut client = host.client();
        client.ok("BGREWRITEAOF");
        client.until("aof_rewrite_in_progress", "0");
        client.until("aof_last_bgrewrite_status", "ok");
        client.ok("BF.ADD grown later");
        client.ok("BF.INSERT made-later CAPACITY 7 EXPANSION 3 ITEMS a b c");
        for line in [
            "CF.DEL grown-keyed item:398",
            "CF.INSERTNX grown-keyed ITEMS a b a",
            "CF.COMPACT grown-keyed",
            "CF.RESERVE keyed-later 10 ERROR 0.01",
            "CF.DEL grown-cuckoo item:398",
            "CF.INSERTNX grown-cuckoo ITEMS a b a",
            "CF.COMPACT grown-cuckoo",
            "CF.ADDNX cuckoo-later x",
        ] {
            client.ok(line);
        }
        let before = answers(&mut client);
        host.restart("");
        assert_eq!(answers(&mut host.client()), before, "preamble {preamble}");
    }
}

/// What is logged is what changed, with every parameter of what was made.
#[test]
fn the_log_has_effects_and_not_requests() {
    if !from_redis_7() {
        return;
    }
    let Some(mut host) = Host::start(&["--appendonly", "yes"]) else {
        return;
    };
    let mut client = host.client();
    let lines = [
        "BF.ADD f a",
        "BF.ADD f a",
        "BF.MADD f a b a c",
        "BF.MADD f d e",
        "BF.RESERVE f 0.1 1",
        "BF.EXISTS f a",
        "CF.ADDNX c a",
        "CF.ADDNX c a",
        "CF.ADD c a",
        "CF.INSERTNX c ITEMS a b",
        "CF.INSERT c NOCREATE ITEMS a b",
        "CF.INSERT none NOCREATE ITEMS a",
        "CF.DEL c a",
        "CF.DEL c nobody",
        "CF.COMPACT c",
        "CF.COMPACT c",
        "CF.RESERVE full 4 EXPANSION 0",
        "CF.INSERT full ITEMS foo foo foo foo foo foo",
        "CF.ADD full foo",
        "CF.INSERT full ITEMS foo foo",
    ];
    for line in lines {
        client.line(line);
    }
    host.stop("");
    let folder = host.dir.path().join("appendonlydir");
    let log = fs::read(folder.join("appendonly.aof.1.incr.aof")).unwrap();
    let mut words = Vec::new();
    let mut rest = &log[..];
    while let Some((reply, used)) = everbloom_resp::decode(rest, &Default::default()).unwrap() {
        let command = elements(reply);
        let name = String::from_utf8(command[0].as_bytes().unwrap().to_vec()).unwrap();
        // Where it stands is the host's affair: before MULTI in old ones, behind it in new ones.
        if name != "SELECT" {
            words.push((name, command.len()));
        }
        rest = &rest[used..];
    }
    let words: Vec<(&str, usize)> = words
        .iter()
        .map(|(name, len)| (name.as_str(), *len))
        .collect();
    let wanted = [
        ("MULTI", 1),
        ("BF.LOADCHUNK", 4),
        ("BF.MADD", 3),
        ("EXEC", 1),
        ("BF.MADD", 4),
        ("BF.MADD", 4),
        ("MULTI", 1),
        ("CF.LOADCHUNK", 4),
        ("CF.INSERT", 4),
        ("EXEC", 1),
        ("CF.ADD", 3),
        ("CF.INSERT", 4),
        ("CF.INSERT", 5),
        ("CF.DEL", 3),
        ("CF.COMPACT", 2),
        ("CF.LOADCHUNK", 4),
        ("CF.INSERT", 7),
    ];
    assert_eq!(words, wanted);
}

/// A log that was written under other defaults makes the same filters.
#[test]
fn a_log_needs_no_defaults() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&["--appendonly", "yes"]) else {
        return;
    };
    let mut client = host.client();
    for i in 0..300 {
        client.ok(&format!("BF.ADD f {i}"));
    }
    client.ok("BF.INSERT g ERROR 0.2 ITEMS a");
    client.ok("BF.RESERVE h 0.2 10");
    // With a key that nobody chose.
    client.ok("BF.INSERT i LAYOUT BLOCKED ITEMS a");
    client.ok("BF.RESERVE j 0.2 10 LAYOUT BLOCKED");
    for (key, item) in (0..300).flat_map(|item| [("k", item), ("l", 1)]) {
        // Those of l become so many that it may take no more.
        client.line(&format!("CF.ADD {key} {item}"));
    }
    assert_eq!(client.error("CF.ADD l 1"), "Maximum expansions reached");
    for name in ["initial-size 1000", "bucket-size 100", "max-iterations 1"] {
        let (name, value) = name.split_once(' ').unwrap();
        set(&mut client, &format!("cf-{name}"), value);
    }
    client.ok("CF.ADD m a");
    client.ok("CF.RESERVE n 777 EXPANSION 3");
    client.ok("CF.DEL k 7");
    client.ok("CF.COMPACT k");
    let before = client.digest();
    client.ok("CONFIG SET appendfsync always");
    assert_eq!(client.number("BF.ADD f another"), 1);
    let before_more = client.digest();
    assert_ne!(before, before_more);
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (
        host.dir.path().join("appendonlydir"),
        dir.path().join("appendonlydir"),
    );
    fs::create_dir(&to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    let words = "ERROR_RATE 0.2 INITIAL_SIZE 7 EXPANSION 0 LAYOUT BLOCKED";
    let words: Vec<&str> = words.split(' ').collect();
    let other = Host::in_dir(dir, &["--appendonly", "yes"], &words).unwrap();
    assert_eq!(other.client().digest(), before_more);
}

#[test]
fn payloads_move_between_servers() {
    let Some(one) = Host::start(&[]) else { return };
    let two = Host::start(&[]).unwrap();
    let (mut from, mut to) = (one.client(), two.client());
    fill(&mut from);
    for (key, kind) in kinds() {
        let payload = from.ok(&format!("DUMP {key}"));
        let restore = |to: &mut Client, key: &str, more: &[u8]| {
            let payload = payload.as_bytes().unwrap();
            to.call(&[b"RESTORE", key.as_bytes(), b"0", payload, more])
        };
        assert_eq!(restore(&mut to, key, b"REPLACE"), Reply::OK);
        assert_eq!(restore(&mut to, key, b"REPLACE"), Reply::OK);
        let debug = format!("{}.DEBUG {key}", family(key));
        assert_eq!(to.ok(&debug), from.ok(&debug));
        assert_eq!(to.ok(&format!("DUMP {key}")), payload);
        assert_eq!(to.ok(&format!("TYPE {key}")), Reply::simple(kind));
    }
    to.ok("FLUSHALL");
    let mut before = answers(&mut from);
    for db in [0, 5] {
        from.ok(&format!("SELECT {db}"));
        for key in elements(from.ok("KEYS *")) {
            let (port, db) = (two.port.to_string(), db.to_string());
            let key = key.as_bytes().unwrap();
            let migrate = [
                b"MIGRATE",
                &b"127.0.0.1"[..],
                port.as_bytes(),
                key,
                db.as_bytes(),
                b"20000",
            ];
            assert_eq!(from.call(&migrate), Reply::OK);
        }
    }
    let mut after = answers(&mut to);
    // MIGRATE sends how long a key has left, so that the time of its end may be off by what the way
    // takes.
    let ends = [before.pop(), after.pop()].map(|end| end.unwrap().as_integer());
    if let [Some(before), Some(after)] = ends {
        assert!((after - before).abs() < 20_000, "{before} and then {after}");
    }
    assert_eq!(after, before);
    from.ok("SELECT 0");
    assert_eq!(from.number("DBSIZE"), 0);
}

/// What the host has allocated, once it has closed the connections that are no more.
fn used_memory(host: &Host) -> i64 {
    let mut client = host.client();
    client.until("connected_clients", "1");
    client.info("used_memory").parse().unwrap()
}

/// The host's own accounts: whatever is done with filters, their memory is given back.
#[test]
fn all_memory_is_given_back() {
    // Without a log of slow commands, which takes memory when the machine is busy.
    let Some(host) = Host::start(&["--slowlog-log-slower-than", "-1"]) else {
        return;
    };
    let round = |client: &mut Client| {
        fill(client);
        for (key, _) in kinds() {
            client.ok(&format!("COPY {key} copy REPLACE"));
            let payload = client.ok(&format!("DUMP {key}"));
            let payload = payload.as_bytes().unwrap();
            client.call(&[b"RESTORE", key.as_bytes(), b"0", payload, b"REPLACE"]);
            // One that breaks off in the middle of its bits, with a right checksum.
            let broken = crate::golden::envelope(&payload[..payload.len() * 2 / 3]);
            let reply = client.call(&[b"RESTORE", &b"broken"[..], b"0", &broken]);
            assert!(reply.is_error());
        }
        client.ok("DEBUG RELOAD");
        client.ok("UNLINK large large-blocked large-cuckoo");
        client.ok("DEL grown grown-blocked");
        client.ok("FLUSHALL");
        client.ok("SCRIPT FLUSH");
        wait_for("lazy frees", || {
            client.info("lazyfree_pending_objects") == "0"
        });
    };
    // Each on a connection of its own, whose buffers go with it.
    for _ in 0..2 {
        round(&mut host.client());
    }
    let before = used_memory(&host);
    for _ in 0..6 {
        round(&mut host.client());
    }
    // A round makes and frees filters of more than 100 MB. Buffers of its own the host frees
    // later.
    wait_for_ok("the memory", || {
        let after = used_memory(&host);
        let grown = format!("{before} and then {after}");
        (after - before < 50_000).then_some(()).ok_or(grown)
    });
}

/// Freed on another thread when it is large.
#[test]
fn large_filters_are_freed_lazily() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let makers = [
        ("BF.RESERVE", "0.01", "LAYOUT CLASSIC"),
        ("BF.RESERVE", "0.01", "LAYOUT BLOCKED"),
        ("CF.RESERVE", "", "BUCKETSIZE 4"),
    ];
    for (freed, (command, rate, options)) in makers.iter().enumerate() {
        for (key, capacity) in [("small", 100), ("large", 1_000_000)] {
            let line = format!("{command} {key} {rate} {capacity} {options}");
            client.call(&line.split_whitespace().collect::<Vec<_>>());
        }
        client.ok("UNLINK small");
        assert_eq!(client.info("lazyfreed_objects"), freed.to_string());
        client.ok("UNLINK large");
        client.until("lazyfreed_objects", &(freed + 1).to_string());
    }
}

/// Only hosts with an allocator of their own can do it, which Debian's package has not. CI builds
/// one, and says so by the variable.
#[test]
fn filters_are_defragmented() {
    for layout in ["CLASSIC", "BLOCKED"] {
        defragment(layout);
    }
}

fn defragment(layout: &str) {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    if client.line("CONFIG SET activedefrag yes").is_error() {
        let why = "the server cannot defragment";
        peers::skip_unless_set("EVERBLOOM_REQUIRE_DEFRAG", why);
        return;
    }
    for line in [
        "activedefrag no",
        "active-defrag-ignore-bytes 1",
        "active-defrag-threshold-lower 0",
        "active-defrag-cycle-min 60",
    ] {
        client.ok(&format!("CONFIG SET {line}"));
    }
    for i in 0..20_000 {
        // With more bits than are kept as positions.
        let items = (0..20).map(|item| format!(" {item}")).collect::<String>();
        client.ok(&format!(
            "BF.INSERT f{i} CAPACITY 300 LAYOUT {layout} ITEMS{items}"
        ));
    }
    for i in (0..20_000).filter(|i| i % 4 > 0) {
        client.ok(&format!("DEL f{i}"));
    }
    let before = client.digest();
    // Most of the memory is bits, so nothing but moving them makes the holes so much smaller.
    let holes =
        |client: &mut Client| -> u64 { client.info("allocator_frag_bytes").parse().unwrap() };
    wait_for("holes", || holes(&mut client) > 5 << 20);
    let at_first = holes(&mut client);
    client.ok("CONFIG SET activedefrag yes");
    wait_for("bits that moved", || holes(&mut client) < at_first / 5 * 3);
    assert_ne!(client.info("bf_bloom_defrag_hits"), "0");
    assert_eq!(client.digest(), before, "{layout}");
    for i in (0..20_000).step_by(400) {
        assert_eq!(client.number(&format!("BF.EXISTS f{i} 7")), 1, "{layout}");
    }
}
