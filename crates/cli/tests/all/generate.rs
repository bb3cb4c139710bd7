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
        let help = run(Command::new(EVERBLOOM).args([name, "--help"])).success();
        for (text, section) in [("Exit code", "EXIT STATUS"), ("Examples:", "EXAMPLES")] {
            let has_section = page.contains(&format!(".SH \"{section}\""));
            assert_eq!(has_section, help.contains(text), "{section} in {page}");
        }
        let synopsis = format!(".SH SYNOPSIS\n.PP\n\\&everbloom {name} ");
        assert!(page.contains(&synopsis), "{page}");
    }
    let page = fs::read_to_string(pages.join("everbloom-serve.1")).unwrap();
    assert!(
        page.contains(".SH SETTINGS\n.TP\n\\fB\\-\\-bind\\fR"),
        "{page}"
    );
    // The table of settings keeps its lines.
    let table = page
        .split(".nf\n")
        .find(|it| it.contains("the TCP port; 0"))
        .unwrap();
    assert!(table.starts_with("\\&  port 6379   "), "{table}");
}

#[test]
fn shells_can_complete_the_subcommands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = generate(&["completions", shell]);
        assert!(
            script.contains("measure") && script.contains("--error-rate") || shell == "fish",
            "{script}"
        );
        // `everbloom serve --<Tab>` offers the settings.
        assert!(script.contains("appendfsync"), "{shell}");
    }
    let script = generate(&["completions", "bash"]);
    // Bash completes the name of a file where nothing is answered.
    for (words, expected) in [
        (&["me"][..], "merge measure"),
        (&["info", ""], ""),
        (&["info", "--j"], "--json"),
        (&["serve", "--appendfs"], "--appendfsync"),
        (&["generate", "m"], "man"),
    ] {
        let complete = format!(
            "{script}\ncomplete -p everbloom >/dev/null && COMP_WORDS=(everbloom {}) COMP_CWORD={} && \
             _everbloom_more everbloom '{}' '{}' && echo \"${{COMPREPLY[*]}}\"",
            words
                .iter()
                .map(|word| format!("'{word}' "))
                .collect::<String>(),
            words.len(),
            words.last().unwrap(),
            words.iter().rev().nth(1).unwrap_or(&"everbloom"),
        );
        let output = run(Command::new("bash").args(["-c", &complete])).success();
        let mut found: Vec<&str> = output.split_whitespace().collect();
        found.sort_unstable();
        let mut expected: Vec<&str> = expected.split(' ').filter(|it| !it.is_empty()).collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{words:?}");
    }
}
