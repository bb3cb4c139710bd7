//! BF.SCANDUMP and BF.LOADCHUNK.

use crate::keyspace::{Keyspace, Value, pieces};
use everbloom_commands::piece::MAX_CHUNK;

fn grown() -> Keyspace {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE k 0.01 10");
    let items: Vec<String> = (0..40).map(|item| item.to_string()).collect();
    keys.say(&format!("BF.MADD k {}", items.join(" ")));
    keys
}

fn load(keys: &mut Keyspace, iterator: &str, data: &[u8]) -> String {
    let reply = keys.call(&[b"BF.LOADCHUNK", b"l", iterator.as_bytes(), data]);
    crate::keyspace::wire(&reply, keys.context.protocol)
}

#[test]
fn iterators_are_places_in_the_stream() {
    let mut keys = grown();
    assert!(keys.say("BF.SCANDUMP k 0").starts_with("*2 :1 $179 "));
    assert!(keys.say("BF.SCANDUMP k 1").starts_with("*2 :17 $16 "));
    assert!(keys.say("BF.SCANDUMP k 18").starts_with("*2 :49 $31 "));
    assert!(keys.say("BF.SCANDUMP k 49").starts_with("*2 :121 $72 "));
    let end = "*2 :0 $0";
    for iterator in [
        "121",
        "99999",
        "-1",
        "-9223372036854775808",
        "9223372036854775807",
    ] {
        assert_eq!(keys.say(&format!("BF.SCANDUMP k {iterator}")), end);
    }
    for iterator in ["x", "", "00", "1.0", "9223372036854775808"] {
        let reply = keys.say(&format!("BF.SCANDUMP k {iterator}"));
        assert_eq!(reply, "-Second argument must be numeric");
    }
    assert_eq!(keys.say("BF.SCANDUMP none x"), "-ERR not found");
    keys.keys.insert(b"s".to_vec(), Value::Other);
    assert!(keys.say("BF.SCANDUMP s x").starts_with("-WRONGTYPE"));
}

#[test]
fn a_dump_loads_in_any_order_and_again() {
    let mut keys = grown();
    let mut dump = pieces(keys.filter("k"));
    let (_, header) = dump.remove(0);
    assert_eq!(load(&mut keys, "1", &header), "+OK");
    for (iterator, data) in dump.iter().rev().chain(&dump) {
        assert_eq!(load(&mut keys, &iterator.to_string(), data), "+OK");
    }
    assert_eq!(keys.filter("l"), keys.filter("k"));
    assert_eq!(load(&mut keys, "1", &header), "-ERR received bad data");
}

#[test]
fn chunks_must_lie_within_one_layer() {
    let mut keys = grown();
    let header = pieces(keys.filter("k"))[0].1.clone();
    assert_eq!(
        load(&mut keys, "x", &header),
        "-ERR Second argument must be numeric"
    );
    for iterator in ["0", "2", "-1"] {
        assert_eq!(load(&mut keys, iterator, &header), "-ERR not found");
    }
    assert_eq!(load(&mut keys, "1", &header), "+OK");
    let bad = "-ERR received bad data";
    let outside = "-ERR invalid offset - no link found";
    let too_big = "-ERR invalid chunk - Too big for current filter";
    let cases = [
        ("1", 0, "+OK"),
        ("1", 1, outside),
        ("0", 1, bad),
        ("0", 0, bad),
        ("-5", 1, bad),
        ("16", 17, bad),
        ("17", 17, outside),
        ("18", 17, too_big),
        ("18", 16, too_big),
        ("17", 16, "+OK"),
        ("120", 0, "+OK"),
        ("121", 0, outside),
        ("122", 1, outside),
        ("9223372036854775807", 1, outside),
        ("-9223372036854775808", 0, bad),
    ];
    let logged = keys.log.len();
    for (iterator, len, reply) in cases {
        assert_eq!(
            load(&mut keys, iterator, &vec![0; len]),
            reply,
            "{iterator} {len}"
        );
    }
    // Only commands that succeeded are logged, as they came.
    assert_eq!(keys.log.len() - logged, 3);
    keys.keys.insert(b"l".to_vec(), Value::Other);
    assert!(load(&mut keys, "5", b"a").starts_with("-WRONGTYPE"));
}

#[test]
fn a_long_layer_comes_in_pieces() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE k 0.01 20000000 NONSCALING");
    keys.say("BF.ADD k a");
    let bytes = keys.filter("k").layers()[0].bytes() as usize;
    assert!(bytes > MAX_CHUNK && bytes < 2 * MAX_CHUNK);
    let dump = pieces(keys.filter("k"));
    let lengths: Vec<usize> = dump.iter().map(|(_, data)| data.len()).collect();
    assert_eq!(lengths, [73, MAX_CHUNK, bytes - MAX_CHUNK]);
    for (iterator, data) in &dump {
        assert_eq!(load(&mut keys, &iterator.to_string(), data), "+OK");
    }
    assert!(keys.filter("l") == keys.filter("k"));
}
