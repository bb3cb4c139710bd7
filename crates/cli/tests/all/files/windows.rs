//! Filters that forget, in files.

use std::fs::File;
use std::time::{SystemTime, UNIX_EPOCH};

use everbloom::{Span, WindowedBloomFilter};

use super::*;

/// A file with a window of so many ticks, to which this item was added at this time.
fn window(path: &Path, ticks: u64, item: &str, then: u64) {
    let builder = WindowedBloomFilter::builder().span(Span::Ticks(ticks));
    let mut filter = builder.seed(7).starts_at(then).build().unwrap();
    filter.insert_at(item, then);
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
        window(&path, ticks, "item", then);
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

/// Such times are far ahead of our clock. A window that began again now would forget all by its own.
#[test]
fn windows_of_finer_clocks_keep_their_times() {
    let folder = folder_with("fine-windows", &[("in", b"item\n"), ("more", b"more\n")]);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    for (name, second, then) in [
        ("micros", 1_000_000, since.as_micros() as u64),
        ("nanos", 1_000_000_000, since.as_nanos() as u64),
    ] {
        let day = 86_400 * second;
        window(&folder.join(name), day, "item", then);
        window(&folder.join("other"), day, "another", then - second);
        let read = |name: &str| {
            let bytes = fs::read(folder.join(name)).unwrap();
            WindowedBloomFilter::from_bytes(&bytes).unwrap()
        };
        everbloom(&folder, &["check", "-q", name, "in"]).success();
        let before = fs::read(folder.join(name)).unwrap();
        let state = everbloom(&folder, &["dedup", "--state", name, "in"]);
        refused(&state, &["another clock"]);
        assert!(fs::read(folder.join(name)).unwrap() == before);

        everbloom(&folder, &["merge", "-q", "merged", name, "other"]).success();
        everbloom(&folder, &["build", "--append", "-q", name, "more"]).success();
        for (file, items) in [(name, ["item", "more"]), ("merged", ["item", "another"])] {
            let filter = read(file);
            for item in items {
                assert!(filter.contains_at(item, then), "{file} {item}");
                assert!(filter.contains_at(item, then + day / 2), "{file} {item}");
                assert!(!filter.contains_at(item, then + 2 * day), "{file} {item}");
            }
        }
    }
}
