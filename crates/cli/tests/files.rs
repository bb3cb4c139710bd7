//! Filters in files as a user has them: `build`, `check`, `info`, `merge`, `shrink`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]
#![cfg(unix)]

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use everbloom::{BloomFilter, ScalableBloomFilter};
use everbloom_dev::wait_for;
use support::{EVERBLOOM, Outcome, Server, folder, run, run_with_input};

/// Runs a subcommand in a folder, with this as its standard input.
fn with_input(folder: &Path, args: &[&str], input: impl Into<Vec<u8>>) -> Outcome {
    let input = input.into();
    let mut command = Command::new(EVERBLOOM);
    command.args(args).current_dir(folder);
    run_with_input(&mut command, move |stdin| stdin.write_all(&input))
}

fn everbloom(folder: &Path, args: &[&str]) -> Outcome {
    run(Command::new(EVERBLOOM).args(args).current_dir(folder))
}

#[track_caller]
fn refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word}: {outcome:?}");
    }
    assert_eq!(outcome.stdout, "");
}

/// A new folder with some files in it.
fn folder_with(name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let folder = folder(name);
    for (name, content) in files {
        fs::write(folder.join(name), content).unwrap();
    }
    folder
}

fn names(range: std::ops::Range<u32>) -> String {
    range.map(|number| format!("name {number}\n")).collect()
}

/// The names of a folder's files, but for the inputs.
fn left(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(".bloom")).collect()
}

#[test]
fn members_are_found_and_others_are_not() {
    let members = names(0..20_000);
    let folder = folder_with("files-check", &[("in", members.as_bytes())]);
    let kinds: [&[&str]; 4] = [
        &[],
        &["--layout", "classic"],
        &["--growing", "--capacity", "1000"],
        &["--growing", "--layout", "classic"],
    ];
    for kind in kinds {
        let args = [&["build", "-e", "1e-9", "f.bloom", "in"], kind].concat();
        let built = everbloom(&folder, &args);
        assert!(
            built
                .stderr
                .contains("20000 records in, 20000 in the filter"),
            "{built:?}"
        );
        assert_eq!(built.success(), "");

        let mixed = names(19_990..20_010);
        let check = |args: &[&str]| {
            with_input(
                &folder,
                &[&["check", "f.bloom"], args].concat(),
                mixed.clone(),
            )
        };
        assert_eq!(check(&[]).success(), names(19_990..20_000));
        assert_eq!(check(&["-v"]).success(), names(20_000..20_010));
        assert_eq!(check(&["--count"]).success(), "10\n");
        assert_eq!(check(&["-q"]).success(), "");
    }
}

#[test]
fn exit_codes_are_those_of_grep() {
    let folder = folder_with("files-codes", &[("in", b"a\nb\n")]);
    everbloom(&folder, &["build", "-q", "-e", "1e-9", "f.bloom", "in"]).success();
    let code = |args: &[&str], input: &str| {
        let args = [&["check", "f.bloom"], args].concat();
        with_input(&folder, &args, input).status.code().unwrap()
    };
    assert_eq!(code(&[], "a\nc\n"), 0);
    assert_eq!(code(&[], "c\n"), 1);
    assert_eq!(code(&[], ""), 1);
    assert_eq!(code(&["-v"], "c\n"), 0);
    assert_eq!(code(&["-v"], "a\nb\n"), 1);
    assert_eq!(code(&["-c"], "c\n"), 1);
    assert_eq!(code(&["-q"], "c\na\n"), 0);
    assert_eq!(code(&["-", "missing"], "a\n"), 2);
}

#[test]
fn records_of_any_kind() {
    let folder = folder_with(
        "files-records",
        &[
            ("nul", b"a\nb\0\xff\xfe\0last"),
            ("json", b"{\"u\":\"one\"}\nnonsense\n{\"u\":\"two\"}\n"),
        ],
    );
    let built = everbloom(&folder, &["build", "-0", "nul.bloom", "nul"]);
    assert!(
        built.stderr.contains("3 records in, 3 in the filter"),
        "{built:?}"
    );
    let check = ["check", "-0", "nul.bloom"];
    let mut command = Command::new(EVERBLOOM);
    let printed = command
        .args(check)
        .arg("nul")
        .current_dir(&folder)
        .output()
        .unwrap();
    assert_eq!(printed.stdout, b"a\nb\0\xff\xfe\0last\0");

    let built = everbloom(&folder, &["build", "--json", ".u", "json.bloom", "json"]);
    assert!(
        built
            .stderr
            .contains("1 had no such field and were left out"),
        "{built:?}"
    );
    let lines = "x,two\nnone\nx,three\nx,one\n";
    let check = ["check", "-f", "2", "-d", ",", "json.bloom"];
    assert_eq!(
        with_input(&folder, &check, lines).success(),
        "x,two\nx,one\n"
    );
    let inverse = [&check[..], &["-v"]].concat();
    assert_eq!(
        with_input(&folder, &inverse, lines).success(),
        "none\nx,three\n"
    );
    let strict = [&check[..], &["--strict"]].concat();
    refused(
        &with_input(&folder, &strict, lines),
        &["record 2", "--strict"],
    );
}

