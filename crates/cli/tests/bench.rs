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

/// The integer that `everbloom query` printed.
fn number_of(text: &str) -> f64 {
    let digits = text.trim().trim_start_matches("(integer) ");
    digits.parse().unwrap()
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
    let card = number_of(&card);
    assert!((7950.0..=7957.0).contains(&card), "{card}");

    // A later run finds all filled items. Only that flag lets it use the key.
    let probe = ["--key", "kept", "--hit-share", "1", "--requests", "2000"];
    let refused = bench(server.port, &probe);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("--filled"), "{}", refused.stderr);
    let again = self::report(&server, &[&probe[..], &["--filled", "950"]].concat());
    assert_eq!(again["positives"], 2000);
}

#[test]
fn many_keys_hold_their_own_items() {
    let server = Server::start();
    let keys = ["--keys", "300", "--key", "many", "--pipeline", "16"];
    let bench = |args: &[&str]| report(&server, &[&keys[..], args].concat());

    let add = ["--command", "add", "--fill", "900", "--keep"];
    let report = bench(&[&add[..], &["--requests", "6000", "--threads", "2"]].concat());
    assert_eq!(report["keys"], 300);
    let new = number(&report, "positives");
    assert!((5900.0..=6000.0).contains(&new), "{new}");
    let mut total = 0.0;
    for key in 0..300 {
        let card = number_of(
            &server
                .query(&["BF.CARD", &format!("many:{key:03}")])
                .success(),
        );
        // Three items were added in turn, and about twenty were drawn. The limit is more than six
        // standard deviations.
        assert!((4.0..60.0).contains(&card), "{key}: {card}");
        total += card;
    }
    assert!((895.0 + new..=900.0 + new).contains(&total), "{total}");

    // Half of a filter's capacity at most is in use, so it has almost no false positives. Had a
    // probe named another key than its item's, bench would have ended with a false negative.
    let probe = ["--command", "exists", "--filled", "900", "--requests"];
    let all = bench(&[&probe[..], &["2000", "--hit-share", "1"]].concat());
    assert_eq!(all["positives"], 2000);
    let part = bench(&[&probe[..], &["20000", "--hit-share", "0.25"]].concat());
    assert!((0.22..0.28).contains(&number(&part, "positive_share")));
    assert!(number(&part, "false_positive_share") < 0.01);
    let none = bench(&[&probe[..], &["2000", "--hit-share", "0"]].concat());
    assert!(number(&none, "positives") < 20.0);
}

#[test]
fn many_keys_are_checked_and_deleted() {
    let server = Server::start();
    let many = ["--keys", "20", "--requests", "100"];
    let made = bench(server.port, &many).success();
    assert!(made.contains("keys            20\n"), "{made}");
    assert_eq!(server.query(&["DBSIZE"]).success(), "(integer) 0\n");

    let other = [&many[..], &["--key", "other"]].concat();
    server.query(&["BF.ADD", "other:19", "x"]).success();
    for (flags, text) in [
        (&[][..], "other:19"),
        (&["--command", "mexists"], "exists"),
        (&["--command", "echo"], "exists"),
        (&["--reserve", "100,0.01"], "--reserve"),
    ] {
        let refused = bench(server.port, &[&other[..], flags].concat());
        assert_eq!(refused.status.code(), Some(2), "{flags:?}");
        assert!(refused.stderr.contains(text), "{}", refused.stderr);
    }
    // The filters that are there hold other items.
    let lies = bench(server.port, &[&other[..], &["--filled", "20"]].concat());
    assert!(lies.stderr.contains("false negative"), "{}", lies.stderr);
}

#[test]
fn cuckoo_filters() {
    let server = Server::start();
    let probe = [
        "--command",
        "cf-exists",
        "--fill",
        "20050",
        "--pipeline",
        "16",
    ];
    let part = ["--hit-share", "0.25", "--requests", "40000"];
    let probed = report(&server, &[&probe[..], &part].concat());
    assert_eq!(probed["command"], "CF.EXISTS");
    assert!((0.22..0.29).contains(&number(&probed, "positive_share")));
    assert!(number(&probed, "false_positive_share") < 0.03);

    let add = [
        "--command",
        "cf-insert",
        "--items-per-command",
        "7",
        "--keep",
    ];
    let more = ["--key", "kept", "--fill", "1000", "--requests", "100"];
    let size = ["--reserve", "100000,BUCKETSIZE,4"];
    let added = report(&server, &[&add[..], &more, &size].concat());
    assert_eq!(
        (&added["items"], &added["positives"]),
        (&700.into(), &700.into())
    );
    let info = server.query(&["CF.DEBUG", "kept"]).success();
    assert!(
        info.contains("bktsize:4") && info.contains("items:1700"),
        "{info}"
    );

    // Each filled item is deleted once, by one of the threads, and what was added later stays.
    let delete = ["--command", "cf-del", "--key", "kept", "--filled", "1000"];
    let threads = ["--threads", "3", "--clients", "3", "--pipeline", "5"];
    let deleted = report(&server, &[&delete[..], &threads].concat());
    assert_eq!(
        (&deleted["requests"], &deleted["positives"]),
        (&999.into(), &999.into())
    );
    let info = server.query(&["CF.DEBUG", "kept"]).success();
    assert!(info.contains("items:701"), "{info}");
    let again = bench(server.port, &delete);
    assert!(again.stderr.contains("false negative"), "{}", again.stderr);

    let keys = ["--keys", "20", "--fill", "400", "--requests", "200"];
    for command in ["cf-add", "cf-exists", "cf-mexists", "cf-del"] {
        let few = if command == "cf-mexists" { 2 } else { 0 };
        report(&server, &[&["--command", command], &keys[few..]].concat());
    }
    assert_eq!(server.query(&["DBSIZE"]).success(), "(integer) 1\n");
    for wrong in [
        ["--command", "cf-add", "--reserve", "1000,0.01"],
        ["--command", "add", "--reserve", "1000"],
        ["--command", "cf-del", "--hit-share", "0.5"],
        ["--command", "cf-del", "--fill", "0"],
        ["--command", "cf-insert", "--keys", "2"],
    ] {
        let refused = bench(server.port, &wrong);
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
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
