//! `build --deletable`, and what the other subcommands do with such a filter.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use everbloom::CuckooFilter;
use everbloom::bytes::Note;

use super::{everbloom, folder_with, names, refused, with_input};

const BUILD: [&str; 4] = ["build", "--deletable", "-e", "1e-9"];

#[test]
fn members_are_found_and_others_are_not() {
    let members = names(0..20_000);
    let folder = folder_with("files-deletable", &[("in", members.as_bytes())]);
    let built = everbloom(&folder, &[&BUILD[..], &["f.bloom", "in"]].concat());
    assert!(
        built
            .stderr
            .contains("20 000 records in, 20 000 in the filter"),
        "{built:?}"
    );
    assert_eq!(built.success(), "");
    let mixed = names(19_990..20_010);
    let check = |args: &[&str]| {
        let args = [&["check", "f.bloom"], args].concat();
        with_input(&folder, &args, mixed.clone()).success()
    };
    assert_eq!(check(&[]), names(19_990..20_000));
    assert_eq!(check(&["-v"]), names(20_000..20_010));

    // It is the library's, and what it finds is what the library finds.
    let bytes = fs::read(folder.join("f.bloom")).unwrap();
    let (_, filter) = Note::split(&bytes).unwrap();
    let mut filter = CuckooFilter::from_bytes(filter).unwrap();
    assert!(members.lines().all(|name| filter.remove(name)));
    assert!(filter.is_empty());
}

#[test]
fn the_error_rate_is_the_one_asked_for() {
    let folder = folder_with(
        "files-deletable-rate",
        &[("in", names(0..50_000).as_bytes())],
    );
    for (rate, most) in [("1%", 1200), ("0.1%", 140), ("1e-4", 25)] {
        let build = ["build", "-q", "--deletable", "-e", rate, "f.bloom", "in"];
        everbloom(&folder, &build).success();
        let others = names(100_000..200_000);
        let found = with_input(&folder, &["check", "-c", "f.bloom"], others);
        let found: u64 = found.stdout.trim().parse().unwrap();
        assert!(found < most, "{rate}: {found}");
    }
}

#[test]
fn info_shows_rate_width_and_tables() {
    let folder = folder_with(
        "files-deletable-info",
        &[("in", names(0..10_000).as_bytes())],
    );
    let build = ["build", "-q", "--deletable", "-e", "0.1%", "f.bloom", "in"];
    everbloom(&folder, &build).success();
    let text = everbloom(&folder, &["info", "f.bloom"]).success();
    for line in [
        "type        cuckoo\n",
        "items       10 000 of 10 0",
        "error rate  0.1 % asked for, 0.09",
        "slots       13 bits each\n",
        "memory      13.7 bits an item\n",
        "compared    whole lines\n",
        "tables      1, and it does not grow\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("hashes"), "{text}");
    let json = everbloom(&folder, &["info", "--json", "f.bloom"]).success();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["type"], "cuckoo", "{json}");
    assert_eq!(json["error_rate"], 0.001, "{json}");
    for (field, expected) in [
        ("items", 10_000),
        ("fingerprint_bits", 13),
        ("tables", 1),
        ("expansion", 0),
    ] {
        assert_eq!(json[field], expected, "{json}");
    }
    assert!(json["expected_error_rate"].as_f64().unwrap() <= 0.001);
    assert!(json["slots"].as_u64().unwrap() >= 10_000);

    // One of RedisBloom's kind has no rate that was asked for.
    let mut plain = CuckooFilter::new(1000);
    plain.insert("a").unwrap();
    fs::write(folder.join("plain.bloom"), plain.to_bytes()).unwrap();
    let text = everbloom(&folder, &["info", "plain.bloom"]).success();
    assert!(text.contains("type        cuckoo, RedisBloom's"), "{text}");
    assert!(text.contains("items       1 of 2 048\n"), "{text}");
    assert!(
        text.contains("% expected now\n") && !text.contains("asked"),
        "{text}"
    );
    let found = with_input(&folder, &["check", "plain.bloom"], "a\nb\n");
    assert_eq!(found.success(), "a\n");
}

