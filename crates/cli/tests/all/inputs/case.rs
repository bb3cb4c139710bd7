//! `--ignore-case`: capital and small letters are equal, and a filter remembers it.

use super::*;
use crate::support::Server;

const LIST: &str = "Admin\nSTRASSE\nCaf\u{e9}\n\u{3a3}\u{3c3}\u{3c2}\n";
/// Each of these is one of the list in other letters, and `straße` is none: folding is simple.
const OTHERS: &str = "ADMIN\nstrasse\nCAF\u{c9}\n\u{3c3}\u{3a3}\u{3a3}\n";

#[test]
fn a_filter_folds_without_being_told() {
    let here = folder("case-check");
    let build = [
        "build",
        "-q",
        "-g",
        "-e",
        "1e-9",
        "--ignore-case",
        "f.bloom",
    ];
    with_input(&here, &build, LIST).success();
    let check = |input: &str| with_input(&here, &["check", "f.bloom"], input).success();
    assert_eq!(check(LIST), LIST);
    assert_eq!(check(OTHERS), OTHERS);
    let with = with_input(&here, &["check", "-i", "f.bloom"], OTHERS).success();
    assert_eq!(with, OTHERS);
    let none = with_input(&here, &["check", "f.bloom"], "stra\u{df}e\n");
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    // What is added later is folded, too.
    with_input(&here, &["build", "-q", "--append", "f.bloom"], "Root\n").success();
    assert_eq!(check("rOOT\n"), "rOOT\n");
    everbloom(
        &here,
        &["build", "-q", "--like", "f.bloom", "g.bloom", "/dev/null"],
    )
    .success();
    with_input(&here, &["build", "-q", "--append", "g.bloom"], "Root\n").success();
    everbloom(&here, &["merge", "-q", "h.bloom", "f.bloom", "g.bloom"]).success();
    let merged = with_input(&here, &["check", "h.bloom"], "ADMIN\nROOT\n").success();
    assert_eq!(merged, "ADMIN\nROOT\n");
    let info = everbloom(&here, &["info", "h.bloom"]).success();
    assert!(
        info.contains("\ncompared    whole lines, ignoring case\n"),
        "{info}"
    );
    let json = everbloom(&here, &["info", "--json", "h.bloom"]).success();
    assert!(json.contains("\"ignores_case\": true"), "{json}");
}

/// Its items have capitals as they were, so some would never be found.
#[test]
fn a_filter_that_does_not_fold_is_not_asked_to() {
    let here = folder("case-refused");
    with_input(&here, &["build", "-q", "-g", "f.bloom"], LIST).success();
    let mut old = everbloom::ScalableBloomFilter::new(1000, 0.01);
    old.insert("Root");
    fs::write(here.join("old.bloom"), old.to_bytes()).unwrap();
    with_input(
        &here,
        &["build", "-q", "--format", "dcso", "-c", "5", "d.bloom"],
        LIST,
    )
    .success();
    let f = ("f.bloom", "f.bloom was made without --ignore-case");
    let old = ("old.bloom", "old.bloom remembers nothing");
    let d = ("d.bloom", "d.bloom remembers nothing");
    let unkept = ("d.bloom", "DCSO's bloom cannot remember --ignore-case");
    for (command, refusals) in [
        (&["check"][..], [f, old, d]),
        (&["build", "--append"], [f, old, unkept]),
        (&["dedup", "--state"], [f, old, f]),
        (&["build", "x.bloom", "--like"], [f, old, f]),
    ] {
        for (filter, why) in refusals {
            let args = [command, &[filter, "-i"]].concat();
            refused(&with_input(&here, &args, LIST), &[why, "leave"]);
            if filter == "f.bloom" || why == unkept.1 {
                let args = [&args[..], &["--any-selection"]].concat();
                refused(&with_input(&here, &args, LIST), &[why]);
            }
        }
    }
    let dcso = ["build", "-i", "--format", "dcso", "-c", "5", "e.bloom"];
    refused(&with_input(&here, &dcso, LIST), &["--ignore-case", "DCSO"]);
    let like = ["build", "-i", "--like", "f.bloom", "-c", "5", "e.bloom"];
    refused(&with_input(&here, &like, LIST), &[]);
    let like = ["build", "-i", "--like", "f.bloom", "e.bloom"];
    refused(
        &with_input(&here, &like, LIST),
        &["leave --ignore-case off"],
    );
    with_input(&here, &["build", "-qi", "-g", "i.bloom"], LIST).success();
    let merge = everbloom(&here, &["merge", "m.bloom", "i.bloom", "f.bloom"]);
    refused(&merge, &["ignoring case", "f.bloom"]);
    let merge = everbloom(&here, &["merge", "m.bloom", "old.bloom", "i.bloom"]);
    refused(&merge, &["ignoring case", "old.bloom"]);
}

#[test]
fn dedup_takes_letters_for_equal() {
    let here = folder("case-dedup");
    let both = format!("{LIST}{OTHERS}");
    for more in [
        &[][..],
        &["--state", "s.bloom"],
        &["--state", "t.bloom", "--seed", "7"],
    ] {
        let dedup = [&["dedup", "-q", "-e", "1e-9"], more].concat();
        let first = with_input(&here, &[&dedup[..], &["-i"]].concat(), &*both);
        assert_eq!(first.success(), LIST, "{more:?}");
        if !more.is_empty() {
            // The state knows.
            assert_eq!(with_input(&here, &dedup, &*both).success(), "", "{more:?}");
        }
    }
    assert_eq!(with_input(&here, &["dedup", "-q"], &*both).success(), both);
}

