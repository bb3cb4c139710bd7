//! `merge` and `shrink`.

use std::fs;
use std::path::Path;

use everbloom::BloomFilter;

use super::{everbloom, folder_with, names, refused, with_input};

#[test]
fn merged_filters_find_what_each_of_them_finds() {
    let (one, two) = (names(0..500), names(400..1000));
    let folder = folder_with(
        "files-merge",
        &[("one", one.as_bytes()), ("two", two.as_bytes())],
    );
    let build = ["build", "-q", "-c", "1000", "-e", "1e-9", "a.bloom", "one"];
    everbloom(&folder, &build).success();
    everbloom(
        &folder,
        &["build", "-q", "--like", "a.bloom", "b.bloom", "two"],
    )
    .success();
    let found = |file: &str| with_input(&folder, &["check", file], names(0..2000)).success();
    everbloom(&folder, &["merge", "all.bloom", "a.bloom", "b.bloom"]).success();
    assert_eq!(found("all.bloom"), names(0..1000));
    // The output may be among the inputs.
    everbloom(&folder, &["merge", "a.bloom", "a.bloom", "b.bloom"]).success();
    assert_eq!(found("a.bloom"), names(0..1000));

    let seeded = ["build", "-q", "-c", "1000", "-e", "1e-9", "--seed", "7"];
    for (file, input) in [("c.bloom", "one"), ("d.bloom", "two")] {
        everbloom(&folder, &[&seeded[..], &[file, input]].concat()).success();
    }
    everbloom(&folder, &["merge", "e.bloom", "c.bloom", "d.bloom"]).success();
    assert_eq!(found("e.bloom"), names(0..1000));
}

/// It has what it had, so its count is known, and needs no estimate.
#[test]
fn a_filter_merged_with_itself_counts_as_before() {
    let folder = folder_with("files-itself", &[("in", names(0..70).as_bytes())]);
    for (file, more) in [("f.bloom", &[][..]), ("g.bloom", &["--growing"])] {
        everbloom(&folder, &[&["build", "-q", file, "in"], more].concat()).success();
        let merged = everbloom(&folder, &["merge", file, file, file]);
        assert!(merged.stderr.contains("about 70 items"), "{merged:?}");
    }
}

#[test]
fn only_filters_that_are_alike_are_merged() {
    let folder = folder_with("files-unlike", &[("in", b"a\n")]);
    let build = |file: &str, args: &[&str]| {
        let args = [&["build", "-q", file, "in"], args].concat();
        everbloom(&folder, &args).success();
    };
    build("a.bloom", &[]);
    build("b.bloom", &[]);
    build("classic.bloom", &["--layout", "classic"]);
    build("growing.bloom", &["--growing", "--layout", "classic"]);
    let before = fs::read(folder.join("a.bloom")).unwrap();
    let merge = |files: &[&str]| everbloom(&folder, &[&["merge", "a.bloom"], files].concat());
    let keys = merge(&["a.bloom", "b.bloom"]);
    refused(&keys, &["a.bloom and b.bloom", "different keys", "--like"]);
    refused(
        &merge(&["b.bloom", "classic.bloom"]),
        &["different layouts"],
    );
    refused(
        &merge(&["classic.bloom", "growing.bloom"]),
        &["one of them grows"],
    );
    refused(&merge(&["b.bloom", "missing"]), &["missing"]);
    assert!(fs::read(folder.join("a.bloom")).unwrap() == before);
    refused(
        &everbloom(
            &folder,
            &[
                "build", "--layout", "classic", "--seed", "7", "x.bloom", "in",
            ],
        ),
        &["--seed"],
    );
    assert!(!folder.join("x.bloom").exists());
}

/// What the two find, and how many others of the same number.
fn found_after_merge(folder: &Path, file: &str, members: u32) -> (String, usize) {
    let found = with_input(folder, &["check", file], names(0..members)).success();
    let others = with_input(folder, &["check", "-c", file], names(members..2 * members));
    (found, others.stdout.trim().parse().unwrap())
}

