//! One filter from a file to a key, and back.

use super::windows::{is_piece, proxy};
use super::*;
use crate::support::{filter_bytes, on_terminal};
use std::path::Path;
use std::sync::{Arc, mpsc};

fn to_key(port: u16, key: &str) -> String {
    format!("{}#{key}", url(port))
}

/// Runs a subcommand in a folder.
fn within(folder: &Path, args: &[&str]) -> Outcome {
    run(Command::new(EVERBLOOM).args(args).current_dir(folder))
}

/// `everbloom merge` and BF.MERGE are one operation.
#[test]
fn files_merge_to_the_bytes_of_bf_merge() {
    let folder = folder("copy-merge");
    for (name, items) in [("one", 0..900), ("other", 800..1900)] {
        let items: String = items.map(|item| format!("item:{item}\n")).collect();
        fs::write(folder.join(name), items).unwrap();
    }
    let server = server();
    let mut client = server.client();
    // All hold both inputs with room to spare: the keys are random, and so is the rate of a full one.
    let window = ["dedup", "-q", "--window", "30d", "-c", "40000", "--state"];
    let append = ["build", "-q", "--append"];
    let kinds: [(&str, &[&str], &[&str]); 3] = [
        ("windowed", &window, &window),
        (
            "growing",
            &["build", "-q", "--growing", "-c", "4000"],
            &append,
        ),
        ("fixed", &["build", "-q", "-c", "4000"], &append),
    ];
    for (kind, make, add) in kinds {
        let [a, b, merged, back] = ["a", "b", "merged", "back"].map(|name| {
            let file = format!("{kind}-{name}.bloom");
            let _ = fs::remove_file(folder.join(&file));
            file
        });
        within(&folder, &[make, &[&a, "one"]].concat()).success();
        // A copy has the same key.
        fs::copy(folder.join(&a), folder.join(&b)).unwrap();
        within(&folder, &[add, &[&b, "other"]].concat()).success();
        within(&folder, &["merge", "-q", "-e", "0.1", &merged, &a, &b]).success();
        let [to_a, to_b] = ["a", "b"].map(|name| to_key(server.port, &format!("{kind}-{name}")));
        within(&folder, &["copy", "-q", &a, &to_a]).success();
        within(&folder, &["copy", "-q", &b, &to_b]).success();
        client.ok(&format!("BF.MERGE {kind}-a {kind}-b"));
        within(&folder, &["copy", "-q", &to_a, &back]).success();
        let [file, key] = [&merged, &back].map(|name| filter_bytes(&folder.join(name)));
        assert!(file == key, "{kind}");
    }
}

#[test]
fn filters_of_all_kinds_from_files_and_back() {
    let folder = folder("copy-files");
    let names: String = (0..3000).map(|item| format!("item:{item}\n")).collect();
    fs::write(folder.join("in"), &names).unwrap();
    let server = server();
    let mut client = server.client();
    let kinds: [(&str, &[&str]); 5] = [
        (
            "classic",
            &["build", "--growing", "--layout", "classic", "-c", "100"],
        ),
        ("blocked", &["build", "--growing", "-c", "100"]),
        ("fixed", &["build"]),
        ("fixed-classic", &["build", "--layout", "classic"]),
        ("windowed", &["dedup", "--window", "30d", "--state"]),
    ];
    for (kind, make) in kinds {
        // The key has characters that mean something elsewhere.
        let (file, key) = (format!("{kind}.bloom"), format!("a/b#{kind}@%"));
        let _ = fs::remove_file(folder.join(&file));
        within(&folder, &[make, &[&file, "in"]].concat()).success();
        let there = to_key(server.port, &key);
        let copied = within(&folder, &["copy", &file, &there]).success();
        assert!(copied.starts_with("1 filter copied, "), "{copied}");
        let words: Vec<_> = (0..3000).map(|item| format!("item:{item}")).collect();
        let request = [&["BF.MEXISTS".to_owned(), key.clone()], &words[..]].concat();
        let found = client.call(&request).into_elements().unwrap();
        assert!(
            found.iter().all(|found| *found == Reply::Integer(1)),
            "{kind}"
        );

        let back = format!("{kind}-back.bloom");
        let _ = fs::remove_file(folder.join(&back));
        within(&folder, &["copy", "-q", &there, &back]).success();
        let [old, new] = [&file, &back].map(|name| filter_bytes(&folder.join(name)));
        assert!(old == new, "{kind}");

        // Neither side is overwritten unless that is said.
        for args in [[&file, &there], [&there, &back]] {
            let again = within(&folder, &["copy", args[0], args[1]]);
            assert_code(&again, 2);
            assert!(again.stderr.contains("--replace"), "{again:?}");
            within(&folder, &["copy", "-q", "--replace", args[0], args[1]]).success();
        }
    }
    assert_eq!(client.number("DBSIZE"), 5, "no temporary key is left");
    assert_eq!(client.call(&["TTL", "a/b#fixed@%"]), Reply::Integer(-1));
}

