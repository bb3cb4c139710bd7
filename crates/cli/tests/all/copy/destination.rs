//! What is at the destination already, and what it refuses.

use super::*;

#[test]
fn what_the_destination_holds_stays() {
    let (old, new) = (server(), server());
    let (mut a, mut b) = (old.client(), new.client());
    for key in ["text", "other", "further", "earlier", "half", "fine"] {
        a.ok(&format!("BF.RESERVE {key} 0.01 100"));
        add(&mut a, key, 0..90);
    }
    // Another copy works on it.
    a.ok("BF.ADD seen:everbloom-copy:1 x");
    b.ok("SET text value");
    b.ok("BF.RESERVE other 0.02 100");
    // It has one item more.
    copy(old.port, new.port, &["--match", "further"]).success();
    b.ok("BF.ADD further new");
    // The source goes on and grows.
    copy(old.port, new.port, &["--match", "earlier"]).success();
    add(&mut a, "earlier", 90..500);
    // Another program ended after the header.
    let dump = a.ok("BF.SCANDUMP half 0").into_elements().unwrap();
    b.call(&[
        &b"BF.LOADCHUNK"[..],
        b"half",
        b"1",
        dump[1].as_bytes().unwrap(),
    ]);
    let kept: Vec<_> = ["other", "further"]
        .map(|key| seen(&mut b, key.as_bytes()))
        .into();

    let outcome = copy(old.port, new.port, &[]);
    assert_code(&outcome, 1);
    assert!(
        outcome.stdout.starts_with("3 filters copied, "),
        "{outcome:?}"
    );
    assert!(
        outcome
            .stdout
            .contains("\n3 filters not copied, see above\n"),
        "{outcome:?}"
    );
    for line in [
        "\"text\": the destination holds a value of type string; --replace overwrites it",
        "\"other\": the destination holds another filter (error rate 0.005 at FROM, 0.01 at TO)",
        "\"further\": the destination holds another filter (items 90 at FROM, 91 at TO; ",
    ] {
        assert!(outcome.stderr.contains(line), "{line}\n{}", outcome.stderr);
    }
    assert_eq!(b.text("GET text"), "value");
    let now: Vec<_> = ["other", "further"]
        .map(|key| seen(&mut b, key.as_bytes()))
        .into();
    assert_eq!(now, kept);

    let text = copy(old.port, new.port, &["--replace"]).success();
    assert!(text.starts_with("3 filters copied, "), "{text}");
    compare(old.port, new.port, &[]).success();
    assert_eq!(keys(&mut b).len(), 6);
}

/// A cuckoo filter that only got items is known as a later state. Otherwise nobody can tell.
#[test]
fn cuckoo_filters_that_are_there_already() {
    let (old, new) = (server(), server());
    let (mut a, mut b) = (old.client(), new.client());
    for key in ["earlier", "deleted", "further", "half", "family", "equal"] {
        a.ok(&format!("CF.RESERVE {key} 1000"));
        insert(&mut a, key, 0..100);
    }
    b.ok("BF.ADD family x");
    let outcome = copy(old.port, new.port, &["--match", "[edf]*"]);
    assert!(outcome.stderr.contains("family"), "{outcome:?}");
    insert(&mut a, "earlier", 100..150);
    a.ok("CF.DEL deleted item:1");
    b.ok("CF.ADD further new");
    // Another program ended after the header.
    let dump = a.ok("CF.SCANDUMP half 0").into_elements().unwrap();
    let header = dump[1].as_bytes().unwrap();
    b.call(&[&b"CF.LOADCHUNK"[..], b"half", b"1", header]);
    let outcome = copy(old.port, new.port, &[]);
    assert_code(&outcome, 1);
    assert!(
        outcome.stdout.starts_with("2 filters copied, "),
        "{outcome:?}"
    );
    for line in [
        "\"family\": the destination holds a Bloom filter; --replace overwrites it",
        "\"deleted\": the destination holds another state of it, or another filter (items 99 at \
         FROM, 100 at TO; 1 fingerprint at TO only); --replace overwrites it",
        "\"further\": the destination holds another state of it, or another filter (items 100 at \
         FROM, 101 at TO; 1 fingerprint at TO only)",
    ] {
        assert!(outcome.stderr.contains(line), "{line}\n{}", outcome.stderr);
    }
    assert_eq!(b.number("CF.EXISTS further new"), 1);
    copy(old.port, new.port, &["--replace"]).success();
    compare(old.port, new.port, &[]).success();
}

