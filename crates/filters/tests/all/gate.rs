//! Parts from outside: what is refused, and that nothing panics or asks for memory.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::common::Batches;
use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{Check, FilterParts, LayerParts, PartsError};

fn scalable() -> LayeredFilter {
    let mut filter = LayeredFilter::builder()
        .layout(Layout::Classic)
        .capacity(20)
        .build()
        .unwrap();
    filter.extend((0..50_u32).map(u32::to_le_bytes));
    filter
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
        LayeredFilter::from_parts(&parts, 1 << 20).err()
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
    let (mut items, mut options) = (good(), good());
    (items.items, options.options) = (7, 0x105);
    for (parts, error) in [(items, PartsError::Items), (options, PartsError::Options)] {
        assert_eq!(LayeredFilter::from_parts(&parts, 1 << 20), Err(error));
        // What a value of an RDB file may be.
        let check = Check::RdbValue;
        let filter = LayeredFilter::from_parts_checked(&parts, 1 << 20, check).unwrap();
        assert_eq!(filter.parts(), parts);
    }
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
    assert!(LayeredFilter::from_parts(&parts, total).is_ok());
    let error = PartsError::TooLarge { limit: total - 1 };
    assert_eq!(LayeredFilter::from_parts(&parts, total - 1), Err(error));
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
    assert_eq!(LayeredFilter::from_parts(&parts, u64::MAX), Err(error));
    parts.layers.truncate(1);
    parts.items = huge.items;
    let error = PartsError::OutOfMemory;
    assert_eq!(LayeredFilter::from_parts(&parts, u64::MAX), Err(error));
}

/// With no hashes every item tests positive, which is no false negative.
#[test]
fn a_layer_without_hashes_contains_everything() {
    let mut parts = good();
    (parts.layers[0].bits_per_entry, parts.layers[0].hashes) = (0.0, 0);
    let mut filter = LayeredFilter::from_parts(&parts, 1 << 20).unwrap();
    assert!(filter.contains("anything"));
    assert_eq!(filter.contains_all(&["a", "b"]), [true, true]);
    assert_eq!(filter.insert_all(&["a", "b"]), [false, false]);
    assert_eq!(filter.stats().estimated_error_rate, 1.0);
    assert_eq!(filter.stats().estimated_items, parts.layers[0].items);
}

#[test]
fn counts_at_their_end_still_add_up() {
    let mut parts = good();
    for layer in &mut parts.layers {
        layer.items = 0;
    }
    (parts.layers[0].items, parts.items) = (u64::MAX, u64::MAX);
    let mut filter = LayeredFilter::from_parts(&parts, 1 << 20).unwrap();
    assert!(filter.insert("x"));
    assert!(filter.contains("x"));
    assert_eq!(filter.insert_all(&["x", "y", "z"]), [false, true, true]);
    assert!(filter.contains("y") && filter.contains("z"));
    assert_eq!(filter.parts(), parts);
    let bytes = filter.to_bytes();
    assert_eq!(LayeredFilter::from_bytes(&bytes), Ok(filter));
}
