//! What the server keeps for a connection between requests counts as used memory, and has limits.

use super::*;

const MEGABYTE: usize = 1 << 20;

fn used_memory(client: &mut Client) -> usize {
    client.info("used_memory").parse().unwrap()
}

/// The name of a key, a megabyte long.
fn long_name(number: usize) -> Vec<u8> {
    let mut name = vec![b'k'; MEGABYTE];
    name.extend_from_slice(number.to_string().as_bytes());
    name
}

#[test]
fn watched_keys_count_as_used_memory() {
    let running = server(Settings::default());
    let (mut client, mut other) = (Client::of(&running), Client::of(&running));
    let before = used_memory(&mut other);
    for end in ["UNWATCH", "DISCARD", "EXEC", "RESET"] {
        for number in 0..8 {
            for _ in 0..2 {
                let watch = [b"WATCH".to_vec(), long_name(number)];
                assert_eq!(client.call(&watch), Reply::OK);
            }
        }
        let used = used_memory(&mut other) - before;
        assert!((16 * MEGABYTE..20 * MEGABYTE).contains(&used), "{used}");
        if end != "UNWATCH" {
            client.ok("MULTI");
        }
        client.ok(end);
        let used = used_memory(&mut other);
        assert!(used < before + 4 * MEGABYTE, "{end}: {used}");
    }
    let watch = [b"WATCH".to_vec(), long_name(0)];
    assert_eq!(client.call(&watch), Reply::OK);
    drop(client);
    other.until("connected_clients", "1");
    assert!(used_memory(&mut other) < before + MEGABYTE);
}

/// Each takes less to send than to remember.
#[test]
fn watched_keys_have_a_greatest_length() {
    let running = server(Settings {
        client_query_buffer_limit: MEGABYTE,
        ..Settings::default()
    });
    let names = |from: usize, count: usize| -> Vec<String> {
        let names = (from..from + count).map(|number| format!("key{number}"));
        std::iter::once("WATCH".to_owned()).chain(names).collect()
    };
    let mut client = Client::of(&running);
    assert_eq!(client.call(&names(0, 4000)), Reply::OK);
    assert_eq!(client.call(&names(0, 4000)), Reply::OK);
    client.ok("UNWATCH");
    assert_eq!(client.call(&names(4000, 4000)), Reply::OK);
    let refusal = client.call(&names(10_000, 8000));
    assert_eq!(
        refusal,
        Reply::error("ERR the watched keys are longer than client-query-buffer-limit")
    );
    assert_eq!(client.try_reply(), None);
    Client::of(&running).ok("SET key1 x");
}

#[test]
fn names_of_clients_count_as_used_memory_and_are_shown_in_part() {
    let running = server(Settings {
        slowlog_log_slower_than: 0,
        ..Settings::default()
    });
    let (mut client, mut other) = (Client::of(&running), Client::of(&running));
    let before = used_memory(&mut other);
    let name = "x".repeat(4 * MEGABYTE);
    for start in [
        &["CLIENT", "SETNAME"][..],
        &["CLIENT", "SETINFO", "LIB-NAME"],
        &["CLIENT", "SETINFO", "LIB-VER"],
    ] {
        let mut request = start.to_vec();
        request.push(&name);
        assert_eq!(client.call(&request), Reply::OK);
    }
    let used = used_memory(&mut other) - before;
    assert!((12 * MEGABYTE..15 * MEGABYTE).contains(&used), "{used}");
    assert_eq!(client.line("CLIENT GETNAME"), Reply::bulk(name));
    client.ok("PING");
    let entry = client.line("SLOWLOG GET 1").into_elements().unwrap();
    let entry = entry[0].clone().into_elements().unwrap();
    assert_eq!(entry[5], Reply::bulk("x".repeat(128)));
    client.ok("CLIENT SETNAME me");
    let used = used_memory(&mut other) - before;
    assert!(used < 11 * MEGABYTE, "{used}");
}
