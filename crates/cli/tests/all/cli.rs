//! The command line as a user sees it: output and exit codes of the built binary.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

use std::path::Path;
use std::process::Command;

use crate::support::{EVERBLOOM, Outcome, Peer, Server, on_terminal, run};
use everbloom_dev::free_port;

fn everbloom(args: &[&str]) -> Outcome {
    run(Command::new(EVERBLOOM)
        .args(args)
        // If a server starts by mistake, its data must not land in the source tree.
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env_remove("REDISCLI_AUTH"))
}

#[test]
fn help_names_every_subcommand() {
    let help = everbloom(&["--help"]).success();
    for name in ["serve", "query", "plan", "measure"] {
        assert!(help.contains(&format!("\n  {name} ")), "{help}");
        assert!(everbloom(&[name, "--help"]).success().contains("Usage:"));
    }
}

#[test]
fn help_of_serve_lists_the_settings() {
    let help = everbloom(&["serve", "--help"]).success();
    for name in [
        "port",
        "requirepass",
        "maxmemory",
        "io-threads",
        "bf-error-rate",
        "bf-default-layout",
    ] {
        assert!(help.contains(&format!("\n  {name} ")), "{name}\n{help}");
    }
}

#[test]
fn serve_says_what_is_wrong_with_a_setting() {
    for words in [["--port", "high"], ["--no-such-setting", "1"]] {
        let outcome = everbloom(&[&["serve"][..], &words].concat());
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        let setting = words.join(" ");
        assert!(outcome.stderr.contains(&setting), "{outcome:?}");
    }
    let outcome = everbloom(&["serve", "/no/such/everbloom.conf"]);
    assert_eq!(outcome.status.code(), Some(2));
    assert!(
        outcome.stderr.contains("/no/such/everbloom.conf"),
        "{outcome:?}"
    );
}

#[test]
fn serve_says_when_the_port_is_taken() {
    let server = Server::start();
    let port = server.port.to_string();
    let outcome = everbloom(&["serve", "--bind", "127.0.0.1", "--port", &port]);
    assert_eq!(outcome.status.code(), Some(2));
    assert!(outcome.stderr.contains(&port), "{outcome:?}");
}

#[test]
fn serve_reads_a_file_that_flags_override() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve_reads_a_file.conf");
    std::fs::write(
        &file,
        "# a comment\nport 1\nmaxclients 77\nbf-initial-size 500\n",
    )
    .unwrap();
    let server = Server::with(&[file.to_str().unwrap(), "--bf-error-rate", "0.001"]);
    server.query(&["BF.ADD", "k", "a"]).success();
    let capacity = server.query(&["BF.INFO", "k", "CAPACITY"]).success();
    assert_eq!(capacity, "1) (integer) 500\n");
    let maxclients = server.query(&["CONFIG", "GET", "maxclients"]).success();
    assert_eq!(maxclients, "1) \"maxclients\"\n2) \"77\"\n");
}

