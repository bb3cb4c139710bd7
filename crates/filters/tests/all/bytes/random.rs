//! Every filter comes back, and bytes by chance never panic.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_filter_comes_back(
        kind: (bool, bool), parameters in parameters(), items in items(),
    ) {
        let filter = filter(kind, parameters, &items);
        prop_assert_eq!(filter.read(&filter.to_bytes()), Ok(filter));
    }

    /// At every address modulo 64.
    #[test]
    fn a_view_answers_as_the_filter(
        kind: (bool, bool), parameters in parameters(), items in items(), others in items(),
    ) {
        let mut filter = filter(kind, parameters, &items);
        if parameters.2 % 8 == 0 {
            filter = odd();
        }
        let bytes = filter.to_bytes();
        let asked: Vec<&Vec<u8>> = items.iter().chain(&others).collect();
        let expected: Vec<bool> = asked.iter().map(|item| filter.contains(item)).collect();
        let mut place = vec![0; bytes.len() + 64];
        for offset in 0..64 {
            let place = &mut place[offset..offset + bytes.len()];
            place.copy_from_slice(&bytes);
            let view = BloomView::new(place).unwrap();
            let singly: Vec<bool> = asked.iter().map(|item| view.contains(item)).collect();
            prop_assert_eq!(&singly, &expected);
            prop_assert_eq!(&all_of(&view, &asked), &expected);
            prop_assert_eq!(view.verify(), Ok(()));
            filter.check_fields(&view);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(BloomFilter::from_bytes(&bytes).is_err());
        prop_assert!(LayeredFilter::from_bytes(&bytes).is_err());
        prop_assert!(BloomView::new(&bytes).is_err());
        prop_assert!(BloomFilter::read_from(&*bytes).is_err());
    }

    /// Changed in a few places, with right checksums: either refused, or a filter that works, and
    /// whose bytes these are.
    #[test]
    fn forged_filters_never_panic(
        changes in prop::collection::vec((0_usize..400, any::<u8>()), 1..6), number in 0_usize..5,
    ) {
        let original = &all()[number];
        let mut bytes = original.to_bytes();
        for (index, value) in changes {
            let len = bytes.len();
            bytes[index % len] = value;
        }
        let bytes = sealed(bytes);
        filters_work(&bytes);
        if let Ok(filter) = original.read(&bytes) {
            prop_assert!(filter.to_bytes() == bytes);
        }
        if let Ok(view) = BloomView::new(&bytes) {
            let _ = (view.contains("x"), all_of(&view, &WORDS), view.verify());
            let _ = (view.capacity(), view.error_rate(), view.stats());
        }
    }
}
