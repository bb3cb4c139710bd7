//! `everbloom dedup` as a user sees it: what it prints, remembers and says. A `HashSet` is the
//! oracle.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]
#![cfg(unix)]

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{EVERBLOOM, Outcome, Server, folder, run, run_with_input};
use everbloom::{BloomFilter, ScalableBloomFilter, Span, WindowedBloomFilter};
use everbloom_dev::{peers, wait_for};

fn dedup(args: &[&str]) -> Command {
    let mut command = Command::new(EVERBLOOM);
    command
        .arg("dedup")
        .args(args)
        .env_remove("REDISCLI_AUTH")
        .current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

fn with_input(args: &[&str], input: impl Into<Vec<u8>>) -> Outcome {
    let input = input.into();
    run_with_input(&mut dedup(args), move |stdin| stdin.write_all(&input))
}

/// Lines of which some repeat, of different lengths.
fn lines(seed: u64, count: u64, different: u64) -> String {
    let mut state = seed;
    let mut text = String::new();
    for _ in 0..count {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let number = (state >> 33) % different;
        let tail = "/long".repeat(usize::try_from(number % 40).unwrap());
        text += &format!("https://example.org/{number}{tail}\n");
    }
    text
}

/// The lines that come for the first time.
fn first_seen(text: &str, seen: &mut HashSet<String>) -> String {
    let mut firsts = String::new();
    for line in text.lines() {
        if seen.insert(line.to_owned()) {
            firsts += line;
            firsts.push('\n');
        }
    }
    firsts
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// A path with a file.
fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = path(folder, name);
    fs::write(&path, content).unwrap();
    path
}

#[track_caller]
fn refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word}: {outcome:?}");
    }
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
}

/// A number of six digits, as it is printed.
fn grouped(number: usize) -> String {
    format!("{} {:03}", number / 1000, number % 1000)
}

#[test]
fn each_line_is_printed_once_and_in_order() {
    let text = lines(1, 200_000, 90_000);
    let expected = first_seen(&text, &mut HashSet::new());
    // At this rate no line is lost.
    let outcome = with_input(&["--error-rate", "1e-12"], text.clone());
    assert!(outcome.stdout == expected, "{}", outcome.stderr);
    let out = expected.lines().count();
    let summary = format!(
        "200 000 records in, {} out, {} repeats",
        grouped(out),
        grouped(200_000 - out)
    );
    assert!(outcome.stderr.contains(&summary), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("warning"), "{}", outcome.stderr);

    let folder = folder("dedup-order");
    let file = file(&folder, "text", text);
    let again = run(&mut dedup(&["-e", "1e-12", "--quiet", &file, "-", &file]));
    assert!(again.stdout == expected);
    assert_eq!(again.stderr, "");
}

#[test]
fn repeats_counts_and_both() {
    let text = "a\nb\na\nc\nb\na\n";
    assert_eq!(with_input(&[], text).success(), "a\nb\nc\n");
    assert_eq!(with_input(&["--repeated"], text).success(), "a\nb\na\n");
    assert_eq!(with_input(&["--count"], text).success(), "3\n");
    assert_eq!(
        with_input(&["--count", "--repeated"], text).success(),
        "3\n"
    );
    assert_eq!(with_input(&["--count"], "").success(), "0\n");
}

#[test]
fn the_last_record_gets_an_end() {
    let folder = folder("dedup-ends");
    let (a, b) = (file(&folder, "a", "1\n2"), file(&folder, "b", "2\n\n\n3"));
    assert_eq!(run(&mut dedup(&[&a, &b])).success(), "1\n2\n\n3\n");
    assert_eq!(
        with_input(&["-0"], "a\nb\0c\0a\nb\0c").success(),
        "a\nb\0c\0"
    );
}

#[test]
fn bytes_of_any_kind_pass() {
    let folder = folder("dedup-bytes");
    let bytes: Vec<u8> = (0..=255).chain(0..=255).collect();
    let input = file(
        &folder,
        "bytes",
        [&bytes[..], b"\n\xff\xfe\n", &bytes, b"\n"].concat(),
    );
    let printed = dedup(&[&input]).output().unwrap().stdout;
    // Two parts of the first line repeat each other: 11 to 255 with 0 to 9, and nothing else.
    let mut seen = HashSet::new();
    let whole = fs::read(&input).unwrap();
    let mut expected = Vec::<u8>::new();
    for line in whole.split_inclusive(|byte| *byte == b'\n') {
        if seen.insert(line.to_vec()) {
            expected.extend(line);
        }
    }
    assert_eq!(printed, expected);
}

