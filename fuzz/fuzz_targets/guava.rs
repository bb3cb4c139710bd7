//! Any bytes as a filter of Guava: an error, or a view that says of items what a slow reading of
//! the format says.
#![no_main]

use everbloom::guava::{GuavaView, Strategy};
use everbloom::hash::murmur3_x64_128;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(filter) = GuavaView::new(bytes) else {
        return;
    };
    assert_eq!(bytes.len() as u64, 6 + filter.bits() / 8);
    assert!((0.0..=1.0).contains(&filter.stats().estimated_error_rate));
    let _ = filter.stats().items;
    let words: Vec<u64> = bytes[6..]
        .chunks_exact(8)
        .map(|word| u64::from_be_bytes(word.try_into().unwrap()))
        .collect();
    for item in bytes.chunks(7).chain([b"foo".as_slice(), b""]) {
        assert_eq!(filter.contains(item), contains(&filter, &words, item));
    }
    let text = String::from_utf8_lossy(bytes);
    let chars: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(filter.contains_chars(&text), filter.contains(&chars));
});

fn contains(filter: &GuavaView<'_>, words: &[u64], item: &[u8]) -> bool {
    let (low, high) = murmur3_x64_128(item, 0);
    (0..i64::from(filter.hashes())).all(|i| {
        let position = match filter.strategy() {
            Strategy::Mitz32 => {
                let (a, b) = (low as i32, (low >> 32) as i32);
                let sum = a.wrapping_add(b.wrapping_mul(i as i32 + 1));
                i64::from(if sum < 0 { !sum } else { sum })
            }
            Strategy::Mitz64 => {
                let sum = (low as i64).wrapping_add(i.wrapping_mul(high as i64));
                sum & i64::MAX
            }
        };
        let position = position as u64 % filter.bits();
        words[(position / 64) as usize] >> (position % 64) & 1 == 1
    })
}
