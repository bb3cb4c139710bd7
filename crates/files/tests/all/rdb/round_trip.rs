//! What is written is read again; the parts of the format against slow, obvious versions.

use everbloom::host::LayeredFilter;
use everbloom_files::Value;
use everbloom_files::rdb::{WriteOptions, Writer, crc64, dump, lzf, restore};
use proptest::prelude::*;

use super::common::{Contents, Key, LAYOUTS, cuckoo_of, filter_in, keyed_cuckoo_of, read, text};

fn crc64_bit_by_bit(bytes: &[u8]) -> u64 {
    let mut crc = 0;
    for byte in bytes {
        crc ^= u64::from(*byte);
        for _ in 0..8 {
            let polynomial = 0xad93_d235_94c9_35a9_u64.reverse_bits();
            crc = crc >> 1 ^ if crc & 1 == 1 { polynomial } else { 0 };
        }
    }
    crc
}

#[test]
fn crc64_of_the_test_vector() {
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    assert_eq!(crc64(b""), 0);
}

fn strings() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        (-40_000..40_000_i32).prop_map(|n| n.to_string().into_bytes()),
        "[-+0 ]{0,2}[0-9]{0,12}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..100),
        proptest::collection::vec(0..3_u8, 0..20_000),
        (proptest::collection::vec(any::<u8>(), 1..300), 1..200_usize)
            .prop_map(|(part, times)| part.repeat(times)),
        (0..20_u32).prop_map(|bits| vec![b'x'; 1 << bits]),
    ]
}

fn filters() -> impl Strategy<Value = LayeredFilter> {
    let sizes = prop_oneof![1..200_u64, 50_000..300_000_u64];
    let growth = (any::<bool>(), 0..5_u32);
    let layouts = proptest::sample::select(LAYOUTS.to_vec());
    (sizes, 0..400_u64, growth, layouts).prop_map(
        |(capacity, items, (fixed, expansion), layout)| {
            let builder = LayeredFilter::builder()
                .capacity(capacity)
                .expansion(expansion)
                .layout(layout);
            let builder = if fixed { builder.fixed() } else { builder };
            let mut filter = builder.build().unwrap();
            for item in 0..items {
                let _ = filter.try_insert(&item.to_le_bytes());
            }
            filter
        },
    )
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => strings().prop_map(|text| Value::Text(text.into())),
        1 => filters().prop_map(|filter| Value::Filter(filter.into())),
        1 => (2..300_u64, 0..400_u64).prop_map(|(slots, items)| {
            Value::Filter(cuckoo_of(slots, items))
        }),
        1 => (2..300_u64, 0..400_u64).prop_map(|(capacity, items)| {
            Value::Filter(keyed_cuckoo_of(capacity, items))
        }),
    ]
}

fn keys() -> impl Strategy<Value = Key> {
    let times = proptest::option::of(0..=i64::MAX as u64);
    (0..3_u64, strings(), times, values()).prop_map(|(db, name, expires_at, value)| Key {
        db,
        name,
        expires_at,
        idle: None,
        freq: None,
        value,
    })
}

fn write(keys: &[Key], options: WriteOptions) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), options).unwrap();
    for key in keys {
        writer.select_db(key.db).unwrap();
        match &key.value {
            Value::Text(text) => writer.text(&key.name, key.expires_at, text),
            Value::Filter(filter) => writer.filter(&key.name, key.expires_at, filter),
        }
        .unwrap();
    }
    let position = writer.position();
    let (file, bytes) = writer.finish().unwrap();
    assert_eq!((file.len() as u64, position + 9), (bytes, bytes));
    file
}

fn assert_equal(contents: &Contents, keys: &[Key]) {
    assert_eq!(contents.keys.len(), keys.len());
    for (read, written) in contents.keys.iter().zip(keys) {
        assert_eq!((read.db, &read.name), (written.db, &written.name));
        assert_eq!(read.expires_at, written.expires_at);
        assert_same(&read.value, &written.value);
    }
}

