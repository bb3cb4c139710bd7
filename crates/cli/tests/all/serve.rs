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

/// Runs a server that should end by itself.
fn serve(folder: &Path, words: &[&str]) -> Outcome {
    run(Command::new(EVERBLOOM)
        .arg("serve")
        .args(words)
        .current_dir(folder))
}

#[test]
fn the_first_line_says_what_runs_where() {
    let server = Server::with(&["--io-threads", "2"]);
    let expected = format!(
        "everbloom {} listens on 127.0.0.1:{}, process {}, 2 threads",
        env!("CARGO_PKG_VERSION"),
        server.port,
        server.pid()
    );
    let log = server.log();
    let banner = log.lines().find(|line| line.contains(" listens on "));
    assert!(banner.unwrap().ends_with(&expected), "{log}");
}

/// A mistyped path would be a new and empty directory, and the server would say that all is well.
#[test]
fn the_folder_of_the_data_directory_must_be_there() {
    let folder = folder("serve-typo");
    let words = ["--bind", "127.0.0.1", "--port", "0", "--dir", "typo/data"];
    let outcome = serve(&folder, &words);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    let message = "the data directory typo/data cannot be made: the folder that it would lie in";
    assert!(outcome.stderr.contains(message), "{outcome:?}");
    assert!(!folder.join("typo").exists());

    fs::create_dir(folder.join("typo")).unwrap();
    let server = Server::on(&folder, &["--dir", "typo/data"]);
    let path = folder.canonicalize().unwrap().join("typo/data");
    let message = format!("the data directory is {}\n", path.display());
    assert!(server.log().contains(&message), "{}", server.log());
}

/// Sixty filters of 60 MB: what their items touch is resident, and reading makes no more so.
#[cfg(target_os = "linux")]
#[test]
fn large_filters_of_few_items_take_little_memory() {
    let always = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if always.is_ok_and(|setting| setting.contains("[always]")) {
        eprintln!("SKIPPED: this system makes every large page huge");
        return;
    }
    let server = Server::start();
    let mut client = server.client();
    let items: Vec<String> = (0..20).map(|item| item.to_string()).collect();
    let items = items.join(" ");
    for layout in ["CLASSIC", "BLOCKED"] {
        for filter in 0..30 {
            let key = format!("{layout}{filter}");
            client.ok(&format!("BF.RESERVE {key} 0.01 42000000 LAYOUT {layout}"));
            let added = client.line(&format!("BF.MADD {key} {items}"));
            assert_eq!(added, Reply::Array(vec![Reply::Integer(1); 20]));
            for read in ["BF.INFO", "BF.STATS", "BF.CARD"] {
                let reply = client.line(&format!("{read} {key}"));
                assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
            }
        }
    }
    let used: u64 = client.info("used_memory").parse().unwrap();
    assert!(used > 3_400_000_000, "{used} bytes are counted");
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.unwrap().trim().trim_end_matches(" kB");
    assert!(kilobytes.parse::<u64>().unwrap() < 100_000, "{status}");
}

#[test]
fn a_signal_ends_it_in_order_and_what_was_asked_is_answered() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::start();
        let mut client = server.client();
        // A batch that takes a while, and the signal in the middle of it.
        let batch = "BF.RESERVE k 0.0001 1000000\r\nDEL k\r\n".repeat(200);
        client.stream.write_all(batch.as_bytes()).unwrap();
        assert_eq!(client.reply(), Reply::OK);
        server.signal(signal);
        // Requests that were not read yet make the system reset the connection.
        assert_eq!(client.try_reply(), Some(Reply::Integer(1)));
        let (code, log) = (server.wait(), server.log());
        assert_eq!(code, Some(0), "{log}");
        assert!(
            log.contains(&format!("received SIG{signal}, stopping")),
            "{log}"
        );
        assert!(log.trim_end().ends_with("stopped"), "{log}");
    }
}

