//! Parameters at their limits, and what is refused.

use super::*;
use everbloom::host::Layer;

#[test]
fn corner_parameters() {
    let build = |rate, capacity, expansion| {
        LayeredFilter::builder()
            .layout(Layout::Classic)
            .error_rate(rate)
            .capacity(capacity)
            .expansion(expansion)
            .build()
    };
    use everbloom::BuildError;
    assert_eq!(build(5e-324, 100, 2), Err(BuildError::Unsizable));
    assert_eq!(build(5e-324, 100, 0).unwrap().layers()[0].hashes(), 1075);
    assert_eq!(
        build(1e-323, 100, 2).unwrap().layers()[0].error_rate(),
        5e-324
    );
    assert_eq!(
        build(1.0_f64.next_down(), 100, 2).unwrap().error_rate(),
        0.25
    );
    assert_eq!(build(0.25, 100, 2).unwrap(), build(0.9, 100, 2).unwrap());
    assert_eq!(build(0.01, 0, 2), Err(BuildError::Capacity));
    assert_eq!(build(0.01, u64::MAX, 2), Err(BuildError::Unsizable));
    for rate in [0.0, 1.0, f64::NAN, -1.0, f64::INFINITY] {
        assert_eq!(build(rate, 100, 2), Err(BuildError::ErrorRate));
    }
    let limited = LayeredFilter::builder()
        .layout(Layout::Classic)
        .max_layer_bytes(143)
        .build();
    assert_eq!(limited, Err(BuildError::TooLarge { bytes: 144 }));
    let huge = build(0.01, 1 << 58, 2);
    assert!(
        matches!(huge, Err(BuildError::OutOfMemory { .. })),
        "{huge:?}"
    );

    // Half of the smallest rate is 0: the second layer cannot be.
    let mut filter = build(1e-323, 1, 2).unwrap();
    assert_eq!(filter.try_insert("a"), Ok(true));
    assert_eq!(filter.try_insert("b"), Err(InsertError::CannotGrow));
    assert_eq!(filter.try_insert("a"), Ok(false));
    // A capacity of 1 that stays 1, and one that explodes until nobody can give the memory.
    let mut filter = build(0.01, 1, 1).unwrap();
    filter.extend((0..100_u32).map(u32::to_le_bytes));
    assert!(filter.layers().len() > 50, "{}", filter.layers().len());
    assert_eq!(filter.capacity(), filter.layers().len() as u64);
    let mut filter = build(0.01, 1, 32_768).unwrap();
    filter.extend((0..33_500_u32).map(u32::to_le_bytes));
    assert_eq!(filter.layers().len(), 3);
    assert_eq!(filter.capacity(), 1 + 32_768 + 32_768 * 32_768);
    let parts = filter.parts();
    let refused = 1 << 20;
    let mut small = build(0.01, 32, 32_768).unwrap();
    let items: Vec<[u8; 4]> = (0..40_u32).map(u32::to_le_bytes).collect();
    let mut errors = 0;
    small.try_insert_each(items.iter().map(|item| &item[..]), refused, |reply| {
        errors += usize::from(reply == Err(InsertError::CannotGrow));
        ControlFlow::Continue(())
    });
    assert_eq!((errors, small.layers().len()), (8, 1));
    assert_eq!(filter.parts(), parts);
}

