//! Payloads that nobody of good will makes: an error, and the server goes on.

use everbloom_dev::{Random, corpus::work_with};
use everbloom_resp::Reply;

use crate::golden::envelope;
use crate::support::{Client, Host, from_redis_7, set};

/// The layouts, and cuckoo filters; each with the type of its values.
const KINDS: [(&str, &str); 4] = [
    ("CLASSIC", "MBbloom--"),
    ("BLOCKED SEED 7", "everbloom"),
    (CUCKOO, "MBbloomCF"),
    (KEYED, "everblmCF"),
];
const CUCKOO: &str = "CUCKOO";
const KEYED: &str = "KEYED";

/// The type byte and the id of the type, which a value begins with. They stay, or it would not be
/// for this module to read.
const HEAD: usize = 10;

/// The values of several filters of a kind, each from its type byte on.
fn values(client: &mut Client, layout: &str) -> Vec<Vec<u8>> {
    client.ok("DEL small grown fixed");
    if layout == CUCKOO {
        return cuckoo_values(
            client,
            [
                "16",
                "4 BUCKETSIZE 1 EXPANSION 2",
                "16 BUCKETSIZE 4 EXPANSION 0",
            ],
        );
    }
    if layout == KEYED {
        let sizes = ["16", "1", "16 EXPANSION 0"];
        let sizes = sizes.map(|size| format!("{size} ERROR 0.01 SEED 7"));
        return cuckoo_values(client, sizes.each_ref().map(String::as_str));
    }
    client.ok(&format!("BF.RESERVE small 0.01 100 LAYOUT {layout}"));
    client.ok("BF.ADD small a");
    client.ok(&format!("BF.RESERVE grown 0.01 3 LAYOUT {layout}"));
    for i in 0..40 {
        client.ok(&format!("BF.ADD grown {i}"));
    }
    client.ok(&format!(
        "BF.RESERVE fixed 0.001 100 NONSCALING LAYOUT {layout}"
    ));
    ["small", "grown", "fixed"]
        .map(|key| value(client, key))
        .to_vec()
}

fn cuckoo_values(client: &mut Client, [small, grown, fixed]: [&str; 3]) -> Vec<Vec<u8>> {
    client.ok(&format!("CF.RESERVE small {small}"));
    client.ok("CF.ADD small a");
    client.ok(&format!("CF.RESERVE grown {grown}"));
    for i in 0..40 {
        client.ok(&format!("CF.ADD grown {i}"));
    }
    client.ok(&format!("CF.RESERVE fixed {fixed}"));
    client.ok("CF.ADD fixed a");
    ["small", "grown", "fixed"]
        .map(|key| value(client, key))
        .to_vec()
}

fn value(client: &mut Client, key: &str) -> Vec<u8> {
    let payload = client.ok(&format!("DUMP {key}"));
    let payload = payload.as_bytes().unwrap();
    payload[..payload.len() - 10].to_vec()
}

/// One of the ways in which bytes go wrong.
fn damage(value: &[u8], random: &mut Random) -> Vec<u8> {
    const NASTY: [u8; 8] = [0, 1, 2, 5, 0x7f, 0x80, 0x81, 0xff];
    let mut value = value.to_vec();
    let at = HEAD + random.below(value.len() - HEAD);
    match random.below(5) {
        0 => value[at] ^= 1 << random.below(8),
        1 => value[at] = NASTY[random.below(NASTY.len())],
        2 => value.truncate(at),
        3 => {
            // A length or a number of 64 bits in the place of a short one.
            let mut long = vec![0x81];
            long.extend_from_slice(&random.number().to_be_bytes());
            value.splice(at..=at, long);
        }
        _ => {
            let from = HEAD + random.below(value.len() - HEAD);
            let len = random.below(40).min(value.len() - from.max(at));
            value.copy_within(from..from + len, at);
        }
    }
    value
}

