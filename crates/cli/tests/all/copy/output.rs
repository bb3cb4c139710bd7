//! Outputs that nobody reads, or that cannot be written.

use super::*;
use std::fs::File;
use std::io;

/// Runs a program whose standard output has no reader.
fn unread(command: &mut Command) -> Outcome {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    with_output(command, writer)
}

fn with_output(command: &mut Command, output: impl Into<Stdio>) -> Outcome {
    let ended = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    Outcome {
        status: ended.status,
        stdout: String::new(),
        stderr: String::from_utf8(ended.stderr).unwrap(),
    }
}

#[test]
fn the_exit_code_stays_when_nobody_reads_the_output() {
    let (old, new) = (server(), server());
    let (from, to) = (url(old.port), url(new.port));
    let (mut a, mut b) = (old.client(), new.client());
    a.ok("BF.ADD same x");
    for subcommand in ["copy", "compare"] {
        let outcome = unread(&mut command(subcommand, &from, &to, &[]));
        assert_code(&outcome, 0);
        assert_eq!(outcome.stderr, "");
    }

    a.ok("BF.ADD taken x");
    b.ok("SET taken value");
    let outcome = unread(&mut command("copy", &from, &to, &[]));
    assert_code(&outcome, 1);
    let line = "\"taken\": the destination holds a value of type string";
    assert!(outcome.stderr.contains(line), "{outcome:?}");

    // The lines of one filter fill no buffer, and those of many do.
    for count in [0, 500] {
        for key in 0..count {
            a.ok(&format!("BF.ADD only-old:{key} x"));
        }
        let flags: [&[&str]; 3] = [&[], &["--json"], &["--quiet"]];
        for more in flags {
            let outcome = unread(&mut command("compare", &from, &to, more));
            assert_code(&outcome, 1);
            assert_eq!(outcome.stderr, "");
        }
    }
}

/// That the copy failed is more important than that its output did.
#[cfg(target_os = "linux")]
#[test]
fn a_failure_of_the_copy_is_named_and_not_one_of_its_output() {
    let full_disk = || File::options().write(true).open("/dev/full").unwrap();
    let (old, new) = (server(), server());
    old.client().ok("BF.ADD seen x");
    let full = Server::with(&["--appendonly", "no", "--maxmemory", "1mb"]);
    full.client().ok("SETRANGE text 2000000 x");
    let mut to_full = command("copy", &url(old.port), &url(full.port), &[]);
    let outcomes = [unread(&mut to_full), with_output(&mut to_full, full_disk())];
    for outcome in outcomes {
        assert_code(&outcome, 2);
        let line = " refuses: OOM command not allowed";
        assert!(outcome.stderr.contains(line), "{outcome:?}");
    }
    let mut to_new = command("copy", &url(old.port), &url(new.port), &[]);
    let outcome = with_output(&mut to_new, full_disk());
    assert_code(&outcome, 2);
    assert!(
        outcome.stderr.contains("cannot write the output"),
        "{outcome:?}"
    );
    assert_eq!(new.client().number("BF.EXISTS seen x"), 1);
}
