//! `convert`: pieces, and keys of RDB files.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use everbloom_dev::{PATIENCE, wait_for};
use serde_json::Value;

use super::{everbloom, folder_with, names, refused, with_input};
use crate::support::{EVERBLOOM, Server, filter_bytes, root, run};

/// The names in a folder, in order.
fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

/// The pieces of a folder, in order.
fn pieces(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let pieces = entries(folder).into_iter();
    pieces
        .map(|name| (name.clone(), fs::read(folder.join(name)).unwrap()))
        .collect()
}

#[test]
fn a_filter_goes_to_a_server_in_pieces_and_back() {
    let members = names(0..5000);
    let folder = folder_with("files-convert", &[("in", members.as_bytes())]);
    let _ = fs::remove_dir_all(folder.join("pieces"));
    let server = Server::start();
    let mut client = server.client();
    for layout in ["classic", "blocked"] {
        let build = [
            "build",
            "-q",
            "--growing",
            "-c",
            "100",
            "-e",
            "1e-9",
            "f.bloom",
            "in",
        ];
        everbloom(&folder, &[&build[..], &["--layout", layout]].concat()).success();
        let before = filter_bytes(&folder.join("f.bloom"));
        everbloom(&folder, &["convert", "pieces", "f.bloom"]).success();
        let there = pieces(&folder.join("pieces"));
        assert!(there.len() > 2, "{}", there.len());
        for (name, data) in &there {
            let iterator = name.trim_start_matches('0').as_bytes();
            client.call(&[b"BF.LOADCHUNK", layout.as_bytes(), iterator, data]);
        }
        for (member, answer) in [("name 4999", "1"), ("name 5000", "0")] {
            let found = server.query(&["BF.EXISTS", layout, member]).success();
            assert!(found.contains(answer), "{found}");
        }
        let again = ["convert", "g.bloom", "pieces"];
        everbloom(&folder, &again).success();
        assert!(fs::read(folder.join("g.bloom")).unwrap() == before);

        let taken = everbloom(&folder, &["convert", "pieces", "f.bloom"]);
        refused(&taken, &["pieces is there already"]);
        // The order of `cp` would write to the input.
        let reversed = everbloom(&folder, &["convert", "f.bloom", "new"]);
        refused(&reversed, &["everbloom convert new f.bloom"]);
        let missing = folder.join("pieces").join(&there[1].0);
        fs::remove_file(&missing).unwrap();
        refused(&everbloom(&folder, &again), &["pieces has no whole filter"]);
        fs::write(&missing, &there[1].1[1..]).unwrap();
        refused(&everbloom(&folder, &again), &["does not fit"]);
        fs::write(folder.join("pieces").join(&there[0].0), "nonsense").unwrap();
        refused(&everbloom(&folder, &again), &["no header"]);
        fs::write(folder.join("pieces/notes"), "").unwrap();
        refused(&everbloom(&folder, &again), &["notes is no piece"]);
        assert!(fs::read(folder.join("g.bloom")).unwrap() == before);
        fs::remove_dir_all(folder.join("pieces")).unwrap();
    }
    everbloom(&folder, &["build", "-q", "fixed.bloom", "in"]).success();
    everbloom(&folder, &["convert", "pieces", "fixed.bloom"]).success();
    everbloom(&folder, &["convert", "g.bloom", "pieces"]).success();
    let [before, after] = ["fixed.bloom", "g.bloom"].map(|name| filter_bytes(&folder.join(name)));
    assert!(before == after);
}

/// As shells complete the name of a folder.
#[test]
fn the_name_of_a_folder_of_pieces_may_end_in_a_slash() {
    let folder = folder_with("files-slash", &[("in", b"a\n")]);
    everbloom(&folder, &["build", "-q", "f.bloom", "in"]).success();
    everbloom(&folder, &["convert", "pieces/", "f.bloom"]).success();
    assert_eq!(entries(&folder), ["f.bloom", "in", "pieces"]);
    everbloom(&folder, &["convert", "g.bloom", "pieces/"]).success();
    let [before, after] = ["f.bloom", "g.bloom"].map(|it| filter_bytes(&folder.join(it)));
    assert!(before == after);
    let taken = everbloom(&folder, &["convert", "pieces/", "f.bloom"]);
    refused(&taken, &["pieces/ is there already"]);
}

#[test]
fn nothing_is_left_beside_the_pieces() {
    let folder = folder_with("files-beside", &[("in", b"a\n")]);
    let build = ["build", "-q", "-c", "1000000", "f.bloom", "in"];
    everbloom(&folder, &build).success();
    everbloom(&folder, &["convert", "pieces", "f.bloom"]).success();
    assert_eq!(entries(&folder), ["f.bloom", "in", "pieces"]);

    // Another run writes the same folder now.
    let other = folder.join(".new.everbloom-new-0");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("1"), "half").unwrap();
    everbloom(&folder, &["convert", "new", "f.bloom"]).success();
    assert_eq!(entries(&other), ["1"]);
    assert_eq!(fs::read(other.join("1")).unwrap(), b"half");
    assert!(pieces(&folder.join("new")) == pieces(&folder.join("pieces")));

    // The disk is full in the middle of a piece.
    let before = entries(&folder);
    let limited = "trap '' XFSZ; ulimit -f 100; exec \"$@\"";
    let failed = run(Command::new("sh")
        .args(["-c", limited, "sh", EVERBLOOM])
        .args(["convert", "more", "f.bloom"])
        .current_dir(&folder));
    refused(&failed, &["cannot write to more"]);
    assert_eq!(entries(&folder), before);
}

