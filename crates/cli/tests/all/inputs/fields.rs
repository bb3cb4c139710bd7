//! What of a record is compared: paths of JSON and fields.

use super::*;

#[test]
fn a_path_that_is_not_understood_is_refused_and_its_place_named() {
    let here = folder("fields-paths");
    let input = "{\"a\":1}\n{\"a\":1}\n";
    with_input(&here, &["build", "-q", "-g", "f.bloom"], "1\n").success();
    for (path, place) in [
        (".a,.b", "from ,.b on"),
        (".a[]", "from [] on"),
        (".a | .b", "from  | .b on"),
        (".a-b", "from -b on"),
    ] {
        for command in [
            &["dedup"][..],
            &["check", "f.bloom"],
            &["build", "-g", "g.bloom"],
        ] {
            let args = [command, &["--json", path]].concat();
            let outcome = with_input(&here, &args, input);
            assert_eq!(outcome.status.code(), Some(2), "{args:?}");
            assert!(outcome.stderr.contains(place), "{outcome:?}");
            assert_eq!(outcome.stdout, "", "{args:?}");
        }
    }
    assert!(!here.join("g.bloom").exists());
}

#[test]
fn paths_of_elements_and_of_quoted_names() {
    let here = folder("fields-quoted");
    let input = "{\"a.b\":1,\"a\":[{\"b c\":2}]}\n{\"a.b\":1,\"a\":[{\"b c\":3}]}\n";
    let first = input.split_inclusive('\n').next().unwrap();
    for (path, expected) in [
        (".\"a.b\"", first),
        (".[\"a.b\"]", first),
        (".a[0].\"b c\"", input),
        (".a[0][\"b c\"]", input),
    ] {
        let outcome = with_input(&here, &["dedup", "--json", path], input);
        assert_eq!(outcome.success(), expected, "{path}");
    }
}

#[test]
fn a_field_that_no_record_has_is_an_error() {
    let here = folder("fields-none");
    let input = "{\"a\":1}\n{\"a\":1}\n";
    with_input(&here, &["build", "-q", "-g", "f.bloom"], "1\n").success();
    let selections: [(&[&str], &str); 3] = [
        (&["--json", ".typo"], "no record has a JSON value at .typo"),
        (&["-f", "2"], "no record has a field 2 with \"\\t\" between"),
        (
            &["-f", "9", "-d", ","],
            "no record has a field 9 with \",\"",
        ),
    ];
    for (selection, why) in selections {
        let commands: [(&[&str], &str); 8] = [
            (&["dedup"], input),
            (&["dedup", "-q"], input),
            (&["dedup", "--count"], "2\n"),
            (&["dedup", "--state", "s.bloom"], input),
            (&["check", "f.bloom"], ""),
            (&["check", "-v", "f.bloom"], input),
            (&["check", "-v", "-q", "f.bloom"], ""),
            (&["build", "-g", "g.bloom"], ""),
        ];
        for (command, printed) in commands {
            let args = [command, selection].concat();
            let outcome = with_input(&here, &args, input);
            assert_eq!(outcome.status.code(), Some(2), "{args:?} {outcome:?}");
            assert!(outcome.stderr.contains(why), "{args:?} {outcome:?}");
            assert_eq!(outcome.stdout, printed, "{args:?}");
            assert!(!here.join("g.bloom").exists());
            // Without a record there is nothing to miss.
            let nothing = with_input(&here, &args, "").status.code();
            let none = if command[0] == "check" { 1 } else { 0 };
            assert_eq!(nothing, Some(none), "{args:?}");
            let _ = fs::remove_file(here.join("g.bloom"));
        }
    }
    // Files are counted before they are read, which must not hide it.
    fs::write(here.join("input"), input).unwrap();
    let args = ["build", "--json", ".typo", "c.bloom", "input"];
    let built = with_input(&here, &args, "");
    assert_eq!(built.status.code(), Some(2), "{built:?}");
    assert!(!here.join("c.bloom").exists());
    // One record with the field is enough.
    let some = with_input(&here, &["dedup", "--json", ".b"], "{}\n{\"b\":1}\n");
    assert_eq!(some.success(), "{}\n{\"b\":1}\n");
    let quiet = ["check", "-v", "-q", "--json", ".b", "f.bloom"];
    let some = with_input(&here, &quiet, "{}\n{\"b\":1}\n");
    assert_eq!(some.status.code(), Some(0), "{some:?}");
}

#[test]
fn several_fields_or_values_are_one_key() {
    let here = folder("fields-several");
    let table = "a\tx\tbc\nab\tx\tc\na\ty\tbc\na\tz\nabc\tx\t\n";
    let expected = "a\tx\tbc\nab\tx\tc\na\tz\nabc\tx\t\n";
    let json =
        "{\"a\":\"a\",\"b\":\"bc\"}\n{\"a\":\"ab\",\"b\":\"c\"}\n{\"b\":\"bc\",\"a\":\"a\"}\n";
    let first_two: String = json.split_inclusive('\n').take(2).collect();
    let cases: [(&[&str], &str, &str); 3] = [
        (&["-f", "1,3"], table, expected),
        (&["-f", "1", "-f", "3"], table, expected),
        (&["--json", ".a", "--json", ".b"], json, &first_two),
    ];
    for (selection, input, expected) in cases {
        let args = [&["dedup", "-e", "1e-12"], selection].concat();
        assert_eq!(
            with_input(&here, &args, input).success(),
            expected,
            "{selection:?}"
        );
        let build = [&["build", "-q", "-g", "f.bloom"], selection].concat();
        with_input(&here, &build, input.split_inclusive('\n').next().unwrap()).success();
        let check = [&["check", "f.bloom"], selection].concat();
        let found = with_input(&here, &check, input).success();
        assert_eq!(found.lines().count(), 2, "{selection:?}");
    }
    let none = with_input(&here, &["dedup", "-f", "1,4"], table);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    assert!(
        none.stderr.contains("no record has a field 1 and 4"),
        "{none:?}"
    );
    let zero = with_input(&here, &["dedup", "-f", "1,0"], table);
    assert_eq!(zero.status.code(), Some(2), "{zero:?}");
}

#[test]
fn a_delimiter_within_quotes_is_told() {
    let here = folder("fields-quotes");
    let cut = "\"Smith, John\",1\n\"Smith, Jane\",2\n";
    let whole = "\"Smith\",1\n\"Jones\",2\n";
    with_input(&here, &["build", "-q", "-g", "f.bloom"], "1\n").success();
    let commands: [&[&str]; 3] = [
        &["dedup"],
        &["check", "-v", "f.bloom"],
        &["build", "-g", "g.bloom"],
    ];
    for command in commands {
        let args = [command, &["-f", "1", "-d", ","]].concat();
        let told = with_input(&here, &args, cut);
        let warning = "warning: in 2 of the records a field begins with a quote";
        assert!(told.stderr.contains(warning), "{args:?} {told:?}");
        let untold = with_input(&here, &args, whole);
        assert!(!untold.stderr.contains("quote"), "{args:?} {untold:?}");
        let lines = with_input(&here, command, cut);
        assert!(!lines.stderr.contains("quote"), "{args:?} {lines:?}");
    }
    let quiet = with_input(&here, &["dedup", "-q", "-f", "1", "-d", ","], cut);
    assert_eq!(quiet.stderr, "");
}
