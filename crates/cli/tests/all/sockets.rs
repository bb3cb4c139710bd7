//! TLS and Unix sockets, as other people's programs use them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{EVERBLOOM, Outcome, Peer, folder, root, run, run_with_input};
use everbloom_dev::{Process, free_port, peers, wait_for};

fn certificates() -> PathBuf {
    root().join("crates/cli/tests/certificates")
}

/// A server that listens where its settings say, killed when dropped.
struct Running {
    process: Process,
    folder: PathBuf,
}

impl Running {
    fn start(folder: &Path, words: &[&str]) -> Running {
        let mut command = Command::new(EVERBLOOM);
        command.arg("serve").args(words).args(["--port", "0"]);
        let process = Process::start(&mut command, folder);
        let folder = folder.to_owned();
        let server = Running { process, folder };
        server.says("ready");
        server
    }

    fn says(&self, what: &str) {
        wait_for(what, || {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            log.contains(what)
        });
    }

    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        run(Command::new("kill").args(["-s", name, &pid])).success();
    }

    fn end(mut self) {
        self.signal("TERM");
        wait_for("the end", || self.process.try_wait().unwrap().is_some());
    }
}

/// A folder with what a server of TLS needs, which speaks it on this port.
fn tls_server(test: &str, more: &[&str]) -> (Running, PathBuf, u16) {
    let folder = folder(test);
    for (from, to) in [
        ("server.crt", "cert"),
        ("server.key", "key"),
        ("authority.crt", "ca"),
    ] {
        fs::copy(certificates().join(from), folder.join(to)).unwrap();
    }
    let port = free_port();
    let number = port.to_string();
    let words = ["--bind", "127.0.0.1", "--tls-port", &number];
    let files = ["--tls-cert-file", "cert", "--tls-key-file", "key"];
    let ca = ["--tls-ca-cert-file", "ca"];
    let server = Running::start(&folder, &[&words[..], &files, &ca, more].concat());
    (server, folder, port)
}

/// redis-cli over TLS, which trusts this authority and shows this certificate.
fn over_tls(port: u16, authority: &str, certificate: Option<&str>, line: &str) -> Option<Outcome> {
    let probe = &mut Command::new("redis-cli");
    if !peers::is_there(probe.arg("--version"), "apt-get install redis-tools") {
        return None;
    }
    let mut command = Command::new("redis-cli");
    let port = port.to_string();
    let authority = certificates().join(format!("{authority}.crt"));
    command
        .args(["-e", "-h", "localhost", "-p", &port, "--tls", "--cacert"])
        .arg(authority);
    if let Some(name) = certificate {
        for (flag, kind) in [("--cert", "crt"), ("--key", "key")] {
            let file = certificates().join(format!("{name}.{kind}"));
            command.arg(flag).arg(file);
        }
    }
    Some(run(command.args(line.split(' '))))
}

fn openssl(port: u16, more: &[&str]) -> Option<Outcome> {
    let probe = &mut Command::new("openssl");
    if !peers::is_there(probe.arg("version"), "apt-get install openssl") {
        return None;
    }
    let at = format!("127.0.0.1:{port}");
    let mut command = Command::new("openssl");
    command.args(["s_client", "-brief", "-ign_eof", "-connect", &at]);
    let feed = |input: &mut dyn Write| input.write_all(b"PING\r\nQUIT\r\n");
    Some(run_with_input(command.args(more), feed))
}

