//! Copies that end early, that run beside writers, and that have little memory.

use super::*;

const MANY: usize = 40;

fn fill_many(client: &mut Client) {
    for key in (0..MANY).step_by(2) {
        client.ok(&format!("BF.RESERVE f{key} 0.01 2000000"));
        add(client, &format!("f{key}"), 0..100);
        client.ok(&format!("CF.RESERVE c{key} 2000000"));
        insert(client, &format!("c{key}"), 0..100);
    }
}

/// Looks at all keys of the destination: each is there whole, or not at all.
fn all_are_whole(client: &mut Client) -> usize {
    let mut whole = 0;
    for key in keys(client) {
        let name = String::from_utf8(key).unwrap();
        if name.contains(":everbloom-copy:") {
            continue;
        }
        whole += 1;
        let family = if name.starts_with('f') { "BF" } else { "CF" };
        match family {
            "BF" => assert_eq!(client.number(&format!("BF.CARD {name}")), 100),
            _ => assert!(
                client
                    .text(&format!("CF.DEBUG {name}"))
                    .contains("items:100")
            ),
        }
        for item in [0, 50, 99] {
            let found = client.number(&format!("{family}.EXISTS {name} item:{item}"));
            assert_eq!(found, 1);
        }
    }
    whole
}

#[test]
fn a_killed_copy_goes_on_and_nobody_sees_half_a_filter() {
    let _alone = QUIET.lock();
    let (old, new) = (server(), server());
    fill_many(&mut old.client());
    let mut client = new.client();
    for wanted in [3, 10, 25] {
        let mut command = command("copy", &url(old.port), &url(new.port), &[]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("filters", || all_are_whole(&mut client) >= wanted);
        child.kill().unwrap();
        child.wait().unwrap();
        let whole = all_are_whole(&mut client);
        assert!(whole < MANY, "the copy was over before it was killed");
        for key in keys(&mut client).iter().filter(|key| key.len() > 5) {
            let left = client
                .call(&[b"PTTL", key.as_slice()])
                .as_integer()
                .unwrap();
            assert!((1..600_001).contains(&left), "{left}");
        }
    }
    let text = copy(old.port, new.port, &[]).success();
    assert!(text.contains("skipped: equal at the destination"), "{text}");
    assert_eq!(all_are_whole(&mut client), MANY);
    let text = compare(old.port, new.port, &[]).success();
    assert!(text.starts_with("40 equal, 0 different, 0 only"), "{text}");
}

#[test]
fn a_server_that_dies_is_named() {
    let _alone = QUIET.lock();
    for victim in ["old", "new"] {
        let place = folder(&format!("copy-dies-{victim}"));
        let (old, new) = if victim == "new" {
            (server(), Server::on(&place, &[]))
        } else {
            (server(), server())
        };
        fill_many(&mut old.client());
        let mut command = command("copy", &url(old.port), &url(new.port), &[]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let mut client = new.client();
        wait_for("filters", || all_are_whole(&mut client) > 3);
        let lost = if victim == "new" { &new } else { &old };
        lost.signal("KILL");
        let output = child.wait_with_output().unwrap();
        let (out, err) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert_eq!(output.status.code(), Some(2), "{out}{err}");
        assert!(out.contains(" filters copied, "), "{out}");
        assert!(
            err.starts_with(&format!("everbloom: {}: ", url(lost.port))),
            "{err}"
        );
        assert!(
            err.contains("Run the same command again: it copies the rest"),
            "{err}"
        );
        if victim == "old" {
            assert!(all_are_whole(&mut client) > 3);
            assert!(
                keys(&mut client).iter().all(|key| key.len() < 5),
                "no temporary key"
            );
            continue;
        }
        drop(new);
        let new = Server::on(&place, &[]);
        assert!(all_are_whole(&mut new.client()) > 2);
        copy(old.port, new.port, &[]).success();
        assert_eq!(all_are_whole(&mut new.client()), MANY);
        compare(old.port, new.port, &[]).success();
    }
}

/// What was added before the copy is never lost, and a second copy brings the rest.
#[test]
fn filters_in_use() {
    let (old, new) = (server(), server());
    old.client().ok("BF.RESERVE busy 0.001 1000");
    old.client().ok("BF.RESERVE wide 0.001 20000000");
    let (added, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let before = thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        scope.spawn(|| {
            let mut client = old.client();
            while !done.load(Ordering::Relaxed) {
                let item = added.load(Ordering::Relaxed);
                client.ok(&format!("BF.ADD busy i{item}"));
                client.ok(&format!("BF.ADD wide i{item}"));
                added.fetch_add(1, Ordering::Relaxed);
            }
        });
        wait_for("items", || added.load(Ordering::Relaxed) > 2000);
        let before = added.load(Ordering::Relaxed);
        let outcome = copy(old.port, new.port, &[]);
        drop(stop);
        assert_code(&outcome, 1);
        let line = "everbloom: \"wide\": changed while it was copied";
        assert!(outcome.stderr.contains(line), "{outcome:?}");
        assert!(
            outcome.stdout.contains(" changed while being copied\n"),
            "{outcome:?}"
        );
        before
    });
    let mut client = new.client();
    for key in ["busy", "wide"] {
        for item in 0..before {
            assert_eq!(
                client.number(&format!("BF.EXISTS {key} i{item}")),
                1,
                "{key} i{item}"
            );
        }
    }
    copy(old.port, new.port, &[]).success();
    compare(old.port, new.port, &[]).success();
}

/// A cuckoo filter is copied as it was at one moment, or not at all.
#[test]
fn cuckoo_filters_in_use() {
    let (old, new) = (server(), server());
    // Its items move all the time: it is nearly full.
    old.client().ok("CF.RESERVE busy 4096 EXPANSION 0");
    insert(&mut old.client(), "busy", 0..2500);
    // It takes longer to copy than what happens between two changes.
    old.client().ok("CF.RESERVE wide 200000000");
    insert(&mut old.client(), "wide", 0..1000);
    let (changes, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        scope.spawn(|| {
            let mut client = old.client();
            while !done.load(Ordering::Relaxed) {
                let item = changes.load(Ordering::Relaxed);
                for key in ["busy", "wide"] {
                    client.ok(&format!("CF.ADD {key} i{item}"));
                    client.ok(&format!("CF.DEL {key} i{item}"));
                }
                changes.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        wait_for("changes", || changes.load(Ordering::Relaxed) > 10);
        let outcome = copy(old.port, new.port, &[]);
        drop(stop);
        assert_code(&outcome, 1);
        let line = "everbloom: \"wide\": it changed each time it was read";
        assert!(outcome.stderr.contains(line), "{outcome:?}");
    });
    let mut client = new.client();
    assert_eq!(client.number("EXISTS wide"), 0);
    if client.number("EXISTS busy") == 1 {
        for item in 0..2500 {
            let found = client.number(&format!("CF.EXISTS busy item:{item}"));
            assert_eq!(found, 1, "{item}");
        }
    }
    assert!(keys(&mut client).len() <= 1, "no temporary key");
    copy(old.port, new.port, &["--replace"]).success();
    compare(old.port, new.port, &[]).success();
}

/// 300 MB, in an address space that holds no such filter.
#[test]
fn a_large_filter_in_little_memory() {
    let _alone = QUIET.lock();
    let (old, new) = (server(), server());
    old.client().ok("BF.RESERVE huge 0.01 230000000");
    add(&mut old.client(), "huge", 0..100_000);
    old.client().ok("CF.RESERVE cuckoo 260000000");
    insert(&mut old.client(), "cuckoo", 0..100_000);
    let size = old
        .client()
        .ok("BF.INFO huge SIZE")
        .into_elements()
        .unwrap();
    assert!(size[0].as_integer().unwrap() > 300_000_000, "{size:?}");
    for subcommand in ["copy", "compare"] {
        let limited = "ulimit -v 160000 && exec \"$0\" \"$@\"";
        let outcome = run(Command::new("sh")
            .args(["-c", limited, EVERBLOOM, subcommand])
            .args([url(old.port), url(new.port)]));
        assert_code(&outcome, 0);
    }
    assert_eq!(new.client().number("BF.EXISTS huge item:99999"), 1);
    assert_eq!(new.client().number("CF.EXISTS cuckoo item:99999"), 1);
}