#[test]
fn query_prints_replies_and_tells_errors_by_its_exit_code() {
    let server = Server::start();
    assert_eq!(
        server.query(&["BF.ADD", "k", "a"]).success(),
        "(integer) 1\n"
    );
    assert_eq!(
        server.query(&["--resp3", "BF.ADD", "k", "a"]).success(),
        "(false)\n"
    );
    assert_eq!(server.query(&["GET", "absent"]).success(), "(nil)\n");
    // A hyphen after the command belongs to the command.
    assert_eq!(server.query(&["ECHO", "--port"]).success(), "\"--port\"\n");
    assert_eq!(server.query(&["ECHO", ""]).success(), "\"\"\n");

    let refused = server.query(&["BF.INFO", "absent"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(refused.stdout, "(error) ERR not found\n");
}

#[cfg(unix)]
#[test]
fn query_takes_host_and_port_as_redis_cli_does() {
    let server = Server::start();
    let port = server.port.to_string();
    let add = ["query", "-h", "127.0.0.1", "-p", &port, "BF.ADD", "k", "a"];
    assert_eq!(everbloom(&add).success(), "(integer) 1\n");
    let help = everbloom(&["query", "--help"]).success();
    assert!(help.contains("-h, --host [<HOST>]"), "{help}");
    assert_eq!(everbloom(&["query", "-h"]).success(), help);
    assert!(help.contains("-p, --port <PORT>"), "{help}");
    let url = format!("redis://127.0.0.1:{port}");
    let exists = everbloom(&["query", "--url", &url, "BF.EXISTS", "k", "a"]);
    assert_eq!(exists.success(), "(integer) 1\n");
    let exists = everbloom(&["query", &url, "BF.EXISTS", "k", "a"]);
    assert_eq!(exists.success(), "(integer) 1\n");
    for twice in [
        ["--url", &url, "-p", &port, "PING"],
        ["-p", &port, &url, "PING", "a"],
    ] {
        let both = everbloom(&[&["query"][..], &twice].concat());
        assert_eq!(both.status.code(), Some(2), "{both:?}");
    }
    // Behind the command's name they are the command's.
    let echo = ["query", "-p", &port, "ECHO", "-h"];
    assert_eq!(everbloom(&echo).success(), "\"-h\"\n");
}

#[test]
fn query_refuses_flags_that_it_does_not_know() {
    let server = Server::start();
    for flag in ["--uri", "-z"] {
        let outcome = server.query(&[flag, "PING"]);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert_eq!(outcome.stdout, "");
        let message = format!("everbloom: there is no flag {flag}");
        assert!(outcome.stderr.starts_with(&message), "{outcome:?}");
    }
}

#[test]
fn query_sends_bytes_that_are_not_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let server = Server::start();
    let mut command = Command::new(EVERBLOOM);
    command.args(["query", "--port", &server.port.to_string(), "ECHO"]);
    let output = run(command.arg(OsStr::from_bytes(b"\xff\xfe\n")));
    assert_eq!(output.success(), "\"\\xff\\xfe\\n\"\n");
}

#[test]
fn query_says_when_there_is_no_server() {
    let port = free_port().to_string();
    let outcome = everbloom(&["query", "--port", &port, "PING"]);
    assert_eq!(outcome.status.code(), Some(2));
    assert_eq!(outcome.stdout, "");
    let message = format!("everbloom: cannot connect to 127.0.0.1 port {port}: ");
    assert!(outcome.stderr.starts_with(&message), "{}", outcome.stderr);
}

#[test]
fn query_logs_in() {
    let server = Server::with(&["--requirepass", "secret word"]);
    let denied = server.query(&["GET", "k"]);
    assert_eq!(denied.stdout, "(error) NOAUTH Authentication required.\n");
    assert_eq!(denied.status.code(), Some(1));

    assert_eq!(
        server
            .query(&["--pass", "secret word", "GET", "k"])
            .success(),
        "(nil)\n"
    );
    let flags = [
        "--user",
        "default",
        "--pass",
        "secret word",
        "--resp3",
        "GET",
        "k",
    ];
    assert_eq!(server.query(&flags).success(), "(nil)\n");

    let wrong = server.query(&["--pass", "guess", "GET", "k"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stderr.contains("WRONGPASS"), "{}", wrong.stderr);

    let port = server.port.to_string();
    let mut command = Command::new(EVERBLOOM);
    command
        .args(["query", "--port", &port, "PING"])
        .env("REDISCLI_AUTH", "secret word");
    assert_eq!(run(&mut command).success(), "PONG\n");
    // A server without a password does not mind; with --pass it says so.
    let open = Server::start();
    let port = open.port.to_string();
    command = Command::new(EVERBLOOM);
    command.args(["query", "--port", &port]);
    command.env("REDISCLI_AUTH", "secret word");
    assert_eq!(run(command.arg("PING")).success(), "PONG\n");
    let refused = open.query(&["--pass", "secret word", "PING"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn query_prints_what_redis_cli_prints() {
    if Peer::RedisCli.find().is_none() {
        return;
    }
    let server = Server::start();
    let requests: [&[&str]; 14] = [
        &["PING"],
        &["BF.RESERVE", "k", "0.01", "1000"],
        &["BF.MADD", "k", "a", "b"],
        &[
            "BF.MEXISTS",
            "k",
            "a",
            "b",
            "c",
            "d",
            "e",
            "f",
            "g",
            "h",
            "i",
            "j",
        ],
        &["BF.INFO", "k"],
        &["BF.INFO", "k", "SIZE"],
        &["BF.SCANDUMP", "k", "0"],
        &["BF.DEBUG", "k"],
        &["SET", "text", "a \"quoted\"\t\x07\\ line\r\n"],
        &["GET", "text"],
        &["KEYS", "nothing*"],
        &["SCAN", "0"],
        &["COMMAND", "INFO", "BF.ADD", "NOPE"],
        &["BF.ADD", "text", "a"],
    ];
    let port = server.port.to_string();
    for request in requests {
        for (theirs, ours) in [("-2", None), ("-3", Some("--resp3"))] {
            let mut redis_cli = Peer::RedisCli.find().unwrap();
            redis_cli
                .args([theirs, "--no-raw", "-p", &port])
                .args(request);
            let mut query = Command::new(EVERBLOOM);
            query
                .args(["query", "--port", &port])
                .args(ours)
                .args(request);
            // The first of the two commands may have changed the key. Repeat it, then compare.
            run(&mut redis_cli);
            assert_eq!(
                run(&mut query).stdout,
                run(&mut redis_cli).stdout,
                "{request:?} {theirs}"
            );
        }
    }
}

#[test]
fn measure_embedded_filters() {
    let report = everbloom(&["measure", "--count", "20000", "--seed", "1"]).success();
    let lines: Vec<&str> = report.lines().collect();
    assert!(
        lines[0].starts_with("embedded filters: 10 000 random strings"),
        "{report}"
    );
    assert!(lines[0].ends_with("seed 1"), "{report}");
    assert!(lines[3].starts_with("default, grown from 100"), "{report}");
    assert!(lines[4].starts_with("reserved 0.001 10000"), "{report}");
    assert_eq!(
        report,
        everbloom(&["measure", "--count", "20000", "--seed", "1"]).success()
    );
}

/// The columns of a line, which two spaces part at least.
fn columns(line: &str) -> Vec<&str> {
    let cells = line.split("  ").map(str::trim);
    cells.filter(|cell| !cell.is_empty()).collect()
}

/// Both filters are the same bit for bit, so the counts are the same, too.
#[test]
fn measure_a_server_as_it_measures_embedded_filters() {
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}", server.port);
    let flags = ["measure", "--count", "20000", "--seed", "7"];
    let remote = everbloom(&[&flags[..], &[&*url]].concat()).success();
    let embedded = everbloom(&flags).success();
    let counts = |report: &str| -> Vec<Vec<String>> {
        let rows = report.lines().skip(3);
        let counts = |row| columns(row).into_iter().take(4).map(str::to_owned);
        rows.map(|row| counts(row).collect()).collect()
    };
    assert_eq!(counts(&remote), counts(&embedded));
    assert_eq!(server.query(&["DBSIZE"]).success(), "(integer) 0\n");
}

/// Each filter has its own key, so the counts differ a little.
#[test]
fn measure_the_blocked_layout() {
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}", server.port);
    let flags = ["measure", "--count", "20000", "--layout", "blocked"];
    for place in [&[][..], &["--url", &url]] {
        let report = everbloom(&[&flags[..], place].concat()).success();
        let row = columns(report.lines().nth(3).unwrap());
        assert_eq!(row[0], "default, grown from 100", "{report}");
        let [missed, wrong] = row[2..4] else {
            panic!("{report}")
        };
        let wrong: u32 = wrong.parse().unwrap();
        // The rate asked for gives a hundred. The sampling has a standard deviation of ten.
        assert!(missed == "0" && wrong < 150, "{report}");
        assert!(
            !report.contains(" - "),
            "an expected rate is missing:\n{report}"
        );
    }
    assert_eq!(server.query(&["DBSIZE"]).success(), "(integer) 0\n");
}

/// One sentence says what failed, also where the system says only "no space left".
#[test]
#[cfg(target_os = "linux")]
fn an_output_that_cannot_be_written_is_named() {
    for args in [&["plan", "1M", "1%"][..], &["generate", "conf"]] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let mut command = Command::new(EVERBLOOM);
        let outcome = command.args(args).stdout(full).output().unwrap();
        let said = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(2), "{said}");
        assert!(said.contains("write the output: No space left"), "{said}");
    }
}

/// As `plan` reads them.
#[test]
fn measure_reads_numbers_as_people_type_them() {
    let measure = "measure --count 2K --capacity 1/2*10^4 --error-rate 1%";
    let report = everbloom(&measure.split(' ').collect::<Vec<_>>()).success();
    assert!(report.contains("1 000 random strings"), "{report}");
    assert!(report.contains("reserved 0.01 5000"), "{report}");
}

#[test]
fn measure_a_window_that_is_full() {
    let server = Server::start();
    let url = format!("redis://127.0.0.1:{}", server.port);
    let flags = [
        "measure",
        "--count",
        "20000",
        "--seed",
        "7",
        "--window",
        "--error-rate",
        "1%",
    ];
    let embedded = everbloom(&flags).success();
    let row = |report: &str| report.lines().last().unwrap().to_owned();
    let words = row(&embedded);
    let words = columns(&words);
    assert_eq!(words[0], "window 0.01 8000", "{embedded}");
    assert_eq!(words[2], "0", "nothing is missed: {embedded}");
    let expected: f64 = words[5].trim_end_matches(" %").parse().unwrap();
    assert!((0.7..=1.05).contains(&expected), "{embedded}");
    // Of items that the server has, too; its filter has another key.
    let remote = everbloom(&[&flags[..], &["--url", &url]].concat()).success();
    assert!(row(&remote).starts_with("window 0.01 8000 "), "{remote}");
    let cuckoo = everbloom(&["measure", "--family", "cuckoo", "--window"]);
    assert_eq!(cuckoo.status.code(), Some(2), "{cuckoo:?}");
}

#[test]
fn measure_is_quiet_when_told() {
    for (flag, is_shown) in [("", true), (" --quiet", false)] {
        let line = format!("{EVERBLOOM} measure --count 20K{flag} >/dev/null");
        let Some(mut script) = on_terminal(&line) else {
            return;
        };
        let shown = run(&mut script).success();
        assert_eq!(shown.contains('%'), is_shown, "{line}: {shown}");
    }
}

#[test]
fn measure_refuses_what_cannot_be() {
    assert_eq!(
        everbloom(&["measure", "--error-rate", "2"]).status.code(),
        Some(2)
    );
    assert_eq!(
        everbloom(&["measure", "--count", "1"]).status.code(),
        Some(2)
    );
    let outcome = everbloom(&["measure", "--url", "localhost"]);
    assert_eq!(outcome.status.code(), Some(2));
    assert!(
        outcome
            .stderr
            .contains("is not redis://[USER:PASSWORD@]HOST[:PORT]"),
        "{}",
        outcome.stderr
    );
}
