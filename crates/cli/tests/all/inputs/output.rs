//! Outputs that are inputs, too.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::process::Stdio;

use super::*;

/// Runs a line of a shell, in which `everbloom` is the binary and no file may grow far: a program
/// that reads what it writes would fill the disk.
fn shell(folder: &Path, line: &str) -> Outcome {
    let line = format!("ulimit -f 200; trap '' XFSZ; everbloom() {{ \"$BIN\" \"$@\"; }}; {line}");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env("BIN", EVERBLOOM);
    run(command.current_dir(folder).stdin(Stdio::null()))
}

#[test]
fn an_input_that_is_also_the_output_is_refused() {
    let here = folder("output-input");
    let lines: String = (0..1000)
        .map(|number| format!("{}\n", number % 900))
        .collect();
    fs::write(here.join("x"), &lines).unwrap();
    fs::write(here.join("other"), "a\n").unwrap();
    symlink("x", here.join("link")).unwrap();
    fs::hard_link(here.join("x"), here.join("hard")).unwrap();
    everbloom(&here, &["build", "-q", "f.bloom", "other"]).success();
    everbloom(&here, &["dedup", "-q", "--state", "s.bloom", "other"]).success();
    let before = ["x", "f.bloom", "s.bloom"].map(|name| fs::read(here.join(name)).unwrap());
    for (line, name) in [
        ("everbloom check -v f.bloom x >> x", "x"),
        ("everbloom check -v f.bloom other x >> x", "x"),
        ("everbloom check -v f.bloom link >> x", "link"),
        ("everbloom check -v f.bloom x >> hard", "x"),
        ("everbloom check -v f.bloom < x >> x", "standard input"),
        (
            "everbloom check -v f.bloom other - < x >> x",
            "standard input",
        ),
        ("everbloom dedup --repeated x >> x", "x"),
        ("everbloom dedup x >> x", "x"),
        ("everbloom dedup < x >> x", "standard input"),
        ("everbloom dedup /dev/stdin < x >> x", "/dev/stdin"),
        ("everbloom dedup --state s.bloom x >> x", "x"),
        ("everbloom dedup --state new.bloom x >> x", "x"),
        // A filter, which the lines would destroy.
        ("everbloom check -v f.bloom x >> f.bloom", "f.bloom"),
        ("everbloom dedup --state s.bloom x >> s.bloom", "s.bloom"),
        (
            "everbloom dedup --state new.bloom x > new.bloom; c=$?; rm new.bloom; exit $c",
            "new.bloom",
        ),
        // A list that would be replaced by its filter.
        ("everbloom build new.bloom new.bloom", "new.bloom"),
        ("everbloom build f.bloom other f.bloom", "f.bloom"),
        ("everbloom build -a s.bloom < s.bloom", "standard input"),
        ("everbloom build -c 9 f.bloom - < f.bloom", "standard input"),
    ] {
        let outcome = shell(&here, line);
        assert_eq!(outcome.status.code(), Some(2), "{line}: {outcome:?}");
        let said = format!("everbloom: {name}: input file is also the output\n");
        assert_eq!(outcome.stderr, said, "{line}");
        assert!(!here.join("new.bloom").exists(), "{line}");
    }
    let after = ["x", "f.bloom", "s.bloom"].map(|name| fs::read(here.join(name)).unwrap());
    assert!(before == after);
}

#[test]
fn other_outputs_work() {
    let here = folder("output-other");
    fs::write(here.join("x"), "a\nb\na\n").unwrap();
    fs::write(here.join("y"), "before\n").unwrap();
    everbloom(&here, &["build", "-q", "f.bloom", "x"]).success();
    let read = |name: &str| fs::read_to_string(here.join(name)).unwrap();
    for (line, printed) in [
        ("everbloom dedup -q x >> y", ""),
        ("everbloom dedup -q < x | cat", "a\nb\n"),
        ("everbloom dedup -q x x > /dev/null", ""),
        ("everbloom dedup -q /dev/null < /dev/null > /dev/null", ""),
        ("everbloom dedup -q -c 9 --state s.bloom x > z", ""),
        // They write when all is read, or nothing.
        (
            "cp x n; everbloom dedup --count n >> n; cat n",
            "a\nb\na\n2\n",
        ),
        (
            "cp x n; everbloom check -c f.bloom n >> n; cat n",
            "a\nb\na\n3\n",
        ),
        (
            "cp x n; everbloom check -q f.bloom n >> n; cat n",
            "a\nb\na\n",
        ),
    ] {
        assert_eq!(shell(&here, line).success(), printed, "{line}");
    }
    assert_eq!(read("y"), "before\na\nb\n");
    assert_eq!(read("z"), "a\nb\n");
}

/// The two ends of a terminal, or of a socket, are one file.
#[test]
fn a_socket_may_be_both() {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let here = folder("output-socket");
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let theirs = OwnedFd::from(theirs);
    let mut command = Command::new(EVERBLOOM);
    command.args(["dedup", "-q"]).current_dir(&here);
    command.stdin(theirs.try_clone().unwrap()).stdout(theirs);
    let mut child = command.spawn().unwrap();
    // The command holds its ends, too.
    drop(command);
    io::Write::write_all(&mut ours, b"a\na\nb\n").unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let mut printed = String::new();
    ours.read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "a\nb\n");
    assert!(child.wait().unwrap().success());
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .unwrap();
    let mut command = Command::new(EVERBLOOM);
    command
        .args(["dedup", "-q"])
        .stdin(null.try_clone().unwrap())
        .stdout(null);
    assert!(command.status().unwrap().success());
}
