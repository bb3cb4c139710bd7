//! Damaged files and payloads: an error that says where, or, when the damage cannot be seen, valid
//! values; never a panic, and never memory for a length that is only claimed.

use everbloom::Layout;
use everbloom::redisbloom::PartsError;
use everbloom_commands::Filter;
use everbloom_files::Value;
use everbloom_files::rdb::crc64;
use everbloom_files::rdb::{Fault, RestoreError, WriteOptions, Writer, dump, restore};
use proptest::prelude::*;

use super::common::{
    Contents, LAYOUTS, cuckoo_of, filter, filter_in, filter_of, keyed_cuckoo_of, read,
    read_limited, validate,
};

fn file(checksum: bool) -> Vec<u8> {
    let options = WriteOptions {
        compression: true,
        checksum,
    };
    let mut writer = Writer::new(Vec::new(), options).unwrap();
    writer.select_db(3).unwrap();
    writer.resize(6, 1).unwrap();
    writer
        .text(b"integer", Some(4_102_444_800_000), b"-12345")
        .unwrap();
    writer.text(b"long", None, &b"abc".repeat(100)).unwrap();
    writer
        .filter(b"filter", None, &filter_of(10, 70).into())
        .unwrap();
    writer
        .filter(b"empty", None, &filter_of(500, 0).into())
        .unwrap();
    writer
        .filter(b"blocked", None, &filter_in(Layout::Blocked, 3, 70).into())
        .unwrap();
    writer.filter(b"cuckoo", None, &cuckoo_of(8, 20)).unwrap();
    let keyed = keyed_cuckoo_of(8, 40);
    writer.filter(b"keyed", None, &keyed).unwrap();
    writer.finish().unwrap().0
}

/// Every filter that comes out of a loader must be one that could be dumped and loaded again.
fn validate_all(contents: &Contents) {
    for key in &contents.keys {
        if let Value::Filter(filter) = &key.value {
            validate(filter, u64::MAX);
            assert!(filter.stream_len() < 20_000);
        }
    }
}

#[test]
fn a_truncated_file_says_so() {
    for checksum in [true, false] {
        let file = file(checksum);
        for len in 0..file.len() {
            let error = read(&file[..len]).unwrap_err();
            assert!(
                matches!(error.fault, Fault::Truncated { .. }),
                "{len}: {error}"
            );
            assert_eq!(error.offset, len as u64, "{error}");
        }
        assert_eq!(read(&file[..]).unwrap().keys.len(), 7);
    }
}

#[test]
fn a_flipped_bit_is_an_error_or_gives_valid_values() {
    let whole = file(true);
    for bit in 0..whole.len() * 8 {
        let mut file = whole.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&file[..]).is_err(), "bit {bit} with a checksum");
        let end = file.len() - 8;
        file[end..].fill(0);
        if let Ok(contents) = read(&file[..]) {
            validate_all(&contents);
        }
    }
}

#[test]
fn a_damaged_payload_is_refused_as_redis_refuses_it() {
    let layouts = LAYOUTS.map(|layout| Filter::from(filter_in(layout, 5, 70)));
    for filter in layouts
        .into_iter()
        .chain([cuckoo_of(8, 20), keyed_cuckoo_of(8, 40)])
    {
        damage(&dump(&Value::Filter(filter), true, usize::MAX).unwrap());
    }
}

fn damage(payload: &[u8]) {
    let envelope = "ERR DUMP payload version or checksum are wrong";
    for len in 0..payload.len() {
        assert_eq!(
            restore(&payload[..len], u64::MAX).unwrap_err().to_string(),
            envelope
        );
    }
    for bit in 0..payload.len() * 8 {
        let mut payload = payload.to_vec();
        payload[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            restore(&payload, u64::MAX).unwrap_err().to_string(),
            envelope
        );
        // The same with a checksum that is right.
        let body = payload.len() - 8;
        let checksum = crc64(&payload[..body]);
        payload[body..].copy_from_slice(&checksum.to_le_bytes());
        match restore(&payload, u64::MAX) {
            Ok(Value::Filter(filter)) => validate(&filter, u64::MAX),
            Ok(Value::Text(_)) => {}
            Err(error) => {
                let text = error.to_string();
                assert!(text == "ERR Bad data format" || text == envelope, "{text}");
            }
        }
    }
}

