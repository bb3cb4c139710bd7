//! The order in which the output and the state reach the disk, as strace sees it.

use super::*;

/// Runs `everbloom dedup` of an input in a folder under strace, with its output in a file. Returns
/// what it did and the calls, each with the names of its files.
fn traced(folder: &Path, strace: &[&str], args: &[&str]) -> Option<(Outcome, Vec<String>)> {
    if !peers::is_there(
        Command::new("strace").args(["-f", "-o", "/dev/null", "true"]),
        "install strace",
    ) {
        return None;
    }
    let calls = path(folder, "calls");
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec strace -f -y -o calls \"$@\" >> output", "sh"])
        .args(strace)
        .args([EVERBLOOM, "dedup"])
        .args(args)
        .current_dir(folder);
    let outcome = run(&mut command);
    let calls = fs::read_to_string(calls).unwrap();
    Some((outcome, calls.lines().map(str::to_owned).collect()))
}

/// The number of the first call with all of these words.
#[track_caller]
fn first(calls: &[String], words: &[&str]) -> usize {
    let has = |call: &&String| words.iter().all(|word| call.contains(word));
    let found = calls.iter().position(|call| has(&call));
    found.unwrap_or_else(|| panic!("no {words:?} in {}", calls.join("\n")))
}

const CALLS: &str = "trace=write,fsync,fdatasync,rename,close";

#[test]
fn the_output_is_on_the_disk_before_the_state_is_replaced() {
    let folder = folder("dedup-durable");
    file(&folder, "input", "a\nb\na\n");
    let args = ["-c", "9", "--state", "seen.bloom", "input"];
    let Some((outcome, calls)) = traced(&folder, &["-e", CALLS], &args) else {
        return;
    };
    outcome.success();
    let output = path(&folder, "output>");
    let written = first(&calls, &["write(", &output]);
    let synced = first(&calls, &["sync(", &output]);
    let closed = synced + first(&calls[synced..], &["close(", &output]);
    let replaced = first(&calls, &["rename(", "seen.bloom\")"]);
    assert!(
        written < synced && closed < replaced,
        "{}",
        calls.join("\n")
    );
    // Nothing is new, so there is nothing to sync.
    let (outcome, calls) = traced(&folder, &["-e", CALLS], &args).unwrap();
    outcome.success();
    assert!(
        !calls.iter().any(|call| call.contains("sync(")),
        "{}",
        calls.join("\n")
    );
    assert_eq!(fs::read_to_string(folder.join("output")).unwrap(), "a\nb\n");
}

/// As at the end, and each time.
#[test]
fn the_output_is_on_the_disk_before_the_state_is_saved_during_the_run() {
    let folder = folder("dedup-durable-every");
    file(&folder, "input", lines(1, 20_000, 20_000));
    let args = [
        "-c",
        "9",
        "--state",
        "seen.bloom",
        "--save-every",
        "0.001s",
        "input",
    ];
    let Some((outcome, calls)) = traced(&folder, &["-e", CALLS], &args) else {
        return;
    };
    outcome.success();
    let output = path(&folder, "output>");
    let mut is_synced = true;
    let mut saves = 0;
    for call in calls {
        if call.contains("write(") && call.contains(&output) {
            is_synced = false;
        } else if call.contains("sync(") && call.contains(&output) {
            is_synced = true;
        } else if call.contains("rename(") {
            saves += 1;
            assert!(is_synced, "{call}");
        }
    }
    assert!(saves >= 2, "{saves}");
}

#[test]
fn what_did_not_reach_the_disk_is_not_remembered() {
    let folder = folder("dedup-unsynced");
    file(&folder, "input", "a\nb\n");
    let state = path(&folder, "seen.bloom");
    with_input(&["-q", "-c", "9", "--state", &state], "before\n").success();
    let before = fs::read(&state).unwrap();
    let output = path(&folder, "output");
    let args = ["-q", "--state", "seen.bloom", "input"];
    for (call, error) in [
        ("fdatasync", "EIO"),
        ("fdatasync", "ENOSPC"),
        ("close", "EDQUOT"),
    ] {
        let inject = format!("inject={call}:error={error}");
        let only = ["-P", &output, "-e", CALLS, "-e", &inject];
        let Some((outcome, _)) = traced(&folder, &only, &args) else {
            return;
        };
        refused(&outcome, &["cannot write", "comes again"]);
        assert_eq!(fs::read(&state).unwrap(), before, "{call} {error}");
    }
    // Without a state an error of close counts, too.
    let only = ["-P", &output, "-e", CALLS, "-e", "inject=close:error=EIO"];
    let (outcome, _) = traced(&folder, &only, &["-q", "input"]).unwrap();
    refused(&outcome, &["cannot write"]);
    // A file system that cannot sync is no error.
    let only = [
        "-P",
        &output,
        "-e",
        CALLS,
        "-e",
        "inject=fdatasync:error=EINVAL",
    ];
    let (outcome, _) = traced(&folder, &only, &args).unwrap();
    outcome.success();
    assert_eq!(
        with_input(&["-q", "--state", &state], "a\nb\nc\n").success(),
        "c\n"
    );
}
