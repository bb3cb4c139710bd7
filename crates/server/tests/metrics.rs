//! The port of the metrics, as Prometheus and those who are not Prometheus see it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use everbloom_dev::{PATIENCE, free_port, peers, wait_for};
use everbloom_server::{Running, Settings};
use serde_json::Value;
use support::{Client, OfRunning, server};

/// A server and the port of its metrics.
fn watched(settings: Settings) -> (Running, u16) {
    let metrics_port = free_port();
    let running = server(Settings {
        metrics_port,
        ..settings
    });
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

fn scrape(port: u16) -> String {
    let (head, body) = ask(port, "GET", "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(kind), "{head}");
    body
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

#[test]
fn nothing_but_the_pages_is_to_be_read() {
    let (_running, port) = watched(Settings::default());
    let status = |method, path| {
        let (head, body) = ask(port, method, path);
        (head[9..12].to_owned(), head, body)
    };
    assert_eq!(status("GET", "/health").2, "ok\n");
    assert_eq!(status("GET", "/ready?x=1").2, "ready\n");
    let pages = ["/", "/metrics", "/health", "/ready"];
    let figures = ["/now.json", "/filters.json", "/filter.json"];
    for path in pages.into_iter().chain(figures) {
        let (_, head, body) = status("HEAD", path);
        assert!(
            head.starts_with("HTTP/1.1 200") && body.is_empty(),
            "{head}"
        );
        let (code, head, _) = status("POST", path);
        assert_eq!(code, "405");
        assert!(head.contains("allow: GET, HEAD"), "{head}");
    }
    for path in [
        "/metrics/",
        "/METRICS",
        "//metrics",
        "/page.html",
        "/../etc/passwd",
    ] {
        assert_eq!(status("GET", path).0, "404", "{path}");
    }
    assert_eq!(status("POST", "/nothing").0, "404");
}

/// A name that a stranger's web page has given to this machine gets nothing.
#[test]
fn at_home_only_names_of_our_own_are_answered() {
    let (running, port) = watched(Settings::default());
    Client::of(&running).ok("BF.ADD secret x");
    let code = |path: &str, host: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let response = rest(connect(port, request.as_bytes()));
        assert!(!host.contains("evil") || !response.contains("secret"));
        response[9..12].to_owned()
    };
    for path in ["/", "/metrics", "/filter.json?db=0&key=secret"] {
        for host in [
            "localhost",
            "LOCALHOST:9379",
            "everbloom:9379",
            "127.0.0.1:1",
            "[::1]:9379",
            "10.0.0.5",
        ] {
            assert_eq!(code(path, host), "200", "{path} {host}");
        }
        for host in [
            "evil.example",
            "evil.example:9379",
            "localhost.evil.example",
            "evil@",
        ] {
            assert_eq!(code(path, host), "421", "{path} {host}");
        }
    }
    assert_eq!(code("/health", "evil.example"), "200");
    // What another site's page asks for without being able to read it takes locks, too.
    for (site, expected) in [
        ("same-origin", "200"),
        ("none", "200"),
        ("cross-site", "403"),
        ("same-site", "403"),
    ] {
        let host = format!("localhost\r\nSec-Fetch-Site: {site}");
        let path = "/filter.json?db=0&key=secret";
        assert_eq!(code(path, &host), expected, "{site}");
        assert_eq!(code("/", &host), "200", "{site}");
    }
}

#[test]
fn the_page_runs_nothing_but_its_own_script_and_is_not_kept() {
    let (_running, port) = watched(Settings::default());
    let nonce = || {
        let (head, body) = ask(port, "GET", "/");
        assert!(
            head.contains("content-type: text/html; charset=utf-8"),
            "{head}"
        );
        assert!(head.contains("cache-control: no-store"), "{head}");
        let policy = head.split("content-security-policy: ").nth(1).unwrap();
        let policy = policy.lines().next().unwrap();
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        assert!(
            !policy.contains("unsafe") && !policy.contains('*'),
            "{policy}"
        );
        let nonce = policy.split("script-src 'nonce-").nth(1).unwrap()[..32].to_owned();
        assert!(
            policy.contains(&format!("style-src 'nonce-{nonce}'")),
            "{policy}"
        );
        assert_eq!(body.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
        assert!(!body.contains("NONCE"));
        // It fetches nothing from elsewhere.
        let own = ["http://www.w3.org/2000/svg"];
        let addresses = body.matches("http").count();
        assert_eq!(addresses, own.len());
        nonce
    };
    assert_ne!(nonce(), nonce());
}

fn json(port: u16, path: &str) -> Value {
    let (head, body) = ask(port, "GET", path);
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn the_page_asks_for_filters_by_page_and_for_one() {
    let (running, port) = watched(Settings::default());
    let mut client = Client::of(&running);
    for number in 0..300 {
        client.ok(&format!(
            "BF.RESERVE f{number:03} 0.01 {}",
            1000 + 100 * number
        ));
    }
    client.call(&[b"BF.ADD", HOSTILE, b"x"]);
    client.line("SELECT 3");
    client.ok("BF.RESERVE f000 0.01 50000");
    scrape_after_a_walk(port);
    let filters = |query: &str| json(port, &format!("/filters.json?{query}"));
    let column = |value: &Value, name: &str| -> Vec<Value> {
        let rows = value["rows"].as_array().unwrap();
        rows.iter().map(|row| row[name].clone()).collect()
    };
    let all = filters("");
    assert_eq!([&all["filters"], &all["matches"], &all["listed"]], [302; 3]);
    // No more than 200 at a time, whatever is asked for.
    assert_eq!(column(&filters("count=1000"), "name").len(), 200);
    let page = filters("sort=capacity&order=down&from=1&count=2&search=F2");
    assert_eq!(page["matches"], 100);
    assert_eq!(column(&page, "capacity"), [30_800, 30_700]);
    let up = filters("sort=name&search=f29");
    assert_eq!(column(&up, "name")[..2], ["f290", "f291"]);
    assert_eq!(column(&filters("search=no%20such"), "name").len(), 0);
    // A key of any bytes comes percent-encoded, and leads to its filter so.
    let found = filters("search=%5Cxff");
    let row = &found["rows"][0];
    assert_eq!(row["name"], r#"a"} 1\neverbloom_keys{db="\xff\\"#);
    let path = format!("/filter.json?db=0&key={}", row["key"].as_str().unwrap());
    assert_eq!(json(port, &path)["items"], 1);
    let in_3 = json(port, "/filter.json?db=3&key=f000");
    assert_eq!(in_3["capacity"], 50_000);
    assert_eq!(in_3["past"].as_array().unwrap().len(), 1);
    for nothing in [
        "db=1&key=f000",
        "db=99&key=f000",
        "db=-1&key=x",
        "key=%",
        "db=0",
    ] {
        assert_eq!(json(port, &format!("/filter.json?{nothing}")), Value::Null);
    }
    // What is no filter has no view.
    client.ok("SET text x");
    assert_eq!(json(port, "/filter.json?db=3&key=text"), Value::Null);
}

#[test]
fn the_page_shows_the_last_minutes() {
    let (running, port) = watched(Settings::default());
    let mut client = Client::of(&running);
    wait_for("a sample with commands", || {
        client.ok("PING");
        let now = json(port, "/now.json");
        let samples = now["samples"].as_array().unwrap().clone();
        let with_commands = samples.iter().find(|sample| sample[1].as_f64() > Some(0.0));
        with_commands.is_some_and(|sample| {
            let times = [&sample[2], &sample[3], &sample[4]].map(|it| it.as_f64().unwrap());
            assert!(times.iter().all(|it| (0.0..1.0).contains(it)), "{now}");
            assert!(sample[6].as_f64() > sample[5].as_f64(), "{now}");
            true
        })
    });
    assert_eq!(json(port, "/now.json")["trouble"], Value::Null);
    running.server().store.health.set_loading(true);
    let trouble = json(port, "/now.json")["trouble"].to_string();
    running.server().store.health.set_loading(false);
    assert!(trouble.starts_with("\"LOADING "), "{trouble}");
}

#[test]
fn without_the_setting_there_is_no_port() {
    let port = free_port();
    let running = server(Settings::default());
    assert_eq!(running.server().config.snapshot().metrics_port, 0);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let (_running, metrics_port) = watched(Settings::default());
    let settings = Settings {
        port: 0,
        metrics_port,
        ..Settings::default()
    };
    let error = everbloom_server::Server::start(settings).unwrap_err();
    let address = format!("cannot listen on 127.0.0.1:{metrics_port}");
    assert!(error.to_string().starts_with(&address), "{error}");
}

#[test]
fn what_is_no_http_is_turned_away() {
    let (running, port) = watched(Settings::default());
    let long = vec![b'a'; 64 << 10];
    let long_head = [b"GET /metrics HTTP/1.1\r\nX: ", &*long, b"\r\n\r\n"].concat();
    let many: String = (0..500).map(|n| format!("X{n}: y\r\n")).collect();
    let many = format!("GET /metrics HTTP/1.1\r\n{many}\r\n");
    for bytes in [
        b"*1\r\n$4\r\nPING\r\n".as_slice(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET \xff\xfe HTTP/1.1\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        many.as_bytes(),
    ] {
        let response = rest(connect(port, bytes));
        let refused = response.is_empty() || response.starts_with("HTTP/1.1 4");
        assert!(refused, "{response}");
    }
    // The rest of it may be refused while it is still being sent.
    let mut stream = connect(port, b"");
    let _ = stream.write_all(&long_head);
    let response = rest(stream);
    assert!(!response.contains("200 OK"), "{response}");
    scrape(port);
    Client::of(&running).ok("PING");
}

#[test]
fn slow_clients_are_few_and_do_not_stay() {
    let (running, port) = watched(Settings::default());
    let mut slow: Vec<TcpStream> = (0..40).map(|_| connect(port, b"GET /metrics HT")).collect();
    // Commands do not notice.
    Client::of(&running).ok("PING");
    // No more are talked to at a time than there are places: of 41, the last waits.
    let mut last = connect(port, b"GET /health HTTP/1.1\r\n\r\n");
    last.set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let waits = last.read(&mut [0; 1]).unwrap_err();
    assert_eq!(waits.kind(), ErrorKind::WouldBlock);
    // In the end each of them is closed, and it has its turn.
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(rest(last).ends_with("ok\n"));
    let response = rest(slow.remove(0));
    assert!(!response.contains("200"), "{response}");
}

#[test]
fn it_is_ready_when_clients_can_write() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.data.dir = Some(dir.path().join("data"));
    settings.data.appendonly = true;
    settings.data.appendfsync = everbloom_store::Fsync::Always;
    settings.data.save = vec![(3600, 1)];
    let (running, port) = watched(settings);
    running.wait_until_loaded();
    let status = || {
        assert_eq!(ask(port, "GET", "/health").1, "ok\n");
        let (head, body) = ask(port, "GET", "/ready");
        (head[9..12].to_owned(), body)
    };
    assert_eq!(status(), ("200".into(), "ready\n".into()));
    let health = &running.server().store.health;
    health.set_loading(true);
    let (code, body) = status();
    assert_eq!(code, "503");
    assert!(body.starts_with("LOADING "), "{body}");
    assert!(scrape(port).contains("\neverbloom_loading 1\n"));
    health.set_loading(false);
    // The directory goes, so that a snapshot fails.
    let mut client = Client::of(&running);
    client.ok("SET a 1");
    let text = scrape(port);
    let fsyncs = text.split("\neverbloom_log_fsyncs_total ").nth(1).unwrap();
    assert!(!fsyncs.starts_with('0'), "{text}");
    let time = text
        .split("\neverbloom_log_fsync_seconds_total ")
        .nth(1)
        .unwrap();
    assert!(!time.starts_with("0.0\n"), "{text}");
    std::fs::rename(dir.path().join("data"), dir.path().join("elsewhere")).unwrap();
    client.line("BGSAVE");
    wait_for("a snapshot to fail", || status().0 == "503");
    let (_, body) = status();
    assert!(body.starts_with("MISCONF "), "{body}");
    assert_eq!(client.error("SET a 2"), body.trim_end());
    let text = scrape(port);
    assert!(text.contains("\neverbloom_writes_refused 1\n"), "{text}");
    assert!(text.contains("\neverbloom_snapshot_failed 1\n"), "{text}");
    std::fs::rename(dir.path().join("elsewhere"), dir.path().join("data")).unwrap();
    client.ok("SAVE");
    assert_eq!(status().0, "200");
}

/// Commands of all kinds, and a key that tries to leave its label.
const HOSTILE: &[u8] = b"a\"} 1\neverbloom_keys{db=\"\xff\\";

fn busy() -> (Running, u16) {
    let (running, port) = watched(Settings::default());
    let mut client = Client::of(&running);
    for line in [
        "BF.RESERVE classic 0.001 10000",
        "BF.RESERVE blocked 0.01 10000 LAYOUT BLOCKED",
        "BF.MADD blocked a b c",
        "CF.ADD cuckoo x",
        "SET text x EX 100",
    ] {
        client.ok(line);
    }
    client.call(&[b"BF.ADD", HOSTILE, b"x"]);
    client.error("GET");
    client.error("BF.ADD text x");
    client.line("SELECT 1");
    client.line("SET text x");
    (running, port)
}

/// What follows the name of a family in its lines, for the types that there are.
fn suffixes(kind: &str) -> &[&str] {
    match kind {
        "counter" => &["_total"],
        "gauge" => &[""],
        "histogram" => &["_bucket", "_count", "_sum"],
        _ => &[],
    }
}

/// The rules of OpenMetrics that our text can break.
#[test]
fn the_text_keeps_the_rules_of_open_metrics() {
    let (_running, port) = busy();
    let text = scrape_after_a_walk(port);
    assert!(text.ends_with("\n# EOF\n"));
    assert!(!text.contains("\n\n") && !text.contains('\r'), "{text}");
    let (mut families, mut series) = (BTreeMap::new(), BTreeSet::new());
    let (mut family, mut kind) = ("", "");
    for line in text.lines().take_while(|line| *line != "# EOF") {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, help] => {
                family = name;
                assert!(help.ends_with('.') && help.len() > 4, "{line}");
                assert!(families.insert(name, 0).is_none(), "twice: {name}");
            }
            ["#", "TYPE", name, of] => {
                assert_eq!(name, family);
                assert!(!suffixes(of).is_empty(), "{line}");
                assert!(!name.ends_with("_total"), "{line}");
                kind = of;
            }
            ["#", "UNIT", name, unit] => {
                assert_eq!(name, family);
                assert!(name.ends_with(&format!("_{unit}")), "{line}");
            }
            ["#", ..] => panic!("{line}"),
            _ => {
                let (labelled, value) = line.rsplit_once(' ').unwrap();
                let name = labelled.split('{').next().unwrap();
                let suffix = name.strip_prefix(family).unwrap();
                assert!(suffixes(kind).contains(&suffix), "{line}");
                let value: f64 = value.parse().unwrap();
                assert!(
                    value.is_finite() && value >= 0.0 && value.is_sign_positive(),
                    "{line}"
                );
                assert!(series.insert(labelled.to_owned()), "twice: {line}");
                *families.get_mut(family).unwrap() += 1;
            }
        }
    }
    assert!(families.len() > 40, "{families:?}");
    for name in [
        "everbloom_command_seconds",
        "everbloom_clients",
        "everbloom_filter_items",
    ] {
        assert!(families[name] > 0, "{name}");
    }
    for sample in [
        r#"everbloom_commands_total{command="bf.madd"}"#,
        r#"everbloom_error_replies_total{code="WRONGTYPE"}"#,
        r#"everbloom_keys{db="1"}"#,
        r#"everbloom_filters_items{layout="blocked"}"#,
        r#"everbloom_filter_room_items{db="0",key="cuckoo",layout="cuckoo"}"#,
        r#"everbloom_filter_error_rate_asked_ratio{db="0",key="classic",layout="classic"}"#,
    ] {
        assert!(series.contains(sample), "{sample} is missing");
    }
    for (command, calls) in [("bf.madd", 1), ("bf.reserve", 2)] {
        let line = format!("\neverbloom_commands_total{{command=\"{command}\"}} {calls}\n");
        assert!(text.contains(&line), "{text}");
    }
    assert!(
        text.contains("\neverbloom_filters_items{layout=\"blocked\"} 3\n"),
        "{text}"
    );
}

/// The buckets of a command's histogram: their bounds, and the commands up to them.
fn buckets(text: &str, command: &str) -> Vec<(f64, u64)> {
    let start = "everbloom_command_duration_seconds_bucket{";
    let lines = text.lines().filter_map(|line| line.strip_prefix(start));
    let of_command = lines.filter(|line| line.contains(&format!("command=\"{command}\"")));
    let buckets = of_command.map(|line| {
        let (labels, count) = line.rsplit_once(' ').unwrap();
        let bound = labels.split("le=\"").nth(1).unwrap().split('"').next();
        let bound = bound.unwrap().replace("+Inf", "inf");
        (bound.parse().unwrap(), count.parse().unwrap())
    });
    buckets.collect()
}

#[test]
fn a_histogram_says_how_long_commands_took() {
    let (running, port) = watched(Settings {
        enable_debug_command: "yes".into(),
        ..Settings::default()
    });
    let mut client = Client::of(&running);
    for _ in 0..10 {
        client.ok("PING");
    }
    client.ok("DEBUG SLEEP 0.02");
    let text = scrape(port);
    for (command, calls) in [("ping", 10), ("debug", 1)] {
        let buckets = buckets(&text, command);
        assert!(
            buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
            "{text}"
        );
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, calls)));
        let count = format!("_duration_seconds_count{{command=\"{command}\"}} {calls}\n");
        assert!(text.contains(&count), "{text}");
    }
    // The sleep is in no bucket of less than 20 ms.
    for (bound, count) in buckets(&text, "debug") {
        assert!(bound > 0.02 || count == 0, "{text}");
    }
    // It goes back with the other figures of commands.
    client.ok("CONFIG RESETSTAT");
    assert_eq!(buckets(&scrape(port), "ping"), []);
    client.ok("PING");
    assert_eq!(
        buckets(&scrape(port), "ping").last(),
        Some(&(f64::INFINITY, 1))
    );
}

