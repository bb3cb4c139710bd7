//! What a filter file remembers of the records in it: another part of them is refused.

use super::*;
use everbloom::{BloomFilter, ScalableBloomFilter};

const TABLE: &str = "ann,ann@example.org\nbob,bob@example.org\n";
const LINES: &str = "{\"a\":{\"b c\":\"x\"}}\n";

/// Options, as what they select is named, and an input.
const SELECTIONS: [(&[&str], &str, &str); 13] = [
    (&[], "whole lines", TABLE),
    (&["-0"], "whole records that end with NUL", "a\0b\0"),
    (&["-f", "2", "-d", ","], "--field 2 -d ,", TABLE),
    (&["-f", "1", "-d", ","], "--field 1 -d ,", TABLE),
    (&["-f", "1,2", "-d", ","], "--field 1,2 -d ,", TABLE),
    (&["-f", "1", "-d", ", "], "--field 1 -d ', '", TABLE),
    (&["-f", "1"], "--field 1;", TABLE),
    (&["--csv"], "--csv;", TABLE),
    (&["--csv", "-f", "2"], "--csv --field 2;", TABLE),
    (
        &["--csv", "-f", "2", "-d", "@"],
        "--csv --field 2 -d @",
        TABLE,
    ),
    (
        &["--csv", "--header", "-f", "\"b c\",1"],
        "--csv --header --field 'b c,1'",
        "a,b c\n1,2\n",
    ),
    (&["-f", "1", "-0"], "--field 1 -0", TABLE),
    (&["--json", ".a[\"b c\"]"], "--json '.a.\"b c\"'", LINES),
];

#[test]
fn a_state_remembers_what_was_compared() {
    let here = folder("selection-state");
    for (options, name, input) in SELECTIONS {
        let _ = fs::remove_file(here.join("m.bloom"));
        let run = |options: &[&str], input: &str| {
            let args = [&["dedup", "-q", "--state", "m.bloom"], options].concat();
            with_input(&here, &args, input)
        };
        let first = run(options, input).success();
        assert!(!first.is_empty());
        // A header is printed each time.
        let header = if options.contains(&"--header") {
            "a,b c\n"
        } else {
            ""
        };
        assert_eq!(run(options, input).success(), header, "{name}");
        let before = fs::read(here.join("m.bloom")).unwrap();
        for (others, other, input) in SELECTIONS {
            if other != name {
                let words = [
                    &format!("state m.bloom remembers {name}"),
                    &format!("this run compares {other}"),
                ];
                refused(
                    &run(others, input),
                    &words.map(|word| word.trim_end_matches(';')),
                );
                let count = [others, &["--count"]].concat();
                refused(&run(&count, input), &[]);
            }
        }
        assert!(fs::read(here.join("m.bloom")).unwrap() == before);
    }
}

/// Another way to write the path, and another end of records, select the values that they did.
#[test]
fn what_compares_the_same_bytes_is_the_same_selection() {
    let here = folder("selection-same");
    let run = |options: &[&str]| {
        let args = [&["dedup", "-q", "--state", "m.bloom"], options].concat();
        with_input(&here, &args, LINES)
    };
    assert_eq!(run(&["--json", ".a.\"b c\""]).success(), LINES);
    assert_eq!(run(&["--json", ".[\"a\"][\"b c\"]"]).success(), "");
    let args = [
        "dedup",
        "-q",
        "--state",
        "m.bloom",
        "-0",
        "--json",
        ".a.\"b c\"",
    ];
    let outcome = with_input(&here, &args, LINES.replace('\n', "\0"));
    assert_eq!(outcome.success(), "");
    let tab = ["dedup", "-q", "--state", "t.bloom", "-f", "2"];
    with_input(&here, &tab, "a\tb\n").success();
    let tab = [&tab[..], &["-d", "\\t"]].concat();
    assert_eq!(with_input(&here, &tab, "a\tb\n").success(), "");
    let csv = ["dedup", "-q", "--state", "c.bloom", "--csv", "-f", "2"];
    with_input(&here, &csv, "a,b\n").success();
    let csv = [&csv[..], &["--header", "-d", ","]].concat();
    assert_eq!(with_input(&here, &csv, "x,y\nc,b\n").success(), "x,y\n");
}

