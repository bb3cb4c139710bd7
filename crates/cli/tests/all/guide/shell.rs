//! A folder, a shell and servers for one page.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use everbloom_dev::{Process, free_port, module, wait_for};

use super::expected::{is_shown, reply_of};
use super::page::Block;
use crate::support::{EVERBLOOM, Peer, folder, root, run};

/// The ports in the pages. Each stands for one that is free here.
const PORTS: [u16; 7] = [6379, 6380, 7000, 7001, 7002, 7003, 9379];

/// The ports of a cluster's nodes, which mean nothing else wherever they stand.
const NODES: [u16; 6] = [7021, 7022, 7023, 7024, 7025, 7026];

/// Where the programs that were started in the background write their process ids.
const BACKGROUND: &str = "background";

/// What stands before a port.
const BEFORE_A_PORT: [&str; 4] = [":", "-p ", "port ", "port="];

/// How often a server is started whose port is not free yet.
const ATTEMPTS: usize = 50;

/// The shell of a page.
#[derive(Debug)]
pub(super) struct Shell {
    folder: PathBuf,
    /// The ports in the page, and here.
    ports: BTreeMap<u16, u16>,
    /// The same of a cluster's nodes.
    nodes: Vec<(u16, u16)>,
    /// Holds the free ports until a command names them.
    reserved: BTreeMap<u16, TcpListener>,
    /// By their ports here.
    servers: BTreeMap<u16, Process>,
    stands_for: Vec<(String, String)>,
    /// What was exported.
    variables: BTreeMap<String, String>,
    /// What the commands of the last block have printed.
    printed: String,
    pub(super) typed: usize,
}

/// What a command did.
struct Done {
    code: Option<i32>,
    output: String,
}

impl Shell {
    /// `host`: what runs as `valkey-server`, with our module as `$MODULE`.
    pub(super) fn new(name: &str, stands_for: &[(String, String)], host: Option<&Path>) -> Self {
        let (mut ports, mut reserved) = (BTreeMap::new(), BTreeMap::new());
        for port in PORTS {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let here = listener.local_addr().unwrap().port();
            ports.insert(port, here);
            reserved.insert(here, listener);
        }
        let mut shell = Self {
            folder: folder(&format!("guide-{name}")),
            ports,
            nodes: Vec::new(),
            reserved,
            servers: BTreeMap::new(),
            stands_for: stands_for.to_vec(),
            variables: BTreeMap::new(),
            printed: String::new(),
            typed: 0,
        };
        shell.write_programs();
        if let Some(host) = host {
            shell.nodes.extend(NODES.map(|port| (port, free_port())));
            let host = host.display();
            // No pause before a replica gets its copy: tests are short.
            let quick = "--repl-diskless-sync-delay 0";
            let text = format!("echo $$ >> ../{BACKGROUND}\nexec {host} \"$@\" {quick}");
            shell.write_program("valkey-server", &text);
            let module = module().to_str().unwrap().to_owned();
            shell.variables.insert("MODULE".to_owned(), module);
        }
        shell
    }

    /// Programs that talk to the servers of this page when no port is named.
    fn write_programs(&mut self) {
        fs::create_dir_all(self.bin()).unwrap();
        let port = self.ports[&6379];
        let others = std::env::var("PATH").unwrap();
        let programs = [
            (
                "everbloom",
                format!(
                    "case \"$1 $*\" in *' -p '*|*://*|*' -s '*) ;; \
                     query*) shift; exec {EVERBLOOM} query -p {port} \"$@\";; esac\n\
                     exec {EVERBLOOM} \"$@\""
                ),
            ),
            (
                "redis-cli",
                format!("PATH='{others}' exec redis-cli -p {port} \"$@\""),
            ),
            (
                "redis-benchmark",
                format!("PATH='{others}' exec redis-benchmark -p {port} \"$@\""),
            ),
            // `cargo run --release -- plan ...`
            (
                "cargo",
                "[ \"$1 $2 $3\" = 'run --release --' ] || exit 99\nshift 3\nexec everbloom \"$@\""
                    .to_owned(),
            ),
        ];
        for (name, text) in programs {
            self.write_program(name, &text);
        }
    }