/// A scrape reads what a walk found before it, and so looks at no key.
#[test]
fn a_filter_is_seen_once_a_walk_has_passed_it() {
    let (running, port) = watched(Settings::default());
    let mut client = Client::of(&running);
    wait_for("the first walk", || {
        scrape(port).contains("everbloom_filters{")
    });
    client.ok("BF.ADD new x");
    let text = scrape(port);
    assert!(text.contains("\neverbloom_keys{db=\"0\"} 1\n"), "{text}");
    assert!(
        text.contains("\neverbloom_filters{layout=\"classic\"} 0\n"),
        "{text}"
    );
    assert!(!text.contains("key=\"new\""), "{text}");
    assert!(scrape_after_a_walk(port).contains("key=\"new\""));
}

#[test]
fn pythons_parser_reads_the_text() {
    let probe = &mut Command::new("python3");
    let module = "import prometheus_client.openmetrics.parser";
    if !peers::is_there(probe.args(["-c", module]), "pip install prometheus_client") {
        return;
    }
    let (_running, port) = busy();
    let text = scrape_after_a_walk(port);
    let program = r"
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
families = list(parse(sys.stdin.buffer.read().decode()))
samples = [sample for family in families for sample in family.samples]
hostile = 'a\x22} 1\\neverbloom_keys{db=\x22\\xff\\\\'
assert [s for s in samples if s.labels.get('key') == hostile], samples
assert [s for s in samples if s.name == 'everbloom_command_seconds_total'], samples
print(len(families))
";
    let mut python = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = python.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}\n{text}");
}

