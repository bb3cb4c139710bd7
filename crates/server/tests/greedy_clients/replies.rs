//! Replies that are not read, or larger than a limit.

use super::*;

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

#[test]
fn a_client_that_reads_a_filter_in_pieces_is_not_closed_for_its_memory() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    client.ok("BF.RESERVE filter 0.01 4000000 NONSCALING");
    client.ok("CONFIG SET maxmemory-clients 1mb");
    let (mut iterator, mut read) = (1, 0);
    while iterator != 0 {
        let reply = client.line(&format!("BF.SCANDUMP filter {iterator}"));
        let piece = reply.into_elements().unwrap();
        iterator = piece[0].as_integer().unwrap();
        read += piece[1].as_bytes().unwrap().len();
    }
    // Some ten bits for each item.
    assert!((4_500_000..5_500_000).contains(&read), "{read}");
}

#[test]
fn a_header_over_the_hard_limit_is_refused() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    client.ok("BF.RESERVE filter 0.01 10 EXPANSION 1 LAYOUT CLASSIC");
    for item in 0..6000 {
        client.line(&format!("BF.ADD filter {item}"));
    }
    let limit = "normal 16kb 0 0";
    client.call(&["CONFIG", "SET", "client-output-buffer-limit", limit]);
    let refused = client.error("BF.SCANDUMP filter 0");
    assert!(refused.contains("client-output-buffer-limit"), "{refused}");
    client.ok("PING");
}
