//! Files go both ways between us and Debian's Redis.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use everbloom_dev::{Client, Redis, peers::output};
use everbloom_files::rdb::{Aux, WriteOptions, Writer, restore};
use everbloom_resp::Reply;

use super::common::{Contents, filter_of, read, text};

const FAR: u64 = 4_102_444_800_000;

fn texts() -> Vec<(String, Option<u64>, Vec<u8>)> {
    let mut texts: Vec<_> = [
        "0",
        "-1",
        "127",
        "128",
        "-32768",
        "32768",
        "2147483647",
        "2147483648",
    ]
    .iter()
    .chain(["-0", "007", "+5", "", "-2147483648", "-2147483649", "value"].iter())
    .map(|value| (format!("text {value}"), None, value.as_bytes().to_vec()))
    .collect();
    let noise: Vec<u8> = (0..100_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    texts.push(("expiring".into(), Some(FAR + 1), b"later".to_vec()));
    texts.push(("noise".into(), None, noise.clone()));
    texts.push(("repeats".into(), Some(FAR), b"abcdefgh".repeat(20_000)));
    texts.push((
        "mixed".into(),
        None,
        [&noise[..5000], &noise[..9000], &[0; 3000]].concat(),
    ));
    texts.push(("12345".into(), None, b"an integer as a name".to_vec()));
    texts.push(("name ".repeat(40), None, b"a long name".to_vec()));
    texts
}

fn our_file(options: WriteOptions) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), options).unwrap();
    let aux = Aux {
        version: "7.0.0",
        created: 1_700_000_000,
        used_memory: 1 << 20,
        aof_base: Some(false),
        log: None,
    };
    writer.aux(&aux).unwrap();
    for db in [0, 9] {
        writer.select_db(db).unwrap();
        writer.resize(texts().len() as u64, 2).unwrap();
        for (key, expires_at, value) in texts() {
            writer.text(key.as_bytes(), expires_at, &value).unwrap();
        }
    }
    writer.finish().unwrap().0
}

const OPTIONS: [WriteOptions; 2] = [
    WriteOptions {
        compression: true,
        checksum: true,
    },
    WriteOptions {
        compression: false,
        checksum: false,
    },
];

/// What the program says of a file, if it is there.
fn check_rdb(file: &Path) -> Option<String> {
    let output = output(Command::new("redis-check-rdb").arg(file))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    Some(text)
}

#[test]
fn redis_check_rdb_accepts_our_files() {
    let dir = tempfile::tempdir().unwrap();
    for (options, note) in OPTIONS.into_iter().zip(["Checksum OK", "RDB looks OK"]) {
        let path = dir.path().join("dump.rdb");
        std::fs::write(&path, our_file(options)).unwrap();
        let Some(text) = check_rdb(&path) else { return };
        assert!(text.contains(note), "{text}");
        assert!(text.contains("\\o/ RDB looks OK! \\o/"), "{text}");
        assert!(
            text.contains(&format!("[info] {} keys read", 2 * texts().len())),
            "{text}"
        );
    }
}

fn start(dir: &Path, extra: &[&str]) -> Option<Redis> {
    let dir = ["--dir", dir.to_str().unwrap(), "--dbfilename", "dump.rdb"];
    Redis::start(&[&dir, extra].concat())
}

#[test]
fn redis_loads_our_files() {
    for options in OPTIONS {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("dump.rdb"), our_file(options)).unwrap();
        let Some(redis) = start(dir.path(), &[]) else {
            return;
        };
        let mut client = Client::connect(redis.addr);
        while client.line("PING") != Reply::Simple("PONG".into()) {}
        for db in [0, 9] {
            assert_eq!(client.line(&format!("SELECT {db}")), Reply::OK);
            assert_eq!(client.line("DBSIZE"), Reply::Integer(texts().len() as i64));
            for (key, expires_at, value) in texts() {
                assert_eq!(client.call(&["GET", &key]), Reply::Bulk(value), "{key}");
                let time = expires_at.map_or(-1, |time| time as i64);
                assert_eq!(client.call(&["PEXPIRETIME", &key]), Reply::Integer(time));
            }
        }
    }
}

#[test]
fn redis_restores_what_we_dump_and_the_other_way_round() {
    let dir = tempfile::tempdir().unwrap();
    let Some(redis) = start(dir.path(), &[]) else {
        return;
    };
    let mut client = Client::connect(redis.addr);
    for (key, _, value) in texts() {
        let ours = everbloom_files::Value::Text(value.clone().into());
        let payload = everbloom_files::rdb::dump(&ours, true, usize::MAX).unwrap();
        let args: [&[u8]; 4] = [b"RESTORE", key.as_bytes(), b"0", &payload];
        assert_eq!(client.call(&args), Reply::OK, "{key}");
        assert_eq!(
            client.call(&["GET", &key]),
            Reply::Bulk(value.clone()),
            "{key}"
        );
        let Reply::Bulk(theirs) = client.call(&["DUMP", &key]) else {
            panic!("no payload")
        };
        assert_eq!(text(&restore(&theirs, 0).unwrap()), value, "{key}");
        // The same choice between plain, integer and compressed, and the same compression.
        assert_eq!(
            theirs[..theirs.len() - 10],
            payload[..payload.len() - 10],
            "{key}"
        );
    }
}

fn many(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{prefix}{i}")).collect()
}