#[test]
fn a_filter_of_a_part_is_asked_for_that_part() {
    let here = folder("selection-check");
    with_input(
        &here,
        &["build", "-q", "-g", "f.bloom", "-f", "2", "-d", ","],
        TABLE,
    )
    .success();
    let check =
        |options: &[&str]| with_input(&here, &[&["check", "f.bloom"], options].concat(), TABLE);
    assert_eq!(check(&["-f", "2", "-d", ","]).success(), TABLE);
    let names = ["f.bloom remembers --field 2 -d ,", "this run compares "];
    for options in [&[][..], &["-f", "1", "-d", ","], &["-v"], &["-q"], &["-c"]] {
        refused(&check(options), &names);
    }
    // Other tables have their columns in another order: who says so is heard.
    let outcome = with_input(
        &here,
        &["check", "f.bloom", "--any-selection"],
        "bob@example.org\ncy@example.org\n",
    );
    assert_eq!(outcome.success(), "bob@example.org\n");
    let append = |options: &[&str]| {
        let args = [&["build", "-q", "--append", "f.bloom"], options].concat();
        with_input(&here, &args, "cy@example.org\n")
    };
    refused(&append(&[]), &names);
    append(&["--any-selection"]).success();
    let outcome = with_input(
        &here,
        &["check", "f.bloom", "-f", "2", "-d", ","],
        "cy,cy@example.org\n",
    );
    assert_eq!(outcome.success(), "cy,cy@example.org\n");
}

/// A list has a value a line: tables and JSON are asked for a field, as they always were. Several
/// fields together are none of its values.
#[test]
fn a_filter_of_a_list_is_asked_for_any_one_field() {
    let here = folder("selection-list");
    with_input(&here, &["build", "-q", "-g", "f.bloom"], "ann\nx\n").success();
    let check = |options: &[&str], input: &str| {
        with_input(&here, &[&["check", "f.bloom"], options].concat(), input)
    };
    assert_eq!(
        check(&["-f", "1", "-d", ","], TABLE).success(),
        "ann,ann@example.org\n"
    );
    assert_eq!(check(&["--json", ".a.\"b c\""], LINES).success(), LINES);
    assert_eq!(check(&["-0"], "ann\0cy\0").success(), "ann\0");
    for (options, name) in [
        (&["-f", "1,2", "-d", ","][..], "--field 1,2 -d ,"),
        (&["--csv"], "--csv"),
        (&["--csv", "-f", "1,2"], "--csv --field 1,2"),
    ] {
        let compares = format!("compares {name}");
        refused(
            &check(options, TABLE),
            &["remembers whole lines", &compares],
        );
    }
    let outcome = check(&["--csv", "-f", "1"], TABLE);
    assert_eq!(outcome.success(), "ann,ann@example.org\n");
}

/// A later record may have more fields, so the field is named from the start.
#[test]
fn a_filter_of_a_list_is_asked_for_csv_of_one_column() {
    let here = folder("selection-column");
    let list = ["build", "-q", "-g", "-e", "1e-9", "f.bloom"];
    with_input(&here, &list, "ann\n1:a,2:bc,\nx, y\n\n").success();
    let column = "name\nbob\n\"ann\"\n\"1:a,2:bc,\"\r\n\n\"x, y\"\n";
    let check = |options: &[&str]| {
        let args = [&["check", "f.bloom", "--csv"], options].concat();
        with_input(&here, &args, column)
    };
    let members = "\"ann\"\n\"1:a,2:bc,\"\r\n\n\"x, y\"\n";
    assert_eq!(check(&["-f", "1"]).success(), members);
    assert_eq!(check(&["-f", "1", "-v"]).success(), "name\nbob\n");
    let headed = check(&["--header", "-f", "name"]).success();
    assert_eq!(headed, format!("name\n{members}"));
    let words = ["f.bloom remembers whole lines", "this run compares --csv"];
    for options in [&[][..], &["-v"], &["-q", "-v"], &["-c"]] {
        refused(&check(options), &words);
    }
}