#[test]
fn programs_and_dedup_read_the_same_files() {
    let folder = folder_with("files-library", &[("in", b"a\nb\n")]);
    everbloom(&folder, &["build", "f.bloom", "in"]).success();
    let bytes = fs::read(folder.join("f.bloom")).unwrap();
    let filter = BloomFilter::from_bytes(&bytes).unwrap();
    assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    assert_eq!((filter.capacity(), filter.error_rate()), (2, 0.0001));

    everbloom(&folder, &["build", "--growing", "g.bloom", "in"]).success();
    let dedup = ["dedup", "-q", "--state", "g.bloom"];
    assert_eq!(with_input(&folder, &dedup, "a\nc\n").success(), "c\n");
    assert_eq!(
        with_input(&folder, &["check", "g.bloom"], "c\nd\n").success(),
        "c\n"
    );
    let fixed = with_input(&folder, &["dedup", "--state", "f.bloom"], "a\n");
    refused(&fixed, &["f.bloom", "fixed size"]);
}

#[test]
fn the_size_follows_from_the_input_or_is_asked_for() {
    let members = names(0..3000);
    let folder = folder_with("files-size", &[("in", members.as_bytes())]);
    refused(
        &with_input(&folder, &["build", "f.bloom"], "a\n"),
        &["--capacity", "--growing"],
    );
    assert_eq!(left(&folder), Vec::<String>::new());
    let small = ["build", "-c", "100", "-e", "1%", "f.bloom"];
    let over = with_input(&folder, &small, members.clone());
    assert!(over.stderr.contains("warning"), "{over:?}");
    assert!(over.stderr.contains("--capacity 3000"), "{over:?}");
    let info = everbloom(&folder, &["info", "f.bloom"]).success();
    assert!(
        info.contains("of 100\n") && info.contains("warning"),
        "{info}"
    );
    everbloom(&folder, &["build", "-e", "1%", "f.bloom", "in", "in"]).success();
    let info = everbloom(&folder, &["info", "--json", "f.bloom"]).success();
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["capacity"], 6000);
    assert_eq!(info["error_rate"], 0.01);
    assert_eq!(info["type"], "fixed");
    assert_eq!(info["layout"], "blocked");
    assert_eq!(info["layers"], 1);
    let size = fs::metadata(folder.join("f.bloom")).unwrap().len();
    assert_eq!(info["file_bytes"], size);
}

#[test]
fn what_cannot_be_read_leaves_the_old_file() {
    let folder = folder_with("files-old", &[("in", b"a\n"), ("text.bloom", b"notes\n")]);
    everbloom(&folder, &["build", "f.bloom", "in"]).success();
    let before = fs::read(folder.join("f.bloom")).unwrap();
    refused(
        &everbloom(&folder, &["build", "f.bloom", "in", "missing"]),
        &["missing", "no filter was written"],
    );
    assert!(fs::read(folder.join("f.bloom")).unwrap() == before);
    refused(
        &everbloom(&folder, &["build", "text.bloom", "in"]),
        &["text.bloom is not a filter file"],
    );
    assert_eq!(fs::read(folder.join("text.bloom")).unwrap(), b"notes\n");
    refused(&everbloom(&folder, &["build", "new.bloom", "missing"]), &[]);
    assert!(!folder.join("new.bloom").exists());
}

