//! Common code of the tests that need a server or another project's program.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The binary under test.
pub const EVERBLOOM: &str = env!("CARGO_BIN_EXE_everbloom");

/// How long the server may take to answer its first PING.
const START: Duration = Duration::from_secs(30);

/// How long any program may run. A program that hangs must fail the test, not stop it.
const PATIENCE: Duration = Duration::from_secs(300);

/// The folder with the workspace's Cargo.toml.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A server of our own, ended when dropped.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Server {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts `everbloom serve` on a free port of 127.0.0.1 with these further settings.
    pub fn with(settings: &[&str]) -> Self {
        Self::configured(None, settings)
    }

    pub fn configured(file: Option<&str>, settings: &[&str]) -> Self {
        // Another program may take the port before the server binds it. Then try another port.
        for _ in 0..5 {
            if let Some(server) = Self::on(free_port(), file, settings) {
                return server;
            }
        }
        panic!("the server did not start on any of five ports");
    }

    fn on(port: u16, file: Option<&str>, settings: &[&str]) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("server-{port}"));
        // Remove what an earlier test left there, such as a data directory.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let child = Command::new(EVERBLOOM)
            .arg("serve")
            .args(file)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(settings)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Self { child, port };
        let deadline = Instant::now() + START;
        while Instant::now() < deadline {
            if let Some(status) = server.child.try_wait().unwrap() {
                let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
                eprintln!("the server ended at once with {status}:\n{log}");
                return None;
            }
            if answers(port, settings) {
                return Some(server);
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the server to end by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + START;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server did not end within {START:?}");
    }

    /// Runs `everbloom query` against this server.
    pub fn query(&self, args: &[&str]) -> Outcome {
        let port = self.port.to_string();
        run(Command::new(EVERBLOOM)
            .args(["query", "--port", &port])
            .args(args))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Whether a server answers and has loaded its data. If it wants a password that these settings do
/// not have, this does not wait for the data.
fn answers(port: u16, settings: &[&str]) -> bool {
    let password = settings
        .iter()
        .skip_while(|word| **word != "--requirepass")
        .nth(1)
        .unwrap_or(&"");
    let ping = || -> io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        write!(stream, "AUTH \"{password}\"\r\nPING\r\nQUIT\r\n")?;
        let mut replies = String::new();
        stream.read_to_string(&mut replies)?;
        let pong = replies.lines().nth(1).unwrap_or_default();
        Ok(pong == "+PONG" || pong.starts_with("-NOAUTH"))
    };
    ping().unwrap_or(false)
}

/// How a program ended and what it printed.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Returns the output when the program succeeded. Otherwise panics and shows all of it.
    #[track_caller]
    pub fn success(self) -> String {
        assert!(
            self.status.success(),
            "{}\n--- stdout\n{}\n--- stderr\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self.stdout
    }
}

pub fn run(command: &mut Command) -> Outcome {
    run_with_input(command, |_| Ok(()))
}

/// Runs a program to its end while `feed` writes its standard input.
pub fn run_with_input(
    command: &mut Command,
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Outcome {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    // A program that ends early closes the pipe. Its exit code tells more than our EPIPE.
    let feeder = thread::spawn(move || feed(&mut stdin));
    let stdout = drain(child.stdout.take().unwrap());
    let stderr = drain(child.stderr.take().unwrap());
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} did not end within {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(5));
    };
    let _ = feeder.join().unwrap();
    Outcome {
        status,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Another project's program that a test needs, and how to find out whether it is installed.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    RedisCli,
    RedisBenchmark,
    /// Python 3 with redis-py.
    Python,
    /// Node with node-redis in tests/clients/node.
    Node,
}

impl Peer {
    /// The program, or `None` after printing that the test is skipped. With
    /// EVERBLOOM_REQUIRE_PEERS=1 a missing program fails the test instead.
    pub fn find(self) -> Option<Command> {
        let (program, probe, advice): (_, &[&str], _) = match self {
            Peer::RedisCli => ("redis-cli", &["--version"], "install redis-tools"),
            Peer::RedisBenchmark => ("redis-benchmark", &["--version"], "install redis-tools"),
            Peer::Python => ("python3", &["-c", "import redis"], "pip install redis"),
            Peer::Node => (
                "node",
                &["--input-type=module", "-e", "await import('redis')"],
                "npm ci in tests/clients/node",
            ),
        };
        let mut command = Command::new(program);
        if matches!(self, Peer::Node) {
            command.current_dir(root().join("tests/clients/node"));
        }
        command
            .args(probe)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let found = command.status().is_ok_and(|status| status.success());
        if found {
            return Some(Command::new(program));
        }
        let required = std::env::var_os("EVERBLOOM_REQUIRE_PEERS").is_some_and(|v| v == "1");
        assert!(
            !required,
            "{self:?} is missing and EVERBLOOM_REQUIRE_PEERS=1: {advice}"
        );
        // The test harness hides eprintln! when a test passes, so this writes to stderr itself.
        let test = thread::current().name().unwrap_or("a test").to_owned();
        let notice = format!("SKIPPED: {test}: {self:?} is missing: {advice}\n");
        io::stderr().write_all(notice.as_bytes()).unwrap();
        None
    }
}
