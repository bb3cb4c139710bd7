//! Each large allocation of an operation fails once: the first, then the second, until none is
//! left that can fail. Every time the server stays up and says what is wrong, the keys are those of
//! before, and the same operation succeeds when it is repeated.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs
)]

mod support;

#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../fuzz/inputs/cuckoo_loadchunk.rs"]
mod cuckoo_loadchunk;
#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../fuzz/inputs/loadchunk.rs"]
mod loadchunk;
#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../fuzz/inputs/restore.rs"]
mod restore;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use everbloom_dev::corpus::seeds;
use everbloom_resp::{Reply, encode_request};
use everbloom_server::{Running, Settings};
use support::{Client, OfRunning, server};

/// The allocator counts for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// An allocation of so many bytes or more is a large one.
const LARGE: usize = 1 << 20;

/// The number of the large allocation that fails, counted down: 1 is the next one. Below that, no
/// allocation fails.
static COUNTDOWN: AtomicI64 = AtomicI64::new(0);

/// The bytes of all blocks, and the most that there were.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(size: usize) {
    let live = LIVE.fetch_add(size, Ordering::SeqCst) + size;
    PEAK.fetch_max(live, Ordering::SeqCst);
}

/// How many blocks of so many bytes were made shorter.
static SHORTENED: AtomicI64 = AtomicI64::new(0);

/// The system's allocator, but for the allocation that fails.
struct Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Whether every large allocation fails.
static NONE: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is a client, whose allocations never fail.
    static IS_CLIENT: Cell<bool> = const { Cell::new(false) };
}

fn fails(size: usize) -> bool {
    size >= LARGE
        && !IS_CLIENT.get()
        && (NONE.load(Ordering::SeqCst) || COUNTDOWN.fetch_sub(1, Ordering::SeqCst) == 1)
}

// SAFETY: every block is the system's. Null means that there is no memory.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return null_mut();
        }
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return null_mut();
        }
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size < layout.size() && layout.size() >= LARGE {
            SHORTENED.fetch_add(1, Ordering::SeqCst);
        }
        if size > layout.size() && fails(size) {
            return null_mut();
        }
        count(size);
        LIVE.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Runs something while the large allocation of that number fails; also returns whether one failed.
fn failing<R>(number: i64, work: impl FnOnce() -> R) -> (R, bool) {
    COUNTDOWN.store(number, Ordering::SeqCst);
    let result = work();
    (result, COUNTDOWN.swap(0, Ordering::SeqCst) < 1)
}

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

