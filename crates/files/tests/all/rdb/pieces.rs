//! A value written in pieces is what one written whole is; steps out of order are errors.

use everbloom_commands::{Filter, Parts};
use everbloom_files::rdb::{WriteError, WriteOptions, Writer};
use proptest::prelude::*;

use super::common::{LAYOUTS, cuckoo_of, filter_in, filter_of, read, text as common_text};

fn writer(options: WriteOptions) -> Writer<Vec<u8>> {
    Writer::new(Vec::new(), options).unwrap()
}

fn in_pieces(filter: &Filter, piece: usize, options: WriteOptions) -> Vec<u8> {
    let mut writer = writer(options);
    let parts = filter.parts();
    writer.begin_filter(b"key", Some(5), &parts).unwrap();
    let mut offset = 0;
    for array in 0..parts.arrays() {
        writer.begin_array().unwrap();
        let bytes = filter.stream_chunk(offset, usize::MAX).unwrap();
        assert_eq!(parts.array_bytes(array), Some(bytes.len() as u64));
        offset += bytes.len() as u64;
        for piece in bytes.chunks(piece) {
            writer.array_bytes(piece).unwrap();
        }
        writer.array_bytes(b"").unwrap();
        writer.end_array().unwrap();
    }
    writer.end_filter().unwrap();
    writer.finish().unwrap().0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pieces_of_any_size_give_what_the_whole_gives(
        capacity in prop_oneof![1..100_u64, 40_000..400_000_u64],
        items in 0..500_u64,
        piece in prop_oneof![1..100_usize, 1000..300_000_usize],
        compression: bool,
        checksum: bool,
        kind in 0..3_usize,
    ) {
        let filter = match LAYOUTS.get(kind) {
            Some(layout) => filter_in(*layout, capacity, items).into(),
            None => cuckoo_of(capacity, items),
        };
        let options = WriteOptions { compression, checksum };
        let mut whole = writer(options);
        whole.filter(b"key", Some(5), &filter).unwrap();
        let (whole, _) = whole.finish().unwrap();
        prop_assert_eq!(in_pieces(&filter, piece, options), whole);
    }
}

#[test]
fn a_length_that_was_not_announced_is_an_error() {
    for capacity in [100, 1_000_000] {
        let filter = Filter::from(filter_of(capacity, 0));
        let bytes = filter.stream_chunk(0, usize::MAX).unwrap();
        let mut short = writer(WriteOptions::default());
        short.begin_filter(b"k", None, &filter.parts()).unwrap();
        short.begin_array().unwrap();
        short.array_bytes(&bytes[1..]).unwrap();
        let error = short.end_array().unwrap_err();
        let len = bytes.len() as u64;
        assert!(matches!(error, WriteError::Length { announced, left: 1 } if announced == len));
        let error = short.array_bytes(&[0, 0, 0]).unwrap_err();
        assert!(
            matches!(error, WriteError::Length { left: 2, .. }),
            "{error}"
        );
    }
}

#[test]
fn a_string_may_come_in_pieces_and_must_be_as_long_as_announced() {
    let text: Vec<u8> = (0..300_000u32).map(|i| (i % 7 * i) as u8).collect();
    let written = |piece: usize, text: &[u8], announced: usize, compression| {
        let mut writer = writer(WriteOptions {
            compression,
            checksum: true,
        });
        let mut pieces = text.chunks(piece);
        let len = announced as u64;
        writer.long_text(b"key", Some(5), len, |place| {
            place.clear();
            place.extend_from_slice(pieces.next().unwrap_or_default());
            Ok(())
        })?;
        writer.finish().map(|(file, _)| file)
    };
    for (compression, piece) in [(false, 1000), (true, 1000), (true, 65_536), (true, 300_000)] {
        let file = written(piece, &text, text.len(), compression).unwrap();
        let keys = read(&file[..]).unwrap().keys;
        assert!(common_text(&keys[0].value) == text && keys[0].expires_at == Some(5));
    }
    // Its beginning tells nothing of the rest.
    let mut zeros = vec![0; 300_000];
    let mut random = everbloom_dev::Random(1);
    let noise = (0..20_000).map(|_| random.below(256) as u8);
    zeros
        .iter_mut()
        .zip(noise)
        .for_each(|(to, from)| *to = from);
    assert!(written(65_536, &zeros, zeros.len(), true).unwrap().len() < 30_000);
    for announced in [299_999, 300_001] {
        let error = written(1000, &text, announced, false).unwrap_err();
        assert!(
            matches!(error, WriteError::Length { left: 1, .. }),
            "{error}"
        );
    }
}

#[test]
fn steps_out_of_order_are_errors() {
    let filter = Filter::from(filter_of(100, 0));
    let out_of_order = |result: Result<(), WriteError>| {
        assert!(matches!(result, Err(WriteError::Order(_))), "{result:?}");
    };
    let mut writer = writer(WriteOptions::default());
    out_of_order(writer.begin_array());
    out_of_order(writer.array_bytes(b"x"));
    out_of_order(writer.end_array());
    out_of_order(writer.end_filter());
    writer.begin_filter(b"k", None, &filter.parts()).unwrap();
    out_of_order(writer.end_filter());
    out_of_order(writer.select_db(0));
    out_of_order(writer.text(b"k", None, b"v"));
    out_of_order(writer.filter(b"k", None, &filter));
    out_of_order(writer.end_array());
    writer.begin_array().unwrap();
    out_of_order(writer.begin_array());
    let bytes = filter.stream_chunk(0, usize::MAX).unwrap();
    writer.array_bytes(&bytes).unwrap();
    writer.end_array().unwrap();
    out_of_order(writer.begin_array());
    out_of_order(writer.finish().map(|_| ()));
    let mut writer = self::writer(WriteOptions::default());
    writer.long_text(b"k", None, 5, |_| Ok(())).unwrap_err();
    out_of_order(writer.text(b"k", None, b"v"));
    out_of_order(writer.finish().map(|_| ()));
}

/// The items of a filter may change between the head and the pieces: what the writer is told
/// counts.
#[test]
fn the_counts_are_those_given() {
    let filter = filter_of(100, 3);
    let mut parts = filter.parts();
    (parts.items, parts.layers[0].items) = (9, 8);
    let mut writer = writer(WriteOptions::default());
    let parts = Parts::Bloom(parts);
    writer.begin_filter(b"k", None, &parts).unwrap();
    writer.begin_array().unwrap();
    writer.array_bytes(&filter.layers()[0].as_bytes()).unwrap();
    writer.end_array().unwrap();
    writer.end_filter().unwrap();
    let contents = read(&writer.finish().unwrap().0[..]).unwrap();
    let filter = super::common::filter(&contents.keys[0].value);
    assert_eq!((filter.len(), filter.layers()[0].len()), (9, 8));
}
