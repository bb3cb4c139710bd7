//! The stable bytes: what they are, that filters and views come back from them, and that nothing
//! else does.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

use everbloom::bytes::{BytesError, Note, ReadError};
use everbloom::hash::{Key, murmur64a};
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{Check, Options, PartsError, ValkeyBloom};
use everbloom::{BloomFilter, BloomView, CuckooFilter, Item, Layout, ScalableBloomFilter};
use everbloom::{Span, WindowedBloomFilter};
use proptest::prelude::*;

#[path = "../../bytes/sealed.rs"]
mod sealed;

use crate::common::grown_by_18;
use sealed::sealed;

mod cuckoo;
mod note;
mod old;
mod random;
mod refused;

const WORDS: [&str; 5] = [
    "foo",
    "bar",
    "baz",
    "an item of more than sixteen bytes",
    "",
];

/// A filter of either type.
#[derive(Clone, Debug, PartialEq)]
enum Filter {
    Fixed(BloomFilter),
    Scalable(LayeredFilter),
}

use Filter::{Fixed, Scalable};

impl Filter {
    fn to_bytes(&self) -> Vec<u8> {
        let mut written = Vec::new();
        let bytes = match self {
            Fixed(filter) => {
                filter.write_to(&mut written).unwrap();
                filter.to_bytes()
            }
            Scalable(filter) => {
                filter.write_to(&mut written).unwrap();
                filter.to_bytes()
            }
        };
        assert!(written == bytes);
        bytes
    }

    /// A filter of this type from bytes; every way to make one says the same.
    fn read(&self, bytes: &[u8]) -> Result<Filter, BytesError> {
        if let Scalable(_) = self {
            check_types(bytes);
        }
        let mut rest = bytes;
        let (filter, streamed, viewed) = match self {
            Fixed(_) => (
                BloomFilter::from_bytes(bytes).map(Fixed),
                BloomFilter::read_from(&mut rest).map(Fixed),
                BloomView::new(bytes).and_then(|view| BloomFilter::try_from(view).map(Fixed)),
            ),
            Scalable(_) => (
                LayeredFilter::from_bytes(bytes).map(Scalable),
                LayeredFilter::read_from(&mut rest).map(Scalable),
                BloomView::new(bytes).and_then(|view| LayeredFilter::try_from(view).map(Scalable)),
            ),
        };
        // Damage may look like an old version, which has no view.
        if !matches!(viewed, Err(BytesError::Old(_))) {
            assert_eq!(filter, viewed);
        }
        match (&streamed, &filter) {
            (Ok(streamed), Ok(filter)) => {
                assert_eq!(streamed, filter);
                assert!(rest.is_empty());
            }
            // A reader does not know how much there is.
            (_, Err(BytesError::Length { .. } | BytesError::Magic)) => {}
            (Err(ReadError::Bytes(BytesError::Old(_))), Err(_)) => {}
            (Err(ReadError::Bytes(streamed)), Err(error)) => assert_eq!(streamed, error),
            _ => panic!("{streamed:?}, {filter:?}"),
        }
        filter
    }

    fn contains(&self, item: &[u8]) -> bool {
        match self {
            Fixed(filter) => filter.contains(item),
            Scalable(filter) => filter.contains(item),
        }
    }

    /// Whether a view says of itself what the filter says.
    fn check_fields(&self, view: &BloomView<'_>) {
        let items = view.len();
        assert_eq!(view.is_empty(), items == 0);
        match self {
            Fixed(filter) => {
                assert!(!view.is_scalable());
                assert_eq!((view.layout(), view.key()), (filter.layout(), filter.key()));
                assert_eq!(
                    (view.len(), view.stats().bits),
                    (filter.len(), filter.bits())
                );
                assert_eq!(view.capacity(), filter.capacity());
                assert_eq!(view.stats(), filter.stats());
                assert_eq!(view.error_rate(), filter.error_rate());
            }
            Scalable(filter) => {
                assert!(view.is_scalable());
                assert_eq!((view.layout(), view.key()), (filter.layout(), filter.key()));
                assert_eq!(
                    (view.len(), view.stats().bytes()),
                    (filter.len(), filter.stream_len())
                );
                assert_eq!(view.capacity(), filter.capacity());
                assert_eq!(view.stats(), filter.stats());
                assert_eq!(view.error_rate(), filter.error_rate());
                assert_eq!(view.parts(), &filter.parts());
            }
        }
    }
}

