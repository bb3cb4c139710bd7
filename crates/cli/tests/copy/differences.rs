//! `everbloom compare`.

use super::*;

/// Two servers whose filters differ in every way.
fn servers_that_differ() -> (Server, Server) {
    let (old, new) = (server(), server());
    let (mut a, mut b) = (old.client(), new.client());
    for key in ["same", "bit", "count", "old", "typed"] {
        a.ok(&format!("BF.RESERVE {key} 0.01 1000"));
        add(&mut a, key, 0..100);
    }
    a.ok("BF.RESERVE large 0.01 15000000");
    copy(old.port, new.port, &[]).success();
    a.ok("BF.RESERVE parameter 0.01 1000");
    b.ok("BF.RESERVE parameter 0.01 1001");
    a.ok("BF.RESERVE blocked 0.01 1000");
    b.ok("BF.RESERVE blocked 0.01 1000 LAYOUT BLOCKED");
    b.ok("DEL old");
    b.ok("SET typed value");
    b.ok("BF.ADD new x");
    // One bit, in the second piece of a large one as well.
    for (key, iterator) in [("bit", "1"), ("large", "16777217")] {
        let piece = b
            .ok(&format!("BF.SCANDUMP {key} {iterator}"))
            .into_elements()
            .unwrap();
        let (end, mut bytes) = (
            piece[0].as_integer().unwrap().to_string(),
            piece[1].as_bytes().unwrap().to_vec(),
        );
        bytes[700] ^= 4;
        let words: [&[u8]; 4] = [b"BF.LOADCHUNK", key.as_bytes(), end.as_bytes(), &bytes];
        assert_eq!(b.call(&words), Reply::OK);
    }
    // The items of the filter and of its layer.
    let mut header = b.ok("BF.SCANDUMP count 0").into_elements().unwrap()[1]
        .as_bytes()
        .unwrap()
        .to_vec();
    let piece = b.ok("BF.SCANDUMP count 1").into_elements().unwrap();
    header[0] -= 1;
    header[36] -= 1;
    b.ok("DEL count");
    let end = piece[0].as_integer().unwrap().to_string();
    b.call(&[&b"BF.LOADCHUNK"[..], b"count", b"1", &header]);
    b.call(&[
        &b"BF.LOADCHUNK"[..],
        b"count",
        end.as_bytes(),
        piece[1].as_bytes().unwrap(),
    ]);
    (old, new)
}

#[test]
fn differences() {
    let (old, new) = servers_that_differ();
    let outcome = compare(old.port, new.port, &[]);
    assert_code(&outcome, 1);
    let (here, there) = (url(old.port), url(new.port));
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    let last = lines.pop().unwrap();
    assert_eq!(
        last,
        "1 equal, 5 different, 2 only at the old server, 1 only at the new one"
    );
    let found: BTreeMap<&str, &str> = lines
        .iter()
        .map(|line| line.split_once(": ").unwrap())
        .collect();
    assert_eq!(found.len(), 8, "{found:?}");
    for key in ["\"bit\"", "\"large\""] {
        assert!(found[key].starts_with("1 bit at redis://"), "{found:?}");
        assert!(found[key].ends_with(" only"), "{found:?}");
    }
    for (key, text) in [
        ("\"count\"", format!("items 100 at {here}, 99 at {there}")),
        (
            "\"parameter\"",
            format!("capacity 1000 at {here}, 1001 at {there}"),
        ),
        (
            "\"blocked\"",
            format!("layout classic at {here}, blocked at {there}"),
        ),
        ("\"old\"", format!("missing at {there}")),
        (
            "\"typed\"",
            format!("missing at {there}, which has a value of type string"),
        ),
        ("\"new\"", format!("missing at {here}")),
    ] {
        assert_eq!(found[key], text);
    }
    let json = compare(old.port, new.port, &["--json"]);
    assert_code(&json, 1);
    let json: Json = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["differences"].as_array().unwrap().len(), 8);
    assert_eq!((&json["equal"], &json["only_old"]), (&1.into(), &2.into()));
    let quiet = compare(old.port, new.port, &["--quiet"]);
    assert_code(&quiet, 1);
    assert_eq!(quiet.stdout, "");
    let json = compare(old.port, old.port, &["--json"]).success();
    let json: Json = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["differences"], &json["equal"]),
        (&Json::Array(vec![]), &8.into())
    );
}
