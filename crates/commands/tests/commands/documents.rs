//! Documents of the repository that must follow the command table, or each other.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use everbloom_commands::command::{Command, OURS};
use everbloom_commands::table::{COMMANDS, Function};
use everbloom_resp::{Protocol, Reply, encode};

use crate::keyspace::Keyspace;

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

/// The pages that exist in both languages, by their path below `docs/zh` and below `docs/guide`.
const BOTH_LANGUAGES: [(&str, &str); 7] = [
    ("first-filter.md", "first-filter.md"),
    ("how-it-works.md", "how-it-works.md"),
    ("sizing.md", "sizing.md"),
    ("guard.md", "examples/guard.md"),
    ("forget.md", "forget.md"),
    ("from-guava.md", "from-guava.md"),
    ("clients.md", "clients.md"),
];

/// What a reader types is the same in both languages; only comments in it are translated.
#[test]
fn both_languages_have_the_same_shape_and_commands() {
    let readmes = ("README.zh-CN.md".into(), "README.md".into());
    let pages = BOTH_LANGUAGES.map(|(chinese, english)| {
        (
            format!("docs/zh/{chinese}"),
            format!("docs/guide/{english}"),
        )
    });
    let mut all_code = 0;
    for (chinese, english) in [readmes].into_iter().chain(pages) {
        let (ours, theirs) = (Shape::of(&chinese), Shape::of(&english));
        assert_eq!(ours, theirs, "{chinese} and {english}");
        assert!(!ours.headings.is_empty(), "{english} has lost its headings");
        all_code += ours.code.len();
    }
    assert!(all_code > 150, "the pages have lost their code");
    let written = std::fs::read_dir(root().join("docs/zh")).unwrap().count();
    assert_eq!(written, BOTH_LANGUAGES.len() + 1, "a page is not compared");
}

/// A file of the repository that a page links to is there, and so is the heading.
#[test]
fn links_lead_somewhere() {
    let mut links = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let Some((link, _)) = link.split_once(')') else {
                continue;
            };
            if link.contains("://") || link.contains(' ') {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                _ => page.with_file_name("").join(file),
            };
            assert!(target.exists(), "{}: {link}", page.display());
            if !heading.is_empty() {
                let there = std::fs::read_to_string(&target).unwrap();
                let anchors: Vec<_> = headings(&there).map(anchor).collect();
                assert!(
                    anchors.iter().any(|anchor| anchor == heading),
                    "{}: {link}",
                    page.display()
                );
            }
            links += 1;
        }
    }
    assert!(links > 200, "the pages have lost their links");
}

/// A page of an example shows lines of the programs that it names, in their order.
#[test]
fn example_pages_show_what_the_python_programs_say() {
    let mut programs = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for part in text.split("/examples/python/").skip(1) {
            let (name, rest) = part.split_once(')').unwrap();
            // The block follows the sentence with the link.
            let Some(code) = rest
                .strip_prefix(":\n\n```python\n")
                .or(rest.strip_prefix("：\n\n```python\n"))
            else {
                continue;
            };
            programs += 1;
            let shown = code.split("```").next().unwrap();
            let path = root().join("examples/python").join(name);
            let program = std::fs::read_to_string(&path).unwrap();
            let mut lines = program.lines().map(str::trim);
            // An empty line stands for lines that are left out.
            for line in shown.lines().map(str::trim).filter(|line| !line.is_empty()) {
                assert!(
                    lines.any(|there| there == line),
                    "{}: {name} has no such line here: {line}",
                    page.display()
                );
            }
        }
    }
    assert!(programs >= 9, "the example pages have lost their Python");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README, in both languages, and all pages below `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("README.zh-CN.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The headings of a page. A comment in a block of code is none.
fn headings(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        in_code ^= line.starts_with("```");
        !in_code && line.starts_with('#')
    })
}

