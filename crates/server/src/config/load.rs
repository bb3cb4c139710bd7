//! Reads settings from files and the command line, as redis-server does.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Settings;
use super::foreign::{self, Foreign};
use super::parameter::Parameter;
use super::text::{NO_MEMORY_VALUE, split_words};
use crate::glob;

/// Settings, and messages for the log about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// Lines that have no effect here.
    pub warnings: Vec<String>,
}

/// The maximum depth of included files.
const MAX_INCLUDE_DEPTH: usize = 16;

/// Loads settings from the words of a command line: an optional file (`-` is the standard input),
/// then settings as `--name value ...` or `--name=value`, which override it.
pub fn load(args: &[OsString]) -> Result<Loaded, String> {
    let mut loader = SettingsLoader::new(Settings::serving());
    let mut options = args;
    if let Some((first, _)) = args.split_first() {
        check_dashes(first)?;
    }
    if let Some((file, rest)) = args.split_first()
        && !file.to_string_lossy().starts_with("--")
    {
        options = rest;
        if file == "-" {
            let path = PathBuf::from("standard input");
            let text = io::read_to_string(io::stdin()).map_err(|e| unreadable(&path, &e))?;
            loader.read(&text, &path, 0)?;
        } else {
            let path = PathBuf::from(file);
            loader.read_file(&path, 0)?;
            let path = path.canonicalize().map_err(|e| unreadable(&path, &e))?;
            loader.loaded.settings.config_file = Some(path);
        }
    }
    loader.save_given = false;
    for words in sort(options)? {
        let applied = loader.apply(&words);
        applied.map_err(|reason| {
            // CONFIG SET has Redis's words alone.
            let example = match reason.as_str() {
                NO_MEMORY_VALUE => ", such as 512mb or 4gb",
                _ => "",
            };
            format!("'--{}': {reason}{example}", words.join(" "))
        })?;
    }
    Ok(loader.loaded)
}

/// Loads the text of a file over `settings`, line by line.
pub(super) fn load_text(settings: Settings, text: &str, path: &Path) -> Result<Settings, String> {
    let mut loader = SettingsLoader::new(settings);
    loader.read(text, path, 0)?;
    Ok(loader.loaded.settings)
}

/// Refuses a word such as `-p` where a file or the name of a setting is expected.
fn check_dashes(word: &OsStr) -> Result<(), String> {
    let word = word.to_string_lossy();
    let letters = word.strip_prefix('-').filter(|name| {
        let first = name.chars().next();
        first.is_some_and(|first| first.is_ascii_alphabetic())
    });
    match letters {
        None => Ok(()),
        Some("p") => Err("'-p': write it as --port, such as --port 7000".into()),
        Some(name) if name.len() > 1 => Err(format!("'-{name}': write it as --{name}")),
        Some(name) => Err(format!(
            "'-{name}': a setting has its whole name and two dashes, such as --port 7000"
        )),
    }
}

/// Sorts the words of a command line into settings, each a name with its values.
fn sort(args: &[OsString]) -> Result<Vec<Vec<String>>, String> {
    let mut settings: Vec<Vec<String>> = Vec::new();
    // The word after a name is a value even if it looks like a name.
    let mut value_due = false;
    for arg in args {
        let wrong = |reason: &str| {
            let shown = arg.to_string_lossy();
            format!("'--{}': {reason}", shown.trim_start_matches("--"))
        };
        let text = arg.to_str().ok_or_else(|| wrong("not UTF-8"))?;
        if let Some(name) = text.strip_prefix("--").filter(|_| !value_due) {
            let (name, value) = match name.split_once(['=', ' ']) {
                Some((name, value)) => (name, Some(value.trim())),
                None => (name, None),
            };
            if name.is_empty() {
                return Err(wrong("a setting without a name"));
            }
            settings.push([name].into_iter().chain(value).map(Into::into).collect());
            value_due = value.is_none();
        } else {
            if settings.is_empty() {
                check_dashes(arg)?;
            }
            let words = settings.last_mut();
            let words = words.ok_or_else(|| wrong("expected --NAME VALUE"))?;
            words.push(text.into());
            value_due = false;
        }
    }
    Ok(settings)
}

struct SettingsLoader {
    loaded: Loaded,
    /// Whether save points were given: the first line replaces the default, further lines add to
    /// it.
    save_given: bool,
}

impl SettingsLoader {
    fn new(settings: Settings) -> Self {
        let warnings = Vec::new();
        SettingsLoader {
            loaded: Loaded { settings, warnings },
            save_given: false,
        }
    }

    fn read_file(&mut self, path: &Path, depth: usize) -> Result<(), String> {
        let text = fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
        self.read(&text, path, depth)
    }

