//! `everbloom copy` and `everbloom compare`, between servers of ours and Redis with the module.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use everbloom_dev::{Client, Redis, module, wait_for};
use everbloom_resp::{Reply, encode};
use serde_json::Value as Json;
use support::{EVERBLOOM, Outcome, Server, folder, root, run};

/// Held by the tests that need the machine for themselves: what they interrupt must take a while.
static QUIET: Mutex<()> = Mutex::new(());

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

fn command(subcommand: &str, from: &str, to: &str, more: &[&str]) -> Command {
    let mut command = Command::new(EVERBLOOM);
    command.arg(subcommand).args(more).args([from, to]);
    command.env_remove("REDISCLI_AUTH");
    command
}

fn copy(from: u16, to: u16, more: &[&str]) -> Outcome {
    run(&mut command("copy", &url(from), &url(to), more))
}

fn compare(from: u16, to: u16, more: &[&str]) -> Outcome {
    run(&mut command("compare", &url(from), &url(to), more))
}

#[track_caller]
fn assert_code(outcome: &Outcome, code: i32) {
    assert_eq!(outcome.status.code(), Some(code), "{outcome:?}");
}

/// A server that keeps nothing.
fn server() -> Server {
    Server::with(&["--save", "", "--appendonly", "no"])
}

/// redis-server with the module.
fn redis(more: &[&str]) -> Option<Redis> {
    let path = module().to_str().unwrap();
    Redis::start(&[&["--loadmodule", path], more].concat())
}

fn add(client: &mut Client, key: &str, items: std::ops::Range<u32>) {
    for item in items.clone().step_by(1000) {
        let mut words = vec!["BF.MADD".to_owned(), key.to_owned()];
        words.extend((item..items.end.min(item + 1000)).map(|item| format!("item:{item}")));
        assert!(!client.call(&words).is_error());
    }
}

/// Filters of all kinds, and a key that is none.
fn fill(client: &mut Client) {
    client.ok("BF.RESERVE one 0.01 1000");
    client.ok("BF.RESERVE layers 0.01 10");
    client.ok("BF.RESERVE full 0.01 10 NONSCALING");
    client.ok("BF.RESERVE blocked 0.001 10 LAYOUT BLOCKED");
    // Two pieces in one layer.
    client.ok("BF.RESERVE large 0.01 15000000");
    client.ok("BF.RESERVE empty 0.01 100");
    for (key, count) in [
        ("one", 500),
        ("layers", 3000),
        ("full", 8),
        ("blocked", 2000),
        ("large", 9),
    ] {
        add(client, key, 0..count);
    }
    for name in [&b"\xff\x00 \"name\r\n"[..], b"", b"a}b", b"{tag}", b"100%"] {
        client.call(&[b"BF.ADD", name, b"item"]);
    }
    client.ok("BF.ADD short item");
    client.ok("PEXPIRE short 1000000");
    client.ok("SET text value");
}

const FILLED: usize = 12;

/// What a client sees of a key.
fn seen(client: &mut Client, key: &[u8]) -> Vec<Reply> {
    ["TYPE", "BF.INFO", "BF.CARD", "BF.DEBUG"]
        .map(|command| client.call(&[command.as_bytes(), key]))
        .to_vec()
}

fn keys(client: &mut Client) -> Vec<Vec<u8>> {
    let keys = client.ok("KEYS *").into_elements().unwrap();
    let mut keys: Vec<_> = keys
        .iter()
        .map(|key| key.as_bytes().unwrap().to_vec())
        .collect();
    keys.sort();
    keys
}

/// Copies what `fill` made and looks at it at the other side.
fn copy_all_kinds(from: u16, to: u16) {
    let [mut old, mut new] = [from, to].map(|port| Client::connect(("127.0.0.1", port)));
    fill(&mut old);
    let outcome = copy(from, to, &[]);
    assert_code(&outcome, 0);
    let text = outcome.stdout;
    assert!(
        text.starts_with(&format!("{FILLED} filters copied, ")),
        "{text}"
    );
    assert!(text.ends_with("\n1 key of other types left\n"), "{text}");
    assert_eq!(outcome.stderr, "", "a pipe gets no progress");

    assert_eq!(keys(&mut new).len(), FILLED);
    for key in keys(&mut new) {
        assert_eq!(
            seen(&mut new, &key),
            seen(&mut old, &key),
            "{}",
            key.escape_ascii()
        );
    }
    for item in 0..3000 {
        assert_eq!(new.number(&format!("BF.EXISTS layers item:{item}")), 1);
    }
    assert!((900_000..1_000_001).contains(&new.number("PTTL short")));
    assert_eq!(
        new.number("PTTL one"),
        -1,
        "a temporary key has become an endless one"
    );

    let again = copy(from, to, &[]).success();
    assert!(again.starts_with("0 filters copied, 0 B in "), "{again}");
    assert!(
        again.contains("\n12 filters skipped: equal at the destination\n"),
        "{again}"
    );
    let none = "12 equal, 0 different, 0 only at the old server, 0 only at the new one\n";
    assert_eq!(compare(from, to, &[]).success(), none);
    assert_eq!(copy(from, to, &["--quiet"]).success(), "");
}

