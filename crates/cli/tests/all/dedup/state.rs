//! What a state remembers from run to run, whatever ends a run.

use super::*;

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

/// The state is saved also while the input waits, so that a run that is killed costs little.
#[test]
fn a_long_run_saves_its_state_from_time_to_time() {
    let folder = folder("dedup-every");
    for window in [&[][..], &["--window", "7d"]] {
        let state = path(&folder, &format!("seen-{}.bloom", window.len()));
        let args = [&["-q", "--state", &state, "--save-every", "0.05s"], window].concat();
        let mut running = Running::start(&args);
        let knows = |text: &str| {
            let mut check = Command::new(EVERBLOOM);
            check.args(["check", "-c", &state]);
            let text = text.to_owned();
            let found = run_with_input(&mut check, move |stdin| stdin.write_all(text.as_bytes()));
            found.stdout == format!("{}\n", found.stdout.trim()) && found.status.code() == Some(0)
        };
        for line in ["a\n", "b\n"] {
            running.write(line);
            assert_eq!(running.line(), line);
            wait_for("the state to be saved", || knows(line));
        }
        // Without new lines it stays as it is.
        let saved = fs::metadata(&state).unwrap().modified().unwrap();
        thread::sleep(Duration::from_millis(200));
        assert_eq!(fs::metadata(&state).unwrap().modified().unwrap(), saved);
        // The lock is kept.
        refused(
            &with_input(&["--state", &state], "a\n"),
            &[&state, "in use"],
        );
        running.signal("KILL");
        running.child.wait().unwrap();
        let next = with_input(&["-q", "--state", &state], "a\nb\nc\n");
        assert_eq!(next.success(), "c\n");
    }
    // By default it takes minutes.
    let state = path(&folder, "seldom.bloom");
    let mut running = Running::start(&["-q", "--state", &state]);
    running.write("a\n");
    assert_eq!(running.line(), "a\n");
    thread::sleep(Duration::from_millis(300));
    assert_eq!(fs::read(&state).unwrap(), b"");
    drop(running.input.take());
    assert!(running.child.wait().unwrap().success());
    let help = run(&mut dedup(&["--help"])).success();
    assert!(help.contains("[default: 5m]"), "{help}");
}

/// A state that cannot be saved now may be saved later, and the lines go on.
#[test]
fn a_save_that_fails_is_told_and_tried_again() {
    let folder = folder("dedup-every-fails");
    let state = path(&folder, "seen.bloom");
    let in_the_way = folder.join(".seen.bloom.everbloom-new");
    let mut running = Running::start(&["-q", "--state", &state, "--save-every", "0.05s"]);
    running.write("a\n");
    assert_eq!(running.line(), "a\n");
    wait_for("the first save", || {
        fs::metadata(&state).is_ok_and(|it| it.len() > 0)
    });
    fs::create_dir(&in_the_way).unwrap();
    running.write("b\n");
    assert_eq!(running.line(), "b\n");
    let mut said = String::new();
    let mut stderr = BufReader::new(running.child.stderr.take().unwrap());
    stderr.read_line(&mut said).unwrap();
    assert!(
        said.contains("cannot save") && said.contains("tries again later"),
        "{said}"
    );
    fs::remove_dir(&in_the_way).unwrap();
    drop(running.input.take());
    assert!(running.child.wait().unwrap().success());
    assert_eq!(
        with_input(&["-q", "--state", &state], "a\nb\nc\n").success(),
        "c\n"
    );
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
    let args = ["-q", "-c", "1000", "-e", "1e-10", "--state", &state, &input];
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

/// A filter whose second layer takes more memory than there is.
fn with_a_huge_expansion() -> Vec<u8> {
    let builder = ScalableBloomFilter::builder().capacity(1000);
    let builder = builder.error_rate(0.0001).expansion(1_000_000);
    builder.build().unwrap().to_bytes()
}

#[test]
fn a_filter_that_cannot_grow_ends_the_run_and_the_state_knows_what_was_printed() {
    let folder = folder("dedup-ungrown");
    let state = file(&folder, "seen.bloom", with_a_huge_expansion());
    let text = lines(5, 20_000, 1_000_000);
    let limited = |args: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 2000000 && exec \"$@\"", "sh", EVERBLOOM]);
        command.args(args);
        let input = text.clone();
        run_with_input(&mut command, move |stdin| stdin.write_all(input.as_bytes()))
    };
    let outcome = limited(&["dedup", "--state", &state]);
    refused(
        &outcome,
        &[
            "no memory for the",
            "bytes",
            "what was printed is remembered",
        ],
    );
    let printed = &outcome.stdout;
    let expected = first_seen(&text, &mut HashSet::new());
    assert!(printed.lines().count() > 1000 && expected.starts_with(printed.as_str()));
    let again = with_input(&["--state", &state, "--count", "-q"], printed.as_str());
    assert_eq!(again.success(), "0\n");

    // A filter file is written whole or not at all.
    let before = fs::read(&state).unwrap();
    let outcome = limited(&["build", "--append", &state]);
    refused(&outcome, &["no memory for the", "no filter was written"]);
    assert_eq!(fs::read(&state).unwrap(), before);
}

/// A layer has at least an error rate of 1e-13, so few of them keep one of 1e-12.
#[test]
fn a_filter_without_a_further_layer_ends_the_run_at_the_record() {
    let text = lines(6, 100_000, 1_000_000_000);
    let outcome = with_input(&["-c", "1000", "-e", "1e-12"], text.as_str());
    refused(&outcome, &["cannot keep its error rate", "--capacity"]);
    let printed = &outcome.stdout;
    assert!(printed.lines().count() > 2900);
    assert!(first_seen(&text, &mut HashSet::new()).starts_with(printed.as_str()));
}
