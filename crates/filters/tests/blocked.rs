//! The blocked layout: what it promises about errors, growth and items crafted to collide.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use everbloom::sizing::blocked::{self, BlockedSize};
use everbloom::{BloomFilter, Layout, ScalableBloomFilter};

fn grown(capacity: u64, rate: f64, items: u64) -> ScalableBloomFilter {
    let builder = ScalableBloomFilter::builder()
        .layout(Layout::Blocked)
        .seed(1);
    let mut filter = builder.capacity(capacity).error_rate(rate).build().unwrap();
    let mut number = 0_u64;
    while filter.len() < items {
        filter.insert(&number.to_le_bytes());
        number += 1;
    }
    filter
}

#[test]
fn smoke() {
    for rate in [0.01, 0.001, 0.0001] {
        let size = BlockedSize::new(1_000_000, rate).unwrap();
        println!("{rate} {} {}", size.bits() as f64 / 1e6, size.hashes);
    }
    let start = std::time::Instant::now();
    for i in 0..1000 {
        std::hint::black_box(BlockedSize::new(100, 0.01 + f64::from(i) * 1e-6));
    }
    println!("sizing {:?}", start.elapsed() / 1000);
    for rate in [0.1, 0.01, 0.001, 0.0001] {
        let n = 100_000_u64;
        let builder = BloomFilter::builder().layout(Layout::Blocked).seed(3);
        let mut fixed = builder.capacity(n).error_rate(rate).build().unwrap();
        fixed.extend((0..n).map(u64::to_le_bytes));
        let probes = 4_000_000_u64;
        let hits = (0..probes)
            .filter(|i| fixed.contains(&(i + (1 << 40)).to_le_bytes()))
            .count();
        let chain = grown(100, rate, n);
        let more = (0..probes)
            .filter(|i| chain.contains(&(i + (1 << 40)).to_le_bytes()))
            .count();
        println!(
            "{rate}: {} estimated {} ({} items) chain {} of {} layers, len est {}",
            hits as f64 / probes as f64,
            fixed.estimated_error_rate(),
            fixed.estimated_len(),
            more as f64 / probes as f64,
            chain.layers().len(),
            chain.estimated_len(),
        );
    }
    println!("{}", blocked::share(100));
}
