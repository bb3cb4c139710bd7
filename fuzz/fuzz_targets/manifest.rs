//! Manifests from any bytes: an error, or one that is written so that it reads back the same, and
//! that stays readable, with every file in one place, through a rewrite.
#![no_main]

use std::collections::HashSet;

use everbloom_files::aof::{BaseFormat, FileInfo, Manifest, Names};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(manifest) = Manifest::parse(bytes, "manifest") else {
        return;
    };
    check(&manifest);
    if manifest.files().any(|info| info.seq > 1 << 61) {
        // The numbers after it may be more than is read.
        return;
    }
    let names = Names::new("appendonlydir", "appendonly.aof");
    let grown = manifest.with_new_increment(&names);
    check(&grown);
    let rewritten = grown.after_rewrite(grown.next_base(&names, BaseFormat::Rdb));
    check(&rewritten);
    let lost = all(&grown)
        .into_iter()
        .find(|name| !all(&rewritten).contains(name));
    assert_eq!(
        lost, None,
        "a file is removed once it is history, not before"
    );
    check(&rewritten.without_history());
});

fn check(manifest: &Manifest) {
    let text = manifest.to_text();
    if text.is_empty() {
        assert_eq!(*manifest, Manifest::default());
        return;
    }
    // A name near the limit of a line can be longer when it is written with quotes.
    if text.lines().all(|line| line.len() < 1024) {
        assert_eq!(
            Manifest::parse(text.as_bytes(), "written").as_ref(),
            Ok(manifest)
        );
    }
    let names = all(manifest);
    for name in &names {
        assert!(
            !name.contains(['/', '\\', '\0']),
            "{name:?} leads out of the directory"
        );
    }
    assert_eq!(names.len(), names.iter().collect::<HashSet<_>>().len());
}

fn all(manifest: &Manifest) -> Vec<&str> {
    let files = manifest.files().chain(&manifest.history);
    files.map(|FileInfo { name, .. }| name.as_str()).collect()
}
