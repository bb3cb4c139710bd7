//! Bytes that are damaged, cut off, forged or of another type.

use super::*;

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
                Scalable(_) => LayeredFilter::read_from(&bytes[..len]).unwrap_err(),
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
    assert_eq!(fixed(&|b| b[8] = 5), BytesError::Version(5));
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