/// Commands that make a key of every type and encoding, and the type of each key.
fn fill(client: &mut Client) -> BTreeMap<Vec<u8>, &'static str> {
    let mut keys = BTreeMap::new();
    let mut put = |name, head: &[&str], tail: Vec<String>| {
        let tail = tail.iter().map(String::as_str);
        let reply = client.call(&head.iter().copied().chain(tail).collect::<Vec<_>>());
        assert!(!reply.is_error(), "{reply:?}");
        keys.insert(head[1].as_bytes().to_vec(), name);
    };
    let big = "x".repeat(20_000);
    for (key, count) in [("list small", 3), ("list large", 3000)] {
        put("list", &["RPUSH", key], many("element ", count));
    }
    put("list", &["RPUSH", "list plain", &big, "a", &big], vec![]);
    for (key, prefix, count) in [
        ("set integers", "", 20),
        ("set small", "m", 3),
        ("set large", "m", 3000),
        ("set many integers", "", 3000),
    ] {
        put("set", &["SADD", key], many(prefix, count));
    }
    for (key, count) in [("hash small", 3), ("hash large", 3000)] {
        let fields = many("f", count).into_iter();
        let pairs = fields.flat_map(|field| [field.clone(), field + "v"]);
        put("hash", &["HSET", key], pairs.collect());
    }
    put("hash", &["HSET", "hash big", "f", &big], vec![]);
    for (key, count) in [("zset small", 3), ("zset large", 3000)] {
        let pairs = (0..count).flat_map(|i| [format!("{}", f64::from(i) / 7.0), format!("m{i}")]);
        put("zset", &["ZADD", key], pairs.collect());
    }
    let infinite = ["ZADD", "zset infinite", "-inf", "a", "inf", "b"];
    put("zset", &infinite, vec![]);
    let streams = [("stream small", 2), ("stream large", 1000)];
    for (key, count) in streams {
        for value in many("value ", count) {
            put("stream", &["XADD", key, "*", "field", &value], vec![]);
        }
    }
    for (key, _) in streams {
        read_in_groups(client, key);
    }
    let library = "#!lua name=mylib\nredis.register_function('f', function() return 1 end)";
    client.call(&["FUNCTION", "LOAD", library]);
    for (key, expires_at, value) in texts() {
        client.call(&[&b"SET"[..], key.as_bytes(), &value]);
        if let Some(time) = expires_at {
            client.call(&["PEXPIREAT", &key, &time.to_string()]);
        }
    }
    keys
}

/// Gives a stream groups whose consumers have read of it.
fn read_in_groups(client: &mut Client, key: &str) {
    for group in ["g1", "g2"] {
        let created = client.call(&["XGROUP", "CREATE", key, group, "0"]);
        assert_eq!(created, Reply::OK);
        for consumer in ["c1", "c2"] {
            let read = ["XREADGROUP", "GROUP", group, consumer, "COUNT", "300"];
            client.call(&[&read[..], &["STREAMS", key, ">"]].concat());
        }
    }
}

fn check_walk(contents: &Contents, foreign: &BTreeMap<Vec<u8>, &'static str>) {
    let mut skipped = contents.skipped.clone();
    let library = ("function library".to_owned(), None);
    assert!(skipped.contains(&library));
    skipped.retain(|entry| *entry != library);
    let skipped: BTreeMap<_, _> = skipped
        .iter()
        .map(|(name, key)| (key.clone().unwrap(), name.as_str()))
        .collect();
    assert_eq!(&skipped, foreign);
    assert_eq!(contents.skipped.len(), foreign.len() + 1);
    assert_eq!(contents.keys.len(), texts().len());
    for (key, expires_at, value) in texts() {
        let loaded = contents.key(0, key.as_bytes());
        assert_eq!(text(&loaded.value), value);
        assert_eq!(loaded.expires_at, expires_at);
    }
}

#[test]
fn files_of_redis_with_every_type_are_walked_over() {
    // The second makes different encodings of the same values, and notes accesses.
    let settings: [&[&str]; 3] = [
        &[],
        &[
            "--rdbcompression",
            "no",
            "--rdbchecksum",
            "no",
            "--maxmemory-policy",
            "allkeys-lfu",
            "--maxmemory",
            "1gb",
            "--hash-max-listpack-entries",
            "0",
            "--zset-max-listpack-entries",
            "0",
            "--set-max-intset-entries",
            "0",
            "--list-max-listpack-size",
            "1",
        ],
        &[
            "--maxmemory-policy",
            "allkeys-lru",
            "--maxmemory",
            "1gb",
            "--list-compress-depth",
            "1",
        ],
    ];
    for extra in settings {
        let dir = tempfile::tempdir().unwrap();
        let Some(redis) = start(dir.path(), extra) else {
            return;
        };
        let mut client = Client::connect(redis.addr);
        let foreign = fill(&mut client);
        assert_eq!(client.line("SAVE"), Reply::OK);
        let file = std::fs::File::open(dir.path().join("dump.rdb")).unwrap();
        let contents = read(file).unwrap();
        check_walk(&contents, &foreign);
        let lfu = extra.contains(&"allkeys-lfu");
        let lru = extra.contains(&"allkeys-lru");
        assert!(contents.keys.iter().all(|key| key.freq.is_some() == lfu));
        assert!(contents.keys.iter().all(|key| key.idle.is_some() == lru));
    }
}

/// A filter is walked over by redis-check-rdb as far as it does without the module: the type is
/// unknown to it, but the fields are well-formed.
#[test]
fn redis_check_rdb_reads_our_filters() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dump.rdb");
    let mut writer = Writer::new(Vec::new(), WriteOptions::default()).unwrap();
    writer.select_db(0).unwrap();
    writer
        .filter(b"small", None, &filter_of(100, 500).into())
        .unwrap();
    writer
        .filter(b"large", Some(FAR), &filter_of(500_000, 5).into())
        .unwrap();
    writer.text(b"after", None, b"value").unwrap();
    std::fs::write(&path, writer.finish().unwrap().0).unwrap();
    let Some(text) = check_rdb(&path) else { return };
    assert!(text.contains("[info] 3 keys read"), "{text}");
}
