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

fn refused(outcome: &Outcome, texts: &[&str]) {
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    for text in texts {
        assert!(outcome.stderr.contains(text), "{text}: {outcome:?}");
    }
}

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
    assert_eq!(dedup(&[], all), "a,\"b\"\r\n\"a,b\"\n\"a\nb\"\n\n");
    // An empty line has one empty field. Records may lack others.
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
    refused(&strict, &["record 2 has no such field"]);
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
    refused(
        &other,
        &["cannot read other: its header is name, id, and that of a is id, name"],
    );
    assert_eq!(other.stdout, both);
    let unknown = dedup(&["-f", "id,emial", "a"]);
    refused(&unknown, &["no field is called emial", "id, name"]);
    assert_eq!(unknown.stdout, "");
    let twice = dedup(&["-f", "id", "twice"]);
    refused(&twice, &["2 fields are called id", "number"]);
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
        refused(
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
        ("c, \"x\",3\n", "line 4: spaces before a quote"),
        ("c\rd\r", "line 4: a carriage return without a line feed"),
    ] {
        let input = format!("{good}{bad}");
        let outcome = with_input(&here, &["dedup", "-q", "--csv", "-f", "1"], input.clone());
        refused(&outcome, &["cannot read standard input", why]);
        // What came before was handled.
        assert_eq!(outcome.stdout, good, "{bad:?}");
        let args = ["build", "-q", "-g", "--csv", "-f", "1", "g.bloom"];
        refused(
            &with_input(&here, &args, input),
            &[why, "no filter was written"],
        );
        assert!(!here.join("g.bloom").exists());
    }
    let header = with_input(&here, &["dedup", "--csv", "--header"], "\"a,b\n1,2\n");
    refused(&header, &["the quote that opens in line 1 never closes"]);
    assert_eq!(header.stdout, "");
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
            refused(&outcome, &[why]);
            assert_eq!(outcome.stdout, "", "{flags:?}");
            assert!(!here.join("s.bloom").exists() && !here.join("g.bloom").exists());
        }
    }
    let none = with_input(&here, &["dedup", "--csv", "-f", "3"], "a,b\n");
    refused(
        &none,
        &["no record has a field 3 of CSV with \",\" between fields"],
    );
}
