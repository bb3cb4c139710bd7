//! The log. A thread of its own writes it, so that nobody else waits for a pipe that is full.
//!
//! Logging never fails: what cannot be written is lost, and so is what comes while too much waits.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use everbloom_server::Settings;
use tracing_subscriber::filter::LevelFilter;

use crate::display;
use crate::failure::Failure;

/// The number of lines that may wait to be written.
const MAX_WAITING_LINES: usize = 10_000;

/// How long [`Log::flush`] waits for a reader.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// What the thread is asked to do.
enum Task {
    Write(Vec<u8>),
    /// Go on in this file.
    GoOn(File),
    /// Say that everything before is written.
    Answer(Sender<()>),
}

/// Where the log goes.
#[derive(Clone)]
pub(super) struct Log {
    tasks: Sender<Task>,
    /// `None` is standard output.
    file: Option<PathBuf>,
}

impl Log {
    /// Sends the log to the file that the settings name, or to standard output, as Redis does.
    pub(super) fn start(settings: &Settings) -> Result<Log, Failure> {
        let file = (!settings.logfile.is_empty()).then(|| PathBuf::from(&settings.logfile));
        let (tasks, receiver) = channel();
        let log = Log { tasks, file };
        let opened = log.open().map_err(Failure::Other)?;
        let ansi = opened.is_none() && io::stdout().is_terminal() && !display::is_plain();
        let json = settings.log_format == "json";
        let lines = Lines {
            tasks: log.tasks.clone(),
            waiting: Arc::default(),
        };
        let waiting = Arc::clone(&lines.waiting);
        thread::Builder::new()
            .name("log-lines".to_owned())
            .spawn(move || write(&receiver, opened, &waiting))?;
        let lines = tracing_subscriber::fmt()
            .with_max_level(level(&settings.loglevel))
            .with_target(false)
            .with_ansi(ansi)
            // They would go to standard error, which may be the same broken pipe.
            .log_internal_errors(false)
            .with_writer(move || lines.clone());
        if json {
            lines.json().flatten_event(true).init();
        } else {
            lines.init();
        }
        Ok(log)
    }

    /// Whether the log goes to a file.
    pub(super) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Opens the log file again, since somebody may have moved it away.
    pub(super) fn reopen(&self) {
        match self.open() {
            Ok(None) => tracing::info!("received SIGHUP: there is no log file to reopen"),
            Ok(Some(file)) => {
                // Sending succeeds while the thread lives.
                let _ = self.tasks.send(Task::GoOn(file));
                tracing::info!("received SIGHUP: reopened the log file");
            }
            Err(problem) => tracing::error!("received SIGHUP: {problem}"),
        }
    }

    /// Returns when everything is written, or soon if that cannot be.
    pub(super) fn flush(&self) {
        let (done, answer) = channel();
        let _ = self.tasks.send(Task::Answer(done));
        let _ = answer.recv_timeout(FLUSH_TIMEOUT);
    }

    fn open(&self) -> Result<Option<File>, String> {
        let Some(path) = &self.file else {
            return Ok(None);
        };
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened
            .map(Some)
            .map_err(|error| format!("cannot write the log {}: {error}", path.display()))
    }
}

/// The thread's work.
fn write(tasks: &Receiver<Task>, mut file: Option<File>, waiting: &AtomicUsize) {
    for task in tasks {
        match task {
            Task::Write(line) => {
                waiting.fetch_sub(1, Ordering::Relaxed);
                let _ = match &mut file {
                    Some(file) => file.write_all(&line),
                    None => io::stdout().write_all(&line),
                };
            }
            Task::GoOn(next) => file = Some(next),
            Task::Answer(done) => drop(done.send(())),
        }
    }
}

/// Hands lines to the thread.
#[derive(Clone)]
struct Lines {
    tasks: Sender<Task>,
    /// The number of lines that wait.
    waiting: Arc<AtomicUsize>,
}

impl Write for Lines {
    /// Takes a whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) < MAX_WAITING_LINES {
            let _ = self.tasks.send(Task::Write(one_line(line).into_owned()));
        } else {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The line without control characters but the one at its end, so that nobody can add lines to the
/// log, or tell a terminal what to do. They are shown as JSON shows them, since the line may be
/// JSON. The escape character stays: here it begins a colour, and those of messages are gone.
fn one_line(line: &[u8]) -> Cow<'_, [u8]> {
    let text = String::from_utf8_lossy(line);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let bad = |c: char| c.is_control() && c != '\x1b';
    if !text.contains(bad) {
        return Cow::Borrowed(line);
    }
    let mut safe = String::with_capacity(line.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            c if bad(c) => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => safe.push(c),
        }
    }
    safe.push('\n');
    Cow::Owned(safe.into_bytes())
}

/// The level for one of Redis's names. `notice` is the usual level in production.
fn level(name: &str) -> LevelFilter {
    match name {
        "debug" => LevelFilter::TRACE,
        "verbose" => LevelFilter::DEBUG,
        "warning" => LevelFilter::WARN,
        "nothing" => LevelFilter::OFF,
        _ => LevelFilter::INFO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one() {
        for line in ["plain\n", "\x1b[2mcoloured\x1b[0m é\n", ""] {
            assert_eq!(one_line(line.as_bytes()), line.as_bytes());
        }
        for (line, safe) in [
            ("a\nb\r\tc\n", "a\\nb\\r\\tc\n"),
            (
                "a\0\x07\x7f\u{9b}31m\n",
                "a\\u0000\\u0007\\u007f\\u009b31m\n",
            ),
            ("a\n\n", "a\\n\n"),
        ] {
            assert_eq!(one_line(line.as_bytes()), safe.as_bytes());
        }
    }

    #[test]
    fn what_waits_is_limited() {
        let (tasks, receiver) = channel();
        let mut lines = Lines {
            tasks,
            waiting: Arc::default(),
        };
        for _ in 0..MAX_WAITING_LINES + 10 {
            lines.write_all(b"a line\n").unwrap();
        }
        assert_eq!(receiver.try_iter().count(), MAX_WAITING_LINES);
    }
}