/// More than it has room for: a filter of fixed size would take it, and err more often.
#[test]
fn a_full_one_is_refused_or_grows() {
    let repeated = "a\n".repeat(9);
    let folder = folder_with(
        "files-deletable-full",
        &[
            ("in", names(0..2000).as_bytes()),
            ("repeated", repeated.as_bytes()),
        ],
    );
    let small = [&BUILD[..], &["-c", "1000", "f.bloom", "in"]].concat();
    let words = [
        "no more room",
        "nothing was written",
        "--capacity",
        "--growing",
    ];
    refused(&everbloom(&folder, &small), &words);
    let repeats = [&BUILD[..], &["-c", "1000", "f.bloom", "repeated"]].concat();
    refused(&everbloom(&folder, &repeats), &["sort -u"]);
    // Nor does a filter that grows become huge for the copies of one record.
    let copies = [&BUILD[..], &["--growing", "-c", "1000", "f.bloom"]].concat();
    let words = ["one more copy", "nothing was written", "sort -u"];
    refused(&with_input(&folder, &copies, "a\n".repeat(100)), &words);
    assert!(!folder.join("f.bloom").exists());
    let growing = ["-q", "--growing", "-c", "500", "f.bloom", "in"];
    everbloom(&folder, &[&BUILD[..], &growing].concat()).success();
    let found = with_input(&folder, &["check", "-c", "f.bloom"], names(0..4000));
    assert_eq!(found.success(), "2000\n");
    let text = everbloom(&folder, &["info", "f.bloom"]).success();
    assert!(text.contains("tables      3\n"), "{text}");
}

#[test]
fn records_are_added_to_the_filter_that_is_there() {
    let (one, two) = (names(0..500), names(500..1000));
    let folder = folder_with(
        "files-deletable-append",
        &[("one", one.as_bytes()), ("two", two.as_bytes())],
    );
    let first = [&BUILD[..], &["-q", "-i", "-c", "1000", "f.bloom", "one"]].concat();
    everbloom(&folder, &first).success();
    everbloom(&folder, &["build", "-q", "-a", "f.bloom", "two"]).success();
    let capitals = names(0..2000).to_uppercase();
    let found = with_input(&folder, &["check", "-c", "f.bloom"], capitals);
    assert_eq!(found.success(), "1000\n", "it remembers --ignore-case");
    let field = ["-q", "-c", "10", "-f", "2", "-d", ",", "field.bloom"];
    with_input(&folder, &[&BUILD[..], &field].concat(), "1,a\n2,b\n").success();
    let asked = with_input(&folder, &["check", "field.bloom"], "a\n");
    refused(&asked, &["field.bloom remembers --field 2"]);
    let found = with_input(
        &folder,
        &["check", "-f", "2", "-d", ",", "field.bloom"],
        "7,a\n8,c\n",
    );
    assert_eq!(found.success(), "7,a\n");
    refused(
        &everbloom(&folder, &["build", "-a", "f.bloom", "one"]),
        &["no more room"],
    );
}

#[test]
fn merged_filters_find_what_each_of_them_finds() {
    let (one, two) = (names(0..500), names(500..1000));
    let folder = folder_with(
        "files-deletable-merge",
        &[("one", one.as_bytes()), ("two", two.as_bytes())],
    );
    let build = |args: &[&str]| everbloom(&folder, &[&BUILD[..], &["-q"], args].concat()).success();
    build(&["-c", "1000", "a.bloom", "one"]);
    everbloom(
        &folder,
        &["build", "-q", "--like", "a.bloom", "b.bloom", "two"],
    )
    .success();
    everbloom(&folder, &["merge", "all.bloom", "a.bloom", "b.bloom"]).success();
    let found = with_input(&folder, &["check", "all.bloom"], names(0..2000));
    assert_eq!(found.success(), names(0..1000));
    let text = everbloom(&folder, &["info", "a.bloom", "b.bloom"]).success();
    assert!(text.contains("merge       yes"), "{text}");

    build(&["-c", "1000", "--seed", "7", "seeded.bloom", "one"]);
    let rate = [
        "build",
        "-q",
        "--deletable",
        "-e",
        "1e-8",
        "-c",
        "1000",
        "--seed",
        "7",
    ];
    everbloom(&folder, &[&rate[..], &["rate.bloom", "one"]].concat()).success();
    everbloom(&folder, &["build", "-q", "bloom.bloom", "one"]).success();
    for (args, words) in [
        (
            ["merge", "x.bloom", "a.bloom", "seeded.bloom"],
            "have different keys",
        ),
        (
            ["merge", "x.bloom", "seeded.bloom", "rate.bloom"],
            "different error rates",
        ),
        (
            ["merge", "x.bloom", "a.bloom", "bloom.bloom"],
            "is a cuckoo filter and",
        ),
        (
            ["merge", "x.bloom", "bloom.bloom", "a.bloom"],
            "is a Bloom filter and",
        ),
        (
            ["merge", "x.bloom", "all.bloom", "b.bloom"],
            "no room for the records of b.bloom beside",
        ),
        (
            ["merge", "bloom.bloom", "a.bloom", "b.bloom"],
            "is a filter of fixed size",
        ),
        (
            ["merge", "a.bloom", "bloom.bloom", "bloom.bloom"],
            "is a cuckoo filter",
        ),
    ] {
        refused(&everbloom(&folder, &args), &[words]);
    }
    assert!(!folder.join("x.bloom").exists());
}

