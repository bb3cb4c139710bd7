//! What of each record is compared, as the file of a filter remembers it: in a note in front of the
//! filter.

use std::fmt::{self, Write};
use std::path::Path;

use everbloom::bytes::Note;

use super::case::Case;
use crate::failure::{Failure, say};

/// The parts of [`Selection`] that are a whole record: one that ends with a line feed, and one that
/// ends with NUL, whose bytes are taken as they are.
pub(super) const WHOLE_LINES: &str = "whole lines";
pub(super) const WHOLE_RECORDS: &str = "whole records that end with NUL";

/// The last line of a note whose filter ignores case.
const IGNORE_CASE: &str = "--ignore-case";

/// What of each record is compared, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// The part of a record, as the options say it. `None` when nobody knows.
    pub(crate) part: Option<String>,
    pub(crate) case: Case,
}

impl Selection {
    /// What a filter remembers that has this note in front. An error is the text of a critical note
    /// that is none of ours.
    pub(crate) fn of_note(note: Option<&Note>) -> Result<Self, String> {
        let Some(note) = note else {
            return Ok(Self::default());
        };
        let part = |text: &str| Some(text.to_owned());
        if !note.is_critical() {
            return Ok(Self {
                part: part(note.text()),
                case: Case::Kept,
            });
        }
        let (part, last) = match note.text().rsplit_once('\n') {
            Some((first, last)) => (part(first), last),
            None => (None, note.text()),
        };
        if last != IGNORE_CASE {
            return Err(printable(note.text()));
        }
        Ok(Self {
            part,
            case: Case::Ignored,
        })
    }

    /// The note, if there is something to remember.
    pub(crate) fn to_note(&self) -> Result<Option<Note>, Failure> {
        let text = match (&self.part, self.case) {
            (None, Case::Kept) => return Ok(None),
            (Some(part), Case::Kept) => part.clone(),
            (None, Case::Ignored) => IGNORE_CASE.to_owned(),
            (Some(part), Case::Ignored) => format!("{part}\n{IGNORE_CASE}"),
        };
        let note = Note::new(text).ok_or_else(|| {
            Failure::Other(format!(
                "a filter's file remembers what is compared in at most {} bytes; give fewer or \
                 shorter fields",
                Note::MAX_LEN
            ))
        })?;
        Ok(Some(match self.case {
            Case::Kept => note,
            Case::Ignored => note.critical(),
        }))
    }

    /// That of a filter with so many items. Without any, nothing was compared yet.
    pub(crate) fn of_items(&self, items: u64) -> Self {
        Self {
            part: self.part.clone().filter(|_| items > 0),
            case: self.case,
        }
    }

    /// Whether a record is a value by itself, as in a list.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.part.as_deref(), Some(WHOLE_LINES | WHOLE_RECORDS))
    }

    /// What filters remember together, if they can be merged. With `any_part` they can when they
    /// have other parts, too: that of the first one stays.
    pub(crate) fn union(&self, other: &Self, any_part: bool) -> Option<Self> {
        let part = self.part.clone().or_else(|| other.part.clone());
        let is_alike = self.part.is_none() || other.part.is_none() || self.part == other.part;
        let alike = (is_alike || any_part) && self.case == other.case;
        alike.then_some(Self {
            part,
            case: self.case,
        })
    }

    /// The filter of `path` goes to `place`, which remembers nothing: says so. Refuses to when
    /// members would not be found there.
    pub(crate) fn leave(&self, path: &Path, place: &str, is_quiet: bool) -> Result<(), Failure> {
        let path = path.display();
        if self.case == Case::Ignored {
            return Err(Failure::Other(format!(
                "{path} was made with --ignore-case, and {place} cannot remember that: what is \
                 asked for there in capital letters would not be found; build a filter without \
                 --ignore-case, of records in small letters"
            )));
        }
        if self.part.is_some() && !self.is_whole() && !is_quiet {
            say(&format!(
                "{place} cannot remember what {path} does: it was made of {self}"
            ));
        }
        Ok(())
    }
}

/// What stands behind "remembers" and "compares".
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.part, self.case) {
            (None, Case::Kept) => f.write_str("nothing of what was compared"),
            (None, Case::Ignored) => f.write_str("records, ignoring case"),
            (Some(part), Case::Kept) => f.write_str(&printable(part)),
            (Some(part), Case::Ignored) => write!(f, "{}, ignoring case", printable(part)),
        }
    }
}

/// The text, with escapes for what a terminal would obey.
pub(super) fn printable(text: &str) -> String {
    let mut printable = String::new();
    for character in text.chars() {
        // Writing to a string cannot fail.
        let _ = match character.is_control() {
            true => write!(printable, "{}", character.escape_default()),
            false => printable.write_char(character),
        };
    }
    printable
}

/// A word as a shell reads it.
pub(super) fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.,:;/=+-%@".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back() {
        for part in [None, Some("whole lines"), Some("--field 1 -d '\n'")] {
            for case in [Case::Kept, Case::Ignored] {
                let part = part.map(str::to_owned);
                let selection = Selection { part, case };
                let note = selection.to_note().unwrap();
                assert_eq!(Selection::of_note(note.as_ref()), Ok(selection));
                let is_critical = note.is_some_and(|note| note.is_critical());
                assert_eq!(is_critical, case == Case::Ignored);
            }
        }
        let long = Selection {
            part: Some("x".repeat(Note::MAX_LEN + 1)),
            case: Case::Kept,
        };
        assert!(long.to_note().is_err());
    }

    #[test]
    fn words() {
        for (word, expected) in [
            (".a.b", ".a.b"),
            (",", ","),
            ("", "''"),
            (", ", "', '"),
            ("it's", "'it'\\''s'"),
            (".a[0]", "'.a[0]'"),
        ] {
            assert_eq!(shell_word(word), expected);
        }
        assert_eq!(printable("a\u{1b}[0m\tb"), "a\\u{1b}[0m\\tb");
    }
}
