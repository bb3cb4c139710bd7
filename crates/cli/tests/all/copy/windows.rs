//! Filters that forget, and servers whose pieces are wrong.

use super::*;
use everbloom_resp::{Decoder, Protocol};
use std::sync::Arc;

/// Passes requests on to a server, and its replies back. `change` sees each request before it is
/// sent, and each reply.
pub(super) fn proxy(
    port: u16,
    change: impl Fn(&[Vec<u8>], Option<&mut Reply>) + Send + Sync + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxied = listener.local_addr().unwrap().port();
    let change = Arc::new(change);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, change) = (stream.unwrap(), Arc::clone(&change));
            thread::spawn(move || {
                let mut server = Client::connect(("127.0.0.1", port));
                let (mut decoder, mut buffer) = (Decoder::default(), Vec::new());
                let mut read = vec![0; 1 << 16];
                while let Ok(count @ 1..) = stream.read(&mut read) {
                    buffer.extend_from_slice(&read[..count]);
                    while let Some((request, length)) = decoder.decode(&buffer).unwrap() {
                        buffer.drain(..length);
                        let words = request.into_elements().unwrap();
                        let words: Vec<_> = words
                            .iter()
                            .map(|word| word.as_bytes().unwrap().to_vec())
                            .collect();
                        change(&words, None);
                        let mut reply = server.call(&words);
                        change(&words, Some(&mut reply));
                        let mut bytes = Vec::new();
                        encode(&reply, Protocol::Resp2, &mut bytes);
                        if stream.write_all(&bytes).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    proxied
}

pub(super) fn is_piece(words: &[Vec<u8>]) -> bool {
    words[0] == b"BF.SCANDUMP" && words[2] != b"0"
}

/// How many of these items a filter finds.
fn found(client: &mut Client, key: &str, items: Range<u32>) -> usize {
    let mut words = vec!["BF.MEXISTS".to_owned(), key.to_owned()];
    words.extend(items.map(|item| format!("item:{item}")));
    let found = client.call(&words).into_elements().unwrap();
    found
        .iter()
        .filter(|one| **one == Reply::Integer(1))
        .count()
}

/// The window is a part of what a filter is.
#[test]
fn windows_that_differ_are_not_equal() {
    let (old, new) = (server(), server());
    let (mut a, mut b) = (old.client(), new.client());
    let reserve = |key: &str, window: &str| {
        format!("BF.RESERVE {key} 0.01 1000 LAYOUT BLOCKED SEED 7 {window}")
    };
    for (key, here, there) in [
        ("span", "WINDOW SECONDS 3600", "WINDOW SECONDS 10"),
        ("kind", "WINDOW SECONDS 10", "WINDOW ITEMS"),
        (
            "number",
            "WINDOW ITEMS GENERATIONS 4",
            "WINDOW ITEMS GENERATIONS 5",
        ),
        ("none", "WINDOW SECONDS 10", ""),
    ] {
        a.ok(reserve(key, here).trim());
        b.ok(reserve(key, there).trim());
    }
    let outcome = compare(old.port, new.port, &[]);
    assert_code(&outcome, 1);
    let (here, there) = (url(old.port), url(new.port));
    for text in [
        format!("\"span\": window 1 hour at {here}, 10 seconds at {there}\n"),
        format!("\"kind\": window 10 seconds at {here}, of items at {there}\n"),
        format!("\"number\": generations 4 at {here}, 5 at {there}\n"),
        format!("\"none\": window 10 seconds at {here}, none at {there}\n"),
        "0 equal, 4 different, 0 only".to_owned(),
    ] {
        assert!(outcome.stdout.contains(&text), "{text}: {outcome:?}");
    }
    assert_code(&copy(old.port, new.port, &[]), 1);
}

/// A copy is brought up to date after the window has gone on, and never at the cost of what only
/// the destination has.
#[test]
fn a_window_that_has_gone_on_is_copied_again() {
    let (old, new) = (server(), server());
    let (mut a, mut b) = (old.client(), new.client());
    a.ok("BF.RESERVE w 0.0001 4000 SEED 7 WINDOW ITEMS");
    add(&mut a, "w", 0..3000);
    copy(old.port, new.port, &[]).success();
    // The first generation is dropped, and two begin.
    a.ok("BF.ADVANCE w 2");
    add(&mut a, "w", 3000..3500);
    let text = compare(old.port, new.port, &[]).stdout;
    assert!(text.contains("the generations of the window"), "{text}");
    let text = copy(old.port, new.port, &[]).success();
    assert!(text.starts_with("1 filter copied"), "{text}");
    assert_eq!(found(&mut b, "w", 1000..3500), 2500);
    assert_eq!(b.call(&["BF.INFO", "w"]), a.call(&["BF.INFO", "w"]));
    compare(old.port, new.port, &[]).success();

    for more in ["BF.ADD w mine", "BF.ADVANCE w 4"] {
        b.ok(more);
        let refused = copy(old.port, new.port, &[]);
        assert_code(&refused, 1);
        assert!(
            refused.stderr.contains("--replace overwrites it"),
            "{refused:?}"
        );
        copy(old.port, new.port, &["--replace"]).success();
    }
    // The same seed and the same window, but not the same filter: nothing tells that it is one.
    b.ok("DEL w");
    b.ok("BF.RESERVE w 0.0001 4000 SEED 7 WINDOW ITEMS");
    add(&mut b, "w", 10_000..10_100);
    assert_code(&copy(old.port, new.port, &[]), 1);
    assert_eq!(found(&mut b, "w", 10_000..10_100), 100);
}

/// A window of which a generation is dropped as often as `drops` says while its pieces are read.
fn dropping(server: &Server, drops: usize) -> u16 {
    let port = server.port;
    let left = AtomicUsize::new(drops);
    proxy(port, move |words, reply| {
        let one_less = || {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
        };
        if reply.is_none() && is_piece(words) && one_less().is_ok() {
            let mut client = Client::connect(("127.0.0.1", port));
            client.ok("BF.ADVANCE w");
        }
    })
}

fn full_window(client: &mut Client) {
    client.ok("BF.RESERVE w 0.0001 4000 WINDOW ITEMS");
    for generation in 0..5 {
        add(client, "w", generation * 500..(generation + 1) * 500);
        client.ok("BF.ADVANCE w");
    }
}

/// The pieces of several layers have different lengths, so few numbers of bytes are the end of one.
#[test]
fn large_layers_are_read_back() {
    let (old, new) = (server(), server());
    let mut client = old.client();
    client.ok("BF.RESERVE w 0.01 60000000 WINDOW ITEMS");
    for generation in 0..4 {
        add(&mut client, "w", generation * 10..(generation + 1) * 10);
        client.ok("BF.ADVANCE w");
    }
    let size = client.ok("BF.INFO w SIZE").into_elements().unwrap();
    assert!(size[0].as_integer().unwrap() > 80_000_000, "{size:?}");
    let text = copy(old.port, new.port, &[]).success();
    assert!(text.starts_with("1 filter copied"), "{text}");
    assert_eq!(found(&mut new.client(), "w", 10..40), 30);
    compare(old.port, new.port, &[]).success();
}

#[test]
fn a_generation_that_ends_is_followed_by_another_try() {
    let (old, new, folder) = (server(), server(), folder("copy-window"));
    full_window(&mut old.client());
    let port = dropping(&old, 1);
    let text = copy(port, new.port, &[]).success();
    assert!(text.starts_with("1 filter copied"), "{text}");
    assert_eq!(found(&mut new.client(), "w", 1000..2500), 1500);
    compare(old.port, new.port, &[]).success();

    let (from, file) = (url(dropping(&old, 1)) + "#w", folder.join("w.bloom"));
    let file = file.to_str().unwrap();
    run(&mut command("copy", &from, file, &[])).success();
    let to = url(new.port) + "#back";
    run(&mut command("copy", file, &to, &[])).success();
    assert_eq!(found(&mut new.client(), "back", 1500..2500), 1000);
}

#[test]
fn a_window_that_never_holds_still_is_named_and_not_copied() {
    let (old, new, folder) = (server(), server(), folder("copy-moving-window"));
    full_window(&mut old.client());
    let why = "its window dropped a generation, or it was replaced, each time it was read";
    let outcome = copy(dropping(&old, usize::MAX), new.port, &[]);
    assert_code(&outcome, 1);
    assert!(outcome.stderr.contains(why), "{outcome:?}");
    assert_eq!(new.client().number("DBSIZE"), 0);

    old.client().ok("DEL w");
    full_window(&mut old.client());
    let file = folder.join("w.bloom");
    let from = url(dropping(&old, usize::MAX)) + "#w";
    let outcome = run(&mut command("copy", &from, file.to_str().unwrap(), &[]));
    assert_code(&outcome, 2);
    assert!(outcome.stderr.contains(why), "{outcome:?}");
    assert!(!file.exists());
}

/// The pieces are wrong in the same way whenever they are read, so only the answers tell.
#[test]
fn pieces_that_are_always_wrong_are_found_out() {
    let (old, new) = (server(), server());
    old.client().ok("BF.RESERVE k 0.1 20000");
    add(&mut old.client(), "k", 0..20_000);
    let port = proxy(old.port, |words, reply| {
        if let (true, Some(Reply::Array(pair))) = (is_piece(words), reply)
            && let [_, Reply::Bulk(bytes)] = &mut pair[..]
        {
            let half = bytes.len() / 2;
            bytes[half..].fill(0);
        }
    });
    let outcome = copy(port, new.port, &[]);
    assert_code(&outcome, 1);
    let line = "asked for random items, it answers otherwise at the destination";
    assert!(outcome.stderr.contains(line), "{outcome:?}");
    assert_eq!(new.client().number("DBSIZE"), 0);

    copy(port, new.port, &["--no-verify"]).success();
    let outcome = compare(port, new.port, &[]);
    assert_code(&outcome, 1);
    let line = format!("random items found at {} only\n", url(port));
    assert!(outcome.stdout.contains(&line), "{outcome:?}");
}
