//! Inputs of the target `dcso`, and what must be true of them.
//!
//! An input is tried as it is, and with a header whose sizes fit its length.

use everbloom::dcso::{DcsoHeader, DcsoView};

/// The input, and a filter that has its bits: all but the first bytes, which become the capacity,
/// the hashes, and how many bits of the last word are left out.
pub(crate) fn filters(input: &[u8]) -> Vec<Vec<u8>> {
    let mut filters = vec![input.to_vec()];
    if let Some((&[capacity, hashes, cut], words)) = input.split_first_chunk::<3>() {
        let words = words.as_chunks::<8>().0;
        let bits = (words.len() as u64 * 64).saturating_sub((cut % 64).into());
        let mut fitting = 1_u64.to_le_bytes().to_vec();
        fitting.extend(u64::from(capacity).to_le_bytes());
        fitting.extend(0.01_f64.to_le_bytes());
        fitting.extend(u64::from(hashes).to_le_bytes());
        fitting.extend(bits.to_le_bytes());
        fitting.extend(u64::from(cut).to_le_bytes());
        fitting.extend(words.as_flattened());
        fitting.extend(&input[input.len() - usize::from(cut % 4).min(input.len())..]);
        filters.push(fitting);
    }
    filters
}

/// Looks into a filter, if the bytes are one, and compares its answers with those of a slow reading
/// of the format. Whether it was one.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let Ok(filter) = DcsoView::new(bytes) else {
        return false;
    };
    let header = filter.header();
    assert_eq!(DcsoHeader::new(bytes).as_ref(), Ok(header));
    let (_, behind) = bytes.split_at(header.filter_len().try_into().unwrap());
    assert_eq!(filter.data(), behind);
    assert!((0.0..=1.0).contains(&filter.stats().estimated_error_rate));
    let words: Vec<u64> = bytes[DcsoHeader::SIZE..]
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect();
    for item in bytes.chunks(7).chain([b"foo".as_slice(), b""]).take(50) {
        let slow = positions(header, item);
        assert!(header.positions(item).eq(slow.iter().copied()));
        let is_set = |at: &u64| words[usize::try_from(at / 64).unwrap()] >> (at % 64) & 1 == 1;
        assert_eq!(filter.contains(item), slow.iter().all(is_set));
    }
    true
}

fn positions(header: &DcsoHeader, item: &[u8]) -> Vec<u64> {
    const TWO_64: u128 = 1 << 64;
    let prime = TWO_64 - 59;
    let mut hash: u128 = 14_695_981_039_346_656_037;
    for byte in item {
        hash = (hash * 1_099_511_628_211 % TWO_64) ^ u128::from(*byte);
    }
    hash %= prime;
    let mut positions = Vec::new();
    for _ in 0..header.hashes() {
        hash = hash * (TWO_64 - 1469) % TWO_64 % prime;
        positions.push(u64::try_from(hash % u128::from(header.bits())).unwrap());
    }
    positions
}