/// Sends bytes and reads the reply; `None` when the server closed the connection.
fn exchange(client: &mut Client, request: &[u8]) -> Option<Reply> {
    IS_CLIENT.set(true);
    let sent = client.stream.write_all(request);
    let reply = sent.ok().and_then(|()| client.try_reply());
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

#[test]
fn strings_that_cannot_grow_are_as_before() {
    let _alone = ALONE.lock();
    let running = server(settings());
    let setup = [
        words("SETBIT k 12000000 1"),
        words("SETBIT full 25165823 1"),
        words("SET short abc"),
    ];
    for line in [
        "SETBIT new 16000000 1",
        "SETBIT k 24000000 1",
        "SETBIT k 12800000 1",
        "SETBIT short 24000000 1",
        "SETRANGE new 2000000 x",
        "SETRANGE k 4000000 x",
        "APPEND full x",
        "BITFIELD new SET u8 16000000 1",
        "BITFIELD k INCRBY u8 24000000 1",
        "BITOP OR new k short",
        "BITOP NOT k k",
        "COPY k new",
    ] {
        assert!(check(&running, &setup, &words(line)) > 0, "{line}");
    }
}

#[test]
fn long_values_that_cannot_be_stored_change_nothing() {
    let _alone = ALONE.lock();
    let running = server(settings());
    let setup = [words("SETBIT k 12000000 1"), words("SET short abc")];
    let long = vec![b'x'; 3 << 20];
    for start in [
        "SET new",
        "SET short",
        "SETNX new",
        "SETEX short 100",
        "GETSET short",
        "APPEND k",
        "APPEND new",
        "SETRANGE short 2",
        "MSET k 1 short",
        "MSETNX new 1 other",
    ] {
        let mut request = words(start);
        request.push(long.clone());
        assert!(check(&running, &setup, &request) > 1, "{start}");
    }
}

/// Whatever answers with long strings, and changes them.
#[test]
fn long_answers_for_which_there_is_no_memory_are_refused() {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.data.dir = Some(dir.path().into());
    settings.data.appendonly = true;
    settings.data.save = Vec::new();
    let running = server(settings);
    running.wait_until_loaded();
    let long = noise((1 << 20) + 100);
    let setup = [
        vec![b"SET".to_vec(), b"k".to_vec(), long.clone()],
        words("SET short abc"),
    ];
    let ended_by = |start: &str| {
        let mut request = words(start);
        request.push(long.clone());
        request
    };
    for request in [
        words("GET k"),
        words("MGET k k"),
        words("GETRANGE k 1 -1"),
        words("GETEX k PERSIST"),
        words("GETEX k EX 100"),
        words("GETDEL k"),
        words("GETSET k x"),
        words("SET k x GET"),
        words("SET k x NX GET"),
        ended_by("SET k"),
        ended_by("GETSET k"),
        ended_by("PING"),
        ended_by("ECHO"),
    ] {
        let line = String::from_utf8_lossy(&request[0]).into_owned();
        assert!(check(&running, &setup, &request) > 0, "{line}");
        assert!(check_queued(&running, &setup, &request) > 0, "{line}");
    }
}

/// The lists of the arguments and of the answers take more than the request.
#[test]
fn requests_of_many_arguments_are_refused_when_there_is_no_memory_for_them() {
    let _alone = ALONE.lock();
    let running = server(settings());
    let setup = [words("SET short abc"), words("BF.RESERVE f 0.01 100000")];
    let fixed = "BF.INSERT new CAPACITY 66000 NONSCALING ITEMS";
    for start in [
        "MGET",
        "BF.MEXISTS f",
        "BF.MADD f",
        fixed,
        "CF.INSERT new CAPACITY 100000 ITEMS",
        "BITOP OR new short",
    ] {
        let mut request = words(start);
        request.extend((0..66_000).map(|item| format!("{item}").into_bytes()));
        assert!(check(&running, &setup, &request) > 2, "{start}");
        assert!(check_queued(&running, &setup, &request) > 2, "{start}");
    }
}

/// Each operation of BITFIELD has a place in two lists, and each pair of MSET has one.
#[test]
fn requests_of_many_operations_are_refused_when_there_is_no_memory_for_them() {
    let _alone = ALONE.lock();
    let running = server(settings());
    let mut bitfield = words("BITFIELD k");
    let mut mset = words("MSET short x");
    for number in 0..33_000 {
        bitfield.extend(words(&format!("SET u8 #{} {}", number % 999, number % 256)));
        mset.extend(words(&format!("{number} v")));
    }
    for request in [bitfield, mset] {
        assert!(check(&running, &[words("SET short abc")], &request) > 2);
    }
}

/// A command that frees memory runs without any. So does one that finds many keys expired, whose
/// log is rewritten then.
#[test]
fn many_keys_are_removed_without_memory() {
    const KEYS: i64 = 40_000;
    let _alone = ALONE.lock();
    let (dir, settings, _running, mut client) = on_disk(true);
    let names = || (0..KEYS).map(|key| key.to_string().into_bytes());
    let mut mset = words("MSET");
    mset.extend(names().flat_map(|name| [name, b"v".to_vec()]));
    let mut delete = words("DEL");
    delete.extend(names());
    let mut encoded = Vec::new();
    encode_request(&delete, &mut encoded);
    for expires in [false, true] {
        client.call(&mset);
        client.ok("SET kept v");
        if expires {
            client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
            for name in names() {
                client.call(&[b"PEXPIRE".to_vec(), name, b"1".to_vec()]);
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        NONE.store(true, Ordering::SeqCst);
        let reply = exchange(&mut client, &encoded);
        NONE.store(false, Ordering::SeqCst);
        let deleted = if expires { 0 } else { KEYS };
        assert_eq!(reply, Some(Reply::from(deleted)));
        assert_eq!(client.number("DBSIZE"), 1);
        assert_eq!(loaded(&settings, dir.path()), client.digest());
    }
}

/// Without memory to record a change in the log, the log is rewritten from memory before the reply.
#[test]
fn changes_that_cannot_be_recorded_are_not_lost() {
    let _alone = ALONE.lock();
    let (dir, settings, running, mut client) = on_disk(true);
    for line in ["SET new", "GETSET short", "APPEND k", "SETRANGE short 2"] {
        let mut request = words(line);
        request.push(noise(3 << 20));
        let mut encoded = Vec::new();
        encode_request(&request, &mut encoded);
        for number in 1.. {
            client.ok("FLUSHALL");
            client.ok("SETBIT k 12000000 1");
            client.ok("SET short abc");
            let (reply, failed) = failing(number, || exchange(&mut client, &encoded));
            let what = format!("{line}, allocation {number}: {reply:?}");
            if reply.is_none() {
                client = Client::of(&running);
            }
            assert!(
                failed || reply.is_some_and(|reply| !reply.is_error()),
                "{what}"
            );
            assert_eq!(loaded(&settings, dir.path()), client.digest(), "{what}");
            if !failed {
                assert!(number > 4, "{what}");
                break;
            }
        }
    }
}

/// A value whose compressed form finds no memory is written as it is.
#[test]
fn snapshots_are_written_without_memory_to_compress() {
    let _alone = ALONE.lock();
    let (dir, settings, _running, mut client) = on_disk(false);
    let lines: Vec<String> = (0..400_000).map(|n| format!("item{n}\n")).collect();
    let mut request = words("SET k");
    request.push(lines.concat().into_bytes());
    let mut encoded = Vec::new();
    encode_request(&request, &mut encoded);
    assert!(exchange(&mut client, &encoded).is_some_and(|reply| !reply.is_error()));
    for number in 1.. {
        let (reply, failed) = failing(number, || exchange(&mut client, b"SAVE\r\n"));
        let what = format!("allocation {number}: {reply:?}");
        assert_eq!(reply, Some(Reply::OK), "{what}");
        assert_eq!(loaded(&settings, dir.path()), client.digest(), "{what}");
        if !failed {
            assert!(number > 1, "{what}");
            break;
        }
    }
}

/// What a server finds in a copy of a directory.
fn loaded(settings: &Settings, dir: &Path) -> String {
    let copy = tempfile::tempdir().unwrap();
    for (path, bytes) in files(dir) {
        let to = copy
            .path()
            .join(Path::new(&path).strip_prefix(dir).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, bytes).unwrap();
    }
    let mut settings = settings.clone();
    settings.data.dir = Some(copy.path().into());
    load(&settings, 0).0.unwrap()
}

/// The requests that fill a filter, one item each, up to the one that makes it grow.
fn fill(client: &mut Client, reserve: &str, add: &str) -> (Vec<Request>, Request) {
    client.ok("FLUSHALL");
    client.ok(reserve);
    let memory = |client: &mut Client| client.number("MEMORY USAGE f");
    let small = memory(client);
    let mut setup = vec![words(reserve)];
    for item in 0..10_000 {
        let request = words(&format!("{add} f {item}"));
        client.call(&request);
        if memory(client) > small + 1_000_000 {
            return (setup, request);
        }
        setup.push(request);
    }
    panic!("{reserve}: it does not grow");
}

#[test]
fn filters_that_cannot_be_had_change_nothing() {
    let _alone = ALONE.lock();
    let running = server(settings());
    let mut client = Client::of(&running);
    for line in [
        "BF.RESERVE f 0.01 2000000",
        "BF.RESERVE f 0.01 2000000 LAYOUT blocked",
        "BF.INSERT f CAPACITY 2000000 ITEMS a b",
        "CF.RESERVE f 4000000",
        "CF.INSERT f CAPACITY 4000000 ITEMS a b",
    ] {
        assert!(check(&running, &[], &words(line)) > 0, "{line}");
    }
    for (reserve, add) in [
        ("BF.RESERVE f 0.01 500 EXPANSION 8000", "BF.ADD"),
        (
            "BF.RESERVE f 0.01 500 EXPANSION 8000 LAYOUT blocked SEED 7",
            "BF.ADD",
        ),
        ("CF.RESERVE f 510 BUCKETSIZE 255 EXPANSION 32768", "CF.ADD"),
    ] {
        let (setup, request) = fill(&mut client, reserve, add);
        assert!(check(&running, &setup, &request) > 0, "{reserve}");
    }
}

#[test]
fn payloads_that_cannot_be_restored_change_nothing() {
    let _alone = ALONE.lock();
    let running = server(settings());
    let mut client = Client::of(&running);
    let mut made: Vec<Request> = [
        "SETBIT f 32000000 1",
        "BF.RESERVE f 0.01 2000000",
        "BF.RESERVE f 0.01 2000000 LAYOUT blocked",
        "CF.RESERVE f 4000000",
    ]
    .map(words)
    .into();
    // It cannot be compressed, and its payload is long.
    made.push(vec![b"SET".to_vec(), b"f".to_vec(), noise(3 << 20)]);
    for request in made {
        let line = String::from_utf8_lossy(&request[..2].join(&b' ')).into_owned();
        client.ok("FLUSHALL");
        client.call(&request);
        let payload = client.line("DUMP f").as_bytes().unwrap().to_vec();
        let mut request = words("RESTORE f 0");
        request.push(payload);
        assert!(check(&running, &[], &request) > 0, "{line}");
    }
}

/// What a damaged payload takes before it is refused is bounded by its length and by `maxmemory`.
#[test]
fn what_damaged_payloads_take_is_bounded() {
    const MAX_MEMORY: usize = 64 << 20;
    let _alone = ALONE.lock();
    let running = server(Settings {
        maxmemory: MAX_MEMORY as u64,
        ..settings()
    });
    let mut client = Client::of(&running);
    let mut take = |name: &str, requests: &[Request]| {
        for request in requests {
            let len: usize = request.iter().map(Vec::len).sum();
            let before = LIVE.load(Ordering::SeqCst);
            PEAK.store(before, Ordering::SeqCst);
            client.call(request);
            let taken = PEAK.load(Ordering::SeqCst).saturating_sub(before);
            // A text is packed to an 88th of its length at best.
            let most = MAX_MEMORY + 100 * len + (1 << 20);
            assert!(taken <= most, "{name}: {len} bytes took {taken}");
        }
        client.ok("FLUSHALL");
    };
    let restore = |payload: Vec<u8>| {
        let mut request = words("RESTORE k 0");
        request.push(payload);
        request
    };
    for (name, input) in seeds("restore") {
        let payloads = restore::payloads(&input, 12);
        for payload in payloads {
            take(&name, &[restore(payload)]);
        }
        take(&name, &[vec![b"BF.LOAD".to_vec(), b"k".to_vec(), input]]);
    }
    for (name, input) in seeds("loadchunk") {
        take(&name, &loadchunk::Input::read(&input).unwrap().requests());
    }
    for (name, input) in seeds("cuckoo_loadchunk") {
        take(
            &name,
            &cuckoo_loadchunk::Input::read(&input).unwrap().requests(),
        );
    }
    // A text of zeros is packed best. This one would be longer than all memory.
    let len: u64 = 1 << 40;
    let mut text = vec![0, 0xc3, 4, 0x81];
    text.extend(len.to_be_bytes());
    text.extend([0x20, 0, 0xe0, 0xff]);
    take(
        "packed",
        &[restore(restore::payloads(&text, 12)[1].clone())],
    );
}

/// Without memory for a request it is refused, whatever its length; the connection ends then.
#[test]
fn requests_that_cannot_be_read_are_refused() {
    let _alone = ALONE.lock();
    let running = server(settings());
    let mut request = words("SET k");
    request.push(noise(5 << 20));
    let mut encoded = Vec::new();
    encode_request(&request, &mut encoded);
    // The first allocations are those of the buffer that the request is read into. One that grows
    // by twice its length is tried again with less.
    let mut client = Client::of(&running);
    let (reply, failed) = failing(1, || exchange(&mut client, &encoded));
    assert!(failed && reply == Some(Reply::OK), "{reply:?}");
    NONE.store(true, Ordering::SeqCst);
    let reply = exchange(&mut Client::of(&running), &encoded);
    NONE.store(false, Ordering::SeqCst);
    assert!(reply.as_ref().is_some_and(is_refusal), "{reply:?}");
    assert_eq!(client.number("STRLEN k"), 5 << 20);
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

/// Starts a server on a directory, with that allocation failing; what the keys are, or why it does
/// not start.
fn load(settings: &Settings, number: i64) -> (Result<String, String>, bool) {
    let (running, failed) = failing(number, || {
        let running = server(settings.clone());
        running.wait_until_loaded();
        running
    });
    let loaded = if running.server().store.health.is_loading() {
        Err(running.wait().unwrap_err())
    } else {
        Ok(Client::of(&running).digest())
    };
    (loaded, failed)
}

/// Every file of a directory with what it holds.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![(path.display().to_string(), fs::read(&path).unwrap())],
        })
        .collect();
    files.sort();
    files
}

#[test]
fn what_cannot_be_loaded_stays_in_the_files() {
    let _alone = ALONE.lock();
    let noise = noise(3 << 20);
    for appendonly in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.data.dir = Some(dir.path().into());
        settings.data.appendonly = appendonly;
        settings.data.save = Vec::new();
        let running = server(settings.clone());
        running.wait_until_loaded();
        let mut client = Client::of(&running);
        client.call(&[b"SET", &b"noise"[..], &noise]);
        for line in [
            "SETBIT zeros 16000000 1",
            "SETBIT zeros 32000000 1",
            "BF.RESERVE classic 0.01 2000000",
            "BF.RESERVE blocked 0.01 2000000 LAYOUT blocked",
            "CF.RESERVE cuckoo 4000000",
            "BITOP NOT inverted zeros",
            "APPEND zeros x",
        ] {
            client.ok(line);
        }
        if !appendonly {
            client.ok("SAVE");
        }
        let digest = client.digest();
        drop((client, running));
        let stored = files(dir.path());
        for number in 1.. {
            let (loaded, failed) = load(&settings, number);
            let what = format!("appendonly {appendonly}, allocation {number}");
            match loaded {
                Ok(loaded) => assert_eq!(loaded, digest, "{what}"),
                Err(text) => assert!(text.contains("memory"), "{what}: {text}"),
            }
            assert!(files(dir.path()) == stored, "{what}");
            if !failed {
                assert!(number > 5, "{what}");
                break;
            }
        }
        assert_eq!(load(&settings, 0).0, Ok(digest));
    }
}

/// Steps in which a block becomes shorter copy it with some allocators.
#[test]
fn large_values_are_freed_at_once() {
    let _alone = ALONE.lock();
    let before = SHORTENED.load(Ordering::SeqCst);
    for layout in [everbloom::Layout::Classic, everbloom::Layout::Blocked] {
        let filter = everbloom::host::LayeredFilter::builder()
            .capacity(80_000_000)
            .layout(layout)
            .build()
            .unwrap();
        assert!(filter.stats().bytes() > 64 << 20);
        drop(filter);
    }
    drop(everbloom_files::Text::from(vec![1; 64 << 20].as_slice()));
    assert_eq!(SHORTENED.load(Ordering::SeqCst), before);
}
