//! Commands that hold subcommands: CLIENT, CONFIG, COMMAND, SLOWLOG, ...

use everbloom_resp::Reply;

use super::{Call, error};

/// A subcommand.
#[derive(Debug)]
pub struct Subcommand {
    /// In upper case.
    pub name: &'static str,
    /// Arguments with both names; negative = at least so many.
    pub arity: i32,
    /// Flags as COMMAND shows them.
    pub flags: &'static [&'static str],
    /// The version of Redis that it comes from.
    pub since: &'static str,
    /// One line.
    pub summary: &'static str,
    /// How HELP shows its arguments, the name included; empty = not shown.
    pub usage: &'static str,
    /// What to run.
    pub run: fn(&mut Call<'_>) -> Reply,
}

/// What most subcommands have in common.
pub const SUBCOMMAND: Subcommand = Subcommand {
    name: "",
    arity: 2,
    flags: &["noscript", "loading", "stale"],
    since: "2.0.0",
    summary: "",
    usage: "",
    run: |_| Reply::OK,
};

impl Subcommand {
    /// As errors and COMMAND show it: `client|id`.
    pub fn full_name(&self, container: &str) -> String {
        format!("{container}|{}", self.name).to_ascii_lowercase()
    }

    fn accepts(&self, count: usize) -> bool {
        let wanted = usize::try_from(self.arity.unsigned_abs()).unwrap_or(usize::MAX);
        if self.arity < 0 {
            count >= wanted
        } else {
            count == wanted
        }
    }
}

/// Runs the subcommand of `table` that the call names; HELP is one of every table.
pub fn run(call: &mut Call<'_>, table: &'static [Subcommand]) -> Reply {
    let container = call.command.name;
    let Some(word) = call.args.get(1).copied() else {
        return error::wrong_arity(call.command.lower);
    };
    let found = table
        .iter()
        .find(|s| s.name.as_bytes().eq_ignore_ascii_case(word));
    match found {
        Some(found) if found.accepts(call.args.len()) => (found.run)(call),
        Some(found) => error::wrong_arity(&found.full_name(container)),
        None if word.eq_ignore_ascii_case(b"HELP") => {
            if call.args.len() == 2 {
                help(container, table)
            } else {
                error::wrong_arity(&format!("{}|help", call.command.lower))
            }
        }
        None => error::unknown_subcommand(word, container),
    }
}

/// What Redis says when the arity of a subcommand fits and its arguments still make no sense.
pub fn wrong_use(call: &Call<'_>) -> Reply {
    let word = call.args.get(1).copied().unwrap_or_default();
    Reply::error(format!(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
        String::from_utf8_lossy(word),
        call.command.name
    ))
}

fn help(container: &str, table: &[Subcommand]) -> Reply {
    let mut lines = vec![format!(
        "{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    )];
    for subcommand in table.iter().filter(|s| !s.usage.is_empty()) {
        lines.push(subcommand.usage.into());
        lines.push(format!("    {}", subcommand.summary));
    }
    lines.push("HELP".into());
    lines.push("    Prints this help.".into());
    Reply::Array(lines.into_iter().map(Reply::simple).collect())
}
