//! The house keeps its rules: floors, circles, lengths. The rules are in `everbloom_dev::house`;
//! what is excused stands here by name.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use everbloom_dev::house::{
    File, Floors, arrows, circles, crates, files_below, lines_of_code, long_files, long_lines,
    table_is_true,
};

/// The circles that may be: their files below the crate's `src`, and why.
const CIRCLES: [(&str, &[&str], &str); 0] = [];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn architecture() -> String {
    fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap()
}

/// The source files of each crate.
fn sources() -> Vec<(String, Vec<File>)> {
    let files = |name: &str| files_below(&workspace(), &format!("crates/{name}/src"));
    crates(&workspace())
        .into_iter()
        .map(|name| (name.clone(), files(&name)))
        .collect()
}

#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// What is wrong with a crate that draws its floors.
fn complaints(name: &str, files: &[File], floors: &Floors, excused: &[&[&str]]) -> Vec<String> {
    let arrows = arrows(files);
    let mut complaints = floors.complaints(files, &arrows);
    let src = format!("crates/{name}/src/");
    let found = circles(&arrows);
    let found: Vec<Vec<&str>> = found
        .iter()
        .map(|circle| {
            circle
                .iter()
                .map(|file| file.trim_start_matches(&src))
                .collect()
        })
        .collect();
    for circle in found
        .iter()
        .filter(|circle| !excused.contains(&circle.as_slice()))
    {
        complaints.push(format!("{name}: a circle of {}", circle.join(", ")));
    }
    for circle in excused
        .iter()
        .filter(|circle| !found.iter().any(|found| found == *circle))
    {
        complaints.push(format!("{name}: no longer a circle: {}", circle.join(", ")));
    }
    complaints
}

#[test]
fn no_file_imports_from_a_higher_floor_or_in_a_circle() {
    let mut wrong = Vec::new();
    for (name, files) in sources() {
        let excused = CIRCLES.iter().filter(|circle| circle.0 == name);
        let excused: Vec<&[&str]> = excused.map(|circle| circle.1).collect();
        match Floors::of(&files) {
            Some(floors) => wrong.extend(complaints(&name, &files, &floors, &excused)),
            None => wrong.push(format!("crates/{name}: the root file draws no floors")),
        }
    }
    assert_none(&wrong);
}

#[test]
fn architecture_draws_the_same_floors() {
    let architecture = architecture();
    for (name, files) in sources() {
        if let Some(floors) = Floors::of(&files) {
            let lines = floors.lines().join("\n");
            let drawn = architecture.contains(&format!("\n{lines}\n"));
            assert!(
                drawn,
                "ARCHITECTURE.md lacks the floors of crates/{name}:\n{lines}"
            );
        }
    }
}

#[test]
fn no_line_is_wider_than_the_screen() {
    let folders = ["crates", "conformance", "fuzz", "benches"];
    let files = folders
        .iter()
        .flat_map(|folder| files_below(&workspace(), folder));
    let files: Vec<File> = files.collect();
    assert!(files.len() > 100, "only {} files were found", files.len());
    assert_none(&long_lines(&files));
}

#[test]
fn no_file_is_too_long() {
    let mut folders: Vec<String> = crates(&workspace())
        .iter()
        .map(|name| format!("crates/{name}/src"))
        .collect();
    folders.extend(["conformance/src", "benches/src"].map(String::from));
    let wrong: Vec<String> = folders
        .iter()
        .flat_map(|folder| long_files(&files_below(&workspace(), folder)))
        .collect();
    assert_none(&wrong);
}

#[test]
fn architecture_counts_the_lines_of_code() {
    let counts = sources()
        .into_iter()
        .map(|(name, files)| (name, lines_of_code(&files)));
    let counts: Vec<(String, usize)> = counts.collect();
    let wrong = table_is_true(&architecture(), &counts).unwrap();
    assert!(
        wrong.is_empty(),
        "\n{}\nall counts: {counts:?}\n",
        wrong.join("\n")
    );
}

/// Whether the checks find what they are there for, in a house made up for them.
mod made_up {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Vec<File> {
        let file = |(path, text): &(&str, &str)| File {
            path: format!("crates/made/src/{path}"),
            text: (*text).to_owned(),
        };
        files.iter().map(file).collect()
    }

