//! Files recorded from RedisBloom load with the recorded contents, and every filter in them is
//! saved again byte for byte.

use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use everbloom_commands::run::Replies;
use everbloom_commands::{Action, Filter, Function, LazyContext, Run, find};
use everbloom_files::Value;
use everbloom_files::rdb::{WriteOptions, Writer, dump, restore};
use everbloom_resp::Reply;
use serde_json::Value as Json;

use super::common::{Contents, filter, read, text};

fn golden(name: &str) -> (Vec<u8>, Vec<Json>) {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/rdb");
    let file = std::fs::read(dir.join(format!("{name}.rdb"))).unwrap();
    let json = std::fs::read(dir.join(format!("{name}.json"))).unwrap();
    let json: Json = serde_json::from_slice(&json).unwrap();
    (file, json["keys"].as_array().unwrap().clone())
}

/// Text, or base64 of what is none.
fn bytes(json: &Json) -> Vec<u8> {
    match json {
        Json::String(text) => text.clone().into_bytes(),
        other => BASE64_STANDARD
            .decode(other["b64"].as_str().unwrap())
            .unwrap(),
    }
}

fn strings(json: &Json) -> Vec<Vec<u8>> {
    json.as_array().unwrap().iter().map(bytes).collect()
}

fn ask(value: &Value, args: &[&[u8]]) -> Reply {
    let Value::Filter(filter) = value else {
        panic!("no filter");
    };
    let context = LazyContext::default();
    let (run, mut replies) = (&mut Run::one(args), Replies::default());
    match find(args[0]).unwrap().handler {
        Function::Bloom(Action::Read(function)) => {
            function(&context, run, filter.into(), &mut replies);
        }
        Function::Cuckoo(Action::Read(function)) => {
            function(&context, run, filter.into(), &mut replies);
        }
        _ => panic!("not a reading command"),
    }
    replies.into_last().unwrap()
}

fn check_filter(value: &Value, json: &Json, name: &str) {
    let lines: Vec<Reply> = strings(&json["debug"])
        .into_iter()
        .map(Reply::Bulk)
        .collect();
    let (exists, debug) = match value {
        Value::Filter(Filter::Cuckoo(_)) => {
            let line = ask(value, &[b"CF.DEBUG", b"k"]);
            (&b"CF.EXISTS"[..], Reply::Array(vec![line]))
        }
        _ => (&b"BF.EXISTS"[..], ask(value, &[b"BF.DEBUG", b"k"])),
    };
    assert_eq!(debug, Reply::Array(lines), "{name}");
    for (items, expected) in [("present", true), ("absent", false)] {
        for item in strings(&json[items]) {
            let reply = ask(value, &[exists, b"k", &item]);
            assert_eq!(
                reply,
                Reply::Boolean(expected),
                "{name} {}",
                item.escape_ascii()
            );
        }
    }
}

/// Version and checksum aside, what DUMP gives is what RedisBloom gave.
fn check_dump(value: &Value, recorded: &[u8], compression: bool, name: &str) {
    let dumped = dump(value, compression, usize::MAX).unwrap();
    assert_eq!(
        dumped[..dumped.len() - 10],
        recorded[..recorded.len() - 10],
        "{name}"
    );
    assert_eq!(dumped[dumped.len() - 10..dumped.len() - 8], [9, 0]);
    let restored = restore(recorded, u64::MAX).unwrap();
    let (Value::Filter(restored), Value::Filter(value)) = (&restored, value) else {
        panic!("{name} is no filter");
    };
    assert_eq!(restored, value, "{name}");
}

fn check(name: &str, compression: bool) -> Contents {
    let (file, keys) = golden(name);
    let contents = read(&file[..]).unwrap();
    assert_eq!(contents.bytes, file.len() as u64);
    for json in &keys {
        let (db, key) = (json["db"].as_u64().unwrap(), bytes(&json["key"]));
        let shown = format!("{name} {db} {}", key.escape_ascii());
        let loaded = contents.key(db, &key);
        assert_eq!(loaded.expires_at, json["expire_ms"].as_u64(), "{shown}");
        if json["type"] == "string" {
            assert_eq!(text(&loaded.value), bytes(&json["value"]), "{shown}");
            continue;
        }
        check_filter(&loaded.value, json, &shown);
        let recorded = BASE64_STANDARD
            .decode(json["dump_b64"].as_str().unwrap())
            .unwrap();
        check_dump(&loaded.value, &recorded, compression, &shown);
    }
    assert_eq!(
        (contents.keys.len(), contents.skipped.len()),
        (keys.len(), 0)
    );
    contents
}

