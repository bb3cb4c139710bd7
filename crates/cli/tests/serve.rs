//! `everbloom serve` as an operator meets it: what it says, how it ends, its exit codes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::{EVERBLOOM, Outcome, run};

/// A folder of its own for a test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("serve-{test}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A run that is expected to end by itself.
fn serve(folder: &Path, words: &[&str]) -> Outcome {
    run(Command::new(EVERBLOOM)
        .arg("serve")
        .args(words)
        .current_dir(folder))
}

/// A server whose port the system chose, as its first line of log says.
struct Started {
    child: Child,
    port: u16,
    log: BufReader<ChildStdout>,
    banner: String,
}

impl Started {
    fn new(folder: &Path, words: &[&str]) -> Self {
        let mut child = Command::new(EVERBLOOM)
            .args(["serve", "--port", "0", "--bind", "127.0.0.1"])
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        while !banner.contains(" listens on ") {
            banner.clear();
            assert!(log.read_line(&mut banner).unwrap() > 0, "no banner");
        }
        let (_, port) = banner.split_once("127.0.0.1:").unwrap();
        let port = port.split(',').next().unwrap().parse().unwrap();
        Started {
            child,
            port,
            log,
            banner,
        }
    }

    /// A connection, once the server has loaded what there is and says PONG.
    fn connect(&self) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).unwrap();
        loop {
            stream.write_all(b"PING\r\n").unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                answer.extend(byte);
            }
            if answer == b"+PONG\r\n" {
                return stream;
            }
            assert!(answer.starts_with(b"-LOADING "), "{answer:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &id])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Its exit code, and the rest of its log.
    fn end(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the server does not end");
            thread::sleep(Duration::from_millis(10));
        }
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap().code(), log)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_first_line_says_what_runs_where() {
    let server = Started::new(&folder("banner"), &["--io-threads", "2"]);
    let expected = format!(
        "everbloom {} listens on 127.0.0.1:{}, process {}, 2 threads",
        env!("CARGO_PKG_VERSION"),
        server.port,
        server.child.id()
    );
    assert!(
        server.banner.trim_end().ends_with(&expected),
        "{}",
        server.banner
    );
}

#[test]
fn a_signal_ends_it_in_order_and_what_was_asked_is_answered() {
    for signal in ["TERM", "INT"] {
        let server = Started::new(&folder(signal), &[]);
        let mut stream = server.connect();
        // A batch that takes a while, and the signal in the middle of it.
        let batch = "BF.RESERVE k 0.0001 1000000\r\nDEL k\r\n".repeat(200);
        stream.write_all(batch.as_bytes()).unwrap();
        let mut first = [0; 5];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"+OK\r\n");
        server.signal(signal);
        let mut rest = Vec::new();
        // Requests that were not read yet make the system reset the connection.
        let _ = stream.read_to_end(&mut rest);
        assert!(
            rest.starts_with(b":1\r\n"),
            "{:?}",
            String::from_utf8_lossy(&rest)
        );
        let (code, log) = server.end();
        assert_eq!(code, Some(0), "{log}");
        assert!(
            log.contains(&format!("received SIG{signal}, stopping")),
            "{log}"
        );
        assert!(log.trim_end().ends_with("stopped"), "{log}");
    }
}

#[test]
fn shutdown_ends_it_with_success() {
    let server = Started::new(&folder("shutdown"), &[]);
    let mut stream = server.connect();
    stream.write_all(b"SHUTDOWN NOSAVE\r\n").unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(server.end().0, Some(0));
}

