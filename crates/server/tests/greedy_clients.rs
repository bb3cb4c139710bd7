//! Clients that want more than their share: the server stays up, within its memory, and answers
//! the others.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod support;

use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use everbloom_dev::wait_for;
use everbloom_resp::{Reply, encode_request};
use everbloom_server::Settings;
use support::{Client, OfRunning, server};

/// The tests here look at the memory of the process, in which the server is, too.
static ALONE: Mutex<()> = Mutex::new(());

const MEGABYTE: usize = 1_000_000;

/// Bytes of memory that this process has.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes << 10
}

fn used_memory(client: &mut Client) -> usize {
    client.info("used_memory").parse().unwrap()
}

fn set(client: &mut Client, key: &str, len: usize) {
    let value = vec![b'x'; len];
    assert_eq!(client.call(&[b"SET", key.as_bytes(), &value]), Reply::OK);
}

fn requests(count: usize, args: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..count {
        encode_request(args, &mut out);
    }
    out
}

#[test]
fn a_client_that_reads_no_replies_does_not_fill_the_memory() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let (mut greedy, mut other) = (Client::of(&running), Client::of(&running));
    set(&mut greedy, "large", 50 * MEGABYTE);
    let (resident_before, used_before) = (resident(), used_memory(&mut other));
    greedy
        .stream
        .write_all(&requests(500, &["GET", "large"]))
        .unwrap();
    let until = Instant::now() + Duration::from_secs(1);
    let mut worst = Duration::ZERO;
    while Instant::now() < until {
        let asked = Instant::now();
        other.ok("PING");
        worst = worst.max(asked.elapsed());
        let grown = resident().saturating_sub(resident_before);
        assert!(grown < 130 * MEGABYTE, "{grown} bytes more");
    }
    // It takes 50 MB to be copied, and this machine may be busy.
    assert!(worst < Duration::from_secs(1), "waited {worst:?}");
    let used = used_memory(&mut other) - used_before;
    assert!(used > 40 * MEGABYTE, "{used} bytes are counted");
    assert!(used < 110 * MEGABYTE, "{used} bytes are counted");
    let killed = other.number("CLIENT KILL SKIPME yes");
    assert_eq!(killed, 1);
    wait_for("the memory is free again", || {
        used_memory(&mut other) < used_before + MEGABYTE
    });
}

#[test]
fn replies_that_had_to_wait_arrive_whole_and_in_order() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    set(&mut client, "text", 50_000);
    let mut sent = Vec::new();
    let long = "y".repeat(300_000);
    for round in 0..2000 {
        encode_request(&["GET", "text"], &mut sent);
        encode_request(&["INCR", "count"], &mut sent);
        if round % 500 == 0 {
            encode_request(&["ECHO", &long], &mut sent);
        }
    }
    sent.extend_from_slice(b"PING\r\n*1\r\n$-5\r\n");
    let mut sender = client.stream.try_clone().unwrap();
    let sending = thread::spawn(move || sender.write_all(&sent).unwrap());
    for round in 0..2000 {
        assert_eq!(client.reply().as_bytes().unwrap().len(), 50_000);
        assert_eq!(client.reply().as_integer(), Some(round + 1));
        if round % 500 == 0 {
            assert_eq!(client.reply().as_bytes().unwrap().len(), 300_000);
        }
    }
    assert_eq!(client.reply(), Reply::simple("PONG"));
    assert!(client.reply().is_error());
    assert_eq!(client.try_reply(), None);
    sending.join().unwrap();
}

#[test]
fn a_client_that_sends_much_work_at_once_takes_turns_with_the_others() {
    let _alone = ALONE.lock();
    let running = server(Settings {
        io_threads: 1,
        ..Settings::default()
    });
    let (mut greedy, mut other) = (Client::of(&running), Client::of(&running));
    greedy.ok("BF.RESERVE large 0.01 400000000 NONSCALING");
    let sent = requests(1400, &["BF.STATS", "large"]);
    greedy.stream.write_all(&sent).unwrap();
    wait_for("the work has begun", || calls_of_stats(&mut other) > 0);
    assert_eq!(other.number("CLIENT KILL SKIPME yes"), 1);
    let calls = calls_of_stats(&mut other);
    assert!(calls < 1000, "{calls} calls before it was killed");
}