/// The input is a pipe, so the run still reads when the signal comes.
#[test]
fn a_signal_during_convert_leaves_things_as_they_were() {
    let golden = root().join("crates/files/tests/golden/valkey-bloom");
    let told = fs::read_to_string(golden.join("filters.jsonl")).unwrap();
    let told: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    let key = told["key"].as_str().unwrap();
    let rdb = fs::read(golden.join("dump.rdb")).unwrap();
    let folder = folder_with("files-convert-signals", &[("in", b"a\n")]);
    everbloom(&folder, &["build", "-q", "old.bloom", "in"]).success();
    let before = fs::read(folder.join("old.bloom")).unwrap();
    let pipe = folder.join("pipe.rdb");
    run(Command::new("mkfifo").arg(&pipe)).success();
    for (signal, code, file) in [
        ("INT", 130, "old.bloom"),
        ("TERM", 143, "new.bloom"),
        ("HUP", 129, "new.bloom"),
    ] {
        let mut convert = Command::new(EVERBLOOM)
            .args(["convert", "--key", key, file, "pipe.rdb"])
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A pipe is opened when both sides open it: then the run has locked its output.
        let (opened, input) = mpsc::channel();
        let path = pipe.clone();
        thread::spawn(move || opened.send(File::options().write(true).open(path).unwrap()));
        let mut input = input.recv_timeout(PATIENCE).unwrap();
        run(Command::new("kill").args(["-s", signal, &convert.id().to_string()])).success();
        // The thread for the signals needs a moment.
        thread::sleep(Duration::from_millis(500));
        // Ignore the error: a run that has ended too early reads nothing.
        let _ = input.write_all(&rdb);
        drop(input);
        wait_for("the end of the run", || {
            convert.try_wait().unwrap().is_some()
        });
        let ended = convert.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(code), "{signal}: {ended:?}");
        assert_eq!((&*ended.stdout, &*ended.stderr), (&[][..], &[][..]));
        assert_eq!(entries(&folder), ["in", "old.bloom", "pipe.rdb"]);
        assert!(fs::read(folder.join("old.bloom")).unwrap() == before);
    }
}

#[test]
fn a_filter_is_taken_from_an_rdb_file() {
    let folder = folder_with("files-rdb", &[("no.rdb", b"nonsense")]);
    let home = folder_with("files-rdb-server", &[]);
    let server = Server::on(
        &home,
        &["--dir", home.to_str().unwrap(), "--dbfilename", "d.rdb"],
    );
    for command in [
        &["BF.RESERVE", "seen", "0.000001", "10"][..],
        &["BF.MADD", "seen", "a", "b"],
        &["SET", "text", "a"],
        &["SAVE"],
    ] {
        server.query(command).success();
    }
    let rdb = home.join("d.rdb");
    let rdb = rdb.to_str().unwrap();
    everbloom(&folder, &["convert", "--key", "seen", "f.bloom", rdb]).success();
    let found = with_input(&folder, &["check", "f.bloom"], "c\nb\na\n");
    assert_eq!(found.success(), "b\na\n");
    let convert = |words: &[&str]| {
        let (input, flags) = words.split_last().unwrap();
        everbloom(
            &folder,
            &[&["convert"], flags, &["x.bloom", input]].concat(),
        )
    };
    refused(&convert(&["--key", "other", rdb]), &["has no key other"]);
    refused(
        &convert(&["--key", "seen", "--db", "1", rdb]),
        &["database 1"],
    );
    refused(
        &convert(&["--key", "text", rdb]),
        &["text", "no Bloom filter"],
    );
    refused(
        &convert(&["--key", "seen", "no.rdb"]),
        &["cannot read no.rdb"],
    );
    let mut bytes = fs::read(rdb).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(folder.join("flipped.rdb"), bytes).unwrap();
    refused(
        &convert(&["--key", "seen", "flipped.rdb"]),
        &["cannot read flipped.rdb"],
    );
    assert!(!folder.join("x.bloom").exists());
}

/// Filters of valkey-bloom answer in a file as the original did, false positives included.
#[test]
fn keys_of_valkey_bloom_become_files() {
    let golden = root().join("crates/files/tests/golden/valkey-bloom");
    let told = fs::read_to_string(golden.join("filters.jsonl")).unwrap();
    let rdb = golden.join("dump.rdb");
    let folder = folder_with("files-valkey", &[]);
    for (number, line) in told.lines().enumerate() {
        let told: Value = serde_json::from_str(line).unwrap();
        let (key, file) = (told["key"].as_str().unwrap(), format!("{number}.bloom"));
        let convert = ["convert", "--key", key, &file, rdb.to_str().unwrap()];
        everbloom(&folder, &convert).success();
        let absent: String = (0..2000).map(|item| format!("absent:{item}\n")).collect();
        let found = with_input(&folder, &["check", &file], absent.as_str()).stdout;
        let answers = told["absent_exists"].as_str().unwrap().bytes();
        let false_positives = answers.enumerate().filter(|(_, answer)| *answer == b'1');
        let expected: String = false_positives
            .map(|(item, _)| format!("absent:{item}\n"))
            .collect();
        assert_eq!(found, expected, "{key}");
        if let Some(format) = told["added"]["fmt"]
            .as_str()
            .filter(|it| it.ends_with("%d"))
        {
            let (from, to) = (&told["added"]["from"], &told["added"]["to"]);
            let added = from.as_u64().unwrap()..to.as_u64().unwrap().min(2000);
            let added: String = added
                .map(|item| format!("{}\n", format.replace("%d", &item.to_string())))
                .collect();
            let missing = with_input(&folder, &["check", "-v", &file], added.as_str()).stdout;
            let refused = told["added_exists"].as_str().unwrap().contains('0');
            assert!(refused || missing.is_empty(), "{key}: {missing}");
        }
    }
}
