//! The arguments of a command, as COMMAND DOCS describes them, read from its synopsis.
//!
//! ```text
//! key capacity [NONSCALING] [LAYOUT CLASSIC | BLOCKED] [SEED seed] ITEMS item ...
//! ```
//!
//! Words in capitals are typed as they are; other words are names of values, which say their types.
//! `[ ]` may be left out, `|` means one of these, `...` means one or more.

use std::iter::Peekable;
use std::str::SplitWhitespace;

/// One argument, in the terms of COMMAND DOCS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the documentation.
    pub name: String,
    /// What it is.
    pub kind: ArgumentKind,
    /// The word that introduces it, or that it consists of.
    pub token: Option<&'static str>,
    /// Whether it may be left out.
    pub optional: bool,
    /// Whether it may be repeated.
    pub multiple: bool,
}

/// The type of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A key name, with the number of its [specification](crate::Command::key_specs) from 0.
    Key(u8),
    /// Any bytes.
    String,
    /// An integer.
    Integer,
    /// A floating-point number.
    Double,
    /// A word by itself.
    PureToken,
    /// Exactly one of these.
    OneOf(Vec<Argument>),
}

impl ArgumentKind {
    /// The type as COMMAND DOCS shows it.
    pub fn name(&self) -> &'static str {
        match self {
            ArgumentKind::Key(_) => "key",
            ArgumentKind::String => "string",
            ArgumentKind::Integer => "integer",
            ArgumentKind::Double => "double",
            ArgumentKind::PureToken => "pure-token",
            ArgumentKind::OneOf(_) => "oneof",
        }
    }

    /// The type of the values with this name.
    fn of_value(name: &str) -> Self {
        match name {
            "key" | "destination" => ArgumentKind::Key(0),
            "source" => ArgumentKind::Key(1),
            "item" | "data" => ArgumentKind::String,
            "error_rate" | "tightening" => ArgumentKind::Double,
            _ => ArgumentKind::Integer,
        }
    }
}

/// The arguments of a synopsis.
pub fn arguments(synopsis: &'static str) -> Vec<Argument> {
    let mut arguments = Vec::new();
    // Every second part was in brackets.
    for (at, part) in synopsis.split(['[', ']']).enumerate() {
        let begin = arguments.len();
        let mut words = part.split_whitespace().peekable();
        if part.contains('|') {
            arguments.push(one_of(part, words));
        } else {
            arguments.extend(std::iter::from_fn(|| argument(&mut words)));
        }
        for argument in arguments.iter_mut().skip(begin) {
            argument.optional = at % 2 == 1;
        }
    }
    arguments
}

type Words = Peekable<SplitWhitespace<'static>>;

fn argument(words: &mut Words) -> Option<Argument> {
    let first = words.next()?;
    let token = Some(first).filter(|word| is_token(word));
    let value = match token {
        Some(_) => words.next_if(|next| !is_token(next)),
        None => Some(first),
    };
    Some(Argument {
        name: value.unwrap_or(first).to_ascii_lowercase(),
        kind: value.map_or(ArgumentKind::PureToken, ArgumentKind::of_value),
        token,
        optional: false,
        multiple: words.next_if_eq(&"...").is_some(),
    })
}

/// Choices. A word before the first of them introduces them.
fn one_of(part: &'static str, mut words: Words) -> Argument {
    let first = words.next();
    let token = first.filter(|_| words.peek().is_some_and(|next| is_token(next)));
    let choices = part
        .trim_start_matches(token.unwrap_or_default())
        .split('|');
    let choices = choices.filter_map(|choice| argument(&mut choice.split_whitespace().peekable()));
    Argument {
        name: token.unwrap_or("field").to_ascii_lowercase(),
        kind: ArgumentKind::OneOf(choices.collect()),
        token,
        optional: false,
        multiple: false,
    }
}

fn is_token(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::COMMANDS;

    /// An argument as its synopsis.
    fn text(argument: &Argument) -> String {
        let value = match &argument.kind {
            ArgumentKind::OneOf(choices) => {
                let choices: Vec<String> = choices.iter().map(text).collect();
                choices.join(" | ")
            }
            ArgumentKind::PureToken => String::new(),
            _ => argument.name.clone(),
        };
        let words = [argument.token.unwrap_or_default(), &value];
        let words = words.into_iter().filter(|word| !word.is_empty());
        let words: Vec<&str> = words.chain(argument.multiple.then_some("...")).collect();
        let text = words.join(" ");
        if argument.optional {
            format!("[{text}]")
        } else {
            text
        }
    }

    #[test]
    fn every_row_is_read_in_full() {
        for row in COMMANDS {
            let found: Vec<String> = arguments(row.docs.usage).iter().map(text).collect();
            assert_eq!(found.join(" "), row.docs.usage, "{}", row.name);
        }
    }

    #[test]
    fn the_arity_follows_from_the_arguments() {
        for row in COMMANDS {
            let found = arguments(row.docs.usage);
            let words = |argument: &Argument| match (&argument.kind, argument.token) {
                _ if argument.optional => 0,
                (ArgumentKind::PureToken, _) | (_, None) => 1,
                (_, Some(_)) => 2,
            };
            let least = 1 + found.iter().map(words).sum::<i32>();
            let is_open = found.iter().any(|it| it.optional || it.multiple);
            assert_eq!(
                row.arity,
                if is_open { -least } else { least },
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn a_synopsis_becomes_a_tree() {
        let found =
            arguments("key [WINDOW SECONDS seconds | ITEMS] [LOW | HIGH] [NX] RATE error_rate ...");
        let plain = |name: &str, kind, token| Argument {
            name: name.into(),
            kind,
            token,
            optional: false,
            multiple: false,
        };
        let word = |name, token| plain(name, ArgumentKind::PureToken, Some(token));
        let optional = |argument| Argument {
            optional: true,
            ..argument
        };
        let window = vec![
            plain("seconds", ArgumentKind::Integer, Some("SECONDS")),
            word("items", "ITEMS"),
        ];
        let field = vec![word("low", "LOW"), word("high", "HIGH")];
        let rate = plain("error_rate", ArgumentKind::Double, Some("RATE"));
        let expected = [
            plain("key", ArgumentKind::Key(0), None),
            optional(plain("window", ArgumentKind::OneOf(window), Some("WINDOW"))),
            optional(plain("field", ArgumentKind::OneOf(field), None)),
            optional(word("nx", "NX")),
            Argument {
                multiple: true,
                ..rate
            },
        ];
        assert_eq!(found, expected);
    }
}