#[test]
fn a_line_of_100_megabytes_passes() {
    let long = "x".repeat(100 << 20);
    let input = format!("a\n{long}\na\n{long}\nb");
    let outcome = with_input(&[], input);
    assert!(outcome.stdout == format!("a\n{long}\nb\n"));
}

#[test]
fn fields() {
    let text = "1,a\n2,b\n3,a\n4\n4\n5,b,c\n";
    let outcome = with_input(&["--field", "2", "--delimiter", ","], text);
    assert!(
        outcome.stderr.contains("2 had no such field"),
        "{outcome:?}"
    );
    assert_eq!(outcome.success(), "1,a\n2,b\n4\n4\n");
    let tabs = with_input(&["-f", "1"], "a\t1\na\t2\nb\t1\n");
    assert_eq!(tabs.success(), "a\t1\nb\t1\n");

    let strict = with_input(&["-f", "2", "-d", ",", "--strict"], text);
    refused(&strict, &["record 4", "--strict"]);
    assert_eq!(strict.stdout, "1,a\n2,b\n");
}

#[test]
fn json_lines_by_a_value() {
    let text = concat!(
        "{\"id\":1,\"text\":\"caf\\u00e9\"}\n",
        "{\"id\":2,\"text\":\"café\"}\n",
        "no json\n",
        "no json\n",
        "{\"id\":3,\"meta\":{\"text\":\"x\"}}\n",
        "{\"id\":4,\"text\":\"b\"}\n",
    );
    let outcome = with_input(&["--json", ".text"], text);
    assert!(
        outcome.stderr.contains("3 had no such field"),
        "{outcome:?}"
    );
    let kept: Vec<_> = text
        .lines()
        .enumerate()
        .filter(|(line, _)| *line != 1)
        .collect();
    let printed = outcome.success();
    assert_eq!(
        printed.lines().collect::<Vec<_>>(),
        kept.iter().map(|k| k.1).collect::<Vec<_>>()
    );
    let strict = with_input(&["--json", ".text", "--strict"], text);
    refused(&strict, &["record 3"]);
}

#[test]
fn packed_files_are_unpacked() {
    let folder = folder("dedup-packed");
    let text = lines(5, 60_000, 30_000);
    let expected = first_seen(&text, &mut HashSet::new());
    let (first, second) = text.split_at(text.len() / 3);
    for (program, suffix) in [("gzip", "gz"), ("zstd", "zst")] {
        if !everbloom_dev::peers::is_there(Command::new(program).arg("--version"), "install it") {
            continue;
        }
        // Two members: what stands at their border is one line.
        let mut packed = Vec::new();
        for part in [first, second] {
            let part = file(&folder, "part", part);
            packed.extend(
                Command::new(program)
                    .args(["-c", &part])
                    .output()
                    .unwrap()
                    .stdout,
            );
        }
        let whole = file(&folder, &format!("text.{suffix}"), &packed);
        let outcome = run(&mut dedup(&["-e", "1e-12", &whole]));
        assert!(outcome.success() == expected, "{program}");
        let piped = with_input(&["-e", "1e-12"], packed.clone());
        assert!(piped.success() == expected, "{program}");

        // What comes before the damage is printed.
        let cut = file(&folder, "cut", &packed[..packed.len() - 1000]);
        let outcome = run(&mut dedup(&["-e", "1e-12", &cut]));
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains("cannot read"), "{}", outcome.stderr);
        assert!(expected.starts_with(&outcome.stdout) && outcome.stdout.len() > 100_000);
    }
}

#[test]
fn files_that_cannot_be_read_are_named_and_passed_over() {
    let folder = folder("dedup-unreadable");
    let good = file(&folder, "good", "a\n");
    let folder = folder.to_str().unwrap();
    let outcome = run(&mut dedup(&["/no/such/file", folder, &good]));
    assert_eq!(outcome.status.code(), Some(2));
    assert_eq!(outcome.stdout, "a\n");
    for name in ["/no/such/file", folder] {
        let line = format!("everbloom: cannot read {name}: ");
        assert!(outcome.stderr.contains(&line), "{}", outcome.stderr);
    }
    // There is nothing to sum up.
    let outcome = run(&mut dedup(&["/no/such/file"]));
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
}

