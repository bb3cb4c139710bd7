//! The log: where it goes, its form, and readers that die.

use super::*;

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

/// The AOF is in trouble, then switched off, and the last snapshot has failed: writes are refused all
/// the time, for one reason or the other.
#[test]
fn it_says_that_writes_are_taken_again_when_they_are() {
    let folder = folder("serve-taken-again");
    let server = Server::on(&folder, &["--save", "3600 1"]);
    let mut client = server.client();
    let data = folder.join("everbloom-data");
    client.ok("SET a 1");
    fs::create_dir(data.join("temp.rdb")).unwrap();
    client.error("SAVE");
    client.ok("SET a 2");
    assert!(!server.log().contains("refused"), "{}", server.log());
    // The AOF cannot be rewritten into a file.
    fs::rename(data.join("appendonlydir"), data.join("away")).unwrap();
    fs::write(data.join("appendonlydir"), "").unwrap();
    client.until("aof_last_write_status", "err");
    client.ok("CONFIG SET appendonly no");
    client.until("aof_last_write_status", "ok");
    client.error("SET a 3");
    wait_for("the line about the AOF", || {
        server.log().contains("the AOF is no longer in trouble")
    });
    assert!(!server.log().contains("taken again"), "{}", server.log());
    fs::remove_file(data.join("appendonlydir")).unwrap();
    fs::remove_dir(data.join("temp.rdb")).unwrap();
    wait_for("the line", || {
        server.log().contains(" writes are taken again\n")
    });
    client.ok("SET a 3");
}

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

/// RedisBloom accepts such a word, so the client is not told. Somebody should be.
#[test]
fn the_first_word_that_says_nothing_is_logged() {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(client.line("BF.RESERVE k 0.01 100 NOSCALING"), Reply::OK);
    assert_eq!(client.line("CF.RESERVE c 100 BUCKETS 2"), Reply::OK);
    let line = "WARN BF.RESERVE ignored the word 'NOSCALING', as RedisBloom does";
    wait_for("the line", || server.log().contains(line));
    assert_eq!(server.log().matches("ignored the word").count(), 1);
}
