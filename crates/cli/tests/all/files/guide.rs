//! The sessions in the guide, typed into a shell.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{EVERBLOOM, folder, root, run};

#[test]
fn sessions_print_what_the_guide_shows() {
    let guide = fs::read_to_string(root().join("docs/guide/files.md")).unwrap();
    let folder = folder("files-guide");
    let path = format!(
        "{}:{}",
        Path::new(EVERBLOOM).parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let mut commands = 0;
    for block in guide.split("```").skip(1).step_by(2) {
        let Some(session) = block.strip_prefix("\n$ ") else {
            continue;
        };
        for typed in session.split("\n$ ") {
            let (command, expected) = typed.split_once('\n').unwrap_or((typed, ""));
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &format!("({command}) 2>&1")])
                .current_dir(&folder)
                .env("PATH", &path);
            let shown = run(&mut shell).success();
            assert_eq!(shown.trim_end(), expected.trim_end(), "{command}");
            commands += 1;
        }
    }
    assert!(commands >= 3, "the guide has lost its session");
}
