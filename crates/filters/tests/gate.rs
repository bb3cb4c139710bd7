//! Bytes and parts from outside: what is refused, and that nothing panics or asks for memory.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use common::Batches;
use everbloom::hash::murmur64a;
use everbloom::redisbloom::{Check, FilterParts, LayerParts, PartsError};
use everbloom::{BloomFilter, BytesError, Layout, ScalableBloomFilter};
use proptest::prelude::*;

fn scalable() -> ScalableBloomFilter {
    let mut filter = ScalableBloomFilter::builder()
        .layout(Layout::Classic)
        .capacity(20)
        .build()
        .unwrap();
    filter.extend((0..50_u32).map(u32::to_le_bytes));
    filter
}

fn fixed() -> BloomFilter {
    let mut filter = BloomFilter::builder()
        .layout(Layout::Classic)
        .capacity(20)
        .build()
        .unwrap();
    filter.extend(["a", "b", "c"]);
    filter
}

/// Changes bytes and makes the checksum right again, as an attacker would.
fn forge(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut forged = bytes[..bytes.len() - 8].to_vec();
    change(&mut forged);
    let checksum = murmur64a(&forged, 0);
    forged.extend(checksum.to_le_bytes());
    forged
}

/// Written once and for all: these bytes must load in every later version.
#[test]
fn bytes_of_version_1() {
    let mut filter = BloomFilter::builder()
        .layout(Layout::Classic)
        .capacity(3)
        .error_rate(0.005)
        .build()
        .unwrap();
    filter.insert("foo");
    #[rustfmt::skip]
    let start = [
        b'E', b'V', b'R', b'B', b'L', b'O', b'O', b'M', 1, 0, 1, 0, 13, 0, 0, 0,
        0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
        0x7b, 0x14, 0xae, 0x47, 0xe1, 0x7a, 0x74, 0x3f,
        0xe9, 0x86, 0x2f, 0xb2, 0x35, 0x0e, 0x26, 0x40,
        8, 0, 0, 0, 0, 0, 0, 0,
        // The chunk that RedisBloom dumps for this filter.
        0x00, 0xa0, 0xaa, 0x0a, 0x00, 0x00, 0x00, 0x00,
    ];
    let bytes = filter.to_bytes();
    assert_eq!(bytes[..start.len()], start);
    assert_eq!(bytes.len(), start.len() + 8);
    assert_eq!(bytes, forge(&bytes, |_| ()));
    assert_eq!(BloomFilter::from_bytes(&bytes), Ok(filter));
}

#[test]
fn every_filter_comes_back() {
    let filter = scalable();
    assert_eq!(
        ScalableBloomFilter::from_bytes(&filter.to_bytes()),
        Ok(filter)
    );
    let filter = fixed();
    assert_eq!(BloomFilter::from_bytes(&filter.to_bytes()), Ok(filter));
    // As a stored value may be: sums that do not agree, an option nobody knows.
    let mut parts = scalable().parts();
    (parts.items, parts.options) = (7, 0x105);
    assert_eq!(
        ScalableBloomFilter::from_parts(&parts, 1 << 20),
        Err(PartsError::Options)
    );
    parts.options = 5;
    assert_eq!(
        ScalableBloomFilter::from_parts(&parts, 1 << 20),
        Err(PartsError::Items)
    );
    parts.options = 0x105;
    let filter = ScalableBloomFilter::from_parts_checked(&parts, 1 << 20, Check::RdbValue).unwrap();
    assert_eq!(filter.parts(), parts);
    assert_eq!(
        ScalableBloomFilter::from_bytes(&filter.to_bytes()),
        Ok(filter)
    );
}

#[test]
fn damaged_bytes_are_refused() {
    for (bytes, is_fixed) in [(scalable().to_bytes(), false), (fixed().to_bytes(), true)] {
        let read = |bytes: &[u8]| {
            if is_fixed {
                BloomFilter::from_bytes(bytes).err()
            } else {
                ScalableBloomFilter::from_bytes(bytes).err()
            }
        };
        assert_eq!(read(&bytes), None);
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_some(), "cut to {len}");
        }
        for index in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[index] ^= 1 << bit;
                assert!(read(&damaged).is_some(), "bit {bit} of byte {index}");
            }
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(read(&longer), Some(BytesError::Checksum));
    }
}

