//! A filter as fields: what is written, what every version reads, and what is refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod fields;

use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::PartsError;
use everbloom_commands::format::value::{
    ValueError, load, save, save_array_head, save_array_tail, save_head,
};
use everbloom_commands::{Filter, FilterKind};

use fields::Field::{Bytes, Double, Unsigned};
use fields::{Field, Rest, Row};

type Loaded = Result<LayeredFilter, ValueError<&'static str>>;

fn read(fields: &[Field], version: u32) -> Loaded {
    let kind = FilterKind::Bloom(Layout::Classic);
    load(kind, &mut Rest(fields), version, 1 << 20).map(fields::bloom)
}

fn newer(version: u32) -> ValueError<&'static str> {
    ValueError::Version {
        type_name: "MBbloom--",
        version,
    }
}

fn fields(filter: &LayeredFilter) -> Vec<Field> {
    let mut row = Row::default();
    let Ok(()) = save(&filter.clone().into(), &mut row);
    row.0
}

/// `BF.RESERVE k 0.01 3`, `BF.ADD k foo`, as recorded from RedisBloom.
fn recorded() -> Vec<Field> {
    vec![
        Unsigned(1),
        Unsigned(1),
        Unsigned(5),
        Unsigned(2),
        Unsigned(3),
        Double(0.005),
        Unsigned(8),
        Double(f64::from_le_bytes([
            0xe9, 0x86, 0x2f, 0xb2, 0x35, 0x0e, 0x26, 0x40,
        ])),
        Unsigned(64),
        Unsigned(0),
        Bytes(vec![0, 0xa0, 0xaa, 0x0a, 0, 0, 0, 0]),
        Unsigned(1),
    ]
}

#[test]
fn fields_are_those_of_redisbloom() {
    let mut filter = LayeredFilter::builder()
        .layout(Layout::Classic)
        .error_rate(0.01)
        .capacity(3)
        .build()
        .unwrap();
    filter.insert("foo");
    assert_eq!(fields(&filter), recorded());
    assert_eq!(read(&recorded(), 4).unwrap(), filter);
}

#[test]
fn grown_and_fixed_filters_come_back_equal() {
    for capacity in [1, 10, 1000] {
        let builder = LayeredFilter::builder()
            .layout(Layout::Classic)
            .capacity(capacity);
        for builder in [builder, builder.expansion(4), builder.fixed()] {
            let mut filter = builder.build().unwrap();
            for item in 0..300_u32 {
                let _ = filter.try_insert(&item.to_le_bytes());
            }
            assert_eq!(read(&fields(&filter), 4).unwrap(), filter);
        }
    }
}

#[test]
fn parts_give_the_same_fields_as_the_whole() {
    let mut filter = LayeredFilter::builder()
        .layout(Layout::Classic)
        .capacity(10)
        .build()
        .unwrap();
    filter.extend((0..100_u32).map(u32::to_le_bytes));
    let mut row = Row::default();
    let parts = Filter::from(filter.clone()).parts();
    let Ok(()) = save_head(&parts, &mut row);
    for (number, layer) in filter.layers().iter().enumerate() {
        let Ok(()) = save_array_head(&parts, number, &mut row);
        row.0.push(Bytes(layer.as_bytes().to_vec()));
        let Ok(()) = save_array_tail(&parts, number, &mut row);
    }
    assert_eq!(row.0, fields(&filter));
}

#[test]
fn older_versions_lack_fields() {
    let mut row = recorded();
    row.remove(3);
    for version in [2, 3] {
        let filter = read(&row, version).unwrap();
        assert_eq!((filter.options().bits(), filter.expansion()), (5, 2));
    }
    row.remove(2);
    let filter = read(&row, 1).unwrap();
    assert_eq!(
        (filter.options().bits(), filter.expansion(), filter.len()),
        (0, 2, 1)
    );
    assert_eq!(filter.options().hash_width().bits(), 32);
    // The bit count follows from the capacity: 32 items at 16 bits. 12 bits are set.
    let row = vec![
        Unsigned(0),
        Unsigned(1),
        Unsigned(32),
        Double(0.01),
        Unsigned(12),
        Double(16.03),
        Bytes(vec![0; 64]),
        Unsigned(0),
    ];
    assert_eq!(read(&row, 0).unwrap().layers()[0].bits(), 512);
}

#[test]
fn newer_versions_are_refused() {
    assert_eq!(read(&recorded(), 5).unwrap_err(), newer(5));
    assert_eq!(read(&[], u32::MAX).unwrap_err(), newer(u32::MAX));
}

#[test]
fn wide_fields_are_cut_and_sums_are_not_checked() {
    let mut row = recorded();
    for (place, width) in [(2, 32), (3, 32), (6, 32), (9, 8)] {
        let Unsigned(value) = &mut row[place] else {
            unreachable!()
        };
        *value |= 7 << width;
    }
    assert_eq!(read(&row, 4).unwrap(), read(&recorded(), 4).unwrap());
    row[0] = Unsigned(100);
    row[2] = Unsigned(0xfff5);
    let filter = read(&row, 4).unwrap();
    assert_eq!((filter.len(), filter.options().bits()), (100, 0xfff5));
    assert_eq!(fields(&filter)[..3], row[..3]);
}

#[test]
fn every_rule_has_its_error() {
    let with = |place: usize, field: Field| {
        let mut row = recorded();
        row[place] = field;
        read(&row, 4).unwrap_err()
    };
    let layer = 0;
    let parts = ValueError::Parts;
    assert_eq!(with(1, Unsigned(0)), parts(PartsError::NoLayers));
    for rate in [
        0.0,
        -0.1,
        1.0,
        2.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ] {
        assert_eq!(
            with(5, Double(rate)),
            parts(PartsError::ErrorRate { layer })
        );
    }
    for hashes in [0, 7, 9, u64::from(u32::MAX)] {
        assert_eq!(
            with(6, Unsigned(hashes)),
            parts(PartsError::Hashes { layer })
        );
    }
    for bits in [f64::NAN, f64::INFINITY, -11.0, 0.0, 1e300] {
        assert_eq!(with(7, Double(bits)), parts(PartsError::Hashes { layer }));
    }
    for bits in [0, 7, 63, 65, u64::MAX] {
        assert_eq!(with(8, Unsigned(bits)), parts(PartsError::Bits { layer }));
    }
    for log2 in [7, 63, 64, 255] {
        assert_eq!(with(9, Unsigned(log2)), parts(PartsError::Bits { layer }));
    }
    let limit = 1 << 20;
    for bits in [limit * 8 + 8, u64::MAX - 7] {
        assert_eq!(
            with(8, Unsigned(bits)),
            parts(PartsError::TooLarge { limit })
        );
    }
    for bytes in [0_u8, 7, 9] {
        let error = ValueError::BitArray {
            layer,
            bytes: bytes.into(),
            expected: 8,
        };
        assert_eq!(with(10, Bytes(vec![0; bytes.into()])), error);
    }
    for place in 0..recorded().len() {
        assert!(matches!(
            with(place, Bytes(vec![])),
            ValueError::Read(_) | ValueError::BitArray { .. }
        ));
        assert_eq!(
            read(&recorded()[..place], 4).unwrap_err(),
            ValueError::Read("missing")
        );
    }
    // All claimed layers must be there, and the reader asks for no more.
    assert_eq!(with(1, Unsigned(u64::MAX)), ValueError::Read("missing"));
}
