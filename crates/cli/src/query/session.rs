//! A session: one command a line, until the input ends.

use std::io::{self, BufRead, IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

use everbloom_resp::{Reply, split_words};

use super::docs::Commands;
use super::editor::LineEditor;
use super::print::print;
use crate::client::{Client, Place, Target};
use crate::failure::{Failure, say};

/// Runs the commands of the standard input: typed on a terminal, or one a line.
pub(super) fn run(target: &Target) -> Result<ExitCode, Failure> {
    let mut session = Session {
        client: Some(Client::connect(target)?),
        target,
        database: target.database.to_string(),
        refused: false,
    };
    if io::stdin().is_terminal() {
        session.talk()?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in io::stdin().lock().split(b'\n') {
        if session.execute(&line?, None)?.is_break() {
            break;
        }
    }
    Ok(ExitCode::from(u8::from(session.refused)))
}

struct Session<'t> {
    target: &'t Target,
    /// None after the connection broke, until the next command.
    client: Option<Client>,
    database: String,
    /// Whether any reply was an error.
    refused: bool,
}

impl Session<'_> {
    fn talk(&mut self) -> Result<(), Failure> {
        let docs = self.call(&[b"COMMAND", b"DOCS"]).unwrap_or(Reply::Null);
        let mut editor = LineEditor::new(Commands::read(&docs)).map_err(unusable)?;
        while let Some(line) = editor.line(&self.prompt()).map_err(unusable)? {
            if self.execute(line.as_bytes(), editor.commands())?.is_break() {
                break;
            }
        }
        editor.save();
        Ok(())
    }

    /// The prompt of redis-cli.
    fn prompt(&self) -> String {
        let place = match &self.target.place {
            Place::Tcp { host, port, .. } => format!("{host}:{port}"),
            Place::Unix(path) => path.display().to_string(),
        };
        match (&self.client, self.database.as_str()) {
            (None, _) => "not connected> ".into(),
            (Some(_), "0") => format!("{place}> "),
            (Some(_), database) => format!("{place}[{database}]> "),
        }
    }

    /// Runs a line and prints the reply. When typed, a lost connection is no end.
    fn execute(
        &mut self,
        line: &[u8],
        docs: Option<&Commands>,
    ) -> Result<ControlFlow<()>, Failure> {
        let Some(words) = split_words(line) else {
            self.refused = true;
            say("a quote is not closed");
            return Ok(ControlFlow::Continue(()));
        };
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let Some(name) = words.first() else {
            return Ok(ControlFlow::Continue(()));
        };
        match (name.to_ascii_lowercase().as_slice(), docs) {
            (b"quit" | b"exit", _) => return Ok(ControlFlow::Break(())),
            (b"help" | b"?", Some(docs)) => return help(docs, &words),
            _ => {}
        }
        match self.call(&words) {
            Ok(reply) => {
                self.refused |= reply.is_error();
                if let ([command, database], Reply::Simple(_)) = (words.as_slice(), &reply)
                    && command.eq_ignore_ascii_case(b"select")
                {
                    self.database = String::from_utf8_lossy(database).into_owned();
                }
                print(&words, &reply)?;
            }
            Err(error) if is_answer_to(&error, name) => self.client = None,
            Err(error) if docs.is_some() => {
                self.client = None;
                say(&error.to_string());
            }
            Err(error) => return Err(error),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Sends a command, on a new connection if the old one broke.
    fn call(&mut self, words: &[&[u8]]) -> Result<Reply, Failure> {
        let client = match self.client.take() {
            Some(client) => client,
            None => {
                let mut client = Client::connect(self.target)?;
                client.demand(&["SELECT", &self.database])?;
                client
            }
        };
        self.client.insert(client).call(words)
    }
}

/// Whether the command was done: a server ends the connection as its answer to SHUTDOWN.
pub(super) fn is_answer_to(error: &Failure, command: &[u8]) -> bool {
    matches!(error, Failure::Ended(_)) && command.eq_ignore_ascii_case(b"shutdown")
}

fn unusable(error: rustyline::error::ReadlineError) -> Failure {
    Failure::Io(io::Error::other(error))
}

/// Prints what the server says of a command.
fn help(docs: &Commands, words: &[&[u8]]) -> Result<ControlFlow<()>, Failure> {
    let words: Vec<&str> = words
        .iter()
        .skip(1)
        .filter_map(|word| str::from_utf8(word).ok())
        .collect();
    let mut out = io::stdout();
    match docs.of(&words) {
        Some((row, count)) => {
            let name = words
                .get(..count)
                .unwrap_or_default()
                .join(" ")
                .to_uppercase();
            writeln!(out, "{name} {}\n{}", row.arguments.join(" "), row.summary)?;
        }
        None => writeln!(
            out,
            "help COMMAND shows what it takes; Tab completes a name; Ctrl-D or quit ends"
        )?,
    }
    Ok(ControlFlow::Continue(()))
}
