//! Common code of the tests that need a server or another project's program.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use everbloom_dev::{Client, Process, peers, wait_for};

/// The binary under test.
pub const EVERBLOOM: &str = env!("CARGO_BIN_EXE_everbloom");

/// How long any program may run: a hanging one must fail the test, not stop it.
const PATIENCE: Duration = Duration::from_secs(300);

/// The folder with the workspace's Cargo.toml.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An empty folder of its own for a test.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The bytes of the filter in a file, without the note of what was compared.
pub fn filter_bytes(file: &Path) -> Vec<u8> {
    let bytes = fs::read(file).unwrap();
    everbloom::bytes::Note::split(&bytes).unwrap().1.to_vec()
}

/// A server of our own, killed when dropped.
pub struct Server {
    process: Process,
    folder: PathBuf,
    pub port: u16,
}

impl Server {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts `everbloom serve` with these words, a file's name or settings.
    pub fn with(words: &[&str]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        Self::on(
            &folder(&format!("server-{}-{number}", std::process::id())),
            words,
        )
    }

    /// Starts one on what is in a folder, on a port that the system chooses.
    pub fn on(folder: &Path, words: &[&str]) -> Self {
        Self::by(Command::new(EVERBLOOM), folder, words)
    }

    /// The same, with a limit on the length of files: to its log, the disk is full then.
    pub fn on_small_disk(folder: &Path, kilobytes: u32, words: &[&str]) -> Self {
        let limited = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", 2 * kilobytes);
        let mut shell = Command::new("sh");
        shell.args(["-c", &limited, "sh", EVERBLOOM]);
        Self::by(shell, folder, words)
    }

    fn by(mut command: Command, folder: &Path, words: &[&str]) -> Self {
        let _ = fs::remove_file(folder.join("log"));
        command
            .arg("serve")
            .args(words)
            .args(["--bind", "127.0.0.1", "--port", "0"]);
        let process = Process::start(&mut command, folder);
        let mut server = Self {
            process,
            folder: folder.into(),
            port: 0,
        };
        wait_for("the server", || {
            let ended = server.process.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "the server ended at once:\n{}",
                server.log()
            );
            server.port = server.port().unwrap_or(0);
            server.port != 0 && server.is_loaded(words)
        });
        server
    }

    /// Whether it has loaded what there is. It tells only those that know the password.
    fn is_loaded(&self, words: &[&str]) -> bool {
        let mut client = self.client();
        let mut rest = words.iter().skip_while(|word| **word != "--requirepass");
        if let Some(password) = rest.nth(1) {
            client.call(&["AUTH", password]);
        }
        client.is_loaded().unwrap_or(false)
    }

    /// The port in the line with which it says where it listens.
    fn port(&self) -> Option<u16> {
        let log = self.log();
        let (_, rest) = log.split_once("listens on 127.0.0.1:")?;
        rest.split_once(',')?.0.parse().ok()
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn client(&self) -> Client {
        Client::connect(("127.0.0.1", self.port))
    }

    /// All that it said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }

    pub fn signal(&self, name: &str) {
        run(Command::new("kill").args(["-s", name, &self.pid().to_string()])).success();
    }

    /// Its exit code, once it has ended by itself.
    pub fn wait(&mut self) -> Option<i32> {
        wait_for("the end of the server", || {
            self.process.try_wait().unwrap().is_some()
        });
        self.process.wait().unwrap().code()
    }

    /// Runs `everbloom query` against this server.
    pub fn query(&self, args: &[&str]) -> Outcome {
        let port = self.port.to_string();
        run(Command::new(EVERBLOOM)
            .args(["query", "--port", &port])
            .args(args))
    }
}

/// What a program did.
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
    /// Python 3 with redis-py and mmh3.
    Python,
    /// Node with node-redis in tests/clients/node.
    Node,
    /// Go, which fetches go-redis by itself.
    Go,
    /// `script`, which runs a program in a terminal.
    Script,
}

impl Peer {
    /// The program; without it the test skips, loudly, or fails when peers are required.
    pub fn find(self) -> Option<Command> {
        let (program, args, advice): (_, &[&str], _) = match self {
            Peer::RedisCli => ("redis-cli", &["--version"], "install redis-tools"),
            Peer::RedisBenchmark => ("redis-benchmark", &["--version"], "install redis-tools"),
            Peer::Python => (
                "python3",
                &["-c", "import redis, mmh3"],
                "pip install redis mmh3",
            ),
            Peer::Node => (
                "node",
                &["--input-type=module", "-e", "await import('redis')"],
                "npm ci in tests/clients/node",
            ),
            Peer::Go => (
                "go",
                &["mod", "download"],
                "install the Go that tests/clients/go/go.mod asks for",
            ),
            Peer::Script => ("script", &["--version"], "install bsdutils"),
        };
        let mut probe = Command::new(program);
        match self {
            Peer::Node => probe.current_dir(root().join("tests/clients/node")),
            Peer::Go => probe.current_dir(root().join("tests/clients/go")),
            _ => &mut probe,
        };
        peers::is_there(probe.args(args), advice).then(|| Command::new(program))
    }
}

/// A command line in a terminal; `None` when the test is to skip.
pub fn on_terminal(line: &str) -> Option<Command> {
    let mut script = Peer::Script.find()?;
    script.args(["-qec", line, "/dev/null"]);
    // Without TERM, as in a container, programs draw nothing.
    script.env("TERM", "xterm");
    Some(script)
}