/// A filter that grows and one that forgets are read by one type each, and by that of hosts.
fn check_types(bytes: &[u8]) {
    let filter = LayeredFilter::from_bytes(bytes);
    let growing = ScalableBloomFilter::from_bytes(bytes);
    let forgetting = WindowedBloomFilter::from_bytes(bytes);
    match &filter {
        Ok(filter) => {
            let (is_growing, is_forgetting) = (growing.is_ok(), forgetting.is_ok());
            assert_eq!(is_growing, filter.window().is_none());
            assert_eq!(is_forgetting, filter.window().is_some());
            let growing = growing.map(|it| (it.to_bytes(), LayeredFilter::from(it)));
            let forgetting = forgetting.map(|it| (it.to_bytes(), LayeredFilter::from(it)));
            let read = growing.or(forgetting).unwrap();
            assert_eq!((&*read.0, &read.1), (&*filter.to_bytes(), filter));
        }
        Err(error) => {
            assert_eq!(growing.as_ref(), Err(error));
            assert_eq!(forgetting.as_ref(), Err(error));
        }
    }
}

/// Whether the items are found, asked for together.
fn all_of(view: &BloomView<'_>, items: &[impl Item]) -> Vec<bool> {
    let mut answers = Vec::new();
    view.contains_each(items, |found| answers.push(found));
    answers
}