/// Files that name metrics, from the root of the repository.
const NAMING: [&str; 2] = [
    "contrib/prometheus/everbloom.rules.yml",
    "docs/guide/watch.md",
];

fn read(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::read_to_string(format!("{root}/{path}")).unwrap()
}

#[test]
fn the_alerts_and_the_guide_name_metrics_that_there_are() {
    let known = include_str!("../src/watch/metrics.txt");
    let known: BTreeSet<&str> = known
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    for path in NAMING {
        let text = read(path);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let named: BTreeSet<&str> = words
            .map(|word| word.strip_suffix("_bucket").unwrap_or(word))
            .filter(|word| word.starts_with("everbloom_") && !word.ends_with('_'))
            .collect();
        assert!(named.len() > 5, "{path}");
        let wrong: Vec<&&str> = named.difference(&known).collect();
        assert!(wrong.is_empty(), "{path} names {wrong:?}");
    }
}

#[test]
fn promtool_accepts_the_alerts() {
    let mut promtool = Command::new("promtool");
    if !peers::is_there(promtool.arg("--version"), "apt-get install prometheus") {
        return;
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/prometheus/");
    let rules = ["everbloom", "everbloom-module"].map(|name| format!("{folder}{name}.rules.yml"));
    let output = Command::new("promtool")
        .args(["check", "rules"])
        .args(rules)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}
