//! Files of valkey-bloom: its filters answer here as they did there, and go on as they would have.
//!
//! The golden files say which items were added and what the original answered.

use std::collections::HashMap;
use std::io::Cursor;

use everbloom::host::LayeredFilter;
use everbloom::redisbloom::ValkeyBloom;
use everbloom_commands::format::value::valkey::of_load;
use everbloom_commands::{Filter, FilterKind};
use everbloom_files::Value;
use everbloom_files::rdb::{Event, Reader, dump, restore};
use serde_json::Value as Json;

use super::damage::sealed;

const FILES: [&[u8]; 2] = [
    include_bytes!("../../golden/valkey-bloom/dump.rdb"),
    include_bytes!("../../golden/valkey-bloom/dump-capfirst.rdb"),
];
const LOG: &[u8] = include_bytes!("../../golden/valkey-bloom/rewrite.aof");

fn lines(text: &str) -> Vec<Json> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

fn filters() -> Vec<Json> {
    lines(include_str!("../../golden/valkey-bloom/filters.jsonl"))
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = (0..text.len()).step_by(2);
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    pairs.map(byte).collect()
}

/// The items of a rule; none of one that only the original knows.
fn items(rule: &Json) -> Vec<Vec<u8>> {
    match rule["kind"].as_str().unwrap() {
        "fmt" => {
            let range = rule["from"].as_u64().unwrap()..rule["to"].as_u64().unwrap();
            let format = rule["fmt"].as_str().unwrap();
            let item = |number: u64| {
                let text = format.replace("%d", &number.to_string());
                text.replace("%05d", &format!("{number:05}")).into_bytes()
            };
            range.map(item).collect()
        }
        "hex" => {
            let list = rule["items"].as_array().unwrap().iter();
            list.map(|item| unhex(item.as_str().unwrap())).collect()
        }
        _ => Vec::new(),
    }
}

/// The answers as the golden files write them.
fn answers(filter: &LayeredFilter, items: &[Vec<u8>]) -> String {
    let mut answers = String::new();
    let items = items.iter().map(Vec::as_slice);
    filter.contains_each(items, |found| answers.push(if found { '1' } else { '0' }));
    answers
}

fn check(filter: &LayeredFilter, told: &Json) {
    let key = &told["key"];
    let added = items(&told["added"]);
    if !added.is_empty() {
        assert_eq!(answers(filter, &added), told["added_exists"], "{key}");
    }
    let absent = items(&told["absent"]);
    assert_eq!(absent.len(), 2000);
    assert_eq!(answers(filter, &absent), told["absent_exists"], "{key}");
    for (item, answer) in absent.iter().zip(answers(filter, &absent).chars()) {
        assert_eq!(filter.contains(item.as_slice()), answer == '1', "{key}");
    }
    assert_eq!(filter.len(), told["card"].as_u64().unwrap(), "{key}");
    let layers = filter.layers().iter();
    let layers = layers.map(|it| [it.capacity(), it.len(), it.hashes().into(), it.bytes()]);
    let layers: Vec<Json> = layers.map(|it| it.to_vec().into()).collect();
    assert_eq!(Json::from(layers), told["subs"], "{key}");
    let seed = filter.valkey().unwrap().seed.to_vec();
    assert_eq!(seed, unhex(told["seed"].as_str().unwrap()), "{key}");
    check_capacity(filter, told);
}

/// What valkey-bloom says of the capacity after all growth, within its limit of 128 MiB.
fn check_capacity(filter: &LayeredFilter, told: &Json) {
    let info = told["info2"].as_array().unwrap();
    let Some(at) = info.iter().position(|it| it == "Max scaled capacity") else {
        return assert!(filter.is_fixed());
    };
    let (first, valkey) = (filter.layers()[0].capacity(), filter.valkey().unwrap());
    let (rate, expansion) = (filter.error_rate(), filter.expansion());
    let most = valkey.max_capacity(first, rate, expansion, 128 << 20);
    assert_eq!(most, info[at + 1], "{}", told["key"]);
}

fn bloom(value: &Value) -> &LayeredFilter {
    match value {
        Value::Filter(Filter::Bloom(filter)) => filter,
        other => panic!("{other:?}"),
    }
}

fn read(file: &[u8]) -> HashMap<String, Value> {
    let mut reader = Reader::new(Cursor::new(file), u64::MAX).unwrap();
    let mut found = HashMap::new();
    loop {
        match reader.next_event().unwrap() {
            Event::Key { key, value, .. } => {
                found.insert(String::from_utf8(key).unwrap(), value);
            }
            Event::Skipped { key: Some(key), .. } => panic!("{key:?}"),
            Event::End { .. } => return found,
            _ => {}
        }
    }
}

/// The golden filters whose seed is not random.
#[test]
fn the_fixed_seed_is_the_originals() {
    let mut seeds = filters().into_iter();
    let fixed = seeds.find(|told| told["key"] == "default-fixed").unwrap();
    let seed = unhex(fixed["seed"].as_str().unwrap());
    assert_eq!(seed, ValkeyBloom::FIXED_SEED);
}

/// In either order of fields.
#[test]
fn filters_of_a_file_answer_as_the_original() {
    for file in FILES {
        let found = read(file);
        assert_eq!(found.len(), 19);
        for told in filters() {
            let value = &found[told["key"].as_str().unwrap()];
            check(bloom(value), &told);
            // In our own format they come back as they were.
            let Value::Filter(filter) = value else {
                panic!()
            };
            assert_eq!(filter.kind(), FilterKind::Valkey);
            let payload = dump(value, true, usize::MAX).unwrap();
            let restored = restore(&payload, u64::MAX).unwrap();
            assert_eq!(bloom(&restored), bloom(value), "{}", told["key"]);
            let bytes = bloom(value).to_bytes();
            assert_eq!(&LayeredFilter::from_bytes(&bytes).unwrap(), bloom(value));
        }
    }
}

