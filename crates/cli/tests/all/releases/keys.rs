//! What the server writes: snapshots, the log, payloads of DUMP, and chunks of SCANDUMP.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use everbloom_dev::Client;
use everbloom_resp::Reply;
use serde_json::{Map, Value, json};

use super::{OTHERS, entries, growth, items, read, write};
use crate::support::{Server, folder};

/// 1 January 2100, in milliseconds.
const FAR: &str = "4102444800000";

/// Filters: key, the line that makes it (none: the first add does), and how many items it gets.
/// No blocked filter grows after half of its items: the AOF has only adds from there on, and they
/// make layers as the code that reads them does.
const FILTERS: [(&str, &str, usize); 21] = [
    ("bf-classic", "0.01 20 LAYOUT CLASSIC", 150),
    (
        "bf-blocked",
        "0.01 20 EXPANSION 4 LAYOUT BLOCKED SEED 7",
        150,
    ),
    ("bf-classic-fixed", "0.001 80 NONSCALING LAYOUT CLASSIC", 60),
    ("bf-blocked-fixed", "0.001 80 NONSCALING LAYOUT BLOCKED", 60),
    ("bf-empty", "0.01 50 LAYOUT CLASSIC", 0),
    ("bf-blocked-empty", "0.01 50 LAYOUT BLOCKED", 0),
    ("bf-added", "", 3),
    ("bf-added-many", "", 450),
    ("bf-classic-1", "0.01 100 EXPANSION 1 LAYOUT CLASSIC", 450),
    ("bf-classic-4", "0.001 100 EXPANSION 4 LAYOUT CLASSIC", 600),
    ("bf-blocked-1", "0.01 100 EXPANSION 1 LAYOUT BLOCKED", 250),
    (
        "bf-blocked-2",
        "0.01 20 EXPANSION 2 LAYOUT BLOCKED SEED 2",
        800,
    ),
    ("bf-blocked-4", "0.001 5 EXPANSION 4 LAYOUT BLOCKED", 200),
    ("bf-blocked-full", "0.01 10 LAYOUT BLOCKED", 190),
    ("bf-blocked-large", "0.01 100 LAYOUT BLOCKED", 4000),
    (
        "bf-window",
        "0.01 20 WINDOW SECONDS 4000000000 GENERATIONS 2",
        150,
    ),
    ("bf-window-items", "0.01 400 WINDOW ITEMS", 150),
    ("cf", "16", 60),
    ("cf-4", "16 EXPANSION 4", 200),
    ("cf-fixed", "64 BUCKETSIZE 4 EXPANSION 0", 40),
    ("cf-added", "", 3),
];

/// Lines about the other keys. The replies are recorded.
const QUESTIONS: [&str; 11] = [
    "GET text",
    "GET number",
    "GET long",
    "BITCOUNT binary",
    "STRLEN binary",
    "BITPOS bitmap 1",
    "BITCOUNT bitmap",
    "PEXPIRETIME expiring",
    "PEXPIRETIME bf-blocked",
    "CF.COUNT cf item-0",
    "DBSIZE",
];

pub(super) fn family(key: &str) -> &'static str {
    if key.starts_with("cf") { "CF" } else { "BF" }
}

/// Adds items to a filter. Some may be there by mistake.
pub(super) fn add(client: &mut Client, key: &str, items: &[String]) {
    for item in items {
        client.ok(&format!("{}.ADD {key} {item}", family(key)));
    }
}

/// The first half of what is done: reserves filters and fills them half.
fn begin(client: &mut Client) {
    for (key, made, count) in FILTERS {
        if !made.is_empty() {
            client.ok(&format!("{}.RESERVE {key} {made}", family(key)));
            add(client, key, &items("item", count / 2));
        }
    }
    client.ok("SET gone x");
    client.ok("SET text before");
}

