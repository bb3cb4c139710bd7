//! `everbloom bench` against a running server: its report, and what it refuses.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use serde_json::Value;
use support::{EVERBLOOM, Outcome, Server, run};

fn bench(port: u16, args: &[&str]) -> Outcome {
    run(Command::new(EVERBLOOM)
        .args(["bench", "--port", &port.to_string()])
        .args(args)
        .env_remove("REDISCLI_AUTH"))
}

fn report(server: &Server, args: &[&str]) -> Value {
    let mut args = args.to_vec();
    args.push("--json");
    serde_json::from_str(&bench(server.port, &args).success()).unwrap()
}

fn number(report: &Value, name: &str) -> f64 {
    report[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn probes_for_a_second() {
    let server = Server::start();
    let report = report(
        &server,
        &[
            "--command",
            "exists",
            "--pipeline",
            "16",
            "--seconds",
            "1",
            "--reserve",
            "20000,0.01,LAYOUT,BLOCKED",
            "--fill",
            "20000",
            "--hit-share",
            "0.25",
        ],
    );
    assert_eq!(report["command"], "BF.EXISTS");
    assert!((1.0..10.0).contains(&number(&report, "seconds")));
    assert!(number(&report, "requests") > 1000.0);
    assert_eq!(report["requests"], report["items"]);
    // The limit is 8 standard deviations of the smallest sample that passes the line above, plus
    // the false positives.
    assert!((0.15..0.37).contains(&number(&report, "positive_share")));
    assert!(number(&report, "false_positive_share") < 0.03);
    let latency = |name: &str| report["latency_us"][name].as_f64().unwrap();
    assert!(0.0 < latency("p50") && latency("p50") <= latency("p99"));
    assert!(latency("p99") <= latency("p99_9") && latency("p99_9") <= latency("max"));
    assert!((0.0..=1.0).contains(&number(&report, "generator_busy")));
    // The run made the key, so it has deleted it.
    assert_eq!(
        server.query(&["EXISTS", "everbloom:bench"]).success(),
        "(integer) 0\n"
    );
}

#[test]
fn adds_are_new_once_and_the_filter_can_be_kept() {
    let server = Server::start();
    let add = [
        "--command",
        "madd",
        "--items-per-command",
        "7",
        "--clients",
        "3",
        "--pipeline",
        "5",
        "--requests",
        "1001",
        "--threads",
        "2",
        "--fill",
        "950",
        "--reserve",
        "100000,0.0001,NONSCALING",
        "--key",
        "kept",
        "--keep",
    ];
    let report = report(&server, &add);
    assert_eq!(report["requests"], 1001);
    assert_eq!(report["items"], 7007);
    let new = number(&report, "positives");
    assert!((7000.0..=7007.0).contains(&new), "{new}");
    let card = server.query(&["BF.CARD", "kept"]).success();
    let card: f64 = card
        .trim()
        .trim_start_matches("(integer) ")
        .parse()
        .unwrap();
    assert!((7950.0..=7957.0).contains(&card), "{card}");

    // A later run finds all filled items. Only that flag lets it use the key.
    let probe = ["--key", "kept", "--hit-share", "1", "--requests", "2000"];
    let refused = bench(server.port, &probe);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("--filled"), "{}", refused.stderr);
    let again = self::report(&server, &[&probe[..], &["--filled", "950"]].concat());
    assert_eq!(again["positives"], 2000);
}

/// The limit of 2^32 bits is only for bitmaps, which are Redis strings.
#[test]
fn a_filter_may_be_larger_than_a_bitmap() {
    let server = Server::start();
    let reserve = |command, size, more: &[&str]| {
        let args = ["--command", command, "--reserve", size, "--requests", "1"];
        bench(server.port, &[&args[..], more].concat())
    };
    // These are 4.4 thousand million bits. Pages that are never written take no memory.
    let large = "460000000,0.01";
    for command in ["add", "madd", "exists", "mexists"] {
        let few = ["--fill", "1", "--items-per-command", "1", "--clients", "1"];
        reserve(command, large, &few).success();
    }
    for command in ["setbit", "getbit"] {
        let refused = reserve(command, large, &[]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(refused.stderr.contains("--reserve"), "{}", refused.stderr);
    }
}

#[test]
fn echo_as_text() {
    let server = Server::start();
    let text = bench(server.port, &["--command", "echo", "--requests", "500"]).success();
    assert!(text.contains("requests        500 in "), "{text}");
    assert!(text.contains("p99.9"), "{text}");
    let url = format!("redis://127.0.0.1:{}", server.port);
    let by_url = run(Command::new(EVERBLOOM).args(["bench", "--url", &url, "--requests", "10"]));
    assert!(by_url.success().contains("BF.EXISTS"));
}

#[test]
fn a_server_that_refuses_or_forgets_ends_the_run() {
    let server = Server::start();
    assert_eq!(
        server
            .query(&["BF.RESERVE", "other", "0.01", "10"])
            .success(),
        "OK\n"
    );
    // The filter was never filled, so the first hit is not found.
    let lies = ["--key", "other", "--filled", "1000", "--hit-share", "1"];
    let forgot = bench(server.port, &lies);
    assert_eq!(forgot.status.code(), Some(1));
    assert!(
        forgot.stderr.contains("false negative"),
        "{}",
        forgot.stderr
    );

    let refused = bench(refusing_server(), &["--command", "echo"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("ERR no"), "{}", refused.stderr);
    let wrong = bench(server.port, &["--hit-share", "0.5", "--fill", "0"]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// Answers every line with an error.
fn refusing_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut answers = stream.try_clone().unwrap();
                for _ in BufReader::new(stream).lines().map_while(Result::ok) {
                    if answers.write_all(b"-ERR no\r\n").is_err() {
                        break;
                    }
                }
            });
        }
    });
    port
}
