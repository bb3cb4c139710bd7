//! The line that is being typed: completion, hints and history.

use std::borrow::Cow;
use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{ColorMode, Context, Editor, Helper};

use super::docs::Commands;
use crate::display;

/// A line editor that knows the server's commands.
pub(super) struct LineEditor {
    editor: Editor<Knowledge, FileHistory>,
    history: Option<PathBuf>,
}

impl LineEditor {
    pub(super) fn new(commands: Commands) -> Result<Self, ReadlineError> {
        let mut editor = Editor::new()?;
        // Hints would look like what was typed.
        let plain = display::is_plain();
        if plain {
            editor.set_color_mode(ColorMode::Disabled);
        }
        editor.set_helper(Some(Knowledge { commands, plain }));
        let history = std::env::var_os("EVERBLOOM_HISTORY").map(PathBuf::from);
        let at_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".everbloom_history"));
        let history = history.or_else(at_home);
        if let Some(path) = &history {
            // There is none before the first session.
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, history })
    }

    /// The next line; `None` at the end of the input.
    pub(super) fn line(&mut self, prompt: &str) -> Result<Option<String>, ReadlineError> {
        loop {
            match self.editor.readline(prompt) {
                Ok(line) => {
                    if !holds_a_password(&line) {
                        self.editor.add_history_entry(&line)?;
                    }
                    return Ok(Some(line));
                }
                // The line is given up, as in a shell.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn commands(&self) -> Option<&Commands> {
        self.editor.helper().map(|helper| &helper.commands)
    }

    /// Keeps the history for the next session, as far as that is possible.
    pub(super) fn save(&mut self) {
        if let Some(path) = &self.history {
            let _ = self.editor.save_history(path);
        }
    }
}

/// Whether a line is not to be kept on a disk.
fn holds_a_password(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["auth", "requirepass", "masterauth"]
        .iter()
        .any(|word| line.contains(word))
}

struct Knowledge {
    commands: Commands,
    plain: bool,
}

impl Helper for Knowledge {}

impl Validator for Knowledge {}

impl Completer for Knowledge {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..pos).unwrap_or_default();
        Ok((0, completions(&self.commands, typed)))
    }
}

/// The names that what was typed may become, in its case; a single one with the space behind it.
fn completions(commands: &Commands, typed: &str) -> Vec<String> {
    if typed.is_empty() {
        return Vec::new();
    }
    let upper = typed.chars().any(|letter| letter.is_ascii_uppercase());
    let parts = typed.matches(' ').count();
    let names = commands.beginning_with(typed);
    // A container's subcommands come when the container is complete.
    let names = names.filter(|name| name.matches(' ').count() <= parts);
    let in_case = |name: &str| {
        if upper {
            name.to_ascii_uppercase()
        } else {
            name.to_owned()
        }
    };
    let mut names: Vec<String> = names.map(in_case).collect();
    if let [single] = names.as_mut_slice() {
        single.push(' ');
    }
    names
}

impl Hinter for Knowledge {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<String> {
        (!self.plain && pos == line.len()).then(|| hint(&self.commands, line))?
    }
}

/// The arguments that are still to come.
fn hint(commands: &Commands, line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (row, name) = commands.of(&words)?;
    let given = words.len() - name;
    let rest = row.arguments.get(given..).filter(|rest| !rest.is_empty())?;
    let gap = if line.ends_with(' ') { "" } else { " " };
    Some(format!("{gap}{}", rest.join(" ")))
}

impl Highlighter for Knowledge {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[90m{hint}\x1b[0m"))
    }
}