/// The parameters are taken from the other filter, and none of its records.
#[test]
fn a_filter_like_another_remembers_what_was_put_into_it() {
    let here = folder("selection-like");
    let list = ["build", "-q", "-c", "10", "list.bloom"];
    with_input(&here, &list, "ann\n").success();
    let like = ["build", "-q", "--like", "list.bloom", "like.bloom"];
    let by_field = ["-f", "2", "-d", ","];
    let args = [&like[..], &by_field].concat();
    refused(&with_input(&here, &args, TABLE), &["remembers whole lines"]);
    let args = [&args[..], &["--any-selection"]].concat();
    with_input(&here, &args, TABLE).success();
    let check =
        |options: &[&str]| with_input(&here, &[&["check", "like.bloom"], options].concat(), TABLE);
    refused(&check(&[]), &["like.bloom remembers --field 2 -d ,"]);
    assert_eq!(check(&by_field).success(), TABLE);
}

/// Those of earlier versions and of programs: they are taken as they were, and remember from the
/// next time on that they are saved.
#[test]
fn a_filter_without_a_record_takes_any_selection_and_gets_it() {
    let here = folder("selection-old");
    let mut old = ScalableBloomFilter::new(1000, 1e-9);
    old.insert("bob@example.org");
    fs::write(here.join("m.bloom"), old.to_bytes()).unwrap();
    let by_field = ["-f", "2", "-d", ","];
    let check =
        |options: &[&str]| with_input(&here, &[&["check", "m.bloom"], options].concat(), TABLE);
    assert_eq!(check(&by_field).success(), "bob,bob@example.org\n");
    assert_eq!(check(&[]).status.code(), Some(1));
    let dedup = [&["dedup", "-q", "--state", "m.bloom"], &by_field[..]].concat();
    assert_eq!(
        with_input(&here, &dedup, TABLE).success(),
        "ann,ann@example.org\n"
    );
    let args = ["dedup", "--state", "m.bloom"];
    refused(
        &with_input(&here, &args, TABLE),
        &["remembers --field 2 -d ,"],
    );
    // An empty one has nothing that was compared.
    with_input(&here, &["build", "-q", "-g", "-c", "10", "e.bloom"], "").success();
    let dedup = [&["dedup", "-q", "--state", "e.bloom"], &by_field[..]].concat();
    assert_eq!(with_input(&here, &dedup, TABLE).success(), TABLE);
}

