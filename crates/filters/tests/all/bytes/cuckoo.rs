//! Cuckoo filters as bytes.

use super::*;

/// Computes all checksums of a cuckoo filter again.
fn sealed_cuckoo(mut bytes: Vec<u8>) -> Vec<u8> {
    let tables = usize::from(u16::from_le_bytes(bytes[16..18].try_into().unwrap()));
    let expansion = u64::from(u16::from_le_bytes(bytes[14..16].try_into().unwrap()));
    let buckets = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
    let (mut slots, mut at) = (buckets.saturating_mul(bytes[11].into()), 64 * (1 + tables));
    for table in 1..=tables {
        let len = usize::try_from(slots).unwrap_or(usize::MAX);
        let Some(end) = at.checked_add(len).filter(|end| *end <= bytes.len()) else {
            break;
        };
        let checksum = murmur64a(&bytes[at..end], 0);
        bytes[64 * table..][..8].copy_from_slice(&checksum.to_le_bytes());
        at = end.next_multiple_of(64);
        slots = slots.saturating_mul(expansion);
    }
    let mut seed = 0;
    for block in bytes.chunks_exact_mut(64).take(1 + tables) {
        seed = murmur64a(&block[..56], seed);
        block[56..].copy_from_slice(&seed.to_le_bytes());
    }
    bytes
}

proptest! {
    /// Cuckoo filters of one table and of several; and no byte of them can be another.
    #[test]
    fn cuckoo_filters_come_back(
        slots in 1_u64..200, bucket_size in 1_u8..6, expansion in 0_u16..3, kicks in 1_u16..30,
        items in 0_u32..500, removed in 0_u32..50, at: prop::sample::Index, change in 1_u8..=255,
    ) {
        let builder = CuckooFilter::builder().slots(slots).bucket_size(bucket_size);
        let mut filter = builder.expansion(expansion).max_kicks(kicks).build().unwrap();
        for item in 0..items {
            _ = filter.insert(&item);
        }
        for item in 0..removed {
            filter.remove(&item);
        }
        let mut bytes = filter.to_bytes();
        prop_assert_eq!(bytes.len() % 64, 0);
        let again = CuckooFilter::try_from(&*bytes);
        prop_assert_eq!(again.as_ref(), Ok(&filter));
        for other in [BloomFilter::from_bytes(&bytes).err(), BloomView::new(&bytes).err()] {
            prop_assert_eq!(other, Some(BytesError::Kind));
        }
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(CuckooFilter::from_bytes(&bytes).is_err());
        // An attacker makes the checksums right.
        if let Ok(again) = CuckooFilter::from_bytes(&sealed_cuckoo(bytes.clone())) {
            _ = (again.contains("x"), again.stats(), again.to_bytes());
        }
        bytes.truncate(at);
        prop_assert!(CuckooFilter::from_bytes(&bytes).is_err());
    }
}

#[test]
fn a_bloom_filter_is_no_cuckoo_filter() {
    for (filter, _) in golden() {
        let bytes = match filter {
            Fixed(filter) => filter.to_bytes(),
            Scalable(filter) => filter.to_bytes(),
        };
        assert_eq!(CuckooFilter::from_bytes(&bytes), Err(BytesError::Kind));
    }
}
