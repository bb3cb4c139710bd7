//! The library is built in floors: no file imports from a floor above its own.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of `src`, lowest first, as ARCHITECTURE.md describes them.
const FLOORS: [&str; 8] = [
    "sizing", "hash", "bits", "layer", "bloom", "cuckoo", "formats", "host",
];

fn files_in(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files_in(&path, files),
            false => files.push(path),
        }
    }
}

/// The floors that code names, without its comments and its tests.
fn floors_in(source: &str) -> impl Iterator<Item = usize> {
    let code = source
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let lines = code.lines().map(str::trim_start);
    let lines = lines.filter(|line| !line.starts_with("//"));
    let paths = lines.flat_map(|line| line.split("crate::").skip(1));
    paths.filter_map(|path| {
        let name = path
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()?;
        FLOORS.iter().position(|floor| *floor == name)
    })
}

#[test]
fn no_file_imports_from_a_floor_above() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut seen, mut named) = (0, 0);
    for (floor, name) in FLOORS.iter().enumerate() {
        let mut files = Vec::new();
        files_in(&src.join(name), &mut files);
        for file in files {
            let source = fs::read_to_string(&file).unwrap();
            for above in floors_in(&source) {
                assert!(above <= floor, "{} uses {}", file.display(), FLOORS[above]);
                named += 1;
            }
            seen += 1;
        }
    }
    // A test that reads nothing proves nothing.
    assert!(seen > 40 && named > 100, "{seen} files, {named} imports");
}

/// Beside the floors lies what they all use. An error's text names the bounds of `sizing`.
#[test]
fn what_all_floors_use_lies_below_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (name, above) in [("math.rs", 0), ("limits/mod.rs", 0), ("error.rs", 1)] {
        let source = fs::read_to_string(src.join(name)).unwrap();
        assert!(floors_in(&source).all(|floor| floor < above), "{name}");
    }
}
