//! The inputs in `tests/corpus`, from which the fuzzers start and which the tests replay.

use std::fs;
use std::path::Path;

/// The seeds of a target with their names, for a test of a crate in `crates/`.
pub(crate) fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let mut seeds: Vec<_> = fs::read_dir(folder.join(target))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    seeds.sort();
    assert!(seeds.len() > 20, "{target}: {} seeds", seeds.len());
    seeds
}