#[test]
fn filters_of_all_kinds_between_servers_of_ours() {
    let (old, new) = (server(), server());
    copy_all_kinds(old.port, new.port);
}

#[test]
fn filters_of_all_kinds_from_and_to_redis_with_the_module() {
    let Some(host) = redis(&[]) else { return };
    let ours = server();
    copy_all_kinds(ours.port, host.addr.port());
    host_flush(&host);
    ours.client().ok("FLUSHALL");
    copy_all_kinds(host.addr.port(), ours.port);
}

fn host_flush(host: &Redis) {
    Client::connect(host.addr).ok("FLUSHALL");
}

/// Filters that RedisBloom dumped, old options included.
#[test]
fn recorded_filters_of_redisbloom() {
    let Some(host) = redis(&[]) else { return };
    let mut client = Client::connect(host.addr);
    let files = fs::read_dir(root().join("conformance/golden/scandump")).unwrap();
    let mut count = 0;
    for file in files {
        let json: Json = serde_json::from_slice(&fs::read(file.unwrap().path()).unwrap()).unwrap();
        let name = json["name"].as_str().unwrap();
        for chunk in json["chunks"].as_array().unwrap() {
            let data = BASE64_STANDARD
                .decode(chunk["data"].as_str().unwrap())
                .unwrap();
            let iterator = chunk["iter"].to_string();
            let words: [&[u8]; 4] = [b"BF.LOADCHUNK", name.as_bytes(), iterator.as_bytes(), &data];
            assert_eq!(client.call(&words), Reply::OK);
        }
        count += 1;
    }
    assert!(count > 5);
    let ours = server();
    copy(host.addr.port(), ours.port, &[]).success();
    let mut new = ours.client();
    for key in keys(&mut client) {
        assert_eq!(
            seen(&mut new, &key),
            seen(&mut client, &key),
            "{}",
            key.escape_ascii()
        );
    }
    let text = compare(host.addr.port(), ours.port, &[]).success();
    assert!(text.starts_with(&format!("{count} equal, ")), "{text}");
}

#[test]
fn databases_patterns_and_passwords() {
    let old = Server::with(&["--appendonly", "no", "--requirepass", "s3/cr@t"]);
    let new = server();
    let mut client = old.client();
    client.ok("AUTH s3/cr@t");
    client.ok("SET text value");
    client.ok("SELECT 3");
    client.ok("BF.ADD a:1 x");
    client.ok("BF.ADD b:1 x");
    let from = format!("redis://:s3%2fcr%40t@127.0.0.1:{}/3", old.port);
    let to = format!("redis://127.0.0.1:{}/5", new.port);
    let text = run(&mut command("copy", &from, &to, &["--match", "a:*"])).success();
    assert!(text.starts_with("1 filter copied, "), "{text}");
    let line = "\ndatabase 0 has keys too: copy it with /0 behind the URLs\n";
    assert!(text.ends_with(line), "{text}");
    let mut client = new.client();
    assert_eq!(client.number("DBSIZE"), 0);
    client.ok("SELECT 5");
    assert_eq!(keys(&mut client), [b"a:1"]);
    let differing = run(&mut command("compare", &from, &to, &[]));
    assert_code(&differing, 1);
    let line = format!("\"b:1\": missing at {to}\n");
    assert!(differing.stdout.starts_with(&line), "{differing:?}");
    run(&mut command("compare", &from, &to, &["--match", "a:*"])).success();

    // The password of the environment is for the server that has one.
    let from = format!("{}/3", url(old.port));
    run(command("copy", &from, &to, &[]).env("REDISCLI_AUTH", "s3/cr@t")).success();
    assert_eq!(keys(&mut client), [b"a:1", b"b:1"]);
    for (login, code) in [("", 1), (":wrong-secret@", 1), (":%@", 2)] {
        let from = format!("redis://{login}127.0.0.1:{}", old.port);
        let outcome = run(&mut command("copy", &from, &to, &[]));
        assert_code(&outcome, code);
        assert!(outcome.stderr.starts_with("everbloom: "), "{outcome:?}");
        assert!(!outcome.stderr.contains("wrong-secret"), "{outcome:?}");
    }
}

