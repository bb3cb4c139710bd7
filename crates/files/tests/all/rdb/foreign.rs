//! Values that are not kept are walked over, in every encoding up to version 12. (What Redis 7.0
//! writes is in `redis`; here are the forms of older and newer servers, by hand.)

use everbloom_files::rdb::value::ModuleType;

use super::common::{read, text};

fn string(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8], bytes].concat()
}

/// A value of one string of any bytes.
fn blob() -> Vec<u8> {
    string(b"\x00\xff\x07opaque\xfe")
}

fn many(elements: &[&[u8]]) -> Vec<u8> {
    [&[elements.len() as u8], &elements.concat()[..]].concat()
}

fn stream(kind: u8) -> Vec<u8> {
    let id = [7; 16];
    let time = [9; 8];
    let mut out = many(&[
        &[string(&id), blob()].concat(),
        &[string(&id), blob()].concat(),
    ]);
    // Length and last id.
    out.extend([2, 0x40, 0xff, 1]);
    if kind >= 19 {
        out.extend([1, 1, 0, 0, 5]);
    }
    let pending = [&id[..], &time[..], &[3]].concat();
    let active: &[u8] = if kind >= 21 { &time } else { &[] };
    let consumer = [&string(b"consumer")[..], &time, active, &many(&[&id, &id])].concat();
    let read: &[u8] = if kind >= 19 { &[4] } else { &[] };
    let group = [
        &string(b"group")[..],
        &[1, 1],
        read,
        &many(&[&pending, &pending]),
        &many(&[&consumer, &consumer]),
    ]
    .concat();
    out.extend(many(&[&group, &group]));
    out
}

fn module() -> Vec<u8> {
    let id = ModuleType::new("some-type", 3).unwrap().id();
    let fields = b"\x01\x05\x02\x40\xff\x03ffff\x04eightby!\x05\x03abc\x05\xc0\x05\x00";
    [&[0x81][..], &id.to_be_bytes(), fields].concat()
}

/// What Valkey 9 alone has: a hash with an expiry behind each field.
fn valkey_hash() -> Vec<u8> {
    let (a, b, time) = (string(b"a"), string(b"bb"), [0xff; 8]);
    [&[2][..], &a, &b, &time, &b, &a, &time].concat()
}

fn values() -> Vec<(u8, &'static str, Vec<u8>)> {
    let (a, b) = (string(b"a"), string(b"bb"));
    let minus = b"\xc1\x00\x80".to_vec();
    let packed = b"\xc3\x05\x0a\x00z\xe0\x00\x00".to_vec();
    let strings = many(&[&a, &minus, &packed, &b]);
    let pairs = [&[2][..], &a, &minus, &b, &packed].concat();
    let time = [1; 8];
    let expiring = [&[2, 0][..], &a, &b, &[0x40, 0xff], &b, &a].concat();
    let decimal = [
        &[4][..],
        &a,
        &string(b"1.5e10"),
        &b,
        &[253],
        &a,
        &[254],
        &b,
        &[255],
    ]
    .concat();
    let binary = [&[2][..], &a, b"\xff\0\0\0\0\0\0\xff", &b, b"12345678"].concat();
    let nodes = [&[3][..], &[2], &blob(), &[1], &b, &[2], &packed].concat();
    let mut all = vec![
        (1, "list", strings.clone()),
        (2, "set", strings.clone()),
        (3, "zset", decimal),
        (4, "hash", pairs),
        (5, "zset", binary),
        (7, "some-type", module()),
        (14, "list", strings),
        (18, "list", nodes),
        (22, "hash", expiring.clone()),
        (23, "hash", blob()),
        (24, "hash", [&time[..], &expiring].concat()),
        (25, "hash", [&time[..], &blob()].concat()),
        (15, "stream", stream(15)),
        (19, "stream", stream(19)),
        (21, "stream", stream(21)),
    ];
    for (kind, name) in [
        (9, "hash"),
        (10, "list"),
        (11, "set"),
        (12, "zset"),
        (13, "hash"),
        (16, "hash"),
        (17, "zset"),
        (20, "set"),
    ] {
        all.push((kind, name, blob()));
        all.push((kind, name, b"\xc3\x05\x0a\x00z\xe0\x00\x00".to_vec()));
    }
    all
}

