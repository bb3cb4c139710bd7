//! An RDB file of any bytes: no panic, little memory, and every value that comes out is valid: a
//! filter passes the checks of its parts, and what is written from the values reads back equal.
//!
//! The header is put before the input, the first byte of which chooses the version. Most files end
//! without the eight zero bytes that switch the checksum off, so these are put behind it.
#![no_main]

use everbloom::Check;
use everbloom_server::keyspace::Value;
use everbloom_server::rdb::{Event, Reader, WriteOptions, Writer};
use libfuzzer_sys::fuzz_target;

/// The most that bit arrays may take: enough for any filter that fits a short input, many times.
const LIMIT: u64 = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((first, body)) = input.split_first() else {
        return;
    };
    let version = 6 + first % 7;
    let file = [
        format!("REDIS{version:04}").as_bytes(),
        body,
        b"\xff\0\0\0\0\0\0\0\0",
    ]
    .concat();
    let keys = read(&file);
    let mut writer = Writer::new(Vec::new(), WriteOptions::default()).unwrap();
    for (key, value) in &keys {
        match value {
            Value::Text(text) => writer.text(key, None, text).unwrap(),
            Value::Filter(filter) => writer.filter(key, None, filter).unwrap(),
        }
    }
    let (written, _) = writer.finish().unwrap();
    let again = read(&written);
    assert_eq!(again.len(), keys.len());
    for ((key_a, a), (key_b, b)) in again.iter().zip(&keys) {
        assert_eq!(key_a, key_b);
        match (a, b) {
            (Value::Text(a), Value::Text(b)) => assert_eq!(a, b),
            (Value::Filter(a), Value::Filter(b)) => assert_eq!(a, b),
            _ => panic!("a value changed its type"),
        }
    }
});

/// The keys up to the end or to what is wrong.
fn read(file: &[u8]) -> Vec<(Vec<u8>, Value)> {
    let mut keys = Vec::new();
    let mut reader = Reader::new(file, LIMIT).unwrap();
    loop {
        match reader.next_event() {
            Ok(Event::Key { key, value, .. }) => {
                if let Value::Filter(filter) = &value {
                    filter.parts().validate(LIMIT, Check::RdbValue).unwrap();
                    let _ = filter.contains(&key);
                }
                keys.push((key, value));
            }
            Ok(Event::End { bytes }) => {
                assert!(bytes <= file.len() as u64);
                return keys;
            }
            Ok(_) => {}
            Err(error) => {
                assert!(error.offset <= file.len() as u64);
                return keys;
            }
        }
    }
}