#[test]
fn forged_bytes_are_refused() {
    let bytes = fixed().to_bytes();
    let read = |change: &dyn Fn(&mut Vec<u8>)| {
        BloomFilter::from_bytes(&forge(&bytes, |bytes| change(bytes))).unwrap_err()
    };
    assert_eq!(read(&|b| b[0] = b'X'), BytesError::Magic);
    assert_eq!(read(&|b| b[8] = 3), BytesError::Version(3));
    assert_eq!(read(&|b| b[10] = 2), BytesError::Kind);
    assert_eq!(read(&|b| b[11] = 1), BytesError::Reserved);
    assert_eq!(read(&|b| b[12] = 5), BytesError::Reserved);
    assert_eq!(read(&|b| b[16] = 1), BytesError::Reserved);
    assert_eq!(read(&|b| b[20..24].fill(0xff)), BytesError::Length);
    assert_eq!(
        read(&|b| b[20] = 0),
        BytesError::Parts(PartsError::NoLayers)
    );
    assert_eq!(read(&|b| b[24] = 9), BytesError::Reserved);
    assert_eq!(read(&|b| b[32] = 16), BytesError::Length);
    assert_eq!(
        read(&|b| b[38] = 1),
        BytesError::Parts(PartsError::TooLarge { limit: 24 })
    );
    assert_eq!(
        read(&|b| b[32..40].fill(0xff)),
        BytesError::Parts(PartsError::Bits { layer: 0 })
    );
    assert_eq!(read(&|b| b[77] = 1), BytesError::Reserved);
    assert_eq!(read(&|b| b[76] = 3), BytesError::Reserved);
    assert_eq!(
        read(&|b| b[76] = 200),
        BytesError::Parts(PartsError::Bits { layer: 0 })
    );
    assert_eq!(read(&|b| b.push(0)), BytesError::Length);
    assert_eq!(
        read(&|b| b[64..72].fill(0)),
        BytesError::Parts(PartsError::Hashes { layer: 0 })
    );
    let no_hashes = |b: &mut Vec<u8>| b[64..76].fill(0);
    assert_eq!(read(&no_hashes), BytesError::Reserved);
}

fn good() -> FilterParts {
    scalable().parts()
}

#[test]
fn bad_parts_are_refused() {
    let check = |change: &dyn Fn(&mut LayerParts)| {
        let mut parts = good();
        change(&mut parts.layers[1]);
        parts.items = parts
            .layers
            .iter()
            .fold(0, |sum, layer| sum.wrapping_add(layer.items));
        ScalableBloomFilter::from_parts(&parts, 1 << 20).err()
    };
    assert_eq!(check(&|_| ()), None);
    for rate in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(
            check(&|l| l.error_rate = rate),
            Some(PartsError::ErrorRate { layer: 1 })
        );
    }
    for (bytes, bits) in [(0, 0), (8, 63), (8, 65), (1 << 61, 0), ((1 << 61) + 8, 64)] {
        let error = check(&|l| (l.bytes, l.bits) = (bytes, bits));
        assert_eq!(error, Some(PartsError::Bits { layer: 1 }), "{bytes} {bits}");
    }
    for log2_bits in [10, 63, 64, 255] {
        assert_eq!(
            check(&|l| l.log2_bits = log2_bits),
            Some(PartsError::Bits { layer: 1 })
        );
    }
    assert_eq!(check(&|l| l.log2_bits = 8), None);
    for (bits_per_entry, hashes) in [
        (f64::NAN, 0),
        (f64::NAN, 1 << 31),
        (f64::INFINITY, 1 << 31),
        (f64::NEG_INFINITY, 0),
        (-0.5, 0),
        (3.1e9, 2_148_756_259),
        (1e300, u32::MAX),
        (11.0, 9),
        (11.0, 7),
    ] {
        let error = check(&|l| (l.bits_per_entry, l.hashes) = (bits_per_entry, hashes));
        assert_eq!(
            error,
            Some(PartsError::Hashes { layer: 1 }),
            "{bits_per_entry} {hashes}"
        );
    }
    assert_eq!(check(&|l| l.items = u64::MAX), Some(PartsError::Items));
    // Not checked, as RedisBloom does not: capacity, expansion, agreement of rate and bits per
    // entry.
    assert_eq!(check(&|l| l.capacity = 0), None);
    assert_eq!(check(&|l| (l.bytes, l.bits) = (9, 72)), None);
    assert_eq!(check(&|l| l.error_rate = 0.9), None);
    assert_eq!(check(&|l| (l.bits_per_entry, l.hashes) = (0.0, 0)), None);
}

