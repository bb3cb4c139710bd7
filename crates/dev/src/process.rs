//! Programs that a test starts.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
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

/// The built module. `cargo test` builds no shared object, so the first test that asks has cargo
/// build it; `EVERBLOOM_MODULE` names another one.
pub fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        if let Some(path) = std::env::var_os("EVERBLOOM_MODULE") {
            return path.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build
            .args(["build", "--quiet", "--message-format=json"])
            .args(["--package", "everbloom-module"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        let output = build.stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "the module was not built");
        let text = String::from_utf8(output.stdout).unwrap();
        // Among the strings of what cargo says, in JSON, only the module's path ends so.
        let mut words = text.split('"');
        let end = format!("everbloom_module{}", std::env::consts::DLL_SUFFIX);
        let built = words.find(|word| word.ends_with(&end));
        built.expect("a shared object was built").into()
    })
}

/// Debian's redis-server.
#[derive(Debug)]
pub struct Redis {
    _process: Process,
    /// Where it listens.
    pub addr: SocketAddr,
}

impl Redis {
    /// Starts one that keeps nothing unless `extra` says so; without one, the test is to skip.
    pub fn start(extra: &[&str]) -> Option<Redis> {
        let port = free_port();
        let spawned = Command::new("redis-server")
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
            ])
            .args(["--appendonly", "no", "--loglevel", "warning"])
            .args(extra)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = spawned else {
            peers::missing("redis-server");
            return None;
        };
        let addr = ([127, 0, 0, 1], port).into();
        let redis = Redis {
            _process: Process(child),
            addr,
        };
        wait_for("redis-server", || Client::try_connect(addr).is_ok());
        Some(redis)
    }
}