#[test]
fn what_cannot_be_done_with_it_is_refused() {
    let folder = folder_with("files-deletable-refused", &[("in", b"a\nb\n")]);
    let build = [&BUILD[..], &["-q", "f.bloom", "in"]].concat();
    everbloom(&folder, &build).success();
    everbloom(&folder, &["build", "-q", "bloom.bloom", "in"]).success();
    let before = fs::read(folder.join("f.bloom")).unwrap();
    for (args, words) in [
        (
            &["shrink", "f.bloom"][..],
            "is a cuckoo filter, which cannot be shrunk",
        ),
        (
            &["convert", "pieces", "f.bloom"],
            "can be neither copied to a server nor converted",
        ),
        (
            &["copy", "f.bloom", "redis://127.0.0.1:1#k"],
            "can be neither copied to a server nor converted",
        ),
        (
            &["dedup", "--state", "f.bloom", "in"],
            "is a cuckoo filter, and dedup needs",
        ),
        (
            &["build", "f.bloom", "in"],
            "is a cuckoo filter, and the new one",
        ),
        (
            &["build", "--format", "dcso", "f.bloom", "in"],
            "is a cuckoo filter",
        ),
        (
            &["build", "--deletable", "bloom.bloom", "in"],
            "is a filter of fixed size",
        ),
        (
            &["build", "--deletable", "--format", "dcso", "x.bloom", "in"],
            "leave --growing, --del",
        ),
        (
            &[
                "build",
                "--deletable",
                "--layout",
                "classic",
                "x.bloom",
                "in",
            ],
            "cannot be used with",
        ),
        (
            &["build", "--deletable", "--append", "f.bloom", "in"],
            "cannot be used with",
        ),
        (
            &["build", "--deletable", "-e", "1e-12", "x.bloom", "in"],
            "must be from 1e-9 to 0.5",
        ),
    ] {
        refused(&everbloom(&folder, args), &[words]);
    }
    assert_eq!(fs::read(folder.join("f.bloom")).unwrap(), before);
    assert!(!folder.join("x.bloom").exists() && !folder.join("pieces").exists());

    // Every flipped bit is damage.
    for at in (0..before.len()).step_by(7) {
        let mut damaged = before.clone();
        damaged[at] ^= 4;
        fs::write(folder.join("damaged.bloom"), damaged).unwrap();
        let outcome = with_input(&folder, &["check", "damaged.bloom"], "a\n");
        refused(&outcome, &["damaged.bloom"]);
    }
}

#[test]
fn what_is_removed_is_missed_and_nothing_else() {
    let (all, gone) = (names(0..2000), names(500..1500));
    let folder = folder_with(
        "files-remove",
        &[("in", all.as_bytes()), ("gone", gone.as_bytes())],
    );
    for kind in [&["-c", "2000"][..], &["-c", "300", "--growing"]] {
        let build = [&BUILD[..], &["-q", "f.bloom", "in"], kind].concat();
        everbloom(&folder, &build).success();
        let removed = everbloom(&folder, &["remove", "f.bloom", "gone"]);
        assert!(
            removed
                .stderr
                .contains("1 000 records in, 1 000 removed, 1 000 in the filter now"),
            "{removed:?}"
        );
        removed.success();
        let left = with_input(&folder, &["check", "f.bloom"], all.clone());
        assert_eq!(left.success(), names(0..500) + &names(1500..2000));
    }
    // What is not there is counted, and what is there twice is removed twice.
    with_input(&folder, &["build", "-q", "-a", "f.bloom"], "name 0\n").success();
    let once = with_input(&folder, &["remove", "f.bloom"], "name 0\nname 501\n");
    assert_eq!(once.status.code(), Some(1), "{once:?}");
    assert!(once.stderr.contains("2 records in, 1 removed"), "{once:?}");
    assert!(once.stderr.contains("1 were not in the filter"), "{once:?}");
    let found = |line: &str| with_input(&folder, &["check", "-q", "f.bloom"], line);
    assert_eq!(found("name 0\n").status.code(), Some(0));
    with_input(&folder, &["remove", "-q", "f.bloom"], "name 0\n").success();
    assert_eq!(found("name 0\n").status.code(), Some(1));
}