    fn read(&mut self, text: &str, path: &Path, depth: usize) -> Result<(), String> {
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |reason: String| {
                format!("{}, line {}: '{line}': {reason}", path.display(), index + 1)
            };
            let words = split_words(line)
                .ok_or_else(|| wrong("Unbalanced quotes in configuration line".into()))?;
            match words.as_slice() {
                [name, pattern] if name.eq_ignore_ascii_case("include") => {
                    if depth == MAX_INCLUDE_DEPTH {
                        return Err(wrong("files include each other too deep".into()));
                    }
                    for included in included(pattern).map_err(|e| wrong(e.to_string()))? {
                        self.read_file(&included, depth + 1)?;
                    }
                }
                words => {
                    let before = self.loaded.warnings.len();
                    self.apply(words).map_err(wrong)?;
                    for warning in self.loaded.warnings.iter_mut().skip(before) {
                        *warning = format!("{}, line {}: {warning}", path.display(), index + 1);
                    }
                }
            }
        }
        Ok(())
    }

    /// Applies one setting: its name and its values.
    fn apply(&mut self, words: &[String]) -> Result<(), String> {
        let Some((name, values)) = words.split_first() else {
            return Ok(());
        };
        if name.eq_ignore_ascii_case("loadmodule") {
            return self.load_module(values);
        }
        if let Some(parameter) = Parameter::find(name) {
            if parameter.name == "save" {
                return self.add_save_points(parameter, values);
            }
            return match values {
                [value] => (parameter.set)(&mut self.loaded.settings, value),
                [_, ..] if parameter.list => {
                    (parameter.set)(&mut self.loaded.settings, &values.join(" "))
                }
                _ => Err("wrong number of arguments".into()),
            };
        }
        match foreign::find(name) {
            Some(Foreign::Ignored) => {
                self.loaded
                    .warnings
                    .push(format!("the setting '{name}' has no effect here"));
                Ok(())
            }
            Some(Foreign::Refused { unless }) if values == [unless] => Ok(()),
            Some(Foreign::Refused { .. }) => {
                Err("not supported, and not safe to ignore".to_owned())
            }
            None => Err(foreign::unknown(name)),
        }
    }

    /// `save ""` ends the points before it. `save` adds none, and ends only the default ones.
    fn add_save_points(&mut self, save: &Parameter, values: &[String]) -> Result<(), String> {
        if self.save_given && values.is_empty() {
            return Ok(());
        }
        let mut text = values.join(" ");
        if self.save_given && !text.is_empty() {
            text = format!("{} {text}", (save.get)(&self.loaded.settings));
        }
        self.save_given = true;
        (save.set)(&mut self.loaded.settings, &text)
    }

    /// RedisBloom is built in: its arguments are settings. Other modules are not available.
    fn load_module(&mut self, values: &[String]) -> Result<(), String> {
        let Some((path, arguments)) = values.split_first() else {
            return Err("wrong number of arguments".into());
        };
        let file = path.rsplit('/').next().unwrap_or(path);
        if !file.to_ascii_lowercase().contains("bloom") {
            return Err("modules cannot be loaded".into());
        }
        for pair in arguments.chunks(2) {
            let [name, value] = pair else {
                return Err("wrong number of arguments".into());
            };
            let name = match name.to_ascii_uppercase().as_str() {
                "ERROR_RATE" | "BLOOM-FP-RATE" => "bf-error-rate".into(),
                "INITIAL_SIZE" | "BLOOM-CAPACITY" => "bf-initial-size".into(),
                "EXPANSION" | "BLOOM-EXPANSION" => "bf-expansion-factor".into(),
                cuckoo if cuckoo.starts_with("CF_") => cuckoo.to_lowercase().replace('_', "-"),
                // Other modules have others.
                _ => {
                    self.loaded
                        .warnings
                        .push(format!("the module argument '{name}' has no effect here"));
                    continue;
                }
            };
            self.apply(&[name, value.clone()])?;
        }
        Ok(())
    }
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot be read: {error}", path.display())
}

/// The files that `include` names: one, or those of a folder whose names match a pattern, sorted.
/// As in glob(3), a pattern may match nothing, and only one that begins with a dot matches names that
/// do.
fn included(pattern: &str) -> io::Result<Vec<PathBuf>> {
    let path = Path::new(pattern);
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    if !name.iter().any(|b| b"*?[".contains(b)) {
        return Ok(vec![path.into()]);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut files = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    let with_dot = name.starts_with(b".") || name.starts_with(b"\\.");
    for entry in entries {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if is_hidden && !with_dot {
            continue;
        }
        if glob::matches(name, entry.file_name().as_encoded_bytes()) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
