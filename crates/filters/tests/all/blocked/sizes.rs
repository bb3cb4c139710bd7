//! How many bits an item takes, and what cannot be sized.

use super::*;

/// The definition: a Markov chain over the occupied cells, and a sum over the loads.
fn exact_rate(load: f64, hashes: u32) -> f64 {
    let mut occupied = vec![0.0; 513];
    occupied[0] = 1.0;
    let (mut weight, mut sum) = ((-load).exp(), 0.0);
    for items in 1..(load + 12.0 * load.sqrt() + 30.0) as u32 {
        for _ in 0..hashes {
            for cells in (0..=512).rev() {
                let stays = occupied[cells] * cells as f64 / 512.0;
                let comes = if cells == 0 {
                    0.0
                } else {
                    occupied[cells - 1] * (513 - cells) as f64 / 512.0
                };
                occupied[cells] = stays + comes;
            }
        }
        weight *= load / f64::from(items);
        let power = |cells: usize| (cells as f64 / 512.0).powi(hashes.cast_signed());
        sum += weight
            * (0..513)
                .map(|cells| occupied[cells] * power(cells))
                .sum::<f64>();
    }
    sum
}

#[test]
fn the_rate_is_that_of_the_definition() {
    for (hashes, loads) in [
        (2, [0.5, 100.0, 180.0]),
        (3, [10.0, 90.0, 130.0]),
        (6, [5.0, 30.0, 52.0]),
        (9, [1.0, 20.0, 35.0]),
        (12, [0.1, 15.0, 25.0]),
        (16, [1.0, 10.0, 18.0]),
        (24, [1.0, 5.0, 11.0]),
        (32, [0.5, 3.0, 9.0]),
    ] {
        for load in loads {
            let (ours, exact) = (
                BlockedSize::rate_at_load(load, hashes),
                exact_rate(load, hashes),
            );
            let off = (ours / exact - 1.0).abs();
            assert!(
                off < 0.001,
                "{hashes} hashes, {load} items: {ours:e} {exact:e}"
            );
        }
    }
}

#[test]
fn bits_per_item() {
    for (rate, most) in [(0.01, 9.95), (0.001, 15.6), (0.0001, 22.2)] {
        let size = BlockedSize::new(1_000_000, rate).unwrap();
        let bits = size.bits() as f64 / 1e6;
        assert!(bits < most, "{bits} at {rate}");
        // No other number of hashes needs fewer.
        for hashes in [size.hashes - 1, size.hashes + 1] {
            let other = BlockedSize::rate_of(size.bits(), hashes, size.capacity);
            assert!(other > BlockedSize::rate_of(size.bits(), size.hashes, size.capacity));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn sizes_keep_the_rate_and_have_inverses(
        capacity in prop_oneof![1_u64..2000, 1_u64..1 << 50], log_rate in -29.0..-0.7_f64,
    ) {
        let rate = log_rate.exp();
        let size = BlockedSize::new(capacity, rate).unwrap();
        prop_assert!(size.bytes.is_multiple_of(64) && (2..=32).contains(&size.hashes));
        let kept = BlockedSize::rate_of(size.bits(), size.hashes, capacity);
        prop_assert!(kept <= 0.9901 * rate, "{kept:e} for {rate:e}");
        // One block less is too few, but for rounding, and for what is given away.
        if size.bytes > 128 {
            let less = BlockedSize::rate_of(size.bits() - 1024, size.hashes, capacity);
            prop_assert!(less > 0.9899 * rate * (1.0 - 1e-9), "{less:e} for {rate:e}");
        }
        let most = BlockedSize::max_capacity(size.bits(), rate);
        prop_assert!(most >= capacity);
        prop_assert!(BlockedSize::new(most, rate).unwrap().bytes <= size.bytes);
        let again = BlockedSize::from_bits(size.bits(), size.hashes, Some(capacity)).unwrap();
        prop_assert_eq!((again.bytes, again.hashes), (size.bytes, size.hashes));
    }
}

#[test]
fn what_cannot_be_sized() {
    assert_eq!(BlockedSize::new(0, 0.01), None);
    assert_eq!(BlockedSize::new(1, 1.0), None);
    assert_eq!(BlockedSize::new(1, f64::NAN), None);
    assert_eq!(BlockedSize::new(1, BlockedSize::MIN_RATE / 2.0), None);
    assert_eq!(BlockedSize::new(u64::MAX, 0.01), None);
    assert_eq!(BlockedSize::from_bits(1024, 1, None), None);
    assert_eq!(BlockedSize::from_bits(1024, 33, None), None);
    assert_eq!(BlockedSize::max_capacity(511, 0.01), 0);
    assert_eq!(BlockedSize::rate_of(511, 8, 1), 1.0);
    let builder = BloomFilter::builder().layout(Layout::Blocked);
    assert_eq!(
        builder.capacity(9).error_rate(1e-14).build(),
        Err(BuildError::Unsizable)
    );
    assert_eq!(
        builder.bits(1024).hashes(33).build(),
        Err(BuildError::Hashes)
    );
    assert_eq!(builder.bits(1024).build(), Err(BuildError::Hashes));
    assert_eq!(builder.build(), Err(BuildError::Capacity));
    assert_eq!(
        builder.bits(1024).hashes(6).error_rate(0.1).build(),
        Err(BuildError::Conflict)
    );
    let classic = BloomFilter::builder()
        .layout(Layout::Classic)
        .capacity(9)
        .seed(1);
    assert_eq!(classic.build(), Err(BuildError::UnexpectedKey));
    assert_eq!(
        LayeredFilter::builder()
            .layout(Layout::Classic)
            .seed(1)
            .build(),
        Err(BuildError::UnexpectedKey)
    );
}

#[test]
fn filters_from_bits() {
    let builder = BloomFilter::builder()
        .layout(Layout::Blocked)
        .bits(1_000_000);
    let by_hashes = builder.hashes(6).build().unwrap();
    assert_eq!((by_hashes.bits(), by_hashes.hashes()), (1_000_448, 6));
    let by_rate = builder.error_rate(0.01).build().unwrap();
    assert_eq!((by_rate.bits(), by_rate.hashes()), (1_000_448, 6));
    assert!((100_000..101_000).contains(&by_rate.capacity()));
    let by_capacity = builder.capacity(100_000).build().unwrap();
    assert_eq!(by_capacity.hashes(), 6);
    assert!((0.009..0.01).contains(&by_capacity.error_rate()));
}