/// Bytes that are no UTF-8 stay, the letters around them do not.
#[test]
fn other_bytes_are_compared_as_they_are() {
    let here = folder("case-bytes");
    let input = b"CAF\xc9\ncaf\xc9\ncaf\xe9\nx\xc9\xc3\x89\nX\xc9\xc3\xa9\n";
    let out = run_bytes(&here, &["dedup", "-q", "-i"], input);
    assert_eq!(out, b"CAF\xc9\ncaf\xe9\nx\xc9\xc3\x89\n");
}

fn run_bytes(here: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    fs::write(here.join("in"), input).unwrap();
    let mut command = Command::new(EVERBLOOM);
    let output = command
        .args(args)
        .arg("in")
        .current_dir(here)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// Each part is folded before they are joined: its length in the key is the one that it has then.
#[test]
fn parts_are_folded() {
    let here = folder("case-parts");
    // The Kelvin sign has three bytes, k has one.
    let input = "\u{212a}\tx\tB\nK\ty\tb\nk\tz\tc\n";
    let out = with_input(&here, &["dedup", "-q", "-i", "-f", "1,3"], input).success();
    assert_eq!(out, "\u{212a}\tx\tB\nk\tz\tc\n");
    let table = "\"Ann, B\",1\n\"ann, b\",2\n";
    let out = with_input(&here, &["dedup", "-q", "-i", "--csv", "-f", "1"], table).success();
    assert_eq!(out, "\"Ann, B\",1\n");
    let table = "\u{212a},1\nk,1\n";
    let out = with_input(&here, &["dedup", "-q", "-i", "--csv"], table).success();
    assert_eq!(out, "\u{212a},1\n");
    let input = "{\"a\":\"\\u00c9\",\"b\":1}\n{\"a\":\"\u{e9}\",\"b\":2}\n";
    let out = with_input(&here, &["dedup", "-q", "-i", "--json", ".a"], input).success();
    assert_eq!(out, "{\"a\":\"\\u00c9\",\"b\":1}\n");
}

/// What cannot remember it would answer wrongly to names in capitals.
#[test]
fn what_cannot_remember_it_is_refused() {
    let here = folder("case-convert");
    with_input(&here, &["build", "-qi", "-g", "f.bloom"], LIST).success();
    let convert = everbloom(&here, &["convert", "pieces", "f.bloom"]);
    refused(&convert, &["f.bloom", "--ignore-case", "capital"]);
    assert!(!here.join("pieces").exists());
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}#f", server.port);
    let copy = everbloom(&here, &["copy", "f.bloom", &url]);
    refused(&copy, &["f.bloom", "--ignore-case", "capital"]);
    let bytes = fs::read(here.join("f.bloom")).unwrap();
    assert_eq!(
        everbloom::ScalableBloomFilter::from_bytes(&bytes),
        Err(everbloom::bytes::BytesError::CriticalNote)
    );
}

/// Nobody knows how its items were put in, unless who runs it does.
#[test]
fn a_list_that_remembers_nothing_is_taken_for_small_letters_on_request() {
    let here = folder("case-known");
    let mut old = everbloom::ScalableBloomFilter::new(1000, 1e-9);
    old.insert("admin");
    let asked = ["-q", "-i", "--any-selection"];
    for command in [&["dedup", "--state"][..], &["build", "--append"]] {
        fs::write(here.join("old.bloom"), old.to_bytes()).unwrap();
        let check = ["check", "-i", "--any-selection", "old.bloom"];
        assert_eq!(with_input(&here, &check, "ADMIN\n").success(), "ADMIN\n");
        let args = [command, &["old.bloom"], &asked].concat();
        with_input(&here, &args, "Root\n").success();
        let check = with_input(&here, &["check", "old.bloom"], "ADMIN\nROOT\nx\n");
        assert_eq!(check.success(), "ADMIN\nROOT\n", "{command:?}");
    }
}

#[test]
fn a_filter_without_items_takes_the_case_of_the_run() {
    let here = folder("case-empty");
    let empty = everbloom::ScalableBloomFilter::new(1000, 1e-9).to_bytes();
    with_input(&here, &["build", "-q", "-g", "-c", "9", "e.bloom"], "").success();
    let saved = fs::read(here.join("e.bloom")).unwrap();
    for bytes in [empty, saved] {
        for command in [
            &["dedup", "-q", "-i", "--state", "e.bloom"][..],
            &["build", "-q", "-i", "--append", "e.bloom"],
            &["build", "-q", "-i", "--like", "e.bloom", "e.bloom"],
        ] {
            fs::write(here.join("e.bloom"), &bytes).unwrap();
            let check = with_input(&here, &["check", "-i", "e.bloom"], "Root\n");
            assert_eq!(check.status.code(), Some(1), "{check:?}");
            with_input(&here, command, "Root\n").success();
            let check = with_input(&here, &["check", "e.bloom"], "ROOT\n");
            assert_eq!(check.success(), "ROOT\n", "{command:?}");
        }
    }
}
