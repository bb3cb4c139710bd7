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
    for key in ["cuckoo", "deleted", "moved"] {
        a.ok(&format!("CF.RESERVE {key} 1000"));
        insert(&mut a, key, 0..100);
    }
    a.ok("BF.RESERVE large 0.01 15000000");
    copy(old.port, new.port, &[]).success();
    a.ok("BF.RESERVE parameter 0.01 1000");
    b.ok("BF.RESERVE parameter 0.01 1001");
    a.ok("BF.RESERVE blocked 0.01 1000");
    b.ok("BF.RESERVE blocked 0.01 1000 LAYOUT BLOCKED");
    a.ok("CF.RESERVE sizes 1000 BUCKETSIZE 4");
    b.ok("CF.RESERVE sizes 1000");
    a.ok("CF.RESERVE rate 1000 ERROR 0.01 SEED 7");
    b.ok("CF.RESERVE rate 1000 ERROR 0.001 SEED 7");
    a.ok("CF.RESERVE keyed 1000 ERROR 0.01");
    b.ok("CF.RESERVE keyed 1000 ERROR 0.01");
    a.ok("CF.RESERVE kind 1000 ERROR 0.01");
    b.ok("CF.RESERVE kind 1000");
    a.ok("BF.ADD family x");
    b.ok("CF.ADD family x");
    // The same items, in another order, and one that came and went.
    b.ok("CF.ADD deleted x");
    b.ok("CF.DEL deleted x");
    b.ok("CF.DEL moved item:7");
    b.ok("CF.ADD moved x");
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
    let last = "2 equal, 11 different, 3 only at the old server, 2 only at the new one";
    assert_eq!(lines.pop(), Some(last));
    let found: BTreeMap<&str, &str> = lines
        .iter()
        .map(|line| line.split_once(": ").unwrap())
        .collect();
    // One name has two lines.
    assert_eq!((lines.len(), found.len()), (16, 15), "{found:?}");
    let moved = found["\"moved\""];
    let parts = [
        "the count of deleted items; 1 fingerprint at ",
        "1 fingerprint at ",
    ];
    let told: Vec<&str> = moved.split_inclusive("; ").collect();
    assert!(moved.starts_with(parts[0]) && told.len() == 3, "{moved}");
    assert!(
        lines.contains(
            &format!("\"family\": missing at {there}, which has a cuckoo filter").as_str()
        )
    );
    assert_eq!(
        found["\"family\""],
        format!("missing at {here}, which has a Bloom filter")
    );
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
        (
            "\"sizes\"",
            format!("bucket size 4 at {here}, 2 at {there}"),
        ),
        (
            "\"rate\"",
            format!("error rate 0.01 at {here}, 0.001 at {there}"),
        ),
        (
            "\"keyed\"",
            format!("key of the hash one at {here}, another at {there}"),
        ),
        (
            "\"kind\"",
            format!("error rate 0.01 at {here}, none at {there}"),
        ),
        ("\"deleted\"", "the count of deleted items".to_owned()),
        ("\"old\"", format!("missing at {there}")),
        (
            "\"typed\"",
            format!("missing at {there}, which has a value of type string"),
        ),
        ("\"new\"", format!("missing at {here}")),
    ] {
        assert_eq!(found[key], text);
    }
}

#[test]
fn differences_as_json() {
    let (old, new) = servers_that_differ();
    let json = compare(old.port, new.port, &["--json"]);
    assert_code(&json, 1);
    let json: Json = serde_json::from_str(&json.stdout).unwrap();
    let found = json["differences"].as_array().unwrap();
    assert_eq!(found.len(), 16);
    assert_eq!((&json["equal"], &json["only_old"]), (&2.into(), &3.into()));
    let moved = found.iter().find(|one| one["key"] == "moved").unwrap();
    assert_eq!(moved["fingerprints"], serde_json::json!([1, 1]));
    assert_eq!(
        (&moved["tables"], moved.get("bits")),
        (&serde_json::json!([1, 1]), None)
    );
    let quiet = compare(old.port, new.port, &["--quiet"]);
    assert_code(&quiet, 1);
    assert_eq!(quiet.stdout, "");
    let json = compare(old.port, old.port, &["--json"]).success();
    let json: Json = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["differences"], &json["equal"]),
        (&Json::Array(vec![]), &16.into())
    );
}