#[test]
fn a_number_and_a_string_of_it_are_one_value() {
    let text = "{\"k\":1}\n{\"k\":\"1\"}\n{\"k\":1.0}\n";
    let outcome = with_input(&["--json", ".k"], text);
    assert_eq!(outcome.success(), "{\"k\":1}\n{\"k\":1.0}\n");
    let help = run(&mut dedup(&["--help"])).success();
    assert!(help.contains("so 1 and \"1\" are one value"), "{help}");
}

/// The decoder's own words for it are many, and none of them says this.
#[test]
fn a_zstd_file_that_was_cut_off_is_named_so() {
    let folder = folder("dedup-cut");
    // One frame of one block, as it is: the lines a, b, c.
    let whole = *b"\x28\xb5\x2f\xfd\x20\x06\x31\0\0a\nb\nc\n";
    let good = file(&folder, "good", whole);
    assert_eq!(run(&mut dedup(&[&good])).success(), "a\nb\nc\n");
    for length in [5, 8, whole.len() - 1] {
        let cut = file(&folder, "cut", &whole[..length]);
        let outcome = run(&mut dedup(&["-q", &cut]));
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert_eq!(
            outcome.stderr,
            format!("everbloom: cannot read {cut}: it is cut off\n")
        );
    }
}

#[test]
fn wrong_arguments_are_refused() {
    for (args, word) in [
        (&["--error-rate", "0"][..], "above 0 and below 1"),
        (&["--error-rate", "1.5"], "above 0 and below 1"),
        (&["--error-rate", "small"], "--error-rate"),
        (&["--capacity", "0"], "--capacity"),
        (&["--field", "0"], "--field"),
        (&["--delimiter", ","], "--field"),
        (&["--url", "redis://localhost"], "--key"),
        (&["redis://localhost"], "--key"),
        (&["-p", "7000"], "--key"),
        (&["--count", "--key", "k"], "--count"),
        (&["--state", "s", "--key", "k"], "--state"),
        (
            &["--key", "k", "--url", "redis://a", "redis://b"],
            "two servers",
        ),
        (&["--json", ".a", "--field", "1"], "--json"),
        (&["--json", "text"], ".meta.url"),
    ] {
        let outcome = with_input(args, "");
        assert_eq!(outcome.status.code(), Some(2), "{args:?}");
        assert!(outcome.stderr.contains(word), "{args:?} {}", outcome.stderr);
    }
    let huge = with_input(&["--capacity", "9e17"], "");
    refused(&huge, &["900 000 000 000 000 000", "smaller --capacity"]);
}

#[test]
fn a_state_remembers_from_run_to_run() {
    let folder = folder("dedup-state");
    let state = path(&folder, "seen.bloom");
    let mut seen = HashSet::new();
    for seed in 0..4 {
        let text = lines(seed, 20_000, 50_000);
        let expected = first_seen(&text, &mut seen);
        let outcome = with_input(&["--state", &state, "-e", "1e-12"], text.clone());
        assert!(outcome.success() == expected, "{seed}");
        // What only counts remembers nothing, and finds nothing new.
        let count = with_input(&["--state", &state, "--count"], text + "another\n");
        assert_eq!(count.success(), "1\n");
    }
    let filter = ScalableBloomFilter::read_from(File::open(&state).unwrap()).unwrap();
    assert_eq!(filter.len(), seen.len() as u64);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);

    let rate = with_input(&["--state", &state, "--error-rate", "0.01"], "");
    refused(&rate, &[&state, "0.01", "leave --error-rate off"]);
    let capacity = with_input(&["--state", &state, "--capacity", "5"], "");
    refused(&capacity, &[&state, "1048576", "leave --capacity off"]);
    assert_eq!(
        with_input(&["--state", &state, "-c", "1048576"], "new\n").success(),
        "new\n"
    );
}