fn calls_of_stats(client: &mut Client) -> u32 {
    let info = client.text("INFO commandstats");
    let (_, calls) = info
        .split_once("cmdstat_bf.stats:calls=")
        .unwrap_or(("", "0,"));
    calls.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn a_client_over_the_hard_limit_of_its_replies_is_disconnected() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let (mut greedy, mut other) = (Client::of(&running), Client::of(&running));
    set(&mut other, "large", 500_000);
    // Two replies are more. On a busy machine no more than that are made in one turn.
    let limit = "normal 600kb 0 0";
    let reply = other.call(&["CONFIG", "SET", "client-output-buffer-limit", limit]);
    assert_eq!(reply, Reply::OK);
    let sent = requests(8, &["GET", "large"]);
    greedy.stream.write_all(&sent).unwrap();
    assert_eq!(greedy.try_reply(), None);
    other.ok("PING");
}

#[test]
fn a_client_over_the_soft_limit_for_too_long_is_disconnected() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let (mut greedy, mut other) = (Client::of(&running), Client::of(&running));
    set(&mut other, "large", 20 * MEGABYTE);
    let limit = "normal 0 1mb 1";
    let reply = other.call(&["CONFIG", "SET", "client-output-buffer-limit", limit]);
    assert_eq!(reply, Reply::OK);
    // Whoever reads is not.
    assert_eq!(
        other.call(&["GET", "large"]).as_bytes().unwrap().len(),
        20 * MEGABYTE
    );
    let sent = Instant::now();
    greedy.send(&["GET", "large"]);
    wait_for("the greedy client is gone", || {
        other.info("connected_clients") == "1"
    });
    assert!(sent.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_transaction_whose_replies_are_too_many_runs_and_disconnects() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let (mut greedy, mut other) = (Client::of(&running), Client::of(&running));
    set(&mut other, "large", MEGABYTE);
    let limit = "normal 10mb 0 0";
    let reply = other.call(&["CONFIG", "SET", "client-output-buffer-limit", limit]);
    assert_eq!(reply, Reply::OK);
    let resident_before = resident();
    greedy.ok("MULTI");
    for _ in 0..300 {
        greedy.ok("GET large");
    }
    greedy.ok("SET done 1");
    greedy.send(&["EXEC"]);
    assert_eq!(greedy.try_reply(), None);
    assert_eq!(other.text("GET done"), "1");
    let grown = resident().saturating_sub(resident_before);
    assert!(grown < 60 * MEGABYTE, "{grown} bytes more");
}

#[test]
fn the_replies_of_a_transaction_have_a_limit_where_no_setting_names_one() {
    let _alone = ALONE.lock();
    let running = server(Settings {
        maxmemory: 100 << 20,
        ..Settings::default()
    });
    let (mut greedy, mut other) = (Client::of(&running), Client::of(&running));
    set(&mut other, "large", MEGABYTE);
    for (count, answered) in [(30, true), (80, false)] {
        greedy.ok("MULTI");
        for _ in 0..count {
            greedy.ok("GET large");
        }
        greedy.send(&["EXEC"]);
        assert_eq!(greedy.try_reply().is_some(), answered, "{count} replies");
    }
}

#[test]
fn announcing_a_long_argument_costs_nothing_before_it_comes() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let mut other = Client::of(&running);
    let (resident_before, used_before) = (resident(), used_memory(&mut other));
    let clients: Vec<Client> = (0..400)
        .map(|_| {
            let mut client = Client::of(&running);
            let head = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$512000000\r\n";
            client.stream.write_all(head).unwrap();
            client
        })
        .collect();
    thread::sleep(Duration::from_millis(300));
    let most = clients.len() * 40_000;
    let used = used_memory(&mut other) - used_before;
    assert!(used < most, "{used} bytes are counted");
    // The allocator of a busy machine keeps some more than is in use.
    let grown = resident().saturating_sub(resident_before);
    assert!(grown < 3 * most, "{grown} bytes more");
}

#[test]
fn what_came_of_a_long_argument_is_counted() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let mut other = Client::of(&running);
    let used_before = used_memory(&mut other);
    let mut client = Client::of(&running);
    let head = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$20000000\r\n";
    client.stream.write_all(head).unwrap();
    client.stream.write_all(&vec![b'x'; 10 * MEGABYTE]).unwrap();
    wait_for("the bytes are counted", || {
        used_memory(&mut other) > used_before + 10 * MEGABYTE
    });
    assert!(used_memory(&mut other) < used_before + 25 * MEGABYTE);
    client.stream.write_all(&vec![b'x'; 10 * MEGABYTE]).unwrap();
    client.stream.write_all(b"\r\n").unwrap();
    assert_eq!(client.reply(), Reply::OK);
    assert_eq!(client.number("STRLEN k"), 20_000_000);
}

