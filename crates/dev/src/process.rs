//! Programs that a test starts.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::client::Client;
use crate::peers;
use crate::wait::wait_for;

/// A process, killed when dropped.
#[derive(Debug)]
pub struct Process(pub Child);

impl Process {
    /// Starts a program in a folder, where it adds all that it says to the file `log`.
    pub fn start(command: &mut Command, folder: &Path) -> Process {
        let log = File::options()
            .create(true)
            .append(true)
            .open(folder.join("log"))
            .unwrap();
        command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap());
        Process(command.stderr(log).spawn().unwrap())
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that is free, no other test was given, and no connection gets by chance: a server that
/// starts again must find it free. The counterpart for a cluster's bus, 10000 above, is as well.
pub fn free_port() -> u16 {
    const FIRST: u32 = 12_000;
    const COUNT: u32 = 10_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    loop {
        let next = start.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + next % COUNT).unwrap();
        let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if free(port) && free(port + 10_000) {
            return port;
        }
    }
}

/// Debian's redis-server.
#[derive(Debug)]
pub struct Redis {
    process: Process,
    args: Vec<String>,
    /// Where it listens.
    pub addr: SocketAddr,
}

impl Redis {
    /// Starts one that keeps nothing unless `extra` says so; without one, the test is to skip.
    pub fn start(extra: &[&str]) -> Option<Redis> {
        let port = free_port();
        let port_text = port.to_string();
        let args = ["--port", &port_text, "--bind", "127.0.0.1", "--save", ""];
        let quiet = ["--appendonly", "no", "--loglevel", "warning"];
        let args = args.into_iter().chain(quiet).chain(extra.iter().copied());
        let args: Vec<String> = args.map(str::to_owned).collect();
        let Some(process) = spawn(&args) else {
            peers::missing("redis-server");
            return None;
        };
        let addr = ([127, 0, 0, 1], port).into();
        let redis = Redis {
            process,
            args,
            addr,
        };
        redis.wait_until_loaded();
        Some(redis)
    }

    /// Ends it as a power failure would.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it once more, as it was started at first, after it was killed.
    pub fn start_again(&mut self) {
        self.process = spawn(&self.args).unwrap();
        self.wait_until_loaded();
    }

    fn wait_until_loaded(&self) {
        wait_for("redis-server", || {
            let client = Client::try_connect(self.addr).ok();
            client.and_then(|mut client| client.is_loaded()) == Some(true)
        });
    }
}

fn spawn(args: &[String]) -> Option<Process> {
    let mut command = Command::new("redis-server");
    command
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().ok().map(Process)
}
