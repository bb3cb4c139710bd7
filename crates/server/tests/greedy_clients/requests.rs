//! Requests that are long, or many at once, and what they make.

use super::*;

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