#[test]
fn clients_show_certificates() {
    let (_server, _, port) = tls_server("tls-clients", &[]);
    let ask = |certificate, line: &str| over_tls(port, "authority", certificate, line);
    let Some(outcome) = ask(Some("client"), "BF.ADD seen x") else {
        return;
    };
    assert_eq!(outcome.success(), "1\n");
    assert_eq!(
        ask(Some("client"), "BF.EXISTS seen x").unwrap().stdout,
        "1\n"
    );
    // A missing one, one whose time is over, and one that another authority gave.
    for wrong in [None, Some("expired"), Some("stranger")] {
        let outcome = ask(wrong, "BF.EXISTS seen x").unwrap();
        assert_ne!(outcome.status.code(), Some(0), "{wrong:?}: {outcome:?}");
        assert!(outcome.stdout.is_empty(), "{wrong:?}: {outcome:?}");
    }
    // A client that trusts another authority does not talk to this server.
    let outcome = over_tls(port, "elsewhere", Some("client"), "PING").unwrap();
    assert!(outcome.stdout.is_empty(), "{outcome:?}");
}

#[test]
fn certificates_of_clients_may_be_optional() {
    let (_server, _, port) = tls_server("tls-optional", &["--tls-auth-clients", "optional"]);
    let Some(outcome) = over_tls(port, "authority", None, "PING") else {
        return;
    };
    assert_eq!(outcome.stdout, "PONG\n");
    let ask = |certificate| over_tls(port, "authority", Some(certificate), "PING").unwrap();
    assert_eq!(ask("client").stdout, "PONG\n");
    assert!(ask("stranger").stdout.is_empty());
}

#[test]
fn only_the_versions_that_are_asked_for() {
    let one = ["--tls-auth-clients", "no", "--tls-protocols", "TLSv1.3"];
    let (_server, _, port) = tls_server("tls-versions", &one);
    let Some(outcome) = openssl(port, &["-tls1_3"]) else {
        return;
    };
    assert!(outcome.stdout.contains("+PONG"), "{outcome:?}");
    let outcome = openssl(port, &["-tls1_2"]).unwrap();
    assert!(!outcome.stdout.contains("+PONG"), "{outcome:?}");
    let (_server, _, port) = tls_server("tls-both", &["--tls-auth-clients", "no"]);
    for version in ["-tls1_2", "-tls1_3"] {
        let outcome = openssl(port, &[version]).unwrap();
        assert!(outcome.stdout.contains("+PONG"), "{outcome:?}");
    }
    // What is not TLS gets no answer, and harms nobody.
    let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    plain.write_all(b"PING\r\n").unwrap();
    let mut heard = Vec::new();
    let _ = plain.read_to_end(&mut heard);
    assert!(!heard.starts_with(b"+"), "{heard:?}");
}

#[test]
fn files_are_read_anew() {
    let (server, folder, port) = tls_server("tls-renewed", &["--tls-auth-clients", "no"]);
    let Some(outcome) = openssl(port, &[]) else {
        return;
    };
    assert!(outcome.stderr.contains("CN = server"), "{outcome:?}");
    let renew = |name: &str| {
        for (kind, to) in [("crt", "cert"), ("key", "key")] {
            let from = certificates().join(format!("{name}.{kind}"));
            fs::copy(from, folder.join(to)).unwrap();
        }
    };
    renew("renewed");
    server.signal("HUP");
    server.says("read the files of TLS");
    let outcome = openssl(port, &[]).unwrap();
    assert!(outcome.stderr.contains("CN = renewed"), "{outcome:?}");
    // CONFIG SET of the same name reads them, too.
    renew("server");
    let set = |line: &str| over_tls(port, "authority", None, line);
    let Some(outcome) = set("CONFIG SET tls-cert-file cert") else {
        return;
    };
    assert_eq!(outcome.stdout, "OK\n", "{outcome:?}");
    let outcome = openssl(port, &[]).unwrap();
    assert!(outcome.stderr.contains("CN = server"), "{outcome:?}");
    // Wrong files change nothing.
    fs::write(folder.join("cert"), "no certificate").unwrap();
    server.signal("HUP");
    server.says("TLS goes on as before: cert: no certificate in PEM form");
    let outcome = set("CONFIG SET tls-protocols TLSv1.2").unwrap();
    let refused = outcome.stdout + &outcome.stderr;
    assert!(
        refused.contains("(possibly related to argument 'tls-protocols')"),
        "{refused}"
    );
    assert!(
        refused.contains("cert: no certificate in PEM form"),
        "{refused}"
    );
    assert_eq!(set("PING").unwrap().stdout, "PONG\n");
}

