//! Filters that other programs wrote: DCSO's `bloom`, and Guava. The library's tests keep files of
//! both, and say how they were made.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use everbloom_dev::corpus::seeds;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::{everbloom, folder_with, refused, with_input};
use crate::support::{EVERBLOOM, folder, root, run, run_with_input};

fn recorded(name: &str) -> PathBuf {
    root().join("crates/filters/tests").join(name)
}

fn dcso(name: &str) -> Vec<u8> {
    fs::read(recorded("dcso").join(name)).unwrap()
}

/// What a subcommand prints, which need not be text.
fn printed(folder: &Path, args: &[&str]) -> Vec<u8> {
    let mut command = Command::new(EVERBLOOM);
    let output = command.args(args).current_dir(folder).output().unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
    output.stdout
}

/// The first items of the tool's filters.
fn items(count: usize) -> Vec<u8> {
    let items = dcso("items.txt");
    let lines = items.split_inclusive(|byte| *byte == b'\n').take(count);
    lines.flatten().copied().collect()
}

#[test]
fn dcsos_filters_are_asked_where_they_are() {
    let folder = folder("other-dcso");
    fs::copy(recorded("dcso/items.txt"), folder.join("items")).unwrap();
    for (name, found) in [
        ("rough.bloom", "rough.found"),
        ("fine.bloom", "fine.found"),
        ("finest.bloom", "finest.found"),
        ("full.bloom", "full.found"),
        ("data.bloom", "fine.found"),
    ] {
        fs::write(folder.join(name), dcso(name)).unwrap();
        let found = dcso(found);
        assert!(
            printed(&folder, &["check", name, "items"]) == found,
            "{name}"
        );
        let others = printed(&folder, &["check", "-v", name, "items"]);
        assert_eq!(others.len() + found.len(), items(400).len(), "{name}");
    }
    // The keys of records, and records without one.
    let lines = "1,é 😀 7\n2,é 😀 399\nnone\n3,é 😀 99\n";
    let check = ["check", "-f", "2", "-d", ",", "fine.bloom"];
    let shown = with_input(&folder, &check, lines).success();
    assert_eq!(shown, "1,é 😀 7\n3,é 😀 99\n");
    let shown = with_input(&folder, &[&check[..], &["-v"]].concat(), lines).success();
    assert_eq!(shown, "2,é 😀 399\nnone\n");
}

#[test]
fn info_tells_what_is_in_another_programs_filter() {
    let folder = folder("other-info");
    for name in ["data.bloom", "full.bloom"] {
        fs::write(folder.join(name), dcso(name)).unwrap();
    }
    let text = |name| everbloom(&folder, &["info", name]).success();
    let shown = text("data.bloom");
    assert!(
        shown.starts_with("type        DCSO's bloom\nitems       100 of 100\n"),
        "{shown}"
    );
    assert!(shown.contains("data        28 bytes attached"), "{shown}");
    assert!(!shown.contains("warning"), "{shown}");
    assert!(text("full.bloom").contains("warning"));

    let json = |name| -> Value {
        let text = everbloom(&folder, &["info", "--json", name]).success();
        serde_json::from_str(&text).unwrap()
    };
    let plain = json("data.bloom");
    assert_eq!(plain["type"], "dcso");
    assert_eq!(
        (&plain["items"], &plain["capacity"]),
        (&100.into(), &100.into())
    );
    assert_eq!(plain["error_rate"], 0.001);
    assert_eq!(plain["data_bytes"], 28);
}

