//! Inputs of the target `restore`, and what must be true of them.
//!
//! An input is tried as it is, and with a version and a checksum behind it that are right.

use std::ops::ControlFlow;

use everbloom::redisbloom::Check;
use everbloom_commands::Filter;
use everbloom_commands::format::value::valkey::of_load;
use everbloom_files::Value;
use everbloom_files::rdb::{crc64, dump, restore};

/// The most that bit arrays may take.
const LIMIT: u64 = 1 << 20;

/// The payloads of an input, for a reader of this RDB version.
pub(crate) fn payloads(input: &[u8], version: u16) -> [Vec<u8>; 2] {
    let mut payload = [input, &version.to_le_bytes()].concat();
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    [input.to_vec(), payload]
}

/// Restores a payload, if that is one; what is then dumped restores to an equal value. Whether it
/// was one.
pub(crate) fn check(payload: &[u8]) -> bool {
    let Ok(value) = restore(payload, LIMIT) else {
        return false;
    };
    check_value(&value);
    true
}

/// Tries the input as what BF.LOAD of valkey-bloom takes. Whether it was that.
pub(crate) fn check_load(input: &[u8]) -> bool {
    let Some(filter) = of_load(input, LIMIT) else {
        return false;
    };
    check_value(&Value::Filter(Filter::Bloom(filter)));
    true
}

fn check_value(value: &Value) {
    let again = restore(&dump(value, true, usize::MAX).unwrap(), LIMIT).unwrap();
    match (value, &again) {
        (Value::Text(a), Value::Text(b)) => assert_eq!(a, b),
        (Value::Filter(a), Value::Filter(b)) => {
            assert_eq!(a, b);
            // A filter from outside takes items, or says why not: it may not grow so far.
            let mut inserted = false;
            match a.clone() {
                Filter::Bloom(mut filter) => {
                    filter.parts().validate(LIMIT, Check::RdbValue).unwrap();
                    filter.try_insert_each([b"an item"], LIMIT, |reply| {
                        inserted = reply.is_ok();
                        ControlFlow::Break(())
                    });
                    assert!(!inserted || filter.contains("an item"));
                }
                Filter::Cuckoo(mut filter) => {
                    filter.parts().validate(LIMIT).unwrap();
                    filter.insert_each([b"an item"], LIMIT, |reply| {
                        inserted = reply.is_ok();
                        ControlFlow::Break(())
                    });
                    // With another expansion an item that makes room goes where it is not found.
                    let even = filter.expansion().is_power_of_two() || filter.tables() == 1;
                    assert!(!inserted || !even || filter.contains("an item"));
                    filter.remove("an item");
                    filter.compact();
                }
            }
        }
        _ => panic!("a value changed its type"),
    }
}
