//! Other people's programs, which a test needs and a machine may lack.
//!
//! Such a test skips, and says so loudly. With `EVERBLOOM_REQUIRE_PEERS=1` it fails instead.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;

/// Says why a test does not test.
pub fn skip(why: &str) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let notice = format!("SKIPPED: {test}: {why}\n");
    // Not eprintln!, which the test harness hides when a test passes.
    io::stderr().write_all(notice.as_bytes()).unwrap();
}

/// Says why a test does not test, or fails when this variable is set.
pub fn skip_unless_set(variable: &str, why: &str) {
    let required = std::env::var_os(variable).is_some();
    assert!(!required, "{why}, and {variable} is set");
    skip(why);
}

/// Says that a test does not test for want of a program, or fails when peers are required.
pub fn missing(program: &str) {
    skip_unless_set("EVERBLOOM_REQUIRE_PEERS", &format!("{program} is missing"));
}

/// Whether a program is there: whether this way to call it, such as with `--version`, succeeds.
pub fn is_there(probe: &mut Command, advice: &str) -> bool {
    probe
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let found = probe.status().is_ok_and(|status| status.success());
    if !found {
        missing(&format!("{} ({advice})", probe.get_program().display()));
    }
    found
}

/// The server that loads the module: the one that `VALKEY_SERVER` or `REDIS_SERVER` names, or one on
/// the path. Without any the test skips, loudly, or fails when peers are required.
pub fn host_program() -> Option<PathBuf> {
    let runs = |program: &PathBuf| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let named = ["VALKEY_SERVER", "REDIS_SERVER"].map(env::var_os);
    if let Some(program) = named.into_iter().flatten().next().map(PathBuf::from) {
        assert!(runs(&program), "{} does not run", program.display());
        return Some(program);
    }
    let known = ["redis-server", "valkey-server"].map(PathBuf::from);
    let found = known.into_iter().find(runs);
    if found.is_none() {
        missing("redis-server or valkey-server");
    }
    found
}

/// What a program prints, and how it ends; `None` if it is missing.
pub fn output(command: &mut Command) -> Option<Output> {
    let output = command.output().ok();
    if output.is_none() {
        missing(&command.get_program().display().to_string());
    }
    output
}