#[test]
fn what_the_destination_holds_stays() {
    let (old, new) = (server(), server());
    let (mut a, mut b) = (old.client(), new.client());
    for key in ["text", "other", "further", "earlier", "half", "fine"] {
        a.ok(&format!("BF.RESERVE {key} 0.01 100"));
        add(&mut a, key, 0..90);
    }
    // Another copy works on it.
    a.ok("BF.ADD seen:everbloom-copy:1 x");
    b.ok("SET text value");
    b.ok("BF.RESERVE other 0.02 100");
    // It has one item more.
    copy(old.port, new.port, &["--match", "further"]).success();
    b.ok("BF.ADD further new");
    // The source goes on and grows.
    copy(old.port, new.port, &["--match", "earlier"]).success();
    add(&mut a, "earlier", 90..500);
    // Another program ended after the header.
    let dump = a.ok("BF.SCANDUMP half 0").into_elements().unwrap();
    b.call(&[
        &b"BF.LOADCHUNK"[..],
        b"half",
        b"1",
        dump[1].as_bytes().unwrap(),
    ]);
    let kept: Vec<_> = ["other", "further"]
        .map(|key| seen(&mut b, key.as_bytes()))
        .into();

    let outcome = copy(old.port, new.port, &[]);
    assert_code(&outcome, 1);
    assert!(
        outcome.stdout.starts_with("3 filters copied, "),
        "{outcome:?}"
    );
    assert!(
        outcome
            .stdout
            .contains("\n3 filters not copied, see above\n"),
        "{outcome:?}"
    );
    for line in [
        "\"text\": the destination holds a value of type string; --replace overwrites it",
        "\"other\": the destination holds another filter (error rate 0.005 at FROM, 0.01 at TO)",
        "\"further\": the destination holds another filter (items 90 at FROM, 91 at TO; ",
    ] {
        assert!(outcome.stderr.contains(line), "{line}\n{}", outcome.stderr);
    }
    assert_eq!(b.text("GET text"), "value");
    let now: Vec<_> = ["other", "further"]
        .map(|key| seen(&mut b, key.as_bytes()))
        .into();
    assert_eq!(now, kept);

    let text = copy(old.port, new.port, &["--replace"]).success();
    assert!(text.starts_with("3 filters copied, "), "{text}");
    compare(old.port, new.port, &[]).success();
    assert_eq!(keys(&mut b).len(), 6);
}

/// What happens at the destination between the comparison and the renaming.
#[test]
fn what_changes_meanwhile_is_not_overwritten() {
    let (old, new) = (server(), server());
    let mut a = old.client();
    for key in ["new", "earlier"] {
        a.ok(&format!("BF.RESERVE {key} 0.01 60000000"));
        add(&mut a, key, 0..10);
    }
    copy(old.port, new.port, &["--match", "earlier"]).success();
    add(&mut a, "earlier", 10..20);
    for (key, line, message) in [
        (
            "new",
            "SET new value",
            "somebody else made a key of this name",
        ),
        (
            "earlier",
            "BF.ADD earlier mine",
            "somebody changed it at the destination meanwhile",
        ),
    ] {
        let done = AtomicBool::new(false);
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = new.client();
                while !done.load(Ordering::Relaxed) {
                    if keys(&mut client).iter().any(|name| name.len() > 20) {
                        client.ok(line);
                        return;
                    }
                }
            });
            let outcome = copy(old.port, new.port, &["--match", key]);
            done.store(true, Ordering::Relaxed);
            outcome
        });
        assert_code(&outcome, 1);
        assert!(outcome.stderr.contains(message), "{outcome:?}");
    }
    let mut b = new.client();
    assert_eq!(
        keys(&mut b),
        [&b"earlier"[..], b"new"],
        "temporary keys are gone"
    );
    assert_eq!(b.text("GET new"), "value");
    assert_eq!(b.number("BF.EXISTS earlier mine"), 1);
}

#[test]
fn a_server_without_rename_says_so() {
    let Some(host) = redis(&["--rename-command", "RENAMENX", ""]) else {
        return;
    };
    let old = server();
    old.client().ok("BF.ADD seen x");
    let outcome = copy(old.port, host.addr.port(), &[]);
    assert_code(&outcome, 1);
    assert!(
        outcome.stderr.contains("does not let us rename"),
        "{outcome:?}"
    );
    assert_eq!(Client::connect(host.addr).number("DBSIZE"), 0);
}

