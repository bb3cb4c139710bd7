//! Runs that a seed makes repeatable, with the errors of their filters.

use super::*;

/// So many different lines that the filter is wrong about many of them.
fn input() -> String {
    (0..6000).map(|number| format!("line {number}\n")).collect()
}

/// The output of a run that gets the input in pieces, as a slow program writes it.
fn in_pieces(args: &[&str], lines_of_a_piece: usize) -> String {
    let text = input();
    let outcome = run_with_input(&mut dedup(args), move |stdin| {
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        for piece in lines.chunks(lines_of_a_piece) {
            stdin.write_all(piece.concat().as_bytes())?;
            stdin.flush()?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    outcome.success()
}

#[test]
fn with_a_seed_each_run_prints_the_same() {
    let folder = folder("dedup-seed");
    let input = file(&folder, "input", input());
    let rate = ["-q", "-c", "3000", "-e", "10%"];
    let seeded = [&rate[..], &["--seed", "7"]].concat();
    let first = run(&mut dedup(&[&seeded[..], &[&input]].concat())).success();
    let lost = 6000 - first.lines().count();
    assert!(lost > 10, "{lost}");
    for lines in [6000, 1000, 77] {
        assert!(in_pieces(&seeded, lines) == first, "{lines}");
    }
    let other = [&rate[..], &["--seed", "8", &input]].concat();
    assert!(run(&mut dedup(&other)).success() != first);
    let random = [&rate[..], &[&input]].concat();
    assert!(run(&mut dedup(&random)).success() != first);

    // Without a capacity, which is then not guessed from how the lines arrive.
    let large = file(
        &folder,
        "large",
        format!("{}\n", "x".repeat(9999)).repeat(900),
    );
    let filter = |pieces: &'static [&str]| {
        let outcome = run_with_input(&mut dedup(&["--seed", "7", "-", &large]), move |stdin| {
            for piece in pieces {
                stdin.write_all(piece.as_bytes())?;
                thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        });
        let line = outcome.stderr.lines().nth(1).unwrap_or_default();
        assert!(line.contains("the filter has 3 of "), "{outcome:?}");
        line.to_owned()
    };
    assert_eq!(
        filter(&["first\n", "a longer line\n"]),
        filter(&["first\na longer line\n"])
    );
}

#[test]
fn with_a_seed_a_state_has_the_same_bytes_however_the_lines_arrive() {
    let folder = folder("dedup-seed-state");
    let input = file(&folder, "input", input());
    let mut found = HashSet::new();
    for lines in [None, Some(6000), Some(1000), Some(77)] {
        let state = path(&folder, "seen.bloom");
        let _ = fs::remove_file(&state);
        let args = [
            "-q", "-c", "3000", "-e", "10%", "--seed", "7", "--state", &state,
        ];
        let printed = match lines {
            None => run(&mut dedup(&[&args[..], &[&input]].concat())).success(),
            Some(lines) => in_pieces(&args, lines),
        };
        found.insert((printed, fs::read(&state).unwrap()));
    }
    assert_eq!(found.len(), 1);
}

/// A pipe has a place for 64 KiB: what else was written into it was read.
#[test]
fn lines_that_were_read_are_handled_when_a_signal_comes() {
    let folder = folder("dedup-seed-signal");
    let state = path(&folder, "seen.bloom");
    let text: String = (0..20_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let args = [
        "-q", "-c", "50k", "-e", "1e-12", "--seed", "7", "--state", &state,
    ];
    let mut running = Running::start(&args);
    running.write(&text);
    running.signal("TERM");
    // The pipe stays open.
    let mut printed = String::new();
    running.output.read_to_string(&mut printed).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(143));
    assert!(text.starts_with(&printed));
    let unread = text.len() - printed.len();
    assert!(unread < (64 << 10) + 20, "{unread} of {}", text.len());
    let rest = with_input(&args, text.clone()).success();
    assert!(printed + &rest == text);
}

/// Nothing was read yet.
#[test]
fn a_signal_ends_a_run_that_waits_for_a_writer() {
    let folder = folder("dedup-fifo");
    let pipe = path(&folder, "pipe");
    run(Command::new("mkfifo").arg(&pipe)).success();
    let state = path(&folder, "seen.bloom");
    let mut running = Running::start(&["--state", &state, &pipe]);
    let threads = format!("/proc/{}/task", running.child.id());
    wait_for("the reader", || {
        let threads = fs::read_dir(&threads).unwrap();
        let mut names = threads.map(|thread| fs::read(thread.unwrap().path().join("comm")));
        names.any(|name| name.is_ok_and(|name| name == b"reader\n"))
    });
    running.signal("TERM");
    assert_eq!(running.child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_seed_belongs_to_its_state() {
    let folder = folder("dedup-seed-agree");
    let state = path(&folder, "seen.bloom");
    let with = |seed: &str, input: &str| {
        let input = input.to_owned();
        with_input(&["-q", "-c", "9", "--state", &state, "--seed", seed], input)
    };
    assert_eq!(with("7", "a\n").success(), "a\n");
    assert_eq!(with("7", "a\nb\n").success(), "b\n");
    refused(
        &with("8", "c\n"),
        &[&state, "another key", "leave --seed off"],
    );
    assert_eq!(
        with_input(&["-q", "--state", &state], "b\nc\n").success(),
        "c\n"
    );
    // As `build` makes it, so that both can be merged.
    let list = file(&folder, "list", "d\n");
    let built = path(&folder, "built.bloom");
    let mut build = Command::new(EVERBLOOM);
    build.args(["build", "-q", "-g", "-c", "9", "--seed", "7", &built, &list]);
    run(&mut build).success();
    let mut info = Command::new(EVERBLOOM);
    let both = run(info.args(["info", &state, &built])).success();
    assert!(both.contains("\nmerge       yes"), "{both}");

    let random = path(&folder, "random.bloom");
    with_input(&["-q", "--state", &random], "a\n").success();
    let other = with_input(&["-q", "--state", &random, "--seed", "7"], "b\n");
    refused(&other, &[&random, "another key"]);
    let server = with_input(&["--key", "k", "--seed", "7"], "");
    assert_eq!(server.status.code(), Some(2));
    assert!(server.stderr.contains("--seed"), "{server:?}");
}
