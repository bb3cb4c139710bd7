//! Real servers with the module in them, and clients that ask them.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use everbloom_resp::{DecodeLimits, Reply, decode, encode_request};
use tempfile::TempDir;

/// How long anything may take that should happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

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
            .args(["--package", env!("CARGO_PKG_NAME")])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        let output = build.stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "the module was not built");
        let text = String::from_utf8(output.stdout).unwrap();
        let artifacts = text
            .lines()
            .filter(|line| line.contains("everbloom_module"));
        let files = artifacts.flat_map(|line| {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            let files = json["filenames"].as_array().cloned().unwrap_or_default();
            files
                .into_iter()
                .map(|file| file.as_str().unwrap().to_owned())
        });
        let mut objects = files.filter(|file| file.ends_with(std::env::consts::DLL_SUFFIX));
        objects.next().expect("a shared object was built").into()
    })
}

/// The server to load it into: `VALKEY_SERVER` or `REDIS_SERVER`, or one on the path. Without any
/// the test skips, loudly, or fails when peers are required.
pub fn host_program() -> Option<PathBuf> {
    let runs = |program: &PathBuf| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let named = ["VALKEY_SERVER", "REDIS_SERVER"].map(std::env::var_os);
    if let Some(program) = named.into_iter().flatten().next().map(PathBuf::from) {
        assert!(runs(&program), "{} does not run", program.display());
        return Some(program);
    }
    let known = ["redis-server", "valkey-server"].map(PathBuf::from);
    let found = known.into_iter().find(runs);
    if found.is_none() {
        let required = std::env::var_os("EVERBLOOM_REQUIRE_PEERS").is_some();
        assert!(!required, "redis-server is required and was not found");
        eprintln!("SKIPPED: no redis-server and no valkey-server was found");
    }
    found
}

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
            eprintln!("SKIPPED: the server is older than Redis 7.0");
            false
        }
    }
}

/// Whether redis-cli is there; without it the test skips, loudly, or fails when peers are required.
pub fn has_redis_cli() -> bool {
    let output = Command::new("redis-cli").arg("--version").output();
    let found = output.is_ok_and(|output| output.status.success());
    if !found {
        let required = std::env::var_os("EVERBLOOM_REQUIRE_PEERS").is_some();
        assert!(!required, "redis-cli is required and was not found");
        eprintln!("SKIPPED: redis-cli was not found");
    }
    found
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

/// A server with the module, in a directory of its own, ended when dropped.
pub struct Host {
    program: PathBuf,
    child: Child,
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
        let mut host = Host::begin(dir, settings, load_args)?;
        host.wait_until_loaded();
        Some(host)
    }

    /// Starts one on a file of keys; if it does not take it, how it ended and what it logged.
    pub fn on_keys(file: &[u8], settings: &[&str]) -> Option<Result<Host, (ExitStatus, String)>> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("dump.rdb"), file).unwrap();
        let mut host = Host::begin(dir, settings, &[])?;
        let loaded = host.loaded();
        Some(match loaded {
            Ok(()) => Ok(host),
            Err(status) => Err((status, host.log())),
        })
    }

    fn begin(dir: TempDir, settings: &[&str], load_args: &[&str]) -> Option<Host> {
        let program = host_program()?;
        let port = free_port();
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (settings, load_args): (Vec<String>, Vec<String>) = (owned(settings), owned(load_args));
        let child = spawn(&program, dir.path(), port, &settings, &load_args);
        Some(Host {
            program,
            child,
            settings,
            load_args,
            port,
            dir,
        })
    }

    /// Starts one on the file `redis.conf` of a directory, which loads the module.
    pub fn on_file(dir: TempDir, program: &Path) -> Host {
        let (file, port) = (dir.path().join("redis.conf"), free_port());
        let text = std::fs::read_to_string(&file).unwrap();
        let more = "bind 127.0.0.1\nsave \"\"\n";
        std::fs::write(&file, format!("port {port}\n{more}{text}")).unwrap();
        let settings = vec![file.to_str().unwrap().to_owned()];
        let child = spawn(program, dir.path(), port, &settings, &[]);
        let mut host = Host {
            program: program.into(),
            child,
            settings,
            load_args: Vec::new(),
            port,
            dir,
        };
        host.wait_until_loaded();
        host
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
        self.child.wait().unwrap();
    }

    /// Ends it as a power failure would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn start_again(&mut self) {
        self.child = spawn(
            &self.program,
            self.dir.path(),
            self.port,
            &self.settings,
            &self.load_args,
        );
        self.wait_until_loaded();
    }

    pub fn addr(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub fn client(&self) -> Client {
        Client::connect(self.addr())
    }

    /// What it logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn wait_until_loaded(&mut self) {
        if let Err(status) = self.loaded() {
            panic!("the server ended at once with {status}:\n{}", self.log());
        }
    }

    /// Returns once it has loaded what there is; when it ended instead, how.
    fn loaded(&mut self) -> Result<(), ExitStatus> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Err(status);
            }
            // It may end while it is asked.
            let reply = Client::try_connect(self.addr())
                .ok()
                .and_then(|mut client| {
                    client.try_send(&["PING"]).ok()?;
                    client.try_reply()
                });
            let loading = |text: &str| text.starts_with("LOADING");
            if reply.is_some_and(|reply| !reply.as_error().is_some_and(loading)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server does not answer:\n{}", self.log());
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            eprintln!("the server on port {} logged:", self.port);
            tail.iter().rev().for_each(|line| eprintln!("  {line}"));
        }
    }
}