/// The filters of the files that `bytes/make.py` makes: written once, and must load for ever.
fn golden() -> [(Filter, &'static [u8]); 5] {
    let fixed = BloomFilter::builder();
    let scalable = LayeredFilter::builder().capacity(3).error_rate(0.01);
    let mut scalable = scalable.layout(Layout::Classic).build().unwrap();
    let mut fixed = [
        fixed.capacity(5).layout(Layout::Classic),
        fixed.capacity(100).layout(Layout::Blocked).seed(42),
    ]
    .map(|builder| builder.build().unwrap());
    fixed.iter_mut().for_each(|filter| filter.extend(WORDS));
    scalable.extend(WORDS);
    let [a, b] = fixed;
    [
        (Fixed(a), include_bytes!("../../bytes/3-fixed-classic.bin")),
        (Fixed(b), include_bytes!("../../bytes/3-fixed-blocked.bin")),
        (
            Scalable(scalable),
            include_bytes!("../../bytes/3-scalable-classic.bin"),
        ),
        (
            Scalable(grown_by_18(3, 0.01, WORDS)),
            include_bytes!("../../bytes/3-scalable-blocked.bin"),
        ),
        (
            Scalable(windowed()),
            include_bytes!("../../bytes/3-windowed.bin"),
        ),
    ]
}

/// The words in two generations, with three skipped between and one dropped before.
fn windowed() -> LayeredFilter {
    let builder = LayeredFilter::builder().capacity(80).error_rate(0.05);
    let built = builder.seed(1).window(Span::Ticks(40_000), 4, 1000).build();
    let mut filter = built.unwrap();
    // An empty generation would pass its layer on instead of being dropped.
    filter.insert("dropped");
    for now in [16_000, 56_000] {
        filter.advance_to(now).unwrap();
        filter.extend(WORDS);
    }
    filter
}

#[test]
fn a_view_has_the_error_rate_of_its_filter() {
    let kind = ValkeyBloom {
        seed: ValkeyBloom::FIXED_SEED,
        tightening: 0.5,
    };
    let builder = LayeredFilter::builder().error_rate(0.03);
    let valkey = builder.valkey(kind).build().unwrap();
    let plain = builder.build().unwrap();
    let fixed = builder.fixed().build().unwrap();
    for filter in [windowed(), valkey, plain, fixed] {
        let bytes = filter.to_bytes();
        let view = BloomView::new(&bytes).unwrap();
        assert_eq!(view.error_rate(), filter.error_rate(), "{filter:?}");
    }
}

/// As a stored value may be: sums that do not agree, an option nobody knows, a bit array of an odd
/// length, hashes of 32 bits, a modulus that is a power of two.
fn odd() -> Filter {
    let Filter::Scalable(plain) = &golden()[2].0 else {
        panic!()
    };
    let mut parts = plain.parts();
    (parts.items, parts.options) = (7, 0x101);
    (parts.layers[0].bytes, parts.layers[0].bits) = (71, 568);
    parts.layers[1].log2_bits = 6;
    let filter = LayeredFilter::from_parts_checked(&parts, 1 << 20, Check::RdbValue);
    let mut filter = filter.unwrap();
    filter.extend(WORDS);
    Scalable(filter)
}

/// In these bytes, two options announce records that an odd filter does not have.
#[test]
fn options_of_another_kind_are_not_written() {
    let Scalable(plain) = odd() else { panic!() };
    let unknown = !Options::KNOWN;
    for bits in [Options::WINDOW, Options::VALKEY, unknown] {
        let mut parts = plain.parts();
        parts.options |= bits;
        let layers = plain.layers().iter();
        let arrays = layers.map(|layer| layer.as_bytes().into_owned()).collect();
        let check = Check::RdbValue;
        let filter = LayeredFilter::from_parts_and_bits(&parts, arrays, 1 << 20, check).unwrap();
        assert_eq!(filter.parts(), parts);
        let filter = Scalable(filter);
        let Scalable(read) = filter.read(&filter.to_bytes()).unwrap() else {
            panic!()
        };
        parts.options &= !(Options::WINDOW | Options::VALKEY);
        assert_eq!(read.parts(), parts);
        assert!(WORDS.iter().all(|word| read.contains(word)));
    }
}

fn all() -> Vec<Filter> {
    let golden = golden().into_iter().map(|(filter, _)| filter);
    golden.chain([odd()]).collect()
}

#[test]
fn bytes_of_version_3() {
    for (filter, bytes) in golden() {
        assert_eq!(filter.to_bytes(), bytes);
        assert_eq!(filter.read(bytes).as_ref(), Ok(&filter));
        assert_eq!(sealed(bytes.to_vec()), bytes);
    }
}

/// The field tables of docs/formats.md, byte by byte.
#[test]
fn the_fields_are_where_they_are_drawn() {
    let (Filter::Scalable(filter), bytes) = &golden()[3] else {
        panic!()
    };
    assert_eq!(&bytes[..12], b"EVRBLOOM\x03\x00\x02\x01");
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!((number(12), number(20) as u32), (5 | 2 << 32, 2));
    assert_eq!((number(24), number(48)), (5, bytes.len() as u64));
    assert_eq!(&bytes[32..48], Key::from_seed(42).to_bytes());
    for (index, layer) in filter.layers().iter().enumerate() {
        let at = 64 + 64 * index;
        assert_eq!((number(at), number(at + 8)), (layer.bytes(), layer.len()));
        assert_eq!(number(at + 16), layer.capacity());
        assert_eq!(number(at + 24), layer.error_rate().to_bits());
        assert_eq!(
            (number(at + 32), number(at + 40)),
            (0, layer.hashes().into())
        );
        assert_eq!(number(at + 48), murmur64a(&layer.as_bytes(), 0));
        assert_eq!(
            number(at + 56),
            murmur64a(&bytes[at..at + 56], number(at - 8))
        );
    }
    assert_eq!(&bytes[192..256], &*filter.layers()[0].as_bytes());
    assert_eq!(&bytes[256..384], &*filter.layers()[1].as_bytes());
}

/// Those who read and write streams find what stands behind the filter.
#[test]
fn a_reader_gives_no_byte_too_many() {
    let mut stream = Vec::new();
    for filter in all() {
        stream.extend(filter.to_bytes());
    }
    let mut rest = &stream[..];
    for filter in all() {
        let again = match filter {
            Fixed(_) => Fixed(BloomFilter::read_from(&mut rest).unwrap()),
            Scalable(_) => Scalable(LayeredFilter::read_from(&mut rest).unwrap()),
        };
        assert_eq!(again, filter);
    }
    assert!(rest.is_empty());
}

#[test]
fn errors_of_readers_and_writers_are_handed_on() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::TimedOut.into())
        }
    }
    let error = BloomFilter::read_from(Broken).unwrap_err();
    assert!(matches!(error, ReadError::Io(error) if error.kind() == std::io::ErrorKind::TimedOut));
    let Filter::Fixed(filter) = &golden()[0].0 else {
        panic!()
    };
    for room in 0..filter.to_bytes().len() {
        let mut small = vec![0; room];
        assert!(filter.write_to(&mut small[..]).is_err());
    }
}