/// The layout and the key of a filter outlive the process and the setting that chose them.
#[test]
fn blocked_filters_are_there_after_a_restart() {
    let folder = folder("blocked");
    let started = |words: &[&str]| {
        let server = Started::new(&folder, words);
        let stream = server.connect();
        (server, stream)
    };
    let (server, mut stream) = started(&["--bf-default-layout", "blocked"]);
    let adds: String = (0..1000)
        .map(|n| format!("BF.ADD k item:{n}\r\n"))
        .collect();
    stream.write_all(adds.as_bytes()).unwrap();
    let answers = lines(&mut stream, 1000);
    assert!(answers.iter().filter(|line| *line == ":1").count() > 950);
    ask(
        &mut stream,
        "BF.RESERVE s 0.01 100 SEED 5 LAYOUT BLOCKED",
        "+OK",
    );
    ask(&mut stream, "BF.ADD s x", ":1");
    let before = dumps(&mut stream);
    stream.write_all(b"SHUTDOWN NOSAVE\r\n").unwrap();
    assert_eq!(server.end().0, Some(0));

    // From the commands in the log; then from its base, which is an RDB file.
    for from in ["commands", "base"] {
        assert_eq!(base_length(&folder) > 500, from == "base");
        let (server, mut stream) = started(&[]);
        ask(&mut stream, "TYPE k", "+everbloom");
        ask(&mut stream, "TYPE s", "+everbloom");
        assert_eq!(dumps(&mut stream), before);
        let asks: String = (0..1000)
            .map(|n| format!("BF.EXISTS k item:{n}\r\n"))
            .collect();
        stream.write_all(asks.as_bytes()).unwrap();
        assert!(lines(&mut stream, 1000).iter().all(|line| line == ":1"));
        ask(&mut stream, "BF.ADD new x", ":1");
        ask(&mut stream, "TYPE new", "+MBbloom--");
        ask(&mut stream, "DEL new", ":1");
        if from == "commands" {
            stream.write_all(b"BGREWRITEAOF\r\n").unwrap();
            assert!(lines(&mut stream, 1)[0].starts_with('+'));
            let deadline = Instant::now() + Duration::from_secs(30);
            while base_length(&folder) <= 500 {
                assert!(Instant::now() < deadline, "the log is not rewritten");
                thread::sleep(Duration::from_millis(5));
            }
        }
        stream.write_all(b"SHUTDOWN\r\n").unwrap();
        assert_eq!(server.end().0, Some(0));
    }
}

/// The length of the base that the log's manifest names.
fn base_length(folder: &Path) -> u64 {
    let log = folder.join("everbloom-data/appendonlydir");
    let manifest = fs::read_to_string(log.join("appendonly.aof.manifest")).unwrap();
    let base = manifest.lines().find(|line| line.ends_with(" type b"));
    let name = base.and_then(|line| line.split(' ').nth(1));
    name.map_or(0, |name| fs::metadata(log.join(name)).unwrap().len())
}

fn lines(stream: &mut TcpStream, count: usize) -> Vec<String> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    for _ in 0..count {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        lines.push(line.trim_end().to_owned());
    }
    lines
}

fn ask(stream: &mut TcpStream, line: &str, answer: &str) {
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    assert_eq!(lines(stream, 1), [answer], "{line}");
}

/// The DUMP payloads of both filters.
fn dumps(stream: &mut TcpStream) -> Vec<Vec<u8>> {
    ["k", "s"]
        .map(|key| {
            stream
                .write_all(format!("DUMP {key}\r\n").as_bytes())
                .unwrap();
            let mut reader = BufReader::new(&mut *stream);
            let mut head = String::new();
            reader.read_line(&mut head).unwrap();
            let length: usize = head.trim_end()[1..].parse().unwrap();
            let mut payload = vec![0; length + 2];
            reader.read_exact(&mut payload).unwrap();
            payload
        })
        .into()
}

#[test]
fn the_log_goes_to_a_file_and_tells_what_has_no_effect() {
    let folder = folder("logfile");
    fs::write(
        folder.join("a.conf"),
        "lfu-log-factor 5\nlogfile a.log\nport 0\n",
    )
    .unwrap();
    let mut child = Command::new(EVERBLOOM)
        .args(["serve", "a.conf", "--bind", "127.0.0.1"])
        .current_dir(&folder)
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let log = loop {
        let log = fs::read_to_string(folder.join("a.log")).unwrap_or_default();
        if log.contains("listens on") {
            break log;
        }
        assert!(Instant::now() < deadline, "{log}");
        thread::sleep(Duration::from_millis(10));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let warning = "a.conf, line 1: the setting 'lfu-log-factor' has no effect here";
    assert!(log.contains(warning), "{log}");
}

#[test]
fn errors_at_the_start_are_one_clear_line() {
    let folder = folder("errors");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    fs::write(folder.join("bad.conf"), "# mine\nport seven\n").unwrap();
    let cases: [(&[&str], String); 5] = [
        (
            &["--port", &port, "--bind", "127.0.0.1"],
            format!("cannot listen on 127.0.0.1:{port}: "),
        ),
        (
            &["--nosuch", "1"],
            "'--nosuch 1': unknown setting 'nosuch'".into(),
        ),
        (
            &["bad.conf"],
            "bad.conf, line 2: 'port seven': argument couldn't be parsed into an integer".into(),
        ),
        (&["missing.conf"], "missing.conf: cannot be read: ".into()),
        (
            &["--logfile", "no/such/folder/log"],
            "cannot write the log no/such/folder/log: ".into(),
        ),
    ];
    for (words, message) in cases {
        let outcome = serve(&folder, words);
        assert_eq!(
            outcome.status.code(),
            Some(1),
            "{words:?}: {}",
            outcome.stderr
        );
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        let expected = format!("everbloom: {message}");
        assert!(outcome.stderr.starts_with(&expected), "{}", outcome.stderr);
    }
}
