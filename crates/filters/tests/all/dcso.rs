//! Filters that DCSO's tool made, its figures, and bytes that are none of its filters.
//! tests/dcso/make.sh made the files beside it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

#[path = "../../../../fuzz/inputs/dcso.rs"]
mod input;

use everbloom::BuildError;
use everbloom::dcso::{DcsoError, DcsoFilter, DcsoHeader, DcsoView};
use everbloom_dev::corpus::seeds;
use proptest::prelude::*;

const ITEMS: &[u8] = include_bytes!("../dcso/items.txt");

/// The first items of the recorded ones.
fn items(count: usize) -> impl Iterator<Item = &'static [u8]> {
    let items = ITEMS.strip_suffix(b"\n").unwrap();
    items.split(|byte| *byte == b'\n').take(count)
}

/// The tool's filters: the file, what of the items it finds there, and those that were put in.
type Recorded = (&'static [u8], &'static [u8], Vec<&'static [u8]>);

fn recorded() -> [Recorded; 4] {
    let third = items(3).skip(2).collect();
    [
        (
            include_bytes!("../dcso/rough.bloom"),
            include_bytes!("../dcso/rough.found"),
            items(100).collect(),
        ),
        (
            include_bytes!("../dcso/fine.bloom"),
            include_bytes!("../dcso/fine.found"),
            items(100).collect(),
        ),
        (
            include_bytes!("../dcso/finest.bloom"),
            include_bytes!("../dcso/finest.found"),
            third,
        ),
        (
            include_bytes!("../dcso/full.bloom"),
            include_bytes!("../dcso/full.found"),
            items(100).collect(),
        ),
    ]
}

#[test]
fn filters_of_the_tool_answer_as_there() {
    for (bytes, found, _) in recorded() {
        let filter = DcsoView::new(bytes).unwrap();
        let mut ours = Vec::new();
        for item in items(400).filter(|item| filter.contains(item)) {
            ours.extend(item);
            ours.push(b'\n');
        }
        assert!(ours == found, "{filter:?}");
        assert_eq!(filter.data(), b"");
        assert!(input::check(bytes));
    }
}

/// The same capacity, error rate and items give the same bytes.
#[test]
fn a_new_filter_is_byte_for_byte_the_tools() {
    for (bytes, _, inserted) in recorded() {
        let header = DcsoHeader::new(bytes).unwrap();
        let mut filter = DcsoFilter::new(header.capacity(), header.error_rate()).unwrap();
        let new = inserted.iter().filter(|item| filter.insert(item)).count();
        assert_eq!(new as u64, header.len());
        assert!(filter.as_bytes() == bytes, "{header:?}");
        assert_eq!(filter.view(), DcsoView::new(bytes).unwrap());
    }
}

#[test]
fn attached_data_is_told_from_the_filter() {
    let (plain, with_data) = (
        include_bytes!("../dcso/fine.bloom"),
        include_bytes!("../dcso/data.bloom"),
    );
    let filter = DcsoView::new(with_data).unwrap();
    assert_eq!(filter.data(), b"made for tests\nof two lines\n");
    assert_eq!(*filter.header(), DcsoHeader::new(plain).unwrap());
    assert_eq!(filter.header().filter_len(), plain.len() as u64);
}

#[test]
fn sizes_are_those_of_the_tool() {
    let mut without_bits = 0;
    for line in include_str!("../dcso/sizes.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (capacity, rate) = (words[0].parse().unwrap(), words[1].parse().unwrap());
        let (bits, hashes): (u64, u32) = (words[2].parse().unwrap(), words[3].parse().unwrap());
        if bits == 0 {
            let refused = DcsoHeader::of(capacity, rate).unwrap_err();
            assert_eq!(refused, BuildError::Unsizable, "{line}");
            without_bits += 1;
            continue;
        }
        let header = DcsoHeader::of(capacity, rate).unwrap();
        assert_eq!((header.bits(), header.hashes()), (bits, hashes), "{line}");
    }
    assert!(without_bits > 0, "the tool makes filters without bits");
}

#[test]
fn what_cannot_be_made_is_refused() {
    for (capacity, rate, refusal) in [
        (0, 0.01, BuildError::Capacity),
        (10, 0.0, BuildError::ErrorRate),
        (10, 1.0, BuildError::ErrorRate),
        (10, -0.5, BuildError::ErrorRate),
        (10, f64::NAN, BuildError::ErrorRate),
        (10, 1.0_f64.next_down(), BuildError::Unsizable),
    ] {
        let refused = DcsoFilter::new(capacity, rate).unwrap_err();
        assert_eq!(refused, refusal, "{capacity} {rate}");
    }
    let refused = DcsoFilter::new(u64::MAX, 5e-324).unwrap_err();
    assert!(matches!(refused, BuildError::OutOfMemory { .. }));
}

/// The error of the recorded filter with a number of its header changed.
fn error(field: usize, number: u64) -> DcsoError {
    let mut bytes = include_bytes!("../dcso/fine.bloom").to_vec();
    bytes[field * 8..field * 8 + 8].copy_from_slice(&number.to_le_bytes());
    DcsoView::new(&bytes).unwrap_err()
}

#[test]
fn what_is_no_filter_is_refused() {
    let bytes = include_bytes!("../dcso/fine.bloom");
    for len in 0..48 {
        let refused = DcsoView::new(&bytes[..len]).unwrap_err();
        assert_eq!(refused, DcsoError::Truncated);
    }
    for len in 48..bytes.len() {
        let refused = DcsoView::new(&bytes[..len]).unwrap_err();
        let (expected, found) = (bytes.len() as u64, len as u64);
        assert_eq!(refused, DcsoError::Length { expected, found });
    }
    for version in [0, 2, 257, u64::MAX] {
        assert_eq!(error(0, version), DcsoError::Version(version));
    }
    assert_eq!(error(1, 0), DcsoError::Capacity);
    for rate in [0.0, -0.0, 1.0, -1.0, f64::INFINITY] {
        assert_eq!(error(2, rate.to_bits()), DcsoError::ErrorRate(rate));
    }
    let refused = error(2, f64::NAN.to_bits());
    assert!(matches!(refused, DcsoError::ErrorRate(rate) if rate.is_nan()));
    for hashes in [0, 1076, 1 << 32 | 7, u64::MAX] {
        assert_eq!(error(3, hashes), DcsoError::Hashes(hashes));
    }
    assert_eq!(error(4, 0), DcsoError::Bits);
    // So many bits that their number of words, or of bytes, could be taken for a small one.
    for bits in [1473, 1 << 40, (1 << 63) + 64, u64::MAX] {
        let expected = 48 + bits.div_ceil(64) * 8;
        let found = bytes.len() as u64;
        assert_eq!(error(4, bits), DcsoError::Length { expected, found });
    }
}

#[test]
fn the_fuzzers_seeds() {
    let (mut taken, mut refused) = (0, 0);
    for (_, seed) in seeds("dcso") {
        for bytes in input::filters(&seed) {
            if input::check(&bytes) {
                taken += 1;
            } else {
                refused += 1;
            }
        }
    }
    assert!(taken > 5 && refused > 5, "{taken} {refused}");
}

proptest! {
    /// What was put in is found, whatever the size.
    #[test]
    fn there_are_no_false_negatives(
        items in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..50),
        capacity in 1..100_u64,
        rate in prop_oneof![0.001..0.5, 1e-100..1e-90],
    ) {
        let mut filter = DcsoFilter::new(capacity, rate).unwrap_or_else(|error| {
            assert_eq!(error, BuildError::Unsizable);
            DcsoFilter::new(100, rate).unwrap()
        });
        for item in &items {
            let was_there = filter.view().contains(item);
            prop_assert_eq!(filter.insert(item), !was_there);
        }
        let read = DcsoView::new(filter.as_bytes()).unwrap();
        prop_assert!(items.iter().all(|item| read.contains(item)));
        prop_assert!(input::check(filter.as_bytes()));
    }

    #[test]
    fn no_bytes_panic(input in prop::collection::vec(any::<u8>(), 0..100)) {
        for bytes in input::filters(&input) {
            input::check(&bytes);
        }
    }
}
