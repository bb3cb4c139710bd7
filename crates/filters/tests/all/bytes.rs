//! The stable bytes: what they are, that filters and views come back from them, and that nothing
//! else does.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

use everbloom::hash::{Key, murmur64a};
use everbloom::redisbloom::{Check, PartsError, ValkeyBloom};
use everbloom::{
    BloomFilter, BloomView, BytesError, CuckooFilter, Item, Layout, ReadError, ScalableBloomFilter,
    Span,
};
use proptest::prelude::*;

#[path = "../bytes/sealed.rs"]
mod sealed;

use sealed::sealed;

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
    Scalable(ScalableBloomFilter),
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
        let mut rest = bytes;
        let (filter, streamed, viewed) = match self {
            Fixed(_) => (
                BloomFilter::from_bytes(bytes).map(Fixed),
                BloomFilter::read_from(&mut rest).map(Fixed),
                BloomView::new(bytes).and_then(|view| BloomFilter::try_from(view).map(Fixed)),
            ),
            Scalable(_) => (
                ScalableBloomFilter::from_bytes(bytes).map(Scalable),
                ScalableBloomFilter::read_from(&mut rest).map(Scalable),
                BloomView::new(bytes)
                    .and_then(|view| ScalableBloomFilter::try_from(view).map(Scalable)),
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

/// Whether the items are found, asked for together.
fn all_of(view: &BloomView<'_>, items: &[impl Item]) -> Vec<bool> {
    let mut answers = Vec::new();
    view.contains_each(items, |found| answers.push(found));
    answers
}

/// The filters of the files that `bytes/make.py` makes: written once, and must load for ever.
fn golden() -> [(Filter, &'static [u8]); 5] {
    let fixed = BloomFilter::builder();
    let scalable = ScalableBloomFilter::builder().capacity(3).error_rate(0.01);
    let mut fixed = [
        fixed.capacity(5).layout(Layout::Classic),
        fixed.capacity(100).layout(Layout::Blocked).seed(42),
    ]
    .map(|builder| builder.build().unwrap());
    let mut scalable = [
        scalable.layout(Layout::Classic),
        scalable.layout(Layout::Blocked).seed(42),
    ]
    .map(|builder| builder.build().unwrap());
    fixed.iter_mut().for_each(|filter| filter.extend(WORDS));
    scalable.iter_mut().for_each(|filter| filter.extend(WORDS));
    let ([a, b], [c, d]) = (fixed, scalable);
    [
        (Fixed(a), include_bytes!("../bytes/3-fixed-classic.bin")),
        (Fixed(b), include_bytes!("../bytes/3-fixed-blocked.bin")),
        (
            Scalable(c),
            include_bytes!("../bytes/3-scalable-classic.bin"),
        ),
        (
            Scalable(d),
            include_bytes!("../bytes/3-scalable-blocked.bin"),
        ),
        (
            Scalable(windowed()),
            include_bytes!("../bytes/3-windowed.bin"),
        ),
    ]
}

/// The words in two generations, with three skipped between and one dropped before.
fn windowed() -> ScalableBloomFilter {
    let builder = ScalableBloomFilter::builder().capacity(80).error_rate(0.05);
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
    let builder = ScalableBloomFilter::builder().error_rate(0.03);
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
    let filter = ScalableBloomFilter::from_parts_checked(&parts, 1 << 20, Check::RdbValue);
    let mut filter = filter.unwrap();
    filter.extend(WORDS);
    Scalable(filter)
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
            Scalable(_) => Scalable(ScalableBloomFilter::read_from(&mut rest).unwrap()),
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

#[test]
fn damaged_bytes_are_refused() {
    for filter in all() {
        let bytes = filter.to_bytes();
        assert_eq!(filter.read(&bytes).as_ref(), Ok(&filter));
        let layers = u32::from_le_bytes(bytes[20..24].try_into().unwrap()) as usize;
        let head = 64 * (1 + sealed::window_blocks(&bytes) + layers);
        for index in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[index] ^= 1 << bit;
                let place = format!("bit {bit} of byte {index}");
                let error = filter.read(&damaged).unwrap_err();
                let view = BloomView::new(&damaged);
                if index >= head {
                    assert_eq!(view.unwrap().verify(), Err(error), "{place}");
                    let known = matches!(
                        error,
                        BytesError::BitsChecksum { .. } | BytesError::Reserved
                    );
                    assert!(known, "{place}: {error}");
                    continue;
                }
                assert!(view.is_err(), "{place}");
                match index {
                    0..8 => assert_eq!(error, BytesError::Magic, "{place}"),
                    8..10 => {}
                    _ => assert_eq!(error, BytesError::HeaderChecksum, "{place}"),
                }
            }
        }
    }
}

#[test]
fn truncated_bytes_are_refused() {
    for filter in all() {
        let bytes = filter.to_bytes();
        for len in 0..bytes.len() {
            let error = filter.read(&bytes[..len]).unwrap_err();
            let known = match error {
                BytesError::Magic => len < 8,
                BytesError::Length { expected, found } => {
                    expected == bytes.len() as u64 && found == len as u64
                }
                error => error == BytesError::Truncated,
            };
            assert!(known, "cut to {len}: {error}");
            let streamed = match filter {
                Fixed(_) => BloomFilter::read_from(&bytes[..len]).unwrap_err(),
                Scalable(_) => ScalableBloomFilter::read_from(&bytes[..len]).unwrap_err(),
            };
            assert!(matches!(streamed, ReadError::Bytes(BytesError::Truncated)));
        }
        let longer = [&bytes[..], &[0]].concat();
        let (expected, found) = (bytes.len() as u64, longer.len() as u64);
        let error = BytesError::Length { expected, found };
        assert_eq!(filter.read(&longer), Err(error));
        assert_eq!(BloomView::new(&longer).unwrap_err(), error);
    }
}

#[test]
fn bytes_of_the_other_type_are_refused() {
    let [(fixed, a), _, (scalable, b), ..] = golden();
    assert_eq!(scalable.read(a), Err(BytesError::Kind));
    assert_eq!(fixed.read(b), Err(BytesError::Kind));
}

/// Each rule, broken alone, with checksums that are right.
#[test]
fn forged_bytes_are_refused() {
    let golden = golden();
    let read = |number: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let (filter, bytes) = &golden[number];
        let mut bytes = bytes.to_vec();
        change(&mut bytes);
        let bytes = sealed(bytes);
        let error = filter.read(&bytes).unwrap_err();
        assert_eq!(BloomView::new(&bytes).err().unwrap_or(error), error);
        error
    };
    let fixed = |change: &dyn Fn(&mut Vec<u8>)| read(0, change);
    let parts = BytesError::Parts;
    assert_eq!(fixed(&|b| b[0] = b'X'), BytesError::Magic);
    assert_eq!(fixed(&|b| b[8] = 4), BytesError::Version(4));
    assert_eq!(fixed(&|b| b[9] = 1), BytesError::Version(0x103));
    assert_eq!(fixed(&|b| b[10] = 2), BytesError::Kind);
    assert_eq!(fixed(&|b| b[10] = 0), BytesError::Kind);
    assert_eq!(fixed(&|b| b[11] = 2), BytesError::Layout(2));
    assert_eq!(fixed(&|b| b[12] = 5), BytesError::Reserved);
    assert_eq!(fixed(&|b| b[16] = 1), BytesError::Reserved);
    assert_eq!(fixed(&|b| b[20] = 0), parts(PartsError::NoLayers));
    // The bits as a layer.
    let error_rate = parts(PartsError::ErrorRate { layer: 1 });
    assert_eq!(fixed(&|b| b[20] = 2), error_rate);
    assert_eq!(fixed(&|b| b[20..24].fill(0xff)), BytesError::Truncated);
    assert_eq!(fixed(&|b| b[24] = 9), BytesError::Reserved);
    assert_eq!(fixed(&|b| b[32] = 1), BytesError::Reserved);
    let length = |expected, found| BytesError::Length { expected, found };
    assert_eq!(fixed(&|b| b[48] += 1), length(192, 193));
    assert_eq!(fixed(&|b| b[48] -= 64), length(192, 128));
    assert_eq!(fixed(&|b| b[55] = 0xff), length(192, 0xff << 56 | 192));
    assert_eq!(fixed(&|b| b[64] += 64), length(256, 192));
    let limit = 192;
    assert_eq!(fixed(&|b| b[70] = 1), parts(PartsError::TooLarge { limit }));
    let bits = parts(PartsError::Bits { layer: 0 });
    assert_eq!(fixed(&|b| b[64..72].fill(0xff)), bits);
    assert_eq!(fixed(&|b| b[64..72].fill(0)), bits);
    assert_eq!(fixed(&|b| b[108] = 200), bits);
    assert_eq!(fixed(&|b| b[108] = 3), BytesError::Reserved);
    assert_eq!(fixed(&|b| b[109] = 1), BytesError::Reserved);
    let hashes = parts(PartsError::Hashes { layer: 0 });
    assert_eq!(fixed(&|b| b[96..104].fill(0)), hashes);
    // What a layer of RedisBloom may have: no hashes.
    let no_hashes = |b: &mut Vec<u8>| b[96..108].fill(0);
    assert_eq!(fixed(&no_hashes), BytesError::Reserved);
    // Behind the bits, which are eight bytes.
    assert_eq!(fixed(&|b| b[191] = 1), BytesError::Reserved);
    assert_eq!(fixed(&|b| b[136] = 1), BytesError::Reserved);

    let blocked = |change: &dyn Fn(&mut Vec<u8>)| read(3, change);
    assert_eq!(blocked(&|b| b[12] = 7), parts(PartsError::Options));
    assert_eq!(blocked(&|b| b[24] = 9), parts(PartsError::Items));
    assert_eq!(blocked(&|b| b[64] = 63), bits);
    assert_eq!(blocked(&|b| b[96] = 1), BytesError::Reserved);
    assert_eq!(blocked(&|b| b[104] = 1), hashes);
    assert_eq!(blocked(&|b| b[108] = 1), bits);
    let layer = 1;
    assert_eq!(
        blocked(&|b| b[144..152].fill(0)),
        parts(PartsError::Capacity { layer })
    );
}

/// A header that is right in itself asks for no memory that is not there.
#[test]
fn headers_of_sizes_beyond_memory_are_refused() {
    let bits = 1_u64 << 59;
    for (filter, bytes) in golden().into_iter().take(2) {
        let mut forged = bytes.to_vec();
        forged[48..56].copy_from_slice(&(bits + 128).to_le_bytes());
        forged[64..72].copy_from_slice(&bits.to_le_bytes());
        let forged = sealed(forged);
        let (expected, found) = (bits + 128, forged.len() as u64);
        let error = BytesError::Length { expected, found };
        assert_eq!(filter.read(&forged), Err(error));
        let streamed = BloomFilter::read_from(&*forged).unwrap_err();
        let missing = BytesError::Parts(PartsError::OutOfMemory);
        assert!(matches!(streamed, ReadError::Bytes(error) if error == missing));
    }
}

/// By construction: the gigabyte is only asked for, and its checksum is wrong.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_view_of_a_gigabyte_does_not_read_it() {
    for (_, bytes) in golden().into_iter().take(2) {
        let bits = 1_usize << 30;
        let mut large = vec![0; 128 + bits];
        let mut head = bytes[..128].to_vec();
        head[48..56].copy_from_slice(&(large.len() as u64).to_le_bytes());
        head[64..72].copy_from_slice(&bits.to_le_bytes());
        large[..128].copy_from_slice(&sealed(head));
        let view = BloomView::new(&large).unwrap();
        assert_eq!(view.parts().layers[0].bits, 8 << 30);
        assert!(!view.contains("foo"));
        assert_eq!(all_of(&view, &WORDS), [false; 5]);
    }
}