/// The second half, from half-full filters on.
fn end(client: &mut Client) {
    for (key, made, count) in FILTERS {
        let from = if made.is_empty() { 0 } else { count / 2 };
        add(client, key, &items("item", count)[from..]);
    }
    for line in [
        "CF.ADD cf item-0",
        "CF.ADD cf gone",
        "CF.DEL cf gone",
        "DEL gone",
        "SET text hello",
        "SET number -12345",
        "SETBIT bitmap 7 1",
        "SETBIT bitmap 4000 1",
        "SET expiring soon",
        "MULTI",
        "SET queued 1",
        "EXEC",
    ] {
        client.ok(line);
    }
    client.ok(&format!(
        "SET long {}",
        "a long text, ".repeat(40).replace(' ', "_")
    ));
    client.call(&[&b"SET"[..], b"binary", b"\x00\xff\r\n\x80"]);
    client.ok(&format!("PEXPIREAT expiring {FAR}"));
    client.ok(&format!("PEXPIREAT bf-blocked {FAR}"));
    client.ok("SELECT 1");
    client.ok("SET elsewhere there");
    client.ok("SELECT 0");
}

/// Makes the files, and says what they hold.
pub(crate) fn make(release: &Path, scratch: &Path) -> (Value, String) {
    let server = Server::on(scratch, &["--save", "", "--enable-debug-command", "local"]);
    let mut client = server.client();
    begin(&mut client);
    client.ok("BGREWRITEAOF");
    client.until("aof_rewrite_in_progress", "0");
    end(&mut client);
    client.ok("SAVE");
    let digest = client.text("DEBUG DIGEST");
    let keys = json!({ "filters": filters(&mut client), "answers": answers(&mut client) });
    write(&release.join("payloads.json"), &payloads(&mut client));
    write(&release.join("chunks.json"), &chunks(&mut client));
    client.send(&["SHUTDOWN", "NOSAVE"]);
    drop(server);
    copy(&scratch.join("everbloom-data"), release);
    let _ = fs::remove_file(release.join("everbloom.lock"));
    (keys, digest)
}

pub(crate) fn check(release: &Path, scratch: &Path, expected: &Value) {
    let debug = ["--enable-debug-command", "local", "--save", ""];
    for (source, log) in [("dump.rdb", "no"), ("appendonlydir", "yes")] {
        let home = scratch.join(source);
        let data = home.join("everbloom-data");
        fs::create_dir_all(&data).unwrap();
        if log == "yes" {
            copy(&release.join(source), &data.join(source));
        } else {
            fs::copy(release.join(source), data.join(source)).unwrap();
        }
        let settings = [&debug[..], &["--appendonly", log]].concat();
        let server = Server::on(&home, &settings);
        let mut client = server.client();
        check_filters(&mut client, expected, source);
        check_answers(&mut client, expected, true);
        assert_eq!(client.text("DEBUG DIGEST"), expected["digest"], "{source}");
        client.ok("SELECT 1");
        assert_eq!(client.text("GET elsewhere"), "there");

        client.ok("SELECT 0");
        growth::of_keys(&mut client, expected, source);
        client.ok("SAVE");
        let digest = client.digest();
        drop((client, server));
        let server = Server::on(&home, &settings);
        let mut client = server.client();
        assert_eq!(client.digest(), digest, "{source}");
        growth::check_members(&mut client, expected, source);
    }

    let server = Server::on(&folder("release-payloads"), &debug);
    let mut client = server.client();
    for (key, payload) in entries(&read(&release.join("payloads.json")), "payloads") {
        let payload = BASE64.decode(payload.as_str().unwrap()).unwrap();
        let reply = client.call(&[b"RESTORE", key.as_bytes(), b"0", &payload]);
        assert_eq!(reply, Reply::OK, "{key}");
    }
    check_filters(&mut client, expected, "payloads");
    check_answers(&mut client, expected, false);
    growth::of_keys(&mut client, expected, "payloads");

    client.ok("FLUSHALL");
    for (key, chunks) in entries(&read(&release.join("chunks.json")), "chunks") {
        let command = format!("{}.LOADCHUNK", family(key));
        for chunk in chunks.as_array().unwrap() {
            let bytes = BASE64.decode(chunk[1].as_str().unwrap()).unwrap();
            let iterator = chunk[0].to_string();
            let words = [
                command.as_bytes(),
                key.as_bytes(),
                iterator.as_bytes(),
                &bytes,
            ];
            assert_eq!(client.call(&words), Reply::OK, "{key}");
        }
    }
    check_filters(&mut client, expected, "chunks");
    growth::of_keys(&mut client, expected, "chunks");
}