#[test]
fn payloads_and_logs_hold_the_same_filters() {
    let found = read(FILES[0]);
    let dumps = lines(include_str!("../../golden/valkey-bloom/dumps.jsonl"));
    assert_eq!(dumps.len(), 17);
    for line in &dumps {
        let payload = unhex(line["dump"].as_str().unwrap());
        let value = restore(&payload, u64::MAX).unwrap();
        let key = line["key"].as_str().unwrap();
        assert_eq!(bloom(&value), bloom(&found[key]), "{key}");
    }
    let mut loads = 0;
    for (key, blob) in loads_of(LOG) {
        let filter = of_load(&blob, u64::MAX).unwrap();
        assert_eq!(&filter, bloom(&found[&key]), "{key}");
        loads += 1;
    }
    assert_eq!(loads, 19);
}

/// The keys and blobs of BF.LOAD in a log.
fn loads_of(mut log: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut loads = Vec::new();
    let line = |log: &mut &[u8]| -> usize {
        let end = log.iter().position(|byte| *byte == b'\n').unwrap();
        let text = String::from_utf8(log[1..end - 1].to_vec()).unwrap();
        *log = &log[end + 1..];
        text.parse().unwrap()
    };
    while !log.is_empty() {
        let count = line(&mut log);
        let mut words = Vec::new();
        for _ in 0..count {
            let len = line(&mut log);
            words.push(log[..len].to_vec());
            log = &log[len + 2..];
        }
        if let [name, key, blob] = words.as_slice()
            && name.eq_ignore_ascii_case(b"BF.LOAD")
        {
            loads.push((String::from_utf8(key.clone()).unwrap(), blob.clone()));
        }
    }
    loads
}

/// What is made here and gets the same items is, bit for bit, what was loaded.
#[test]
fn filters_grow_as_the_original() {
    let found = read(FILES[0]);
    let mut grown = 0;
    for told in filters() {
        let key = told["key"].as_str().unwrap();
        let loaded = bloom(&found[key]);
        let added = items(&told["added"]);
        if added.is_empty() {
            continue;
        }
        let first = &loaded.layers()[0];
        let builder = LayeredFilter::builder()
            .capacity(first.capacity())
            .error_rate(first.error_rate())
            .expansion(told["expansion"].as_u64().unwrap().try_into().unwrap())
            .valkey(*loaded.valkey().unwrap());
        let mut made = builder.build().unwrap();
        let replies = told["add_replies"].as_str().unwrap();
        for (item, reply) in added.iter().zip(replies.chars()) {
            let answer = match made.try_insert(item.as_slice()) {
                Ok(true) => '1',
                Ok(false) => '0',
                Err(_) => 'E',
            };
            assert_eq!(answer, reply, "{key}");
        }
        assert_eq!(&made, loaded, "{key}");
        grown += usize::from(made.layers().len() > 1);
    }
    assert!(grown > 5, "{grown}");
}

#[test]
fn damaged_filters_are_refused() {
    let loads = loads_of(LOG);
    let (_, blob) = loads.iter().min_by_key(|(_, blob)| blob.len()).unwrap();
    assert!(of_load(blob, u64::MAX).is_some());
    for len in 0..blob.len() {
        assert!(of_load(&blob[..len], u64::MAX).is_none(), "{len}");
    }
    // What follows the last layer does not matter.
    assert!(of_load(&[blob, &b"more"[..]].concat(), u64::MAX).is_some());
    // Every number at its extremes: a filter or none, and never more memory than there are bytes.
    for at in 0..blob.len().min(90) {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut damaged = blob.clone();
            damaged[at] = byte;
            if let Some(filter) = of_load(&damaged, u64::MAX) {
                assert!(filter.stream_len() <= blob.len() as u64, "{at}");
            }
        }
    }
    assert!(of_load(blob, 0).is_none());
    // A payload that ends anywhere, or has any other byte, with a checksum that is right.
    let dumps = lines(include_str!("../../golden/valkey-bloom/dumps.jsonl"));
    let payloads = dumps
        .iter()
        .map(|line| unhex(line["dump"].as_str().unwrap()));
    let payload = payloads.min_by_key(Vec::len).unwrap();
    let value = &payload[..payload.len() - 10];
    for len in 0..value.len() {
        assert!(
            restore(&sealed(&value[..len], 9), u64::MAX).is_err(),
            "{len}"
        );
    }
    for at in 0..value.len() {
        for bit in 0..8 {
            let mut damaged = value.to_vec();
            damaged[at] ^= 1 << bit;
            if let Ok(Value::Filter(filter)) = restore(&sealed(&damaged, 9), u64::MAX) {
                assert!(filter.stream_len() < 1000, "{at}");
            }
        }
    }
    let file = FILES[0];
    for len in (0..file.len()).step_by(997) {
        let reader = Reader::new(Cursor::new(&file[..len]), u64::MAX);
        let ends_well = reader.is_ok_and(|mut reader| {
            loop {
                match reader.next_event() {
                    Ok(Event::End { .. }) => break true,
                    Ok(_) => {}
                    Err(_) => break false,
                }
            }
        });
        assert!(!ends_well, "{len}");
    }
}