#[test]
fn a_filter_is_built_for_dcsos_tool() {
    let folder = folder("other-build");
    fs::write(folder.join("in"), items(100)).unwrap();
    let build = ["build", "--format", "dcso", "-e", "0.001", "f.bloom", "in"];
    let summary = everbloom(&folder, &build);
    assert!(
        summary.stderr.contains("100 records in, 100 in the filter"),
        "{summary:?}"
    );
    let bytes = || fs::read(folder.join("f.bloom")).unwrap();
    assert!(bytes() == dcso("fine.bloom"));
    // It may be replaced by one of its kind, and by no other.
    let small = ["build", "--format", "dcso", "-c", "2", "f.bloom", "in"];
    let over = everbloom(&folder, &small);
    assert!(over.stderr.contains("--capacity 100 or more"), "{over:?}");
    let small = bytes();
    let own = everbloom(&folder, &["build", "f.bloom", "in"]);
    refused(&own, &["f.bloom is a filter of DCSO's bloom", "another"]);
    everbloom(&folder, &["build", "-q", "own.bloom", "in"]).success();
    let into_own = ["build", "--format", "dcso", "own.bloom", "in"];
    refused(
        &everbloom(&folder, &into_own),
        &["own.bloom is a filter of everbloom", "another"],
    );
    for flags in [
        &["--growing"][..],
        &["--layout", "classic"],
        &["--seed", "7"],
        &["--like", "own.bloom"],
    ] {
        let args = [&["build", "--format", "dcso", "f.bloom", "in"], flags].concat();
        refused(&everbloom(&folder, &args), &["--growing", "off"]);
    }
    assert!(bytes() == small);
    refused(
        &with_input(&folder, &["build", "--format", "dcso", "g.bloom"], "a\n"),
        &["--capacity"],
    );
    assert!(!folder.join("g.bloom").exists());
}

/// Two parts, merged or appended, are the filter of all.
#[test]
fn dcsos_filters_are_merged_and_appended_to() {
    let folder = folder("other-merge");
    let (one, two) = (items(50), items(100)[items(50).len()..].to_vec());
    fs::write(folder.join("one"), &one).unwrap();
    fs::write(folder.join("two"), &two).unwrap();
    let build = [
        "build", "-q", "--format", "dcso", "-e", "0.001", "-c", "100",
    ];
    for (file, input) in [("a.bloom", "one"), ("b.bloom", "two"), ("c.bloom", "one")] {
        everbloom(&folder, &[&build[..], &[file, input]].concat()).success();
    }
    let bytes = |file: &str| fs::read(folder.join(file)).unwrap();
    everbloom(&folder, &["build", "-q", "--append", "c.bloom", "two"]).success();
    assert!(bytes("c.bloom") == dcso("fine.bloom"));
    let merged = everbloom(&folder, &["merge", "all.bloom", "a.bloom", "b.bloom"]);
    assert!(
        merged.stderr.contains("100 items in a filter for 100"),
        "{merged:?}"
    );
    assert!(bytes("all.bloom") == dcso("fine.bloom"));
    let alike = everbloom(&folder, &["info", "a.bloom", "b.bloom"]).success();
    assert!(alike.contains("\nmerge       yes; "), "{alike}");

    let other = [
        "build", "-q", "--format", "dcso", "-e", "0.001", "-c", "101",
    ];
    everbloom(&folder, &[&other[..], &["d.bloom", "two"]].concat()).success();
    let unlike = everbloom(&folder, &["merge", "all.bloom", "a.bloom", "d.bloom"]);
    refused(&unlike, &["a.bloom and d.bloom have different sizes"]);
    assert!(bytes("all.bloom") == dcso("fine.bloom"));
}

/// As the tool reads lines, which drops the carriage return of CRLF.
#[test]
fn dcsos_lines_end_with_crlf_too() {
    let lines = items(100);
    let lines = lines.split_inclusive(|byte| *byte == b'\n');
    let crlf: Vec<u8> = lines
        .flat_map(|line| [&line[..line.len() - 1], b"\r\n"].concat())
        .collect();
    let folder = folder_with("other-crlf", &[("crlf", &crlf)]);
    let build = [
        "build", "-q", "--format", "dcso", "-e", "0.001", "f.bloom", "crlf",
    ];
    everbloom(&folder, &build).success();
    assert!(fs::read(folder.join("f.bloom")).unwrap() == dcso("fine.bloom"));
    let check = |file: &str, input: &str| with_input(&folder, &["check", file], input).stdout;
    let first = "\u{e9} \u{1f600} 2";
    for line in [format!("{first}\n"), format!("{first}\r\n")] {
        assert_eq!(check("f.bloom", &line), line);
    }
}

