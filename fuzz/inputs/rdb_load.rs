//! Inputs of the target `rdb_load`, and what must be true of them.
//!
//! The header is put before the input, the first byte of which chooses the version. Most files end
//! without the eight zero bytes that switch the checksum off, so these are put behind it.

use everbloom::redisbloom::Check;
use everbloom_commands::Filter;
use everbloom_files::Value;
use everbloom_files::rdb::{Event, Reader, WriteOptions, Writer};

/// The most that bit arrays may take: enough for any filter that fits a short input, many times.
const LIMIT: u64 = 1 << 20;

/// The file of an input; none of an empty one.
pub(crate) fn file(input: &[u8]) -> Option<Vec<u8>> {
    let (first, body) = input.split_first()?;
    let version = 6 + first % 7;
    let header = format!("REDIS{version:04}");
    Some([header.as_bytes(), body, b"\xff\0\0\0\0\0\0\0\0"].concat())
}

/// Reads a file; what is written from its values reads back equal. Returns the keys up to the end
/// or to what is wrong, and whether it was read to the end.
pub(crate) fn check(file: &[u8]) -> (usize, bool) {
    let (keys, whole) = read(file);
    let mut writer = Writer::new(Vec::new(), WriteOptions::default()).unwrap();
    for (key, value) in &keys {
        match value {
            Value::Text(text) => writer.text(key, None, text).unwrap(),
            Value::Filter(filter) => writer.filter(key, None, filter).unwrap(),
        }
    }
    let (written, _) = writer.finish().unwrap();
    let (again, _) = read(&written);
    assert_eq!(again.len(), keys.len());
    for ((key_a, a), (key_b, b)) in again.iter().zip(&keys) {
        assert_eq!(key_a, key_b);
        match (a, b) {
            (Value::Text(a), Value::Text(b)) => assert_eq!(a, b),
            (Value::Filter(a), Value::Filter(b)) => assert_eq!(a, b),
            _ => panic!("a value changed its type"),
        }
    }
    (keys.len(), whole)
}

fn read(file: &[u8]) -> (Vec<(Vec<u8>, Value)>, bool) {
    let mut keys = Vec::new();
    let mut reader = Reader::new(file, LIMIT).unwrap();
    loop {
        match reader.next_event() {
            Ok(Event::Key { key, value, .. }) => {
                if let Value::Filter(filter) = &value {
                    match filter {
                        Filter::Bloom(filter) => {
                            filter.parts().validate(LIMIT, Check::RdbValue).unwrap();
                            let _ = filter.contains(&key);
                        }
                        Filter::Cuckoo(filter) => {
                            filter.parts().validate(LIMIT).unwrap();
                            let _ = filter.count(&key);
                        }
                    }
                }
                keys.push((key, value));
            }
            Ok(Event::End { bytes }) => {
                assert!(bytes <= file.len() as u64);
                return (keys, true);
            }
            Ok(_) => {}
            Err(error) => {
                assert!(error.offset <= file.len() as u64);
                return (keys, false);
            }
        }
    }
}