#[test]
fn a_state_may_be_a_link_and_keeps_its_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder("dedup-link");
    let (state, link) = (path(&folder, "seen.bloom"), path(&folder, "link"));
    with_input(&["--state", &state], "a\n").success();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&state, &link).unwrap();
    assert_eq!(with_input(&["--state", &link], "a\nb\n").success(), "b\n");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&state).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(with_input(&["--state", &state], "a\nb\n").success(), "");
}

#[test]
fn a_classic_filter_is_a_state_too() {
    use everbloom::Layout;
    let folder = folder("dedup-classic");
    let builder = ScalableBloomFilter::builder()
        .layout(Layout::Classic)
        .error_rate(1e-6);
    let mut filter = builder.capacity(1000).build().unwrap();
    filter.insert("a");
    let state = file(&folder, "seen.bloom", filter.to_bytes());
    let outcome = with_input(&["--state", &state], "a\nb\n");
    assert_eq!(outcome.success(), "b\n");
    assert_eq!(with_input(&["--state", &state], "a\nb\n").success(), "");
}

#[test]
fn a_file_that_is_no_state_stays_as_it_is() {
    let folder = folder("dedup-damaged");
    let mut good = ScalableBloomFilter::builder()
        .capacity(5000)
        .build()
        .unwrap();
    good.insert("a");
    let good = good.to_bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let fixed = BloomFilter::new(10, 0.01).to_bytes();
    for (name, bytes, words) in [
        (
            "bits",
            with(good.len() - 200, 0xee),
            &["damaged", "copy"][..],
        ),
        ("header", with(30, 0xee), &["damaged", "copy"]),
        ("length", with(50, 0xee), &["damaged", "copy"]),
        ("cut", good[..good.len() - 1].to_vec(), &["damaged", "copy"]),
        ("short", good[..40].to_vec(), &["damaged", "copy"]),
        ("longer", [&good[..], b"x"].concat(), &["damaged", "copy"]),
        ("version", with(8, 9), &["version 9", "newer"]),
        (
            "text",
            b"https://example.org\n".to_vec(),
            &["not a filter file", "another"],
        ),
        ("fixed", fixed, &["fixed size", "another"]),
    ] {
        let state = file(&folder, name, &bytes);
        let outcome = with_input(&["--state", &state], "a\nb\n");
        refused(&outcome, &[&[state.as_str()], words].concat());
        assert_eq!(outcome.stdout, "");
        assert_eq!(fs::read(&state).unwrap(), bytes, "{name}");
    }
    let here = folder.to_str().unwrap();
    refused(&with_input(&["--state", here], ""), &[here, "is a folder"]);
    refused(&with_input(&["--state", "/dev/null"], ""), &["not a file"]);
    refused(
        &with_input(&["--state", "/no/such/folder/x"], ""),
        &["/no/such/folder/x"],
    );
}

/// A run whose input stays open until it is taken.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(args: &[&str]) -> Self {
        let mut child = dedup(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let input = child.stdin.take();
        Self {
            child,
            input,
            output,
        }
    }

    fn write(&mut self, text: &str) {
        self.input
            .as_mut()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        run(Command::new("kill").args(["-s", name, &pid])).success();
    }
}

#[test]
fn lines_pass_while_the_input_waits_and_a_signal_saves_them() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let folder = folder(&format!("dedup-signal-{signal}"));
        let state = path(&folder, "seen.bloom");
        let mut running = Running::start(&["--state", &state]);
        running.write("a\nb\na\nhalf of a li");
        assert_eq!(
            (running.line(), running.line()),
            ("a\n".into(), "b\n".into())
        );
        // Nobody else may have the state meanwhile.
        refused(
            &with_input(&["--state", &state], "a\n"),
            &[&state, "in use"],
        );
        running.signal(signal);
        // Its input is still open.
        assert_eq!(running.child.wait().unwrap().code(), Some(code));
        let mut rest = String::new();
        running.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        let next = with_input(&["--state", &state], "a\nb\nhalf of a li\nc\n");
        assert_eq!(next.success(), "half of a li\nc\n");
    }
}

#[test]
fn a_killed_run_leaves_the_old_state() {
    let folder = folder("dedup-killed");
    let state = path(&folder, "seen.bloom");
    with_input(&["--state", &state], "a\n").success();
    let before = fs::read(&state).unwrap();
    let mut running = Running::start(&["--state", &state]);
    running.write("a\nb\n");
    assert_eq!(running.line(), "b\n");
    running.signal("KILL");
    running.child.wait().unwrap();
    assert_eq!(fs::read(&state).unwrap(), before);
    assert_eq!(with_input(&["--state", &state], "a\nb\n").success(), "b\n");
}