/// The name that a heading gets as a link's target: small letters, dashes, no signs.
fn anchor(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    title
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// What two pages share that say the same in two languages.
#[derive(Debug, PartialEq)]
struct Shape {
    /// How deep each heading is.
    headings: Vec<usize>,
    /// Rows of each table, its head among them.
    tables: Vec<usize>,
    /// The lines of all code, without comments.
    code: Vec<String>,
}

impl Shape {
    fn of(file: &str) -> Self {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let mut shape = Shape {
            headings: headings(&text)
                .map(|line| line.find(' ').unwrap())
                .collect(),
            tables: Vec::new(),
            code: Vec::new(),
        };
        let (mut in_code, mut in_table) = (false, false);
        for line in text.lines() {
            let was_in_table = std::mem::replace(&mut in_table, false);
            if line.starts_with("```") {
                in_code = !in_code;
                shape.code.push(line.to_owned());
            } else if in_code {
                shape.code.push(without_comments(line));
            } else if line.starts_with('|') {
                in_table = true;
                if was_in_table {
                    *shape.tables.last_mut().unwrap() += 1;
                } else {
                    shape.tables.push(1);
                }
            }
        }
        shape
    }
}

fn without_comments(line: &str) -> String {
    let mut code = line.to_owned();
    for comment in [" # ", " // "] {
        if let Some(at) = code.find(comment) {
            code.truncate(at);
        }
    }
    if let (Some(start), Some(end)) = (code.find("/* "), code.find(" */")) {
        code.replace_range(start..end, "");
    }
    code.trim_end().to_owned()
}

const HEAD: &str = "\
# Commands

Every command on filters, with its syntax, its reply and an example. `[ ]` may be left out, `|` means one of these, `...`
means one or more. The examples of each chapter are one conversation from top to bottom. A server tells the syntax, too:
`everbloom query COMMAND DOCS BF.RESERVE`.

This page is generated from the table of commands.
";

/// What each command replies, and what the examples type.
const EXAMPLES: &str = include_str!("examples.txt");

fn reference() -> String {
    let mut page = String::from(HEAD);
    for (title, prefix) in [
        ("Bloom filters", "bf."),
        ("[Cuckoo filters](deleting.md)", "cf."),
    ] {
        write!(page, "\n## {title}\n").unwrap();
        let mut keyspace = Keyspace::default();
        // Windows need a clock.
        keyspace.context.now_ms = 1_800_000_000_000;
        for command in COMMANDS.iter().filter(|row| row.name.starts_with(prefix)) {
            describe(&mut page, command, &mut keyspace);
        }
    }
    page
}

fn describe(page: &mut String, command: &Command<Function>, keyspace: &mut Keyspace) {
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
    let mut sections = EXAMPLES.split("\n\n");
    let section = sections.find(|section| section.lines().next() == Some(name.as_str()));
    let section = section.unwrap_or_else(|| panic!("{name} has no example in examples.txt"));
    let (typed, reply): (Vec<&str>, Vec<&str>) = section
        .lines()
        .skip(1)
        .partition(|line| line.starts_with("> "));
    writeln!(page, "\nReply: {}", reply.join("\n")).unwrap();
    if typed.is_empty() {
        return;
    }
    page.push_str("\n```\n");
    for line in typed {
        let words: Vec<&[u8]> = line[2..].split(' ').map(str::as_bytes).collect();
        let reply = shown(&keyspace.call(&words), 0);
        write!(page, "127.0.0.1:6379{line}\n{reply}\n").unwrap();
    }
    page.push_str("```\n");
}

/// A reply as redis-cli prints it; `indent` is the width before the lines after the first.
fn shown(reply: &Reply, indent: usize) -> String {
    let list = |elements: &[&Reply]| {
        let width = elements.len().to_string().len();
        let lines = elements.iter().enumerate().map(|(at, element)| {
            let element = shown(element, indent + width + 2);
            format!("{:>width$}) {element}", at + 1)
        });
        lines.collect::<Vec<_>>().join(&format!("\n{:indent$}", ""))
    };
    match reply {
        Reply::Simple(text) => text.to_string(),
        Reply::Error(text) => format!("(error) {text}"),
        Reply::Integer(number) => format!("(integer) {number}"),
        Reply::Boolean(value) => format!("(integer) {}", u8::from(*value)),
        Reply::Bulk(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        Reply::Double(_) => {
            // In RESP2 it is a string.
            let mut bytes = Vec::new();
            encode(reply, Protocol::Resp2, &mut bytes);
            let text = String::from_utf8(bytes).unwrap();
            format!("{:?}", text.lines().nth(1).unwrap())
        }
        Reply::Null | Reply::NullArray => "(nil)".into(),
        Reply::Array(elements) => list(&elements.iter().collect::<Vec<_>>()),
        // In RESP2 a map is an array of labels and values.
        Reply::Map(pairs) => list(
            &pairs
                .iter()
                .flat_map(|it| [&it.0, &it.1])
                .collect::<Vec<_>>(),
        ),
        other => panic!("no example replies {other:?}"),
    }
}
