//! The floors of a crate, as its root file draws them.

use super::arrows::{Arrow, module_paths};
use super::files::File;
use super::names::Path;

/// Floors from the top one down.
#[derive(Debug)]
pub struct Floors {
    lines: Vec<String>,
    floors: Vec<Vec<Path>>,
}

impl Floors {
    /// Reads the block in the documentation of a crate's `lib.rs` or `main.rs`; `None` if it has
    /// none.
    pub fn of(files: &[File]) -> Option<Floors> {
        let is_root = |file: &&File| {
            file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs")
        };
        files
            .iter()
            .filter(is_root)
            .find_map(|root| Floors::read(&root.text))
    }

    fn read(text: &str) -> Option<Floors> {
        let docs: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("//!").or_else(|| line.strip_prefix("//")))
            .map(str::trim)
            .collect();
        let begins = |pair: &[&str]| pair[0].starts_with("```text") && pair[1] == "floors";
        let start = docs.windows(2).position(begins)? + 2;
        let lines = docs[start..]
            .iter()
            .take_while(|line| !line.starts_with("```"));
        let lines: Vec<String> = lines.map(|line| (*line).to_owned()).collect();
        let path = |word: &str| word.split("::").map(String::from).collect();
        let floors = lines
            .iter()
            .map(|line| line.split_whitespace().map(path).collect())
            .collect();
        Some(Floors { lines, floors })
    }

    /// The floors as they are drawn, a line each.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// What breaks the drawing: files on no floor, names of no file, imports from a higher floor.
    pub fn complaints(&self, files: &[File], arrows: &[Arrow]) -> Vec<String> {
        let modules = module_paths(files);
        let mut complaints = Vec::new();
        for (path, file) in modules.iter().filter(|(path, _)| !path.is_empty()) {
            if self.floor(path).is_none() {
                complaints.push(format!("{}: stands on no floor", file.path));
            }
        }
        for path in self
            .floors
            .iter()
            .flatten()
            .filter(|path| !modules.contains_key(*path))
        {
            complaints.push(format!(
                "floors: `{}` is no module in a file",
                path.join("::")
            ));
        }
        let floor_of = |file: &str| {
            let (path, _) = modules.iter().find(|(_, f)| f.path == file)?;
            if path.is_empty() {
                Some(None)
            } else {
                self.floor(path).map(Some)
            }
        };
        for arrow in arrows {
            let (Some(from), Some(to)) = (floor_of(&arrow.from), floor_of(&arrow.to)) else {
                continue;
            };
            // `None`, the root file, is less than all numbers.
            if to < from {
                complaints.push(format!(
                    "{}:{}: imports {} upward, from {} to {} in {}",
                    arrow.from,
                    arrow.line,
                    arrow.name,
                    self.show(from),
                    self.show(to),
                    arrow.to,
                ));
            }
        }
        complaints
    }

    fn floor(&self, module: &[String]) -> Option<usize> {
        let named = self.floors.iter().enumerate();
        named
            .flat_map(|(floor, paths)| paths.iter().map(move |path| (path, floor)))
            .filter(|(path, _)| module.starts_with(path))
            .max_by_key(|(path, _)| path.len())
            .map(|(_, floor)| floor)
    }

    fn show(&self, floor: Option<usize>) -> String {
        match floor {
            Some(floor) => format!("floor {} ({})", floor + 1, self.lines[floor]),
            None => "the root file".to_owned(),
        }
    }
}
