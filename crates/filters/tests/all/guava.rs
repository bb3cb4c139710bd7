//! Filters that Guava wrote, Guava's figures, and bytes that are none of its filters.
//! tests/clients/java has the program, GuavaFilters, that made the files of tests/guava.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use everbloom::guava::{GuavaError, GuavaView, Strategy};
use everbloom::sizing::{LayerSize, textbook};
use proptest::prelude::*;
use serde_json::Value;

fn from_hex(text: &str) -> Vec<u8> {
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn bytes(i: u32) -> Vec<u8> {
    vec![((i * 7) & 0xff) as u8; i as usize]
}

/// What a funnel of one's own puts that has something of every kind.
fn put_all(i: u32) -> Vec<u8> {
    let text = format!("é 😀 {i}");
    let mut item = i.to_le_bytes()[..1].to_vec();
    item.extend(&i.to_le_bytes()[..2]);
    item.extend(i.to_le_bytes());
    item.extend(u64::from(i).to_le_bytes());
    item.extend((i as f32).to_le_bytes());
    item.extend(f64::from(i).to_le_bytes());
    item.push(1);
    item.extend([0xe9, 0]);
    item.extend(bytes(i));
    item.extend(text.as_bytes());
    item.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    item
}

/// The i-th item, as the program in Java makes it, asked for as the module's table says.
fn contains(filter: &GuavaView<'_>, funnel: &str, i: u32) -> bool {
    let text = format!("é 😀 {i}");
    match funnel {
        "utf8" => filter.contains(text),
        "chars" => filter.contains_chars(&text),
        "bytes" => filter.contains(bytes(i)),
        "integer" => {
            let number = i.wrapping_mul(0x9E37_79B9).cast_signed();
            filter.contains(number.to_le_bytes())
        }
        "long" => {
            let number = u64::from(i).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            filter.contains(number.cast_signed().to_le_bytes())
        }
        "sequential" => {
            let number = i.cast_signed();
            filter.contains([number.to_le_bytes(), (-number).to_le_bytes()].concat())
        }
        "own" => filter.contains(put_all(i)),
        other => panic!("{other}"),
    }
}

#[test]
fn filters_of_every_funnel_and_strategy_answer_as_in_java() {
    let filters: Value = serde_json::from_str(include_str!("../guava/filters.json")).unwrap();
    let filters = filters.as_array().unwrap();
    assert_eq!(filters.len(), 14);
    for recorded in filters {
        let (funnel, bytes) = (recorded["funnel"].as_str().unwrap(), &recorded["bytes"]);
        let bytes = from_hex(bytes.as_str().unwrap());
        let filter = GuavaView::new(&bytes).unwrap();
        let strategy = match recorded["strategy"].as_u64() {
            Some(0) => Strategy::Mitz32,
            _ => Strategy::Mitz64,
        };
        assert_eq!(filter.strategy(), strategy);
        // Whole words of the bits that it computes for 50 items and a rate of 0.1.
        assert_eq!(filter.bits(), 239_u64.next_multiple_of(64));
        assert_eq!(filter.hashes(), 3);

        let answers = recorded["answers"].as_str().unwrap();
        let found = (0..200).map(|i| {
            if contains(&filter, funnel, i) {
                '1'
            } else {
                '0'
            }
        });
        assert_eq!(found.collect::<String>(), answers, "{funnel} {strategy:?}");
        assert_eq!(filter.stats().items, recorded["count"].as_u64().unwrap());
        let rate = recorded["rate"].as_f64().unwrap();
        assert!((filter.stats().estimated_error_rate / rate - 1.0).abs() < 1e-12);
    }
}

/// `optimalNumOfBits` is the textbook's formula without its fraction.
/// `optimalNumOfHashFunctions` is the number nearest to the logarithm of the rate.
/// RedisBloom's own, `sizing::hashes`, rounds up, so it is one more where Guava rounds down, and
/// for a rate of 1/2, at which its constants say a little more than 1.
#[test]
fn sizes_are_those_of_the_textbook() {
    let mut rounded_down = 0;
    for line in include_str!("../guava/sizes.txt").lines() {
        let numbers: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let [items, rate, bits, hashes] = numbers[..] else {
            panic!("{line}");
        };
        assert_eq!(textbook::bits(items, rate).trunc(), bits, "{line}");
        let exact = -rate.log2();
        assert_eq!(exact.round().max(1.0), hashes, "{line}");
        // From the bits, as Guava did before, the same once their fraction does not matter.
        if items >= 1000.0 {
            assert_eq!(textbook::hashes(bits, items).round(), hashes, "{line}");
        }
        let ours = LayerSize::hashes_of(LayerSize::bits_per_entry_of(rate)).unwrap();
        let more = f64::from(ours) - hashes;
        let rounds_down = exact > hashes || rate == 0.5;
        assert_eq!(more, f64::from(u8::from(rounds_down)), "{line}");
        rounded_down += u32::from(rounds_down);
    }
    assert!(rounded_down > 0, "no rate at which the two differ");
}

/// A filter of one word in which every bit is 1.
const FULL: [u8; 14] = [1, 5, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255];

/// The error of these bytes with some changed.
fn error(change: impl Fn(&mut Vec<u8>)) -> GuavaError {
    let mut bytes = FULL.to_vec();
    change(&mut bytes);
    GuavaView::new(&bytes).unwrap_err()
}

#[test]
fn what_is_no_filter_is_refused() {
    assert!(GuavaView::new(&FULL).unwrap().contains("anything"));
    for len in 0..6 {
        assert_eq!(error(|bytes| bytes.truncate(len)), GuavaError::Truncated);
    }
    for len in 6..14 {
        let (expected, found) = (14, len as u64);
        let length = GuavaError::Length { expected, found };
        assert_eq!(error(|bytes| bytes.truncate(len)), length);
    }
    let (expected, found) = (14, 15);
    let length = GuavaError::Length { expected, found };
    assert_eq!(error(|bytes| bytes.push(0)), length);
    for strategy in [2, 3, 255] {
        let refused = error(|bytes| bytes[0] = strategy);
        assert_eq!(refused, GuavaError::Strategy(strategy));
    }
    assert_eq!(error(|bytes| bytes[1] = 0), GuavaError::Hashes);
    for count in [0, -1, i32::MIN] {
        let refused = error(|bytes| bytes[2..6].copy_from_slice(&count.to_be_bytes()));
        assert_eq!(refused, GuavaError::Words(count));
    }
    // So many words that their bytes, or bits, are more than 32 bits count.
    for count in [1 << 29, (1 << 29) + 1, i32::MAX] {
        let refused = error(|bytes| bytes[2..6].copy_from_slice(&count.to_be_bytes()));
        let expected = 6 + 8 * u64::from(count.cast_unsigned());
        let found = 14;
        assert_eq!(refused, GuavaError::Length { expected, found });
    }
}

proptest! {
    /// Any bytes, and any with a header that fits them: an error, or a filter that can be asked.
    #[test]
    fn no_bytes_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        strategy in 0..3_u8,
        hashes in any::<u8>(),
        words in prop::collection::vec(any::<u64>(), 0..5),
        item in ".*",
    ) {
        let count = u32::try_from(words.len()).unwrap();
        let mut fitting = vec![strategy, hashes];
        fitting.extend(count.to_be_bytes());
        fitting.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        let is_filter = strategy < 2 && hashes > 0 && count > 0;
        prop_assert_eq!(GuavaView::new(&fitting).is_ok(), is_filter);
        for bytes in [&bytes, &fitting] {
            if let Ok(filter) = GuavaView::new(bytes) {
                prop_assert!(filter.bits() == 8 * (bytes.len() as u64 - 6));
                prop_assert!((0.0..=1.0).contains(&filter.stats().estimated_error_rate));
                prop_assert!(filter.stats().items < filter.bits() * 64);
                let _ = (filter.contains(&item), filter.contains_chars(&item));
            }
        }
    }
}