#[test]
fn only_what_compares_the_same_is_merged() {
    let here = folder("selection-merge");
    let build = |file: &str, options: &[&str]| {
        let args = [&["build", "-q", "-c", "1000", "--seed", "1", file], options].concat();
        with_input(&here, &args, TABLE).success();
    };
    build("a.bloom", &["-f", "2", "-d", ","]);
    build("b.bloom", &["-f", "2", "-d", ","]);
    build("c.bloom", &[]);
    build("i.bloom", &["-i"]);
    let merge = |files: &[&str]| everbloom(&here, &[&["merge", "-q", "all.bloom"], files].concat());
    let unlike = merge(&["a.bloom", "b.bloom", "c.bloom"]);
    refused(
        &unlike,
        &[
            "a.bloom remembers --field 2 -d ,",
            "and c.bloom whole lines",
            "--any-selection",
        ],
    );
    // The one before it remembers nothing, so nothing is said of it.
    let old = BloomFilter::builder().capacity(10).seed(1).build();
    fs::write(here.join("old.bloom"), old.unwrap().to_bytes()).unwrap();
    refused(
        &merge(&["old.bloom", "a.bloom", "old.bloom", "c.bloom"]),
        &["a.bloom remembers --field 2 -d ,, and c.bloom whole lines"],
    );
    refused(
        &merge(&["old.bloom", "old.bloom", "i.bloom"]),
        &["old.bloom remembers nothing", "and i.bloom whole lines"],
    );
    assert!(!here.join("all.bloom").exists());
    for (first, other, compared) in [
        ("a.bloom", "c.bloom", "--field 2 -d ,"),
        ("c.bloom", "a.bloom", "whole lines"),
    ] {
        everbloom(
            &here,
            &["merge", "-q", "--any-selection", "any.bloom", first, other],
        )
        .success();
        let info = everbloom(&here, &["info", "any.bloom"]).success();
        assert!(
            info.contains(&format!("\ncompared    {compared}\n")),
            "{info}"
        );
    }
    let args = ["merge", "--any-selection", "no.bloom", "c.bloom", "i.bloom"];
    refused(
        &everbloom(&here, &args),
        &["c.bloom remembers whole lines", "ignoring case"],
    );
    let info = everbloom(&here, &["info", "a.bloom", "c.bloom"]);
    assert_eq!(info.status.code(), Some(1), "{info:?}");
    assert!(
        info.stdout.contains("merge       no: a.bloom remembers"),
        "{info:?}"
    );
    merge(&["a.bloom", "b.bloom"]).success();
    for file in ["a.bloom", "all.bloom"] {
        let info = everbloom(&here, &["info", file]).success();
        assert!(info.contains("\ncompared    --field 2 -d ,\n"), "{info}");
    }
    let json = everbloom(&here, &["info", "--json", "all.bloom"]).success();
    assert!(json.contains("\"compared\": \"--field 2 -d ,\""), "{json}");
    everbloom(&here, &["shrink", "-q", "all.bloom"]).success();
    let args = ["check", "all.bloom", "-f", "1", "-d", ","];
    refused(
        &with_input(&here, &args, TABLE),
        &["remembers --field 2 -d ,"],
    );
}

/// Pieces have no place for it.
#[test]
fn convert_says_what_is_not_remembered() {
    let here = folder("selection-convert");
    for (file, options, says) in [
        ("a", &[][..], None),
        (
            "b",
            &["-f", "2", "-d", ","],
            Some("it was made of --field 2 -d ,"),
        ),
    ] {
        let filter = format!("{file}.bloom");
        let args = [&["build", "-q", "-g", &filter], options].concat();
        with_input(&here, &args, TABLE).success();
        let outcome = everbloom(&here, &["convert", file, &filter]);
        assert_eq!(outcome.status.code(), Some(0), "{outcome:?}");
        let says = says.unwrap_or_default();
        assert!(outcome.stderr.contains(says), "{outcome:?}");
        assert_eq!(outcome.stderr.is_empty(), says.is_empty(), "{outcome:?}");
        let back = format!("{file}-2.bloom");
        everbloom(&here, &["convert", &back, file]).success();
        assert_eq!(
            with_input(&here, &["check", &back, "-f", "1", "-d", ","], TABLE)
                .status
                .code(),
            Some(1)
        );
    }
}

/// A program may write its own note; it is one that no run has.
#[test]
fn a_note_of_a_program_is_named() {
    use everbloom::bytes::Note;
    let here = folder("selection-note");
    let mut filter = ScalableBloomFilter::new(1000, 1e-9);
    filter.insert("a");
    let write = |note: Note| {
        fs::write(
            here.join("f.bloom"),
            [note.to_bytes(), filter.to_bytes()].concat(),
        )
        .unwrap();
    };
    write(Note::new("names").unwrap());
    let check = || with_input(&here, &["check", "f.bloom"], "a\n");
    refused(&check(), &["remembers names", "compares whole lines"]);
    let args = ["check", "f.bloom", "--any-selection"];
    assert_eq!(with_input(&here, &args, "a\n").success(), "a\n");
    write(Note::new("names, reversed").unwrap().critical());
    for args in [
        &["check", "f.bloom"][..],
        &["check", "f.bloom", "--any-selection"],
        &["dedup", "--state", "f.bloom"],
        &["info", "f.bloom"],
        &["merge", "g.bloom", "f.bloom"],
        &["convert", "pieces", "f.bloom"],
    ] {
        refused(
            &with_input(&here, args, "a\n"),
            &["names, reversed", "use a newer one"],
        );
    }
    let whole = fs::read(here.join("f.bloom")).unwrap();
    let mut changed = whole.clone();
    changed[20] ^= 1;
    let mut zeroed = whole.clone();
    zeroed[64..].fill(0);
    let cut = |len: usize| whole[..len].to_vec();
    for damaged in [changed, zeroed, cut(60), cut(64), cut(70), cut(100)] {
        fs::write(here.join("f.bloom"), damaged).unwrap();
        refused(&check(), &["f.bloom is damaged"]);
        let dedup = with_input(&here, &["dedup", "--state", "f.bloom"], "a\n");
        refused(&dedup, &["f.bloom is damaged"]);
    }
}