/// It says nothing of what was put in, so the file remembers what it did.
#[test]
fn a_removal_does_not_change_what_a_file_remembers() {
    let folder = folder_with(
        "files-remove-memory",
        &[(
            "in", b"a
b
",
        )],
    );
    let empty = [&BUILD[..], &["-q", "-c", "10", "empty.bloom", "/dev/null"]].concat();
    everbloom(&folder, &empty).success();
    let mut filter = CuckooFilter::builder()
        .capacity(10)
        .error_rate(1e-9)
        .build();
    filter.as_mut().unwrap().insert("a").unwrap();
    let unnoted = filter.unwrap().to_bytes();
    fs::write(folder.join("unnoted.bloom"), &unnoted).unwrap();
    for file in ["empty.bloom", "unnoted.bloom"] {
        // A file that is written is another one, under the same name.
        let first_link = folder.join("first-link");
        fs::hard_link(folder.join(file), &first_link).unwrap();
        let before = fs::read(folder.join(file)).unwrap();
        let args = ["remove", "-q", "-f", "2", file];
        let outcome = with_input(&folder, &args, "z\tzz\n");
        assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
        assert!(fs::read(folder.join(file)).unwrap() == before, "{file}");
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        let (now, then) = (inode(&folder.join(file)), inode(&first_link));
        assert_eq!(now, then, "{file} was written");
        fs::remove_file(first_link).unwrap();
    }
    with_input(&folder, &["remove", "-q", "unnoted.bloom"], "a\n").success();
    let info = everbloom(&folder, &["info", "unnoted.bloom"]).success();
    assert!(!info.contains("compared"), "{info}");
    let append = ["build", "-q", "--append", "-f", "1", "empty.bloom"];
    with_input(&folder, &append, "a\tb\n").success();
}

#[test]
fn a_removal_that_was_not_understood_changes_nothing() {
    let folder = folder_with("files-remove-refused", &[("in", b"1,a\n2,b\n")]);
    let field = [&BUILD[..], &["-q", "-f", "2", "-d", ",", "f.bloom", "in"]].concat();
    everbloom(&folder, &field).success();
    everbloom(&folder, &["build", "-q", "bloom.bloom", "in"]).success();
    let before = fs::read(folder.join("f.bloom")).unwrap();
    for (args, words) in [
        (
            &["remove", "f.bloom", "in"][..],
            "f.bloom remembers --field 2",
        ),
        (
            &[
                "remove",
                "-f",
                "9",
                "-d",
                ",",
                "--any-selection",
                "f.bloom",
                "in",
            ],
            "no record has a",
        ),
        (
            &["remove", "-f", "2", "-d", ",", "f.bloom", "in", "missing"],
            "could not be read",
        ),
        (
            &["remove", "-f", "2", "-d", ",", "f.bloom", "f.bloom"],
            "f.bloom",
        ),
        (&["remove", "bloom.bloom", "in"], "can forget no record"),
        (
            &["remove", "missing.bloom", "in"],
            "there is no file missing.bloom",
        ),
    ] {
        refused(&everbloom(&folder, args), &[words]);
    }
    assert_eq!(fs::read(folder.join("f.bloom")).unwrap(), before);
    assert!(!folder.join("missing.bloom").exists());
    everbloom(
        &folder,
        &["remove", "-q", "-f", "2", "-d", ",", "f.bloom", "in"],
    )
    .success();
    let found = with_input(
        &folder,
        &["check", "-c", "-f", "2", "-d", ",", "f.bloom", "in"],
        "",
    );
    assert_eq!(found.stdout, "0\n");
}