#[test]
fn a_signal_during_build_leaves_things_as_they_were() {
    let folder = folder_with("files-signals", &[("in", b"a\n")]);
    everbloom(&folder, &["build", "-q", "old.bloom", "in"]).success();
    let before = fs::read(folder.join("old.bloom")).unwrap();
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        for file in ["old.bloom", "new.bloom"] {
            let mut build = Command::new(EVERBLOOM)
                .args(["build", "--capacity", "1000", file])
                .current_dir(&folder)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // Its input stays open, and the line stays incomplete.
            let mut input = build.stdin.take().unwrap();
            input.write_all(b"b\nhalf of a li").unwrap();
            // The old file is locked, the new one is there.
            wait_for("the lock", || {
                let taken = folder.join(file).exists() && {
                    let other = fs::File::open(folder.join(file)).unwrap();
                    other.try_lock().is_err()
                };
                assert!(build.try_wait().unwrap().is_none());
                taken
            });
            run(Command::new("kill").args(["-s", signal, &build.id().to_string()])).success();
            wait_for("the end of the run", || build.try_wait().unwrap().is_some());
            let ended = build.wait_with_output().unwrap();
            assert_eq!(
                ended.status.code(),
                Some(code),
                "{signal} {file}: {ended:?}"
            );
            assert_eq!((&*ended.stdout, &*ended.stderr), (&[][..], &[][..]));
            assert_eq!(left(&folder), ["old.bloom"]);
            assert!(fs::read(folder.join("old.bloom")).unwrap() == before);
        }
    }
}

#[test]
fn damaged_files_are_named() {
    let folder = folder_with("files-damaged", &[("in", b"a\n"), ("empty.bloom", b"")]);
    for args in [
        &["build", "f.bloom", "in"][..],
        &["build", "-g", "g.bloom", "in"],
    ] {
        everbloom(&folder, args).success();
        let path = folder.join(args[args.len() - 2]);
        let whole = fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let mut header = whole.clone();
        header[20] ^= 1;
        for bytes in [
            &flipped,
            &header,
            &whole[..whole.len() - 1],
            &whole[..70],
            &whole[..9],
        ] {
            fs::write(&path, bytes).unwrap();
            for subcommand in ["info", "check"] {
                let outcome = everbloom(&folder, &[subcommand, args[args.len() - 2]]);
                refused(&outcome, &[args[args.len() - 2]]);
                assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
            }
        }
        fs::write(&path, &flipped).unwrap();
        refused(
            &everbloom(&folder, &["info", args[args.len() - 2]]),
            &["is damaged", "checksum"],
        );
        // A damaged filter may be built again.
        everbloom(&folder, args).success();
    }
    refused(
        &everbloom(&folder, &["check", "empty.bloom"]),
        &["is empty"],
    );
    refused(
        &everbloom(&folder, &["check", "in"]),
        &["in is not a filter file"],
    );
    refused(&everbloom(&folder, &["info", "missing"]), &["missing"]);
    refused(&everbloom(&folder, &["info", "."]), &["is not a file"]);
}

#[test]
fn a_growing_filter_of_the_library_is_checked() {
    let folder = folder("files-growing");
    let mut filter = ScalableBloomFilter::new(100, 1e-6);
    filter.extend((0..1000).map(|number| format!("name {number}")));
    fs::write(folder.join("g.bloom"), filter.to_bytes()).unwrap();
    let found = with_input(&folder, &["check", "g.bloom"], names(990..1010));
    assert_eq!(found.success(), names(990..1000));
    let info = everbloom(&folder, &["info", "g.bloom"]).success();
    assert!(info.contains("growing, blocked"), "{info}");
    assert!(!info.contains("warning"), "{info}");
}

#[test]
fn merged_filters_find_what_each_of_them_finds() {
    let (one, two) = (names(0..500), names(400..1000));
    let folder = folder_with(
        "files-merge",
        &[("one", one.as_bytes()), ("two", two.as_bytes())],
    );
    let build = ["build", "-q", "-c", "1000", "-e", "1e-9", "a.bloom", "one"];
    everbloom(&folder, &build).success();
    everbloom(
        &folder,
        &["build", "-q", "--like", "a.bloom", "b.bloom", "two"],
    )
    .success();
    let found = |file: &str| with_input(&folder, &["check", file], names(0..2000)).success();
    everbloom(&folder, &["merge", "all.bloom", "a.bloom", "b.bloom"]).success();
    assert_eq!(found("all.bloom"), names(0..1000));
    // The output may be among the inputs.
    everbloom(&folder, &["merge", "a.bloom", "a.bloom", "b.bloom"]).success();
    assert_eq!(found("a.bloom"), names(0..1000));

    let seeded = ["build", "-q", "-c", "1000", "-e", "1e-9", "--seed", "7"];
    for (file, input) in [("c.bloom", "one"), ("d.bloom", "two")] {
        everbloom(&folder, &[&seeded[..], &[file, input]].concat()).success();
    }
    everbloom(&folder, &["merge", "e.bloom", "c.bloom", "d.bloom"]).success();
    assert_eq!(found("e.bloom"), names(0..1000));
}

