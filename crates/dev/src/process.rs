//! Programs that a test starts.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use everbloom_resp::Reply;
use tempfile::TempDir;

use crate::client::Client;
use crate::peers;
use crate::wait::PATIENCE;

/// How long a server may take to say whether it has loaded, before it is asked once more.
const ANSWER_TIME: Duration = Duration::from_secs(5);

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

    /// Starts a server, and waits until it has loaded its data. An error is how it ended instead;
    /// `log` in the folder says why.
    pub fn start_server(
        command: &mut Command,
        folder: &Path,
        addr: SocketAddr,
    ) -> Result<Process, ExitStatus> {
        let mut server = Process::start(command, folder);
        server.wait_until_loaded(addr, folder)?;
        Ok(server)
    }

    fn wait_until_loaded(&mut self, addr: SocketAddr, folder: &Path) -> Result<(), ExitStatus> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.try_wait().unwrap() {
                return Err(status);
            }
            if let Ok(mut client) = Client::try_connect(addr) {
                client.stream.set_read_timeout(Some(ANSWER_TIME)).unwrap();
                if client.is_loaded() == Some(true) && self.answers(&mut client) {
                    return Ok(());
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("the server does not answer:\n{}", log(folder));
    }

    /// Whether it is this process that answers, and no other that has its port. A server with a
    /// password does not say.
    fn answers(&self, client: &mut Client) -> bool {
        let asked = client.try_send(&["INFO", "server"]);
        match asked.ok().and_then(|()| client.try_reply()) {
            Some(Reply::Bulk(text)) => {
                let line = format!("\r\nprocess_id:{}\r\n", self.id());
                String::from_utf8_lossy(&text).contains(&line)
            }
            Some(reply) => reply.is_error(),
            None => false,
        }
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
    for _ in 0..COUNT {
        let next = start.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + next % COUNT).unwrap();
        if nobody_listens(port) && nobody_listens(port + 10_000) {
            return port;
        }
    }
    panic!("no port is free");
}

/// Not by binding the port: a program that another thread starts at that moment would inherit the
/// socket for an instant, and keep the port from the server that it is for.
fn nobody_listens(port: u16) -> bool {
    let tried = TcpStream::connect(("127.0.0.1", port));
    tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// What a server logs when another program took its port first.
const PORT_IS_TAKEN: &str = "Address already in use";

/// How many ports a server is started on before that is its error.
const MAX_PORTS_TRIED: u32 = 5;

/// As [`Process::start_server`], on a port that is free.
pub fn start_server(
    folder: &Path,
    command: impl Fn(u16) -> Command,
) -> Result<(Process, SocketAddr), ExitStatus> {
    let mut tries = 0;
    loop {
        let addr = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let status = match Process::start_server(&mut command(addr.port()), folder, addr) {
            Ok(server) => return Ok((server, addr)),
            Err(status) => status,
        };
        // Another program may take the port between the look and the start.
        tries += 1;
        if tries == MAX_PORTS_TRIED || !log(folder).contains(PORT_IS_TAKEN) {
            return Err(status);
        }
        fs::remove_file(folder.join("log")).unwrap();
    }
}

/// What the programs of a folder said.
pub fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// A redis-server, or the server that [`peers::host_program`] finds, in a folder of its own.
#[derive(Debug)]
pub struct Redis {
    program: PathBuf,
    process: Process,
    settings: Vec<String>,
    folder: TempDir,
    /// Where it listens.
    pub addr: SocketAddr,
}

impl Redis {
    /// Starts one that keeps nothing unless `settings` say so; without one, the test is to skip.
    pub fn start(settings: &[&str]) -> Option<Redis> {
        let program = peers::host_program()?;
        let folder = TempDir::new().unwrap();
        let settings: Vec<String> = settings.iter().copied().map(str::to_owned).collect();
        let started = start_server(folder.path(), |port| {
            redis_server(&program, port, &settings)
        });
        let (process, addr) = started.unwrap_or_else(|status| {
            let log = log(folder.path());
            panic!("redis-server ended at once with {status}:\n{log}");
        });
        Some(Redis {
            program,
            process,
            settings,
            folder,
            addr,
        })
    }

    /// Connects to it.
    pub fn client(&self) -> Client {
        Client::connect(self.addr)
    }

    /// Ends it as a power failure would.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it once more, as it was started at first, after it was killed.
    pub fn start_again(&mut self) {
        let mut command = redis_server(&self.program, self.addr.port(), &self.settings);
        let folder = self.folder.path();
        let started = Process::start_server(&mut command, folder, self.addr);
        self.process = started.unwrap_or_else(|status| panic!("{status}:\n{}", log(folder)));
    }
}

fn redis_server(program: &Path, port: u16, settings: &[String]) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no", "--loglevel", "warning"])
        .args(settings);
    command
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[test]
    fn a_server_whose_port_is_taken_starts_on_another() {
        let Some(program) = peers::host_program() else {
            return;
        };
        let folder = TempDir::new().unwrap();
        let (first, others) = (Cell::new(true), RefCell::new(Vec::new()));
        let started = start_server(folder.path(), |port| {
            if first.take() {
                // Another server, which answers.
                let folder = TempDir::new().unwrap();
                let addr = SocketAddr::from(([127, 0, 0, 1], port));
                let mut command = redis_server(&program, port, &[]);
                let other = Process::start_server(&mut command, folder.path(), addr).unwrap();
                others.borrow_mut().push((other, addr, folder));
            }
            redis_server(&program, port, &[])
        });
        let (_server, addr) = started.unwrap();
        assert_ne!(addr, others.borrow()[0].1);
    }

    #[test]
    fn a_server_that_cannot_start_says_why() {
        let Some(program) = peers::host_program() else {
            return;
        };
        let folder = TempDir::new().unwrap();
        let settings = ["--nonsense".to_owned()];
        let started = start_server(folder.path(), |port| {
            redis_server(&program, port, &settings)
        });
        assert!(!started.unwrap_err().success());
        assert!(log(folder.path()).contains("nonsense"));
    }
}