/// Each takes six bytes to send, and more to remember.
#[test]
fn many_short_arguments_count_as_the_memory_they_take() {
    let _alone = ALONE.lock();
    let running = server(Settings {
        client_query_buffer_limit: MEGABYTE,
        ..Settings::default()
    });
    let (mut greedy, mut other) = (Client::of(&running), Client::of(&running));
    let before = used_memory(&mut other);
    let args = b"$0\r\n\r\n".repeat(30_000);
    greedy.stream.write_all(b"*1000000\r\n").unwrap();
    greedy.stream.write_all(&args).unwrap();
    wait_for("they are counted", || {
        used_memory(&mut other) > before + 30_000 * (6 + 16)
    });
    for _ in 0..3 {
        // The server may have closed it by then.
        let _ = greedy.stream.write_all(&args);
    }
    wait_for("the connection is closed", || {
        other.info("connected_clients") == "1"
    });
    wait_for("the memory is free again", || {
        used_memory(&mut other) < before + 100_000
    });
}

#[test]
fn a_transaction_that_fills_the_memory_is_refused() {
    let _alone = ALONE.lock();
    let running = server(Settings {
        maxmemory: 20 * MEGABYTE as u64,
        ..Settings::default()
    });
    let (mut greedy, mut other) = (Client::of(&running), Client::of(&running));
    let used_before = used_memory(&mut other);
    let value = vec![b'x'; 100_000];
    greedy.ok("MULTI");
    for _ in 0..100 {
        let reply = greedy.call(&[&b"SET"[..], b"k", &value]);
        assert_eq!(reply, Reply::simple("QUEUED"));
    }
    let used = used_memory(&mut other) - used_before;
    assert!(used > 10 * MEGABYTE, "{used} bytes are counted");
    let refused = (0..200).find_map(|_| {
        let reply = greedy.call(&[&b"SET"[..], b"k", &value]);
        reply.as_error().map(str::to_owned)
    });
    let refused = refused.expect("the queue has no end");
    assert!(refused.starts_with("OOM "), "{refused}");
    assert!(greedy.error("EXEC").starts_with("EXECABORT "));
    wait_for("the queue is gone", || {
        used_memory(&mut other) < used_before + MEGABYTE
    });
    greedy.ok("MULTI");
    while !greedy.call(&[&b"SET"[..], b"k", &value]).is_error() {}
    greedy.ok("DISCARD");
    greedy.ok("SET k 1");
}

/// A pipeline of one request for each of 64 keys, and its replies.
fn pipeline(client: &mut Client, request: impl Fn(usize) -> String) -> Vec<Reply> {
    let mut sent = Vec::new();
    for key in 0..64 {
        let line = request(key);
        encode_request(&line.split(' ').collect::<Vec<_>>(), &mut sent);
    }
    client.stream.write_all(&sent).unwrap();
    (0..64).map(|_| client.reply()).collect()
}

/// A server that may take so much memory.
fn limited(megabytes: usize) -> everbloom_server::Running {
    server(Settings {
        maxmemory: (megabytes * MEGABYTE) as u64,
        ..Settings::default()
    })
}

/// Each of 64 requests at once may take all memory that is left, and the next sees what it took.
#[test]
fn pipelines_that_make_and_grow_filters_stay_within_maxmemory() {
    let _alone = ALONE.lock();
    let adds: [(&[&str], &str); 4] = [
        (&["CONFIG SET bf-initial-size 10000000"], "BF.ADD"),
        (&["CONFIG SET cf-initial-size 16000000"], "CF.ADD"),
        // When they are full, the next layer or table has megabytes.
        (
            &["BF.RESERVE KEY 0.01 100 EXPANSION 32768", "BF.ADD KEY a"],
            "BF.ADD",
        ),
        (&["CF.RESERVE KEY 128 EXPANSION 32768"], "CF.ADD"),
    ];
    for (prepared, add) in adds {
        let running = limited(50);
        let mut client = Client::of(&running);
        for line in prepared {
            pipeline(&mut client, |key| line.replace("KEY", &format!("key{key}")));
        }
        let mut refused = 0;
        for item in 0..200 {
            let replies = pipeline(&mut client, |key| format!("{add} key{key} item{item}"));
            refused = replies.iter().filter(|reply| reply.is_error()).count();
            let used = used_memory(&mut client);
            assert!(used < 51 * MEGABYTE, "{add} after {prepared:?}: {used}");
            if refused > 0 {
                break;
            }
        }
        assert!(
            refused > 0,
            "{add} after {prepared:?} never reached the limit"
        );
    }
}

