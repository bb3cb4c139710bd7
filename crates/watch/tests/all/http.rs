//! Who is answered what, and who is turned away.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;

use everbloom_dev::{free_port, wait_for};
use everbloom_server::Settings;

use super::{ask, client, connect, local, rest, scrape, watched};

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
    client(&running).ok("BF.ADD secret x");
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
            "evil@localhost",
            "[::1].evil.example",
            "[::1].evil.example:9379",
            "[::1]evil",
            "[evil]",
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
fn without_the_setting_there_is_no_port() {
    let port = free_port();
    let running = everbloom_watch::start(local(Settings::default())).unwrap();
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
    let error = everbloom_watch::start(settings).unwrap_err();
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
    client(&running).ok("PING");
}

/// Clients that send half a request are closed, after a while or when more of them come, and nobody
/// waits for them: the answer to a later request comes while the last of them are open.
#[test]
fn nobody_waits_for_clients_that_send_half_a_request() {
    let (running, port) = watched(Settings::default());
    let answered_meanwhile = || {
        let mut slow: Vec<_> = (0..112).map(|_| connect(port, HALF)).collect();
        // Commands do not notice.
        client(&running).ok("PING");
        assert_eq!(ask(port, "GET", "/health").1, "ok\n");
        let newest = slow.split_off(112 - 16);
        let are_open = newest.iter().all(is_open);
        // The first of them have made room.
        let response = rest(slow.remove(0));
        assert!(!response.contains("200"), "{response}");
        are_open
    };
    // On a machine that is very busy they may be closed before one looks: their time was up.
    assert!((0..10).any(|_| answered_meanwhile()));
    // In the end each of them is closed.
    let response = rest(connect(port, HALF));
    assert!(!response.contains("200"), "{response}");
}

const HALF: &[u8] = b"GET /metrics HT";

/// Whether the other end has not closed a connection on which it sends nothing.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let found = stream.peek(&mut [0; 1]);
    matches!(found, Err(error) if error.kind() == ErrorKind::WouldBlock)
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
    // The directory goes, and the AOF and the snapshots with it.
    let mut client = client(&running);
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
    client.until("rdb_last_bgsave_status", "err");
    wait_for("the AOF to be missed", || status().0 == "503");
    let (_, body) = status();
    assert!(body.starts_with("MISCONF "), "{body}");
    assert_eq!(client.error("SET a 2"), body.trim_end());
    let text = scrape(port);
    assert!(text.contains("\neverbloom_writes_refused 1\n"), "{text}");
    assert!(text.contains("\neverbloom_snapshot_failed 1\n"), "{text}");
    std::fs::rename(dir.path().join("elsewhere"), dir.path().join("data")).unwrap();
    // The server may try the failed snapshot again in this moment, and two at once are refused.
    wait_for("a snapshot", || !client.line("SAVE").is_error());
    wait_for("the AOF to be rewritten", || status().0 == "200");
}