/// Written once and for all: these bytes must load in every later version.
mod old {
    use super::*;

    fn forge(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut forged = bytes[..bytes.len() - 8].to_vec();
        change(&mut forged);
        let checksum = murmur64a(&forged, 0);
        forged.extend(checksum.to_le_bytes());
        forged
    }

    fn version_1() -> (Filter, Vec<u8>) {
        let builder = BloomFilter::builder()
            .layout(Layout::Classic)
            .capacity(3)
            .error_rate(0.005);
        let mut filter = builder.build().unwrap();
        filter.insert("foo");
        #[rustfmt::skip]
        let bytes = [
            b'E', b'V', b'R', b'B', b'L', b'O', b'O', b'M', 1, 0, 1, 0, 13, 0, 0, 0,
            0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
            8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
            0x7b, 0x14, 0xae, 0x47, 0xe1, 0x7a, 0x74, 0x3f,
            0xe9, 0x86, 0x2f, 0xb2, 0x35, 0x0e, 0x26, 0x40,
            8, 0, 0, 0, 0, 0, 0, 0,
            // The chunk that RedisBloom dumps for this filter.
            0x00, 0xa0, 0xaa, 0x0a, 0x00, 0x00, 0x00, 0x00,
            // The checksum, by the function of make.py.
            0xff, 0x2c, 0x2f, 0x2f, 0xe4, 0xa5, 0x4a, 0x6d,
        ];
        (Fixed(filter), bytes.to_vec())
    }

