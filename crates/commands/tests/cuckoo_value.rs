//! A cuckoo filter as fields: what is written, what every version reads, and what is refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

#[allow(dead_code)]
mod fields;

use everbloom::CuckooFilter;
use everbloom::redisbloom::CuckooError;
use everbloom_commands::format::value::{ValueError, load, save, value_type};
use everbloom_commands::{Filter, FilterKind};

use fields::Field::{Bytes, Double, Unsigned};
use fields::{Field, Rest, Row};

type Loaded = Result<Filter, ValueError<&'static str>>;

fn read(fields: &[Field], version: u32) -> Loaded {
    load(FilterKind::Cuckoo, &mut Rest(fields), version, 1 << 20)
}

fn fields(filter: CuckooFilter) -> Vec<Field> {
    let mut row = Row::default();
    let Ok(()) = save(&filter.into(), &mut row);
    row.0
}

/// `CF.RESERVE c 4`, `CF.ADD c foo`, as recorded from RedisBloom.
fn recorded() -> Vec<Field> {
    let mut row: Vec<Field> = [1, 2, 1, 0, 2, 20, 1, 2].map(Unsigned).into();
    row.push(Bytes(vec![0, 0, 0xd9, 0]));
    row
}

fn built() -> CuckooFilter {
    let mut filter = CuckooFilter::builder().slots(4).build().unwrap();
    filter.insert("foo").unwrap();
    filter
}

#[test]
fn fields_are_those_of_redisbloom() {
    assert_eq!(fields(built()), recorded());
    assert_eq!(read(&recorded(), 4).unwrap(), Filter::Cuckoo(built()));
}

#[test]
fn grown_filters_come_back_equal() {
    for expansion in 1..4 {
        let builder = CuckooFilter::builder().slots(8).expansion(expansion);
        let mut filter = builder.build().unwrap();
        for item in 0..100 {
            filter.insert(&item).unwrap();
        }
        filter.remove(&1);
        assert!(filter.tables() > 1);
        let loaded = read(&fields(filter.clone()), 4).unwrap();
        assert_eq!(loaded, Filter::Cuckoo(filter));
    }
}

#[test]
fn older_versions_have_the_parameters_of_their_time() {
    let slots = || Bytes(vec![0, 0, 0xd9, 0]);
    for version in 0..4 {
        let row = [Unsigned(2), Unsigned(2), Unsigned(2), slots(), slots()];
        let Filter::Cuckoo(filter) = read(&row, version).unwrap() else {
            panic!("another kind");
        };
        let found = (filter.bucket_size(), filter.max_kicks(), filter.expansion());
        assert_eq!((found, filter.count("foo")), ((2, 20, 1), 2));
    }
}

#[test]
fn every_rule_has_its_error() {
    let with = |place: usize, value: u64| {
        let mut row = recorded();
        row[place] = Unsigned(value);
        read(&row, 4).unwrap_err()
    };
    assert_eq!(with(0, 0), ValueError::Cuckoo(CuckooError::Tables));
    assert_eq!(with(0, 65537), ValueError::Field("tables"));
    for buckets in [0, 3, 1 << 56] {
        assert_eq!(with(1, buckets), ValueError::Cuckoo(CuckooError::Buckets));
    }
    assert_eq!(with(4, 0), ValueError::Cuckoo(CuckooError::BucketSize));
    assert_eq!(with(4, 256), ValueError::Field("bucket size"));
    assert_eq!(with(5, 0), ValueError::Cuckoo(CuckooError::Kicks));
    assert_eq!(with(5, 65536), ValueError::Field("iterations"));
    assert_eq!(with(6, 32769), ValueError::Cuckoo(CuckooError::Expansion));
    assert_eq!(with(6, 65536), ValueError::Field("expansion"));
    assert_eq!(with(7, 4), ValueError::Field("buckets"));
    let limit = 1 << 20;
    for buckets in [limit, 1 << 55] {
        let error = ValueError::Cuckoo(CuckooError::TooLarge { limit });
        assert_eq!(with(1, buckets), error);
    }
    for bytes in [0, 3, 5] {
        let mut row = recorded();
        row[8] = Bytes(vec![0; bytes]);
        let error = ValueError::BitArray {
            layer: 0,
            bytes: bytes as u64,
            expected: 4,
        };
        assert_eq!(read(&row, 4).unwrap_err(), error);
    }
    for len in 0..recorded().len() {
        let error = read(&recorded()[..len], 4).unwrap_err();
        assert_eq!(error, ValueError::Read("missing"));
    }
    assert!(matches!(
        read(&recorded(), 5),
        Err(ValueError::Version { version: 5, .. })
    ));
}

