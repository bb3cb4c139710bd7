//! Filters that forget, in files.

use std::fs::File;
use std::time::{SystemTime, UNIX_EPOCH};

use everbloom::{Span, WindowedBloomFilter};

use super::*;

/// A file with a window of so many ticks, to which `item` was added at this time.
fn window(path: &Path, ticks: u64, then: u64) {
    let builder = WindowedBloomFilter::builder().span(Span::Ticks(ticks));
    let mut filter = builder.starts_at(then).build().unwrap();
    filter.insert_at("item", then);
    filter.write_to(File::create(path).unwrap()).unwrap();
}

/// `check` forgets as `dedup` does, by the same clock. To a window of another clock no time of ours
/// means anything: what it has is found.
#[test]
fn check_forgets_what_is_older_than_the_window() {
    let folder = folder("check-window");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = now.as_millis() as u64;
    let day = 86_400_000;
    for (name, ticks, then, code) in [
        ("fresh", day, now - day / 2, 0),
        ("old", day, now - 2 * day, 1),
        ("days", 30, 20_000, 0),
        ("seconds", 86_400, 1_700_000_000, 0),
    ] {
        let path = folder.join(name);
        window(&path, ticks, then);
        fs::write(folder.join("in"), "item\n").unwrap();
        let checked = everbloom(&folder, &["check", name, "in"]);
        assert_eq!(checked.status.code(), Some(code), "{name}: {checked:?}");
    }
    // It would forget all, and save that.
    let refused = everbloom(&folder, &["dedup", "--state", "days", "in"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("another clock"), "{refused:?}");
    everbloom(&folder, &["build", "--append", "-q", "seconds", "in"]).success();
    everbloom(&folder, &["check", "-q", "seconds", "in"]).success();
}
