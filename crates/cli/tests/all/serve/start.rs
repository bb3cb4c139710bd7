//! What is said at the start, and what stops it.

use super::*;

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
    fs::write(folder.join("good.conf"), "# mine\n").unwrap();
    fs::write(folder.join("bad.conf"), "# mine\nport seven\n").unwrap();
    let cases: [(&[&str], String); 9] = [
        (
            &["--port", &port, "--bind", "127.0.0.1"],
            format!("cannot listen on 127.0.0.1:{port}: "),
        ),
        (
            &["-p", "7000"],
            "'-p': write it as --port, such as --port 7000".into(),
        ),
        (
            &["good.conf", "-p", "7000"],
            "'-p': write it as --port, such as --port 7000".into(),
        ),
        (&["-port", "7000"], "'-port': write it as --port".into()),
        (
            &["-d", "x"],
            "'-d': a setting has its whole name and two dashes".into(),
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
    let in_use = serve(&folder, cases[0].0).stderr;
    assert!(in_use.contains("--port 0 for a free one"), "{in_use}");
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
