//! The seeds of the server's fuzzers, sent to the module in a real host: an error or a value, and
//! the host goes on. The server's tests replay the same in process.
//!
//! Values of Redis's own types are left out: they are for the host to read, and by default it does
//! not look at what is in them.

use everbloom_dev::corpus::{Tally, seeds, work_with};
use everbloom_resp::Reply;

use crate::golden::{VERSION, for_the_host};
use crate::support::{Client, Host, elements, from_redis_7};

#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../../fuzz/inputs/cuckoo_loadchunk.rs"]
mod cuckoo_loadchunk;
#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../../fuzz/inputs/loadchunk.rs"]
mod loadchunk;
#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../../fuzz/inputs/rdb_load.rs"]
mod rdb_load;
#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../../fuzz/inputs/restore.rs"]
mod restore;

/// The types that begin a string, and a module's value of either form.
const TYPES: [u8; 3] = [0, 6, 7];

/// A header may ask for as much as a limit allows, and dumps of that take long.
const LIMIT: [&str; 2] = ["--bf.bloom-memory-usage-limit", "16mb"];

fn settings() -> &'static [&'static str] {
    if from_redis_7() { &LIMIT } else { &[] }
}

fn is_ours(kind: &Reply) -> bool {
    let ours = [
        "string",
        "MBbloom--",
        "everbloom",
        "MBbloomCF",
        "bloomfltr",
        "everblmCF",
    ];
    ours.into_iter().any(|ours| *kind == Reply::simple(ours))
}

#[test]
fn payloads_of_the_corpus() {
    let Some(host) = Host::start(settings()) else {
        return;
    };
    let mut client = host.client();
    let (mut kinds, mut tally) = (Vec::new(), Tally::default());
    for (name, input) in seeds("restore") {
        if !input.first().is_some_and(|first| TYPES.contains(first)) {
            continue;
        }
        for payload in restore::payloads(&input, VERSION) {
            if tally.count(client.call(&[b"RESTORE", &b"k"[..], b"0", &payload])) {
                let kind = client.line("TYPE k");
                assert!(is_ours(&kind), "{name}: {kind:?}");
                kinds.push(kind);
            } else {
                assert_eq!(client.number("EXISTS k"), 0, "{name}");
            }
            work_with(&mut client, "k");
        }
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
    for kind in ["MBbloom--", "everbloom", "MBbloomCF"] {
        let taken = kinds.iter().filter(|k| **k == Reply::simple(kind)).count();
        assert!(taken > 5, "{taken} values of type {kind} were taken");
    }
    tally.check_restore_errors();
}

#[test]
fn headers_and_chunks_of_the_corpus() {
    // Older hosts have no limit, and are asked for gigabytes.
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&LIMIT) else {
        return;
    };
    let mut client = host.client();
    let mut tally = Tally::default();
    for (name, input) in seeds("loadchunk") {
        let input = loadchunk::Input::read(&input).unwrap_or_else(|| panic!("{name} says nothing"));
        tally.load(&mut client, &input.requests());
    }
    for (name, input) in seeds("cuckoo_loadchunk") {
        let input = cuckoo_loadchunk::Input::read(&input);
        let input = input.unwrap_or_else(|| panic!("{name} says nothing"));
        tally.load(&mut client, &input.requests());
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
    assert!(tally.taken > 20 && tally.errors.len() > 2, "{tally:?}");
}

/// The files that hold a filter: each is loaded, or ends the start with an error.
#[test]
fn files_of_the_corpus() {
    let Some(host) = Host::start(&[]) else { return };
    let ids = ids(&mut host.client());
    let holds = |file: &[u8], id: &[u8; 9]| file.windows(id.len()).any(|part| part == id);
    let files: Vec<(String, Vec<u8>)> = seeds("rdb_load")
        .into_iter()
        .filter_map(|(name, input)| Some((name, for_the_host(&rdb_load::file(&input)?))))
        .filter(|(_, file)| ids.iter().any(|id| holds(file, id)))
        .collect();
    let (mut loaded, mut refused) = (0, 0);
    for (name, file) in &files {
        match Host::on_keys(file, settings()).unwrap() {
            Ok(host) => {
                check_loaded(&mut host.client());
                loaded += 1;
            }
            // What Redis itself gives up on is none of the module's doing.
            Err((_, log)) if log.contains("Duplicated key found in RDB file") => {}
            Err((status, log)) => {
                assert!(status.code().is_some(), "{name}: {status}\n{log}");
                assert!(!log.contains("crashed by signal"), "{name}\n{log}");
                assert!(!log.contains("Ready to accept"), "{name}\n{log}");
                let ours = ["no valid Bloom filter", "no valid cuckoo filter"];
                refused += usize::from(ours.iter().any(|ours| log.contains(ours)));
            }
        }
    }
    assert!(
        loaded > 3 && refused > 10,
        "{loaded} were loaded, {refused} refused by the module"
    );
}

/// The ids of all types as a file has them: a length of 64 bits.
fn ids(client: &mut Client) -> [[u8; 9]; 3] {
    client.ok("CF.ADD CUCKOO x");
    ["CLASSIC", "BLOCKED", "CUCKOO"].map(|layout| {
        client.line(&format!("BF.RESERVE {layout} 0.01 10 LAYOUT {layout}"));
        let payload = client.ok(&format!("DUMP {layout}"));
        *payload.as_bytes().unwrap()[1..].first_chunk().unwrap()
    })
}

fn check_loaded(client: &mut Client) {
    for key in elements(client.line("KEYS *")) {
        let key = key.as_bytes().unwrap().to_vec();
        if is_ours(&client.call(&[&b"TYPE"[..], &key])) {
            client.call(&[&b"RENAME"[..], &key, b"k"]);
            work_with(client, "k");
        }
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
}