#[test]
fn a_file_with_compression_and_checksum() {
    let contents = check("bloom", true);
    assert_eq!(contents.resizes.len(), 2);
    let aux: Vec<_> = contents.aux.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        aux,
        ["redis-ver", "redis-bits", "ctime", "used-mem", "aof-base"]
    );
}

#[test]
fn a_file_without_compression_and_checksum() {
    check("plain", false);
}

#[test]
fn a_file_of_cuckoo_filters() {
    check("cuckoo", true);
}

#[test]
fn every_version_of_the_encoding() {
    check("old-encodings", true);
}

/// Recorded from Valkey 9.1.2 with the module: keys of every type, a hash one of whose fields
/// expires, a function, and a filter of each layout that got item-1 to item-30.
#[test]
fn a_file_of_valkey_9() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/rdb");
    let file = std::fs::read(dir.join("valkey-9.rdb")).unwrap();
    let contents = read(&file[..]).unwrap();
    assert_eq!(contents.aux[0], ("valkey-ver".into(), "9.1.2".into()));
    let mut skipped: Vec<_> = contents.skipped.iter().map(|(name, _)| &name[..]).collect();
    skipped.sort_unstable();
    let wanted = [
        "function library",
        "hash",
        "hash",
        "list",
        "set",
        "stream",
        "zset",
    ];
    assert_eq!(skipped, wanted);
    assert_eq!(contents.keys.len(), 3);
    assert_eq!(text(&contents.key(0, b"text").value), b"value");
    let classic = contents.key(0, b"classic");
    assert_eq!(classic.expires_at, Some(4_102_444_800_000));
    let blocked = contents.key(0, b"blocked");
    for (key, items, capacity) in [(classic, 29, 60), (blocked, 30, 380)] {
        let filter = filter(&key.value);
        assert_eq!((filter.len(), filter.capacity()), (items, capacity));
        assert!((1..=30).all(|i| filter.contains(&format!("item-{i}"))));
    }
}

/// A file written from a recorded one differs from it in version, so also in its checksum, and in
/// nothing else.
#[test]
fn a_file_is_written_as_redis_writes_it() {
    for (name, compression) in [("bloom", true), ("cuckoo", true), ("plain", false)] {
        let (file, _) = golden(name);
        let contents = read(&file[..]).unwrap();
        assert!(contents.skipped.is_empty(), "{name}");
        let options = WriteOptions {
            compression,
            checksum: compression,
        };
        let mut writer = Writer::new(Vec::new(), options).unwrap();
        let aux = |name: &str| {
            let found = contents.aux.iter().find(|(aux, _)| aux == name);
            found.unwrap().1.clone()
        };
        let (version, created) = (aux("redis-ver"), aux("ctime"));
        writer
            .aux(&everbloom_files::rdb::Aux {
                version: &version,
                created: created.parse().unwrap(),
                used_memory: aux("used-mem").parse().unwrap(),
                aof_base: Some(false),
                log: None,
            })
            .unwrap();
        let mut resizes = contents.resizes.iter();
        let mut db = None;
        for key in &contents.keys {
            if db != Some(key.db) {
                db = Some(key.db);
                writer.select_db(key.db).unwrap();
                let (keys, expiring) = resizes.next().unwrap();
                writer.resize(*keys, *expiring).unwrap();
            }
            match &key.value {
                Value::Text(text) => writer.text(&key.name, key.expires_at, text),
                Value::Filter(filter) => writer.filter(&key.name, key.expires_at, filter),
            }
            .unwrap();
        }
        let (ours, bytes) = writer.finish().unwrap();
        assert_eq!(ours.len() as u64, bytes);
        assert_eq!(ours[..9], *b"REDIS0009");
        if compression {
            assert_eq!(ours[9..ours.len() - 8], file[9..file.len() - 8]);
        } else {
            assert_eq!(ours[ours.len() - 8..], [0; 8]);
            let again = read(&ours[..]).unwrap();
            assert_eq!(again.keys.len(), contents.keys.len());
        }
    }
}