#[test]
fn a_server_that_cannot_speak_tls_does_not_start() {
    let folder = folder("tls-wrong");
    let file = |name: &str| certificates().join(name).to_str().unwrap().to_owned();
    let port = free_port().to_string();
    let (cert, key, other) = (file("server.crt"), file("server.key"), file("client.key"));
    let (cert, key, other) = (cert.as_str(), key.as_str(), other.as_str());
    for (words, message) in [
        (&[][..], "tls-port needs tls-cert-file"),
        (&["--tls-cert-file", cert], "tls-port needs tls-key-file"),
        (
            &["--tls-cert-file", cert, "--tls-key-file", key],
            "tls-auth-clients needs tls-ca-cert-file",
        ),
        (
            &[
                "--tls-cert-file",
                "absent",
                "--tls-key-file",
                key,
                "--tls-auth-clients",
                "no",
            ],
            "absent: No such file",
        ),
        (
            &["--tls-cert-file", cert, "--tls-key-file", cert],
            "server.crt: no private key in PEM form",
        ),
        (
            &[
                "--tls-cert-file",
                cert,
                "--tls-key-file",
                other,
                "--tls-auth-clients",
                "no",
            ],
            "server.crt: keys may not be consistent",
        ),
    ] {
        let mut command = Command::new(EVERBLOOM);
        command.args(["serve", "--port", "0", "--tls-port", &port]);
        let outcome = run(command.args(words).current_dir(&folder));
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(message), "{message}: {outcome:?}");
    }
}

#[test]
fn redis_py_over_tls_and_a_unix_socket() {
    let socket = folder("py").join("s");
    let more = ["--unixsocket", socket.to_str().unwrap()];
    let (_server, _, port) = tls_server("tls-py", &more);
    let Some(mut python) = Peer::Python.find() else {
        return;
    };
    let script = format!(
        "import redis\n\
         files = {:?} + '/'\n\
         tls = redis.Redis(port={port}, ssl=True, ssl_ca_certs=files + 'authority.crt',\n\
             ssl_certfile=files + 'client.crt', ssl_keyfile=files + 'client.key')\n\
         unix = redis.Redis(unix_socket_path={:?})\n\
         items = [str(i) for i in range(100000)]\n\
         assert sum(tls.bf().madd('seen', *items)) > 90000\n\
         assert all(unix.bf().mexists('seen', *items))\n\
         text = bytes(range(256)) * 100000\n\
         for client, other in [(tls, unix), (unix, tls)]:\n\
         \x20   assert client.set('text', text) and other.get('text') == text\n\
         pipe = tls.pipeline(transaction=False)\n\
         for item in items:\n\
         \x20   pipe.execute_command('BF.EXISTS', 'seen', item)\n\
         assert all(pipe.execute())\n",
        certificates().to_str().unwrap(),
        socket.to_str().unwrap(),
    );
    run(python.args(["-W", "error::ResourceWarning", "-c", &script])).success();
}

fn ping(path: &Path) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    stream.read_exact(&mut reply).unwrap();
    String::from_utf8_lossy(&reply).into()
}

#[test]
fn a_unix_socket() {
    let folder = folder("unix");
    let path = folder.join("s");
    let start = || {
        let words = ["--unixsocket", "s", "--unixsocketperm", "750"];
        Running::start(&folder, &words)
    };
    // One that a server has left which nobody listens to any more.
    drop(UnixListener::bind(&path).unwrap());
    let mut server = start();
    server.says("listens on s, process");
    assert_eq!(ping(&path), "+PONG\r\n");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"CLIENT LIST\r\n").unwrap();
    let mut heard = [0; 200];
    let length = stream.read(&mut heard).unwrap();
    let list = String::from_utf8_lossy(&heard[..length]).into_owned();
    assert!(list.contains(" addr=s:0 laddr=s:0 "), "{list}");
    assert!(list.contains(" flags=U "), "{list}");
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    drop(server);
    fs::remove_file(folder.join("log")).unwrap();
    let server = start();
    assert_eq!(ping(&path), "+PONG\r\n");
    server.end();
    assert!(!path.exists(), "a socket that nobody listens to is left");
}

