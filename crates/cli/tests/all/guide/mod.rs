//! The pages for users, typed: every block of commands runs against the binary and a server, and
//! what it prints is what the page shows.
//!
//! - [`page`]: the blocks of a page, and the marks in its source
//! - [`shell`]: a folder, a shell and servers for one page
//! - [`expected`]: whether an output is what a page shows
//!
//! CONTRIBUTING.md says how to mark a block.

mod expected;
mod page;
mod shell;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use everbloom_dev::peers;

use crate::support::{Peer, root};
use page::Page;
use shell::Shell;

/// Pages that are no sessions: the table of commands is generated.
const NO_SESSIONS: [&str; 1] = ["docs/guide/commands.md"];

/// How many pages are typed at a time.
const THREADS: usize = 3;

#[test]
fn every_page_does_what_it_says() {
    let Some(_) = Peer::RedisCli.find() else {
        return;
    };
    // One page, by a part of its name, while somebody writes it.
    let wanted = std::env::var("GUIDE_PAGE").unwrap_or_default();
    let mut pages = pages();
    pages.retain(|page| page.contains(&wanted));
    let (next, typed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(name) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (count, found) = type_page(name);
                    typed.fetch_add(count, Ordering::Relaxed);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let typed = typed.into_inner();
    assert!(
        typed > 100 || !wanted.is_empty(),
        "the pages have lost their commands: {typed}"
    );
}

/// The pages below docs/guide and docs/zh, and both READMEs, by their paths in the repository.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "README.zh-CN.md".to_owned()];
    for folder in ["docs/guide", "docs/guide/examples", "docs/zh"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names = names.filter(|name| Path::new(name).extension().is_some_and(|it| it == "md"));
        pages.extend(names.map(|name| format!("{folder}/{name}")));
    }
    pages.retain(|page| !NO_SESSIONS.contains(&page.as_str()));
    pages.sort();
    pages
}

/// Types a page. Returns the number of its commands, and what is wrong.
fn type_page(name: &str) -> (usize, Vec<String>) {
    let text = fs::read_to_string(root().join(name)).unwrap();
    let mut host = None;
    if text.contains("valkey-server --") {
        host = peers::host_program();
        if host.is_none() || Peer::Python.find().is_none() {
            return (0, Vec::new());
        }
    }
    let page = Page::read(&text);
    let mut shell = Shell::new(
        &name.replace(['/', '.'], "-"),
        &page.stands_for,
        host.as_deref(),
    );
    let mut wrong = page.wrong;
    for block in &page.blocks {
        let place = format!("{name}:{}", block.line);
        let found = shell.type_block(block);
        wrong.extend(found.err().map(|why| format!("{place}: {why}")));
    }
    (shell.typed, wrong)
}