/// One string may pass the limit, as one command does; the commands behind it may not add to that.
#[test]
fn bits_of_a_pipeline_or_a_transaction_stay_within_maxmemory() {
    let _alone = ALONE.lock();
    let oom = "OOM command not allowed when used memory > 'maxmemory'.";
    for in_transaction in [false, true] {
        let running = limited(50);
        let mut client = Client::of(&running);
        let bit = |key| format!("SETBIT key{key} 159999999 1");
        let replies = match in_transaction {
            false => pipeline(&mut client, bit),
            true => {
                client.ok("MULTI");
                pipeline(&mut client, bit);
                client.line("EXEC").into_elements().unwrap()
            }
        };
        let used = used_memory(&mut client);
        assert!(
            used < 72 * MEGABYTE,
            "{used} bytes, in MULTI: {in_transaction}"
        );
        let set = replies.iter().filter(|reply| !reply.is_error()).count();
        assert!(
            (1..=3).contains(&set),
            "{set} bits, in MULTI: {in_transaction}"
        );
        assert_eq!(replies.last(), Some(&Reply::error(oom)));
        // What was refused is not half done.
        let keys = client.number("DBSIZE");
        assert_eq!(usize::try_from(keys).unwrap(), set);
    }
}

/// Sends a request that names a key many times.
fn send_list(client: &mut Client, command: &str, key: &str, times: usize) {
    let mut args = vec![command];
    args.resize(times + 1, key);
    client.send(&args);
}

/// A short request asks for any number of bytes.
#[test]
fn a_reply_over_the_limits_is_refused_before_it_takes_memory() {
    let _alone = ALONE.lock();
    let running = limited(100);
    let (mut greedy, mut other) = (Client::of(&running), Client::of(&running));
    set(&mut other, "large", 5 * MEGABYTE);
    let resident_before = resident();
    send_list(&mut greedy, "MGET", "large", 100);
    let refused = greedy.reply();
    let text = refused.as_error().expect("it was not refused");
    assert!(
        text.starts_with("ERR the reply would be larger than"),
        "{text}"
    );
    // Several in a transaction come to as much. They have run, so there is no error to tell.
    greedy.ok("MULTI");
    for _ in 0..20 {
        send_list(&mut greedy, "MGET", "large", 8);
        assert_eq!(greedy.reply(), Reply::simple("QUEUED"));
    }
    greedy.ok("SET done 1");
    greedy.send(&["EXEC"]);
    assert_eq!(greedy.try_reply(), None);
    assert_eq!(other.text("GET done"), "1");
    let mut greedy = Client::of(&running);
    for command in ["COMMAND INFO", "COMMAND DOCS"] {
        let mut args: Vec<&str> = command.split(' ').collect();
        args.resize(200_000, "bf.reserve");
        greedy.send(&args);
        assert!(greedy.reply().is_error(), "{command}");
    }
    let grown = resident().saturating_sub(resident_before);
    assert!(grown < 160 * MEGABYTE, "{grown} bytes more");
    send_list(&mut greedy, "MGET", "large", 8);
    assert_eq!(greedy.reply().into_elements().unwrap().len(), 8);
}

/// Of a string of 3 MB, with a limit of 2 MB.
#[test]
fn a_value_over_the_hard_limit_is_refused_before_it_is_copied() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    let mut state = 1_u64;
    let random: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
    .take(3 * MEGABYTE)
    .collect();
    client.call(&[&b"SET"[..], b"large", &random]);
    client.ok("BF.RESERVE filter 0.01 4000000 NONSCALING");
    let limit = "normal 2mb 0 0";
    client.call(&["CONFIG", "SET", "client-output-buffer-limit", limit]);
    for line in [
        "GET large",
        "GETRANGE large 0 -1",
        "DUMP large",
        "MGET large none",
        "SET large short GET",
        "GETDEL large",
        "GETEX large",
    ] {
        let refused = client.line(line);
        let refused = refused.as_error().unwrap_or("it is answered");
        assert!(
            refused.contains("client-output-buffer-limit"),
            "{line}: {refused}"
        );
    }
    // The payload of zeros is short.
    assert!(client.line("DUMP filter").as_bytes().is_some());
    // A piece of a filter is as long as the limit allows.
    let piece = client.line("BF.SCANDUMP filter 1").into_elements().unwrap();
    assert_eq!(piece[1].as_bytes().map(<[u8]>::len), Some((2 << 20) - 64));
    assert_eq!(client.number("STRLEN large"), 3_000_000);
}