/// Whatever these bytes are: filters that they are work.
fn filters_work(bytes: &[u8]) {
    if let Ok(mut filter) = LayeredFilter::from_bytes(bytes) {
        let again = LayeredFilter::from_bytes(&filter.to_bytes());
        assert_eq!(again.as_ref(), Ok(&filter));
        // A forged expansion may ask for a layer that the machine could give; limit it.
        let mut found = false;
        filter.try_insert_each([b"x".as_slice()], 1 << 20, |reply| {
            found = reply.is_ok();
            std::ops::ControlFlow::Continue(())
        });
        assert!(!found || filter.contains("x"));
        let _ = (filter.capacity(), filter.stats());
    }
    if let Ok(mut filter) = BloomFilter::from_bytes(bytes) {
        let again = BloomFilter::from_bytes(&filter.to_bytes());
        assert_eq!(again.as_ref(), Ok(&filter));
        filter.insert("x");
        assert!(filter.contains("x"));
        let _ = filter.stats();
    }
}

/// A filter of any type, layout and size, with these items.
fn filter(
    (blocked, fixed): (bool, bool),
    (capacity, rate, seed): (u64, f64, u64),
    items: &[Vec<u8>],
) -> Filter {
    if fixed {
        let mut builder = BloomFilter::builder().capacity(capacity).error_rate(rate);
        builder = match blocked {
            true => builder.seed(seed),
            false => builder.layout(Layout::Classic),
        };
        let mut filter = builder.build().unwrap();
        filter.extend(items);
        return Fixed(filter);
    }
    let mut builder = LayeredFilter::builder().capacity(capacity).error_rate(rate);
    builder = match blocked {
        true => builder.seed(seed),
        false => builder.layout(Layout::Classic),
    };
    let mut filter = builder.build().unwrap();
    filter.extend(items);
    Scalable(filter)
}

fn parameters() -> impl Strategy<Value = (u64, f64, u64)> {
    let capacity = prop_oneof![4 => 1_u64..60, 1 => 1_u64..100_000];
    let rate = prop_oneof![Just(0.01), Just(1e-9), 0.0001..0.3_f64];
    (capacity, rate, any::<u64>())
}

/// Items, many of them twice, of many lengths.
fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let item = prop_oneof![
        (0_u32..600).prop_map(|n| n.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..100),
    ];
    prop::collection::vec(item, 0..200)
}

#[cfg(feature = "serde")]
#[test]
fn serde_carries_the_bytes() {
    use everbloom::WindowedBloomFilter;

    let mut scalable = 0;
    for (filter, _) in golden() {
        match filter {
            Fixed(filter) => {
                let text = serde_json::to_string(&filter).unwrap();
                assert_eq!(serde_json::from_str::<BloomFilter>(&text).unwrap(), filter);
            }
            Scalable(filter) => {
                let Ok(filter) = ScalableBloomFilter::try_from(filter) else {
                    continue;
                };
                let text = serde_json::to_string(&filter).unwrap();
                let again = serde_json::from_str::<ScalableBloomFilter>(&text).unwrap();
                assert_eq!(again, filter);
                scalable += 1;
            }
        }
    }
    assert!(scalable > 1);
    let mut window = WindowedBloomFilter::new(100, 0.01, Span::Ticks(9));
    window.insert_at("a", 7);
    let text = serde_json::to_string(&window).unwrap();
    assert_eq!(
        serde_json::from_str::<WindowedBloomFilter>(&text).unwrap(),
        window
    );
    let mut cuckoo = CuckooFilter::new(10);
    cuckoo.insert("a").unwrap();
    let text = serde_json::to_string(&cuckoo).unwrap();
    assert_eq!(serde_json::from_str::<CuckooFilter>(&text).unwrap(), cuckoo);
    // Base64 is text a third longer than the bytes, and the array of earlier versions is read.
    assert_eq!(text.len(), cuckoo.to_bytes().len().div_ceil(3) * 4 + 2);
    let array = serde_json::to_string(&cuckoo.to_bytes()).unwrap();
    assert_eq!(
        serde_json::from_str::<CuckooFilter>(&array).unwrap(),
        cuckoo
    );
    let error = serde_json::from_str::<CuckooFilter>("\"?\"").unwrap_err();
    assert!(error.to_string().starts_with("not base64"), "{error}");
    let error = serde_json::from_str::<BloomFilter>("[1,2,3]").unwrap_err();
    assert!(
        error.to_string().starts_with("not the bytes of a filter"),
        "{error}"
    );
    let error = serde_json::from_str::<ScalableBloomFilter>("7").unwrap_err();
    assert!(
        error.to_string().contains("the bytes of a filter"),
        "{error}"
    );
}
