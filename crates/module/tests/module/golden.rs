//! Files recorded from RedisBloom load with the recorded contents.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use everbloom_files::rdb::crc64;
use everbloom_resp::Reply;
use serde_json::Value as Json;

use crate::support::{Client, Host, from_redis_7};

/// The newest RDB version that Redis 6.2 loads. The recordings are of version 12, which has nothing
/// that these files need.
pub const VERSION: u16 = 9;

/// A payload of DUMP around a type byte and a value.
pub fn envelope(value: &[u8]) -> Vec<u8> {
    let mut payload = value.to_vec();
    payload.extend_from_slice(&VERSION.to_le_bytes());
    payload.extend_from_slice(&crc64(&payload).to_le_bytes());
    payload
}

/// The recorded file, as a file of the version that the host knows.
pub fn for_the_host(file: &[u8]) -> Vec<u8> {
    assert_eq!(&file[..5], b"REDIS");
    let mut file = file.to_vec();
    let known = format!("{VERSION:04}");
    if &file[5..9] > known.as_bytes() {
        file[5..9].copy_from_slice(known.as_bytes());
        let end = file.len() - 8;
        // Zero when it was written without.
        if file[end..] != [0; 8] {
            let checksum = crc64(&file[..end]);
            file[end..].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    file
}

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../files/tests/golden")
}

fn keys(json: &Path) -> Vec<Json> {
    let json: Json = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    json["keys"].as_array().unwrap().clone()
}

fn base64(json: &Json) -> Vec<u8> {
    BASE64_STANDARD.decode(json.as_str().unwrap()).unwrap()
}

/// Text, or base64 of what is none.
fn bytes(json: &Json) -> Vec<u8> {
    match json {
        Json::String(text) => text.clone().into_bytes(),
        other => base64(&other["b64"]),
    }
}

fn list(json: &Json) -> Vec<Vec<u8>> {
    json.as_array().unwrap().iter().map(bytes).collect()
}

fn check_key(client: &mut Client, json: &Json) {
    let key = bytes(&json["key"]);
    let name = key.escape_ascii().to_string();
    client.ok(&format!("SELECT {}", json["db"]));
    let at = json["expire_ms"].as_i64().unwrap_or(-1);
    let reply = client.call(&[b"PEXPIRETIME", &key[..]]);
    if !reply.is_error() {
        // Redis 7.0 on.
        assert_eq!(reply, Reply::Integer(at), "{name}");
    }
    if let Some(value) = json.get("value") {
        assert_eq!(
            client.call(&[b"GET", &key[..]]),
            Reply::Bulk(bytes(value)),
            "{name}"
        );
        return;
    }
    let mut lines: Vec<_> = list(&json["debug"]).into_iter().map(Reply::Bulk).collect();
    let (family, debug) = match json["type"].as_str() {
        Some("cuckoo") => ("CF", lines.remove(0)),
        _ => ("BF", Reply::Array(lines)),
    };
    let reply = client.call(&[format!("{family}.DEBUG").as_bytes(), &key[..]]);
    assert_eq!(reply, debug, "{name}");
    for (items, expected) in [("present", 1), ("absent", 0)] {
        for item in list(&json[items]) {
            let reply = client.call(&[format!("{family}.EXISTS").as_bytes(), &key[..], &item]);
            assert_eq!(
                reply,
                Reply::Integer(expected),
                "{name} {}",
                item.escape_ascii()
            );
        }
    }
}

#[test]
fn recorded_snapshots_load() {
    for name in ["bloom", "cuckoo", "plain", "old-encodings"] {
        let keys = keys(&folder().join(format!("rdb/{name}.json")));
        let file = fs::read(folder().join(format!("rdb/{name}.rdb"))).unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("dump.rdb"), for_the_host(&file)).unwrap();
        let Some(host) = Host::in_dir(dir, &[], &[]) else {
            return;
        };
        let mut client = host.client();
        keys.iter().for_each(|json| check_key(&mut client, json));
    }
}

#[test]
fn recorded_payloads_load() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    for name in ["bloom", "cuckoo", "plain", "old-encodings"] {
        client.ok("FLUSHALL");
        for json in keys(&folder().join(format!("rdb/{name}.json"))) {
            if json["type"] == "string" {
                continue;
            }
            let (key, payload) = (bytes(&json["key"]), base64(&json["dump_b64"]));
            let payload = envelope(&payload[..payload.len() - 10]);
            let at = json["expire_ms"].as_i64().unwrap_or(0).max(0).to_string();
            client.ok(&format!("SELECT {}", json["db"]));
            let restore = [b"RESTORE", &key[..], at.as_bytes(), &payload, b"ABSTTL"];
            assert_eq!(client.call(&restore), Reply::OK);
            check_key(&mut client, &json);
        }
    }
}

/// Old encodings, one by one.
#[test]
fn recorded_values_of_every_version_load() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let file = fs::read(folder().join("rdb/old-encodings.rdb")).unwrap();
    let mut found = [0; 5];
    for json in keys(&folder().join("rdb/old-encodings.json")) {
        let key = bytes(&json["key"]);
        let head = [&[7, u8::try_from(key.len()).unwrap()], &key[..]].concat();
        let start = file
            .windows(head.len())
            .position(|part| part == head)
            .unwrap();
        let value = &file[start + head.len()..];
        // The version is in the last bits of the type's id, which is `81` and eight bytes.
        found[usize::from(value[8] & 7)] += 1;
        client.ok(&format!("SELECT {}", json["db"]));
        // What follows a value in a payload is not looked at: the rest of the file may stay.
        let payload = envelope(&[&[7], value].concat());
        let reply = client.call(&[b"RESTORE", &key[..], b"0", &payload]);
        assert_eq!(reply, Reply::OK, "{}", key.escape_ascii());
        check_key(&mut client, &json);
    }
    assert_eq!(found, [2; 5]);
}

#[test]
fn recorded_logs_load() {
    if !from_redis_7() {
        return;
    }
    for name in ["rdb-base", "command-base"] {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (
            folder().join("aof").join(name),
            dir.path().join("appendonlydir"),
        );
        let expected = keys(&from.join("expected.json"));
        fs::create_dir(&to).unwrap();
        for file in fs::read_dir(from.join("appendonlydir")).unwrap() {
            let file = file.unwrap();
            let mut content = fs::read(file.path()).unwrap();
            if content.starts_with(b"REDIS") {
                content = for_the_host(&content);
            }
            fs::write(to.join(file.file_name()), content).unwrap();
        }
        let Some(host) = Host::in_dir(dir, &["--appendonly", "yes"], &[]) else {
            return;
        };
        let mut client = host.client();
        expected
            .iter()
            .for_each(|json| check_key(&mut client, json));
    }
}
