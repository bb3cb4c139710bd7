//! Filters of valkey-bloom, which has no BF.SCANDUMP: a server that answers DUMP as it does.

use super::bad_servers::serve;
use super::*;

fn golden(file: &str) -> Vec<Json> {
    let folder = root().join("crates/files/tests/golden/valkey-bloom");
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

fn word<'a>(line: &'a Json, field: &str) -> &'a str {
    line[field].as_str().unwrap()
}

/// The payloads by key.
fn payloads() -> BTreeMap<String, Vec<u8>> {
    let byte = |pair: &[u8]| {
        let digits = std::str::from_utf8(pair).unwrap();
        u8::from_str_radix(digits, 16).unwrap()
    };
    let payload = |line: &Json| word(line, "dump").as_bytes().chunks(2).map(byte).collect();
    let lines = golden("dumps.jsonl");
    let keyed = lines
        .iter()
        .map(|line| (word(line, "key").to_owned(), payload(line)));
    keyed.collect()
}

/// Serves one client with these keys, as valkey-bloom does.
fn valkey_bloom(payloads: BTreeMap<String, Vec<u8>>) -> u16 {
    let bytes = |reply: Reply| {
        let mut out = Vec::new();
        encode(&reply, everbloom_resp::Protocol::Resp2, &mut out);
        out
    };
    serve(move |request| {
        let words: Vec<&str> = request.split("\r\n").skip(2).step_by(2).collect();
        bytes(match words.as_slice() {
            ["COMMAND", ..] => Reply::Array(vec![Reply::Null, Reply::Array(Vec::new())]),
            ["SCAN", ..] => {
                let keys = payloads.keys().map(|key| Reply::bulk(key.as_bytes()));
                Reply::Array(vec![Reply::bulk("0"), Reply::Array(keys.collect())])
            }
            ["TYPE", ..] => Reply::Simple("bloomfltr".into()),
            ["DUMP", key, ..] => payloads
                .get(*key)
                .map_or(Reply::Null, |payload| Reply::bulk(payload.as_slice())),
            ["PTTL", ..] => Reply::Integer(-1),
            [command, ..] => Reply::error(format!("ERR unknown command '{command}'")),
            [] => Reply::Null,
        })
    })
}

/// What a server answers of the items that the golden file names, as that has the answers.
fn answers(client: &mut Client, key: &str, rule: &Json) -> String {
    let (from, to) = (rule["from"].as_u64().unwrap(), rule["to"].as_u64().unwrap());
    let item = |number: u64| {
        let item = word(rule, "fmt").replace("%d", &number.to_string());
        item.replace("%05d", &format!("{number:05}"))
    };
    let mut answers = String::new();
    for start in (from..to).step_by(1000) {
        let items = (start..to.min(start + 1000)).map(item);
        let words = ["BF.MEXISTS".to_owned(), key.to_owned()].into_iter();
        let words: Vec<String> = words.chain(items).collect();
        let found = client.call(&words).into_elements().unwrap();
        answers.extend(
            found
                .iter()
                .map(|found| found.as_integer().unwrap().to_string()),
        );
    }
    answers
}

#[test]
fn filters_of_valkey_bloom_answer_as_there() {
    let new = server();
    let mut client = new.client();
    let text = copy(valkey_bloom(payloads()), new.port, &[]).success();
    assert!(text.starts_with("17 filters copied, "), "{text}");
    let mut checked = 0;
    for told in golden("filters.jsonl") {
        let key = word(&told, "key");
        if !payloads().contains_key(key) {
            continue; // too large for a payload in the golden file
        }
        let absent = answers(&mut client, key, &told["absent"]);
        assert_eq!(absent, word(&told, "absent_exists"), "{key}");
        if told["added"]["kind"] == "fmt" {
            let added = answers(&mut client, key, &told["added"]);
            assert_eq!(added, word(&told, "added_exists"), "{key}");
        }
        checked += 1;
    }
    assert_eq!(checked, 17);

    // Both are read to be compared, and neither copy finds anything to do.
    let equal = "17 equal, 0 different, 0 only at the old server, 0 only at the new one\n";
    let old = valkey_bloom(payloads());
    assert_eq!(compare(old, new.port, &[]).success(), equal);
    let text = copy(valkey_bloom(payloads()), new.port, &[]).success();
    assert!(text.contains("\n17 filters skipped: equal"), "{text}");
    client.ok("BF.ADD default another");
    let differs = compare(valkey_bloom(payloads()), new.port, &[]);
    assert_code(&differs, 1);
    assert!(
        differs.stdout.contains("\"default\": items 60 at "),
        "{differs:?}"
    );
}

#[test]
fn a_filter_of_valkey_bloom_becomes_a_file() {
    let file = folder("copy-valkey").join("f.bloom");
    let file = file.to_str().unwrap();
    let from = format!("{}#scaling", url(valkey_bloom(payloads())));
    run(&mut command("copy", &from, file, &[])).success();
    let new = server();
    let to = format!("{}#scaling", url(new.port));
    run(&mut command("copy", file, &to, &[])).success();
    let old = valkey_bloom(payloads());
    let text = compare(old, new.port, &["--match", "scaling"]);
    assert!(text.stdout.contains("1 equal, "), "{text:?}");
}

#[test]
fn damaged_payloads_copy_nothing() {
    let good = payloads()["default"].clone();
    let cut = good[..good.len() - 1].to_vec();
    let mut flipped = good.clone();
    flipped[20] ^= 1;
    let new = server();
    for bad in [cut, flipped, Vec::new()] {
        let bad = BTreeMap::from([("k".to_owned(), bad)]);
        let outcome = copy(valkey_bloom(bad), new.port, &[]);
        assert_code(&outcome, 1);
        assert!(
            outcome.stderr.contains("sent no valid header"),
            "{outcome:?}"
        );
        assert_eq!(new.client().number("DBSIZE"), 0);
    }
}
