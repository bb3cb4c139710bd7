//! `everbloom serve` as an operator sees it: what it says, how it ends, its exit codes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

use std::fs;
use std::io::{self, PipeWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{EVERBLOOM, Outcome, Server, folder, on_terminal, run};
use everbloom_dev::{Client, Process, StopOnDrop, free_port, peers, wait_for};
use everbloom_resp::Reply;

mod data;
mod end;
mod log;
mod start;

/// Runs a server that should end by itself.
fn serve(folder: &Path, words: &[&str]) -> Outcome {
    run(Command::new(EVERBLOOM)
        .arg("serve")
        .args(words)
        .current_dir(folder))
}

/// Ends a server by `SHUTDOWN`.
fn shut_down(mut server: Server, how: &[&str]) {
    let mut client = server.client();
    client.send(&[&["SHUTDOWN"], how].concat());
    assert_eq!(client.try_reply(), None);
    assert_eq!(server.wait(), Some(0));
}

/// A server that says everything into a pipe.
fn on_a_pipe(folder: &Path, log: PipeWriter) -> (Process, Client) {
    let out = log.try_clone().unwrap();
    started(Command::new("env"), folder, &[], out.into(), log.into())
}

/// A server that another program starts, whose last arguments are the server's.
fn started(
    mut starter: Command,
    folder: &Path,
    words: &[&str],
    out: Stdio,
    log: Stdio,
) -> (Process, Client) {
    let port = free_port();
    starter
        .args([
            EVERBLOOM,
            "serve",
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
        ])
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(out);
    let mut server = Process(starter.stderr(log).spawn().unwrap());
    let connect = || Client::try_connect(("127.0.0.1", port));
    wait_for("the server", || {
        let ended = server.try_wait().unwrap();
        assert_eq!(ended, None, "the server ended at once");
        connect().is_ok_and(|mut client| client.is_loaded() == Some(true))
    });
    (server, connect().unwrap())
}

/// Does what is logged, again and again, and ends the server in one of three ways.
fn works_until(end: &str, server: &mut Process, client: &mut Client) {
    client.ok("BF.ADD k x");
    for _ in 0..3 {
        client.ok("BGSAVE");
        client.until("rdb_bgsave_in_progress", "0");
        client.ok("BGREWRITEAOF");
        client.until("aof_rewrite_in_progress", "0");
    }
    assert_eq!(client.info("rdb_last_bgsave_status"), "ok");
    match end {
        "SHUTDOWN" => client.send(&[end]),
        signal => kill(server, signal),
    }
    wait_for("the end", || server.try_wait().unwrap().is_some());
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

fn kill(server: &Process, signal: &str) {
    run(Command::new("kill").args(["-s", signal, &server.id().to_string()])).success();
}

const ENDS: [&str; 3] = ["SHUTDOWN", "TERM", "INT"];
