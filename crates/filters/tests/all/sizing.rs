//! Sizes: RedisBloom's own, and figures that were published about it and about Bloom filters.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use everbloom::sizing::{LayerSize, Rounding, textbook};

/// Rate asked for, capacity, scaling; then layer rate, bits per entry, hashes, bits, bytes, and
/// what `BF.INFO` calls the size. Read from RedisBloom.
type Row = (f64, u64, bool, f64, f64, u32, u64, u64, u64);

#[rustfmt::skip]
const REDISBLOOM: [Row; 12] = [
    (0.01, 1, true, 0.005, 11.0277534182564, 8, 64, 8, 104),
    (0.01, 100, true, 0.005, 11.0277534182564, 8, 1152, 144, 240),
    (0.01, 100, false, 0.01, 9.58505837736745, 7, 960, 120, 216),
    (0.001, 100, true, 0.0005, 15.8202826069401, 11, 1600, 200, 296),
    (0.001, 1000, true, 0.0005, 15.8202826069401, 11, 15872, 1984, 2080),
    (0.001, 1000, false, 0.001, 14.3775875660512, 10, 14400, 1800, 1896),
    (0.05, 1000, true, 0.025, 7.67791927046165, 6, 7680, 960, 1056),
    (0.0001, 1000, true, 5e-05, 20.6128117956239, 15, 20672, 2584, 2680),
    (0.25, 1000, true, 0.125, 4.32808512266689, 4, 4352, 544, 640),
    (0.9, 1000, false, 0.25, 2.88539008177793, 3, 2944, 368, 464),
    (0.000001, 1_000_000, true, 5e-07, 30.1978701729913, 21, 30_197_888, 3_774_736, 3_774_832),
    (0.000001, 300_000_000, true, 5e-07, 30.1978701729913, 21, 9_059_361_088, 1_132_420_136,
        1_132_420_232),
];

#[test]
fn redisbloom_sizes() {
    for (rate, capacity, scaling, layer_rate, per_entry, hashes, bits, bytes, info) in REDISBLOOM {
        let size = match scaling {
            true => LayerSize::first(capacity, rate),
            false => LayerSize::only(capacity, rate),
        };
        let size = size.unwrap();
        assert_eq!(size.error_rate, layer_rate, "{rate} {capacity}");
        assert!(
            (size.bits_per_entry / per_entry - 1.0).abs() < 5e-15,
            "{rate} {capacity}"
        );
        assert_eq!(
            (size.hashes, size.bits(), size.bytes),
            (hashes, bits, bytes),
            "{rate} {capacity}"
        );
        assert_eq!(32 + 64 + size.bytes, info);
        assert_eq!((size.capacity, size.log2_bits), (capacity, 0));
    }
}

/// The last bit of the bits per entry is stored in dumps.
#[test]
fn bits_per_entry_to_the_last_bit() {
    for (rate, bits) in [
        (0.005, 0x4026_0e35_b22f_86e9_u64),
        (0.01, 0x4023_2b8c_c58a_1688),
        (0.02, 0x4020_48e3_d8e4_a628),
        (0.125, 0x4011_4ff5_8be0_a242),
    ] {
        assert_eq!(LayerSize::bits_per_entry_of(rate).to_bits(), bits, "{rate}");
    }
}

#[test]
fn old_roundings() {
    // Bytes and capacities of the recorded filters of old versions: 53 items became so many
    // because 512 bits had room for them.
    let size = LayerSize::new(50, 0.01, Rounding::PowerOfTwo).unwrap();
    assert_eq!(
        (size.log2_bits, size.bytes, size.capacity, size.hashes),
        (9, 64, 53, 7)
    );
    let next = size.next(2, Rounding::PowerOfTwo).unwrap();
    assert_eq!(
        (next.log2_bits, next.bytes, next.capacity, next.hashes),
        (11, 256, 185, 8)
    );

    let size = LayerSize::new(3, 0.01, Rounding::Log2).unwrap();
    assert_eq!((size.log2_bits, size.bytes, size.capacity), (3, 8, 0));
    let size = LayerSize::new(20, 0.01, Rounding::Log2).unwrap();
    assert_eq!(
        (size.log2_bits, size.bytes, size.capacity),
        (20, 131_072, 109_396)
    );
    for log2 in [64, 65, 1 << 40] {
        assert_eq!(LayerSize::new(log2, 0.01, Rounding::Log2), None);
    }
}