/// The connection goes on: what is refused is not sent.
#[test]
fn a_string_whose_framing_is_over_the_limit_is_refused_with_an_error() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    client.ok("BF.RESERVE filter 0.01 1000000");
    for (hard, allowed) in [(1000, (16 << 10) - 10), (50_000, 50_000 - 10)] {
        let limit = format!("normal {hard} 0 0");
        client.call(&["CONFIG", "SET", "client-output-buffer-limit", &limit]);
        for len in allowed - 2..allowed + 20 {
            let bytes = vec![b'x'; len];
            client.call(&[&b"SET"[..], b"large", &bytes]);
            for line in [
                "GET large",
                "GETRANGE large 0 -1",
                "SET large short KEEPTTL GET",
            ] {
                let reply = client.line(line);
                let is_refused = reply.is_error();
                assert_eq!(is_refused, len > allowed, "{line}: {len} bytes at {hard}");
            }
        }
        assert!(!client.line("BF.SCANDUMP filter 1").is_error());
    }
}

#[test]
fn values_read_together_are_those_of_one_moment() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let (mut reader, mut writer) = (Client::of(&running), Client::of(&running));
    let write = |client: &mut Client, letter: u8| {
        let (long, short) = (vec![letter; 600_000], vec![letter; 10]);
        let args: [&[u8]; 7] = [b"MSET", b"a", &long, b"b", &short, b"c", &long];
        assert_eq!(client.call(&args), Reply::OK);
    };
    write(&mut writer, b'a');
    let writing = thread::spawn(move || {
        for letter in (b'a'..=b'z').cycle().take(200) {
            write(&mut writer, letter);
        }
        writer
    });
    while !writing.is_finished() {
        let reply = reader.line("MGET a none b c a").into_elements().unwrap();
        let texts: Vec<_> = reply.iter().map(Reply::as_bytes).collect();
        let [Some(a), None, Some(b), Some(c), Some(again)] = texts[..] else {
            panic!("{} values", texts.len());
        };
        assert!(a == c && a == again && a.len() == 600_000 && b.len() == 10);
        assert!(a.iter().all(|byte| *byte == b[0]));
    }
    let mut client = writing.join().unwrap();
    client.ok("HELLO 3");
    let reply = client.line("MGET none a a").into_elements().unwrap();
    assert_eq!(reply[0], Reply::Null);
    assert_eq!(reply[2].as_bytes().unwrap().len(), 600_000);
}

/// Clients of which each sends most of a long argument and stops.
fn sending(running: &everbloom_server::Running, clients: usize, len: usize) -> Vec<Client> {
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", 2 * len);
    let part = vec![b'x'; len];
    (0..clients)
        .map(|_| {
            let mut client = Client::of(running);
            // It may be closed meanwhile.
            let _ = client.stream.write_all(head.as_bytes());
            let _ = client.stream.write_all(&part);
            client
        })
        .collect()
}

#[test]
fn the_clients_that_hold_most_are_closed_above_maxmemory_clients() {
    let _alone = ALONE.lock();
    for (limit, most) in [("", 68_000_000), ("20mb", 21_000_000), ("75%", 76_000_000)] {
        let running = limited(100);
        let mut other = Client::of(&running);
        if !limit.is_empty() {
            other.ok(&format!("CONFIG SET maxmemory-clients {limit}"));
        }
        let mut kept = Client::of(&running);
        kept.ok("MULTI");
        kept.ok("SET kept 1");
        let resident_before = resident();
        let held = sending(&running, 20, 15 * MEGABYTE);
        wait_for("they hold no more than the limit", || {
            used_memory(&mut other) < most
        });
        let evicted: usize = other.info("evicted_clients").parse().unwrap();
        assert!((15..20).contains(&evicted), "{limit}: {evicted}");
        let grown = resident().saturating_sub(resident_before);
        assert!(grown < 200 * MEGABYTE, "{limit}: {grown} bytes more");
        // Whoever holds little goes on.
        assert_eq!(kept.line("EXEC"), Reply::Array(vec![Reply::OK]));
        drop(held);
    }
}