#[test]
fn only_filters_that_are_alike_are_merged() {
    let folder = folder_with("files-unlike", &[("in", b"a\n")]);
    let build = |file: &str, args: &[&str]| {
        let args = [&["build", "-q", file, "in"], args].concat();
        everbloom(&folder, &args).success();
    };
    build("a.bloom", &[]);
    build("b.bloom", &[]);
    build("classic.bloom", &["--layout", "classic"]);
    build("stricter.bloom", &["--layout", "classic", "-e", "1e-6"]);
    build("growing.bloom", &["--growing", "--layout", "classic"]);
    let before = fs::read(folder.join("a.bloom")).unwrap();
    let merge = |files: &[&str]| everbloom(&folder, &[&["merge", "a.bloom"], files].concat());
    let keys = merge(&["a.bloom", "b.bloom"]);
    refused(&keys, &["a.bloom and b.bloom", "different keys", "--like"]);
    refused(
        &merge(&["b.bloom", "classic.bloom"]),
        &["different layouts"],
    );
    refused(
        &merge(&["classic.bloom", "stricter.bloom"]),
        &["different error rates"],
    );
    refused(
        &merge(&["classic.bloom", "growing.bloom"]),
        &["one of them grows"],
    );
    refused(&merge(&["b.bloom", "missing"]), &["missing"]);
    assert!(fs::read(folder.join("a.bloom")).unwrap() == before);
    refused(
        &everbloom(
            &folder,
            &[
                "build", "--layout", "classic", "--seed", "7", "x.bloom", "in",
            ],
        ),
        &["--seed"],
    );
    assert!(!folder.join("x.bloom").exists());
}

/// What the two find, and how many others of the same number.
fn found_after_merge(folder: &Path, file: &str, members: u32) -> (String, usize) {
    let found = with_input(folder, &["check", file], names(0..members)).success();
    let others = with_input(folder, &["check", "-c", file], names(members..2 * members));
    (found, others.stdout.trim().parse().unwrap())
}

/// Two states that two machines kept.
#[test]
fn filters_that_grew_are_merged() {
    let (one, two) = (names(0..20_000), names(20_000..40_000));
    let folder = folder_with(
        "files-merge-grown",
        &[("one", one.as_bytes()), ("two", two.as_bytes())],
    );
    for layout in ["blocked", "classic"] {
        let build = ["build", "-q", "-g", "-c", "1000", "-e", "1%", "--layout"];
        everbloom(&folder, &[&build[..], &[layout, "a.bloom", "one"]].concat()).success();
        everbloom(&folder, &["build", "--like", "a.bloom", "b.bloom", "two"]).success();
        let again = ["dedup", "-q", "--state", "b.bloom", "two"];
        assert_eq!(everbloom(&folder, &again).success(), "");

        let merge = ["merge", "all.bloom", "a.bloom", "b.bloom"];
        let merged = everbloom(&folder, &[&merge[..], &["-e", "2%"]].concat());
        assert!(
            merged.stderr.contains("of other records it finds"),
            "{merged:?}"
        );
        assert_eq!(merged.success(), "");
        let (found, others) = found_after_merge(&folder, "all.bloom", 40_000);
        assert!(found == [one.as_str(), &two].concat());
        assert!(others < 1000, "{others}");
        // It is a state as any other.
        let more = ["dedup", "--state", "all.bloom", "--count"];
        let more = with_input(&folder, &more, names(39_000..42_000)).success();
        assert!(more.trim().parse::<u32>().unwrap() > 1900, "{more}");

        // Whoever merges a file with its copy gets that file.
        let same = ["merge", "-q", "same.bloom", "a.bloom", "a.bloom"];
        let same = everbloom(&folder, &same);
        assert_eq!((same.stderr.as_str(), same.stdout.as_str()), ("", ""));
        let size = |file: &str| fs::metadata(folder.join(file)).unwrap().len();
        assert_eq!(size("same.bloom"), size("a.bloom"));
    }
}

