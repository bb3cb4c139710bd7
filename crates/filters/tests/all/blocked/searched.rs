//! Sizes are those of the search ([`super::slow`]), bit for bit, however they are found.

use super::*;

/// A whole number whose logarithm is uniform.
fn any_size(most: f64) -> impl Strategy<Value = u64> {
    (0.0..most).prop_map(|log| log.exp2() as u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn sizes_by_capacity_and_rate_are_those_of_the_search(
        log_rate in BlockedSize::MIN_RATE.ln()..0.0,
        capacities in prop::collection::vec(any_size(62.0), 50),
        blocks in prop::collection::vec(any_size(30.0), 50),
    ) {
        let rate = log_rate.exp().clamp(BlockedSize::MIN_RATE, 1.0_f64.next_down());
        let load = slow::best_load(rate);
        let on_boundaries = blocks.iter().flat_map(|blocks| {
            let items = (load.0 * *blocks as f64) as u64;
            [items, items + 1]
        });
        for capacity in capacities.iter().copied().chain(on_boundaries) {
            let size = BlockedSize::new(capacity, rate);
            prop_assert_eq!(size, slow::sized(capacity, rate, load).filter(|_| capacity > 0));
        }
        for blocks in &blocks {
            let bits = blocks * 512 + 511;
            prop_assert_eq!(BlockedSize::max_capacity(bits, rate), slow::max_capacity(bits, load));
        }
    }

    #[test]
    fn chains_are_those_of_the_search(
        log_rate in BlockedSize::MIN_RATE.ln()..0.0,
        capacity in any_size(40.0),
        expansion in 1_u32..20,
    ) {
        let rate = log_rate.exp().clamp(BlockedSize::MIN_RATE, 1.0_f64.next_down());
        prop_assert_eq!(BlockedSize::only(capacity, rate), slow::new(capacity, rate.min(0.25)));
        let mut layer = BlockedSize::first(capacity, rate);
        prop_assert_eq!(layer, slow::first(capacity, rate));
        let mut left = rate.min(0.25);
        for _ in 0..12 {
            let Some(size) = layer else {
                break;
            };
            left -= size.error_rate;
            layer = size.next(expansion, left);
            let capacity = size.capacity * u64::from(expansion);
            let newest = size.error_rate;
            let rate = match expansion {
                1 => left * newest / (left + 2.0 * newest),
                _ => left * BlockedSize::share(capacity),
            };
            prop_assert_eq!(layer, slow::in_chain(capacity, rate, size.hashes));
        }
    }

    #[test]
    fn sizes_by_bits_are_those_of_the_search(
        blocks in any_size(54.0), hashes in 2_u32..33, log_load in -8.0..12.5_f64,
    ) {
        let bits = blocks * 512 - 1;
        let capacity = ((blocks as f64 * log_load.exp2()) as u64).max(1);
        for capacity in [Some(capacity), None] {
            let size = BlockedSize::from_bits(bits, hashes, capacity);
            prop_assert_eq!(size, Some(slow::from_bits(bits, hashes, capacity)));
        }
        let best = BlockedSize::best_hashes(bits + 1, capacity);
        prop_assert_eq!(best, slow::best_hashes(bits + 1, capacity));
    }
}

/// Where the best hash count changes, two searches end at nearly the same load.
#[test]
fn hash_counts_change_where_those_of_the_search_do() {
    for fewer in 2..28 {
        let more = |rate: f64| BlockedSize::new(1 << 40, rate).unwrap().hashes > fewer;
        let (mut low, mut high) = (BlockedSize::MIN_RATE, 0.5);
        while low.next_up() < high {
            let middle = (low + high) / 2.0;
            match more(middle) {
                true => low = middle,
                false => high = middle,
            }
        }
        for part in [0.0, 1e-12, 1e-10, 0.9e-9, 1.1e-9, 1e-6] {
            for rate in [low * (1.0 - part), low * (1.0 + part)] {
                let size = BlockedSize::new(1 << 40, rate);
                assert_eq!(size, slow::new(1 << 40, rate), "{rate:e}");
            }
        }
    }
    for hashes in 2..33 {
        let size = BlockedSize::from_bits(1 << 45, hashes, None).unwrap();
        assert_eq!(size, slow::from_bits(1 << 45, hashes, None));
        for items in [size.capacity - 1, size.capacity, size.capacity + 1] {
            let best = slow::best_hashes(1 << 45, items);
            assert_eq!(BlockedSize::best_hashes(1 << 45, items), best);
        }
    }
    assert_eq!(
        BlockedSize::best_hashes(1 << 20, 0),
        slow::best_hashes(1 << 20, 0)
    );
}