#[test]
fn a_plain_client_at_a_port_of_tls_is_told_so() {
    let (_server, _, port) = tls_server("tls-plain", &[]);
    let mut command = Command::new(EVERBLOOM);
    let outcome = run(command.args(["query", "-p", &port.to_string(), "PING"]));
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    assert!(
        outcome.stderr.contains("is this a port of TLS?"),
        "{outcome:?}"
    );
}

/// As whoever begins with TLS makes one, and as the guide says.
#[test]
fn a_certificate_that_signed_itself() {
    let folder = folder("tls-self-signed");
    let probe = &mut Command::new("openssl");
    if !peers::is_there(probe.arg("version"), "apt-get install openssl") {
        return;
    }
    for (more, says) in [
        (&[][..], "basicConstraints=critical,CA:FALSE"),
        (&["-addext", "basicConstraints=critical,CA:FALSE"], ""),
    ] {
        let mut openssl = Command::new("openssl");
        openssl.args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
        ]);
        openssl.args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ]);
        openssl.args(more).args(["-keyout", "key", "-out", "cert"]);
        run(openssl.current_dir(&folder)).success();
        let _ = fs::remove_file(folder.join("log"));
        let port = free_port().to_string();
        let words = ["--bind", "127.0.0.1", "--tls-port", &port];
        let files = ["--tls-cert-file", "cert", "--tls-key-file", "key"];
        let auth = ["--tls-auth-clients", "no"];
        let server = Running::start(&folder, &[&words[..], &files, &auth].concat());
        let mut command = Command::new(EVERBLOOM);
        let flags = ["query", "--tls", "-h", "localhost", "-p", &port];
        command.args(flags).args(["--cacert", "cert", "PING"]);
        let outcome = run(command.current_dir(&folder));
        match says {
            "" => assert_eq!(outcome.success(), "PONG\n"),
            says => {
                assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
                assert!(outcome.stderr.contains(says), "{outcome:?}");
            }
        }
        server.end();
    }
}

#[test]
fn a_socket_on_which_another_server_answers_is_left_alone() {
    let folder = folder("unix-taken");
    let path = folder.join("s");
    let server = Running::start(&folder, &["--unixsocket", "s"]);
    let mut command = Command::new(EVERBLOOM);
    command.args([
        "serve",
        "--port",
        "0",
        "--unixsocket",
        "s",
        "--dir",
        "other",
    ]);
    let outcome = run(command.current_dir(&folder));
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    let message = "cannot listen on s: address in use: another server answers there";
    assert!(outcome.stderr.contains(message), "{outcome:?}");
    assert_eq!(ping(&path), "+PONG\r\n");
    server.end();
    assert!(!path.exists());
}

#[test]
fn a_file_at_the_sockets_path_is_left_alone() {
    let folder = folder("unix-file");
    fs::write(folder.join("s"), "text").unwrap();
    let mut command = Command::new(EVERBLOOM);
    command.args(["serve", "--port", "0", "--unixsocket", "s"]);
    let outcome = run(command.current_dir(&folder));
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    let message = "cannot listen on s: a file that is no socket is there";
    assert!(outcome.stderr.contains(message), "{outcome:?}");
    assert_eq!(fs::read_to_string(folder.join("s")).unwrap(), "text");
    assert!(
        !fs::metadata(folder.join("s"))
            .unwrap()
            .file_type()
            .is_socket()
    );
}