#[test]
fn servers_that_are_of_no_use() {
    let ours = server();
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for (from, to) in [(ours.port, gone), (gone, ours.port)] {
        let outcome = copy(from, to, &[]);
        assert_code(&outcome, 2);
        let text = format!("everbloom: cannot connect to 127.0.0.1 port {gone}");
        assert!(outcome.stderr.starts_with(&text), "{outcome:?}");
    }
    let Some(plain) = Redis::start(&[]) else {
        return;
    };
    let plain = plain.addr.port();
    for (from, to, name) in [
        (ours.port, plain, "BF.LOADCHUNK"),
        (plain, ours.port, "BF.SCANDUMP"),
    ] {
        let outcome = copy(from, to, &[]);
        assert_code(&outcome, 1);
        let text = format!(
            "everbloom: {} has no {name}: load the module there",
            url(plain)
        );
        assert!(outcome.stderr.starts_with(&text), "{outcome:?}");
    }
    // A full server ends the copy, and not with one line for each filter.
    let full = Server::with(&["--appendonly", "no", "--maxmemory", "1mb"]);
    full.client().ok("SETRANGE text 2000000 x");
    for key in 0..30 {
        ours.client().ok(&format!("BF.ADD {key} x"));
    }
    let outcome = copy(ours.port, full.port, &[]);
    assert_code(&outcome, 1);
    assert!(
        outcome.stderr.contains(" refuses: OOM command not allowed"),
        "{outcome:?}"
    );
    assert!(outcome.stderr.lines().count() < 5, "{outcome:?}");
    assert_eq!(keys(&mut full.client()), [b"text"]);
    full.client().ok("DEL text");
    ours.client().ok("BF.RESERVE large 0.01 10000000");
    let outcome = copy(ours.port, full.port, &["--match", "large"]);
    assert_code(&outcome, 1);
    assert!(
        outcome
            .stderr
            .contains("no memory for a filter of this size"),
        "{outcome:?}"
    );
}

#[test]
fn blocked_filters_only_go_to_servers_that_know_them() {
    let old = server();
    // It plays RedisBloom, which does not know the header.
    let Some(host) = redis(&[]) else { return };
    let mut client = Client::connect(host.addr);
    client.ok("CONFIG SET bf.bf-redisbloom-compatible yes");
    old.client()
        .ok("BF.RESERVE blocked 0.01 100 LAYOUT BLOCKED");
    old.client().ok("BF.ADD classic x");
    let outcome = copy(old.port, host.addr.port(), &[]);
    assert_code(&outcome, 1);
    assert!(
        outcome
            .stderr
            .contains("\"blocked\": the destination refused it ("),
        "{outcome:?}"
    );
    assert!(
        outcome.stderr.contains("it is in the blocked layout"),
        "{outcome:?}"
    );
    assert_eq!(keys(&mut client), [b"classic"]);
}

const MANY: usize = 40;

fn fill_many(client: &mut Client) {
    for key in 0..MANY {
        client.ok(&format!("BF.RESERVE f{key} 0.01 2000000"));
        add(client, &format!("f{key}"), 0..100);
    }
}

/// Looks at all keys of the destination: each is there whole, or not at all.
fn all_are_whole(client: &mut Client) -> usize {
    let mut whole = 0;
    for key in keys(client) {
        let name = String::from_utf8(key).unwrap();
        if name.contains(":everbloom-copy:") {
            continue;
        }
        whole += 1;
        assert_eq!(client.number(&format!("BF.CARD {name}")), 100);
        for item in [0, 50, 99] {
            assert_eq!(client.number(&format!("BF.EXISTS {name} item:{item}")), 1);
        }
    }
    whole
}

