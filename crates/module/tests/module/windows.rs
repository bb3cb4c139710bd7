//! Windows free what has expired, also when nobody uses them, and when memory is used up.

use everbloom::Span;
use everbloom::host::LayeredFilter;
use everbloom_files::Value;
use everbloom_files::rdb::dump;
use everbloom_resp::Reply;

use crate::replication::{check_equal, replica_of};
use crate::support::{Client, Host, elements, from_redis_7, wait_for};

/// The payload of a window with items of 1970, which takes 270 kB.
fn old_window() -> Vec<u8> {
    let builder = LayeredFilter::builder().capacity(100_000);
    let mut filter = builder.window(Span::Ticks(2000), 4, 1).build().unwrap();
    for generation in 0..5 {
        filter.advance_to(1 + generation * 500).unwrap();
        filter.insert(&generation);
    }
    dump(&Value::Filter(filter.into()), true, usize::MAX).unwrap()
}

#[test]
fn idle_windows_give_their_memory_back() {
    if !from_redis_7() {
        return;
    }
    let Some(primary) = Host::start(&[]) else {
        return;
    };
    let replica = replica_of(&primary, &[], &[]);
    let mut client = primary.client();
    client.ok("SELECT 3");
    let payload = old_window();
    for key in ["idle", "other"] {
        let words: [&[u8]; 4] = [b"RESTORE", key.as_bytes(), b"0", &payload];
        assert_eq!(client.call(&words), Reply::OK);
    }
    // One goes to another key and is changed there.
    client.ok("RENAME other renamed");
    client.ok("BF.ADD renamed item");
    for key in ["idle", "renamed"] {
        wait_for("memory", || {
            client.number(&format!("MEMORY USAGE {key}")) < 140_000
        });
    }
    assert_eq!(client.number("BF.EXISTS renamed item"), 1);
    check_equal(&primary, &[&replica]);
}

/// Who caches or watches a window hears that it has forgotten items.
#[test]
fn an_idle_window_tells_that_it_forgets() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&["--notify-keyspace-events", "Eg"]) else {
        return;
    };
    let (mut client, mut listener) = (host.client(), host.client());
    let id = listener.number("CLIENT ID");
    listener.ok("SUBSCRIBE __redis__:invalidate __keyevent@0__:bloom.advance");
    listener.reply();
    client.ok(&format!("CLIENT TRACKING ON REDIRECT {id} BCAST"));
    let payload = old_window();
    let words: [&[u8]; 4] = [b"RESTORE", b"idle", b"0", &payload];
    assert_eq!(client.call(&words), Reply::OK);
    let mut heard = |wanted: &str| {
        std::iter::repeat_with(|| elements(listener.reply()))
            .take_while(|message| message[1].as_bytes() != Some(wanted.as_bytes()))
            .count()
    };
    let (advance, invalidate) = ("__keyevent@0__:bloom.advance", "__redis__:invalidate");
    // The key is restored, then it forgets. The host may tell of both changes at once, before the
    // event or after it.
    if heard(advance) == 0 {
        heard(invalidate);
    }
}

/// The list has the old key, and nobody changes the window after it is due.
#[test]
fn a_window_that_has_moved_gives_its_memory_back() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    for go in ["RENAME w moved", "MOVE w 1"] {
        client.ok("FLUSHALL");
        client.ok("BF.RESERVE w 0.01 100000 WINDOW SECONDS 2 GENERATIONS 1");
        for line in ["BF.ADD w a", "BF.ADVANCE w", "BF.ADD w b", go] {
            client.ok(line);
        }
        let key = match go.ends_with("moved") {
            true => "moved",
            false => {
                client.ok("SELECT 1");
                "w"
            }
        };
        client.ok(&format!("BF.ADD {key} c"));
        let size = format!("MEMORY USAGE {key}");
        let before = client.number(&size);
        wait_for("memory", || client.number(&size) < before * 2 / 3);
    }
}

/// Each would be in the list of windows for days, with its key.
#[test]
fn windows_that_are_gone_are_in_no_list() {
    let Some(host) = Host::start(&["--slowlog-log-slower-than", "-1"]) else {
        return;
    };
    let mut client = host.client();
    let name = "name".repeat(1000);
    let round = |client: &mut Client, go: &str| {
        for _ in 0..300 {
            client.ok(&format!("BF.RESERVE {name} 0.01 10 WINDOW SECONDS 1000000"));
            client.ok(&format!("BF.ADD {name} a"));
            client.ok(go);
        }
    };
    let ways = [
        &format!("DEL {name}"),
        "FLUSHALL",
        &format!("RENAME {name} other"),
    ];
    ways.iter().for_each(|go| round(&mut client, go));
    let used = |client: &mut Client| client.info("used_memory").parse::<i64>().unwrap();
    let before = used(&mut client);
    ways.iter().for_each(|go| round(&mut client, go));
    // An entry for each would take 3.6 MB.
    wait_for("memory", || used(&mut client) - before < 500_000);
}

#[test]
fn advancing_frees_memory_above_the_limit() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    for key in ["old", "new"] {
        client.ok(&format!(
            "BF.RESERVE {key} 0.01 100000 WINDOW ITEMS GENERATIONS 1"
        ));
        client.ok(&format!("BF.ADD {key} a"));
    }
    client.ok("BF.ADVANCE old");
    client.ok("BF.ADD old b");
    client.ok("CONFIG SET maxmemory 1");
    assert!(client.error("BF.ADD old c").starts_with("OOM "));
    assert!(client.error("BF.ADVANCE new").starts_with("OOM "));
    client.ok("BF.ADVANCE old");
    assert_eq!(client.number("BF.EXISTS old a"), 0);
    assert_eq!(client.number("BF.EXISTS old b"), 1);
    assert_eq!(client.number("BF.EXISTS new a"), 1);
}
