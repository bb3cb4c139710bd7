//! Servers on data directories, and what one asks them.

use std::fs;
use std::path::{Path, PathBuf};

use everbloom_server::{Running, Settings};

use crate::support::{Client, OfRunning, server};

/// A server that keeps a log in `dir`, and lets tests DEBUG.
pub(crate) fn logging(dir: &Path) -> Settings {
    with(snapshots(dir), |data| data.appendonly = true)
}

/// A server that makes snapshots in `dir` when it is told to.
pub(crate) fn snapshots(dir: &Path) -> Settings {
    let settings = Settings {
        enable_debug_command: "yes".into(),
        ..Settings::default()
    };
    with(settings, |data| data.dir = Some(dir.into()))
}

/// These settings with others for the data.
pub(crate) fn with(
    mut settings: Settings,
    change: impl FnOnce(&mut everbloom_store::Settings),
) -> Settings {
    change(&mut settings.data);
    settings
}

/// A server that has loaded its data, and a client of it.
pub(crate) fn start(settings: Settings) -> (Running, Client) {
    let running = server(settings);
    running.wait_until_loaded();
    assert_eq!(running.server().store.failure(), None);
    let client = Client::of(&running);
    (running, client)
}

/// Why a server ends that cannot load its data.
pub(crate) fn failure(settings: Settings) -> String {
    let running = server(settings);
    running.wait_until_loaded();
    let loaded = !running.server().store.health.is_loading();
    assert!(!loaded, "the server has started");
    running
        .wait()
        .expect_err("the server should not have started")
}

pub(crate) fn digest(client: &mut Client) -> String {
    client.digest()
}

/// Runs lines none of which may fail.
pub(crate) fn run(client: &mut Client, lines: &[&str]) {
    for line in lines {
        client.ok(line);
    }
}

/// A field of INFO.
pub(crate) fn info(client: &mut Client, field: &str) -> String {
    client.info(field)
}

/// Waits until a field of INFO has a value.
pub(crate) fn until(client: &mut Client, field: &str, wanted: &str) {
    client.until(field, wanted);
}

/// Every file below a directory, with its bytes.
pub(crate) fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for (path, bytes) in files(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, bytes).unwrap();
    }
}

pub(crate) fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../files/tests/golden")
        .join(name)
}

/// The file of the log that is being written.
pub(crate) fn last_increment(dir: &Path) -> PathBuf {
    let log = dir.join("appendonlydir");
    let manifest = fs::read_to_string(log.join("appendonly.aof.manifest")).unwrap();
    let line = manifest.lines().last().unwrap();
    log.join(line.split(' ').nth(1).unwrap())
}