#[test]
fn nothing_about_growth_overflows() {
    let layer = LayerParts {
        bytes: 8,
        bits: 64,
        items: u64::MAX,
        error_rate: 0.005,
        bits_per_entry: LayerSize::bits_per_entry_of(0.005),
        hashes: 8,
        capacity: u64::MAX,
        log2_bits: 0,
    };
    for (expansion, options, capacity) in [
        (2, 5, u64::MAX),
        (2, 5, (1 << 63) + 50),
        (u32::MAX, 5, 1 << 40),
        (1, 5, u64::MAX),
        (1, 7, 64),
        (1, 4, 1 << 62),
    ] {
        let layers = vec![LayerParts { capacity, ..layer }];
        let parts = FilterParts {
            items: u64::MAX,
            options,
            expansion,
            key: None,
            valkey: None,
            window: None,
            layers,
        };
        let mut filter = LayeredFilter::from_parts(&parts, 8).unwrap();
        assert_eq!(
            filter.try_insert("a"),
            Err(InsertError::CannotGrow),
            "{expansion} {options}"
        );
        assert!(filter.insert("a"));
        assert!(filter.contains("a"));
        assert_eq!(filter.len(), u64::MAX);
    }
    // A capacity of 0, as a header may have, is full from the start and grows to 0.
    let layers = vec![LayerParts {
        capacity: 0,
        items: 0,
        ..layer
    }];
    let parts = FilterParts {
        items: 0,
        options: 5,
        expansion: 2,
        key: None,
        valkey: None,
        window: None,
        layers,
    };
    let mut filter = LayeredFilter::from_parts(&parts, 8).unwrap();
    assert_eq!(filter.try_insert("a"), Err(InsertError::CannotGrow));
    assert_eq!((filter.len(), filter.capacity()), (0, 0));
}

#[test]
fn chunks_must_lie_within_a_layer() {
    let mut filter = LayeredFilter::builder()
        .layout(Layout::Classic)
        .capacity(10)
        .build()
        .unwrap();
    filter.extend((0..30_u32).map(u32::to_le_bytes));
    assert_eq!(
        filter
            .layers()
            .iter()
            .map(|layer| layer.bytes())
            .collect::<Vec<_>>(),
        [16, 32]
    );
    let before = filter.clone();
    assert_eq!(filter.load_chunk(0, &[0; 17]), Err(ChunkError::TooLong));
    assert_eq!(filter.load_chunk(15, &[0; 2]), Err(ChunkError::TooLong));
    assert_eq!(filter.load_chunk(47, &[0; 2]), Err(ChunkError::TooLong));
    assert_eq!(filter.load_chunk(48, &[0]), Err(ChunkError::NoLayer));
    assert_eq!(filter.load_chunk(48, &[]), Err(ChunkError::NoLayer));
    assert_eq!(filter.load_chunk(u64::MAX, &[0]), Err(ChunkError::NoLayer));
    assert_eq!(filter.load_chunk(3, &[]), Ok(()));
    assert!(filter == before);
    assert_eq!(filter.load_chunk(16, &[0xff; 32]), Ok(()));
    assert!(*filter.layers()[1].as_bytes() == [0xff; 32]);
    assert_eq!(filter.layers()[0].as_bytes(), before.layers()[0].as_bytes());
    assert_eq!(filter.stream_chunk(15, 100).unwrap().len(), 1);
    assert_eq!(filter.stream_chunk(16, 7).as_deref(), Some(&[0xff; 7][..]));
    assert_eq!(filter.stream_chunk(48, 7), None);
    assert_eq!(filter.stream_chunk(u64::MAX, 7), None);
}

#[test]
fn unions_of_others_are_refused() {
    use everbloom::UnionError;
    let build = |bits, hashes, capacity| {
        BloomFilter::builder()
            .layout(Layout::Classic)
            .bits(bits)
            .hashes(hashes)
            .capacity(capacity)
            .build()
            .unwrap()
    };
    let mut filter = build(1024, 7, 100);
    filter.insert("a");
    let before = filter.clone();
    assert_eq!(filter.union(&build(1088, 7, 100)), Err(UnionError::Bits));
    assert_eq!(filter.union(&build(1024, 6, 100)), Err(UnionError::Hashes));
    assert_eq!(
        filter.union(&build(1024, 7, 101)),
        Err(UnionError::Capacity)
    );
    assert_eq!(filter, before);
    assert_eq!(filter.union(&build(1024, 7, 100)), Ok(()));
    assert_eq!(filter, before);
}