/// What a second copy does with expiries, when nothing else has changed.
fn takes_over_expiries(old: &Server, destination: &mut Client, to: u16) {
    let mut a = old.client();
    for key in ["equal", "further"] {
        a.ok(&format!("BF.RESERVE {key} 0.01 100"));
    }
    a.ok("CF.ADD cuckoo x");
    let mut each = |command: &str, last: &str| {
        for key in ["equal", "cuckoo", "further"] {
            a.ok(format!("{command} {key} {last}").trim_end());
        }
    };
    each("PEXPIRE", "1000000");
    copy(old.port, to, &[]).success();
    destination.ok("BF.ADD further mine");
    let mut copied_again = || {
        let outcome = copy(old.port, to, &[]);
        assert_code(&outcome, 1);
        let line = "\n2 filters skipped: equal at the destination\n";
        assert!(outcome.stdout.contains(line), "{outcome:?}");
        let there = destination.number("PTTL further");
        assert!((900_000..1_000_001).contains(&there), "{there}");
        ["equal", "cuckoo"].map(|key| destination.number(&format!("PTTL {key}")))
    };

    each("PERSIST", "");
    assert_eq!(copied_again(), [-1, -1]);
    for milliseconds in [800_000_i64, 600_000] {
        each("PEXPIRE", &milliseconds.to_string());
        for there in copied_again() {
            let near = milliseconds - 100_000..=milliseconds;
            assert!(near.contains(&there), "{there}");
        }
    }
}

#[test]
fn an_equal_filter_expires_as_at_the_source() {
    let (old, new) = (server(), server());
    takes_over_expiries(&old, &mut new.client(), new.port);
    let Some(host) = redis(&[]) else { return };
    old.client().ok("FLUSHALL");
    let mut client = Client::connect(host.addr);
    takes_over_expiries(&old, &mut client, host.addr.port());
}

/// An expiry does not go to what the destination holds by then.
#[test]
fn a_filter_that_changes_meanwhile_keeps_its_expiry() {
    let (old, new) = (server(), server());
    old.client().ok("BF.ADD equal x");
    copy(old.port, new.port, &[]).success();
    old.client().ok("PEXPIRE equal 1000000");
    let port = new.port;
    let changing = super::windows::proxy(port, move |words, reply| {
        if reply.is_none() && words[0] == b"PTTL" {
            let mut client = Client::connect(("127.0.0.1", port));
            client.ok("BF.ADD equal mine");
        }
    });
    let outcome = copy(old.port, changing, &[]);
    assert_code(&outcome, 1);
    let why = "somebody changed it at the destination meanwhile, so it expires there as before";
    assert!(outcome.stderr.contains(why), "{outcome:?}");
    assert_eq!(new.client().number("PTTL equal"), -1);
}

/// What happens at the destination between the comparison and the renaming.
#[test]
fn what_changes_meanwhile_is_not_overwritten() {
    let (old, new) = (server(), server());
    let mut a = old.client();
    for key in ["new", "earlier"] {
        a.ok(&format!("BF.RESERVE {key} 0.01 60000000"));
        add(&mut a, key, 0..10);
    }
    copy(old.port, new.port, &["--match", "earlier"]).success();
    add(&mut a, "earlier", 10..20);
    for (key, line, message) in [
        (
            "new",
            "SET new value",
            "somebody else made a key of this name",
        ),
        (
            "earlier",
            "BF.ADD earlier mine",
            "somebody changed it at the destination meanwhile",
        ),
    ] {
        let done = AtomicBool::new(false);
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = new.client();
                while !done.load(Ordering::Relaxed) {
                    if keys(&mut client).iter().any(|name| name.len() > 20) {
                        client.ok(line);
                        return;
                    }
                }
            });
            let _stop = StopOnDrop(&done);
            copy(old.port, new.port, &["--match", key])
        });
        assert_code(&outcome, 1);
        assert!(outcome.stderr.contains(message), "{outcome:?}");
    }
    let mut b = new.client();
    assert_eq!(
        keys(&mut b),
        [&b"earlier"[..], b"new"],
        "temporary keys are gone"
    );
    assert_eq!(b.text("GET new"), "value");
    assert_eq!(b.number("BF.EXISTS earlier mine"), 1);
}