#[test]
fn no_size() {
    for rate in [0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY, -0.0] {
        assert_eq!(LayerSize::new(100, rate, Rounding::Words), None, "{rate}");
    }
    assert_eq!(LayerSize::new(0, 0.01, Rounding::Words), None);
    assert_eq!(LayerSize::new(u64::MAX, 0.01, Rounding::Words), None);
    assert_eq!(LayerSize::new(u64::MAX, 0.01, Rounding::PowerOfTwo), None);
    assert_eq!(LayerSize::first(1, 5e-324), None, "half the rate is 0");
    assert_eq!(
        LayerSize::only(1, 5e-324).unwrap().hashes,
        LayerSize::MAX_HASHES
    );
}

#[test]
fn corner_rates() {
    // The true (ln 2)^2 would give 2 and 1 hashes.
    assert_eq!(
        LayerSize::new(1000, 0.25, Rounding::Words).unwrap().hashes,
        3
    );
    assert_eq!(
        LayerSize::new(1000, 0.5, Rounding::Words).unwrap().hashes,
        2
    );
    let nearly_one = 1.0_f64.next_down();
    let size = LayerSize::new(1, nearly_one, Rounding::Words).unwrap();
    assert_eq!((size.bytes, size.hashes), (8, 1));
    assert_eq!(LayerSize::new(1, nearly_one, Rounding::PowerOfTwo), None);
    assert!(
        LayerSize::hashes_of(LayerSize::bits_per_entry_of(5e-324)).unwrap()
            <= LayerSize::MAX_HASHES
    );
    assert_eq!(LayerSize::hashes_of(f64::NAN), None);
    assert_eq!(LayerSize::hashes_of(f64::INFINITY), None);
    assert_eq!(LayerSize::hashes_of(3.1e9), None);
}

/// "Hash functions 5, 8, 11, 15, 18, 21, 25 for error rates 10 % to 0.00001 %": those of the first
/// layer of a scaling filter, whose rate is half.
#[test]
fn published_hash_counts() {
    let rates = [0.1, 0.01, 0.001, 0.0001, 0.00001, 0.000001, 0.0000001];
    let counts = rates.map(|rate| LayerSize::first(100, rate).unwrap().hashes);
    assert_eq!(counts, [5, 8, 11, 15, 18, 21, 25]);
    // Filters that do not grow need one less, mostly.
    let counts = rates.map(|rate| LayerSize::only(100, rate).unwrap().hashes);
    assert_eq!(counts, [4, 7, 10, 14, 17, 20, 24]);
}

/// "0.19, 1.89, 18.9 and 188.6 MB for 100 thousand to 100 million items at 0.1 %; 0.25, 2.5, 24.6
/// and 245.7 MB at 0.01 %": the first layer of a scaling filter, whose rate is half, and "MB" means
/// 2^20 bytes. At the rate itself, and in 10^6 bytes, the first row would end in 179.7.
#[test]
fn published_memory() {
    let capacities = [100_000, 1_000_000, 10_000_000, 100_000_000];
    let mebibytes: Vec<f64> = [0.001, 0.0001]
        .iter()
        .flat_map(|&rate| capacities.map(|capacity| LayerSize::first(capacity, rate)))
        .map(|size| size.unwrap().bytes as f64 / 1_048_576.0)
        .collect();
    let published = [
        (0.19, 2),
        (1.89, 2),
        (18.9, 1),
        (188.6, 1),
        (0.25, 2),
        (2.5, 1),
        (24.6, 1),
        (245.7, 1),
    ];
    assert_eq!(mebibytes.len(), published.len());
    for (got, (expected, digits)) in mebibytes.iter().zip(published) {
        let unit = 10_f64.powi(digits);
        assert_eq!((got * unit).round() / unit, expected);
    }
    let whole_rate = LayerSize::only(100_000_000, 0.001).unwrap();
    assert_eq!((whole_rate.bytes as f64 / 1e5).round() / 10.0, 179.7);
}

/// "12 939 828 810 bits and 9.96 hash functions for 900 million items at 0.1 %": textbook formulas;
/// the bits, 12 939 828 809.45, are rounded up; of the hash count 9.9658 the digits after the
/// second are cut off (rounded it would be 9.97).
#[test]
fn published_for_900_million() {
    let bits = textbook::bits(900e6, 0.001);
    assert_eq!(bits.ceil(), 12_939_828_810.0);
    assert_eq!((textbook::hashes(bits, 900e6) * 100.0).floor(), 996.0);
    // With RedisBloom's constants 12 939 828 809 bits before the rounding to 64.
    let ours = LayerSize::new(900_000_000, 0.001, Rounding::Words).unwrap();
    assert_eq!((ours.bits(), ours.hashes), (12_939_828_864, 10));
}