/// The bar of a filter goes from the left to the right once.
#[test]
fn the_bar_never_goes_back() {
    let (old, new) = (server(), server());
    old.client().ok("BF.RESERVE large 0.01 20000000");
    let line = format!("{EVERBLOOM} copy {} {}", url(old.port), url(new.port));
    let Some(mut script) = on_terminal(&line) else {
        return;
    };
    let shown = run(&mut script).success();
    let before_percent = shown.split('%').filter_map(|text| {
        let digits = text.rsplit(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    });
    let percents: Vec<u32> = before_percent.collect();
    assert!(percents.is_sorted() && percents.len() > 1, "{percents:?}");
}

#[test]
fn what_has_no_file_or_no_filter_is_said() {
    let folder = folder("copy-no-files");
    let server = server();
    let mut client = server.client();
    client.ok("CF.ADD cuckoo x");
    client.ok("SET text x");
    client.ok("BF.ADD seen x");
    fs::write(folder.join("notes"), "text").unwrap();
    within(
        &folder,
        &["copy", "-q", &to_key(server.port, "seen"), "cut.bloom"],
    );
    let bytes = fs::read(folder.join("cut.bloom")).unwrap();
    fs::write(folder.join("cut.bloom"), &bytes[..bytes.len() - 1]).unwrap();
    let at = |key: &str| to_key(server.port, key);
    let plain = url(server.port);
    for (args, words) in [
        (
            [&*at("cuckoo"), "new.bloom"],
            "only Bloom filters go from a server to a file",
        ),
        ([&*at("text"), "new.bloom"], "a value of type string"),
        ([&*at("none"), "new.bloom"], "there is no such key"),
        ([&*at("seen"), "notes"], "notes is not a filter file"),
        ([&*plain, "new.bloom"], "redis://HOST#KEY"),
        (["notes", "new.bloom"], "one of the two must be a server"),
        (["notes", &*at("new")], "notes is not a filter file"),
        (["cut.bloom", &*at("new")], "cut.bloom is damaged"),
        ([&*plain, &*plain], "would be copied to itself"),
    ] {
        let refused = within(&folder, &["copy", args[0], args[1]]);
        assert!(
            [1, 2].contains(&refused.status.code().unwrap()),
            "{refused:?}"
        );
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
        assert!(!folder.join("new.bloom").exists());
    }
    assert_eq!(client.number("DBSIZE"), 3);
}

/// A mistyped key is no question of commands.
#[test]
fn a_key_is_named_where_there_is_no_module() {
    let Some(plain) = Redis::start(&[]) else {
        return;
    };
    plain.client().ok("SET text a");
    let folder = folder("copy-plain");
    for (key, words) in [
        (
            "nokey",
            "there is no such key: \"nokey\" at redis://127.0.0.1",
        ),
        ("text", "a value of type string"),
    ] {
        let from = to_key(plain.addr.port(), key);
        let outcome = within(&folder, &["copy", &from, "new.bloom"]);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(words), "{outcome:?}");
        assert!(!folder.join("new.bloom").exists());
    }
}

#[test]
fn a_signal_leaves_the_file_as_it_was() {
    let (server, folder) = (server(), folder("copy-signals"));
    // Two pieces.
    server.client().ok("BF.RESERVE large 0.01 15000000");
    fs::write(folder.join("in"), "a\n").unwrap();
    within(&folder, &["build", "-q", "old.bloom", "in"]).success();
    let before = fs::read(folder.join("old.bloom")).unwrap();
    for (signal, code, file) in [
        ("INT", 130, "old.bloom"),
        ("TERM", 143, "new.bloom"),
        ("HUP", 129, "new.bloom"),
    ] {
        let (tell, told) = mpsc::channel::<u32>();
        let told = Mutex::new(told);
        let port = proxy(server.port, move |words, reply| {
            // Only the first piece finds a number in the channel.
            if reply.is_none()
                && is_piece(words)
                && let Ok(process) = told.lock().unwrap().recv()
            {
                run(Command::new("kill").args(["-s", signal, &process.to_string()])).success();
                // The thread for the signals needs a moment.
                thread::sleep(Duration::from_millis(500));
            }
        });
        let mut copy = command("copy", &to_key(port, "large"), file, &["--replace"]);
        copy.current_dir(&folder);
        copy.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = copy.spawn().unwrap();
        tell.send(child.id()).unwrap();
        drop(tell);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(code), "{signal}: {ended:?}");
        assert_eq!((&*ended.stdout, &*ended.stderr), (&[][..], &[][..]));
        let left = fs::read_dir(&folder).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["in", "old.bloom"]);
        assert!(fs::read(folder.join("old.bloom")).unwrap() == before);
    }
}

/// Of a server that takes the header and then no piece, nobody sees half a filter.
#[test]
fn a_piece_that_is_refused_takes_the_temporary_key_with_it() {
    let folder = folder("copy-half-file");
    fs::write(folder.join("in"), "a\n").unwrap();
    within(&folder, &["build", "-q", "f.bloom", "in"]).success();
    let requests = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&requests);
    let port = super::bad_servers::serve(move |request| {
        heard.lock().unwrap().push_str(request);
        match request {
            _ if request.contains("COMMAND") => b"*1\r\n*0\r\n".to_vec(),
            _ if request.contains("TYPE") => b"+none\r\n".to_vec(),
            _ if request.contains("LOADCHUNK") && request.contains("\r\n1\r\n") => {
                b"+OK\r\n".to_vec()
            }
            _ if request.contains("LOADCHUNK") => b"-ERR no\r\n".to_vec(),
            _ => b":1\r\n".to_vec(),
        }
    });
    let refused = within(&folder, &["copy", "f.bloom", &to_key(port, "k")]);
    assert_code(&refused, 2);
    let requests = requests.lock().unwrap();
    assert!(requests.contains("\r\nDEL\r\n"), "{requests}");
    assert!(!requests.contains("RENAME"), "{requests}");
}