/// What is refused leaves nothing, and what is taken is of its type and can be worked with.
fn offer(client: &mut Client, kind: &'static str, payload: &[u8]) -> bool {
    match client.call(&[b"RESTORE", &b"k"[..], b"0", payload]) {
        Reply::Error(text) => {
            assert_eq!(text, "ERR Bad data format");
            assert_eq!(client.number("EXISTS k"), 0);
            false
        }
        _ => {
            assert_eq!(client.line("TYPE k"), Reply::simple(kind));
            work_with(client, "k");
            true
        }
    }
}

#[test]
fn damaged_payloads_are_refused() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let mut random = Random(0x5eed);
    for (layout, kind) in KINDS {
        let (mut taken, mut refused) = (0, 0);
        for value in values(&mut client, layout) {
            for _ in 0..1500 {
                if offer(&mut client, kind, &envelope(&damage(&value, &mut random))) {
                    taken += 1;
                } else {
                    refused += 1;
                }
            }
            // At every length.
            for end in HEAD..value.len() {
                offer(&mut client, kind, &envelope(&value[..end]));
            }
            assert!(offer(&mut client, kind, &envelope(&value)), "{kind}");
        }
        // Bits may be anything, numbers may not: both must have been tried.
        assert!(
            taken > 200 && refused > 1000,
            "{kind}: {taken} taken, {refused} refused"
        );
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
}

/// A value of a version that is not written yet, and one under the id of the other type.
#[test]
fn values_of_other_versions_and_types_are_refused() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let [classic, blocked, cuckoo, keyed] =
        KINDS.map(|(layout, _)| values(&mut client, layout).swap_remove(1));
    for (value, other, kind) in [
        (&classic, &blocked, "MBbloom--"),
        (&blocked, &classic, "everbloom"),
        (&cuckoo, &classic, "MBbloomCF"),
        (&classic, &cuckoo, "MBbloom--"),
        (&keyed, &cuckoo, "everblmCF"),
        (&cuckoo, &keyed, "MBbloomCF"),
    ] {
        assert!(offer(&mut client, kind, &envelope(value)));
        let mut newer = value.clone();
        // The version is the last ten bits of the id.
        newer[HEAD - 1] += 1;
        assert!(!offer(&mut client, kind, &envelope(&newer)), "newer {kind}");
        let mixed = [&value[..HEAD], &other[HEAD..]].concat();
        assert!(!offer(&mut client, kind, &envelope(&mixed)), "mixed {kind}");
    }
    for (mut unwritten, kind) in [(blocked, "everbloom"), (keyed, "everblmCF")] {
        unwritten[HEAD - 1] -= 1;
        assert!(!offer(&mut client, kind, &envelope(&unwritten)), "{kind}");
    }
}