#[test]
fn clients_are_kept_below_the_limit_and_without_one_and_if_they_ask_for_it() {
    let _alone = ALONE.lock();
    let running = limited(100);
    let mut other = Client::of(&running);
    let mut own = sending(&running, 1, 30 * MEGABYTE);
    wait_for("the bytes are counted", || {
        used_memory(&mut other) > 30 * MEGABYTE
    });
    other.ok("CONFIG SET maxmemory-clients 0");
    own.extend(sending(&running, 4, 30 * MEGABYTE));
    wait_for("the bytes are counted", || {
        used_memory(&mut other) > 140 * MEGABYTE
    });
    assert_eq!(other.info("evicted_clients"), "0");
    let mut asks = Client::of(&running);
    asks.ok("CLIENT NO-EVICT ON");
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", 40 * MEGABYTE);
    asks.stream.write_all(head.as_bytes()).unwrap();
    asks.stream.write_all(&vec![b'x'; 39 * MEGABYTE]).unwrap();
    // A lower limit closes clients that are silent, too.
    other.ok("CONFIG SET maxmemory-clients 10mb");
    wait_for("they are closed", || other.info("evicted_clients") == "5");
    // What is exempt does not make each growth look at all clients.
    let stats = &running.server().stats;
    let is_exempt = || stats.evictable_buffers() < MEGABYTE as u64;
    wait_for("it does not count", is_exempt);
    assert!(used_memory(&mut other) > 38 * MEGABYTE);
    other.ok("CONFIG SET maxmemory 0");
    asks.stream.write_all(&vec![b'x'; MEGABYTE]).unwrap();
    asks.stream.write_all(b"\r\n").unwrap();
    assert_eq!(asks.reply(), Reply::OK);
}

#[test]
fn a_client_that_is_exempt_no_more_is_closed_at_once() {
    let _alone = ALONE.lock();
    // The limit is also checked `hz` times a second.
    let running = server(Settings {
        hz: 1,
        ..Settings::default()
    });
    let stats = &running.server().stats;
    let evicted = || stats.evicted_clients.load(Ordering::Relaxed);
    let mut holds = Client::of(&running);
    holds.ok("CLIENT NO-EVICT ON");
    let name = vec![b'x'; 3 * MEGABYTE];
    assert_eq!(holds.call(&[&b"WATCH"[..], &name]), Reply::OK);
    holds.ok("PING");
    Client::of(&running).ok("CONFIG SET maxmemory-clients 1mb");
    assert_eq!(evicted(), 0);
    let request = requests(1, &["CLIENT", "NO-EVICT", "OFF"]);
    holds.stream.write_all(&request).unwrap();
    // It may be closed before its reply is sent.
    let _ = holds.try_reply();
    assert_eq!(evicted(), 1);
}

/// Clients that write and then fill the memory: what was acknowledged is there.
#[test]
fn acknowledged_writes_of_a_client_that_is_closed_for_its_memory_are_kept() {
    let _alone = ALONE.lock();
    let running = limited(100);
    let mut other = Client::of(&running);
    other.ok("CONFIG SET maxmemory-clients 10mb");
    let writers = (0..8).map(|number| {
        let mut client = Client::of(&running);
        thread::spawn(move || {
            let mut acknowledged = 0;
            let value = vec![b'x'; 3 * MEGABYTE];
            for item in 0.. {
                let (key, item) = (format!("filter{number}"), format!("item{item}"));
                let mut sent = requests(1, &["BF.ADD", &key, &item]);
                encode_request(&[&b"ECHO"[..], &value], &mut sent);
                if client.stream.write_all(&sent).is_err() || item == "item200" {
                    break;
                }
                match client.try_reply() {
                    Some(reply) if !reply.is_error() => acknowledged += 1,
                    _ => break,
                }
                if client.try_reply().is_none() {
                    break;
                }
            }
            (number, acknowledged)
        })
    });
    let writers: Vec<_> = writers.collect();
    for writer in writers {
        let (number, acknowledged) = writer.join().unwrap();
        for item in 0..acknowledged {
            let line = format!("BF.EXISTS filter{number} item{item}");
            assert_eq!(other.number(&line), 1, "{line}");
        }
    }
    assert_ne!(other.info("evicted_clients"), "0");
}