    fn version_2() -> (Filter, Vec<u8>) {
        let [_, _, _, (filter, _), _] = golden();
        (filter, include_bytes!("../bytes/blocked-2.bin").to_vec())
    }

    fn read(filter: &Filter, bytes: &[u8]) -> Result<Filter, BytesError> {
        match filter {
            Fixed(_) => BloomFilter::from_bytes(bytes).map(Fixed),
            Scalable(_) => ScalableBloomFilter::from_bytes(bytes).map(Scalable),
        }
    }

    #[test]
    fn versions_1_and_2_load() {
        for (version, (filter, bytes)) in [(1, version_1()), (2, version_2())] {
            assert_eq!(read(&filter, &bytes).as_ref(), Ok(&filter));
            let error = BloomView::new(&bytes).unwrap_err();
            assert_eq!(error, BytesError::Old(version));
            let error = ScalableBloomFilter::read_from(&*bytes).unwrap_err();
            assert!(matches!(error, ReadError::Bytes(BytesError::Old(_))));
            // Written again they are of version 3.
            assert_eq!(filter.read(&filter.to_bytes()), Ok(filter));
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        for (filter, bytes) in [version_1(), version_2()] {
            for len in 0..bytes.len() {
                assert!(read(&filter, &bytes[..len]).is_err(), "cut to {len}");
            }
            for index in 0..bytes.len() {
                for bit in 0..8 {
                    let mut damaged = bytes.clone();
                    damaged[index] ^= 1 << bit;
                    let read = read(&filter, &damaged);
                    assert!(read.is_err(), "bit {bit} of byte {index}");
                }
            }
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(read(&filter, &longer), Err(BytesError::Checksum));
        }
        let (_, bytes) = version_2();
        assert_eq!(BloomFilter::from_bytes(&bytes), Err(BytesError::Kind));
    }

    #[test]
    fn forged_bytes_are_refused() {
        let (filter, bytes) = version_1();
        let read = |change: &dyn Fn(&mut Vec<u8>)| {
            read(&filter, &forge(&bytes, |bytes| change(bytes))).unwrap_err()
        };
        let parts = BytesError::Parts;
        assert_eq!(read(&|b| b[0] = b'X'), BytesError::Magic);
        assert_eq!(read(&|b| b[8] = 4), BytesError::Version(4));
        assert_eq!(read(&|b| b[10] = 2), BytesError::Kind);
        assert_eq!(read(&|b| b[11] = 1), BytesError::Reserved);
        assert_eq!(read(&|b| b[12] = 5), BytesError::Reserved);
        assert_eq!(read(&|b| b[16] = 1), BytesError::Reserved);
        assert_eq!(read(&|b| b[20..24].fill(0xff)), BytesError::Truncated);
        assert_eq!(read(&|b| b[20] = 0), parts(PartsError::NoLayers));
        assert_eq!(read(&|b| b[24] = 9), BytesError::Reserved);
        let (expected, found) = (95, 96);
        let length = BytesError::Length { expected, found };
        assert_eq!(read(&|b| b[32] = 7), length);
        let limit = 8;
        assert_eq!(read(&|b| b[38] = 1), parts(PartsError::TooLarge { limit }));
        let bits = parts(PartsError::Bits { layer: 0 });
        assert_eq!(read(&|b| b[32..40].fill(0xff)), bits);
        assert_eq!(read(&|b| b[77] = 1), BytesError::Reserved);
        assert_eq!(read(&|b| b[76] = 3), BytesError::Reserved);
        assert_eq!(read(&|b| b[76] = 200), bits);
        let (expected, found) = (96, 97);
        let length = BytesError::Length { expected, found };
        assert_eq!(read(&|b| b.push(0)), length);
        let hashes = parts(PartsError::Hashes { layer: 0 });
        assert_eq!(read(&|b| b[64..72].fill(0)), hashes);
        let no_hashes = |b: &mut Vec<u8>| b[64..76].fill(0);
        assert_eq!(read(&no_hashes), BytesError::Reserved);
    }

    proptest! {
        /// Changed in a few places, with a right checksum: either refused, or a filter that works.
        #[test]
        fn forged_filters_never_panic(
            changes in prop::collection::vec((0_usize..140, any::<u8>()), 1..6), second: bool,
        ) {
            let (_, original) = if second { version_2() } else { version_1() };
            let bytes = forge(&original, |bytes| {
                for (index, value) in changes {
                    let len = bytes.len();
                    bytes[index % len] = value;
                }
            });
            super::filters_work(&bytes);
        }
    }
}

/// Whatever these bytes are: filters that they are work.
fn filters_work(bytes: &[u8]) {
    if let Ok(mut filter) = ScalableBloomFilter::from_bytes(bytes) {
        let again = ScalableBloomFilter::from_bytes(&filter.to_bytes());
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
    let mut builder = ScalableBloomFilter::builder()
        .capacity(capacity)
        .error_rate(rate);
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
        prop_assert!(ScalableBloomFilter::from_bytes(&bytes).is_err());
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
        let builder = CuckooFilter::builder().capacity(slots).bucket_size(bucket_size);
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

#[cfg(feature = "serde")]
#[test]
fn serde_carries_the_bytes() {
    use everbloom::WindowedBloomFilter;

    for (filter, _) in golden() {
        match filter {
            Fixed(filter) => {
                let text = serde_json::to_string(&filter).unwrap();
                assert_eq!(serde_json::from_str::<BloomFilter>(&text).unwrap(), filter);
            }
            Scalable(filter) => {
                let text = serde_json::to_string(&filter).unwrap();
                let again = serde_json::from_str::<ScalableBloomFilter>(&text).unwrap();
                assert_eq!(again, filter);
            }
        }
    }
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