#[test]
fn a_killed_copy_goes_on_and_nobody_sees_half_a_filter() {
    let _alone = QUIET.lock();
    let (old, new) = (server(), server());
    fill_many(&mut old.client());
    let mut client = new.client();
    for wanted in [3, 10, 25] {
        let mut command = command("copy", &url(old.port), &url(new.port), &[]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("filters", || all_are_whole(&mut client) >= wanted);
        child.kill().unwrap();
        child.wait().unwrap();
        let whole = all_are_whole(&mut client);
        assert!(whole < MANY, "the copy was over before it was killed");
        for key in keys(&mut client).iter().filter(|key| key.len() > 5) {
            let left = client
                .call(&[b"PTTL", key.as_slice()])
                .as_integer()
                .unwrap();
            assert!((1..600_001).contains(&left), "{left}");
        }
    }
    let text = copy(old.port, new.port, &[]).success();
    assert!(text.contains("skipped: equal at the destination"), "{text}");
    assert_eq!(all_are_whole(&mut client), MANY);
    let text = compare(old.port, new.port, &[]).success();
    assert!(text.starts_with("40 equal, 0 different, 0 only"), "{text}");
}

#[test]
fn a_server_that_dies_is_named() {
    let _alone = QUIET.lock();
    for victim in ["old", "new"] {
        let place = folder(&format!("copy-dies-{victim}"));
        let (old, new) = if victim == "new" {
            (server(), Server::on(&place, &[]))
        } else {
            (server(), server())
        };
        fill_many(&mut old.client());
        let mut command = command("copy", &url(old.port), &url(new.port), &[]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let mut client = new.client();
        wait_for("filters", || all_are_whole(&mut client) > 3);
        let lost = if victim == "new" { &new } else { &old };
        lost.signal("KILL");
        let output = child.wait_with_output().unwrap();
        let (out, err) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert_eq!(output.status.code(), Some(2), "{out}{err}");
        assert!(out.contains(" filters copied, "), "{out}");
        assert!(
            err.starts_with(&format!("everbloom: {}: ", url(lost.port))),
            "{err}"
        );
        assert!(err.contains("Run the same command again to go on"), "{err}");
        if victim == "old" {
            assert!(all_are_whole(&mut client) > 3);
            assert!(
                keys(&mut client).iter().all(|key| key.len() < 5),
                "no temporary key"
            );
            continue;
        }
        drop(new);
        let new = Server::on(&place, &[]);
        assert!(all_are_whole(&mut new.client()) > 2);
        copy(old.port, new.port, &[]).success();
        assert_eq!(all_are_whole(&mut new.client()), MANY);
        compare(old.port, new.port, &[]).success();
    }
}

/// What was added before the copy is never lost, and a second copy brings the rest.
#[test]
fn filters_in_use() {
    let (old, new) = (server(), server());
    old.client().ok("BF.RESERVE busy 0.001 1000");
    old.client().ok("BF.RESERVE wide 0.001 20000000");
    let (added, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let before = thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = old.client();
            while !stop.load(Ordering::Relaxed) {
                let item = added.load(Ordering::Relaxed);
                client.ok(&format!("BF.ADD busy i{item}"));
                client.ok(&format!("BF.ADD wide i{item}"));
                added.fetch_add(1, Ordering::Relaxed);
            }
        });
        wait_for("items", || added.load(Ordering::Relaxed) > 2000);
        let before = added.load(Ordering::Relaxed);
        let outcome = copy(old.port, new.port, &[]);
        stop.store(true, Ordering::Relaxed);
        assert_code(&outcome, 1);
        let line = "everbloom: \"wide\": changed while it was copied";
        assert!(outcome.stderr.contains(line), "{outcome:?}");
        assert!(
            outcome.stdout.contains(" changed while being copied\n"),
            "{outcome:?}"
        );
        before
    });
    let mut client = new.client();
    for key in ["busy", "wide"] {
        for item in 0..before {
            assert_eq!(
                client.number(&format!("BF.EXISTS {key} i{item}")),
                1,
                "{key} i{item}"
            );
        }
    }
    copy(old.port, new.port, &[]).success();
    compare(old.port, new.port, &[]).success();
}

/// 300 MB, in an address space that holds no such filter.
#[test]
fn a_large_filter_in_little_memory() {
    let _alone = QUIET.lock();
    let (old, new) = (server(), server());
    old.client().ok("BF.RESERVE huge 0.01 230000000");
    add(&mut old.client(), "huge", 0..100_000);
    let size = old
        .client()
        .ok("BF.INFO huge SIZE")
        .into_elements()
        .unwrap();
    assert!(size[0].as_integer().unwrap() > 300_000_000, "{size:?}");
    for subcommand in ["copy", "compare"] {
        let limited = "ulimit -v 160000 && exec \"$0\" \"$@\"";
        let outcome = run(Command::new("sh")
            .args(["-c", limited, EVERBLOOM, subcommand])
            .args([url(old.port), url(new.port)]));
        assert_code(&outcome, 0);
    }
    assert_eq!(new.client().number("BF.EXISTS huge item:99999"), 1);
}

