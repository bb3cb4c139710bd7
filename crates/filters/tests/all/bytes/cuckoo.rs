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

#[test]
fn a_note_is_skipped_unless_it_is_critical() {
    let mut filter = CuckooFilter::new(100);
    filter.insert("a").unwrap();
    let noted = |note: Note| [note.to_bytes(), filter.to_bytes()].concat();
    let note = Note::new("whole lines").unwrap();
    assert_eq!(
        CuckooFilter::from_bytes(&noted(note.clone())),
        Ok(filter.clone())
    );
    let critical = noted(note.critical());
    assert_eq!(
        CuckooFilter::from_bytes(&critical),
        Err(BytesError::CriticalNote)
    );
}

/// A filter with a chosen error rate, as another program made it from the text of docs/formats.md.
#[test]
fn a_filter_with_an_error_rate_has_these_bytes() {
    let bytes = include_bytes!("../../bytes/3-cuckoo.bin");
    let read = CuckooFilter::from_bytes(bytes).unwrap();
    let mut parts = read.parts();
    parts.items = 0;
    let mut built = CuckooFilter::from_parts(&parts, 1000).unwrap();
    for word in WORDS {
        built.insert(word).unwrap();
    }
    assert_eq!(built, read);
    assert!(built.to_bytes() == bytes);
    let keyed = parts.keyed.unwrap();
    assert_eq!((keyed.error_rate, keyed.key), (0.01, Key::from_seed(7)));
    assert_eq!((keyed.width, keyed.step), (10, 2));
}

#[test]
fn a_grown_filter_with_an_error_rate_has_these_bytes() {
    let bytes = include_bytes!("../../bytes/3-cuckoo-grown.bin");
    let mut filter = CuckooFilter::from_bytes(bytes).unwrap();
    assert!(filter.to_bytes() == bytes);
    assert_eq!(
        (filter.tables(), filter.len(), filter.slots()),
        (3, 12, 16 + 64 + 256)
    );
    for (word, count) in WORDS.into_iter().zip([2, 3, 3, 2, 2]) {
        assert_eq!(filter.count(word), count, "{word}");
    }
    filter.compact();
    assert_eq!(filter.tables(), 1);
    for (word, count) in WORDS.into_iter().zip([2, 3, 3, 2, 2]) {
        for left in (0..count).rev() {
            assert!(filter.remove(word));
            assert_eq!(filter.count(word), left, "{word}");
        }
    }
    assert_eq!((filter.len(), filter.used()), (0, 0));
}

proptest! {
    /// Filters with a chosen error rate; and no byte of them can be another.
    #[test]
    fn filters_with_an_error_rate_come_back(
        capacity in 1_u64..60, rate in prop::sample::select(vec![0.5, 0.01, 1e-4, 1e-9]),
        expansion in 0_u16..5, seed: u64, items in 0_u32..500, removed in 0_u32..50,
        at: prop::sample::Index, change in 1_u8..=255,
    ) {
        let builder = CuckooFilter::builder().capacity(capacity).error_rate(rate).seed(seed);
        let mut filter = builder.expansion(expansion).build().unwrap();
        for item in 0..items {
            _ = filter.insert(&item);
        }
        for item in 0..removed {
            filter.remove(&item);
        }
        let mut bytes = filter.to_bytes();
        prop_assert_eq!(bytes.len() % 64, 0);
        let again = CuckooFilter::from_bytes(&bytes);
        prop_assert_eq!(again.as_ref(), Ok(&filter));
        for other in [BloomFilter::from_bytes(&bytes).err(), BloomView::new(&bytes).err()] {
            prop_assert_eq!(other, Some(BytesError::Kind));
        }
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(CuckooFilter::from_bytes(&bytes).is_err());
        // An attacker makes the checksums right.
        if let Ok(mut again) = CuckooFilter::from_bytes(&sealed_keyed(bytes.clone())) {
            _ = (again.contains("x"), again.stats(), again.to_bytes(), again.insert("x"));
            again.compact();
            _ = (again.remove("x"), again.union(&filter));
        }
        bytes.truncate(at);
        prop_assert!(CuckooFilter::from_bytes(&bytes).is_err());
    }
}

/// Computes all checksums of a filter with a chosen error rate again.
fn sealed_keyed(mut bytes: Vec<u8>) -> Vec<u8> {
    let tables = usize::from(u16::from_le_bytes(bytes[16..18].try_into().unwrap()));
    let expansion = u64::from(u16::from_le_bytes(bytes[14..16].try_into().unwrap()));
    let buckets = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
    let (width, step) = (u64::from(bytes[88]), u64::from(bytes[89]));
    let (mut buckets, mut at) = (buckets, 64 * (2 + tables));
    for table in 0..tables {
        let more = if table == 0 { 0 } else { step + table as u64 };
        let len = buckets.saturating_mul(width + more) / 2;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let Some(end) = at.checked_add(len).filter(|end| *end <= bytes.len()) else {
            break;
        };
        let checksum = murmur64a(&bytes[at..end], 0);
        bytes[64 * (2 + table)..][..8].copy_from_slice(&checksum.to_le_bytes());
        at = end.next_multiple_of(64);
        buckets = buckets.saturating_mul(expansion);
    }
    let mut seed = 0;
    for block in bytes.chunks_exact_mut(64).take(2 + tables) {
        seed = murmur64a(&block[..56], seed);
        block[56..].copy_from_slice(&seed.to_le_bytes());
    }
    bytes
}