/// Kills runs at any moment, many of them while they save. Whatever the state is then, all that a
/// run which came to its end has printed is in it, and nothing that was never read.
#[test]
fn a_state_survives_kills_at_random_moments() {
    let folder = folder("dedup-kills");
    let state = path(&folder, "seen.bloom");
    let mut known = HashSet::new();
    let mut ended = 0;
    for round in 0..40_u64 {
        let text = lines(round, 3000, 1_000_000);
        let input = file(&folder, "input", &text);
        let mut child = dedup(&["--state", &state, "--quiet", "-e", "1e-12", &input])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(round * 37 % 23 * 1000));
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            known.extend(text.lines().map(str::to_owned));
            ended += 1;
        }
        let all: String = known.iter().map(|line| format!("{line}\n")).collect();
        let check = with_input(&["--state", &state, "--count"], all);
        assert_eq!(check.success(), "0\n", "round {round}");
    }
    println!("{ended} of 40 runs came to their end");
}

#[test]
fn what_was_not_printed_is_not_remembered() {
    let folder = folder("dedup-full");
    let text = lines(3, 50_000, 40_000);
    let input = file(&folder, "input", &text);
    // A disk that is full from the beginning.
    let state = path(&folder, "full.bloom");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = dedup(&["--state", &state, &input]);
    let child = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let outcome = child.wait_with_output().unwrap();
    let message = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(2), "{message}");
    assert!(
        message.contains("cannot write") && message.contains("not remembered"),
        "{message}"
    );
    let count = run(&mut dedup(&[
        "--state", &state, "--count", "-q", "-e", "0.0001", &input,
    ]));
    let expected = first_seen(&text, &mut HashSet::new()).lines().count();
    let printed: usize = count.success().trim().parse().unwrap();
    assert!(expected - printed < 50, "{expected} {printed}");

    // A file that may not grow beyond some size, which is in the middle of a line.
    let state = path(&folder, "half.bloom");
    let output = path(&folder, "output");
    let limit = "trap '' XFSZ; ulimit -f 1001; exec \"$@\" > \"$OUT\"";
    let args = ["-q", "-c", "1000", "-e", "1e-12", "--state", &state, &input];
    let mut command = Command::new("sh");
    command
        .args(["-c", limit, "sh", EVERBLOOM, "dedup"])
        .args(args)
        .env("OUT", &output);
    let said = ["cannot write", "ends within a record", "not remembered"];
    refused(&run(&mut command), &said);
    let half = fs::read_to_string(&output).unwrap();
    assert!(
        half.len() > 400_000 && !half.ends_with('\n'),
        "{}",
        half.len()
    );
    // The line of which a part was printed comes again, whole.
    let (whole, _) = half.rsplit_once('\n').unwrap();
    let rest = run(&mut dedup(&args)).success();
    let expected = first_seen(&text, &mut HashSet::new());
    assert!(format!("{whole}\n{rest}") == expected);
}

#[test]
fn a_reader_that_ends_gets_no_message_and_the_rest_comes_next_time() {
    let folder = folder("dedup-head");
    let text = lines(4, 300_000, 200_000);
    let input = file(&folder, "input", &text);
    let state = path(&folder, "seen.bloom");
    let args = ["--state", &state, "-e", "1e-12", "-q", &input];
    let mut printed = Vec::new();
    for round in 0..3 {
        let mut command = dedup(&args);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut part = vec![0; 100_000 * (round + 1)];
        output.read_exact(&mut part).unwrap();
        drop(output);
        let outcome = child.wait_with_output().unwrap();
        assert_eq!(outcome.status.code(), Some(0), "{outcome:?}");
        assert_eq!(outcome.stderr, b"");
        printed.push(String::from_utf8(part).unwrap());
    }
    let last = run(&mut dedup(&args)).success();
    printed.push(last);
    // Each run begins behind what the one before it wrote, which may be more than was read: a pipe
    // holds some of it. Nothing is printed twice, and nothing is lost between two runs but that.
    let expected = first_seen(&text, &mut HashSet::new());
    let mut from = 0;
    for part in &printed {
        let at = expected[from..].find(part.as_str()).unwrap() + from;
        assert!(at - from <= 1 << 20, "{at} {from}");
        assert!(at == 0 || expected.as_bytes()[at - 1] == b'\n');
        from = at + part.len();
    }
    assert_eq!(from, expected.len());
}

