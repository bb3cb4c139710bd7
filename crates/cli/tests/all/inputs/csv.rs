//! CSV: quoted fields, records over several lines, headers.

use super::*;
use crate::support::Server;

/// A table with a record of two lines, quoted and plain fields of one value, and CRLF.
const TABLE: &str = "id,name,city\r\n\
    1,\"Smith, John\",Ulm\r\n\
    2,\"Smith, Jane\",Ulm\n\
    3,\"Smith, John\",\"Bad\nUrach\"\n\
    \"1\",Jones,Ulm\n\
    4,\"say \"\"hi\"\"\",\"Ulm\"";

const HEADER: &str = "id,name,city\r\n";

#[test]
fn quoted_fields_are_compared_by_their_value_and_printed_as_they_were() {
    let here = folder("csv-dedup");
    let dedup = |args: &[&str], input: &str| {
        let args = [&["dedup", "-q", "-e", "1e-12", "--csv"], args].concat();
        with_input(&here, &args, input).success()
    };
    let by = |field: &str| dedup(&["--header", "-f", field], TABLE);
    let rows = |rows: &[&str]| format!("{HEADER}{}", rows.concat());
    let one = "1,\"Smith, John\",Ulm\r\n";
    let two = "2,\"Smith, Jane\",Ulm\n";
    let three = "3,\"Smith, John\",\"Bad\nUrach\"\n";
    let jones = "\"1\",Jones,Ulm\n";
    let four = "4,\"say \"\"hi\"\"\",\"Ulm\"\n";
    for (field, expected) in [
        ("id", rows(&[one, two, three, four])),
        ("1", rows(&[one, two, three, four])),
        ("name", rows(&[one, two, jones, four])),
        ("city", rows(&[one, three])),
        ("name,city", rows(&[one, two, three, jones, four])),
        ("\"city\"", rows(&[one, three])),
    ] {
        assert_eq!(by(field), expected, "{field}");
    }
    // Without a header, the first record is one of them.
    assert_eq!(dedup(&["-f", "1"], "a,1\n\"a\",2\nb,3\n"), "a,1\nb,3\n");
    // Without a field, all of them together.
    let all = "a,\"b\"\r\n\"a\",b\n\"a,b\"\n\"a\nb\"\n\"a\nb\"\n\n\n\"\"\n";
    let printed = "a,\"b\"\r\n\"a,b\"\n\"a\nb\"\n\n\n\"\"\n";
    assert_eq!(dedup(&[], all), printed);
    // Records may lack fields.
    assert_eq!(dedup(&["-f", "2"], "a\n\nb,1\nc,1\n"), "a\n\nb,1\n");
    // Other delimiters, and quotes that stand for themselves.
    let table = "a;1\n\"a\";2\n5\" disk;3\n5\" disk;4\n";
    assert_eq!(dedup(&["-f", "1", "-d", ";"], table), "a;1\n5\" disk;3\n");
    assert_eq!(
        dedup(&["-f", "1", "-d", "\\t"], "\"a\tb\"\t1\n\"a\tb\"\t2\n"),
        "\"a\tb\"\t1\n"
    );
    // A byte order mark is no part of the first name.
    let marked = format!("\u{feff}{TABLE}");
    assert_eq!(dedup(&["--header", "-f", "id"], &marked), by("id"));
    // However the bytes arrive.
    for piece in [1, 2, 3, 7] {
        let mut command = Command::new(EVERBLOOM);
        command.args([
            "dedup", "-q", "--csv", "--header", "-f", "name", "-e", "1e-12",
        ]);
        let arrived = run_with_input(&mut command, move |stdin| {
            for piece in TABLE.as_bytes().chunks(piece) {
                stdin.write_all(piece)?;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            Ok(())
        });
        assert_eq!(arrived.success(), by("name"), "{piece}");
    }
}

/// Records of many chunks, each with a line feed, whose parts a chunk would cut.
#[test]
fn records_are_whole_however_large_the_table_is() {
    let here = folder("csv-large");
    let record = |number: u32| {
        format!(
            "\"{number}\n,\"\"x\"\"\",{}\n",
            "y".repeat(number as usize % 900)
        )
    };
    let table: String = (0..3000).map(record).collect();
    let twice = format!("a,b\n{table}{table}");
    let args = ["dedup", "-q", "--csv", "--header", "-f", "a", "-e", "1e-12"];
    assert!(with_input(&here, &args, twice.clone()).success() == format!("a,b\n{table}"));
    let count = [&args[..], &["--count"]].concat();
    assert_eq!(with_input(&here, &count, twice.clone()).success(), "3000\n");
    let repeated = [&args[..], &["--repeated"]].concat();
    assert!(with_input(&here, &repeated, twice).success() == format!("a,b\n{table}"));
    // One record may be longer than a chunk.
    let long = format!("\"{}\",1\n", "x\n".repeat(400_000));
    assert!(with_input(&here, &["dedup", "-q", "--csv"], long.repeat(2)).success() == long);
}

#[test]
fn check_build_and_states_know_records() {
    let here = folder("csv-check");
    fs::write(here.join("list"), "admin\nSmith, John\n").unwrap();
    fs::write(
        here.join("list.csv"),
        "user,n\nadmin,1\n\"Smith, John\",2\n",
    )
    .unwrap();
    everbloom(&here, &["build", "-q", "-e", "1e-9", "lines.bloom", "list"]).success();
    let build = ["build", "-e", "1e-9", "--csv", "--header", "-f", "user"];
    let built = everbloom(&here, &[&build[..], &["csv.bloom", "list.csv"]].concat());
    assert!(
        built.stderr.contains("2 records in, 2 in the filter"),
        "{built:?}"
    );
    built.success();
    let input = "n,user\n1,\"admin\"\n2,root\n3,\"Smith, John\"\n";
    for filter in ["lines.bloom", "csv.bloom"] {
        let check = |args: &[&str], input: &str| {
            let args = [&["check", "--csv", "--header", "-f", "user", filter], args].concat();
            with_input(&here, &args, input)
        };
        assert_eq!(
            check(&[], input).success(),
            "n,user\n1,\"admin\"\n3,\"Smith, John\"\n"
        );
        assert_eq!(check(&["-v"], input).success(), "n,user\n2,root\n");
        assert_eq!(check(&["-c"], input).success(), "2\n");
        // The header is no answer.
        let none = check(&[], "n,user\n2,root\n");
        assert_eq!((none.status.code(), &*none.stdout), (Some(1), "n,user\n"));
        let none = check(&["-q"], "n,user\n2,root\n");
        assert_eq!((none.status.code(), &*none.stdout), (Some(1), ""));
    }
    let dedup = |input: &str| {
        let args = [
            "dedup", "-q", "--csv", "--header", "-f", "user", "--state", "s.bloom",
        ];
        with_input(&here, &args, input).success()
    };
    assert_eq!(dedup(input), input);
    assert_eq!(dedup("n,user\n9,admin\n8,\"new\"\n"), "n,user\n8,\"new\"\n");
    assert_eq!(dedup("n,user\n"), "n,user\n");
    assert_eq!(dedup(""), "");
    // --strict counts records, and neither lines nor the header.
    let args = ["dedup", "--csv", "--header", "-f", "2", "--strict"];
    let strict = with_input(&here, &args, "a,b\n\"1\n\",1\n2\n");
    fails_with(&strict, &["record 2 has no such field"]);
    assert_eq!(strict.stdout, "a,b\n\"1\n\",1\n");
}

#[test]
fn a_server_gets_values() {
    let server = Server::start();
    let port = server.port.to_string();
    let here = folder("csv-server");
    let args = [
        "dedup", "-q", "--csv", "--header", "-f", "name", "--key", "k", "-p", &port,
    ];
    let printed = with_input(&here, &args, TABLE).success();
    assert_eq!(printed.matches("Smith, John").count(), 1);
    for (item, found) in [("Smith, John", 1), ("say \"hi\"", 1), ("name", 0)] {
        let reply = server.query(&["BF.EXISTS", "k", item]).stdout;
        assert_eq!(reply, format!("(integer) {found}\n"), "{item}");
    }
}

#[test]
fn each_input_has_the_header_of_the_first() {
    let here = folder("csv-headers");
    for (name, text) in [
        ("a", "id,name\n1,x\n"),
        ("b", "\"id\",\"name\"\r\n2,y\n1,z\n"),
        ("other", "name,id\nx,3\n"),
        ("only", "id,name\n"),
        ("empty", ""),
        ("twice", "id,id\n1,2\n"),
    ] {
        fs::write(here.join(name), text).unwrap();
    }
    let dedup = |args: &[&str]| {
        let args = [&["dedup", "-q", "--csv", "--header"], args].concat();
        everbloom(&here, &args)
    };
    let both = "id,name\n1,x\n2,y\n";
    assert_eq!(
        dedup(&["-f", "id", "empty", "a", "b", "only"]).success(),
        both
    );
    let other = dedup(&["-f", "id", "a", "other", "b"]);
    fails_with(
        &other,
        &["cannot read other: its header is name, id, and that of a is id, name"],
    );
    assert_eq!(other.stdout, both);
    let unknown = dedup(&["-f", "id,emial", "a"]);
    fails_with(&unknown, &["no field is called emial", "id, name"]);
    assert_eq!(unknown.stdout, "");
    let twice = dedup(&["-f", "id", "twice"]);
    fails_with(&twice, &["2 fields are called id", "number"]);
    assert_eq!(dedup(&["-f", "2", "twice"]).success(), "id,id\n1,2\n");
    // A name of digits is quoted.
    fs::write(
        here.join("years"),
        "2024,2025,\"a,b\"\nx,1,1\nx,2,1\ny,2,1\n",
    )
    .unwrap();
    let year = |field: &str| dedup(&["-f", field, "years"]);
    assert_eq!(
        year("\"2024\"").success(),
        "2024,2025,\"a,b\"\nx,1,1\ny,2,1\n"
    );
    assert_eq!(year("\"a,b\"").success(), "2024,2025,\"a,b\"\nx,1,1\n");
    assert_eq!(year("2024").status.code(), Some(2));
    for command in [&["check", "f.bloom"][..], &["build", "g.bloom"]] {
        everbloom(&here, &["build", "-q", "-g", "f.bloom", "a"]).success();
        let args = [command, &["--csv", "--header", "-f", "emial", "a"]].concat();
        fails_with(
            &everbloom(&here, &args),
            &["no field is called emial", "id, name"],
        );
        assert!(!here.join("g.bloom").exists());
    }
}

#[test]
fn quotes_that_are_not_those_of_csv_are_an_error_with_their_line() {
    let here = folder("csv-quotes");
    let good = "a,1\n\"b\n\",2\n";
    for (bad, why) in [
        (
            "c,\"x\n\nd,3\n",
            "the quote that opens in line 4 never closes",
        ),
        (
            "c,\"x,3\nd,\"y\",4\n",
            "line 5: more of a field follows its closing quote; the quote opened in line 4",
        ),
        (
            "c,\"x\" ,3\n",
            "line 4: more of a field follows its closing quote",
        ),
        ("c, \"x\",3\n", "line 4: spaces or tabs before a quote"),
        ("c,\t\"x, y\"\n", "line 4: spaces or tabs before a quote"),
        ("c, \t \"x\n", "line 4: spaces or tabs before a quote"),
        ("c\rd\r", "line 4: a carriage return without a line feed"),
    ] {
        let input = format!("{good}{bad}");
        let outcome = with_input(&here, &["dedup", "-q", "--csv", "-f", "1"], input.clone());
        fails_with(&outcome, &["cannot read standard input", why]);
        // What came before was handled.
        assert_eq!(outcome.stdout, good, "{bad:?}");
        let args = ["build", "-q", "-g", "--csv", "-f", "1", "g.bloom"];
        fails_with(
            &with_input(&here, &args, input),
            &[why, "no filter was written"],
        );
        assert!(!here.join("g.bloom").exists());
    }
    let header = with_input(&here, &["dedup", "--csv", "--header"], "\"a,b\n1,2\n");
    fails_with(&header, &["the quote that opens in line 1 never closes"]);
    assert_eq!(header.stdout, "");
}

/// A reader that skips spaces would see one field in `\t"x, y"`. With tabs between fields, the quote
/// is the first byte of a field.
#[test]
fn a_tab_before_a_quote_is_refused_unless_it_is_the_delimiter() {
    let here = folder("csv-tabs");
    let table = "1\t\"a\tb\"\n2\t\"a\tb\"\n";
    let args = ["dedup", "-q", "--csv", "-f", "2", "-d", "\\t"];
    assert_eq!(with_input(&here, &args, table).success(), "1\t\"a\tb\"\n");
    let args = ["dedup", "-q", "--csv", "-f", "2", "-d", " "];
    let refusal = with_input(&here, &args, "1 \t\"a b\"\n");
    fails_with(&refusal, &["line 1: spaces or tabs before a quote"]);
}

#[test]
fn quotes_within_unquoted_fields_are_text_and_the_summary_warns_of_them() {
    let here = folder("csv-bare-quotes");
    let warning = |count| format!("warning: in {count} of the records a quote is within a field");
    everbloom(&here, &["build", "-q", "-g", "f.bloom", "/dev/null"]).success();
    for (flags, table, count) in [
        (&["-f", "2"][..], "1,O\"Neil, A\"\n2,O\"Neil, B\"\n3,x\n", 2),
        (&["-f", "3"], "1,O\"Neil, A\",x\n2,b,c\n", 1),
        (&[], "1,5\" disk\n\"2\",\"3\"\" \"\n", 1),
        (&["--header", "-f", "b"], "a,b\n\"1, \"\"2\",3\"\n", 1),
        (&["-d", ";"], "\"a\nb\";c\"\n", 1),
    ] {
        for command in [
            &["dedup"][..],
            &["check", "-v", "f.bloom"],
            &["build", "-g", "g.bloom"],
        ] {
            let args = [command, &["--csv"], flags].concat();
            let outcome = with_input(&here, &args, table);
            assert!(outcome.stderr.contains(&warning(count)), "{outcome:?}");
            outcome.success();
        }
    }
    for (field, table) in [
        // This field is behind those that are compared, and cannot move them.
        ("1", "1,5\" disk\n"),
        ("2", "\"1\",\"a \"\"b\"\", c\"\n2,b\n"),
        ("1", "\"\"\"\"\n"),
    ] {
        let outcome = with_input(&here, &["dedup", "--csv", "-f", field], table);
        assert!(!outcome.stderr.contains("warning"), "{outcome:?}");
        assert_eq!(outcome.success(), table);
    }
}

/// Readers of CSV skip empty lines in a table of several fields, and a summary does not count them
/// among records that lack the field. In a list of one field each is a value.
#[test]
fn an_empty_line_in_a_table_has_no_field() {
    let here = folder("csv-empty-lines");
    fs::write(here.join("ban.csv"), "user,n\nann,1\n\n\r\n").unwrap();
    fs::write(here.join("plain.csv"), "ann,1\nbob,2\n\n").unwrap();
    let header = &["--csv", "--header"][..];
    for (flags, list) in [(header, "ban.csv"), (&["--csv"], "plain.csv")] {
        let args = [&["build", "-e", "1e-9"], flags, &["-f", "1", "ban", list]].concat();
        let built = everbloom(&here, &args);
        assert!(!built.stderr.contains("no such field"), "{built:?}");
        built.success();
        let args = [&["check"], flags, &["-f", "1", "ban"]].concat();
        let table = "user,n\n,5\n\nann,6\n";
        let checked = with_input(&here, &args, table).success();
        assert!(checked.ends_with("ann,6\n"), "{checked}");
        assert!(!checked.contains(",5\n") && !checked.contains("\n\n"));
    }
    let dedup = |flags: &[&str], table: &str| {
        let args = [&["dedup", "-q", "--csv", "-e", "1e-12"], flags].concat();
        with_input(&here, &args, table).success()
    };
    let table = "a,b\n\n,1\n\n\n,2\nx,3\nx,4\n";
    assert_eq!(dedup(&["-f", "1"], table), "a,b\n\n,1\n\n\nx,3\n");
    assert_eq!(
        dedup(&["--header", "-f", "1"], table),
        "a,b\n\n,1\n\n\nx,3\n"
    );
    // The first record that is not empty says how many fields there are.
    assert_eq!(dedup(&["-f", "1"], "\n\na,1\n\na,2\n"), "\n\na,1\n\n");
    assert_eq!(dedup(&[], "a\n\nb\n\n\"a\"\n"), "a\n\nb\n");
    // Until then it may be a table, however the lines arrive.
    let list = "\n\na\n\na\n\n";
    fs::write(here.join("late"), list).unwrap();
    let at_once = everbloom(&here, &["dedup", "-q", "--csv", "late"]);
    assert_eq!(at_once.success(), "\n\na\n\n");
    for piece in [1, 9] {
        let mut command = Command::new(EVERBLOOM);
        command.args(["dedup", "-q", "--csv"]);
        let arrived = run_with_input(&mut command, move |stdin| {
            for piece in list.as_bytes().chunks(piece) {
                stdin.write_all(piece)?;
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            Ok(())
        });
        assert_eq!(arrived.success(), "\n\na\n\n", "{piece}");
    }
    assert_eq!(dedup(&[], "\"a,b\"\n\n\n\"\"\n"), "\"a,b\"\n\n");
    assert_eq!(dedup(&["--header"], "a\n\nb\n\n"), "a\n\nb\n");
    // Each input has its own.
    fs::write(here.join("list"), "a\n\n\n").unwrap();
    let args = ["dedup", "-q", "--csv", "-f", "1", "list", "plain.csv"];
    assert_eq!(everbloom(&here, &args).success(), "a\n\nann,1\nbob,2\n\n");
    // Also in chunks after the first.
    let many: String = (0..60_000).map(|n| format!("{n},1\n\n")).collect();
    assert!(dedup(&["-f", "1"], &many) == many);
}

/// It is no record, so it lacks nothing.
#[test]
fn an_empty_line_in_a_table_is_no_mistake() {
    let here = folder("csv-no-record");
    with_input(&here, &["build", "-q", "-g", "ban"], "ann\n").success();
    for empty in ["\n", "\n\n", "\r\n\n\r\n"] {
        for (header, flags) in [
            ("", &["--csv"][..]),
            ("", &["--csv", "-f", "2"]),
            ("a,b\n", &["--csv", "--header"]),
            ("a,b\n", &["--csv", "--header", "-f", "b", "--strict"]),
        ] {
            let table = format!("{header}{empty}");
            let run = |args: &[&str]| with_input(&here, &[args, flags].concat(), table.as_str());
            assert_eq!(run(&["dedup", "-q"]).success(), table, "{flags:?}");
            assert_eq!(run(&["build", "-q", "-g", "new"]).success(), "");
            for invert in [&[][..], &["-v"]] {
                let args = [&["check", "--any-selection", "ban"], invert].concat();
                let checked = run(&args);
                let code = i32::from(invert.is_empty());
                assert_eq!(checked.status.code(), Some(code), "{checked:?}");
                assert_eq!(checked.stderr, "");
            }
        }
    }
    for subcommand in [
        &["dedup", "-q"][..],
        &["build", "-q", "-g", "new"],
        &["check", "-v", "--any-selection", "ban"],
    ] {
        let flags = ["--csv", "--strict", "-f", "2"];
        let run = |table: &str| with_input(&here, &[subcommand, &flags].concat(), table);
        run("a,1\n\nb,2\r\n\r\n\n").success();
        // The records before it count, and a record of a list that is empty is one.
        fails_with(&run("\na,1\n\nb\n"), &["record 4 has no such field"]);
        fails_with(&run("\na\n\n"), &["record 2 has no such field"]);
        let run = |table: &str| {
            let flags = ["--csv", "-f", "3"];
            with_input(&here, &[subcommand, &flags].concat(), table)
        };
        fails_with(&run("\na,1\n\n"), &["no record has a field 3 of CSV"]);
        // Only of a table: without --csv the line lacks the field.
        let strict = ["--strict", "-f", "2", "-d", ","];
        let lines = with_input(&here, &[subcommand, &strict].concat(), "a,1\n\n");
        fails_with(&lines, &["record 2 has no such field"]);
    }
}

#[test]
fn an_error_lists_few_names_and_no_byte_that_a_terminal_obeys() {
    let here = folder("csv-long-header");
    let long = format!("{}\n1\n", "x".repeat(600_000));
    let many: Vec<_> = (0..1000).map(|number| format!("n{number}")).collect();
    let many = format!("{}\n1\n", many.join(","));
    let wild = "\u{1b}[2J,\"a\nb\",\u{e9}t\u{e9}\n1\n";
    let umlauts = format!("{}\n1\n", "\u{e9}".repeat(5000));
    fs::write(here.join("first"), "id,name\n1,x\n").unwrap();
    for (table, texts) in [
        (&*long, &["xxx... (1 in all)"][..]),
        (&many, &["n0, n1, n2,", "n19... (1000 in all)"]),
        (wild, &["\\u{1b}[2J, a\\nb, \u{e9}t\u{e9}"]),
        (&umlauts, &["\u{e9}... (1 in all)"]),
    ] {
        let args = ["dedup", "-q", "--csv", "--header", "-f", "id"];
        let unknown = with_input(&here, &args, table);
        fails_with(&unknown, &[&["no field is called id"], texts].concat());
        let args = [&args[..], &["first", "-"]].concat();
        let unlike = with_input(&here, &args, table);
        fails_with(&unlike, &[&["that of first is id, name"], texts].concat());
        for Outcome { stderr, .. } in [unknown, unlike] {
            assert!(stderr.len() < 400, "{stderr}");
            assert!(!stderr.contains('\u{1b}') && stderr.lines().count() == 1);
        }
    }
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let here = folder("csv-usage");
    everbloom(&here, &["build", "-q", "-g", "f.bloom", "/dev/null"]).success();
    for (flags, why) in [
        (&["--csv", "-0"][..], "--null"),
        (&["--csv", "--json", ".a"], "--json"),
        (&["--header"], "--csv"),
        (&["-f", "email"], "--csv --header"),
        (&["--csv", "-f", "email"], "--header"),
        (&["--csv", "-f", "0"], "from 1"),
        (&["--csv", "-f", ""], "''"),
        (&["--csv", "-f", "\"a"], "quote"),
        (&["--csv", "-d", "::"], "one character"),
        (&["--csv", "-d", "\""], "one character"),
        (&["--csv", "-d", "\n"], "one character"),
        (&["-d", ","], "--field"),
    ] {
        for command in [
            &["dedup", "--state", "s.bloom"][..],
            &["check", "f.bloom"],
            &["build", "-g", "g.bloom"],
        ] {
            let outcome = with_input(&here, &[command, flags].concat(), "a,b\n");
            fails_with(&outcome, &[why]);
            assert_eq!(outcome.stdout, "", "{flags:?}");
            assert!(!here.join("s.bloom").exists() && !here.join("g.bloom").exists());
        }
    }
    let none = with_input(&here, &["dedup", "--csv", "-f", "3"], "a,b\n");
    fails_with(
        &none,
        &["no record has a field 3 of CSV with \",\" between fields"],
    );
}