/// Two states that two machines kept.
#[test]
fn filters_that_grew_are_merged() {
    let (one, two) = (names(0..20_000), names(20_000..40_000));
    let folder = folder_with(
        "files-merge-grown",
        &[("one", one.as_bytes()), ("two", two.as_bytes())],
    );
    for layout in ["blocked", "classic"] {
        let build = ["build", "-q", "-g", "-c", "1000", "-e", "1%", "--layout"];
        everbloom(&folder, &[&build[..], &[layout, "a.bloom", "one"]].concat()).success();
        everbloom(&folder, &["build", "--like", "a.bloom", "b.bloom", "two"]).success();
        let again = ["dedup", "-q", "--state", "b.bloom", "two"];
        assert_eq!(everbloom(&folder, &again).success(), "");

        let merge = ["merge", "all.bloom", "a.bloom", "b.bloom"];
        let merged = everbloom(&folder, &[&merge[..], &["-e", "2%"]].concat());
        assert!(
            merged.stderr.contains("of other records it finds"),
            "{merged:?}"
        );
        assert_eq!(merged.success(), "");
        let (found, others) = found_after_merge(&folder, "all.bloom", 40_000);
        assert!(found == [one.as_str(), &two].concat());
        assert!(others < 1000, "{others}");
        // It is a state as any other.
        let more = ["dedup", "--state", "all.bloom", "--count"];
        let more = with_input(&folder, &more, names(39_000..42_000)).success();
        assert!(more.trim().parse::<u32>().unwrap() > 1900, "{more}");

        // Whoever merges a file with its copy gets that file.
        let same = ["merge", "-q", "same.bloom", "a.bloom", "a.bloom"];
        let same = everbloom(&folder, &same);
        assert_eq!((same.stderr.as_str(), same.stdout.as_str()), ("", ""));
        let size = |file: &str| fs::metadata(folder.join(file)).unwrap().len();
        assert_eq!(size("same.bloom"), size("a.bloom"));
    }
}

#[test]
fn a_merge_keeps_the_error_rate_that_was_asked_for() {
    let (one, two) = (names(0..1000), names(1000..2000));
    let folder = folder_with(
        "files-merge-rate",
        &[("one", one.as_bytes()), ("two", two.as_bytes())],
    );
    for layout in ["blocked", "classic"] {
        // Both are full: side by side they err twice as often.
        let build = ["build", "-q", "-e", "5%", "--layout", layout];
        let seed: &[&str] = match layout {
            "blocked" => &["--seed", "7"],
            _ => &[],
        };
        for (file, input) in [("a.bloom", "one"), ("b.bloom", "two")] {
            everbloom(&folder, &[&build, seed, &[file, input]].concat()).success();
        }
        let merge = ["merge", "all.bloom", "a.bloom", "b.bloom"];
        let over = everbloom(&folder, &merge);
        refused(&over, &["% of other records", "5 %", "--error-rate"]);
        assert!(!folder.join("all.bloom").exists());
        // The rate that the message names is enough.
        let (_, advice) = over.stderr.split_once("give --error-rate ").unwrap();
        let rate = advice.split(' ').next().unwrap();
        everbloom(&folder, &[&merge[..], &["--error-rate", rate]].concat()).success();
        let (found, others) = found_after_merge(&folder, "all.bloom", 2000);
        assert!(found == [one.as_str(), &two].concat());
        assert!((100..300).contains(&others), "{others}");
        let info = everbloom(&folder, &["info", "all.bloom"]).success();
        assert!(
            info.contains("fixed, ") && info.contains("warning"),
            "{info}"
        );
        let too_low = everbloom(&folder, &[&merge[..], &["-e", "1%"]].concat());
        refused(&too_low, &["--error-rate allows 1 %"]);
        fs::remove_file(folder.join("all.bloom")).unwrap();
    }
}

