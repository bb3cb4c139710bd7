//! A value written in pieces is what one written whole is.

use everbloom_commands::{Filter, Parts};
use everbloom_files::rdb::{WriteError, WriteOptions, Writer};
use proptest::prelude::*;

use super::common::{
    LAYOUTS, cuckoo_of, filter_in, filter_of, keyed_cuckoo_of, read, text as common_text,
};

fn writer(options: WriteOptions) -> Writer<Vec<u8>> {
    Writer::new(Vec::new(), options).unwrap()
}

/// Gives the arrays of a filter piece by piece.
fn pieces_of(filter: &Filter, piece: usize) -> impl FnMut(&mut Vec<u8>) -> Result<(), WriteError> {
    let mut offset = 0;
    move |place| {
        *place = filter
            .stream_chunk(offset, piece)
            .unwrap_or_default()
            .into_owned();
        offset += place.len() as u64;
        Ok(())
    }
}

fn in_pieces(filter: &Filter, piece: usize, options: WriteOptions) -> Vec<u8> {
    let mut writer = writer(options);
    let next = pieces_of(filter, piece);
    writer
        .long_filter(b"key", Some(5), &filter.parts(), next)
        .unwrap();
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
        kind in 0..4_usize,
    ) {
        let filter = match LAYOUTS.get(kind) {
            Some(layout) => filter_in(*layout, capacity, items).into(),
            None if kind == LAYOUTS.len() => cuckoo_of(capacity, items),
            None => keyed_cuckoo_of(capacity, items),
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
        let len = bytes.len() as u64;
        let written = |sizes: [usize; 2]| {
            let mut sizes = sizes.into_iter();
            let next = |place: &mut Vec<u8>| {
                place.clear();
                place.resize(sizes.next().unwrap_or_default(), 0);
                Ok(())
            };
            writer(WriteOptions::default()).long_filter(b"k", None, &filter.parts(), next)
        };
        written([bytes.len() - 1, 1]).unwrap();
        for sizes in [[bytes.len() - 1, 0], [bytes.len() - 1, 2]] {
            let error = written(sizes).unwrap_err();
            assert!(matches!(error, WriteError::Length { announced, left: 1 } if announced == len));
        }
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

/// The items of a filter may change between the head and the pieces: what the writer is told
/// counts.
#[test]
fn the_counts_are_those_given() {
    let filter = filter_of(100, 3);
    let mut parts = filter.parts();
    (parts.items, parts.layers[0].items) = (9, 8);
    let mut writer = writer(WriteOptions::default());
    let parts = Parts::Bloom(parts);
    let next = |place: &mut Vec<u8>| {
        place.extend_from_slice(&filter.layers()[0].as_bytes());
        Ok(())
    };
    writer.long_filter(b"k", None, &parts, next).unwrap();
    let contents = read(&writer.finish().unwrap().0[..]).unwrap();
    let filter = super::common::filter(&contents.keys[0].value);
    assert_eq!((filter.len(), filter.layers()[0].len()), (9, 8));
}
