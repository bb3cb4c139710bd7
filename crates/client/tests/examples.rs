//! The examples, small: what they print is true.

#![allow(missing_docs)]

use everbloom_dev::{Example, Redis};

/// Whether a measured rate is at most what was expected of so many, with four standard deviations
/// for chance.
#[track_caller]
fn assert_rate(example: &Example, expected: f64, of: f64) {
    let measured = example.figure("error rate, measured");
    let allowance = 4.0 * (expected / of).sqrt();
    assert!(measured <= expected + allowance, "{}", example.output);
}

#[track_caller]
fn assert_crawled(example: &Example) {
    let [items, fetched, missed] =
        ["items", "fetched", "missed, that is never fetched"].map(|name| example.figure(name));
    assert_eq!(example.figure("repeats"), 0.0);
    assert_eq!(fetched + missed, items);
    let expected = example.figure("error rate, expected at most");
    assert_rate(example, expected, items);
}

#[track_caller]
fn assert_says(example: &Example, words: &[&str]) {
    let output = &example.output;
    assert!(words.iter().all(|word| output.contains(word)), "{output}");
}

#[test]
fn crawler() {
    let example = Example::run("crawler", &["--items", "20000"]);
    assert_crawled(&example);
    assert_says(&example, &["started again on its files"]);
}

#[test]
fn cluster() {
    // It says itself that redis-server is missing, or fails when it must not be.
    if Redis::start(&[]).is_some() {
        let example = Example::run("cluster", &["--items", "20000"]);
        assert_crawled(&example);
        let lost = r#"has lost ["{seen:3}"]"#;
        assert_says(&example, &["moves", "takes over", "started again", lost]);
        for by in ["this program", "a new one"] {
            let forgotten = example.figure(&format!("fetched, and forgotten by {by}"));
            assert_eq!(forgotten, 0.0);
        }
    }
}

#[test]
fn feed() {
    let example = Example::run("feed", &["--items", "2000"]);
    assert_eq!(example.figure("repeats"), 0.0);
    assert_eq!(example.figure("items offered"), 200_000.0);
    let expected = example.figure("error rate, expected");
    assert_rate(&example, expected, example.figure("items shown"));
    assert!(
        example.figure("memory, bytes a user") < 1000.0,
        "{}",
        example.output
    );
}

#[test]
fn guard() {
    let example = Example::run("guard", &["--items", "2000"]);
    let [without, with, absent] = [
        "queries without the filter",
        "queries with the filter",
        "of absent keys",
    ]
    .map(|name| example.figure(name));
    assert_eq!(example.figure("missed or different answers"), 0.0);
    assert!(without >= absent, "{}", example.output);
    assert!(with * 20.0 < without, "{}", example.output);
    let expected = example.figure("error rate, expected");
    assert_rate(&example, expected, absent);
    let asked = example.figure("rows requested without the filter");
    assert!(asked > 0.0);
    assert_eq!(example.figure("rows answered without the filter"), asked);
    let asked = example.figure("requests after the server has stopped");
    assert!(asked > 0.0);
    assert_eq!(example.figure("of these answered"), asked);
}

#[test]
fn checkin() {
    let example = Example::run("checkin", &["--items", "200"]);
    assert_eq!(example.figure("missed"), 0.0);
    assert_eq!(example.figure("counted"), example.figure("check-ins"));
    assert_eq!(example.figure("BITCOUNT 1 7"), 0.0);
    assert_eq!(example.figure("BITCOUNT 1 7 BIT"), 3.0);
}
