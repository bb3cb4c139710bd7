//! `everbloom generate`, and the files in `contrib` that are made with it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

use std::fs;
use std::process::Command;

use crate::support::{EVERBLOOM, folder, root, run};

fn generate(args: &[&str]) -> String {
    run(Command::new(EVERBLOOM).arg("generate").args(args)).success()
}

#[test]
fn the_packaged_configuration_explains_every_setting() {
    let log = "/var/log/everbloom/everbloom.log";
    let made = generate(&["conf", "--dir", "/var/lib/everbloom", "--logfile", log]);
    let kept = fs::read_to_string(root().join("contrib/everbloom.conf")).unwrap();
    assert!(
        made == kept,
        "contrib/everbloom.conf is not what\n\
         `generate conf --dir /var/lib/everbloom --logfile {log}`\n\
         makes:\n{made}"
    );
}

#[test]
fn a_configuration_that_was_made_is_read() {
    let file = folder("generate").join("a.conf");
    fs::write(
        &file,
        generate(&["conf", "--port", "7000", "--timeout", "5"]),
    )
    .unwrap();
    let again = generate(&["conf", file.to_str().unwrap(), "--timeout", "6"]);
    assert!(
        again.contains("\nport 7000\n") && again.contains("\ntimeout 6\n"),
        "{again}"
    );
}

#[test]
fn every_subcommand_has_a_man_page() {
    let pages = folder("man").join("share").join("man1");
    generate(&["man", pages.to_str().unwrap()]);
    let help = run(Command::new(EVERBLOOM).arg("--help")).success();
    let names: Vec<&str> = help
        .lines()
        .take_while(|line| *line != "Options:")
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .collect();
    assert!(names.contains(&"serve"), "{help}");
    for name in names {
        let page = fs::read_to_string(pages.join(format!("everbloom-{name}.1"))).unwrap();
        assert!(page.contains(".SH DESCRIPTION"), "{page}");
    }
}

#[test]
fn shells_can_complete_the_subcommands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = generate(&["completions", shell]);
        assert!(
            script.contains("measure") && script.contains("--error-rate") || shell == "fish",
            "{script}"
        );
    }
    let complete = "complete -p everbloom && COMP_WORDS=(everbloom me) COMP_CWORD=1 && \
                    _everbloom everbloom me everbloom && echo \"${COMPREPLY[@]}\"";
    let script = generate(&["completions", "bash"]);
    let output = run(Command::new("bash").args(["-c", &format!("{script}\n{complete}")])).success();
    assert!(output.trim_end().ends_with("measure"), "{output}");
}