/// Ends a server by `SHUTDOWN`.
fn shut_down(mut server: Server, how: &[&str]) {
    let mut client = server.client();
    client.send(&[&["SHUTDOWN"], how].concat());
    assert_eq!(client.try_reply(), None);
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn shutdown_ends_it_with_success() {
    shut_down(Server::start(), &["NOSAVE"]);
}

/// A filter keeps its layout and key after the process has ended and the setting has changed.
#[test]
fn blocked_filters_are_there_after_a_restart() {
    let folder = folder("serve-blocked");
    let server = Server::on(&folder, &["--bf-default-layout", "blocked"]);
    let mut client = server.client();
    assert!(of_all_items(&mut client, "BF.ADD") > 950);
    client.ok("BF.RESERVE s 0.01 100 SEED 5 LAYOUT BLOCKED");
    assert_eq!(client.number("BF.ADD s x"), 1);
    let dumps = |client: &mut Client| ["DUMP k", "DUMP s"].map(|line| client.ok(line));
    let before = dumps(&mut client);
    shut_down(server, &["NOSAVE"]);

    // First from the commands in the log, then from its base, which is an RDB file.
    for from in ["commands", "base"] {
        assert_eq!(base_length(&folder) > 500, from == "base");
        let server = Server::on(&folder, &[]);
        let mut client = server.client();
        assert_eq!(client.line("TYPE k"), Reply::simple("everbloom"));
        assert_eq!(client.line("TYPE s"), Reply::simple("everbloom"));
        assert_eq!(dumps(&mut client), before);
        assert_eq!(of_all_items(&mut client, "BF.EXISTS"), 1000);
        assert_eq!(client.number("BF.ADD new x"), 1);
        assert_eq!(client.line("TYPE new"), Reply::simple("MBbloom--"));
        assert_eq!(client.number("DEL new"), 1);
        if from == "commands" {
            client.ok("BGREWRITEAOF");
            wait_for("the rewrite of the log", || base_length(&folder) > 500);
        }
        shut_down(server, &[]);
    }
}

/// To how many of a thousand items, sent at once, the server answers 1.
fn of_all_items(client: &mut Client, command: &str) -> usize {
    let lines: String = (0..1000)
        .map(|n| format!("{command} k item:{n}\r\n"))
        .collect();
    client.stream.write_all(lines.as_bytes()).unwrap();
    let replies = (0..1000).map(|_| client.reply());
    replies.filter(|reply| *reply == Reply::Integer(1)).count()
}

/// The length of the base that the log's manifest names.
fn base_length(folder: &Path) -> u64 {
    let log = folder.join("everbloom-data/appendonlydir");
    let manifest = fs::read_to_string(log.join("appendonly.aof.manifest")).unwrap();
    let base = manifest.lines().find(|line| line.ends_with(" type b"));
    let name = base.and_then(|line| line.split(' ').nth(1));
    name.map_or(0, |name| fs::metadata(log.join(name)).unwrap().len())
}

#[test]
fn the_log_goes_to_a_file_and_tells_what_has_no_effect() {
    let folder = folder("serve-logfile");
    fs::write(
        folder.join("a.conf"),
        "lfu-log-factor 5\nlogfile a.log\nport 0\n",
    )
    .unwrap();
    let mut command = Command::new(EVERBLOOM);
    command.args(["serve", "a.conf", "--bind", "127.0.0.1"]);
    let _server = Process::start(&mut command, &folder);
    let log = || fs::read_to_string(folder.join("a.log")).unwrap_or_default();
    wait_for("the log", || log().contains("listens on"));
    let log = log();
    let warning = "a.conf, line 1: the setting 'lfu-log-factor' has no effect here";
    assert!(log.contains(warning), "{log}");
}

#[test]
fn it_says_ready_after_loading_in_words() {
    let server = Server::start();
    wait_for("the line", || server.log().contains(" INFO ready\n"));
    let log = server.log();
    let ready = log.lines().position(|line| line.ends_with(" INFO ready"));
    let loaded = log.lines().position(|line| line.contains(" INFO loaded "));
    assert!(ready > loaded && loaded.is_some(), "{log}");
    assert!(!log.contains("everbloom_"), "{log}");
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

#[test]
fn a_log_pipe_whose_reader_has_died_stops_nothing() {
    for end in ENDS {
        let (reader, writer) = io::pipe().unwrap();
        let (mut server, mut client) = on_a_pipe(&folder(&format!("serve-dead-{end}")), writer);
        drop(reader);
        works_until(end, &mut server, &mut client);
    }
}

#[test]
fn a_log_pipe_that_nobody_reads_stops_nothing() {
    for end in ENDS {
        let (_reader, writer) = io::pipe().unwrap();
        // Fills the pipe, and then waits until the test has ended.
        let mut filler = writer.try_clone().unwrap();
        thread::spawn(move || filler.write_all(&[b'\n'; 1 << 20]));
        let (mut server, mut client) = on_a_pipe(&folder(&format!("serve-full-{end}")), writer);
        works_until(end, &mut server, &mut client);
    }
}

#[test]
fn a_hangup_reopens_the_log_file() {
    let folder = folder("serve-hangup");
    fs::create_dir(folder.join("logs")).unwrap();
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let port = free_port();
    let mut command = Command::new(EVERBLOOM);
    command
        .args(["serve", "--bind", "127.0.0.1", "--logfile", "logs/a"])
        .args(["--port", &port.to_string()]);
    let mut server = Process::start(&mut command, &folder);
    wait_for("the server", || read("logs/a").contains(" INFO ready"));
    let mut client = Client::connect(("127.0.0.1", port));

    fs::rename(folder.join("logs/a"), folder.join("logs/a.1")).unwrap();
    kill(&server, "HUP");
    wait_for("the new file", || {
        read("logs/a").contains("received SIGHUP")
    });
    client.ok("BGSAVE");
    client.until("rdb_bgsave_in_progress", "0");
    wait_for("a line", || read("logs/a").contains("saved dump.rdb"));
    assert!(!read("logs/a.1").contains("saved dump.rdb"));

    // What cannot be opened leaves the log where it is.
    fs::rename(folder.join("logs"), folder.join("moved")).unwrap();
    kill(&server, "HUP");
    wait_for("the error", || {
        read("moved/a").contains("cannot write the log logs/a: ")
    });
    client.ok("PING");
    kill(&server, "TERM");
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(read("moved/a").trim_end().ends_with("stopped"));
}

/// Each line is an object, in the file that was moved away and in the new one.
#[test]
fn the_log_is_json_if_that_is_wanted() {
    let folder = folder("serve-json");
    let port = free_port();
    let mut command = Command::new(EVERBLOOM);
    command
        .args(["serve", "--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(["--log-format", "json", "--logfile", "a", "--hz", "10"])
        .args(["--lfu-log-factor", "5"]);
    let mut server = Process::start(&mut command, &folder);
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    wait_for("the server", || read("a").contains("\"ready\""));
    let mut client = Client::connect(("127.0.0.1", port));
    fs::rename(folder.join("a"), folder.join("a.1")).unwrap();
    kill(&server, "HUP");
    wait_for("the new file", || read("a").contains("received SIGHUP"));
    client.ok("SAVE");
    kill(&server, "TERM");
    assert_eq!(server.wait().unwrap().code(), Some(0));

    let messages = |file: &str| -> Vec<String> { read(file).lines().map(message).collect() };
    let (before, after) = (messages("a.1"), messages("a"));
    assert!(before.contains(&"INFO ready".into()), "{before:?}");
    let warning = "WARN the setting 'lfu-log-factor' has no effect here";
    assert!(before.contains(&warning.into()), "{before:?}");
    assert!(
        after.iter().any(|line| line.contains("saved dump.rdb")),
        "{after:?}"
    );
    assert_eq!(after.last().unwrap(), "INFO stopped");
}

/// Level and message of a line of JSON, which has no other fields than these and the time.
fn message(line: &str) -> String {
    let parsed: serde_json::Value = serde_json::from_str(line).unwrap();
    let field = |name: &str| {
        let value = parsed.get(name).and_then(serde_json::Value::as_str);
        value.unwrap_or_else(|| panic!("{line}"))
    };
    let time = field("timestamp");
    assert!(time.starts_with("20") && time.ends_with('Z'), "{line}");
    assert_eq!(parsed.as_object().unwrap().len(), 3, "{line}");
    format!("{} {}", field("level"), field("message"))
}

#[test]
fn what_clients_send_adds_no_line_to_the_log_and_moves_no_cursor() {
    for format in ["text", "json"] {
        let folder = folder(&format!("serve-escape-{format}"));
        let words = ["--enable-protected-configs", "local", "--loglevel", "debug"];
        let server = Server::on(&folder, &[&words[..], &["--log-format", format]].concat());
        let mut client = server.client();
        let name = "a\nFAKE LINE\r\t\x1b[31m\u{9b}2J\x07\x08\x0b";
        let set = client.call(&["CONFIG", "SET", "dbfilename", name]);
        assert_eq!(set, Reply::OK);
        client.ok("SAVE");
        let mut bad = server.client();
        bad.stream.write_all(b"*1\r\n\x1b\r\n").unwrap();
        assert!(bad.reply().is_error());
        wait_for("both lines", || {
            let log = server.log();
            log.contains("saved a") && log.contains("ended the connection")
        });
        let log = server.log();
        let lines = log.lines().filter(|line| !line.is_empty());
        for line in lines {
            assert!(
                line.starts_with(if format == "json" { "{" } else { "20" }),
                "{log}"
            );
            assert!(!line.contains(char::is_control), "{log:?}");
        }
        let shown = match format {
            "json" => r"saved a\nFAKE LINE\r\t\u001b[31m\u009b2J\u0007\b\u000b, ",
            _ => r"saved a\nFAKE LINE\r\t\x1b[31m\u{9b}2J\x07\x08\u000b, ",
        };
        assert!(log.contains(shown), "{log}");
    }
}

/// Clients that are connected, and one in the middle of a request, keep nobody waiting.
#[test]
fn a_signal_saves_what_the_settings_say_and_the_end_comes_soon() {
    for (save, saved) in [("3600 1", true), ("", false)] {
        let folder = folder(&format!("serve-save-{saved}"));
        let words = ["--appendonly", "no", "--save", save];
        let mut server = Server::on(&folder, &words);
        let mut client = server.client();
        client.ok("BF.ADD seen x");
        let mut slow = server.client();
        slow.stream
            .write_all(b"*3\r\n$6\r\nBF.ADD\r\n$4\r\n")
            .unwrap();
        let begun = Instant::now();
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0), "{}", server.log());
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{}",
            server.log()
        );
        let file = folder.join("everbloom-data/dump.rdb");
        assert_eq!(file.exists(), saved, "{}", server.log());
        let server = Server::on(&folder, &words);
        assert_eq!(server.client().number("EXISTS seen"), i64::from(saved));
    }
}

/// The data is nowhere else. A second signal says that it may be lost.
#[test]
fn a_signal_does_not_end_it_while_the_last_snapshot_fails() {
    for mended in [false, true] {
        let folder = folder(&format!("serve-unsaved-{mended}"));
        let words = ["--appendonly", "no"];
        let mut server = Server::on(&folder, &words);
        let mut client = server.client();
        client.ok("BF.ADD seen x");
        // A folder has the snapshot's name.
        let snapshot = folder.join("everbloom-data/dump.rdb");
        fs::create_dir(&snapshot).unwrap();
        server.signal("TERM");
        wait_for("the refusal", || {
            server.log().contains("not stopping, because the snapshot")
        });
        assert!(client.error("BF.ADD seen y").starts_with("MISCONF"));
        assert_eq!(client.number("BF.EXISTS seen x"), 1);
        if mended {
            fs::remove_dir(&snapshot).unwrap();
        }
        server.signal("INT");
        let code = server.wait();
        assert_eq!(code, Some(i32::from(!mended)), "{}", server.log());
        if mended {
            let server = Server::on(&folder, &words);
            assert_eq!(server.client().number("BF.EXISTS seen x"), 1);
        } else {
            assert!(server.log().contains("the snapshot at the end failed"));
        }
    }
}

/// A file has the name of the log's directory, so no log can be begun.
#[test]
fn a_log_that_could_not_be_begun_is_told_everywhere() {
    let (folder, metrics) = (folder("serve-no-log"), free_port());
    let port = metrics.to_string();
    let mut server = Server::on(&folder, &["--appendonly", "no", "--metrics-port", &port]);
    let mut client = server.client();
    client.ok("BF.ADD seen x");
    let log = folder.join("everbloom-data/appendonlydir");
    fs::write(&log, "").unwrap();
    client.ok("CONFIG SET appendonly yes");
    client.until("aof_last_bgrewrite_status", "err");
    assert!(client.error("BF.ADD seen y").starts_with("MISCONF"));
    assert_eq!(client.info("aof_enabled"), "0");
    assert_eq!(ready(metrics), "HTTP/1.1 503 Service Unavailable");
    server.signal("TERM");
    assert_eq!(server.wait(), Some(1), "{}", server.log());
    assert!(!server.log().contains("the log is complete"));
    // The last snapshot has what was acknowledged.
    fs::remove_file(&log).unwrap();
    let server = Server::on(&folder, &[]);
    assert_eq!(server.client().number("BF.EXISTS seen x"), 1);
    assert_eq!(server.client().number("BF.EXISTS seen y"), 0);
}

/// It is newer than the log, and a start with the same command line must find it.
#[test]
fn a_snapshot_after_the_log_was_switched_off_is_loaded() {
    for signal in ["TERM", "KILL"] {
        let folder = folder(&format!("serve-newest-{signal}"));
        let mut server = Server::on(&folder, &[]);
        let mut client = server.client();
        client.ok("BF.ADD seen logged");
        client.ok("CONFIG SET appendonly no");
        client.ok("BF.ADD seen saved");
        client.ok("SAVE");
        server.signal(signal);
        server.wait();
        let mut server = Server::on(&folder, &[]);
        let mut client = server.client();
        assert_eq!(client.number("BF.EXISTS seen saved"), 1);
        // The log that begins there is the newest from now on.
        client.ok("BF.ADD seen more");
        server.signal("KILL");
        server.wait();
        let server = Server::on(&folder, &[]);
        for item in ["logged", "saved", "more"] {
            let found = server.client().number(&format!("BF.EXISTS seen {item}"));
            assert_eq!(found, 1, "{item}");
        }
    }
}

#[test]
fn a_manifest_that_was_cut_off_stops_the_start() {
    let folder = folder("serve-cut");
    let mut server = Server::on(&folder, &[]);
    server.client().ok("BF.ADD seen x");
    server.signal("KILL");
    server.wait();
    let log = folder.join("everbloom-data/appendonlydir");
    let manifest = log.join("appendonly.aof.manifest");
    let whole = fs::read_to_string(&manifest).unwrap();
    let line = whole.split_inclusive('\n').next().unwrap();
    for damaged in [line.to_owned(), whole.replace("type i", "type h")] {
        fs::write(&manifest, &damaged).unwrap();
        let outcome = serve(&folder, &["--port", "0"]);
        assert_eq!(outcome.status.code(), Some(1), "{}", outcome.stdout);
        for name in [
            "appendonly.aof.manifest: ",
            "appendonlydir/appendonly.aof.1.incr.aof",
        ] {
            assert!(outcome.stdout.contains(name), "{}", outcome.stdout);
        }
        assert_eq!(fs::read_to_string(&manifest).unwrap(), damaged);
    }
    fs::write(&manifest, whole).unwrap();
    let server = Server::on(&folder, &[]);
    assert_eq!(server.client().number("BF.EXISTS seen x"), 1);
}

/// What `/ready` answers.
fn ready(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap().to_owned()
}

/// A limit on the length of files stands for a disk that is full, and is lifted later.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_refuses_writes_and_loses_none_that_was_acknowledged() {
    if !peers::is_there(
        Command::new("prlimit").arg("-V"),
        "apt-get install util-linux",
    ) {
        return;
    }
    let (folder, metrics) = (folder("serve-full-disk"), free_port());
    let limited = "trap '' XFSZ; ulimit -S -f 128; exec \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, "sh"]);
    let words = ["--metrics-port", &metrics.to_string()];
    let (mut server, mut client) = started(shell, &folder, &words, Stdio::null(), Stdio::null());
    let item = |number: usize| format!("{number:0100}");
    let mut control = Client::connect(client.stream.peer_addr().unwrap());
    let full = AtomicBool::new(false);
    let acknowledged = thread::scope(|scope| {
        let adding = scope.spawn(|| {
            let mut acknowledged = 0;
            while !full.load(Ordering::Relaxed) {
                // The reply to the add that fills the disk comes when there is room.
                match client.call(&["BF.ADD", "seen", &item(acknowledged)]) {
                    Reply::Integer(_) => acknowledged += 1,
                    refusal => panic!("{refusal:?}"),
                }
            }
            acknowledged
        });
        let stop = StopOnDrop(&full);
        control.until("aof_last_write_status", "err");
        drop(stop);
        assert!(control.error("BF.ADD seen x").starts_with("MISCONF"));
        assert_eq!(ready(metrics), "HTTP/1.1 503 Service Unavailable");
        let pid = server.id().to_string();
        run(Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:"])).success();
        control.until("aof_last_write_status", "ok");
        adding.join().unwrap()
    });
    assert!(acknowledged > 100, "{acknowledged}");
    assert_eq!(ready(metrics), "HTTP/1.1 200 OK");
    kill(&server, "KILL");
    server.wait().unwrap();
    let server = Server::on(&folder, &[]);
    let mut client = server.client();
    for number in 0..acknowledged {
        let found = client.call(&["BF.EXISTS", "seen", &item(number)]);
        assert_eq!(found, Reply::Integer(1), "{number} of {acknowledged}");
    }
}

#[test]
fn other_signals_do_nothing() {
    let server = Server::start();
    let mut client = server.client();
    for signal in ["HUP", "USR1", "USR2", "PIPE", "ALRM"] {
        server.signal(signal);
    }
    for _ in 0..100 {
        client.ok("PING");
    }
    assert!(!server.log().contains("stopping"), "{}", server.log());
}

#[test]
fn values_of_other_types_are_refused_once() {
    let folder = folder("serve-other-types");
    // A list of one element, "e", and no checksum.
    let list = b"REDIS0006\xfe\x00\x01\x01k\x01\x01e\xff\0\0\0\0\0\0\0\0";
    fs::create_dir(folder.join("everbloom-data")).unwrap();
    fs::write(folder.join("everbloom-data/dump.rdb"), list).unwrap();
    let refusal = "dump.rdb: it holds values of types that this server does not have: ";
    let words = ["--bind", "127.0.0.1", "--port", "0"];
    let outcome = serve(&folder, &words);
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.status.code(), Some(1), "{said}");
    assert_eq!(said.matches(refusal).count(), 1, "{said}");
    let then = "the server did not start, and the data is as it was: see persistence.md";
    assert!(said.contains(then), "{said}");

    // With a log file, both the file and the terminal say it.
    let outcome = serve(&folder, &[&words[..], &["--logfile", "a.log"]].concat());
    let log = fs::read_to_string(folder.join("a.log")).unwrap();
    assert_eq!(log.matches(refusal).count(), 1, "{log}");
    assert_eq!(
        outcome.stderr.matches(refusal).count(),
        1,
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.status.code(), Some(1));
}