#[test]
fn fixed_builder_combinations() {
    use everbloom::BuildError;
    let builder = || BloomFilter::builder().layout(Layout::Classic);
    assert_eq!(builder().build(), Err(BuildError::Capacity));
    assert_eq!(builder().error_rate(0.1).build(), Err(BuildError::Capacity));
    assert_eq!(builder().capacity(0).build(), Err(BuildError::Capacity));
    assert_eq!(
        builder().capacity(1).error_rate(1.0).build(),
        Err(BuildError::ErrorRate)
    );
    assert_eq!(builder().bits(0).hashes(1).build(), Err(BuildError::Bits));
    assert_eq!(
        builder().bits(64).hashes(0).build(),
        Err(BuildError::Hashes)
    );
    assert_eq!(
        builder().bits(64).hashes(5000).build(),
        Err(BuildError::Hashes)
    );
    assert_eq!(builder().bits(64).build(), Err(BuildError::Hashes));
    assert_eq!(
        builder().capacity(10).hashes(3).build(),
        Err(BuildError::Conflict)
    );
    let all = builder().capacity(10).hashes(3).bits(64).error_rate(0.1);
    assert_eq!(all.build(), Err(BuildError::Conflict));
    assert_eq!(
        builder().bits(65).hashes(3).max_bytes(8).build(),
        Err(BuildError::TooLarge { bytes: 16 })
    );

    let filter = builder().bits(10_000).capacity(1000).build().unwrap();
    assert_eq!(
        (filter.bits(), filter.hashes(), filter.capacity()),
        (10_048, 7, 1000)
    );
    assert!((filter.error_rate() - 0.008).abs() < 0.0005);
    let filter = builder().bits(10_000).error_rate(0.01).build().unwrap();
    assert_eq!(
        (filter.bits(), filter.hashes(), filter.capacity()),
        (10_048, 7, 1048)
    );
    let filter = builder().capacity(10).error_rate(0.9).build().unwrap();
    assert_eq!((filter.hashes(), filter.error_rate()), (1, 0.9));
}

#[test]
fn small_filters_are_small() {
    let filter = LayeredFilter::builder()
        .layout(Layout::Classic)
        .build()
        .unwrap();
    assert!(
        filter.memory_usage() <= 144 + 120,
        "{}",
        filter.memory_usage()
    );
    let filter = BloomFilter::builder()
        .layout(Layout::Classic)
        .capacity(100)
        .build()
        .unwrap();
    assert!(
        filter.memory_usage() <= 120 + 72,
        "{}",
        filter.memory_usage()
    );
}

/// A filter keeps its key once, and each layer takes little beside its bits.
#[test]
fn a_layer_costs_little_beside_its_bits() {
    for layout in [Layout::Classic, Layout::Blocked] {
        let mut filter = LayeredFilter::builder().layout(layout).build().unwrap();
        let mut measured = 0;
        for number in 0..100_000 {
            filter.insert(&number);
            let layers = filter.layers();
            // A classic layer of few ones has no bits.
            if layers.last().is_none_or(|newest| newest.len() != 50) {
                continue;
            }
            let bits: u64 = layers.iter().map(Layer::bytes).sum();
            let beside = filter.memory_usage() - bits as usize;
            // The only layer is in the filter itself; a list has all of them.
            let layers = if layers.len() == 1 { 0 } else { layers.len() };
            let most = 160 + 100 * layers;
            assert!(beside <= most, "{layout:?}, {layers} layers: {beside}");
            measured += 1;
        }
        assert!(measured > 2);
    }
}

#[test]
fn old_options_name_their_rules() {
    let options = |bits| {
        let layer = LayeredFilter::builder()
            .layout(Layout::Classic)
            .build()
            .unwrap()
            .parts()
            .layers[0];
        let parts = FilterParts {
            items: 0,
            options: bits,
            expansion: 2,
            key: None,
            valkey: None,
            window: None,
            layers: vec![layer],
        };
        LayeredFilter::from_parts(&parts, LIMIT).unwrap().options()
    };
    assert_eq!(options(5).rounding(), Rounding::Words);
    assert_eq!(options(4).rounding(), Rounding::PowerOfTwo);
    assert_eq!(options(7).rounding(), Rounding::Log2);
    assert_eq!(options(5).hash_width().bits(), 64);
    assert_eq!(options(1).hash_width().bits(), 32);
    assert!(options(13).has(Options::NO_SCALING) && !options(5).has(Options::NO_SCALING));
}