/// Two servers whose filters differ in every way.
fn servers_that_differ() -> (Server, Server) {
    let (old, new) = (server(), server());
    let (mut a, mut b) = (old.client(), new.client());
    for key in ["same", "bit", "count", "old", "typed"] {
        a.ok(&format!("BF.RESERVE {key} 0.01 1000"));
        add(&mut a, key, 0..100);
    }
    a.ok("BF.RESERVE large 0.01 15000000");
    copy(old.port, new.port, &[]).success();
    a.ok("BF.RESERVE parameter 0.01 1000");
    b.ok("BF.RESERVE parameter 0.01 1001");
    a.ok("BF.RESERVE blocked 0.01 1000");
    b.ok("BF.RESERVE blocked 0.01 1000 LAYOUT BLOCKED");
    b.ok("DEL old");
    b.ok("SET typed value");
    b.ok("BF.ADD new x");
    // One bit, in the second piece of a large one as well.
    for (key, iterator) in [("bit", "1"), ("large", "16777217")] {
        let piece = b
            .ok(&format!("BF.SCANDUMP {key} {iterator}"))
            .into_elements()
            .unwrap();
        let (end, mut bytes) = (
            piece[0].as_integer().unwrap().to_string(),
            piece[1].as_bytes().unwrap().to_vec(),
        );
        bytes[700] ^= 4;
        let words: [&[u8]; 4] = [b"BF.LOADCHUNK", key.as_bytes(), end.as_bytes(), &bytes];
        assert_eq!(b.call(&words), Reply::OK);
    }
    // The items of the filter and of its layer.
    let mut header = b.ok("BF.SCANDUMP count 0").into_elements().unwrap()[1]
        .as_bytes()
        .unwrap()
        .to_vec();
    let piece = b.ok("BF.SCANDUMP count 1").into_elements().unwrap();
    header[0] -= 1;
    header[36] -= 1;
    b.ok("DEL count");
    let end = piece[0].as_integer().unwrap().to_string();
    b.call(&[&b"BF.LOADCHUNK"[..], b"count", b"1", &header]);
    b.call(&[
        &b"BF.LOADCHUNK"[..],
        b"count",
        end.as_bytes(),
        piece[1].as_bytes().unwrap(),
    ]);
    (old, new)
}

#[test]
fn differences() {
    let (old, new) = servers_that_differ();
    let outcome = compare(old.port, new.port, &[]);
    assert_code(&outcome, 1);
    let (here, there) = (url(old.port), url(new.port));
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    let last = lines.pop().unwrap();
    assert_eq!(
        last,
        "1 equal, 5 different, 2 only at the old server, 1 only at the new one"
    );
    let found: BTreeMap<&str, &str> = lines
        .iter()
        .map(|line| line.split_once(": ").unwrap())
        .collect();
    assert_eq!(found.len(), 8, "{found:?}");
    for key in ["\"bit\"", "\"large\""] {
        assert!(found[key].starts_with("1 bit at redis://"), "{found:?}");
        assert!(found[key].ends_with(" only"), "{found:?}");
    }
    for (key, text) in [
        ("\"count\"", format!("items 100 at {here}, 99 at {there}")),
        (
            "\"parameter\"",
            format!("capacity 1000 at {here}, 1001 at {there}"),
        ),
        (
            "\"blocked\"",
            format!("layout classic at {here}, blocked at {there}"),
        ),
        ("\"old\"", format!("missing at {there}")),
        (
            "\"typed\"",
            format!("missing at {there}, which has a value of type string"),
        ),
        ("\"new\"", format!("missing at {here}")),
    ] {
        assert_eq!(found[key], text);
    }
    let json = compare(old.port, new.port, &["--json"]);
    assert_code(&json, 1);
    let json: Json = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["differences"].as_array().unwrap().len(), 8);
    assert_eq!((&json["equal"], &json["only_old"]), (&1.into(), &2.into()));
    let quiet = compare(old.port, new.port, &["--quiet"]);
    assert_code(&quiet, 1);
    assert_eq!(quiet.stdout, "");
    let json = compare(old.port, old.port, &["--json"]).success();
    let json: Json = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["differences"], &json["equal"]),
        (&Json::Array(vec![]), &8.into())
    );
}