/// "m = 1 917 011 676 and k = 13 for 100 million items at 0.01 %": textbook formulas, bits rounded
/// up, hash count 13.29 to the nearest. RedisBloom rounds the hash count up.
#[test]
fn published_for_100_million() {
    let bits = textbook::bits(1e8, 0.0001).ceil();
    assert_eq!(bits, 1_917_011_676.0);
    assert_eq!(textbook::hashes(bits, 1e8).round(), 13.0);
    assert_eq!(
        LayerSize::new(100_000_000, 0.0001, Rounding::Words)
            .unwrap()
            .hashes,
        14
    );
}

#[test]
fn overfilling() {
    for hashes in [4.0, 7.0, 10.0, 14.0] {
        // A bit count for which the hash count is the best: half the bits are 1 at the capacity.
        let bits = hashes * 1000.0 / core::f64::consts::LN_2;
        for factor in [0.5, 1.0, 1.5, 2.0, 3.0] {
            let general = textbook::error_rate(bits, hashes, factor * 1000.0);
            let special = (1.0 - 0.5_f64.powf(factor)).powf(hashes);
            assert!((general / special - 1.0).abs() < 1e-12, "{hashes} {factor}");
        }
    }
}

fn close(left: f64, right: f64) -> bool {
    (left / right - 1.0).abs() < 1e-9
}

#[test]
fn textbook_inverses() {
    for rate in [0.5, 0.1, 0.01, 1e-4, 1e-9] {
        for items in [1.0, 1000.0, 1e9] {
            let bits = textbook::bits(items, rate);
            let hashes = textbook::hashes(bits, items);
            assert!(close(hashes, -rate.log2()));
            assert!(close(textbook::capacity(bits, rate), items));
            assert!(close(textbook::error_rate(bits, hashes, items), rate));
            assert!(close(textbook::fill_ratio(bits, hashes, items), 0.5));
            assert!(close(textbook::error_rate_from_fill(0.5, hashes), rate));
            assert!(close(
                textbook::items_from_ones(bits, hashes, bits / 2.0),
                items
            ));
            for other in [1.0, 5.0, 20.0] {
                let more = textbook::bits_with_hashes(items, rate, other);
                assert!(
                    more >= bits * (1.0 - 1e-9),
                    "the best hash count needs the fewest bits"
                );
                assert!(close(
                    textbook::capacity_with_hashes(more, other, rate),
                    items
                ));
                assert!(close(textbook::error_rate(more, other, items), rate));
            }
        }
    }
}

#[test]
fn own_inverses() {
    for rate in [0.9, 0.25, 0.01, 0.005, 1e-6, 1e-300] {
        for capacity in [1, 7, 100, 12_345, 1 << 30] {
            let bits = LayerSize::new(capacity, rate, Rounding::Words)
                .unwrap()
                .bits();
            let most = LayerSize::max_capacity(bits, rate);
            assert!(most >= capacity, "{rate} {capacity}");
            assert_eq!(
                LayerSize::new(most, rate, Rounding::Words).unwrap().bits(),
                bits
            );
            assert!(
                LayerSize::new(most + 1, rate, Rounding::Words)
                    .unwrap()
                    .bits()
                    > bits
            );
            if capacity > 10_000 {
                let back = LayerSize::rate_of(bits, capacity);
                assert!(
                    back <= rate * 1.000_001 && back >= rate.powf(1.02),
                    "{rate} {back}"
                );
            }
        }
    }
    assert_eq!(LayerSize::max_capacity(0, 0.01), 0);
    assert_eq!(LayerSize::max_capacity(63, 0.01), 0);
    for rate in [f64::NAN, 0.0, 1.0] {
        assert_eq!(LayerSize::max_capacity(1 << 20, rate), 0);
    }
    assert_eq!(
        LayerSize::max_capacity(u64::MAX, 1.0_f64.next_down()),
        u64::MAX - 1
    );
}

#[test]
fn from_bits_agrees_with_itself() {
    for hashes in [1, 2, 3, 7, 10, 64, 500, 1074] {
        for bits in [1, 64, 65, 960, 1 << 20, 1 << 40] {
            let size = LayerSize::from_bits(bits, hashes, None).unwrap();
            assert_eq!(size.bits(), bits.div_ceil(64) * 64);
            assert_eq!(
                (size.hashes, LayerSize::hashes_of(size.bits_per_entry)),
                (hashes, Some(hashes))
            );
            assert!(size.error_rate > 0.0 && size.error_rate < 1.0 && size.capacity >= 1);
        }
    }
    for (bits, hashes) in [(0, 7), (64, 0), (64, 1076), (u64::MAX, 7)] {
        assert_eq!(LayerSize::from_bits(bits, hashes, None), None);
    }
    let size = LayerSize::from_bits(64, 7, Some(1 << 60)).unwrap();
    assert_eq!(size.error_rate, 1.0_f64.next_down());
}