fn spawn(program: &Path, dir: &Path, port: u16, settings: &[String], args: &[String]) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(dir.join("log"))
        .unwrap();
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
    command
        .args(settings)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
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

/// A client that sends bytes and reads replies.
pub struct Client {
    stream: TcpStream,
    buf: Vec<u8>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Self {
        Client::try_connect(addr).unwrap()
    }

    pub fn try_connect(addr: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let buf = Vec::new();
        Ok(Client { stream, buf })
    }

    pub fn send<T: AsRef<[u8]>>(&mut self, args: &[T]) {
        self.try_send(args).unwrap();
    }

    pub fn try_send<T: AsRef<[u8]>>(&mut self, args: &[T]) -> std::io::Result<()> {
        let mut out = Vec::new();
        encode_request(args, &mut out);
        self.stream.write_all(&out)
    }

    /// Sends a command line, its words separated by spaces, and reads the reply.
    pub fn line(&mut self, line: &str) -> Reply {
        self.call(&line.split(' ').collect::<Vec<_>>())
    }

    /// A command line that must not fail.
    pub fn ok(&mut self, line: &str) -> Reply {
        let reply = self.line(line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
        reply
    }

    pub fn number(&mut self, line: &str) -> i64 {
        let reply = self.line(line);
        reply
            .as_integer()
            .unwrap_or_else(|| panic!("{line}: {reply:?}"))
    }

    /// The text of a reply that is a string.
    pub fn text(&mut self, line: &str) -> String {
        let reply = self.line(line);
        let bytes = reply
            .as_bytes()
            .unwrap_or_else(|| panic!("{line}: {reply:?}"));
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// The text of a reply that is an error.
    pub fn error(&mut self, line: &str) -> String {
        let reply = self.line(line);
        let text = reply
            .as_error()
            .unwrap_or_else(|| panic!("{line}: {reply:?}"));
        text.to_owned()
    }

    pub fn call<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Reply {
        self.send(args);
        self.reply()
    }

    pub fn reply(&mut self) -> Reply {
        self.try_reply().expect("the server closed the connection")
    }

    /// The next reply; `None` once the server has closed the connection.
    pub fn try_reply(&mut self) -> Option<Reply> {
        let mut chunk = vec![0; 64 << 10];
        loop {
            if let Some((reply, used)) = decode(&self.buf, &DecodeLimits::default()).unwrap() {
                self.buf.drain(..used);
                return Some(reply);
            }
            match self.stream.read(&mut chunk) {
                // A process that is stopped and goes on finds its waiting interrupted.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return None,
                Ok(n) => self.buf.extend_from_slice(&chunk[..n]),
            }
        }
    }

    /// A field of INFO.
    pub fn info(&mut self, field: &str) -> String {
        let text = self.text("INFO everything");
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value
            .unwrap_or_else(|| panic!("no {field} in\n{text}"))
            .to_owned()
    }

    /// Waits until a field of INFO has a value.
    pub fn until(&mut self, field: &str, wanted: &str) {
        wait_for(&format!("{field}:{wanted}"), || self.info(field) == wanted);
    }

    pub fn digest(&mut self) -> String {
        self.text("DEBUG DIGEST")
    }
}

/// Waits until something is so.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// An array's elements.
pub fn elements(reply: Reply) -> Vec<Reply> {
    reply.into_elements().expect("an array or a set")
}

/// Tells threads to stop, also when the test fails.
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
