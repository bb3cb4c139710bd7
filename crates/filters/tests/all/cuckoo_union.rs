//! Unions of cuckoo filters: a log and a replica repeat them, and must come to the same bytes.

use everbloom::{CuckooBuilder, CuckooFilter};

fn filled(builder: CuckooBuilder, items: std::ops::Range<u32>) -> CuckooFilter {
    let mut filter = builder.build().unwrap();
    items.for_each(|item| filter.insert(&item).unwrap());
    filter
}

/// FNV-1a of the bytes of a filter.
fn digest(filter: &CuckooFilter) -> u64 {
    let bytes = filter.to_bytes();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn keyed(capacity: u64) -> CuckooBuilder {
    CuckooFilter::builder()
        .capacity(capacity)
        .error_rate(0.01)
        .seed(7)
}

/// Where the items are after a union must never change: an older or newer version may repeat it.
#[test]
fn a_union_has_the_bytes_that_were_recorded() {
    let plain = CuckooFilter::builder().slots(256);
    let large = CuckooFilter::builder().slots(4096).expansion(2);
    for (builder, counts, tables, expected) in [
        (plain, (700, 900), 7, 0x16bd_fa9f_ec84_29b7),
        (
            plain.bucket_size(1).max_kicks(3),
            (300, 500),
            5,
            0xf765_3482_f00a_3829,
        ),
        (large, (500, 500), 1, 0x81d9_c440_50b1_4003),
        (keyed(1000), (480, 500), 1, 0x4098_5735_333a_5424),
        (keyed(100), (0, 700), 3, 0x51d1_2230_9e82_f332),
    ] {
        let one = filled(builder, 0..counts.0);
        let other = filled(builder, 10_000..10_000 + counts.1);
        let united = one.united(&other).unwrap();
        let found = (united.tables(), digest(&united));
        assert_eq!(found, (tables, expected), "{builder:?}");
    }
}

/// A filter that grows for the items of others has no more tables than those together.
#[test]
fn a_union_makes_no_table_for_nothing() {
    let builder = CuckooFilter::builder().slots(100);
    for count in [1, 100, 3000, 20_000] {
        let source = filled(builder, 0..count);
        for own in [0, 1, 2000] {
            let filter = filled(builder, 1_000_000..1_000_000 + own);
            let most = filter.tables() + source.tables();
            let united = filter.united(&source).unwrap();
            assert!(
                united.tables() <= most,
                "{count} and {own}: {}",
                united.tables()
            );
            assert!((0..count).all(|item| united.contains(&item)));
            let mut compact = united.clone();
            compact.compact();
            let (before, after) = (united.tables(), compact.tables());
            assert!(
                before <= after + after / 4 + 1,
                "{count} and {own}: {before}, {after}"
            );
        }
    }
}
