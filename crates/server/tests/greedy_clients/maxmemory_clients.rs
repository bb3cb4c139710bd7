//! What all clients together may hold.

use super::*;

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