/// Each value, and a string behind it that is found only when the value was walked over rightly.
#[test]
fn every_encoding() {
    let redis = values().into_iter();
    let redis = redis.map(|(kind, name, value)| (b"REDIS0012", kind, name, value));
    let valkey = [
        (b"VALKEY080", 22, "hash", valkey_hash()),
        (b"VALKEY080", 21, "stream", stream(21)),
    ];
    for (header, kind, name, value) in redis.chain(valkey) {
        let start = b"\xfe\x02\xfc\x01\0\0\0\0\0\0\0\xf8\x05\xf9\x06";
        let start = [&header[..], start].concat();
        let key = [&[kind][..], &string(b"foreign")].concat();
        let end = b"\xf8\x40\x50\x00\x05after\x04mine\xff\0\0\0\0\0\0\0\0".to_vec();
        let file = [start, key, value, end].concat();
        let contents = read(&file[..]).unwrap_or_else(|error| panic!("type {kind}: {error}"));
        assert_eq!(
            contents.skipped,
            [(name.to_owned(), Some(b"foreign".to_vec()))]
        );
        let after = &contents.keys[0];
        assert_eq!(
            (after.db, &after.name[..]),
            (2, &b"after"[..]),
            "type {kind}"
        );
        assert_eq!(text(&after.value), b"mine");
        // What was said of the value before does not stick to the next.
        assert_eq!(
            (after.expires_at, after.idle, after.freq),
            (None, Some(0x50), None)
        );
        // A value that is cut off does not pass.
        for len in 0..file.len() {
            assert!(read(&file[..len]).is_err());
        }
    }
}

#[test]
fn types_that_do_not_exist() {
    for kind in (6..=8).filter(|kind| *kind != 7).chain(26..0xf4) {
        let file = [b"REDIS0012", &[kind][..], b"\x01k\x01v\xff\0\0\0\0\0\0\0\0"].concat();
        let error = read(&file[..]).unwrap_err();
        assert_eq!(error.offset, 9);
        assert!(
            error
                .to_string()
                .contains("instead of a type of value or an opcode")
        );
    }
}

#[test]
fn what_stands_between_keys() {
    let id = ModuleType::new("ReJSON-RL", 3).unwrap().id().to_be_bytes();
    let file = [
        &b"REDIS0012\xfa\x01a\xc0\x07"[..],
        b"\xf4\x01\x02\x03\xf5\x07library",
        b"\xf7\x81",
        &id,
        b"\x02\x02\x05\x03abc\x00",
        b"\xfb\x01\x01\xfd\xff\xff\xff\x7f\x00\x01k\x01v\xf9\x21\x00\x01l\x01v",
        b"\xfc\xff\xff\xff\xff\xff\xff\xff\xff\x00\x01m\x01v",
        b"\xfc\xfe\xff\xff\xff\xff\xff\xff\xff\x00\x01n\x01v",
        b"\xff\0\0\0\0\0\0\0\0",
    ]
    .concat();
    let contents = read(&file[..]).unwrap();
    assert_eq!(contents.aux, [("a".into(), "7".into())]);
    let skipped = [
        ("function library".to_owned(), None),
        ("auxiliary data of ReJSON-RL".to_owned(), None),
    ];
    assert_eq!(contents.skipped, skipped);
    assert_eq!(contents.resizes, [(1, 1)]);
    let expiries: Vec<_> = contents.keys.iter().map(|key| key.expires_at).collect();
    // Seconds; none; -1, which is none; a time before 1970.
    assert_eq!(
        expiries,
        [Some(i32::MAX as u64 * 1000), None, None, Some(0)]
    );
    assert_eq!(contents.keys[1].freq, Some(0x21));
}

/// In a file of Valkey 9 a migration that is under way is no matter of ours; in one of Redis the
/// same byte starts what is not known here, and a value that it belongs to.
#[test]
fn a_migration_of_slots() {
    let body = b"\xf3\x04name\x02\x01\x40\x64\x50\x00\x50\x01\x00\x01k\x01v\xff\0\0\0\0\0\0\0\0";
    let contents = read(&[b"VALKEY080", &body[..]].concat()[..]).unwrap();
    assert_eq!(text(&contents.keys[0].value), b"v");
    let error = read(&[b"REDIS0013", &body[..]].concat()[..]).unwrap_err();
    assert!(error.to_string().contains("the byte f3"), "{error}");
}

#[test]
fn names_of_modules() {
    for name in [
        "MBbloom--",
        "MBbloomCF",
        "ReJSON-RL",
        "AAAAAAAAA",
        "_________",
        "0-9azAZ__",
    ] {
        let module = ModuleType::new(name, 1023).unwrap();
        assert_eq!(ModuleType::from_id(module.id()), module);
        assert_eq!((module.name().as_str(), module.version), (name, 1023));
    }
    assert_eq!(
        ModuleType::new("MBbloomCF", 4).unwrap().id(),
        0x3016_e5a2_8982_1404
    );
    for name in ["", "MBbloom-", "MBbloom---", "MBbloom!-", "MBbl\u{f6}om-"] {
        assert_eq!(ModuleType::new(name, 0), None);
    }
    assert_eq!(ModuleType::new("MBbloom--", 1024), None);
}
