//! `everbloom dedup` as a user sees it: what it prints, remembers and says. A `HashSet` is the
//! oracle.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]
#![cfg(unix)]

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{EVERBLOOM, Outcome, Server, folder, run, run_with_input};
use everbloom::host::{Layer, LayeredFilter};
use everbloom::{BloomFilter, ScalableBloomFilter, Span, WindowedBloomFilter};
use everbloom_dev::{peers, wait_for};

mod durable;
mod input;
mod seed;
mod server;
mod state;

fn dedup(args: &[&str]) -> Command {
    let mut command = Command::new(EVERBLOOM);
    command
        .arg("dedup")
        .args(args)
        .env_remove("REDISCLI_AUTH")
        .current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

fn with_input(args: &[&str], input: impl Into<Vec<u8>>) -> Outcome {
    let input = input.into();
    run_with_input(&mut dedup(args), move |stdin| stdin.write_all(&input))
}

/// Lines of which some repeat, of different lengths.
fn lines(seed: u64, count: u64, different: u64) -> String {
    let mut state = seed;
    let mut text = String::new();
    for _ in 0..count {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let number = (state >> 33) % different;
        let tail = "/long".repeat(usize::try_from(number % 40).unwrap());
        text += &format!("https://example.org/{number}{tail}\n");
    }
    text
}

/// The lines that come for the first time.
fn first_seen(text: &str, seen: &mut HashSet<String>) -> String {
    let mut firsts = String::new();
    for line in text.lines() {
        if seen.insert(line.to_owned()) {
            firsts += line;
            firsts.push('\n');
        }
    }
    firsts
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// A path with a file.
fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = path(folder, name);
    fs::write(&path, content).unwrap();
    path
}

#[track_caller]
fn refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word}: {outcome:?}");
    }
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
}

/// A number of six digits, as it is printed.
fn grouped(number: usize) -> String {
    format!("{} {:03}", number / 1000, number % 1000)
}

#[test]
fn each_line_is_printed_once_and_in_order() {
    let text = lines(1, 200_000, 90_000);
    let expected = first_seen(&text, &mut HashSet::new());
    // At this rate no line is lost.
    let outcome = with_input(&["--error-rate", "1e-12"], text.clone());
    assert!(outcome.stdout == expected, "{}", outcome.stderr);
    let out = expected.lines().count();
    let summary = format!(
        "200 000 records in, {} out, {} repeats",
        grouped(out),
        grouped(200_000 - out)
    );
    assert!(outcome.stderr.contains(&summary), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("warning"), "{}", outcome.stderr);

    let folder = folder("dedup-order");
    let file = file(&folder, "text", text);
    let again = run(&mut dedup(&["-e", "1e-12", "--quiet", &file, "-", &file]));
    assert!(again.stdout == expected);
    assert_eq!(again.stderr, "");
}

#[test]
fn repeats_counts_and_both() {
    let text = "a\nb\na\nc\nb\na\n";
    assert_eq!(with_input(&[], text).success(), "a\nb\nc\n");
    assert_eq!(with_input(&["--repeated"], text).success(), "a\nb\na\n");
    assert_eq!(with_input(&["--count"], text).success(), "3\n");
    assert_eq!(
        with_input(&["--count", "--repeated"], text).success(),
        "3\n"
    );
    assert_eq!(with_input(&["--count"], "").success(), "0\n");
}

#[test]
fn the_last_record_gets_an_end() {
    let folder = folder("dedup-ends");
    let (a, b) = (file(&folder, "a", "1\n2"), file(&folder, "b", "2\n\n\n3"));
    assert_eq!(run(&mut dedup(&[&a, &b])).success(), "1\n2\n\n3\n");
    assert_eq!(
        with_input(&["-0"], "a\nb\0c\0a\nb\0c").success(),
        "a\nb\0c\0"
    );
}

/// A run whose input stays open until it is taken.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(args: &[&str]) -> Self {
        let mut child = dedup(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let input = child.stdin.take();
        Self {
            child,
            input,
            output,
        }
    }

    fn write(&mut self, text: &str) {
        self.input
            .as_mut()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        run(Command::new("kill").args(["-s", name, &pid])).success();
    }
}
