//! Bytes of versions 1 and 2.

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
    (filter, include_bytes!("../../bytes/blocked-2.bin").to_vec())
}

fn read(filter: &Filter, bytes: &[u8]) -> Result<Filter, BytesError> {
    match filter {
        Fixed(_) => BloomFilter::from_bytes(bytes).map(Fixed),
        Scalable(_) => LayeredFilter::from_bytes(bytes).map(Scalable),
    }
}

#[test]
fn versions_1_and_2_load() {
    for (version, (filter, bytes)) in [(1, version_1()), (2, version_2())] {
        assert_eq!(read(&filter, &bytes).as_ref(), Ok(&filter));
        let error = BloomView::new(&bytes).unwrap_err();
        assert_eq!(error, BytesError::Old(version));
        let error = LayeredFilter::read_from(&*bytes).unwrap_err();
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
    assert_eq!(read(&|b| b[8] = 5), BytesError::Version(5));
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
