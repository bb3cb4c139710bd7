//! Any bytes as a filter and as a view, as they are and with their checksums made right: an error,
//! or a filter that is equal after `to_bytes` and a view that answers as the filter does. The same
//! behind a note, which is skipped, or refused if it is critical.
#![no_main]

use everbloom::bytes::{BytesError, Note};
use everbloom::host::LayeredFilter;
use everbloom::{BloomFilter, BloomView, CuckooFilter, ScalableBloomFilter, WindowedBloomFilter};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/filters/tests/bytes/sealed.rs"]
mod sealed;

fuzz_target!(|bytes: &[u8]| {
    check_noted(bytes);
    check_noted(&sealed::sealed(bytes.to_vec()));
});

fn check_noted(bytes: &[u8]) {
    let fixed = BloomFilter::from_bytes(bytes);
    let scalable = LayeredFilter::from_bytes(bytes);
    let (note, filter) = match Note::split(bytes) {
        Ok((Some(note), filter)) => (note, filter),
        Ok((None, filter)) => return check(filter),
        Err(_) => {
            assert!(fixed.is_err() && scalable.is_err() && BloomView::new(bytes).is_err());
            return;
        }
    };
    assert!(bytes == [&note.to_bytes()[..], filter].concat());
    if note.is_critical() {
        assert_eq!(fixed, Err(BytesError::CriticalNote));
        assert_eq!(scalable, Err(BytesError::CriticalNote));
    } else {
        assert_eq!(fixed, BloomFilter::from_bytes(filter));
        assert_eq!(scalable, LayeredFilter::from_bytes(filter));
    }
    check(filter);
}

fn check(bytes: &[u8]) {
    let fixed = BloomFilter::from_bytes(bytes);
    let scalable = LayeredFilter::from_bytes(bytes);
    let view = BloomView::new(bytes);
    if let Ok(filter) = CuckooFilter::from_bytes(bytes) {
        assert!(bytes == filter.to_bytes());
    }
    if let Ok(filter) = &fixed {
        let again = filter.to_bytes();
        assert!(BloomFilter::from_bytes(&again).as_ref() == Ok(filter));
        assert!(BloomFilter::read_from(&*again).is_ok_and(|read| read == *filter));
        let found = |item: &[u8]| filter.contains(item);
        check_view(bytes, &again, &view, found);
    }
    if let Ok(filter) = &scalable {
        let again = filter.to_bytes();
        assert!(LayeredFilter::from_bytes(&again).as_ref() == Ok(filter));
        assert!(LayeredFilter::read_from(&*again).is_ok_and(|read| read == *filter));
        let found = |item: &[u8]| filter.contains(item);
        check_view(bytes, &again, &view, found);
    }
    // One type reads a filter that grows, another one that forgets.
    let growing = ScalableBloomFilter::from_bytes(bytes).is_ok();
    let forgetting = WindowedBloomFilter::from_bytes(bytes).is_ok();
    let is_window = scalable.as_ref().is_ok_and(|filter| filter.window().is_some());
    assert_eq!((growing, forgetting), (scalable.is_ok() && !is_window, is_window));
    if let Ok(view) = view {
        let error = if view.is_scalable() {
            scalable.err()
        } else {
            fixed.err()
        };
        assert_eq!(view.verify().err(), error);
    }
}

/// The filter of these bytes has a view, which finds the same items; and of version 3 they are the
/// bytes that the filter is written as.
fn check_view(
    bytes: &[u8],
    again: &[u8],
    view: &Result<BloomView<'_>, BytesError>,
    found: impl Fn(&[u8]) -> bool,
) {
    let written;
    let view = match view {
        Err(BytesError::Old(_)) => {
            written = BloomView::new(again).unwrap();
            &written
        }
        view => {
            assert!(bytes == again);
            view.as_ref().unwrap()
        }
    };
    // An item that is found looks at as many bits as there are hashes.
    if view.parts().layers.iter().any(|layer| layer.hashes > 1000) {
        return;
    }
    let items: Vec<&[u8]> = bytes.chunks(7).chain([b"foo".as_slice(), b""]).collect();
    let expected: Vec<bool> = items.iter().map(|item| found(item)).collect();
    let singly: Vec<bool> = items.iter().map(|item| view.contains(item)).collect();
    assert_eq!(singly, expected);
    let mut together = Vec::new();
    view.contains_each(&items, |found| together.push(found));
    assert_eq!(together, expected);
}
