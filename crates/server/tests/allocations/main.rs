//! Each large allocation of an operation fails once: the first, then the second, until none is
//! left that can fail. Every time the server stays up and says what is wrong, the keys are those of
//! before, and the same operation succeeds when it is repeated.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs
)]

mod allocator;
mod persistence;
mod requests;
#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../../fuzz/inputs/cuckoo_loadchunk.rs"]
mod cuckoo_loadchunk;
#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../../fuzz/inputs/loadchunk.rs"]
mod loadchunk;
#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../../fuzz/inputs/restore.rs"]
mod restore;

use std::io::Write;
use std::sync::Mutex;

use allocator::{IS_CLIENT, failing};
use everbloom_resp::{Reply, encode_request};
use everbloom_server::{Running, Settings};
use support::{Client, OfRunning, server};

/// The allocator counts for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

type Request = Vec<Vec<u8>>;

fn words(line: &str) -> Request {
    line.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

fn settings() -> Settings {
    Settings {
        enable_debug_command: "yes".into(),
        ..Settings::default()
    }
}

/// A server with files, and without snapshots of its own.
fn on_disk(appendonly: bool) -> (tempfile::TempDir, Settings, Running, Client) {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.data.dir = Some(dir.path().into());
    settings.data.appendonly = appendonly;
    settings.data.save = Vec::new();
    let running = server(settings.clone());
    running.wait_until_loaded();
    let client = Client::of(&running);
    (dir, settings, running, client)
}

/// Sends bytes and reads the reply; `None` when the server closed the connection without one.
fn exchange(client: &mut Client, request: &[u8]) -> Option<Reply> {
    IS_CLIENT.set(true);
    // Ignore the error: a server that refuses a request closes the connection behind its reply, and may
    // do so before all is sent.
    let _ = client.stream.write_all(request);
    let reply = client.try_reply();
    IS_CLIENT.set(false);
    reply
}

fn is_refusal(reply: &Reply) -> bool {
    let texts = [
        "OOM ",
        "ERR Insufficient memory",
        "ERR problem inserting into filter",
    ];
    let text = reply.as_error().unwrap_or_default();
    texts.iter().any(|start| text.starts_with(start))
}

/// What there is, apart from what is random: the hashes of some filters are.
fn seen(client: &mut Client) -> Vec<Reply> {
    let mut seen = vec![client.line("DBSIZE")];
    for key in ["k", "full", "short", "new", "other", "f"] {
        for command in ["STRLEN", "BITCOUNT", "BF.INFO", "CF.INFO"] {
            seen.push(client.line(&format!("{command} {key}")));
        }
    }
    seen
}

/// A request runs on the keys that the setup makes, with every large allocation failing once.
/// Returns how many of them did.
fn check(running: &Running, setup: &[Request], request: &Request) -> i64 {
    let mut client = Client::of(running);
    let name = String::from_utf8_lossy(&request[..2].join(&b' ')).into_owned();
    let mut encoded = Vec::new();
    encode_request(request, &mut encoded);
    let prepare = |client: &mut Client| {
        client.ok("FLUSHALL");
        for request in setup {
            let reply = client.call(request);
            assert!(!reply.is_error(), "{name}: {reply:?}");
        }
    };
    prepare(&mut client);
    let normal = exchange(&mut client, &encoded).unwrap();
    assert!(!normal.is_error(), "{name}: {normal:?}");
    let after = seen(&mut client);
    for number in 1.. {
        prepare(&mut client);
        let before = client.digest();
        let (reply, failed) = failing(number, || exchange(&mut client, &encoded));
        // A request that cannot be read is refused, and its connection is closed.
        if client.stream.write_all(b"PING\r\n").is_err() || client.try_reply().is_none() {
            client = Client::of(running);
        }
        let what = format!("{name}, allocation {number}: {}", brief(reply.as_ref()));
        if reply.as_ref() == Some(&normal) {
            // It went without.
            assert_eq!(seen(&mut client), after, "{what}");
        } else {
            assert!(failed, "{what}");
            assert!(reply.as_ref().is_some_and(is_refusal), "{what}");
            assert_eq!(client.digest(), before, "{what}");
            let again = exchange(&mut client, &encoded);
            assert!(again.as_ref() == Some(&normal), "{what}");
            assert_eq!(seen(&mut client), after, "{what}");
        }
        if !failed {
            return number - 1;
        }
    }
    0
}

/// The same of a transaction of that request alone, from MULTI to EXEC. It is refused as a whole
/// and has ended then, or the request is.
fn check_queued(running: &Running, setup: &[Request], request: &Request) -> i64 {
    let mut client = Client::of(running);
    let name = String::from_utf8_lossy(&request[..2].join(&b' ')).into_owned();
    let mut encoded = Vec::new();
    encode_request(request, &mut encoded);
    for number in 1.. {
        client.ok("FLUSHALL");
        for request in setup {
            client.call(request);
        }
        client.ok("WATCH other");
        client.ok("MULTI");
        let before = Client::of(running).digest();
        let ((queued, reply), failed) = failing(number, || {
            let queued = exchange(&mut client, &encoded);
            (queued, exchange(&mut client, b"EXEC\r\n"))
        });
        let what = format!(
            "{name}, allocation {number}: {queued:?}, {}",
            brief(reply.as_ref())
        );
        let answers = reply.clone().and_then(Reply::into_elements);
        if reply.is_none() {
            // The request could not be read, and the connection was closed.
            assert!(queued.as_ref().is_some_and(is_refusal), "{what}");
            client = Client::of(running);
        }
        let refused = match (&queued, &answers) {
            _ if reply.is_none() => true,
            (Some(queued), Some(answers)) => {
                assert_eq!(*queued, Reply::simple("QUEUED"), "{what}");
                let [answer] = answers.as_slice() else {
                    panic!("{what}");
                };
                assert!(!answer.is_error() || is_refusal(answer), "{what}");
                answer.is_error()
            }
            _ => {
                let text = reply.as_ref().and_then(Reply::as_error).unwrap_or_default();
                assert!(text.starts_with("EXECABORT"), "{what}");
                let is_queued = queued == Some(Reply::simple("QUEUED"));
                assert!(is_queued == text.contains("OOM"), "{what}");
                true
            }
        };
        assert_eq!(
            client.line("EXEC"),
            Reply::error("ERR EXEC without MULTI"),
            "{what}"
        );
        let clients = client.line("CLIENT INFO");
        let clients = String::from_utf8_lossy(clients.as_bytes().unwrap()).into_owned();
        assert!(!clients.contains(" watch=1"), "{what}: {clients}");
        assert!(failed || !refused, "{what}");
        assert!(!refused || client.digest() == before, "{what}");
        if !failed {
            return number - 1;
        }
    }
    0
}

/// A reply, short enough to be read.
fn brief(reply: Option<&Reply>) -> String {
    let text = format!("{reply:?}");
    text.chars().take(200).collect()
}

/// Bytes that cannot be compressed.
fn noise(len: usize) -> Vec<u8> {
    let words = (1_u64..).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let words = words.map(|word| (word ^ word >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9));
    words
        .flat_map(|word| (word >> 32).to_le_bytes().into_iter().take(4))
        .take(len)
        .collect()
}
