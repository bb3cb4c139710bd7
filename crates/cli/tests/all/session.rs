//! `everbloom query` without a command: lines from a pipe, and typed on a terminal.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{EVERBLOOM, Outcome, Server, folder, on_terminal, run_with_input};
use everbloom_dev::wait_for;
use everbloom_resp::Reply;

fn piped(server: &Server, lines: &'static str) -> Outcome {
    let port = server.port.to_string();
    let mut query = Command::new(EVERBLOOM);
    query.args(["query", "-p", &port]);
    run_with_input(&mut query, move |pipe| pipe.write_all(lines.as_bytes()))
}

#[test]
fn lines_from_a_pipe_are_commands() {
    let server = Server::start();
    let output = piped(
        &server,
        "BF.ADD k 'a b'\n\nBF.EXISTS k \"a\\x20b\"\nSELECT 1\nquit\nFLUSHALL\n",
    );
    assert_eq!(output.success(), "(integer) 1\n(integer) 1\nOK\n");
    assert_eq!(server.query(&["DBSIZE"]).success(), "(integer) 1\n");

    let outcome = piped(&server, "NOSUCH\nBF.CARD k");
    assert_eq!(outcome.status.code(), Some(1));
    assert!(outcome.stdout.ends_with("\n(integer) 1\n"), "{outcome:?}");
    let outcome = piped(&server, "GET 'a\n");
    assert_eq!(outcome.status.code(), Some(1));
    assert_eq!(outcome.stderr, "everbloom: a quote is not closed\n");
}

/// As with redis-cli: the server has no other answer than to end the connection.
#[test]
fn a_server_that_was_told_to_end_is_no_error() {
    let mut server = Server::start();
    let refused = server.query(&["shutdown", "nonsense"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let ended = server.query(&["shutdown", "nosave"]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    ended.success();
    assert_eq!(server.wait(), Some(0));

    let mut server = Server::start();
    let ended = piped(&server, "PING\nSHUTDOWN\n");
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("PONG\n", "")
    );
    ended.success();
    assert_eq!(server.wait(), Some(0));
    // There is nobody for the next command.
    let mut server = Server::start();
    let ended = piped(&server, "SHUTDOWN\nPING\n");
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert_eq!(server.wait(), Some(0));
}

/// What a terminal shows while `keys` are typed.
fn typed(server: &Server, history: &str, keys: &[&str]) -> Option<String> {
    let query = format!("{EVERBLOOM} query -p {}", server.port);
    let mut script = on_terminal(&query)?
        .env("EVERBLOOM_HISTORY", history)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut keyboard, mut screen) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
    let shown = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&shown);
    let reader = thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = screen.read(&mut piece) {
            seen.lock().unwrap().extend(piece.iter().take(length));
        }
    });
    let text = || String::from_utf8_lossy(&shown.lock().unwrap()).into_owned();
    for (line, keys) in keys.iter().enumerate() {
        // The editor forgets what was typed while it did not ask.
        wait_for("the prompt", || text().matches(ASKS).count() > line);
        keyboard.write_all(keys.as_bytes()).unwrap();
    }
    wait_for("the end of the session", || {
        script.try_wait().unwrap().is_some()
    });
    reader.join().unwrap();
    Some(text())
}

/// What the editor sends to a terminal when it begins a line.
const ASKS: &str = "\x1b[?2004h";

#[test]
fn a_terminal_gets_completion_hints_help_and_history() {
    let server = Server::start();
    let history = folder("session").join("history");
    let keys = [
        "BF.RESE\tseen 0.01 100\r",
        "bf.add seen a\r",
        "help bf.exists\r",
        "CF.RESE\tcuckoo 100\r",
        "help cf.del\r",
        "auth secret\r",
        "select 1\r",
        "quit\r",
    ];
    let Some(shown) = typed(&server, history.to_str().unwrap(), &keys) else {
        return;
    };
    let prompt = format!("127.0.0.1:{}", server.port);
    for part in [
        prompt.as_str(),
        "BF.RESERVE",
        "error_rate capacity [EXPANSION expansion]",
        "OK",
        "(integer) 1",
        "BF.EXISTS key item",
        "CF.RESERVE",
        "capacity [BUCKETSIZE bucketsize]",
        "CF.DEL key item",
        "Removes an item once",
        "[1]> ",
    ] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
    assert_eq!(
        server.query(&["BF.CARD", "seen"]).success(),
        "(integer) 1\n"
    );
    let kept = fs::read_to_string(&history).unwrap();
    assert!(kept.contains("BF.RESERVE seen 0.01 100\n"), "{kept}");
    assert!(!kept.contains("secret"), "{kept}");
}

#[test]
fn a_session_goes_on_when_the_connection_broke() {
    let server = Server::start();
    let history = folder("session-broken").join("history");
    let keys = [
        "select 2\r",
        "client kill type normal skipme no\r",
        "dbsize\r",
        "bf.add k a\r",
        "\x04",
    ];
    let Some(shown) = typed(&server, history.to_str().unwrap(), &keys) else {
        return;
    };
    // What was sent on the broken connection may have been done: it is not sent again.
    assert!(
        shown.contains("everbloom: the server closed the connection"),
        "{shown}"
    );
    let mut client = server.client();
    client.call(&["SELECT", "2"]);
    assert_eq!(client.call(&["EXISTS", "k"]), Reply::Integer(1), "{shown}");
}