#[test]
fn other_programs_bits_fit_no_filter_of_ours() {
    let guava = &[
        1, 7, 0, 0, 0, 1, 0x10, 0x51, 0x04, 0x98, 0x00, 0x44, 0x01, 0x26,
    ];
    let files = [
        ("d.bloom", &dcso("fine.bloom")[..]),
        ("p.bloom", &gzip(&dcso("fine.bloom"))),
        ("g.bloom", guava),
        ("in", b"a\n"),
    ];
    let folder = folder_with("other-convert", &files);
    everbloom(&folder, &["build", "-q", "own.bloom", "in"]).success();
    for (name, program) in [
        ("d.bloom", "DCSO's bloom"),
        ("p.bloom", "unpack it with gzip -dc"),
        ("g.bloom", "Guava"),
    ] {
        let before = fs::read(folder.join(name)).unwrap();
        for args in [
            &["convert", "new", name][..],
            &["merge", "new", "own.bloom", name],
            &["merge", name, "own.bloom"],
            &["shrink", name],
            &["build", "--like", name, "new", "in"],
            &["dedup", "--state", name, "in"],
        ] {
            let outcome = everbloom(&folder, args);
            refused(&outcome, &[name, program]);
            assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        }
        assert!(fs::read(folder.join(name)).unwrap() == before);
        assert!(!folder.join("new").exists());
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A filter with a number of its header changed.
fn changed(field: usize, number: u64) -> Vec<u8> {
    let mut bytes = dcso("fine.bloom");
    bytes[field * 8..field * 8 + 8].copy_from_slice(&number.to_le_bytes());
    bytes
}

#[test]
fn damaged_filters_of_dcso_are_named() {
    let whole = dcso("fine.bloom");
    let cases: [(&[u8], &str); 9] = [
        (
            &whole[..whole.len() - 1],
            "whole filter of DCSO's bloom (the filter has 232 bytes, not 231)",
        ),
        (&whole[..47], "end before the header does"),
        (&whole[..8], "end before the header does"),
        (&changed(0, 2), "version 2"),
        (&changed(1, 0), "no items"),
        (&changed(2, f64::NAN.to_bits()), "NaN is no error rate"),
        (&changed(3, u64::MAX), "hashes are none or too many"),
        (&changed(4, u64::MAX), "2305843009213694000 bytes"),
        (&gzip(&whole), "unpack it with gzip -dc"),
    ];
    let folder = folder("other-damaged");
    for (bytes, reason) in cases {
        fs::write(folder.join("p.bloom"), bytes).unwrap();
        for subcommand in ["info", "check"] {
            let outcome = with_input(&folder, &[subcommand, "p.bloom"], "");
            refused(&outcome, &["p.bloom", reason]);
            assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        }
    }
    for bytes in [&b"\x01"[..], &[1; 60]] {
        fs::write(folder.join("p.bloom"), bytes).unwrap();
        let outcome = everbloom(&folder, &["info", "p.bloom"]);
        refused(&outcome, &["p.bloom is not a filter file"]);
    }
}

/// A file of 64 GB, nearly all of it a hole, is asked in a process that may have 2 GB.
#[test]
fn a_large_filter_takes_no_memory() {
    let folder = folder("other-large");
    let large = File::create(folder.join("large.bloom")).unwrap();
    large.write_all_at(&changed(4, 1 << 39), 0).unwrap();
    large.set_len(48 + (1 << 36)).unwrap();
    let mut shell = Command::new("sh");
    let check = format!("ulimit -v 2000000 && exec {EVERBLOOM} check -vc large.bloom");
    shell.args(["-c", &check]).current_dir(&folder);
    let lines: String = (0..2000).map(|number| format!("{number}\n")).collect();
    let counted = run_with_input(&mut shell, move |stdin| stdin.write_all(lines.as_bytes()));
    assert_eq!(counted.success(), "2000\n");
}

/// Whatever is in a file, `info` prints what it is, or one sentence.
#[test]
fn the_fuzzers_seeds_as_files() {
    let folder = folder("other-seeds");
    for (name, seed) in [seeds("dcso"), seeds("state")].concat() {
        fs::write(folder.join("f.bloom"), seed).unwrap();
        let outcome = everbloom(&folder, &["info", "f.bloom"]);
        match outcome.status.code() {
            Some(0) => assert!(outcome.stdout.starts_with("type "), "{name}: {outcome:?}"),
            _ => refused(&outcome, &["f.bloom"]),
        }
    }
}

/// The i-th item of a recorded filter of Guava, as a line.
fn line(funnel: &str, i: u32) -> String {
    match funnel {
        "integer" => i.wrapping_mul(0x9E37_79B9).cast_signed().to_string(),
        "long" => u64::from(i)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .cast_signed()
            .to_string(),
        _ => format!("é 😀 {i}"),
    }
}

#[test]
fn guavas_filters_are_asked_as_their_funnel_says() {
    let filters = fs::read_to_string(recorded("guava/filters.json")).unwrap();
    let filters: Value = serde_json::from_str(&filters).unwrap();
    let folder = folder("other-guava");
    let mut asked = 0;
    for recorded in filters.as_array().unwrap() {
        let funnel = recorded["funnel"].as_str().unwrap();
        if !["utf8", "chars", "integer", "long"].contains(&funnel) {
            continue;
        }
        let hex = recorded["bytes"].as_str().unwrap();
        let bytes = (0..hex.len()).step_by(2);
        let bytes: Vec<u8> = bytes
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
        fs::write(folder.join("f.guava"), &bytes).unwrap();
        let answers = recorded["answers"].as_str().unwrap();
        let lines = (0..)
            .zip(answers.chars())
            .map(|(i, answer)| (line(funnel, i), answer));
        let (mut all, mut expected) = (String::new(), String::new());
        for (line, answer) in lines {
            all += &format!("{line}\n");
            if answer == '1' {
                expected += &format!("{line}\n");
            }
        }
        let args = ["check", "--funnel", funnel, "f.guava"];
        assert_eq!(with_input(&folder, &args, all.clone()).success(), expected);
        if funnel == "utf8" {
            assert_eq!(
                with_input(&folder, &["check", "f.guava"], all).success(),
                expected
            );
        }
        let info = everbloom(&folder, &["info", "f.guava"]).success();
        assert!(
            info.starts_with("type        Guava, MURMUR128_MITZ_"),
            "{info}"
        );
        let about = format!("items       about {}\n", recorded["count"]);
        assert!(info.contains(&about), "{info}");
        // What is no number is in no filter of numbers.
        if funnel == "long" {
            let none = with_input(&folder, &args, "\nx\n99999999999999999999\n");
            assert_eq!(none.status.code(), Some(1), "{none:?}");
        }
        for bytes in [&bytes[..bytes.len() - 1], &[&bytes[..], b"x"].concat()] {
            fs::write(folder.join("f.guava"), bytes).unwrap();
            let outcome = everbloom(&folder, &["info", "f.guava"]);
            refused(&outcome, &["f.guava is not a filter file"]);
        }
        asked += 1;
    }
    assert_eq!(asked, 8);
}

#[test]
fn a_funnel_is_guavas() {
    let files = [("d.bloom", &dcso("fine.bloom")[..]), ("in", b"a\n")];
    let folder = folder_with("other-funnel", &files);
    everbloom(&folder, &["build", "-q", "own.bloom", "in"]).success();
    for name in ["d.bloom", "own.bloom"] {
        let mut command = Command::new(EVERBLOOM);
        command.args(["check", "--funnel", "utf8", name, "in"]);
        let outcome = run(command.current_dir(&folder));
        refused(&outcome, &[name, "leave --funnel off"]);
    }
}
