//! The files of every release stay readable. `tests/releases` has a folder for each, and `just
//! release-files` makes that of this version.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod filters;
mod growth;
mod keys;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{folder, root};
use serde_json::{Value, json};

/// Items that are in no filter.
const OTHERS: usize = 300;

fn releases() -> PathBuf {
    root().join("tests/releases")
}

fn items(what: &str, count: usize) -> Vec<String> {
    (0..count).map(|item| format!("{what}-{item}")).collect()
}

/// A JSON file of a release.
fn read(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

fn write(file: &Path, content: &Value) {
    fs::write(file, serde_json::to_string_pretty(content).unwrap() + "\n").unwrap();
}

/// The entries of an object, of which there is one at least.
fn entries<'v>(value: &'v Value, what: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    let entries = value.as_object().filter(|entries| !entries.is_empty());
    entries.unwrap_or_else(|| panic!("no {what}")).iter()
}

#[test]
fn the_files_of_every_release_are_read() {
    let folders = fs::read_dir(releases()).unwrap();
    let folders = folders.map(|entry| entry.unwrap().path());
    let folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    let own = env!("CARGO_PKG_VERSION");
    assert!(
        folders.contains(&releases().join(own)),
        "tests/releases/{own} is missing: `just release-files` makes it"
    );
    for release in folders {
        let version = release.file_name().unwrap().to_str().unwrap().to_owned();
        println!("{version}");
        let scratch = folder(&format!("release-{version}"));
        let expected = read(&release.join("expected.json"));
        filters::check(&release, &scratch, &expected["filters"]);
        filters::check_items(&release);
        keys::check(&release, &scratch, &expected);
    }
}

/// A folder that is there stays: delete it first, if its version is not released.
#[test]
#[ignore = "it writes into the repository; see `just release-files`"]
fn write_the_files_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let release = releases().join(version);
    fs::create_dir(&release).unwrap_or_else(|e| panic!("{}: {e}", release.display()));
    let scratch = folder("release-new");
    let filters = filters::make(&release, &scratch);
    filters::make_items(&release);
    let (keys, digest) = keys::make(&release, &scratch);
    let expected = json!({
        "version": version,
        "filters": filters,
        "digest": digest,
        "keys": keys,
    });
    write(&release.join("expected.json"), &expected);
}
