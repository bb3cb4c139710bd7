//! The public interface: `api.txt` lists it, so that a review sees a change of it.
//!
//! It is read off the lines of the source, which rustfmt has made alike. What macros implement is
//! not in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// `api.txt` is what the source says. With `UPDATE_DOCS=1` the test writes it.
#[test]
fn the_public_items_are_those_that_are_listed() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (src, file) = (package.join("src"), package.join("api.txt"));
    let mut names = BTreeSet::new();
    list_module(&src, &src.join("lib.rs"), "everbloom", &mut names);
    let types = names.iter().filter_map(|name| name.rsplit("::").next());
    let mut members = BTreeSet::new();
    list_members(&src, &types.collect(), &mut members);
    let lines = |all: BTreeSet<String>| all.into_iter().map(|line| line + "\n").collect::<String>();
    let listed = format!("{}\n{}", lines(names), lines(members));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &listed).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap() == listed,
        "run: UPDATE_DOCS=1 cargo test -p everbloom --test all api"
    );
}

/// The file of a module.
fn file_of(folder: &Path, module: &str) -> Option<PathBuf> {
    let files = [format!("{module}.rs"), format!("{module}/mod.rs")];
    files
        .map(|file| folder.join(file))
        .into_iter()
        .find(|it| it.exists())
}

/// The names that a public module has, and those of the modules in it.
fn list_module(src: &Path, file: &Path, path: &str, names: &mut BTreeSet<String>) {
    let folder = file.parent().unwrap();
    let mut attributes = String::new();
    for line in source_of(file) {
        if line.starts_with('#') {
            attributes.push_str(&line);
            continue;
        }
        let attributes = std::mem::take(&mut attributes);
        let is_hidden = attributes.contains("doc(hidden)") || attributes.contains("cfg(fuzzing)");
        let Some(line) = line.strip_prefix("pub ").filter(|_| !is_hidden) else {
            continue;
        };
        if let Some(module) = line.strip_prefix("mod ") {
            let module = module.trim_end_matches(';');
            let below = file_of(folder, module).unwrap();
            list_module(src, &below, &format!("{path}::{module}"), names);
        } else if let Some(used) = line.strip_prefix("use ") {
            let used = used.trim_end_matches(';');
            let (from, leaves) = used.rsplit_once("::").unwrap();
            let (from, leaves) = match used.split_once("::{") {
                Some((from, leaves)) => (from, leaves.trim_end_matches('}')),
                None => (from, leaves),
            };
            let from = src.join(from.trim_start_matches("crate::").replace("::", "/"));
            for leaf in leaves.split(',').map(str::trim).filter(|it| !it.is_empty()) {
                match file_of(&from, leaf) {
                    Some(below) => list_module(src, &below, &format!("{path}::{leaf}"), names),
                    None => _ = names.insert(format!("{path}::{leaf}")),
                }
            }
        } else if !line.starts_with("struct") && !line.starts_with("enum") {
            names.insert(format!(
                "{path}::{}",
                line.trim_end_matches([' ', '{', ';'])
            ));
        } else {
            let name = line.split([' ', '<', '(', ';']).nth(1).unwrap();
            names.insert(format!("{path}::{name}"));
        }
    }
}

/// The methods, fields, variants and implementations of these types.
fn list_members(folder: &Path, types: &BTreeSet<&str>, members: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list_members(&path, types, members);
            continue;
        }
        let (mut owner, mut kind) = (String::new(), String::new());
        for line in source_of(&path) {
            if line.starts_with("     ") || line.is_empty() {
                continue;
            }
            if !line.starts_with(' ') {
                (owner, kind) = owner_of(&line);
                if let Some((_, of)) = line.split_once(" for ").filter(|_| kind == "impl") {
                    let of = of.split(['<', ' ']).next().unwrap();
                    let is_public = types.contains(of) && !line.contains("sealed::");
                    members.extend(is_public.then(|| line.trim_end_matches([' ', '{']).to_owned()));
                }
                continue;
            }
            if !types.contains(&*owner) {
                continue;
            }
            let line = line.trim().trim_end_matches([' ', '{', '[', '=', ',', ';']);
            let is_word = line.starts_with(|first: char| first.is_ascii_alphabetic());
            match kind.as_str() {
                "impl" | "struct" => {
                    if let Some(member) = line.strip_prefix("pub ") {
                        members.insert(format!("{owner}: {member}"));
                    }
                }
                "enum" | "trait" if is_word => _ = members.insert(format!("{owner}: {line}")),
                _ => {}
            }
        }
    }
}

/// The type that the lines below this one belong to, and the word that says how.
fn owner_of(line: &str) -> (String, String) {
    let words = line.strip_prefix("pub ").unwrap_or(match line {
        line if line.starts_with("impl") => line,
        _ => "",
    });
    let kind: String = words.chars().take_while(char::is_ascii_lowercase).collect();
    let rest = words.get(kind.len()..).unwrap_or_default();
    // The type's name follows the parameters of the implementation.
    let rest = match (kind.as_str(), rest.split_once("> ")) {
        ("impl", Some((_, rest))) if words.starts_with("impl<") => rest,
        _ => rest,
    };
    let is_of_trait = kind == "impl" && rest.contains(" for ");
    let rest = rest.trim().trim_end_matches([' ', '{']);
    let owner = rest
        .split(['<', ' ', '(', ';', ':'])
        .next()
        .unwrap_or_default();
    match is_of_trait {
        true => (String::new(), kind),
        false => (owner.to_owned(), kind),
    }
}

/// The lines without tests and comments, and each signature and `use` in one line.
fn source_of(file: &Path) -> Vec<String> {
    let source = fs::read_to_string(file).unwrap();
    let source = source.split("\n#[cfg(test)]\nmod ").next().unwrap();
    let mut lines: Vec<String> = vec![String::new()];
    let mut is_open = false;
    for line in source.lines().filter(|it| !it.trim().starts_with("//")) {
        let words = line.trim();
        match lines.last_mut() {
            Some(last) if is_open => {
                let is_close =
                    last.ends_with(['(', '<', '{']) || words.starts_with([')', '>', '}']);
                let gap = if is_close { "" } else { " " };
                *last = format!("{}{gap}{words}", last.trim_end());
            }
            _ => lines.push(line.to_owned()),
        }
        let starts = [
            "pub fn",
            "pub const fn",
            "pub use",
            "impl",
            "fn ",
            "pub unsafe fn",
        ];
        let begins = is_open || starts.iter().any(|start| words.starts_with(start));
        let is_use = lines
            .last()
            .is_some_and(|it| it.trim().starts_with("pub use"));
        let ends = words.ends_with([';', '}']) || !is_use && words.ends_with('{');
        is_open = begins && !ends;
    }
    lines
}