fn assert_same(a: &Value, b: &Value) {
    match (a, b) {
        (Value::Text(a), b) => assert_eq!(&**a, text(b)),
        (Value::Filter(a), Value::Filter(b)) => assert_eq!(a, b),
        _ => panic!("a value changed its type"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn crc64_equals_the_slow_one(bytes: Vec<u8>) {
        prop_assert_eq!(crc64(&bytes), crc64_bit_by_bit(&bytes));
    }

    #[test]
    fn lzf_gives_back_what_it_took(texts in proptest::collection::vec(strings(), 1..5)) {
        let mut compressor = lzf::Compressor::default();
        for text in texts {
            let packed = compressor.compress(&text, usize::MAX).unwrap();
            prop_assert_eq!(&lzf::decompress(&packed, text.len()).unwrap(), &text);
            prop_assert!(lzf::decompress(&packed, text.len() + 1).is_err());
            let shorter = text.len().checked_sub(1);
            prop_assert!(shorter.is_none_or(|len| lzf::decompress(&packed, len).is_err()));
            // The limit is kept, and the table left by other strings changes nothing.
            prop_assert_eq!(compressor.compress(&text, packed.len()), Some(packed.clone()));
            let less = packed.len().checked_sub(1);
            prop_assert!(less.is_none_or(|less| compressor.compress(&text, less).is_none()));
            prop_assert_eq!(
                lzf::Compressor::default().compress(&text, usize::MAX),
                Some(packed)
            );
        }
    }

    #[test]
    fn lzf_takes_any_bytes(bytes: Vec<u8>, len in 0..5000_usize) {
        let plain = lzf::decompress(&bytes, len);
        prop_assert!(plain.is_err() || plain.unwrap().len() == len);
    }

    #[test]
    fn a_file_is_read_as_it_was_written(
        keys in proptest::collection::vec(keys(), 0..8),
        compression: bool,
        checksum: bool,
    ) {
        let file = write(&keys, WriteOptions { compression, checksum });
        let contents = read(&file[..]).unwrap();
        assert_equal(&contents, &keys);
        prop_assert_eq!(contents.bytes, file.len() as u64);
        prop_assert_eq!(checksum, !file.ends_with(&[0; 8]));
    }

    #[test]
    fn a_payload_is_restored_as_it_was_dumped(value in values(), compression: bool) {
        let payload = dump(&value, compression, usize::MAX).unwrap();
        assert_same(&restore(&payload, u64::MAX).unwrap(), &value);
    }
}

/// Reads that give one byte, a few, or none because they were interrupted.
struct Drip<'a>(&'a [u8], usize);

impl std::io::Read for Drip<'_> {
    fn read(&mut self, place: &mut [u8]) -> std::io::Result<usize> {
        self.1 += 1;
        if self.1.is_multiple_of(3) {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let n = place.len().min(self.0.len()).min(1 + self.1 % 7);
        let (now, later) = self.0.split_at(n);
        place[..n].copy_from_slice(now);
        self.0 = later;
        Ok(n)
    }
}

#[test]
fn a_file_may_arrive_in_drips() {
    for layout in LAYOUTS {
        let value = Value::Filter(filter_in(layout, 200_000, 10).into());
        let key = Key {
            db: 1,
            name: b"k".into(),
            expires_at: Some(7),
            idle: None,
            freq: None,
            value,
        };
        let file = write(std::slice::from_ref(&key), WriteOptions::default());
        assert_equal(&read(Drip(&file, 0)).unwrap(), &[key]);
    }
}

#[test]
fn what_follows_the_file_is_handed_back() {
    let mut file = write(&[], WriteOptions::default());
    let len = file.len() as u64;
    file.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
    let mut reader = everbloom_files::rdb::Reader::new(&file[..], 0).unwrap();
    let event = reader.next_event().unwrap();
    assert!(matches!(event, everbloom_files::rdb::Event::End { bytes } if bytes == len));
    let (rest, buffered) = reader.into_parts();
    assert_eq!([&buffered, rest].concat(), b"*1\r\n$4\r\nPING\r\n");
}
