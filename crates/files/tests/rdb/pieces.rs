//! A filter written in pieces is the same bytes as one written whole; steps out of order are
//! errors.

use everbloom::ScalableBloomFilter;
use everbloom_files::rdb::{WriteError, WriteOptions, Writer};
use proptest::prelude::*;

use crate::common::{LAYOUTS, filter_in, filter_of, read};

fn writer(options: WriteOptions) -> Writer<Vec<u8>> {
    Writer::new(Vec::new(), options).unwrap()
}

fn in_pieces(filter: &ScalableBloomFilter, piece: usize, options: WriteOptions) -> Vec<u8> {
    let mut writer = writer(options);
    writer
        .begin_filter(b"key", Some(5), &filter.parts())
        .unwrap();
    for layer in filter.layers() {
        writer.layer_head(&layer.parts()).unwrap();
        for piece in layer.as_bytes().chunks(piece) {
            writer.layer_bytes(piece).unwrap();
        }
        writer.layer_bytes(b"").unwrap();
        writer.layer_end(layer.len()).unwrap();
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
        blocked: bool,
    ) {
        let filter = filter_in(LAYOUTS[usize::from(blocked)], capacity, items);
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
        let filter = filter_of(capacity, 0);
        let layer = &filter.layers()[0];
        let bytes = layer.bytes();
        let mut short = writer(WriteOptions::default());
        short.begin_filter(b"k", None, &filter.parts()).unwrap();
        short.layer_head(&layer.parts()).unwrap();
        short.layer_bytes(&layer.as_bytes()[1..]).unwrap();
        let error = short.layer_end(0).unwrap_err();
        assert!(matches!(error, WriteError::Length { announced, left: 1 } if announced == bytes));
        let error = short.layer_bytes(&[0, 0, 0]).unwrap_err();
        assert!(
            matches!(error, WriteError::Length { left: 2, .. }),
            "{error}"
        );
    }
}

#[test]
fn steps_out_of_order_are_errors() {
    let filter = filter_of(100, 0);
    let layer = filter.layers()[0].parts();
    let out_of_order = |result: Result<(), WriteError>| {
        assert!(matches!(result, Err(WriteError::Order(_))), "{result:?}");
    };
    let mut writer = writer(WriteOptions::default());
    out_of_order(writer.layer_head(&layer));
    out_of_order(writer.layer_bytes(b"x"));
    out_of_order(writer.layer_end(0));
    out_of_order(writer.end_filter());
    writer.begin_filter(b"k", None, &filter.parts()).unwrap();
    out_of_order(writer.end_filter());
    out_of_order(writer.select_db(0));
    out_of_order(writer.text(b"k", None, b"v"));
    out_of_order(writer.filter(b"k", None, &filter));
    writer.layer_head(&layer).unwrap();
    out_of_order(writer.layer_head(&layer));
    writer.layer_bytes(&filter.layers()[0].as_bytes()).unwrap();
    writer.layer_end(0).unwrap();
    out_of_order(writer.layer_head(&layer));
    out_of_order(writer.finish().map(|_| ()));
}

/// The items of a filter may change between the head and the pieces: what the writer is told
/// counts.
#[test]
fn the_counts_are_those_given() {
    let filter = filter_of(100, 3);
    let mut parts = filter.parts();
    parts.items = 9;
    let mut writer = writer(WriteOptions::default());
    writer.begin_filter(b"k", None, &parts).unwrap();
    writer.layer_head(&parts.layers[0]).unwrap();
    writer.layer_bytes(&filter.layers()[0].as_bytes()).unwrap();
    writer.layer_end(8).unwrap();
    writer.end_filter().unwrap();
    let contents = read(&writer.finish().unwrap().0[..]).unwrap();
    let filter = crate::common::filter(&contents.keys[0].value);
    assert_eq!((filter.len(), filter.layers()[0].len()), (9, 8));
}