/// A Cluster of two as the destination, and each of them as the source.
#[test]
fn clusters() {
    let start = |name: &str| {
        let place = folder(name);
        let place = place.to_str().unwrap();
        redis(&["--cluster-enabled", "yes", "--dir", place])
    };
    let (Some(one), Some(two)) = (start("copy-cluster-1"), start("copy-cluster-2")) else {
        return;
    };
    let [mut first, mut second] = [&one, &two].map(|redis| Client::connect(redis.addr));
    first.ok("CLUSTER ADDSLOTSRANGE 0 8000");
    second.ok("CLUSTER ADDSLOTSRANGE 8001 16383");
    first.ok(&format!("CLUSTER MEET 127.0.0.1 {}", two.addr.port()));
    for client in [&mut first, &mut second] {
        wait_for("the cluster", || {
            client.text("CLUSTER INFO").contains("cluster_state:ok")
        });
    }
    let (old, new) = (server(), server());
    let mut client = old.client();
    for number in 0..50 {
        client.ok(&format!("BF.ADD key{number} x"));
    }
    for name in ["a}b", "{}", "{x}y", ""] {
        client.call(&["BF.ADD", name, "x"]);
    }
    for from in [&one, &two] {
        // From a server to the cluster, and node by node to another one.
        copy(old.port, from.addr.port(), &[]).success();
        compare(old.port, from.addr.port(), &[]).success();
        copy(from.addr.port(), new.port, &[]).success();
    }
    let sizes = [&mut first, &mut second].map(|client| client.number("DBSIZE"));
    assert!(
        sizes[0] > 5 && sizes[1] > 5 && sizes[0] + sizes[1] == 54,
        "{sizes:?}"
    );
    compare(old.port, new.port, &[]).success();
    compare(one.addr.port(), new.port, &[])
        .stdout
        .contains("54 equal");
}

/// What a bad server answers to SCAN, to SCANDUMP 0 and to SCANDUMP 1.
type BadServer = [Vec<u8>; 3];

fn bad_servers() -> Vec<BadServer> {
    let header = |bytes: u64, bits: u64| {
        let mut header = Vec::new();
        header.extend(0_u64.to_le_bytes());
        for field in [1_u32, 5, 2] {
            header.extend(field.to_le_bytes());
        }
        for field in [bytes, bits, 0] {
            header.extend(field.to_le_bytes());
        }
        header.extend(0.005_f64.to_le_bytes());
        header.extend(11.0_f64.to_le_bytes());
        header.extend(8_u32.to_le_bytes());
        header.extend(100_u64.to_le_bytes());
        header.push(0);
        header
    };
    let pair =
        |iterator: i64, data: Vec<u8>| Reply::Array(vec![iterator.into(), Reply::bulk(data)]);
    let fine = pair(1, header(128, 1024));
    let raw = |text: &str| text.as_bytes().to_vec();
    let bytes = |reply: &Reply| {
        let mut out = Vec::new();
        encode(reply, everbloom_resp::Protocol::Resp2, &mut out);
        out
    };
    let scan = bytes(&Reply::Array(vec![
        Reply::bulk("0"),
        Reply::Array(vec![Reply::bulk("k")]),
    ]));
    vec![
        [raw("*1\r\n$1\r\n0\r\n"), raw(""), raw("")],
        [raw("*2\r\n*0\r\n*0\r\n"), raw(""), raw("")],
        [raw("*2\r\n$1\r\n0\r\n*1\r\n:1\r\n"), raw(""), raw("")],
        [raw("*-5\r\n"), raw(""), raw("")],
        [raw("$99999999999999\r\n"), raw(""), raw("")],
        [scan.clone(), bytes(&pair(1, vec![])), raw("")],
        [scan.clone(), bytes(&pair(1, vec![0xff; 73])), raw("")],
        [
            scan.clone(),
            bytes(&pair(1, header(u64::MAX, u64::MAX))),
            raw(""),
        ],
        [
            scan.clone(),
            bytes(&pair(1, header(1 << 62, 1 << 62))),
            bytes(&pair(2, vec![0])),
        ],
        [scan.clone(), bytes(&Reply::Null), raw("")],
        [scan.clone(), bytes(&Reply::Integer(-1)), raw("")],
        [scan.clone(), bytes(&fine), bytes(&pair(0, vec![]))],
        [scan.clone(), bytes(&fine), bytes(&pair(-1, vec![0; 128]))],
        [
            scan.clone(),
            bytes(&fine),
            bytes(&pair(i64::MAX, vec![0; 128])),
        ],
        [scan.clone(), bytes(&fine), bytes(&pair(130, vec![0; 129]))],
        [scan.clone(), bytes(&fine), bytes(&Reply::error("ERR no"))],
        [scan.clone(), bytes(&fine), raw("$-7\r\n")],
        [
            scan,
            bytes(&fine),
            [raw("*2\r\n:1\r\n$80000000\r\n"), vec![0; 80_000_000]].concat(),
        ],
    ]
}

