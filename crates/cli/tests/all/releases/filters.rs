//! Files of one filter: those of `everbloom build` and `dedup`, and the library's bytes.

use std::fs;
use std::path::Path;
use std::process::Command;

use everbloom::{BloomFilter, BloomView, Layout, ScalableBloomFilter};
use serde_json::{Map, Value, json};

use super::{OTHERS, entries, growth, items};
use crate::support::{EVERBLOOM, run};

const MEMBERS: usize = 150;

/// The files, and the words that make them.
const FILES: [(&str, &[&str]); 10] = [
    (
        "classic-fixed.bloom",
        &["build", "-q", "-l", "classic", "-e", "0.01"],
    ),
    (
        "blocked-fixed.bloom",
        &["build", "-q", "-l", "blocked", "-e", "0.01"],
    ),
    (
        "classic-growing.bloom",
        &[
            "build", "-q", "-l", "classic", "-e", "0.01", "-g", "-c", "20",
        ],
    ),
    (
        "blocked-growing.bloom",
        &[
            "build", "-q", "-l", "blocked", "-e", "0.01", "-g", "-c", "20",
        ],
    ),
    (
        "classic-growing-5.bloom",
        &[
            "build", "-q", "-l", "classic", "-e", "0.01", "-g", "-c", "5",
        ],
    ),
    (
        "blocked-growing-5.bloom",
        &[
            "build", "-q", "-l", "blocked", "-e", "0.01", "-g", "-c", "5",
        ],
    ),
    (
        "blocked-growing-100.bloom",
        &[
            "build", "-q", "-l", "blocked", "-e", "0.001", "-g", "-c", "100",
        ],
    ),
    (
        "dcso.bloom",
        &["build", "-q", "--format", "dcso", "-e", "0.01"],
    ),
    (
        "dedup.bloom",
        &["dedup", "-q", "-e", "0.01", "-c", "100", "--state"],
    ),
    (
        "dedup-window.bloom",
        &[
            "dedup", "-q", "-e", "0.01", "-c", "100", "--window", "40000d", "--state",
        ],
    ),
];

/// Makes them, and says what they hold.
pub(crate) fn make(release: &Path, scratch: &Path) -> Value {
    write_items(scratch);
    let mut made = Map::new();
    for (name, words) in FILES {
        let mut command = Command::new(EVERBLOOM);
        let file = release.join(name);
        run(command
            .args(words)
            .arg(file)
            .arg("members")
            .current_dir(scratch))
        .success();
        let said = json!({ "info": info(release, name), "wrong": found(release, scratch, name) });
        made.insert(name.into(), said);
    }
    made.into()
}

pub(crate) fn check(release: &Path, scratch: &Path, expected: &Value) {
    write_items(scratch);
    for (name, said) in entries(expected, "filters") {
        let members = run(Command::new(EVERBLOOM)
            .arg("check")
            .args([release.join(name), scratch.join("members")]))
        .success();
        assert_eq!(members, lines("item", MEMBERS), "{name}");
        assert_eq!(found(release, scratch, name), said["wrong"], "{name}");
        let info = info(release, name);
        for (field, value) in entries(&said["info"], "fields") {
            // Since 0.1.0 this includes what double hashing costs in small arrays.
            if field == "expected_error_rate" && info["layout"] == "classic" {
                let (now, then) = (info[field].as_f64(), value.as_f64());
                assert!(now >= then, "{name}: {info}");
                continue;
            }
            assert!(is_same(&info[field], value), "{name}: {field}: {info}");
        }
        if name != "dcso.bloom" {
            look_up(&fs::read(release.join(name)).unwrap(), name);
        }
        if ["growing", "windowed"].contains(&said["info"]["type"].as_str().unwrap()) {
            growth::of_file(&fs::read(release.join(name)).unwrap(), name, MEMBERS);
        }
    }
    // A state goes on where it was.
    for (name, _) in entries(expected, "filters").filter(|(name, _)| name.starts_with("dedup")) {
        let state = scratch.join(name);
        fs::copy(release.join(name), &state).unwrap();
        let mut dedup = Command::new(EVERBLOOM);
        dedup.args(["dedup", "-q", "--state"]).arg(&state);
        let new = run(dedup.arg(scratch.join("members"))).success();
        assert_eq!(new, "", "{name}");
    }
}

/// The same by the library, which makes a filter of the bytes, or looks into them.
fn look_up(bytes: &[u8], name: &str) {
    let view = BloomView::new(bytes).unwrap();
    let layered = growth::read(bytes);
    let fixed = BloomFilter::from_bytes(bytes);
    assert!(layered.is_some() != fixed.is_ok(), "{name}");
    for item in items("item", MEMBERS) {
        assert!(view.contains(&item), "{name}");
        let layered = layered.as_ref().map(|filter| filter.contains(&item));
        let fixed = fixed.as_ref().map(|filter| filter.contains(&item));
        assert!(layered.unwrap_or(true) && fixed.unwrap_or(true), "{name}");
    }
}

fn write_items(scratch: &Path) {
    fs::write(scratch.join("members"), lines("item", MEMBERS)).unwrap();
    fs::write(scratch.join("others"), lines("other", OTHERS)).unwrap();
}

fn lines(what: &str, count: usize) -> String {
    items(what, count).join("\n") + "\n"
}

fn info(release: &Path, name: &str) -> Value {
    let file = release.join(name);
    let said = run(Command::new(EVERBLOOM).args(["info", "--json"]).arg(file)).success();
    serde_json::from_str(&said).unwrap()
}

/// The items that the filter holds by mistake.
fn found(release: &Path, scratch: &Path, name: &str) -> Value {
    let (file, others) = (release.join(name), scratch.join("others"));
    let said = run(Command::new(EVERBLOOM).arg("check").args([file, others]));
    said.stdout.split_whitespace().collect()
}

/// The same, but for what another way to calculate a share may change.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * b.abs(),
        _ => a == b,
    }
}

/// A filter of items that only the library knows: numbers, tuples, and what hashes itself.
fn with_items(layout: Layout) -> ScalableBloomFilter {
    let builder = ScalableBloomFilter::builder().capacity(10).layout(layout);
    let mut filter = builder.build().unwrap();
    for number in 0..40_u64 {
        filter.insert(&number);
        filter.insert(&(-1 - i64::try_from(number).unwrap()));
        filter.insert(&(number, "pair"));
    }
    filter.insert(&u128::MAX);
    filter
}

const ITEM_FILES: [(&str, Layout); 2] = [
    ("items-classic.bin", Layout::Classic),
    ("items-blocked.bin", Layout::Blocked),
];

pub(crate) fn make_items(release: &Path) {
    for (name, layout) in ITEM_FILES {
        fs::write(release.join(name), with_items(layout).to_bytes()).unwrap();
    }
}

pub(crate) fn check_items(release: &Path) {
    for (name, layout) in ITEM_FILES {
        let bytes = fs::read(release.join(name)).unwrap();
        let filter = ScalableBloomFilter::from_bytes(&bytes).unwrap();
        assert_eq!((filter.layout(), filter.len()), (layout, 121), "{name}");
        for number in 0..40_u64 {
            let below = -1 - i64::try_from(number).unwrap();
            let known = [filter.contains(&number), filter.contains(&below)];
            assert_eq!(known, [true; 2], "{name}: {number}");
            assert!(filter.contains(&(number, "pair")), "{name}: {number}");
        }
        assert!(filter.contains(&u128::MAX), "{name}");
        let wrong = (1000..2000_u64).filter(|number| filter.contains(number));
        assert!(wrong.count() < 50, "{name}");
    }
}
