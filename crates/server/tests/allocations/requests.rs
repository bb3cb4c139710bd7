//! Requests for which there is no memory.

use std::sync::atomic::Ordering;

use everbloom_dev::corpus::seeds;

use super::allocator::{LIMIT, LIVE, NONE, PEAK, SHORTENED};
use super::*;

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

/// Adds items of which only the first ones have room. `refuse` says whether memory is refused.
fn check_items(
    client: &mut Client,
    filter: (&str, &str, &str),
    mut refuse: impl FnMut(&mut Client, bool),
) {
    let (reserve, add, exists) = filter;
    let with = |start: &str, items: &[Vec<u8>]| [words(start), items.to_vec()].concat();
    let is_refused = |reply: &Reply| is_refusal(reply) || *reply == Reply::Integer(-1);
    let is_new = |reply: &Reply| *reply == Reply::Integer(1);
    client.ok("FLUSHALL");
    client.ok(reserve);
    let items: Vec<Vec<u8>> = (0..2000).map(|item| format!("{item}").into()).collect();
    refuse(client, true);
    let replies = client.call(&with(add, &items)).into_elements().unwrap();
    let before = client.digest();
    let mut refused = Vec::new();
    for (item, reply) in items.iter().zip(&replies) {
        match is_refused(reply) {
            true => refused.push(item.clone()),
            false => assert!(is_new(reply), "{add}: {reply:?}"),
        }
    }
    assert!(
        replies.len() == 2000 && refused.len() > 1000,
        "{add}: {}",
        refused.len()
    );
    let again = client.call(&with(add, &refused)).into_elements().unwrap();
    assert!(again.iter().all(is_refused), "{add}");
    assert_eq!(client.digest(), before, "{add}");
    refuse(client, false);
    let added = client.call(&with(add, &refused)).into_elements().unwrap();
    assert!(
        added.len() == refused.len() && added.iter().all(is_new),
        "{add}"
    );
    let found = client.call(&with(exists, &items)).into_elements().unwrap();
    assert!(found.iter().all(is_new), "{exists}");
}

#[test]
fn items_without_room_are_refused_and_never_called_old() {
    let _alone = ALONE.lock();
    let running = server(settings());
    let mut client = Client::of(&running);
    for filter in [
        (
            "BF.RESERVE f 1e-9 500 EXPANSION 8000",
            "BF.MADD f",
            "BF.MEXISTS f",
        ),
        (
            "BF.RESERVE f 1e-9 500 EXPANSION 8000 LAYOUT blocked",
            "BF.INSERT f ITEMS",
            "BF.MEXISTS f",
        ),
        (
            "CF.RESERVE f 510 BUCKETSIZE 255 EXPANSION 32768",
            "CF.INSERT f ITEMS",
            "CF.MEXISTS f",
        ),
    ] {
        check_items(&mut client, filter, |_, refused| {
            NONE.store(refused, Ordering::SeqCst)
        });
        check_items(&mut client, filter, |client, refused| {
            client.ok(if refused {
                "CONFIG SET maxmemory 8mb"
            } else {
                "CONFIG SET maxmemory 0"
            });
        });
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

/// A name of a key that is not a short one.
const LONG_NAME_BYTES: usize = 5 << 20;

/// The least allocation that fails: a request with a long name can be read, but there is no memory
/// for all copies of the name that a command may make.
const REFUSED_BYTES: usize = 16 << 20;

/// Runs something while large allocations fail.
fn nearly_full<R>(work: impl FnOnce() -> R) -> R {
    LIMIT.store(REFUSED_BYTES, Ordering::SeqCst);
    let result = work();
    LIMIT.store(usize::MAX, Ordering::SeqCst);
    result
}

/// A request, encoded, with a long name in place of `~`.
fn on_long_name(line: &str) -> Vec<u8> {
    let mut request = words(line);
    for word in &mut request {
        if word.as_slice() == b"~" {
            *word = vec![b'k'; LONG_NAME_BYTES];
        }
    }
    let mut encoded = Vec::new();
    encode_request(&request, &mut encoded);
    encoded
}

/// A name is copied without a way to fail, so the command is refused before.
#[test]
fn commands_on_long_names_are_refused_when_there_is_no_memory_for_copies() {
    let _alone = ALONE.lock();
    let running = server(settings());
    let mut client = Client::of(&running);
    for line in [
        "SET ~ v",
        "MSET short 1 ~ 2",
        "SETBIT ~ 1 1",
        "BF.ADD ~ x",
        "BF.EXISTS ~ x",
        "CF.ADD ~ x",
        "COPY short ~",
        "RENAME short ~",
        "GET ~",
        "EXPIRE ~ 100",
        "WATCH short ~",
    ] {
        client.ok("FLUSHALL");
        client.ok("SET short abc");
        let (encoded, before) = (on_long_name(line), client.digest());
        let reply = nearly_full(|| exchange(&mut client, &encoded));
        assert!(reply.as_ref().is_some_and(is_refusal), "{line}: {reply:?}");
        assert_eq!(client.digest(), before, "{line}");
        let info = client.text("CLIENT INFO");
        assert!(info.contains(" watch=0 "), "{line}: {info}");
        let reply = exchange(&mut client, &encoded).unwrap();
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
    // Arguments that are no names of keys may be as long.
    let encoded = on_long_name("ECHO ~");
    let reply = nearly_full(|| exchange(&mut client, &encoded)).unwrap();
    assert!(!reply.is_error());
}

/// The memory may be gone between MULTI and EXEC.
#[test]
fn queued_commands_on_long_names_are_refused_when_there_is_no_memory_for_copies() {
    let _alone = ALONE.lock();
    let running = server(settings());
    let mut client = Client::of(&running);
    let encoded = on_long_name("SET ~ v");
    client.ok("MULTI");
    let queued = exchange(&mut client, &encoded);
    assert_eq!(queued, Some(Reply::simple("QUEUED")));
    client.ok("SET short abc");
    let reply = nearly_full(|| exchange(&mut client, b"EXEC\r\n"));
    let answers = reply.and_then(Reply::into_elements).unwrap();
    let [refusal, done] = answers.as_slice() else {
        panic!("{answers:?}");
    };
    assert!(is_refusal(refusal), "{refusal:?}");
    assert_eq!(*done, Reply::OK);
    client.ok("MULTI");
    let reply = nearly_full(|| exchange(&mut client, &encoded));
    assert!(reply.as_ref().is_some_and(is_refusal), "{reply:?}");
    assert!(client.error("EXEC").starts_with("EXECABORT "));
    assert_eq!(client.number("DBSIZE"), 1);
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