    fn write_program(&self, name: &str, text: &str) {
        let path = self.bin().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn bin(&self) -> PathBuf {
        self.folder.with_file_name(format!(
            "{}-bin",
            self.folder.file_name().unwrap().display()
        ))
    }

    /// Types a block. An error is how it does not do what it says.
    pub(super) fn type_block(&mut self, block: &Block) -> Result<(), String> {
        for commands in &block.marks.before {
            for command in commands_of(commands) {
                let done = self.run(&command)?;
                if done.code != Some(0) {
                    return Err(format!("before it: {command}: {}", done.output));
                }
            }
        }
        let (text, marks) = (&block.text, &block.marks);
        match block.language.as_str() {
            _ if marks.not_typed.is_some() => Ok(()),
            _ if marks.settings => self.start_with(text),
            _ if marks.output => match is_shown(text, &self.printed, marks.varies) {
                true => Ok(()),
                false => Err(format!("prints\n{}", self.printed)),
            },
            "" | "sh" | "text" if text.starts_with("$ ") => self.type_session(block),
            "" | "sh" | "text" if text.starts_with("127.0.0.1:6379> ") => self.type_prompts(block),
            "" | "sh" => self.type_commands(block),
            "python" if text.contains("import redis") => self.run_python(text),
            // Other tests compile and run these, or read them.
            "rust" | "python" | "java" | "yaml" => Ok(()),
            other => Err(format!(
                "nobody knows what a block of {other:?} is; mark it with <!-- output --> or \
                 <!-- not typed: why -->"
            )),
        }
    }

    /// Lines of commands, some of which have their reply behind them.
    fn type_commands(&mut self, block: &Block) -> Result<(), String> {
        self.printed.clear();
        let commands = commands_of(&block.text);
        for (at, command) in commands.iter().enumerate() {
            let done = self.run(command)?;
            let comment = command.split_once(" # ").map(|(_, comment)| comment);
            let shown = comment.and_then(|comment| reply_of(comment.trim()));
            let shown = shown.filter(|_| !command.contains("everbloom"));
            let code = match at + 1 == commands.len() {
                true => block.marks.ends_with,
                false => 0,
            };
            if let Some(shown) = shown {
                let replied: Vec<_> = done.output.split_whitespace().collect();
                if replied.join(" ") != shown {
                    return Err(format!("{command}\nreplies {}", replied.join(" ")));
                }
            } else if done.code != Some(code) {
                return Err(format!(
                    "{command}\nends with {:?}: {}",
                    done.code, done.output
                ));
            }
            self.printed += &done.output;
        }
        Ok(())
    }

    /// `$ command`, and below it what it prints.
    fn type_session(&mut self, block: &Block) -> Result<(), String> {
        self.printed.clear();
        for typed in block.text["$ ".len()..].split("\n$ ") {
            let (command, shown) = typed.split_once('\n').unwrap_or((typed, ""));
            let done = self.run(command)?;
            if !is_shown(shown, &done.output, block.marks.varies) {
                return Err(format!("{command}\nprints\n{}", done.output));
            }
            self.printed += &done.output;
        }
        Ok(())
    }

    /// What redis-cli shows to a person.
    fn type_prompts(&mut self, block: &Block) -> Result<(), String> {
        const PROMPT: &str = "127.0.0.1:6379> ";
        for typed in block.text[PROMPT.len()..].split(&format!("\n{PROMPT}")) {
            let (command, shown) = typed.split_once('\n').unwrap_or((typed, ""));
            let done = self.run(&format!("redis-cli --no-raw {command}"))?;
            if !is_shown(shown, &done.output, block.marks.varies) {
                return Err(format!("{command}\nanswers\n{}", done.output));
            }
        }
        Ok(())
    }

    fn run_python(&mut self, text: &str) -> Result<(), String> {
        if Peer::Python.find().is_none() {
            return Ok(());
        }
        let port = format!("redis.Redis(port={})", self.ports[&6379]);
        let script = self.folder.join("script.py");
        let text = self.translated(&text.replace("redis.Redis()", &port));
        fs::write(&script, text).unwrap();
        let done = self.run("python3 script.py # redis")?;
        match done.code {
            Some(0) => {
                self.printed = done.output;
                Ok(())
            }
            _ => Err(done.output),
        }
    }

    /// Runs a command. A server goes on in the background.
    fn run(&mut self, command: &str) -> Result<Done, String> {
        self.typed += 1;
        // A command of the server, without a program.
        let first = command.split(' ').next().unwrap_or_default();
        let is_bare = first.len() > 3 && first.chars().all(|c| c.is_ascii_uppercase() || c == '.');
        let typed = self.translated(&match is_bare {
            true => format!("redis-cli {command}"),
            false => command.to_owned(),
        });
        let line = typed.split(" # ").next().unwrap_or_default().trim();
        for start in ["everbloom serve", "cargo run --release -- serve"] {
            let rest = line.strip_prefix(start);
            let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(' '));
            let rest = rest
                .map(str::trim)
                .filter(|rest| !["--help", "-h"].contains(rest));
            if let Some(words) = rest.map(str::to_owned) {
                self.serve(&words)?;
                let (code, output) = (Some(0), String::new());
                return Ok(Done { code, output });
            }
        }
        if let Some((name, value)) = line
            .strip_prefix("export ")
            .and_then(|it| it.split_once('='))
        {
            self.variables.insert(name.to_owned(), value.to_owned());
            let (code, output) = (Some(0), String::new());
            return Ok(Done { code, output });
        }
        let port = self.ports[&6379];
        let needs_server = ["redis", "everbloom query", &port.to_string()];
        if needs_server.iter().any(|word| typed.contains(word)) && !self.servers.contains_key(&port)
        {
            self.serve("--dir .data")?;
        }
        self.release(&typed);
        let path = std::env::var("PATH").unwrap();
        let (bin, here) = (self.bin(), &self.folder);
        let path = format!("{}:{path}:{}", bin.display(), here.display());
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &format!("{{ {typed}\n}} 2>&1")])
            .current_dir(here)
            .env("PATH", path)
            .env("REPOSITORY", root())
            .env_remove("REDISCLI_AUTH")
            .envs(&self.variables);
        let outcome = run(&mut shell);
        Ok(Done {
            code: outcome.status.code(),
            output: self.as_shown(outcome.stdout),
        })
    }

    /// Sets the ports in a text free.
    fn release(&mut self, text: &str) {
        self.reserved
            .retain(|port, _| !text.contains(&port.to_string()));
    }

    /// The command with names and ports that there are here.
    fn translated(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (shown, typed) in &self.stands_for {
            text = text.replace(shown, typed);
        }
        // Without a port it is 6379.
        let text = text.replace("redis://localhost", "redis://127.0.0.1");
        let mut parts = text.split("redis://127.0.0.1");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let port = if part.starts_with(':') { "" } else { ":6379" };
            text += &format!("redis://127.0.0.1{port}{part}");
        }
        for (port, here) in &self.ports {
            for before in BEFORE_A_PORT {
                text = text.replace(&format!("{before}{port}"), &format!("{before}{here}"));
            }
        }
        for (port, here) in &self.nodes {
            text = text.replace(&port.to_string(), &here.to_string());
        }
        text
    }

    fn as_shown(&self, mut output: String) -> String {
        let nodes = self.nodes.iter().map(|(port, here)| (port, here));
        for (port, here) in self.ports.iter().chain(nodes) {
            output = output.replace(&here.to_string(), &port.to_string());
        }
        for (shown, typed) in &self.stands_for {
            output = output.replace(typed, shown);
        }
        output
    }

    /// Starts a server, in the place of the one that has its port.
    fn serve(&mut self, words: &str) -> Result<(), String> {
        let mut words = words.to_owned();
        let named = words.split_once("--port ").map(|(_, rest)| rest);
        let named = named.and_then(|rest| rest.split(' ').next()?.parse().ok());
        let port = named.unwrap_or(self.ports[&6379]);
        if named.is_none() {
            words += &format!(" --port {port}");
        }
        self.stop(port);
        self.release(&words);
        let process = self.start(&words)?;
        self.servers.insert(port, process);
        Ok(())
    }

    /// A server starts with these settings.
    fn start_with(&mut self, settings: &str) -> Result<(), String> {
        let translated = self.translated(settings) + "\n";
        self.release(&translated);
        fs::write(self.folder.join("page.conf"), translated).unwrap();
        self.typed += 1;
        let more = match settings.contains("port ") {
            true => "--dir settings",
            false => "--dir settings --port 0",
        };
        self.start(&format!("page.conf --bind 127.0.0.1 {more}"))
            .map(drop)
    }

    fn start(&self, words: &str) -> Result<Process, String> {
        let place = self.folder.join(format!("log-{}", self.typed));
        fs::create_dir_all(&place).unwrap();
        let mut command = Command::new("bash");
        let line = format!("cd \"$0\" && exec {EVERBLOOM} serve {}", words.trim());
        command.args(["-c", &line]).arg(&self.folder);
        let log = || fs::read_to_string(place.join("log")).unwrap_or_default();
        for _ in 0..ATTEMPTS {
            let _ = fs::remove_file(place.join("log"));
            let mut process = Process::start(&mut command, &place);
            let mut ended = false;
            wait_for("a server", || {
                ended = process.try_wait().unwrap().is_some();
                ended || log().contains("INFO ready")
            });
            match ended {
                false => return Ok(process),
                // A program that another test is just starting still holds the reserved port.
                true if log().contains("Address already in use") => {
                    thread::sleep(Duration::from_millis(100));
                }
                true => break,
            }
        }
        Err(format!("everbloom serve {words}: {}", log()))
    }

    fn stop(&mut self, port: u16) {
        if let Some(mut process) = self.servers.remove(&port)
            && process.try_wait().unwrap().is_none()
        {
            run(Command::new("kill").arg(process.id().to_string())).success();
            process.wait().unwrap();
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let ids = fs::read_to_string(self.folder.join(BACKGROUND)).unwrap_or_default();
        for id in ids.lines() {
            run(Command::new("kill").args(["-9", id]));
        }
    }
}

/// The commands of a block: a line each, unless the shell waits for more.
fn commands_of(text: &str) -> Vec<String> {
    let (mut commands, mut command) = (Vec::new(), String::new());
    for line in text.lines() {
        command += line;
        let is_whole = !line.ends_with('\\')
            && run(Command::new("bash").args(["-n", "-c", &command]))
                .status
                .success();
        if is_whole {
            let said = command.trim();
            if !said.is_empty() && !said.starts_with('#') {
                commands.push(said.to_owned());
            }
            command.clear();
        } else {
            command += "\n";
        }
    }
    if !command.trim().is_empty() {
        commands.push(command);
    }
    commands
}

#[test]
fn commands_of_a_block() {
    let text = "# one\na b # c\nfor x in 1 2; do\n  y\ndone\nz \\\n  1\n";
    let commands = ["a b # c", "for x in 1 2; do\n  y\ndone", "z \\\n  1"];
    assert_eq!(commands_of(text), commands);
}
