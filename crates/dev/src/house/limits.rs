//! Lengths of lines and files, and how much code there is.

use super::arrows::module_paths;
use super::files::File;
use super::source::Source;

/// The widest line, in characters.
const COLUMNS: usize = 100;

/// The longest file, in lines, its tests not counted.
const LINES: usize = 500;

/// How far the table may be from the truth, in percent.
const TOLERANCE: usize = 3;

/// The lines that are too wide. Rows of a table in the documentation may be: they cannot be broken.
pub fn long_lines(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        for (number, line) in (1..).zip(file.text.lines()) {
            let width = line.chars().count();
            let is_row = line.trim_start().starts_with("//! |");
            if width > COLUMNS && !is_row {
                complaints.push(format!("{}:{number}: {width} columns", file.path));
            }
        }
    }
    complaints
}

/// The files of a `src` folder that are too long.
pub fn long_files(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in module_paths(files).into_values() {
        let code = file
            .text
            .lines()
            .take_while(|line| line.trim() != "#[cfg(test)]");
        let lines = code.count();
        if lines > LINES {
            complaints.push(format!("{}: {lines} lines before its tests", file.path));
        }
    }
    complaints
}

/// The lines of a `src` folder's files that hold code: no tests, no comments, no blank lines.
pub fn lines_of_code(files: &[File]) -> usize {
    let count = |file: &File| {
        let source = Source::new(&file.text);
        source
            .code
            .lines()
            .filter(|line| !line.trim().is_empty())
            .count()
    };
    module_paths(files).into_values().map(count).sum()
}

/// Compares the table `| crate | lines of code |` of a text with the truth. A row may be a sum, as
/// `files + store`. `None` if there is no table.
pub fn table_is_true(text: &str, counts: &[(String, usize)]) -> Option<Vec<String>> {
    let heads = |line: &str| line.replace(' ', "").starts_with("|crate|linesofcode|");
    let rows = text.lines().skip_while(|line| !heads(line)).skip(2);
    let rows: Vec<Vec<&str>> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().trim_matches('`'))
                .collect()
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut complaints = Vec::new();
    for row in &rows {
        let parts = row[0]
            .split(" + ")
            .map(|part| part.trim_start_matches("crates/"));
        let parts: Option<Vec<usize>> = parts
            .map(|part| {
                counts
                    .iter()
                    .find(|(name, _)| name == part)
                    .map(|(_, count)| *count)
            })
            .collect();
        let written: Option<usize> = row
            .get(1)
            .and_then(|cell| cell.replace(' ', "").parse().ok());
        match (parts, written) {
            (Some(parts), Some(written)) => {
                let truth: usize = parts.iter().sum();
                if written.abs_diff(truth) * 100 > truth * TOLERANCE {
                    complaints.push(format!(
                        "{}: {truth} lines, the table says {written}",
                        row[0]
                    ));
                }
            }
            (None, _) => complaints.push(format!("{}: no such crate", row[0])),
            (_, None) => complaints.push(format!("{}: no number", row[0])),
        }
    }
    for (name, count) in counts {
        let named = |row: &Vec<&str>| row[0].trim_start_matches("crates/") == name;
        if !rows.iter().any(named) {
            complaints.push(format!("{name}: {count} lines, and no row in the table"));
        }
    }
    Some(complaints)
}
