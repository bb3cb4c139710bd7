//! The port for those who watch: metrics as text, whether the server is ready, and the page.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod dashboard;
#[path = "../../../files/tests/support/held.rs"]
mod held;
#[path = "../../../files/tests/support/hooked.rs"]
mod hooked;
mod http;
mod page;
mod stall;
mod text;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use everbloom_dev::{Client, PATIENCE, free_port, wait_for};
use everbloom_server::{Running, Settings};

/// These settings for a server on a port of its own.
fn local(settings: Settings) -> Settings {
    Settings {
        bind: vec!["127.0.0.1".into()],
        port: 0,
        ..settings
    }
}

fn client(running: &Running) -> Client {
    Client::connect(running.addr().unwrap())
}

/// A server and the port of its metrics.
fn watched(settings: Settings) -> (Running, u16) {
    let metrics_port = free_port();
    let running = everbloom_watch::start(Settings {
        metrics_port,
        ..local(settings)
    });
    let running = running.unwrap();
    (running, metrics_port)
}

/// A connection on which these bytes were sent.
fn connect(port: u16, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// All that comes until the connection is closed.
fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    if let Err(error) = stream.read_to_end(&mut text) {
        // It is closed while bytes of ours are unread.
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    String::from_utf8(text).unwrap()
}

/// The head and the body of a response.
fn ask(port: u16, method: &str, path: &str) -> (String, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let response = rest(connect(port, request.as_bytes()));
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// The metrics for one who reads OpenMetrics, as Prometheus does.
fn scrape(port: u16) -> String {
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    scrape_as(port, accept, kind)
}

/// The metrics for one who accepts these types, which must be of this one.
fn scrape_as(port: u16, accept: &str, kind: &str) -> String {
    let head = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n");
    let response = rest(connect(port, head.as_bytes()));
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("content-type: {kind}")), "{head}");
    body.to_owned()
}

/// A scrape with the figures of a walk that began after now: the one after the next to end.
fn scrape_after_a_walk(port: u16) -> String {
    let sample = "\neverbloom_filters_walk_timestamp_seconds ";
    let ended = |text: &str| Some(text.split_once(sample)?.1.lines().next()?.to_owned());
    let mut text = String::new();
    let mut wait_for_another_than = |last: Option<String>| {
        wait_for("a walk", || {
            text = scrape(port);
            ended(&text).is_some_and(|now| Some(now) != last)
        });
        ended(&text)
    };
    let first = wait_for_another_than(None);
    wait_for_another_than(first);
    text
}

/// A key that tries to leave its label.
const HOSTILE: &[u8] = b"a\"} 1\neverbloom_keys{db=\"\xff\\";
