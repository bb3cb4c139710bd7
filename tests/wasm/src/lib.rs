//! Filters in WebAssembly. A program made of this for another machine must give the same numbers.

use everbloom::redisbloom::CuckooError;
use everbloom::{BloomFilter, BuildError, CuckooFilter, Layout, ScalableBloomFilter};

/// 1 if filters with a key are refused where there are no random numbers for it.
#[unsafe(no_mangle)]
pub extern "C" fn refuses_to_make_a_key() -> u32 {
    let blocked = BloomFilter::builder().capacity(100).error_rate(0.01);
    let cuckoo = CuckooFilter::builder().capacity(100).error_rate(0.01);
    let blocked = blocked.layout(Layout::Blocked).build();
    u32::from(blocked == Err(BuildError::NoKey) && cuckoo.build() == Err(CuckooError::NoKey))
}

/// A checksum of the bytes of filters of each kind with a seed; 0 if one misses an item. Of a classic
/// filter it has the answers: its bytes say its size by a logarithm, whose last digit may differ.
#[unsafe(no_mangle)]
pub extern "C" fn checksum() -> u32 {
    let items = || 0..3000_u32;
    let mut fixed = BloomFilter::builder().capacity(3000).error_rate(0.01);
    fixed = fixed.layout(Layout::Blocked).seed(7);
    let (Ok(mut fixed), Ok(mut growing), Ok(mut cuckoo)) = (
        fixed.build(),
        ScalableBloomFilter::builder()
            .capacity(100)
            .layout(Layout::Classic)
            .build(),
        CuckooFilter::builder()
            .capacity(100)
            .error_rate(0.001)
            .seed(7)
            .build(),
    ) else {
        return 0;
    };
    for item in items() {
        fixed.insert(&item);
        growing.insert(&item);
        if cuckoo.insert(&item).is_err() {
            return 0;
        }
    }
    let all = |has: &dyn Fn(&u32) -> bool| items().all(|item| has(&item));
    if !all(&|it| fixed.contains(it))
        || !all(&|it| growing.contains(it))
        || !all(&|it| cuckoo.contains(it))
    {
        return 0;
    }
    let answers = (3000..20_000_u32).map(|item| u8::from(growing.contains(&item)));
    let bytes = [fixed.to_bytes(), answers.collect(), cuckoo.to_bytes()].concat();
    bytes.iter().fold(0x811c_9dc5, |sum, byte| {
        (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}