/// Serves one client with an answer to each request. Returns the port.
fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            // Requests in the order in which they came, several at a time.
            for request in text.split('*').skip(1) {
                if stream.write_all(&answer(request)).is_err() {
                    return;
                }
            }
        }
    });
    port
}

fn serve_badly([scan, header, piece]: BadServer) -> u16 {
    serve(move |request| match request {
        _ if request.contains("COMMAND") => b"*1\r\n*0\r\n".to_vec(),
        _ if request.contains("SCANDUMP") && request.contains("\r\n0\r\n") => header.clone(),
        _ if request.contains("SCANDUMP") => piece.clone(),
        _ if request.contains("SCAN") => scan.clone(),
        _ if request.contains("TYPE") => b"$9\r\nMBbloom--\r\n".to_vec(),
        _ => b":-1\r\n".to_vec(),
    })
}

/// A page of names that is too much for us is not read to its end.
#[test]
fn a_reply_that_is_too_long() {
    let ours = server();
    let page = [
        b"*2\r\n$1\r\n0\r\n*1\r\n$80000000\r\n".to_vec(),
        vec![0; 80_000_000],
    ]
    .concat();
    let port = serve_badly([page, Vec::new(), Vec::new()]);
    let outcome = copy(port, ours.port, &[]);
    assert_code(&outcome, 2);
    assert!(
        outcome.stderr.contains("a reply is too long"),
        "{outcome:?}"
    );
}

/// A destination that loses a bit.
#[test]
fn what_is_read_back_is_compared() {
    let old = server();
    let mut client = old.client();
    client.ok("BF.RESERVE k 0.01 100");
    client.ok("BF.ADD k x");
    let [header, piece] = [0, 1].map(|iterator| {
        let parts = client
            .ok(&format!("BF.SCANDUMP k {iterator}"))
            .into_elements()
            .unwrap();
        let end = parts[0].as_integer().unwrap();
        (end, parts[1].as_bytes().unwrap().to_vec())
    });
    for (lost, code) in [(true, 1), (false, 0)] {
        let mut piece = piece.clone();
        if lost {
            let byte = piece.1.iter_mut().find(|byte| **byte != 0).unwrap();
            *byte &= *byte - 1;
        }
        let answers = [&header, &piece].map(|(end, data)| {
            let mut out = format!("*2\r\n:{end}\r\n${}\r\n", data.len()).into_bytes();
            out.extend(data);
            out.extend(b"\r\n");
            out
        });
        let fake = || {
            let [header, piece] = answers.clone();
            serve(move |request| match request {
                _ if request.contains("COMMAND") => b"*1\r\n*0\r\n".to_vec(),
                _ if request.contains("SCANDUMP") && request.contains("\r\n0\r\n") => {
                    header.clone()
                }
                _ if request.contains("SCANDUMP") => piece.clone(),
                _ if request.contains("TYPE") => b"+none\r\n".to_vec(),
                _ if request.contains("EXEC") => b"*2\r\n:1\r\n:1\r\n".to_vec(),
                _ => b":1\r\n".to_vec(),
            })
        };
        let outcome = copy(old.port, fake(), &[]);
        assert_code(&outcome, code);
        let text = "read back from the destination, it is not what was sent";
        assert_eq!(outcome.stderr.contains(text), lost, "{outcome:?}");
        copy(old.port, fake(), &["--no-verify"]).success();
    }
}

/// A copy from a server that answers what it likes ends with a clear error and does not hang.
#[test]
fn bytes_from_outside() {
    let ours = server();
    for case in bad_servers() {
        let shown: Vec<_> = case
            .iter()
            .map(|part| part[..part.len().min(80)].escape_ascii().to_string())
            .collect();
        let port = serve_badly(case);
        let outcome = copy(port, ours.port, &[]);
        let code = outcome.status.code();
        assert!(matches!(code, Some(1 | 2)), "{shown:?}: {outcome:?}");
        assert!(
            outcome.stderr.starts_with("everbloom: "),
            "{shown:?}: {outcome:?}"
        );
        assert!(
            !outcome.stderr.contains("panicked"),
            "{shown:?}: {outcome:?}"
        );
        thread::sleep(Duration::from_millis(1));
        assert_eq!(ours.client().number("DBSIZE"), 0, "{shown:?}");
    }
}