fn check_filters(client: &mut Client, expected: &Value, source: &str) {
    let expected = &expected["keys"]["filters"];
    for (key, said) in entries(expected, "filters") {
        let count = usize::try_from(said["items"].as_u64().unwrap()).unwrap();
        let (mut found, mut said) = (filter(client, key, count), said.clone());
        if said["stats"]["layout"] == "classic" {
            // Since 0.1.0 this includes what double hashing costs in small arrays.
            let [now, then] = [&mut found, &mut said].map(|it| {
                let rate = it["stats"]["expected-error-rate"].take();
                rate.as_str().unwrap().parse::<f64>().unwrap()
            });
            assert!(now >= then, "{source}: {key}: {now}, {then}");
        }
        assert_eq!(found, said, "{source}: {key}");
    }
}

/// `whole` is whether times and the number of keys are there, too.
fn check_answers(client: &mut Client, expected: &Value, whole: bool) {
    for (line, answer) in entries(&expected["keys"]["answers"], "answers") {
        if whole || !(line.starts_with("PEXPIRETIME") || line.starts_with("DBSIZE")) {
            assert_eq!(show(&client.line(line)), *answer, "{line}");
        }
    }
}

fn filters(client: &mut Client) -> Value {
    let said = FILTERS.map(|(key, _, count)| (key.to_owned(), filter(client, key, count)));
    Value::Object(Map::from_iter(said))
}

/// What can be said of a filter: it must have all its items. The others that it has by mistake are
/// the same for ever.
fn filter(client: &mut Client, key: &str, count: usize) -> Value {
    let mut found = |what: &str, count: usize| -> Vec<String> {
        let command = format!("{}.EXISTS {key}", family(key));
        let mut items = items(what, count);
        items.retain(|item| client.number(&format!("{command} {item}")) == 1);
        items
    };
    assert_eq!(found("item", count), items("item", count), "{key}");
    let wrong = found("other", OTHERS);
    let stats = statistics(client, key);
    json!({ "items": count, "wrong": wrong, "stats": stats })
}

pub(super) fn statistics(client: &mut Client, key: &str) -> Map<String, Value> {
    let Reply::Array(stats) = client.ok(&format!("{}.STATS {key}", family(key))) else {
        panic!("{key}: no statistics")
    };
    let stats = stats.chunks(2).map(|pair| (show(&pair[0]), show(&pair[1])));
    // How much memory it takes is not written, and the generations of a window grow older.
    stats
        .filter(|(name, _)| !["memory", "generations", "next-generation"].contains(&name.as_str()))
        .map(|(name, value)| (name, value.into()))
        .collect()
}

fn answers(client: &mut Client) -> Value {
    let said = QUESTIONS.map(|line| (line.to_owned(), show(&client.ok(line)).into()));
    Value::Object(Map::from_iter(said))
}

pub(super) fn show(reply: &Reply) -> String {
    match reply {
        Reply::Integer(number) => number.to_string(),
        reply => match reply.as_bytes() {
            Some(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            None => format!("{reply:?}"),
        },
    }
}

fn payloads(client: &mut Client) -> Value {
    let Reply::Array(keys) = client.ok("KEYS *") else {
        panic!("no keys")
    };
    let keys = keys.iter().map(show).map(|key| {
        let payload = client.ok(&format!("DUMP {key}"));
        (key, BASE64.encode(payload.as_bytes().unwrap()).into())
    });
    Value::Object(keys.collect())
}

fn chunks(client: &mut Client) -> Value {
    let chunks = FILTERS.map(|(key, ..)| {
        let chunks = chunks_of(client, key).into_iter();
        let chunks = chunks.map(|(iterator, bytes)| json!([iterator, BASE64.encode(bytes)]));
        (key.to_owned(), chunks.collect())
    });
    Value::Object(Map::from_iter(chunks))
}

/// SCANDUMP's iterators and chunks of a filter.
pub(super) fn chunks_of(client: &mut Client, key: &str) -> Vec<(i64, Vec<u8>)> {
    let mut chunks = Vec::new();
    let mut iterator = 0;
    loop {
        let reply = client.ok(&format!("{}.SCANDUMP {key} {iterator}", family(key)));
        let Reply::Array(pair) = reply else {
            panic!("{key}: no chunk")
        };
        iterator = pair[0].as_integer().unwrap();
        if iterator == 0 {
            return chunks;
        }
        chunks.push((iterator, pair[1].as_bytes().unwrap().to_vec()));
    }
}

/// Copies a folder's files, and its folders' files.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