#[test]
fn a_disk_that_fills_while_saving_leaves_the_old_state() {
    let folder = folder("dedup-save");
    let state = path(&folder, "seen.bloom");
    with_input(&["--state", &state, "-c", "1000"], "a\n").success();
    let before = fs::read(&state).unwrap();
    let limit = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", limit, "sh", EVERBLOOM, "dedup", "--state", &state]);
    let outcome = run_with_input(&mut command, |stdin| stdin.write_all(b"a\nb\n"));
    refused(&outcome, &[&state, "cannot save", "as it was"]);
    assert_eq!(fs::read(&state).unwrap(), before);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    assert_eq!(with_input(&["--state", &state], "a\nb\n").success(), "b\n");
}

#[test]
fn a_filter_that_is_too_full_warns() {
    let folder = folder("dedup-warning");
    let builder = ScalableBloomFilter::builder()
        .capacity(1000)
        .error_rate(0.01);
    let filter = builder.fixed().build().unwrap();
    let state = file(&folder, "seen.bloom", filter.to_bytes());
    let outcome = with_input(&["--state", &state], lines(9, 20_000, 1_000_000));
    assert!(
        outcome.stderr.contains("warning: the filter is too full"),
        "{}",
        outcome.stderr
    );
    let lost = 20_000 - outcome.stdout.lines().count();
    assert!(lost > 1000, "{lost}");
}

#[test]
fn progress_is_for_a_terminal() {
    if !peers::is_there(Command::new("python3").arg("--version"), "install python3") {
        return;
    }
    let folder = folder("dedup-pty");
    let script = "
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    read, write = os.pipe()
    if os.fork() == 0:
        for number in range(8):
            os.write(write, b'line %d\\n' % number)
            time.sleep(0.1)
        os._exit(0)
    os.close(write)
    os.dup2(read, 0)
    os.dup2(os.open('/dev/null', os.O_WRONLY), 1)
    os.execv(sys.argv[1], sys.argv[1:])
seen = b''
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    seen += piece
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";
    let script = file(&folder, "terminal.py", script);
    let on_terminal = |args: &[&str]| {
        let mut command = Command::new("python3");
        command
            .arg(&script)
            .args([EVERBLOOM, "dedup"])
            .args(args)
            .env("TERM", "xterm");
        run(&mut command).success()
    };
    let shown = on_terminal(&[]);
    assert!(
        shown.contains(" read, ") && shown.contains("8 records in"),
        "{shown}"
    );
    assert_eq!(on_terminal(&["--quiet"]), "");
    let piped = with_input(&[], "a\n");
    assert!(!piped.stderr.contains(" read, "), "{}", piped.stderr);
}

#[test]
fn a_server_is_one_memory_for_many() {
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}", server.port);
    let args = ["--url", &url, "--key", "seen", "-e", "1e-9"];
    let text = lines(6, 60_000, 30_000);
    let expected: HashSet<String> = text.lines().map(str::to_owned).collect();
    // Two machines share the lines between them, and print each of them once together.
    let other = text.clone();
    let outcomes = thread::scope(|scope| {
        let one = scope.spawn(|| with_input(&args, text));
        let two = scope.spawn(|| with_input(&args, other));
        [one.join().unwrap().success(), two.join().unwrap().success()]
    });
    let printed: Vec<_> = outcomes.iter().flat_map(|out| out.lines()).collect();
    assert_eq!(printed.len(), expected.len());
    assert!(printed.into_iter().all(|line| expected.contains(line)));

    let rest = with_input(&[&args[..], &["--repeated"]].concat(), "x\nx\n");
    assert_eq!(rest.success(), "x\n");
    // However the server is named, it is the same.
    let port = server.port.to_string();
    for named in [&[&*url][..], &["-h", "127.0.0.1", "-p", &port]] {
        let again = with_input(&[&["--key", "seen"], named].concat(), "x\nx\n");
        assert_eq!(again.success(), "", "{named:?}");
    }
    server.query(&["SET", "text", "a"]).success();
    let wrong = with_input(&["--url", &url, "--key", "text"], "a\nb\n");
    refused(&wrong, &["WRONGTYPE"]);
    let nobody = with_input(&["--url", "redis://127.0.0.1:1", "--key", "k"], "a\n");
    refused(&nobody, &["cannot connect"]);
}