#[test]
fn damaged_headers_and_chunks_are_refused() {
    // A header may ask for as much as a limit allows; without one, dumps of that would take long.
    let limit = ["--bf.bloom-memory-usage-limit", "16mb"];
    let settings: &[&str] = if from_redis_7() { &limit } else { &[] };
    let Some(host) = Host::start(settings) else {
        return;
    };
    let mut client = host.client();
    for (layout, _) in KINDS {
        values(&mut client, layout);
        let family = match layout {
            CUCKOO | KEYED => "CF",
            _ => "BF",
        };
        check_damaged_headers(&mut client, family);
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
}

fn check_damaged_headers(client: &mut Client, family: &str) {
    let mut random = Random(7);
    let mut taken = 0;
    let refusals: &[&str] = match family {
        "BF" => &["ERR received bad data"],
        _ => &[
            "Invalid header",
            "Couldn't create filter!",
            "Maximum expansions reached",
        ],
    };
    let load = format!("{family}.LOADCHUNK");
    let header = client.ok(&format!("{family}.SCANDUMP grown 0"));
    let header = crate::support::elements(header)[1]
        .as_bytes()
        .unwrap()
        .to_vec();
    // Hosts that set no limit make filters of gigabytes, and dump them.
    let times = if from_redis_7() { 1500 } else { 300 };
    for _ in 0..times {
        let mut damaged = header.clone();
        for _ in 0..=random.below(2) {
            let at = random.below(damaged.len());
            damaged[at] = u8::try_from(random.below(256)).unwrap();
        }
        if random.below(8) == 0 {
            damaged.truncate(random.below(header.len()));
        }
        let reply = client.call(&[load.as_bytes(), b"k", b"1", &damaged]);
        if reply == Reply::OK {
            taken += 1;
            let (iterator, len) = (random.number().cast_signed(), random.below(300));
            let iterator = if random.below(2) == 0 {
                iterator
            } else {
                iterator % 500
            };
            client.call(&[
                load.as_bytes(),
                b"k",
                iterator.to_string().as_bytes(),
                &vec![0xff; len],
            ]);
            for line in [
                "BF.EXISTS k x",
                "BF.DEBUG k",
                "BF.STATS k",
                "BF.ADD k x",
                "BF.MADD k a b c",
                "CF.COUNT k x",
                "CF.DEBUG k",
                "CF.STATS k",
                "CF.DEL k x",
                "CF.ADDNX k x",
                "CF.INSERT k ITEMS a a a a b",
                "CF.DEL k a",
                "CF.COMPACT k",
                "DUMP k",
                "DEL k",
            ] {
                client.line(line);
            }
        } else {
            let text = reply.as_error().unwrap();
            assert!(refusals.contains(&text), "{text}");
        }
    }
    assert!((1..times).contains(&taken), "{taken}");
}

/// A file that is damaged stops the start, as Redis has it, with a reason in the log.
#[test]
fn a_damaged_file_stops_the_start() {
    for (layout, kind) in KINDS {
        let Some(host) = Host::start(&["--rdbcompression", "no"]) else {
            return;
        };
        let mut client = host.client();
        values(&mut client, layout);
        client.ok("DEL small fixed");
        client.ok("SAVE");
        let id = value(&mut client, "grown")[1..HEAD].to_vec();
        let file = std::fs::read(host.dir.path().join("dump.rdb")).unwrap();
        let at = file.windows(id.len()).rposition(|part| part == id).unwrap();
        let mut damaged = file;
        // The number of layers, which no file has so many of.
        damaged[at + 12] = 0x3f;
        let end = damaged.len() - 8;
        damaged[end..].copy_from_slice(&[0; 8]);
        check_stopped_start(&damaged, kind);
    }
}

fn check_stopped_start(file: &[u8], kind: &str) {
    let Some(Err((status, log))) = Host::on_keys(file, &[]) else {
        panic!("{kind}: the host has started")
    };
    // It ended by itself, with the code of the check of the file that Redis then makes.
    assert!(status.code().is_some(), "{kind}\n{log}");
    assert!(!log.contains("Ready to accept"), "{kind}\n{log}");
    let family = match kind {
        "MBbloomCF" | "everblmCF" => "cuckoo",
        _ => "Bloom",
    };
    let why = format!("no valid {family} filter");
    assert!(log.contains(&why), "{kind}\n{log}");
    assert!(!log.contains("crashed by signal"), "{kind}\n{log}");
}

/// Each item of a later command takes a step for each table. A file may hold such a filter.
#[test]
fn a_client_loads_no_filter_of_very_many_tables() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let (numbers, sizes) = ([0_u64, 1, 0, 1025], [1_u16; 3]);
    let header: Vec<u8> = numbers
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .chain(sizes.into_iter().flat_map(u16::to_le_bytes))
        .collect();
    let load: &[&[u8]] = &[b"CF.LOADCHUNK", b"k", b"1", &header];
    let refused = client.call(load);
    assert_eq!(refused, Reply::error("Maximum expansions reached"));
    set(&mut client, "cf-max-expansions", "1025");
    assert_eq!(client.call(load), Reply::OK);
    let payload = client.ok("DUMP k");
    let payload = payload.as_bytes().unwrap();
    let mut restore = |key: &[u8]| client.call(&[b"RESTORE", key, b"0", payload]);
    assert_eq!(restore(b"taken"), Reply::OK);
    let mut client = host.client();
    set(&mut client, "cf-max-expansions", "32");
    assert_eq!(restore(b"refused"), Reply::error("ERR Bad data format"));
    client.ok("DEBUG RELOAD");
    assert_eq!(client.number("EXISTS k taken refused"), 2);
}
