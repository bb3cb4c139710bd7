//! The examples, small: what they print is true.

use everbloom_dev::Example;

const SMALL: [&str; 2] = ["--items", "20000"];

/// Whether a measured rate is what was expected of so many, with four standard deviations for
/// chance.
#[track_caller]
fn assert_rate(example: &Example, of: f64) {
    let expected = example.figure("error rate, expected");
    let measured = example.figure("error rate, measured");
    let allowance = 4.0 * (expected / of).sqrt();
    assert!(measured <= expected + allowance, "{}", example.output);
}

#[test]
fn blacklist() {
    let example = Example::run("blacklist", &SMALL);
    assert_eq!(example.figure("addresses"), 20_000.0);
    assert_eq!(example.figure("missed"), 0.0);
    assert!(
        example.figure("bits an address") < 25.0,
        "{}",
        example.output
    );
    assert_rate(&example, 20_000.0);
}

#[test]
fn a_blacklist_of_a_file() {
    let list = std::env::temp_dir().join(format!("blacklist-test-{}.txt", std::process::id()));
    std::fs::write(&list, "https://a.example/\nhttps://b.example/\n").unwrap();
    let example = Example::run("blacklist", &["--list", list.to_str().unwrap()]);
    std::fs::remove_file(list).unwrap();
    assert_eq!(example.figure("addresses"), 2.0);
    assert_eq!(example.figure("missed"), 0.0);
}

#[test]
fn tables() {
    let example = Example::run("tables", &SMALL);
    let [without, with, saved, in_vain] = [
        "table reads without filters",
        "table reads with filters",
        "table reads saved",
        "of these in vain",
    ]
    .map(|name| example.figure(name));
    assert_eq!(example.figure("missed or different answers"), 0.0);
    assert_eq!(without, with + saved);
    assert_eq!(with - in_vain, example.figure("of keys that are there"));
    assert!(with * 20.0 < without, "{}", example.output);
    assert_rate(&example, without);
}

#[test]
fn spam() {
    let example = Example::run("spam", &SMALL);
    assert_eq!(example.figure("missed"), 0.0);
    assert!(example.figure("repeats") > 3000.0, "{}", example.output);
    assert_eq!(example.figure("of these stopped by mistake"), 0.0);
}

#[test]
fn shared() {
    let example = Example::run("shared", &SMALL);
    assert_eq!(example.figure("items"), 20_000.0);
    assert_eq!(example.figure("processes that read the file"), 2.0);
}

#[test]
fn deletable() {
    let example = Example::run("deletable", &["--items", "20000", "--probes", "200000"]);
    for (name, most_bits, most_errors) in [
        ("deletable, 1 %", 10.7, 1.0),
        ("deletable, 0.1 %", 13.9, 0.13),
        ("deletable, 0.01 %", 18.1, 0.019),
        ("deletable, 1e-6", 24.5, 0.002),
    ] {
        let start = format!("| {name} |");
        let row = example.output.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("{name}: {}", example.output));
        let mut cells = row
            .split('|')
            .skip(2)
            .map(|cell| cell.trim().trim_end_matches(" %"));
        let mut next = || cells.next().unwrap().parse::<f64>().unwrap();
        assert!(next() < most_bits && next() < most_errors, "{row}");
    }
}
