//! `everbloom serve` and the module take each other's files, logs and payloads.

use std::path::Path;

use everbloom_resp::Reply;
use everbloom_server::{Running, Server, Settings};

use crate::lifetime::{answers, family, fill, kinds, stats};
use crate::support::{Client, Host, elements, from_redis_7};

pub fn everbloom(settings: Settings) -> (Running, Client) {
    let settings = Settings {
        bind: vec!["127.0.0.1".into()],
        port: 0,
        enable_debug_command: "yes".into(),
        ..settings
    };
    let running = Server::start(settings).unwrap();
    running.wait_until_loaded();
    let client = Client::connect(running.addr().unwrap());
    (running, client)
}

pub fn in_dir(dir: &Path, appendonly: bool) -> Settings {
    let mut settings = Settings::default();
    settings.data.dir = Some(dir.into());
    settings.data.appendonly = appendonly;
    settings
}

/// What both sides answer alike; a digest is each host's own.
fn shared_answers(client: &mut Client) -> Vec<Reply> {
    answers(client).split_off(1)
}

/// INFO has the same sections on filters, field for field.
#[test]
fn info_says_the_same_of_the_same_filters() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&[]) else { return };
    let (_running, mut ours) = everbloom(Settings::default());
    let mut theirs = host.client();
    for line in [
        "BF.ADD one item",
        "BF.RESERVE large 0.001 1000000",
        "BF.RESERVE blocked 0.01 1000 LAYOUT BLOCKED",
        "BF.RESERVE gone 0.01 1000",
        "BF.RESERVE grown 0.01 2",
        "BF.MADD grown a b c d e f g h i j k l m n",
        "BF.MADD blocked a b c",
        "RENAME one other",
        "DEL gone",
        "SET text value",
        "SELECT 1",
        "BF.ADD elsewhere item",
    ] {
        ours.ok(line);
        theirs.ok(line);
    }
    // A section's name without the module's is the name of none.
    let names = [
        ("bf", 9),
        ("Bf_Bloom_Core_Metrics", 6),
        ("bf_bloom_defrag_metrics", 3),
        ("bloom_core_metrics", 0),
        ("bf keyspace", 9),
        ("modules", 9),
        ("everything", 9),
        ("all", 0),
        ("all bf", 9),
        ("default", 0),
        ("", 0),
    ];
    for (name, lines) in names {
        let shown = [&mut ours, &mut theirs].map(|client| {
            let info = client.text(&format!("INFO {name}"));
            let lines = info.lines().filter(|line| line.contains("bf_bloom"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        });
        assert_eq!(shown[0], shown[1], "INFO {name}");
        assert_eq!(shown[0].len(), lines, "INFO {name}");
    }

    // An exporter that runs the script finds every field.
    let script = include_str!("../../../../contrib/prometheus/filters.lua");
    let found = elements(theirs.call(&["EVAL", script, "0"]));
    let found = found.chunks(2).map(|pair| {
        let [name, value] = [&pair[0], &pair[1]].map(|word| word.as_bytes().unwrap());
        String::from_utf8([name, b":", value].concat()).unwrap()
    });
    let info = theirs.text("INFO bf");
    let fields = info.lines().filter(|line| line.starts_with("bf_"));
    assert_eq!(found.collect::<Vec<_>>(), fields.collect::<Vec<_>>());
    assert_eq!(info.lines().filter(|line| line.contains(':')).count(), 7);
}

#[test]
fn files_and_logs_go_both_ways() {
    if !from_redis_7() {
        return;
    }
    for appendonly in [false, true] {
        let word = if appendonly { "yes" } else { "no" };
        let dir = tempfile::tempdir().unwrap();
        // Ours, then the module's, then ours again.
        let (running, mut client) = everbloom(in_dir(dir.path(), appendonly));
        fill(&mut client);
        let before = shared_answers(&mut client);
        if !appendonly {
            client.ok("SAVE");
        }
        client.send(&["SHUTDOWN"]);
        running.wait().unwrap();
        let Some(mut host) = Host::in_dir(dir, &["--appendonly", word], &[]) else {
            return;
        };
        let mut client = host.client();
        assert_eq!(shared_answers(&mut client), before, "appendonly {word}");
        client.ok("BF.MADD grown by-the-module x y");
        client.ok("BF.MADD grown-blocked by-the-module x y");
        client.ok("BF.RESERVE made-by-the-module 0.05 70");
        client.ok("BF.INSERT blocked-by-the-module LAYOUT BLOCKED ITEMS x y z");
        client.ok("CF.INSERT grown-cuckoo ITEMS by-the-module x y");
        client.ok("CF.DEL grown-cuckoo y");
        client.ok("CF.ADD cuckoo-by-the-module x");
        let made = stats(&mut client, "BF", "blocked-by-the-module");
        let before = shared_answers(&mut client);
        if appendonly {
            client.ok("BF.ADD grown and-more");
            client.ok("BF.ADD grown-blocked and-more");
            client.ok("BGREWRITEAOF");
            client.until("aof_rewrite_in_progress", "0");
            client.ok("BF.ADD grown and-more-after");
            client.ok("CF.DEL grown-cuckoo item:399");
            client.ok("CF.ADD grown-cuckoo item:399");
            client.ok("CF.COMPACT grown-cuckoo");
            client.ok("BF.ADD grown-blocked and-more-after");
        } else {
            client.ok("SAVE");
        }
        let last = shared_answers(&mut client);
        host.stop("NOSAVE");
        let (_running, mut client) = everbloom(in_dir(host.dir.path(), appendonly));
        assert_eq!(shared_answers(&mut client), last, "appendonly {word}");
        assert!(appendonly || last == before);
        assert_eq!(client.number("BF.EXISTS grown by-the-module"), 1);
        assert_eq!(client.number("CF.EXISTS grown-cuckoo by-the-module"), 1);
        assert_eq!(client.number("CF.COUNT cuckoo-by-the-module x"), 1);
        assert_eq!(client.number("BF.EXISTS grown-blocked by-the-module"), 1);
        assert_eq!(stats(&mut client, "BF", "blocked-by-the-module"), made);
        assert_eq!(client.number("BF.EXISTS blocked-by-the-module z"), 1);
        assert_eq!(client.number("BF.CARD made-by-the-module"), 0);
    }
}

/// We compress them ourselves, and the host decompresses them.
#[test]
fn large_filters_of_few_items_go_both_ways() {
    const MEGABYTE: u64 = 1_000_000;
    let size = |dir: &Path| dir.join("dump.rdb").metadata().unwrap().len();
    let dir = tempfile::tempdir().unwrap();
    let (running, mut client) = everbloom(in_dir(dir.path(), false));
    for (key, layout) in [("c", "CLASSIC"), ("b", "BLOCKED SEED 7")] {
        client.ok(&format!("BF.RESERVE {key} 0.001 100000000 LAYOUT {layout}"));
        client.ok(&format!("BF.MADD {key} x y z"));
    }
    client.ok("SAVE");
    let before = ["c", "b"].map(|key| stats(&mut client, "BF", key));
    client.send(&["SHUTDOWN", "NOSAVE"]);
    running.wait().unwrap();
    assert!(size(dir.path()) < 6 * MEGABYTE, "{}", size(dir.path()));
    let Some(mut host) = Host::in_dir(dir, &[], &[]) else {
        return;
    };
    let mut module = host.client();
    assert_eq!(["c", "b"].map(|key| stats(&mut module, "BF", key)), before);
    assert_eq!(module.number("BF.EXISTS c z"), 1);
    assert_eq!(module.number("BF.EXISTS b z"), 1);
    module.ok("SAVE");
    host.stop("NOSAVE");
    assert!(size(host.dir.path()) < 6 * MEGABYTE);
    let (_running, mut client) = everbloom(in_dir(host.dir.path(), false));
    assert_eq!(["c", "b"].map(|key| stats(&mut client, "BF", key)), before);
}

#[test]
fn payloads_and_chunks_go_both_ways() {
    let Some(host) = Host::start(&[]) else { return };
    let (_running, mut ours) = everbloom(Settings::default());
    let mut module = host.client();
    fill(&mut ours);
    fill(&mut module);
    for (key, _) in kinds() {
        move_key(&mut ours, &mut module, key);
        move_key(&mut module, &mut ours, key);
        let [here, there] = [&mut ours, &mut module].map(|it| chunks(it, family(key), key));
        assert_eq!(here, there, "{key}");
    }
}

/// Takes a key over under another name, by DUMP, and compares what it has there.
fn move_key(from: &mut Client, to: &mut Client, key: &str) {
    let payload = from.ok(&format!("DUMP {key}"));
    let payload = payload.as_bytes().unwrap();
    let restored = to.call(&[b"RESTORE", &b"moved"[..], b"0", payload, b"REPLACE"]);
    assert_eq!(restored, Reply::OK, "{key}");
    let family = family(key);
    for command in [
        "TYPE",
        &format!("{family}.DEBUG"),
        &format!("{family}.INFO"),
    ] {
        let expected = from.ok(&format!("{command} {key}"));
        assert_eq!(to.ok(&format!("{command} moved")), expected, "{key}");
    }
    assert_eq!(
        stats(to, family, "moved"),
        stats(from, family, key),
        "{key}"
    );
    assert_eq!(
        chunks(to, family, "moved"),
        chunks(from, family, key),
        "{key}"
    );
}

pub fn chunks(client: &mut Client, family: &str, key: &str) -> Vec<Reply> {
    let mut chunks = Vec::new();
    let mut iterator = 0;
    loop {
        let piece = elements(client.ok(&format!("{family}.SCANDUMP {key} {iterator}")));
        iterator = piece[0].as_integer().unwrap();
        if iterator == 0 {
            return chunks;
        }
        chunks.push(piece[1].clone());
    }
}
