//! Files recorded from RedisBloom load with the recorded contents.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use everbloom_files::rdb::crc64;
use everbloom_resp::{DecodeLimits, Reply, decode};
use serde_json::Value as Json;

use crate::support::{Client, Host, elements, from_redis_7};

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
    let lines = list(&json["debug"]).into_iter().map(Reply::Bulk).collect();
    let reply = client.call(&[b"BF.DEBUG", &key[..]]);
    assert_eq!(reply, Reply::Array(lines), "{name}");
    for (items, expected) in [("present", 1), ("absent", 0)] {
        for item in list(&json[items]) {
            let reply = client.call(&[b"BF.EXISTS", &key[..], &item]);
            assert_eq!(
                reply,
                Reply::Integer(expected),
                "{name} {}",
                item.escape_ascii()
            );
        }
    }
}

fn is_ours(json: &Json) -> bool {
    json["type"] != "cuckoo"
}

/// How many bytes a length has, and what it says. A special encoding of a string says its number.
fn length(bytes: &[u8]) -> (usize, usize) {
    let of = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    };
    match bytes[0] {
        0x80 => (5, of(&bytes[1..5])),
        0x81 => (9, of(&bytes[1..9])),
        first if first < 0x40 => (1, first.into()),
        first if first < 0x80 => (2, of(&[first & 0x3f, bytes[1]])),
        first => (1, usize::from(first & 0x3f)),
    }
}

/// How many bytes the value of a module has, from the type's id to the end of its fields.
fn module_value_len(bytes: &[u8]) -> usize {
    let mut at = 9;
    loop {
        let field = bytes[at];
        at += 1;
        let (head, said) = length(&bytes[at..]);
        at += match field {
            0 => return at,
            2 => head,
            4 => 8,
            5 if bytes[at] < 0xc0 => head + said,
            5 if said == 3 => {
                let (packed_head, packed) = length(&bytes[at + 1..]);
                let (plain_head, _) = length(&bytes[at + 1 + packed_head..]);
                1 + packed_head + plain_head + packed
            }
            5 => head + (1 << said),
            _ => panic!("a field of type {field}"),
        };
    }
}

/// A file without its cuckoo filters, for a host that has no module for them, and in the version
/// that the host knows.
fn without_cuckoo(file: &[u8], keys: &[Json]) -> Vec<u8> {
    let mut file = file.to_vec();
    for json in keys.iter().filter(|json| !is_ours(json)) {
        let key = bytes(&json["key"]);
        let head = [&[7, u8::try_from(key.len()).unwrap()], &key[..]].concat();
        let found = file.windows(head.len()).position(|part| part == head);
        if let Some(start) = found {
            let len = head.len() + module_value_len(&file[start + head.len()..]);
            file.drain(start..start + len);
        }
    }
    // The checksum was that of the whole file.
    let end = file.len() - 8;
    if file[end..] != [0; 8] {
        let checksum = crc64(&file[..end]);
        file[end..].copy_from_slice(&checksum.to_le_bytes());
    }
    for_the_host(&file)
}

/// The commands of a log but those on cuckoo filters.
fn without_cuckoo_commands(log: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut rest = log;
    while !rest.is_empty() {
        if rest[0] == b'#' {
            let line = rest.iter().position(|byte| *byte == b'\n').unwrap();
            rest = &rest[line + 1..];
            continue;
        }
        let (reply, used) = decode(rest, &DecodeLimits::default()).unwrap().unwrap();
        let words = elements(reply);
        if !words[0].as_bytes().unwrap().starts_with(b"CF.") {
            kept.extend_from_slice(&rest[..used]);
        }
        rest = &rest[used..];
    }
    kept
}

#[test]
fn recorded_snapshots_load() {
    for name in ["bloom", "plain"] {
        let keys = keys(&folder().join(format!("rdb/{name}.json")));
        let file = fs::read(folder().join(format!("rdb/{name}.rdb"))).unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("dump.rdb"), without_cuckoo(&file, &keys)).unwrap();
        let Some(host) = Host::in_dir(dir, &[], &[]) else {
            return;
        };
        let mut client = host.client();
        for json in keys.iter().filter(|json| is_ours(json)) {
            check_key(&mut client, json);
        }
    }
}

#[test]
fn recorded_payloads_load() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    for name in ["bloom", "plain"] {
        client.ok("FLUSHALL");
        for json in keys(&folder().join(format!("rdb/{name}.json"))) {
            if json["type"] != "bloom" {
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
        if !is_ours(&json) {
            continue;
        }
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
    assert_eq!(found, [1; 5]);
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
                content = without_cuckoo(&content, &expected);
            } else if !content.starts_with(b"file ") {
                content = without_cuckoo_commands(&content);
            }
            fs::write(to.join(file.file_name()), content).unwrap();
        }
        let Some(host) = Host::in_dir(dir, &["--appendonly", "yes"], &[]) else {
            return;
        };
        let mut client = host.client();
        let ours = expected.iter().filter(|json| is_ours(json));
        ours.for_each(|json| check_key(&mut client, json));
    }
}
