//! Documents of the repository that must follow the command table, or each other.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use everbloom_commands::command::{Command, OURS};
use everbloom_commands::table::{COMMANDS, Function};

/// docs/guide/commands.md is what the table says. With `UPDATE_DOCS=1` the test writes it.
#[test]
fn the_command_reference_follows_the_table() {
    let path = root().join("docs/guide/commands.md");
    let expected = reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(
        found == expected,
        "run: UPDATE_DOCS=1 cargo test -p everbloom-commands --test commands documents"
    );
}

/// What a reader types is the same in both languages; only comments in it are translated.
#[test]
fn both_readmes_have_the_same_commands() {
    let english = code_lines("README.md");
    assert!(english.len() > 20, "README.md has lost its code");
    assert_eq!(code_lines("README.zh-CN.md"), english);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of the code blocks of a file, without the comments behind them.
fn code_lines(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let mut lines = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
            lines.push(line.to_owned());
        } else if in_code {
            let code = line.split("  # ").next().unwrap_or(line);
            lines.push(code.trim_end().to_owned());
        }
    }
    lines
}

const HEAD: &str = "\
# Commands

Every command on filters, with its syntax. `[ ]` may be left out, `|` means one of these, `...` means one or more.
A server tells the same: `everbloom query COMMAND DOCS BF.RESERVE`.

This page is generated from the table of commands.
";

fn reference() -> String {
    let mut page = String::from(HEAD);
    for (title, prefix) in [
        ("Bloom filters", "bf."),
        ("[Cuckoo filters](deleting.md)", "cf."),
    ] {
        write!(page, "\n## {title}\n").unwrap();
        for command in COMMANDS.iter().filter(|row| row.name.starts_with(prefix)) {
            describe(&mut page, command);
        }
    }
    page
}

fn describe(page: &mut String, command: &Command<Function>) {
    let name = command.name.to_ascii_uppercase();
    let docs = command.docs;
    let own = if docs.since == OURS {
        " RedisBloom does not have this command."
    } else {
        ""
    };
    let (synopsis, summary, cost) = (docs.usage, docs.summary, docs.complexity);
    write!(page, "\n### {name}\n\n```\n{name} {synopsis}\n```\n\n").unwrap();
    writeln!(page, "{summary}.{own} Time: {cost}.").unwrap();
}
