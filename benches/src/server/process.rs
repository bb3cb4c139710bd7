//! The servers, each pinned to the first core, and the load, pinned to the second.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use everbloom_dev::free_port;

use crate::load::Figures;
use crate::machine::output;

/// The cores of the servers and of the load.
const SERVER_CORE: &str = "0";
const LOAD_CORE: &str = "1";

/// The settings with which servers write no files.
const NO_FILES: &[&str] = &["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];

/// A server. It ends when dropped.
pub struct Server {
    child: Child,
    pub port: u16,
    /// The program without its folder.
    pub name: String,
    /// The command line without the port and without folders, for the report.
    pub command: String,
    pub version: String,
    folder: PathBuf,
}

impl Server {
    pub fn everbloom(program: &Path) -> Result<Self> {
        ensure!(
            program.exists(),
            "{} is missing: cargo build --release",
            program.display()
        );
        Self::with(
            program,
            &[&["serve", "--io-threads", "1"], NO_FILES].concat(),
        )
    }

    /// redis-server or valkey-server, with or without a module.
    pub fn redis(program: &Path, module: Option<&Path>) -> Result<Self> {
        ensure!(
            !version_of(program).is_empty(),
            "{} is missing: install the package redis-server, or name one by --redis-server",
            program.display()
        );
        let Some(module) = module else {
            return Self::with(program, NO_FILES);
        };
        ensure!(
            module.exists(),
            "{} is missing; ours: cargo build --release -p everbloom-module",
            module.display()
        );
        let module = module.to_string_lossy();
        Self::with(program, &[NO_FILES, &["--loadmodule", &module]].concat())
    }

    /// Either server with these words.
    pub fn with(program: &Path, words: &[&str]) -> Result<Self> {
        Self::start(pinned(SERVER_CORE, program), program, words)
    }

    /// Either server with these words, and on any core.
    pub fn unpinned(program: &Path, words: &[&str]) -> Result<Self> {
        Self::start(Command::new(program), program, words)
    }

    fn start(command: Command, program: &Path, words: &[&str]) -> Result<Self> {
        let name = file_name(program);
        let port = free_port();
        let folder = std::env::temp_dir().join(format!("everbloom-benches-{name}-{port}"));
        std::fs::create_dir_all(&folder)?;
        let log = std::fs::File::create(folder.join("log"))?;
        // The servers end with this program, whatever ends it.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .args(words_of(&command))
            .args(words)
            .args(["--port", &port.to_string()])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let quoted = words.iter().map(|word| match *word {
            "" => "''".to_owned(),
            word if Path::new(word).is_absolute() => file_name(Path::new(word)),
            word => word.to_owned(),
        });
        let command = std::iter::once(name.clone()).chain(quoted);
        let command = command.collect::<Vec<_>>().join(" ");
        let mut server = Self {
            child,
            port,
            name,
            command,
            version: version_of(program),
            folder,
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            // A host that cannot load the module ends at once.
            if Instant::now() > deadline || server.child.try_wait()?.is_some() {
                // Read the log now, because the folder is removed with the server.
                let log = std::fs::read_to_string(server.folder.join("log")).unwrap_or_default();
                bail!("{} does not listen; it said:\n{log}", server.command);
            }
            sleep(Duration::from_millis(50));
        }
        Ok(server)
    }
}

impl Server {
    /// Where it runs. The folder goes with the server.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the server has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Runs `load` against a server.
pub fn load(server: &Server, flags: &[String]) -> Result<Figures> {
    load_at(&["--port", &server.port.to_string()], flags)
}

/// The same with the flags of an address.
pub fn load_at(address: &[&str], flags: &[String]) -> Result<Figures> {
    let output = pinned(LOAD_CORE, &std::env::current_exe()?)
        .arg("load")
        .args(address)
        .args(flags)
        .stdin(Stdio::null())
        .output()
        .context("cannot start the load")?;
    ensure!(
        output.status.success(),
        "load {}: {}",
        flags.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("the load printed something else")
}

/// Whether there are two cores, and a program that can pin to them.
pub fn can_pin() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
        && Command::new("taskset")
            .args(["-c", LOAD_CORE, "true"])
            .status()
            .is_ok_and(|status| status.success())
}

/// Moves this program, from here on, to the core of the load.
pub fn pin_this() -> Result<()> {
    let this = std::process::id().to_string();
    let mut command = Command::new("taskset");
    let status = command
        .args(["-cp", LOAD_CORE, &this])
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "taskset cannot pin this program");
    Ok(())
}

/// What it says of itself. redis-server says "Redis server v=7.0.15 sha=...", and only the version
/// is needed.
fn version_of(program: &Path) -> String {
    let version = output(&program.to_string_lossy(), &["--version"]);
    version.split(" sha=").next().unwrap_or_default().to_owned()
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn words_of(command: &Command) -> impl Iterator<Item = &OsStr> {
    std::iter::once(command.get_program()).chain(command.get_args())
}

fn pinned(core: &str, program: &Path) -> Command {
    if !can_pin() {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args([OsString::from("-c"), core.into(), program.into()]);
    command
}
