//! `build`, and `check` and `info` of what it built.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use everbloom::{BloomFilter, CuckooFilter, ScalableBloomFilter};
use everbloom_dev::wait_for;

use super::{everbloom, folder_with, left, names, refused, with_input};
use crate::support::{EVERBLOOM, folder, root, run};

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
        let _ = fs::remove_file(folder.join("f.bloom"));
        let args = [&["build", "-e", "1e-9", "f.bloom", "in"], kind].concat();
        let built = everbloom(&folder, &args);
        assert!(
            built
                .stderr
                .contains("20 000 records in, 20 000 in the filter"),
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
    // The values are of one kind, though each table has them in another place.
    let check = [
        "check",
        "--any-selection",
        "-f",
        "2",
        "-d",
        ",",
        "json.bloom",
    ];
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

/// Lines that `dedup` has seen are nowhere else.
#[test]
fn a_state_of_dedup_is_not_replaced_by_a_filter_of_fixed_size() {
    let folder = folder_with("files-kinds", &[("in", b"a\nb\n"), ("one", b"c\n")]);
    everbloom(&folder, &["dedup", "-q", "--state", "s.bloom", "in"]).success();
    everbloom(&folder, &["build", "-q", "f.bloom", "in"]).success();
    let state = fs::read(folder.join("s.bloom")).unwrap();
    let fixed = fs::read(folder.join("f.bloom")).unwrap();
    for args in [
        &["build", "s.bloom", "one"][..],
        &["build", "--like", "f.bloom", "s.bloom", "one"],
    ] {
        refused(&everbloom(&folder, args), &["s.bloom", "grows"]);
    }
    for args in [
        &["build", "--growing", "f.bloom", "one"][..],
        &["build", "--like", "s.bloom", "f.bloom", "one"],
    ] {
        refused(&everbloom(&folder, args), &["f.bloom", "fixed size"]);
    }
    assert!(fs::read(folder.join("s.bloom")).unwrap() == state);
    assert!(fs::read(folder.join("f.bloom")).unwrap() == fixed);
    everbloom(&folder, &["build", "-q", "--growing", "s.bloom", "one"]).success();
    everbloom(&folder, &["build", "-q", "f.bloom", "one"]).success();
}

/// Items can be removed from a cuckoo filter, and what a window forgets depends on when it was
/// filled.
#[test]
fn neither_a_cuckoo_filter_nor_a_window_is_replaced_by_another_filter() {
    let folder = folder_with("files-sorts", &[("in", b"a\nb\n")]);
    let mut cuckoo = CuckooFilter::new(100);
    cuckoo.insert("c").unwrap();
    fs::write(folder.join("c.bloom"), cuckoo.to_bytes()).unwrap();
    let dedup = ["dedup", "-q", "--window", "30d", "--state", "w.bloom", "in"];
    everbloom(&folder, &dedup).success();
    everbloom(&folder, &["build", "-q", "--growing", "g.bloom", "in"]).success();
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let before = ["c.bloom", "w.bloom", "g.bloom"].map(read);
    for (args, why) in [
        (&["c.bloom"][..], "c.bloom is a cuckoo filter"),
        (&["--growing", "c.bloom"], "c.bloom is a cuckoo filter"),
        (
            &["--like", "w.bloom", "c.bloom"],
            "c.bloom is a cuckoo filter",
        ),
        (&["w.bloom"], "w.bloom is a filter that forgets"),
        (
            &["--growing", "w.bloom"],
            "w.bloom is a filter that forgets",
        ),
        (
            &["--like", "w.bloom", "g.bloom"],
            "g.bloom is a filter that grows",
        ),
    ] {
        let built = everbloom(&folder, &[&["build"], args, &["in"]].concat());
        refused(&built, &[why, "name another file"]);
    }
    assert!(["c.bloom", "w.bloom", "g.bloom"].map(read) == before);

    let like = ["build", "-q", "--like", "w.bloom", "v.bloom"];
    everbloom(&folder, &[&like[..], &["in"]].concat()).success();
    // Also over a file that has a window.
    let over = with_input(&folder, &like, "b\nd\n");
    assert_eq!(over.success(), "");
    let found = with_input(&folder, &["check", "v.bloom"], "a\nb\nc\nd\n");
    assert_eq!(found.success(), "b\nd\n");
    let info = everbloom(&folder, &["info", "v.bloom"]).success();
    assert!(
        info.contains("windowed") && info.contains("30 days"),
        "{info}"
    );
}

/// A flipped bit in the header may make another sort of a filter.
#[test]
fn a_filter_with_a_damaged_header_is_not_replaced() {
    let folder = folder_with("files-headers", &[("in", b"a\nb\n")]);
    let cuckoo = CuckooFilter::new(100).to_bytes();
    let dedup = ["dedup", "-q", "--window", "30d", "--state", "w.bloom", "in"];
    everbloom(&folder, &dedup).success();
    everbloom(&folder, &["build", "-q", "--growing", "g.bloom", "in"]).success();
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let window = read("w.bloom");
    // A note of 64 bytes is in front of the window. Without the bit of its option it is a filter
    // that grows, and with another bit in its kind it has a fixed size, or is a cuckoo filter.
    for (whole, at, bit) in [
        (&window, 64 + 12, 16),
        (&window, 64 + 10, 3),
        (&window, 64 + 10, 1),
        (&cuckoo, 10, 2),
        (&cuckoo, 10, 1),
        (&cuckoo, 63, 1),
    ] {
        let mut flipped = whole.clone();
        flipped[at] ^= bit;
        fs::write(folder.join("x.bloom"), &flipped).unwrap();
        for args in [
            &["build", "--growing", "x.bloom", "in"][..],
            &["build", "x.bloom", "in"],
            &["build", "--like", "w.bloom", "x.bloom", "in"],
            &["merge", "x.bloom", "g.bloom"],
        ] {
            let outcome = everbloom(&folder, args);
            refused(&outcome, &["x.bloom is damaged", "what sort of filter"]);
        }
        assert!(read("x.bloom") == flipped, "{at}");
    }
}

/// A damaged bit array is built again. Old versions have one checksum for all.
#[test]
fn a_filter_with_damaged_bits_is_replaced_by_its_sort() {
    let folder = folder_with("files-bits", &[("in", b"a\nb\n")]);
    let path = folder.join("x.bloom");
    for (file, at, is_old) in [
        (
            "crates/filters/tests/bytes/3-scalable-blocked.bin",
            300,
            false,
        ),
        ("python/tests/golden/scalable-blocked.bloom", 10, true),
        ("python/tests/golden/scalable-classic.bloom", 10, true),
        ("python/tests/golden/scalable-classic.bloom", 400, true),
    ] {
        let whole = fs::read(root().join(file)).unwrap();
        let mut damaged = whole.clone();
        damaged[at] ^= 3;
        let build = |before: &[u8], options: &[&str]| {
            fs::write(&path, before).unwrap();
            let args = [&["build", "-q", "x.bloom", "in"], options].concat();
            let outcome = everbloom(&folder, &args);
            let is_replaced = fs::read(&path).unwrap() != before;
            assert_eq!(is_replaced, outcome.status.success(), "{file}");
            outcome
        };
        refused(&build(&whole, &[]), &["x.bloom is a filter that grows"]);
        build(&whole, &["--growing"]).success();
        let [fixed, growing] = [&[][..], &["--growing"]].map(|options| build(&damaged, options));
        if is_old {
            refused(&fixed, &["x.bloom is damaged"]);
            refused(&growing, &["x.bloom is damaged"]);
        } else {
            refused(&fixed, &["x.bloom is a filter that grows"]);
            growing.success();
        }
    }
}

/// The new file is written beside the old one, under a name that is nobody's.
#[test]
fn files_beside_the_filter_stay() {
    let folder = folder_with("files-beside", &[("banned.new", b"a\nb\n")]);
    let all = || {
        let entries = fs::read_dir(&folder).unwrap();
        let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names
    };
    for _ in 0..2 {
        everbloom(&folder, &["build", "-q", "banned", "banned.new"]).success();
        assert_eq!(all(), ["banned", "banned.new"]);
    }
    assert_eq!(fs::read(folder.join("banned.new")).unwrap(), b"a\nb\n");
    let found = everbloom(&folder, &["check", "banned", "banned.new"]);
    assert_eq!(found.success(), "a\nb\n");

    // The output of a run may have any name, too.
    let output = fs::File::create(folder.join("seen.new")).unwrap();
    let mut dedup = Command::new(EVERBLOOM);
    dedup.args(["dedup", "-q", "--state", "seen", "banned.new"]);
    dedup.current_dir(&folder).stdout(output);
    assert!(dedup.status().unwrap().success());
    assert_eq!(fs::read(folder.join("seen.new")).unwrap(), b"a\nb\n");
    let four = ["banned", "banned.new", "seen", "seen.new"];
    assert_eq!(all(), four);
    refused(
        &everbloom(&folder, &["build", "banned", "banned.new", "missing"]),
        &["missing"],
    );
    refused(&everbloom(&folder, &["build", "more", "missing"]), &[]);
    assert_eq!(all(), four);
    // What a run that was killed has left is overwritten.
    fs::write(folder.join(".banned.everbloom-new"), "half").unwrap();
    everbloom(&folder, &["build", "-q", "banned", "seen.new"]).success();
    assert_eq!(all(), four);
}

#[test]
fn records_are_appended_to_a_filter_that_is_there() {
    let (one, two) = (names(0..500), names(500..1000));
    let files = [("one", one.as_bytes()), ("two", two.as_bytes())];
    let folder = folder_with("files-append", &files);
    let _ = fs::remove_file(folder.join("w.bloom"));
    let append = |file: &str| everbloom(&folder, &["build", "--append", file, "two"]);
    let kinds: [(&str, &[&str]); 4] = [
        ("f.bloom", &["build", "-q", "-c", "1000", "-e", "1e-9"]),
        (
            "c.bloom",
            &[
                "build", "-q", "-c", "1000", "-e", "1e-9", "--layout", "classic",
            ],
        ),
        (
            "g.bloom",
            &["build", "-q", "-c", "100", "-e", "1e-9", "--growing"],
        ),
        (
            "w.bloom",
            &[
                "dedup", "-q", "-c", "1000", "-e", "1e-9", "--window", "7d", "--state",
            ],
        ),
    ];
    for (file, make) in kinds {
        everbloom(&folder, &[make, &[file, "one"]].concat());
        let appended = append(file);
        let summary = "500 records in, 1 000 in the filter; the file has ";
        assert!(appended.stderr.contains(summary), "{appended:?}");
        // As many as `info` says.
        let info = everbloom(&folder, &["info", file]).success();
        let (_, bytes) = info.split_once("\nfile ").unwrap();
        let bytes = bytes.lines().next().unwrap().trim();
        let told = format!("the file has {bytes}\n");
        assert!(appended.stderr.contains(&told), "{appended:?}\n{info}");
        assert!(!appended.stderr.contains("replaced"), "{appended:?}");
        let found = with_input(&folder, &["check", file], names(0..2000));
        assert_eq!(found.success(), names(0..1000));
    }
    let again = everbloom(&folder, &["build", "f.bloom", "one"]);
    let told = "f.bloom had another filter, which is replaced";
    assert!(again.stderr.contains(told), "{again:?}");
    refused(&append("none.bloom"), &["there is no filter none.bloom"]);
    assert!(!folder.join("none.bloom").exists());
    refused(&append("one"), &["one is not a filter file"]);
    let larger = ["build", "--append", "-c", "5", "f.bloom", "two"];
    assert_eq!(everbloom(&folder, &larger).status.code(), Some(2));
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

/// More than there are addresses for.
#[test]
fn large_numbers_in_errors_are_in_groups() {
    let folder = folder_with("files-large", &[("in", b"a\n")]);
    refused(
        &everbloom(&folder, &["build", "-c", "99999999999999", "x.bloom", "in"]),
        &["99 999 999 999 999 records: there is no memory for its 275 757"],
    );
}

#[test]
fn info_shows_a_window_and_whether_two_files_can_be_merged() {
    let folder = folder_with("files-info", &[("in", b"a\n")]);
    let _ = fs::remove_file(folder.join("w.bloom"));
    let dedup = ["dedup", "-q", "-c", "500", "--window", "30d", "--state"];
    everbloom(&folder, &[&dedup[..], &["w.bloom", "in"]].concat()).success();
    let info = everbloom(&folder, &["info", "w.bloom"]).success();
    for words in [
        "windowed, blocked",
        "30 days, for 500 items",
        "1 of at most 5",
        "items       1 of 125, in all generations",
    ] {
        assert!(info.contains(words), "{info}");
    }
    let json = everbloom(&folder, &["info", "--json", "w.bloom"]).success();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["window_ticks"], 2_592_000_000_u64);
    assert_eq!(json["window_capacity"], 500);

    for (file, seed) in [("a.bloom", "1"), ("b.bloom", "1"), ("c.bloom", "2")] {
        everbloom(&folder, &["build", "-q", "--seed", seed, file, "in"]).success();
    }
    let alike = everbloom(&folder, &["info", "a.bloom", "b.bloom"]).success();
    assert!(alike.contains("\nmerge       yes; "), "{alike}");
    for (other, why) in [
        ("c.bloom", "different keys"),
        ("w.bloom", "different windows"),
    ] {
        let unlike = everbloom(&folder, &["info", "a.bloom", other]);
        assert_eq!(unlike.status.code(), Some(1), "{unlike:?}");
        let line = format!("\nmerge       no: a.bloom and {other} ");
        assert!(unlike.stdout.contains(&line), "{unlike:?}");
        assert!(unlike.stdout.contains(why), "{unlike:?}");
    }
    let whole = fs::read(folder.join("b.bloom")).unwrap();
    fs::write(folder.join("cut.bloom"), &whole[..whole.len() - 1]).unwrap();
    for (other, why) in [
        ("in", "is not a filter file"),
        ("missing", "cannot open missing"),
        ("cut.bloom", "is damaged"),
    ] {
        let outcome = everbloom(&folder, &["info", "a.bloom", other]);
        refused(&outcome, &[other, why]);
    }
}