/// They have room, so that one of the same size takes all, and programs read it as before.
#[test]
fn filters_with_room_become_one_of_the_same_size() {
    let (one, two) = (names(0..800), names(500..900));
    let folder = folder_with(
        "files-merge-room",
        &[("one", one.as_bytes()), ("two", two.as_bytes())],
    );
    let build = ["build", "-q", "-c", "1000", "a.bloom", "one"];
    everbloom(&folder, &build).success();
    everbloom(
        &folder,
        &["build", "-q", "--like", "a.bloom", "b.bloom", "two"],
    )
    .success();
    everbloom(&folder, &["merge", "all.bloom", "a.bloom", "b.bloom"]).success();
    let merged = BloomFilter::from_bytes(&fs::read(folder.join("all.bloom")).unwrap()).unwrap();
    assert_eq!(merged.capacity(), 1000);
    assert!((870..=930).contains(&merged.len()), "{}", merged.len());
    assert_eq!(
        found_after_merge(&folder, "all.bloom", 900).0,
        names(0..900)
    );
}

#[test]
fn a_filter_that_is_too_large_is_shrunk() {
    let members = names(0..1000);
    let folder = folder_with("files-shrink", &[("in", members.as_bytes())]);
    let build = ["build", "-q", "-c", "100000", "-e", "1e-6", "f.bloom", "in"];
    everbloom(&folder, &build).success();
    let size = || fs::metadata(folder.join("f.bloom")).unwrap().len();
    let before = size();
    refused(
        &everbloom(&folder, &["shrink", "-c", "500", "f.bloom"]),
        &["1000 items", "--capacity 1000"],
    );
    assert_eq!(size(), before);
    everbloom(&folder, &["shrink", "--capacity", "2K", "f.bloom"]).success();
    assert!(size() * 25 < before, "{} {before}", size());
    let found = with_input(&folder, &["check", "f.bloom"], members.clone());
    assert_eq!(found.success(), members);
    let others = with_input(&folder, &["check", "-c", "f.bloom"], names(1000..20_000));
    assert_eq!(others.stdout, "0\n");

    // What would not become smaller says so, and is as it was.
    let before = fs::read(folder.join("f.bloom")).unwrap();
    let same = everbloom(&folder, &["shrink", "--capacity", "2K", "f.bloom"]);
    assert_eq!(same.status.code(), Some(1), "{same:?}");
    let (_, rest) = same.stderr.split_once("--capacity ").unwrap();
    let (most, _) = rest.split_once(',').unwrap();
    assert!(
        (1000..2000).contains(&most.parse::<u64>().unwrap()),
        "{same:?}"
    );
    let quiet = everbloom(&folder, &["shrink", "-q", "--capacity", "2K", "f.bloom"]);
    assert_eq!((quiet.status.code(), &*quiet.stderr), (Some(1), ""));
    assert!(fs::read(folder.join("f.bloom")).unwrap() == before);
    everbloom(&folder, &["shrink", "--capacity", most, "f.bloom"]).success();
    let smallest = everbloom(&folder, &["shrink", "f.bloom"]);
    assert_eq!(smallest.status.code(), Some(1), "{smallest:?}");
    assert!(
        smallest
            .stderr
            .contains("stays as it is: no smaller size keeps"),
        "{smallest:?}"
    );
    let found = with_input(&folder, &["check", "f.bloom"], members.clone());
    assert_eq!(found.success(), members);

    let classic = ["build", "-q", "--layout", "classic", "c.bloom", "in"];
    everbloom(&folder, &classic).success();
    refused(
        &everbloom(&folder, &["shrink", "c.bloom"]),
        &["classic layout", "--capacity"],
    );
    refused(&everbloom(&folder, &["shrink", "missing"]), &["missing"]);
    assert!(!folder.join("missing").exists());
    // An empty one is somebody's, too.
    fs::write(folder.join("empty"), "").unwrap();
    refused(&everbloom(&folder, &["shrink", "empty"]), &["is empty"]);
    assert_eq!(fs::read(folder.join("empty")).unwrap(), b"");
}
