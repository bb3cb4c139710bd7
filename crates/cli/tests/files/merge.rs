//! `merge` and `shrink`.

use std::fs;

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
    build("larger.bloom", &["--layout", "classic", "-c", "1000"]);
    build("growing.bloom", &["--growing"]);
    let before = fs::read(folder.join("a.bloom")).unwrap();
    let merge = |files: &[&str]| everbloom(&folder, &[&["merge", "a.bloom"], files].concat());
    let keys = merge(&["a.bloom", "b.bloom"]);
    refused(&keys, &["a.bloom and b.bloom", "different keys", "--like"]);
    refused(
        &merge(&["b.bloom", "classic.bloom"]),
        &["different layouts"],
    );
    refused(&merge(&["classic.bloom", "larger.bloom"]), &["different"]);
    refused(&merge(&["growing.bloom"]), &["growing.bloom", "--growing"]);
    refused(&merge(&["b.bloom", "missing"]), &["missing"]);
    assert!(fs::read(folder.join("a.bloom")).unwrap() == before);
    refused(
        &everbloom(
            &folder,
            &["build", "--like", "growing.bloom", "x.bloom", "in"],
        ),
        &["growing.bloom", "--growing"],
    );
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
    assert!(size() * 40 < before, "{} {before}", size());
    let found = with_input(&folder, &["check", "f.bloom"], members.clone());
    assert_eq!(found.success(), members);
    let others = with_input(&folder, &["check", "-c", "f.bloom"], names(1000..20_000));
    assert_eq!(others.stdout, "0\n");

    let classic = ["build", "-q", "--layout", "classic", "c.bloom", "in"];
    everbloom(&folder, &classic).success();
    refused(
        &everbloom(&folder, &["shrink", "c.bloom"]),
        &["classic layout", "--capacity"],
    );
    refused(&everbloom(&folder, &["shrink", "missing"]), &["missing"]);
    assert!(!folder.join("missing").exists());
}