/// Its lines are nowhere else: only a filter that grows takes its place, and none does when nobody
/// knows any more what is there.
#[test]
fn a_state_behind_a_damaged_note_is_not_replaced_by_a_filter_of_fixed_size() {
    let here = folder("selection-damaged");
    let dedup = ["dedup", "-q", "--state", "s.bloom"];
    with_input(&here, &dedup, "a\nb\n").success();
    let state = fs::read(here.join("s.bloom")).unwrap();
    let build = |damaged: &[u8], options: &[&str]| {
        fs::write(here.join("s.bloom"), damaged).unwrap();
        let args = [&["build", "-q", "-c", "10", "s.bloom"], options].concat();
        let outcome = with_input(&here, &args, "c\n");
        (outcome, fs::read(here.join("s.bloom")).unwrap())
    };
    for index in (8..64).chain([64, 72, 74, 76, 80, 127]) {
        let mut damaged = state.clone();
        damaged[index] ^= 0x40;
        let (fixed, after) = build(&damaged, &[]);
        refused(&fixed, &["s.bloom", "name another file"]);
        assert!(after == damaged, "{index}");
        let (growing, after) = build(&damaged, &["--growing"]);
        // The version, and the length, behind which no filter begins; and the header of the filter,
        // whose checksum is wrong then.
        if [8, 9, 12, 13].contains(&index) || index >= 64 {
            refused(&growing, &["s.bloom", "is damaged", "remove this one"]);
            assert!(after == damaged, "{index}");
        } else {
            assert_eq!(growing.success(), "", "{index}");
        }
    }
    for len in [8, 12, 40, 64, 70] {
        for options in [&[][..], &["--growing"]] {
            let (outcome, after) = build(&state[..len], options);
            refused(&outcome, &["s.bloom is damaged", "remove this one"]);
            assert!(after == state[..len], "{len}");
        }
        let into = ["merge", "s.bloom", "g.bloom"];
        with_input(&here, &["build", "-q", "-g", "g.bloom"], "a\n").success();
        refused(&everbloom(&here, &into), &["s.bloom is damaged"]);
    }
}

/// Nothing is remembered of it there, so no path is too long.
#[test]
fn a_filter_of_dcso_takes_a_selection_of_any_length() {
    let here = folder("selection-dcso");
    let name = "x".repeat(5000);
    let (path, line) = (format!(".{name}"), format!("{{\"{name}\":\"a\"}}\n"));
    let own = ["build", "-q", "-c", "5", "f.bloom", "--json", &path];
    refused(
        &with_input(&here, &own, line.clone()),
        &["at most 4096 bytes"],
    );
    let dcso = [
        "build", "-q", "-c", "5", "d.bloom", "--format", "dcso", "--json", &path,
    ];
    with_input(&here, &dcso, line.clone()).success();
    let append = ["build", "-q", "--append", "d.bloom", "--json", &path];
    with_input(&here, &append, line).success();
    assert_eq!(
        with_input(&here, &["check", "d.bloom"], "a\nb\n").success(),
        "a\n"
    );
}
