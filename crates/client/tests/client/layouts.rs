//! The layouts of other programs, against vectors that those programs wrote. The scripts are beside
//! the vectors.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use everbloom_client::{BitmapFilter, Error, redisson_default_item};
use redis::Connection;
use serde_json::{Value, json};

use crate::support::with_bitmaps;

fn vectors(file: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let text = fs::read_to_string(folder.join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn numbers(vector: &Value, field: &str) -> BTreeSet<u64> {
    let numbers = vector[field].as_array().unwrap().iter();
    numbers.map(|number| number.as_u64().unwrap()).collect()
}

/// The bits of a bitmap.
fn bits(connection: &mut Connection, key: &str) -> BTreeSet<u64> {
    let bytes: Vec<u8> = redis::cmd("GET").arg(key).query(connection).unwrap();
    let set = bytes.iter().enumerate().flat_map(|(place, byte)| {
        let of_byte = move |bit: &u64| byte & (0x80 >> bit) != 0;
        (0..8)
            .filter(of_byte)
            .map(move |bit| 8 * place as u64 + bit)
    });
    set.collect()
}

/// Adds an item and compares the bits with those that the original set.
fn check(connection: &mut Connection, filter: &BitmapFilter, item: &[u8], set: &BTreeSet<u64>) {
    filter.delete(connection).unwrap();
    assert!(filter.add(connection, item).unwrap());
    assert_eq!(
        bits(connection, filter.keys()[0]),
        *set,
        "{item:?} in {filter:?}"
    );
    assert!(filter.contains(connection, item).unwrap());
}

/// A bitmap of so many bits may be large, and a test runs beside others.
const MOST_BITS: u64 = 100_000_000;

#[test]
fn of_python() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let mut checked = 0;
        for vector in vectors("mmh3.json") {
            let bits = vector["bits"].as_u64().unwrap();
            let set = numbers(&vector, "positions");
            if set.last().is_some_and(|last| *last > MOST_BITS) {
                continue;
            }
            let hashes = vector["positions"].as_array().unwrap().len() as u32;
            let filter = BitmapFilter::python("bloom", bits, hashes).unwrap();
            let item = vector["item"].as_str().unwrap();
            check(&mut connection, &filter, item.as_bytes(), &set);
            checked += 1;
        }
        assert!(checked > 40, "{checked}");
    }
}

#[test]
fn of_java() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let filter = BitmapFilter::java("users");
        assert_eq!(filter.keys(), ["bf-users"]);
        for vector in vectors("hashcode.json") {
            let item = vector["item"].as_str().unwrap();
            check(
                &mut connection,
                &filter,
                item.as_bytes(),
                &numbers(&vector, "positions"),
            );
        }
    }
}

#[test]
fn of_redisson() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        for vector in vectors("redisson.json") {
            let text = vector["item"].as_str().unwrap();
            let item = match vector["codec"].as_str().unwrap() {
                "StringCodec" => text.as_bytes().to_vec(),
                _ => redisson_default_item(text),
            };
            let encoded: String = item.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(vector["encoded"], encoded, "{text}");
            let (bits, hashes) = (vector["bits"].as_u64(), vector["hashes"].as_u64());
            let (bits, hashes) = (bits.unwrap(), hashes.unwrap() as u32);
            let name = vector["name"].as_str().unwrap();
            let filter = BitmapFilter::redisson_with(name, bits, hashes).unwrap();
            assert_eq!(vector["keys"], json!(filter.keys()));
            check(&mut connection, &filter, &item, &numbers(&vector, "set"));

            // And with the dimensions as Redisson keeps them.
            let mut set = redis::cmd("HSET");
            set.arg(filter.keys()[1])
                .arg("size")
                .arg(bits)
                .arg("hashIterations")
                .arg(hashes);
            set.arg("expectedInsertions")
                .arg(1_000_000)
                .exec(&mut connection)
                .unwrap();
            assert_eq!(
                BitmapFilter::redisson(&mut connection, name).unwrap(),
                filter
            );
        }
        let error = BitmapFilter::redisson(&mut connection, "none").unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
    }
}