#[test]
fn records_without_an_answer_are_printed() {
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}", server.port);
    let mut running = Running::start(&["--url", &url, "--key", "seen"]);
    running.write("a\nb\n");
    assert_eq!(
        (running.line(), running.line()),
        ("a\n".into(), "b\n".into())
    );
    drop(server);
    running.write("c\nd\n");
    assert_eq!(
        (running.line(), running.line()),
        ("c\n".into(), "d\n".into())
    );
    let outcome = running.child.wait_with_output().unwrap();
    let message = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(2), "{message}");
    assert!(message.contains("no answer for 2 records"), "{message}");
}

/// Waiting for a run that holds the lock is not needed: the lock ends with the process.
#[test]
fn two_runs_at_once_are_not_mixed() {
    let folder = folder("dedup-lock");
    let state: PathBuf = folder.join("seen.bloom");
    let state = state.to_str().unwrap();
    let mut running = Running::start(&["--state", state]);
    wait_for("the state", || Path::new(state).exists());
    running.write("a\n");
    assert_eq!(running.line(), "a\n");
    refused(&with_input(&["--state", state], "a\n"), &["in use"]);
    drop(running.input.take());
    assert!(running.child.wait().unwrap().success());
    assert_eq!(with_input(&["--state", state], "a\n").success(), "");
}

/// A state whose only record, `a`, was printed so many days ago.
fn month_old(days: u64) -> String {
    const DAY: u64 = 86_400_000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let began = u64::try_from(now.as_millis()).unwrap() - days * DAY;
    let generations = WindowedBloomFilter::GENERATIONS;
    let builder = ScalableBloomFilter::builder()
        .capacity(1000)
        .error_rate(1e-6);
    let builder = builder.window(Span::Ticks(30 * DAY), generations, began);
    let mut filter = builder.build().unwrap();
    filter.insert("a");
    let path = folder(&format!("dedup-window-{days}")).join("month.bloom");
    fs::write(&path, filter.to_bytes()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_window_forgets_what_was_printed_before_it() {
    // A generation of seven and a half days is dropped when four have begun since.
    for (days, printed) in [(29, ""), (38, "a\n")] {
        let state = month_old(days);
        let args = ["-q", "--window", "30d", "--state", &state];
        assert_eq!(with_input(&args, "a\n").success(), printed, "{days}");
        // Later runs know the window, and a repeat does not make the record younger.
        let later = ["-q", "--state", &state];
        assert_eq!(with_input(&later, "a\nb\n").success(), "b\n");
        assert_eq!(with_input(&later, "b\na\n").success(), "");
        let filter = ScalableBloomFilter::from_bytes(&fs::read(&state).unwrap()).unwrap();
        let newest = filter.window().unwrap().kept.last().copied();
        let layers = usize::try_from(newest.unwrap().layers).unwrap();
        let layers = filter.layers().iter().rev().take(layers);
        let renewed: u64 = layers.map(everbloom::Layer::len).sum();
        assert_eq!(renewed, if printed.is_empty() { 1 } else { 2 });
    }
}

#[test]
fn a_window_is_made_once_and_others_are_refused() {
    let state = folder("dedup-window-new").join("month.bloom");
    let state = state.to_str().unwrap();
    let _ = fs::remove_file(state);
    let first = ["-q", "--window", "30d", "-c", "500", "--state", state];
    assert_eq!(with_input(&first, "a\nb\na\n").success(), "a\nb\n");
    assert_eq!(with_input(&first, "b\nc\n").success(), "c\n");
    let other = with_input(&["--window", "7d", "--state", state], "a\n");
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    let words = "has a window of 30 days, not one of 7 days";
    assert!(other.stderr.contains(words), "{other:?}");
    fs::remove_file(state).unwrap();
    with_input(&["-q", "--state", state], "a\n").success();
    let none = with_input(&["--window", "7d", "--state", state], "a\n");
    assert!(none.stderr.contains("has no window of time"), "{none:?}");
}
