//! Inputs of `dedup`, `build` and `check` that are not plain lines: each is understood or refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]
#![cfg(unix)]

mod case;
mod csv;
mod fields;
mod lines;
mod output;
mod packed;
mod selection;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{EVERBLOOM, Outcome, folder, run, run_with_input};

fn everbloom(folder: &Path, args: &[&str]) -> Outcome {
    run(Command::new(EVERBLOOM).args(args).current_dir(folder))
}

/// Runs a subcommand in a folder, with this as its standard input.
fn with_input(folder: &Path, args: &[&str], input: impl Into<Vec<u8>>) -> Outcome {
    let input = input.into();
    let mut command = Command::new(EVERBLOOM);
    command.args(args).current_dir(folder);
    run_with_input(&mut command, move |stdin| stdin.write_all(&input))
}

/// The code is 2, and the words are in the error.
#[track_caller]
fn fails_with(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word}: {outcome:?}");
    }
}

/// It [fails](fails_with), and nothing is printed.
#[track_caller]
fn refused(outcome: &Outcome, words: &[&str]) {
    fails_with(outcome, words);
    assert_eq!(outcome.stdout, "");
}