#[test]
fn a_merge_keeps_the_error_rate_that_was_asked_for() {
    let (one, two) = (names(0..1000), names(1000..2000));
    let folder = folder_with(
        "files-merge-rate",
        &[("one", one.as_bytes()), ("two", two.as_bytes())],
    );
    for layout in ["blocked", "classic"] {
        // Both are full: side by side they err twice as often.
        let build = ["build", "-q", "-e", "5%", "--layout", layout];
        let seed: &[&str] = match layout {
            "blocked" => &["--seed", "7"],
            _ => &[],
        };
        for (file, input) in [("a.bloom", "one"), ("b.bloom", "two")] {
            everbloom(&folder, &[&build, seed, &[file, input]].concat()).success();
        }
        let merge = ["merge", "all.bloom", "a.bloom", "b.bloom"];
        let over = everbloom(&folder, &merge);
        refused(&over, &["% of other records", "5.0 %", "--error-rate"]);
        assert!(!folder.join("all.bloom").exists());
        // The rate that the message names is enough.
        let (_, advice) = over.stderr.split_once("give --error-rate ").unwrap();
        let rate = advice.split(' ').next().unwrap();
        everbloom(&folder, &[&merge[..], &["--error-rate", rate]].concat()).success();
        let (found, others) = found_after_merge(&folder, "all.bloom", 2000);
        assert!(found == [one.as_str(), &two].concat());
        assert!((100..300).contains(&others), "{others}");
        let info = everbloom(&folder, &["info", "all.bloom"]).success();
        assert!(
            info.contains("fixed, ") && info.contains("warning"),
            "{info}"
        );
        let too_low = everbloom(&folder, &[&merge[..], &["-e", "1%"]].concat());
        refused(&too_low, &["--error-rate allows 1.0 %"]);
        fs::remove_file(folder.join("all.bloom")).unwrap();
    }
}

/// They have room, so that one of the same size takes all, and programs read it as before.
#[test]
fn filters_with_room_become_one_of_the_same_size() {
    let (one, two) = (names(0..800), names(500..900));
    let folder = folder_with(
        "files-merge-room",
        &[("one", one.as_bytes()), ("two", two.as_bytes())],
    );
    let build = ["build", "-q", "-c", "1000", "a.bloom", "one"];
    everbloom(&folder, &build).success();
    everbloom(
        &folder,
        &["build", "-q", "--like", "a.bloom", "b.bloom", "two"],
    )
    .success();
    everbloom(&folder, &["merge", "all.bloom", "a.bloom", "b.bloom"]).success();
    let merged = BloomFilter::from_bytes(&fs::read(folder.join("all.bloom")).unwrap()).unwrap();
    assert_eq!(merged.capacity(), 1000);
    assert!((870..=930).contains(&merged.len()), "{}", merged.len());
    assert_eq!(
        found_after_merge(&folder, "all.bloom", 900).0,
        names(0..900)
    );
}

#[test]
fn a_filter_that_is_too_large_is_shrunk() {
    let members = names(0..1000);
    let folder = folder_with("files-shrink", &[("in", members.as_bytes())]);
    let build = ["build", "-q", "-c", "100000", "-e", "1e-6", "f.bloom", "in"];
    everbloom(&folder, &build).success();
    let size = || fs::metadata(folder.join("f.bloom")).unwrap().len();
    let before = size();
    refused(
        &everbloom(&folder, &["shrink", "-c", "500", "f.bloom"]),
        &["1000 items", "--capacity 1000"],
    );
    assert_eq!(size(), before);
    everbloom(&folder, &["shrink", "--capacity", "2K", "f.bloom"]).success();
    assert!(size() * 40 < before, "{} {before}", size());
    let found = with_input(&folder, &["check", "f.bloom"], members.clone());
    assert_eq!(found.success(), members);
    let others = with_input(&folder, &["check", "-c", "f.bloom"], names(1000..20_000));
    assert_eq!(others.stdout, "0\n");

    let classic = ["build", "-q", "--layout", "classic", "c.bloom", "in"];
    everbloom(&folder, &classic).success();
    refused(
        &everbloom(&folder, &["shrink", "c.bloom"]),
        &["classic layout", "--capacity"],
    );
    refused(&everbloom(&folder, &["shrink", "missing"]), &["missing"]);
    assert!(!folder.join("missing").exists());
}

/// The pieces of a folder, in order.
fn pieces(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    let pieces = names.into_iter();
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
        let before = fs::read(folder.join("f.bloom")).unwrap();
        everbloom(&folder, &["convert", "f.bloom", "pieces"]).success();
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
        let again = ["convert", "pieces", "g.bloom"];
        everbloom(&folder, &again).success();
        assert!(fs::read(folder.join("g.bloom")).unwrap() == before);

        let taken = everbloom(&folder, &["convert", "f.bloom", "pieces"]);
        refused(&taken, &["pieces is there already"]);
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
    let fixed = everbloom(&folder, &["convert", "fixed.bloom", "pieces"]);
    refused(&fixed, &["fixed.bloom", "--growing"]);
    assert!(!folder.join("pieces").exists());
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
    everbloom(&folder, &["convert", "--key", "seen", rdb, "f.bloom"]).success();
    let found = with_input(&folder, &["check", "f.bloom"], "c\nb\na\n");
    assert_eq!(found.success(), "b\na\n");
    let convert =
        |words: &[&str]| everbloom(&folder, &[&["convert"], words, &["x.bloom"]].concat());
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
