//! Real servers with the module in them, and clients that ask them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;

pub use everbloom_dev::peers::host_program;
use everbloom_dev::process::log;
pub use everbloom_dev::{Client, PATIENCE, free_port, module, wait_for};
use everbloom_dev::{Process, peers, start_server};
use everbloom_resp::Reply;
use tempfile::TempDir;

fn version_line(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

pub fn is_valkey(program: &Path) -> bool {
    version_line(program).starts_with("Valkey")
}

/// The version of a server, as far as it is one: 7.0, 8.1.
pub fn version(program: &Path) -> (u32, u32) {
    let text = version_line(program);
    let mut numbers = text.split("v=").nth(1).unwrap().split('.');
    let mut number = || numbers.next().unwrap().parse().unwrap();
    (number(), number())
}

/// A host from Redis 7.0 on, or nothing, with a word about it: what a test is about is not in older
/// ones.
pub fn from_redis_7() -> bool {
    match host_program() {
        None => false,
        Some(program) if version(&program) >= (7, 0) => true,
        Some(_) => {
            peers::skip("the server is older than Redis 7.0");
            false
        }
    }
}

/// Whether redis-cli is there; without it the test skips, loudly, or fails when peers are required.
pub fn has_redis_cli() -> bool {
    let mut probe = Command::new("redis-cli");
    peers::is_there(probe.arg("--version"), "install redis-tools")
}

/// Runs redis-cli, which must succeed.
pub fn redis_cli(args: &[&str]) -> String {
    try_redis_cli(args).unwrap_or_else(|text| panic!("{args:?}\n{text}"))
}

/// Runs redis-cli; an error is what it printed.
pub fn try_redis_cli(args: &[&str]) -> Result<String, String> {
    let output = Command::new("redis-cli").args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(text)
    }
}

/// How a server that should have started ended, and what it logged.
type Ended = (ExitStatus, String);

/// A server with the module, in a directory of its own, ended when dropped.
pub struct Host {
    program: PathBuf,
    process: Process,
    settings: Vec<String>,
    load_args: Vec<String>,
    pub port: u16,
    pub dir: TempDir,
}

impl Host {
    /// Starts one with these settings, pairs of a name with two dashes and a value.
    pub fn start(settings: &[&str]) -> Option<Host> {
        Host::with_args(settings, &[])
    }

    /// Starts one with arguments for the module.
    pub fn with_args(settings: &[&str], load_args: &[&str]) -> Option<Host> {
        Host::in_dir(tempfile::tempdir().unwrap(), settings, load_args)
    }

    /// Starts one on what is in a directory.
    pub fn in_dir(dir: TempDir, settings: &[&str], load_args: &[&str]) -> Option<Host> {
        Some(Host::try_in_dir(dir, settings, load_args)?.unwrap_or_else(ended_at_once))
    }

    /// Starts one on a file of keys; if it does not take it, how it ended and what it logged.
    pub fn on_keys(file: &[u8], settings: &[&str]) -> Option<Result<Host, Ended>> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("dump.rdb"), file).unwrap();
        Host::try_in_dir(dir, settings, &[])
    }

    fn try_in_dir(
        dir: TempDir,
        settings: &[&str],
        load_args: &[&str],
    ) -> Option<Result<Host, Ended>> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (settings, load_args): (Vec<String>, Vec<String>) = (owned(settings), owned(load_args));
        let program = host_program()?;
        let started = start_server(dir.path(), |port| {
            command(&program, port, &settings, &load_args)
        });
        Some(Host::new(program, dir, settings, load_args, started))
    }

    /// Starts one on the file `redis.conf` of a directory, which loads the module.
    pub fn on_file(dir: TempDir, program: &Path) -> Host {
        let file = dir.path().join("redis.conf");
        let text = std::fs::read_to_string(&file).unwrap();
        let settings = vec![file.to_str().unwrap().to_owned()];
        let started = start_server(dir.path(), |port| {
            let more = "bind 127.0.0.1\nsave \"\"\n";
            std::fs::write(&file, format!("port {port}\n{more}{text}")).unwrap();
            command(program, port, &settings, &[])
        });
        let host = Host::new(program.into(), dir, settings, Vec::new(), started);
        host.unwrap_or_else(ended_at_once)
    }

    fn new(
        program: PathBuf,
        dir: TempDir,
        settings: Vec<String>,
        load_args: Vec<String>,
        started: Result<(Process, SocketAddr), ExitStatus>,
    ) -> Result<Host, Ended> {
        let (process, addr) = started.map_err(|status| (status, log(dir.path())))?;
        Ok(Host {
            program,
            process,
            settings,
            load_args,
            port: addr.port(),
            dir,
        })
    }

    /// Ends it and starts it again on what it left behind. What `SHUTDOWN` saves is up to `how`:
    /// `SAVE`, `NOSAVE`, or empty for what the settings say.
    pub fn restart(&mut self, how: &str) {
        self.stop(how);
        self.start_again();
    }

    pub fn stop(&mut self, how: &str) {
        let line = format!("SHUTDOWN {how}");
        let words: Vec<&str> = line.split_whitespace().collect();
        // Refused while the first log of a replica is being written.
        wait_for("the end of the server", || {
            let mut client = self.client();
            client.send(&words);
            client.try_reply().is_none()
        });
        self.process.wait().unwrap();
    }

    /// Ends it as a power failure would.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub fn start_again(&mut self) {
        let mut command = command(&self.program, self.port, &self.settings, &self.load_args);
        let started = Process::start_server(&mut command, self.dir.path(), self.addr());
        self.process = started.unwrap_or_else(|status| ended_at_once((status, self.log())));
    }

    pub fn addr(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub fn client(&self) -> Client {
        Client::connect(self.addr())
    }

    /// What it logged.
    pub fn log(&self) -> String {
        log(self.dir.path())
    }
}

fn ended_at_once<T>((status, log): Ended) -> T {
    panic!("the server ended at once with {status}:\n{log}");
}

impl Drop for Host {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            eprintln!("the server on port {} logged:", self.port);
            tail.iter().rev().for_each(|line| eprintln!("  {line}"));
        }
    }
}

fn command(program: &Path, port: u16, settings: &[String], args: &[String]) -> Command {
    let mut command = Command::new(program);
    if settings.first().is_none_or(|first| first.starts_with("--")) {
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", ""])
            // No pause before a replica without a disk: tests are short.
            .args(["--repl-diskless-sync-delay", "0"])
            .arg("--loadmodule")
            .arg(module())
            .args(args);
        if version(program) >= (7, 0) {
            command.args(["--enable-debug-command", "yes"]);
        }
    }
    command.args(settings);
    command
}

/// An array's elements.
pub fn elements(reply: Reply) -> Vec<Reply> {
    reply.into_elements().expect("an array or a set")
}

/// Changes a setting of the module, on hosts that put the module's name in front, and on those that
/// do not.
pub fn set(client: &mut Client, name: &str, value: &str) {
    let found = elements(client.ok(&format!("CONFIG GET *{name}")));
    let name = String::from_utf8(found[0].as_bytes().unwrap().to_vec()).unwrap();
    client.ok(&format!("CONFIG SET {name} {value}"));
}

pub fn text_of(reply: &Reply) -> String {
    String::from_utf8(reply.as_bytes().unwrap().to_vec()).unwrap()
}
