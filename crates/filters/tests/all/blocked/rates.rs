//! The error rate of blocked filters, grown, sized at once and under attack.

use super::*;

#[test]
fn a_filter_sized_at_once_keeps_its_rate() {
    for (rate, count) in [
        (0.1, 200_000),
        (0.01, 1_000_000),
        (0.001, 2_000_000),
        (0.0001, 4_000_000),
    ] {
        let items = 100_000;
        let mut filter = fixed(items, rate, 3);
        filter.insert_all(&(0..items).map(u64::to_le_bytes).collect::<Vec<_>>());
        let replies = filter.contains_all(&probes(count));
        let measured = check_rate(&replies, rate, filter.bits() / 512, "at once");
        // And is no larger than it has to be.
        assert!(measured > 0.8 * rate, "{measured} for {rate}");
        let estimated = filter.estimated_error_rate();
        assert!(
            (estimated / rate - 0.99).abs() < 0.03,
            "{estimated} for {rate}"
        );
        let items = filter.estimated_len() as f64 / items as f64;
        assert!((items - 1.0).abs() < 0.01, "{items}");
    }
}

fn grown_keeps_its_rate(items: u64, count: u64) {
    for (rate, on) in [
        (0.1, true),
        (0.01, true),
        (0.01, false),
        (0.001, true),
        (0.0001, true),
    ] {
        for first in [100, 3000] {
            let filter = grown(first, rate, items, on);
            let count = if rate < 0.01 { 2 * count } else { count };
            let replies = filter.contains_all(&probes(count));
            let blocks = filter.layers().iter().map(|layer| layer.bits() / 512).sum();
            let what = format!("from {first} to {} items", filter.len());
            check_rate(&replies, rate, blocks, &what);
            assert_eq!(filter.error_rate(), rate);
            let layers = filter.layers();
            assert!(layers.iter().map(|layer| layer.error_rate()).sum::<f64>() < rate);
        }
    }
}

#[test]
fn a_grown_filter_keeps_its_rate() {
    grown_keeps_its_rate(100_000, 500_000);
}

/// `cargo test --release -p everbloom --test all -- blocked --ignored`
#[test]
#[ignore = "takes minutes"]
fn a_filter_grown_to_ten_million_keeps_its_rate() {
    grown_keeps_its_rate(10_000_000, 20_000_000);
}

/// 10 000 items found to be false positives of a classic filter, whose hash everybody knows,
/// are no more than others to a filter with a random key.
#[test]
fn crafted_items_are_like_any_others() {
    let builder = BloomFilter::builder()
        .layout(Layout::Classic)
        .capacity(1000)
        .error_rate(0.01);
    let mut classic = builder.build().unwrap();
    let mut keyed = builder.layout(Layout::Blocked).build().unwrap();
    for number in 0..1000_u64 {
        classic.insert(&number.to_le_bytes());
        keyed.insert(&number.to_le_bytes());
    }
    let crafted: Vec<[u8; 8]> = (ABSENT..)
        .map(u64::to_le_bytes)
        .filter(|item| classic.contains(item))
        .take(10_000)
        .collect();
    assert!(classic.contains_all(&crafted).iter().all(|found| *found));
    check_rate(
        &keyed.contains_all(&crafted),
        0.01,
        keyed.bits() / 512,
        "crafted",
    );
}