/// Runs a subcommand that trusts the tests' authority and shows a client's certificate.
fn everbloom(words: &[&str]) -> Outcome {
    let file = |name: &str| certificates().join(name);
    let mut command = Command::new(EVERBLOOM);
    command.args(words);
    command.arg("--cacert").arg(file("authority.crt"));
    command.arg("--cert").arg(file("client.crt"));
    run(command.arg("--cert-key").arg(file("client.key")))
}

#[test]
fn every_tool_speaks_both() {
    let socket = folder("tools").join("s");
    let more = ["--unixsocket", socket.to_str().unwrap()];
    let (_server, folder, port) = tls_server("tls-tools", &more);
    let (secure, local) = (
        format!("rediss://localhost:{port}"),
        format!("unix://{}", socket.display()),
    );
    let number = port.to_string();
    let query = ["query", "-h", "localhost", "-p", &number, "--tls"];
    let mut asked = Command::new(EVERBLOOM);
    asked.args(query).arg("--cacert");
    asked
        .arg(certificates().join("authority.crt"))
        .arg("--cert");
    asked
        .arg(certificates().join("client.crt"))
        .arg("--cert-key");
    asked.arg(certificates().join("client.key"));
    let added = run(asked.args(["BF.ADD", "seen", "x"]));
    assert_eq!(added.success(), "(integer) 1\n");
    let mut asked = Command::new(EVERBLOOM);
    asked.args(["query", "-s"]).arg(&socket);
    let known = run(asked.args(["BF.EXISTS", "seen", "x"]));
    assert_eq!(known.success(), "(integer) 1\n");
    // More requests and more bytes at once than buffers take.
    let load = ["-q", "-c", "4", "-n", "40000", "-P", "20000"];
    let [authority, cert, key] =
        ["authority.crt", "client.crt", "client.key"].map(|name| certificates().join(name));
    if let (Some(mut over_tls), Some(mut over_socket)) =
        (Peer::RedisBenchmark.find(), Peer::RedisBenchmark.find())
    {
        over_tls.args(["-h", "localhost", "-p", &number, "--tls", "--cacert"]);
        over_tls.arg(authority).arg("--cert").arg(cert);
        over_tls.arg("--key").arg(key);
        over_socket.arg("-s").arg(&socket);
        for mut benchmark in [over_tls, over_socket] {
            benchmark.args(load).args(["BF.EXISTS", "seen", "x"]);
            let outcome = run(&mut benchmark);
            assert!(outcome.success().contains("requests per second"));
        }
    }
    for url in [&secure, &local] {
        let size = ["--count", "20000"];
        everbloom(&[&["measure", url][..], &size].concat()).success();
        let mut dedup = Command::new(EVERBLOOM);
        dedup.args(["dedup", "--quiet", "--url", url, "--key", "lines"]);
        for (flag, file) in [
            ("--cacert", "authority.crt"),
            ("--cert", "client.crt"),
            ("--cert-key", "client.key"),
        ] {
            dedup.arg(flag).arg(certificates().join(file));
        }
        let feed = |input: &mut dyn Write| input.write_all(b"a\nb\na\n");
        let lines = run_with_input(&mut dedup, feed).success();
        assert_eq!(lines, if url == &secure { "a\nb\n" } else { "" });
    }
    let other = format!("{local}?db=1");
    everbloom(&["copy", &secure, &other]).success();
    everbloom(&["compare", &secure, &other]).success();
    // Without the authority, the server's certificate is worth nothing.
    let outcome = run(Command::new(EVERBLOOM).args(query).arg("PING"));
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("UnknownIssuer"), "{outcome:?}");
    let absent = folder.join("absent");
    let mut command = Command::new(EVERBLOOM);
    command.args(query).arg("--cacert").arg(&absent).arg("PING");
    let outcome = run(&mut command);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("absent: "), "{outcome:?}");
}
