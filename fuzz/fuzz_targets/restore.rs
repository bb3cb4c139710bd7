//! A payload of any bytes for RESTORE: no panic, a valid value or an error, and what is dumped from
//! the value restores to an equal one.
//!
//! The input is tried as it is, and with a version and a checksum behind it that are right.
#![no_main]

use everbloom::Check;
use everbloom_server::keyspace::Value;
use everbloom_server::rdb::crc64::crc64;
use everbloom_server::rdb::{dump, restore};
use libfuzzer_sys::fuzz_target;

/// The most that bit arrays may take.
const LIMIT: u64 = 1 << 20;

fuzz_target!(|input: &[u8]| {
    check(input);
    let mut payload = [input, &[12, 0]].concat();
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    check(&payload);
});

fn check(payload: &[u8]) {
    let Ok(value) = restore(payload, LIMIT) else {
        return;
    };
    let again = restore(&dump(&value, true).unwrap(), LIMIT).unwrap();
    match (&value, &again) {
        (Value::Text(a), Value::Text(b)) => assert_eq!(a, b),
        (Value::Filter(a), Value::Filter(b)) => {
            assert_eq!(a, b);
            a.parts().validate(LIMIT, Check::RdbValue).unwrap();
            // A filter from outside takes items, or says why not.
            let mut filter = a.clone();
            if filter.layers().iter().all(|layer| layer.capacity() < LIMIT) {
                let inserted = filter.try_insert("an item");
                assert!(inserted.is_err() || filter.contains("an item"));
            }
        }
        _ => panic!("a value changed its type"),
    }
}