#[test]
fn a_server_without_rename_says_so() {
    let Some(host) = redis(&["--rename-command", "RENAMENX", ""]) else {
        return;
    };
    let old = server();
    old.client().ok("BF.ADD seen x");
    let outcome = copy(old.port, host.addr.port(), &[]);
    assert_code(&outcome, 1);
    assert!(
        outcome.stderr.contains("does not let us rename"),
        "{outcome:?}"
    );
    assert_eq!(Client::connect(host.addr).number("DBSIZE"), 0);
}

#[test]
fn servers_that_are_of_no_use() {
    let ours = server();
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for (from, to) in [(ours.port, gone), (gone, ours.port)] {
        let outcome = copy(from, to, &[]);
        assert_code(&outcome, 2);
        let text = format!("everbloom: cannot connect to 127.0.0.1 port {gone}");
        assert!(outcome.stderr.starts_with(&text), "{outcome:?}");
    }
    let Some(plain) = Redis::start(&[]) else {
        return;
    };
    let plain = plain.addr.port();
    for (from, to, name) in [
        (ours.port, plain, "BF.LOADCHUNK"),
        (plain, ours.port, "BF.SCANDUMP"),
    ] {
        let outcome = copy(from, to, &[]);
        assert_code(&outcome, 2);
        let text = format!(
            "everbloom: {} has no {name}: load the module there",
            url(plain)
        );
        assert!(outcome.stderr.starts_with(&text), "{outcome:?}");
    }
    // A full server ends the copy, and not with one line for each filter.
    let full = Server::with(&["--appendonly", "no", "--maxmemory", "1mb"]);
    full.client().ok("SETRANGE text 2000000 x");
    for key in 0..30 {
        ours.client().ok(&format!("BF.ADD {key} x"));
    }
    let outcome = copy(ours.port, full.port, &[]);
    assert_code(&outcome, 2);
    assert!(
        outcome.stderr.contains(" refuses: OOM command not allowed"),
        "{outcome:?}"
    );
    assert!(outcome.stderr.lines().count() < 5, "{outcome:?}");
    assert_eq!(keys(&mut full.client()), [b"text"]);
    full.client().ok("DEL text");
    ours.client().ok("BF.RESERVE large 0.01 10000000");
    let outcome = copy(ours.port, full.port, &["--match", "large"]);
    assert_code(&outcome, 1);
    assert!(
        outcome
            .stderr
            .contains("no memory for a filter of this size"),
        "{outcome:?}"
    );
}

#[test]
fn filters_of_ours_only_go_to_servers_that_know_them() {
    let old = server();
    // It plays RedisBloom, which does not know the header.
    let Some(host) = redis(&[]) else { return };
    let mut client = Client::connect(host.addr);
    client.ok("CONFIG SET bf.bf-redisbloom-compatible yes");
    old.client()
        .ok("BF.RESERVE blocked 0.01 100 LAYOUT BLOCKED");
    let valkey = ["BF.INSERT", "valkey", "SEED", &"s".repeat(32), "ITEMS", "x"];
    assert!(!old.client().call(&valkey).is_error());
    old.client().ok("BF.ADD classic x");
    let outcome = copy(old.port, host.addr.port(), &[]);
    assert_code(&outcome, 1);
    for (key, why) in [
        ("blocked", "it is in the blocked layout, and only everbloom"),
        ("valkey", "it came from valkey-bloom, and only everbloom"),
    ] {
        let start = format!("\"{key}\": the destination refused it (");
        let mut lines = outcome.stderr.lines();
        let line = lines.find(|line| line.contains(&start));
        assert!(line.is_some_and(|line| line.contains(why)), "{outcome:?}");
    }
    assert_eq!(keys(&mut client), [b"classic"]);
}
