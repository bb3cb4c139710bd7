//! Reading the files of the workspace.

use std::fs;
use std::path::Path;

/// A source file: its path below the workspace, with slashes, and what is in it.
#[derive(Debug, Clone)]
pub struct File {
    /// Such as `crates/resp/src/lib.rs`.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// The `.rs` files below a folder of the workspace, sorted by path.
pub fn files_below(workspace: &Path, folder: &str) -> Vec<File> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(workspace.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = format!("{folder}/{name}");
            if entry.file_type().unwrap().is_dir() {
                if name != "target" {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") {
                let text = fs::read_to_string(entry.path()).unwrap();
                files.push(File { path, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// The names of the folders in `crates`, sorted.
pub fn crates(workspace: &Path) -> Vec<String> {
    let entries = fs::read_dir(workspace.join("crates")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