pub(crate) fn sealed(body: &[u8], version: u16) -> Vec<u8> {
    let mut payload = [body, &version.to_le_bytes()].concat();
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

#[test]
fn envelopes() {
    for version in (0..=12).chain([80]) {
        assert!(restore(&sealed(b"\x00\x01v", version), 0).is_ok());
    }
    let is_envelope = |result| matches!(result, Err(RestoreError::Envelope));
    for version in [13, 79, 81] {
        assert!(is_envelope(restore(&sealed(b"\x00\x01v", version), 0)));
    }
    assert!(is_envelope(restore(b"", 0)));
    // A checksum of 0 is no way around the check.
    assert!(is_envelope(restore(
        b"\x00\x01v\x09\x00\0\0\0\0\0\0\0\0",
        0
    )));
    // What is between the value and the version does not matter.
    assert!(restore(&sealed(b"\x00\x01vwhatever", 9), 0).is_ok());
    assert!(matches!(
        restore(&sealed(b"", 9), 0),
        Err(RestoreError::Format(_))
    ));
    assert!(matches!(
        restore(&sealed(b"\x01\x01\x01x", 9), 0),
        Err(RestoreError::Foreign)
    ));
    assert!(matches!(
        restore(&sealed(b"\xff", 9), 0),
        Err(RestoreError::Format(_))
    ));
}

#[test]
fn headers() {
    let fault = |file: &[u8]| read(file).unwrap_err().to_string();
    assert_eq!(
        fault(b"RIDES0009"),
        "at byte 0: \"RIDES\" instead of the header \"REDIS\""
    );
    for header in [
        "REDIS0005",
        "REDIS0016",
        "REDIS0080",
        "REDIS9999",
        "REDIS+009",
        "REDIS 009",
        "REDIS00\u{e9}",
        "VALKEY009",
        "VALKEY079",
        "VALKEY081",
        "VALKEY+80",
        "VALKEYY80",
        "VALKE0080",
    ] {
        let file = format!("{header}\u{ff}\0\0\0\0\0\0\0\0");
        let text = fault(file.as_bytes());
        assert!(
            text.contains("cannot be read: Redis's versions 6 to 15 and Valkey's 80 can"),
            "{text}"
        );
    }
    let redis = (6..=15).map(|version| format!("REDIS{version:04}"));
    for header in redis.chain(["VALKEY080".into()]) {
        let file = [header.as_bytes(), b"\xff\0\0\0\0\0\0\0\0"].concat();
        assert_eq!(read(&file[..]).unwrap().bytes, 18);
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let fault = |body: &[u8]| {
        let file = [b"REDIS0009", body, b"\xff\0\0\0\0\0\0\0\0"].concat();
        read(&file[..]).unwrap_err().to_string()
    };
    assert_eq!(
        fault(b"\x1a\x01k"),
        "at byte 9: the byte 1a instead of a type of value or an opcode"
    );
    assert_eq!(
        fault(b"\x00\xc5"),
        "at byte 10: the byte c5 instead of a key's name"
    );
    assert_eq!(
        fault(b"\xfe\xc0\x01"),
        "at byte 10: a string encoding instead of a database's number"
    );
    assert!(fault(b"\xf6").starts_with("at byte 9: a function library as release candidates"));
    // Of ten bytes, which no three are compressed into.
    assert_eq!(
        fault(b"\x00\x01k\xc3\x03\x0a\x01ab"),
        "at byte 12: damaged compressed data instead of a string value"
    );
    let file = [&file(true)[..file(true).len() - 8], &[1; 8]].concat();
    let text = read(&file[..]).unwrap_err().to_string();
    let place = format!(
        "at byte {}: the checksum is 0101010101010101",
        file.len() - 8
    );
    assert!(text.starts_with(&place), "{text}");
}

/// A gigabyte, a terabyte, everything is claimed, and a few bytes are there. The test would not
/// survive asking for such memory and filling it.
#[test]
fn claimed_lengths_ask_for_no_memory() {
    for claim in [1 << 30, 1 << 40, u64::MAX] {
        let claim = [&[0x81][..], &u64::to_be_bytes(claim)].concat();
        let bodies = [
            [b"\x00", &claim[..], b"x"].concat(),
            [b"\x00\x01k", &claim[..], b"x"].concat(),
            [b"\x00\x01k\xc3", &claim[..], &claim[..], b"x"].concat(),
            [b"\x00\x01k\xc3\x03", &claim[..], b"\xff\xff\xff"].concat(),
            [b"\x01\x01k", &claim[..], b"\x01x"].concat(),
            [b"\x0f\x01k", &claim[..], b"\x01x"].concat(),
            [b"\xfa", &claim[..], b"\x01x"].concat(),
        ];
        for body in bodies {
            let file = [b"REDIS0009", &body[..]].concat();
            let error = read(&file[..]).unwrap_err();
            assert!(error.offset <= file.len() as u64, "{error}");
        }
    }
}

/// Compressed data may grow a lot, but not beyond what its length allows: that is known before
/// the data is read.
#[test]
fn a_compressed_length_that_cannot_be_is_refused_first() {
    let error = |packed: u32, plain: u32| {
        let lengths = [packed, plain].map(|len| [&[0x80][..], &len.to_be_bytes()].concat());
        let file = [b"REDIS0009\x00\x01k\xc3", &lengths.concat()[..]].concat();
        read(&file[..]).unwrap_err().fault
    };
    let fault = error(1000, 88_001);
    assert!(matches!(fault, Fault::Unexpected { .. }), "{fault}");
    let fault = error(1000, 88_000);
    assert!(matches!(fault, Fault::Truncated { .. }), "{fault}");
}

#[test]
fn a_damaged_compressed_filter_is_refused_or_valid() {
    let layouts = LAYOUTS.map(|layout| Filter::from(filter_in(layout, 400_000, 30)));
    for filter in layouts
        .into_iter()
        .chain([cuckoo_of(400_000, 30), keyed_cuckoo_of(200_000, 30)])
    {
        let value = Value::Filter(filter);
        let payload = dump(&value, true, usize::MAX).unwrap();
        assert!(payload.len() < 20_000, "it is compressed");
        let body = &payload[..payload.len() - 10];
        let mut refused = 0;
        for at in (0..body.len()).step_by(7) {
            let mut damaged = body.to_vec();
            damaged[at] ^= 0x29;
            match restore(&sealed(&damaged, 9), 1 << 20) {
                Ok(Value::Filter(filter)) => validate(&filter, 1 << 20),
                Ok(Value::Text(_)) => panic!("another type"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 100, "{refused}");
        let short = [&body[..body.len() - 100], &body[body.len() - 50..]].concat();
        assert!(restore(&sealed(&short, 9), 1 << 20).is_err());
    }
}

#[test]
fn a_filter_over_the_limit_is_refused_before_its_bits_are_read() {
    let mut writer = Writer::new(Vec::new(), WriteOptions::default()).unwrap();
    let big = filter_of(1_000_000, 0);
    writer.filter(b"k", None, &big.clone().into()).unwrap();
    let (file, _) = writer.finish().unwrap();
    let bytes = big.stream_len();
    assert_eq!(
        *filter(&read_limited(&file[..], bytes).unwrap().keys[0].value),
        big
    );
    let error = read_limited(&file[..100], bytes - 1).unwrap_err();
    let limit = bytes - 1;
    assert!(matches!(error.fault, Fault::Filter(PartsError::TooLarge { limit: l }) if l == limit));
}

#[test]
fn a_newer_encoding_of_filters_is_named() {
    let filter = Value::Filter(filter_of(10, 0).into());
    let mut payload = dump(&filter, true, usize::MAX).unwrap();
    payload[9] += 1;
    let len = payload.len();
    let Err(RestoreError::Format(error)) = restore(&sealed(&payload[..len - 10], 9), u64::MAX)
    else {
        panic!("version 5 was taken");
    };
    let text = "version 5 of a value of type MBbloom-- cannot be read";
    assert_eq!(error.fault.to_string(), text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_do_no_harm(bytes: Vec<u8>) {
        let file = [b"REDIS0011", &bytes[..]].concat();
        let _ = read_limited(&file[..], 1 << 20);
        let _ = restore(&bytes, 1 << 20);
        let _ = restore(&sealed(&bytes, 12), 1 << 20);
    }

    #[test]
    fn any_change_does_no_harm(changes: Vec<(usize, u8)>) {
        let mut file = file(false);
        let len = file.len();
        for (place, byte) in changes {
            file[9 + place % (len - 9)] = byte;
        }
        if let Ok(contents) = read_limited(&file[..], 1 << 20) {
            for key in &contents.keys {
                if let Value::Filter(filter) = &key.value {
                    validate(filter, 1 << 20);
                }
            }
        }
    }
}