#[test]
fn a_start_that_fails_leaves_no_data_directory() {
    let folder = folder("serve-no-folder");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let outcome = serve(&folder, &["--port", &port, "--bind", "127.0.0.1"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_server_for_other_machines_without_a_password_warns() {
    for (mode, words) in [
        ("yes", "clients of other machines are refused"),
        ("no", "whoever reaches the port can read"),
    ] {
        let folder = folder(&format!("serve-open-{mode}"));
        let mut command = Command::new(EVERBLOOM);
        command.args(["serve", "--bind", "0.0.0.0", "--port", "0"]);
        let _server = Process::start(command.args(["--protected-mode", mode]), &folder);
        wait_for("the warning", || {
            let log = fs::read_to_string(folder.join("log")).unwrap();
            log.contains("WARN") && log.contains(words)
        });
    }
    assert!(!Server::start().log().contains("there is no password"));
}

#[test]
fn errors_at_the_start_are_one_clear_line() {
    let folder = folder("serve-errors");
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
            Some(2),
            "{words:?}: {}",
            outcome.stderr
        );
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        let expected = format!("everbloom: {message}");
        assert!(outcome.stderr.starts_with(&expected), "{}", outcome.stderr);
    }
}

#[test]
#[cfg(unix)]
fn a_service_manager_is_told_when_it_is_ready_and_when_it_ends() {
    use std::os::unix::net::UnixDatagram;
    use std::process::Command;

    let folder = folder("serve-notify");
    let socket = folder.join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    let mut command = Command::new(crate::support::EVERBLOOM);
    command
        .args(["serve", "--bind", "127.0.0.1", "--port", "0"])
        .env("NOTIFY_SOCKET", &socket);
    let mut server = everbloom_dev::Process::start(&mut command, &folder);
    let mut message = [0; 100];
    let mut told = || {
        let length = manager.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    assert_eq!(told(), "READY=1\n");
    crate::support::run(Command::new("kill").arg(server.id().to_string())).success();
    assert_eq!(told(), "STOPPING=1\n");
    assert!(server.wait().unwrap().success());
}

#[test]
fn the_log_has_colours_on_a_terminal_only_if_they_are_wanted() {
    let folder = folder("serve-colours");
    // It ends at once, after a line of the log: this is no file of its own.
    fs::write(folder.join("dump.rdb"), "nonsense").unwrap();
    let serve = format!(
        "{EVERBLOOM} serve --port 0 --appendonly no --dir {}",
        folder.display()
    );
    for (no_color, coloured) in [("", true), ("1", false)] {
        let Some(mut script) = on_terminal(&serve) else {
            return;
        };
        let shown = run(script.env("NO_COLOR", no_color)).stdout;
        assert!(shown.contains("everbloom"), "{shown}");
        assert_eq!(shown.contains('\x1b'), coloured, "{shown}");
    }
}