fn keyed() -> CuckooFilter {
    let builder = CuckooFilter::builder().capacity(4).error_rate(0.01);
    let mut filter = builder.seed(1).expansion(1).build().unwrap();
    filter.insert("foo").unwrap();
    filter
}

fn read_keyed(fields: &[Field], version: u32) -> Loaded {
    load(FilterKind::KeyedCuckoo, &mut Rest(fields), version, 1 << 20)
}

/// `CF.RESERVE c 4 ERROR 0.01 SEED 1 EXPANSION 1`, `CF.ADD c foo`.
fn keyed_fields() -> Vec<Field> {
    let mut row: Vec<Field> = [1, 8, 1, 0, 4, 500, 1].map(Unsigned).into();
    let key = 0xbeeb_8da1_658e_ec67_910a_2dec_8902_5cc1_u128;
    let mut slots = vec![0; 40];
    slots[30..32].copy_from_slice(&[0xff, 0x01]);
    row.extend([Bytes(key.to_le_bytes().into()), Double(0.01)]);
    row.extend([10, 2, 8].map(Unsigned));
    row.push(Bytes(slots));
    row
}

#[test]
fn fields_of_a_chosen_error_rate_never_change() {
    let known = value_type(FilterKind::KeyedCuckoo);
    assert_eq!((known.name, known.version), ("everblmCF", 1));
    assert_eq!(fields(keyed()), keyed_fields());
    assert_eq!(
        read_keyed(&keyed_fields(), 1).unwrap(),
        Filter::Cuckoo(keyed())
    );
    // RedisBloom's type has no such fields, and this one no other.
    assert!(read(&keyed_fields(), 4).is_err());
    assert!(read_keyed(&recorded(), 1).is_err());
    for version in [0, 2, 4] {
        assert!(matches!(
            read_keyed(&keyed_fields(), version),
            Err(ValueError::Version { .. })
        ));
    }
}

#[test]
fn every_rule_of_a_chosen_error_rate_has_its_error() {
    let with = |place: usize, field: Field| {
        let mut row = keyed_fields();
        row[place] = field;
        read_keyed(&row, 1).unwrap_err()
    };
    let rate = ValueError::Cuckoo(CuckooError::ErrorRate);
    for buckets in [0, 5, 1 << 56] {
        let error = ValueError::Cuckoo(CuckooError::Buckets);
        assert_eq!(with(1, Unsigned(buckets)), error);
    }
    let bucket_size = ValueError::Cuckoo(CuckooError::BucketSize);
    assert_eq!(with(4, Unsigned(2)), bucket_size);
    assert_eq!(
        with(6, Unsigned(3)),
        ValueError::Cuckoo(CuckooError::Expansion)
    );
    assert_eq!(with(7, Bytes(vec![0; 15])), ValueError::Field("key"));
    for error_rate in [0.0, 0.001, 0.6, f64::NAN, f64::INFINITY] {
        assert_eq!(with(8, Double(error_rate)), rate);
    }
    for width in [0, 9, 57, 255] {
        assert_eq!(with(9, Unsigned(width)), rate);
    }
    assert_eq!(with(9, Unsigned(256)), ValueError::Field("width"));
    assert_eq!(with(10, Unsigned(57)), rate);
    assert_eq!(with(10, Unsigned(256)), ValueError::Field("step"));
    assert_eq!(with(11, Unsigned(4)), ValueError::Field("buckets"));
    for bytes in [0, 32, 39, 41] {
        let error = ValueError::BitArray {
            layer: 0,
            bytes: bytes as u64,
            expected: 40,
        };
        assert_eq!(with(12, Bytes(vec![0; bytes])), error);
    }
    for len in 0..keyed_fields().len() {
        let error = read_keyed(&keyed_fields()[..len], 1).unwrap_err();
        assert_eq!(error, ValueError::Read("missing"));
    }
}