    /// A root file with three floors, then the given files.
    fn complaints_about(files: &[(&str, &str)]) -> Vec<String> {
        let root = "//! ```text\n//! floors\n//! top\n//! middle middle2\n//! low\n//! ```\n\
            mod top;\nmod middle;\nmod middle2;\nmod low;\npub use top::Top;\npub struct Root;\n";
        let empty = [
            ("top.rs", ""),
            ("middle.rs", ""),
            ("middle2.rs", ""),
            ("low.rs", ""),
        ];
        let mut all = tree(&[("lib.rs", root)]);
        let given = |path: &str| files.iter().any(|(given, _)| *given == path);
        all.extend(tree(
            &empty
                .into_iter()
                .filter(|(path, _)| !given(path))
                .collect::<Vec<_>>(),
        ));
        all.extend(tree(files));
        let floors = Floors::of(&all).unwrap();
        super::complaints("made", &all, &floors, &[])
    }

    #[test]
    fn a_house_in_order_passes() {
        let files = [
            (
                "top.rs",
                "use crate::{low::Low, middle::{self, M}};\nuse super::middle2;\n\
                 fn f() { middle::g() }",
            ),
            (
                "middle.rs",
                "use crate::middle2::M2;\n#[cfg(test)]\nmod tests { use crate::top::Top; }",
            ),
            ("low.rs", "// use crate::top::Top;\n"),
        ];
        assert_none(&complaints_about(&files));
    }

    #[test]
    fn an_import_from_a_higher_floor_is_found() {
        let found = |code: &str| complaints_about(&[("low.rs", code)]);
        let wanted = "crates/made/src/low.rs:2: imports crate::top::Top upward, \
            from floor 3 (low) to floor 1 (top) in crates/made/src/top.rs";
        assert_eq!(found("\nuse crate::top::Top;"), [wanted]);
        for code in [
            "use crate::{low2, middle::{M, N}};",
            "use super::middle::*;",
            "fn f() { crate::middle::g(); }",
            "use crate::middle;\nfn f() { middle::g(); }",
            // What the root file re-exports belongs to the file that it is from.
            "use crate::Top;",
            "use super::Root;",
        ] {
            assert!(!found(code).is_empty(), "{code}");
        }
    }

    #[test]
    fn a_file_on_no_floor_is_found() {
        let found = complaints_about(&[("cellar.rs", "")]);
        assert_eq!(found, ["crates/made/src/cellar.rs: stands on no floor"]);
    }

    #[test]
    fn a_circle_is_found_through_re_exports() {
        let files = [
            (
                "middle/mod.rs",
                "mod a;\nmod b;\npub(super) use b::B;\nmod c { }",
            ),
            ("middle/a.rs", "use super::B;"),
            ("middle/b.rs", "fn f(a: super::a::A) {}"),
        ];
        let found = complaints_about(&files);
        assert_eq!(found, ["made: a circle of middle/a.rs, middle/b.rs"]);
    }

    #[test]
    fn an_excused_circle_must_be_one() {
        let files = tree(&[("lib.rs", "//! ```text\n//! floors\n//! ```\n")]);
        let floors = Floors::of(&files).unwrap();
        let found = super::complaints("made", &files, &floors, &[&["a.rs", "b.rs"]]);
        assert_eq!(found, ["made: no longer a circle: a.rs, b.rs"]);
    }

    #[test]
    fn long_lines_and_files_are_found() {
        let wide = format!(
            "// {}\n// {}é\n//! | {} |\n",
            "x".repeat(98),
            "x".repeat(96),
            "x".repeat(200)
        );
        assert_eq!(
            long_lines(&tree(&[("a.rs", &wide)])),
            ["crates/made/src/a.rs:1: 101 columns"]
        );
        let long = "\n".repeat(501);
        assert_eq!(long_files(&tree(&[("a.rs", &long)])).len(), 1);
        let tests = format!("#[cfg(test)]\n{long}");
        assert_none(&long_files(&tree(&[("a.rs", &tests)])));
    }

    #[test]
    fn a_false_table_is_found() {
        let code = "use a;\n\n// no\nfn f() {}\n#[cfg(test)]\nmod tests;\n";
        let files = tree(&[("lib.rs", code), ("tests.rs", "fn g() {}\n")]);
        assert_eq!(lines_of_code(&files), 2);
        let counts = [("a".to_owned(), 100), ("b".to_owned(), 1000)];
        let table = |rows: &str| {
            let text = format!("\n| crate | lines of code |\n|---|---:|\n{rows}\n");
            table_is_true(&text, &counts).unwrap()
        };
        assert_none(&table(
            "| `crates/a` | 103 |\n| b | 1 010 |\n| a + b | 1100 |",
        ));
        assert_eq!(table("| a | 104 |\n| b | 1000 |").len(), 1);
        assert_eq!(table("| a | 100 |\n| c | 1000 |").len(), 2);
        assert_eq!(table_is_true("nothing", &counts), None);
    }
}
