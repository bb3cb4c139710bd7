//! Filters in files as a user has them: `build`, `check`, `info`, `merge`, `shrink`, `convert`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]
#![cfg(unix)]

mod build;
mod convert;
mod damaged;
mod deletable;
mod merge;
mod other;
mod windows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{EVERBLOOM, Outcome, folder, run, run_with_input};

/// Runs a subcommand in a folder, with this as its standard input.
fn with_input(folder: &Path, args: &[&str], input: impl Into<Vec<u8>>) -> Outcome {
    let input = input.into();
    let mut command = Command::new(EVERBLOOM);
    command.args(args).current_dir(folder);
    run_with_input(&mut command, move |stdin| stdin.write_all(&input))
}

fn everbloom(folder: &Path, args: &[&str]) -> Outcome {
    run(Command::new(EVERBLOOM).args(args).current_dir(folder))
}

#[track_caller]
fn refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word}: {outcome:?}");
    }
    assert_eq!(outcome.stdout, "");
}

/// A new folder with some files in it.
fn folder_with(name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let folder = folder(name);
    for (name, content) in files {
        fs::write(folder.join(name), content).unwrap();
    }
    folder
}

fn names(range: std::ops::Range<u32>) -> String {
    range.map(|number| format!("name {number}\n")).collect()
}

/// The names of a folder's files, but for the inputs.
fn left(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(".bloom")).collect()
}