#[test]
fn the_limit_is_for_all_layers_together() {
    let parts = good();
    let total = scalable().stream_len();
    assert!(ScalableBloomFilter::from_parts(&parts, total).is_ok());
    let error = PartsError::TooLarge { limit: total - 1 };
    assert_eq!(
        ScalableBloomFilter::from_parts(&parts, total - 1),
        Err(error)
    );
    // Sums that overflow are over every limit.
    let mut parts = good();
    let huge = LayerParts {
        bytes: 1 << 60,
        bits: 1 << 63,
        ..parts.layers[0]
    };
    parts.layers = vec![huge; 16];
    parts.items = huge.items * 16;
    let error = PartsError::TooLarge { limit: u64::MAX };
    assert_eq!(
        ScalableBloomFilter::from_parts(&parts, u64::MAX),
        Err(error)
    );
    parts.layers.truncate(1);
    parts.items = huge.items;
    let error = PartsError::OutOfMemory;
    assert_eq!(
        ScalableBloomFilter::from_parts(&parts, u64::MAX),
        Err(error)
    );
}

/// With no hashes every item tests positive, which is no false negative.
#[test]
fn a_layer_without_hashes_contains_everything() {
    let mut parts = good();
    (parts.layers[0].bits_per_entry, parts.layers[0].hashes) = (0.0, 0);
    let mut filter = ScalableBloomFilter::from_parts(&parts, 1 << 20).unwrap();
    assert!(filter.contains("anything"));
    assert_eq!(filter.contains_all(&["a", "b"]), [true, true]);
    assert_eq!(filter.insert_all(&["a", "b"]), [false, false]);
    assert_eq!(filter.estimated_error_rate(), 1.0);
    assert_eq!(filter.estimated_len(), parts.layers[0].items);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(BloomFilter::from_bytes(&bytes).is_err());
        prop_assert!(ScalableBloomFilter::from_bytes(&bytes).is_err());
    }

    /// Changed in a few places, with a right checksum: either refused, or a filter that works.
    #[test]
    fn forged_filters_never_panic(
        changes in prop::collection::vec((0_usize..140, any::<u8>()), 1..6),
        is_fixed in any::<bool>(),
    ) {
        let original = if is_fixed { fixed().to_bytes() } else { scalable().to_bytes() };
        let bytes = forge(&original, |bytes| {
            for (index, value) in changes {
                let len = bytes.len();
                bytes[index % len] = value;
            }
        });
        if let Ok(mut filter) = ScalableBloomFilter::from_bytes(&bytes) {
            prop_assert_eq!(filter.to_bytes(), bytes.clone());
            // A forged expansion may ask for a layer that the machine could give; limit it.
            let mut found = false;
            filter.try_insert_each([b"x".as_slice()].into_iter(), 1 << 20, |reply| {
                found = reply.is_ok();
                std::ops::ControlFlow::Continue(())
            });
            prop_assert!(!found || filter.contains("x"));
            let _ = (filter.capacity(), filter.estimated_len(), filter.estimated_error_rate());
        }
        if let Ok(mut filter) = BloomFilter::from_bytes(&bytes) {
            prop_assert_eq!(filter.to_bytes(), bytes);
            filter.insert("x");
            prop_assert!(filter.contains("x"));
            let _ = (filter.estimated_len(), filter.estimated_error_rate());
        }
    }
}

#[test]
fn counts_at_their_end_still_add_up() {
    let mut parts = good();
    for layer in &mut parts.layers {
        layer.items = 0;
    }
    (parts.layers[0].items, parts.items) = (u64::MAX, u64::MAX);
    let mut filter = ScalableBloomFilter::from_parts(&parts, 1 << 20).unwrap();
    assert!(filter.insert("x"));
    assert!(filter.contains("x"));
    assert_eq!(filter.insert_all(&["x", "y", "z"]), [false, true, true]);
    assert!(filter.contains("y") && filter.contains("z"));
    assert_eq!(filter.parts(), parts);
    let bytes = filter.to_bytes();
    assert_eq!(ScalableBloomFilter::from_bytes(&bytes), Ok(filter));
}

#[cfg(feature = "serde")]
#[test]
fn serde_carries_the_bytes() {
    let filter = scalable();
    let text = serde_json::to_string(&filter).unwrap();
    assert_eq!(
        serde_json::from_str::<ScalableBloomFilter>(&text).unwrap(),
        filter
    );
    let filter = fixed();
    let text = serde_json::to_string(&filter).unwrap();
    assert_eq!(serde_json::from_str::<BloomFilter>(&text).unwrap(), filter);
    let error = serde_json::from_str::<BloomFilter>("[1,2,3]").unwrap_err();
    assert!(
        error.to_string().starts_with("not the bytes of a filter"),
        "{error}"
    );
    let error = serde_json::from_str::<ScalableBloomFilter>("7").unwrap_err();
    assert!(
        error.to_string().contains("the bytes of a Bloom filter"),
        "{error}"
    );
}
