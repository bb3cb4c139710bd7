//! Commands with subcommands: CLIENT, CONFIG, COMMAND, SLOWLOG, ...

use everbloom_commands::flags::{LOADING, NOSCRIPT, STALE};
use everbloom_resp::Reply;

use super::{Call, Command, Handler, error};

/// A command that only has subcommands.
pub const fn container(name: &'static str, subcommands: &'static [Command]) -> Command {
    let handler = Handler::Plain(|call| Err(call.command.wrong_arity().into()));
    Command::new(name, -2, handler).subcommands(subcommands)
}

/// A subcommand without a key, with the usual flags.
pub const fn subcommand(
    name: &'static str,
    arity: i32,
    function: fn(&mut Call<'_>) -> Result<Reply, Reply>,
) -> Command {
    Command::new(name, arity, Handler::Plain(function)).flags(&[NOSCRIPT, LOADING, STALE])
}

/// The row of the subcommand that a call of a container names. HELP, which every container has, and
/// errors have their reply at once.
pub fn choose(container: &'static Command, args: &[&[u8]]) -> Result<&'static Command, Reply> {
    let Some(word) = args.get(1).copied() else {
        return Ok(container);
    };
    match container.subcommand(word) {
        Some(row) if row.accepts(args.len()) => Ok(row),
        Some(row) => Err(row.wrong_arity().into()),
        None if !word.eq_ignore_ascii_case(b"HELP") => {
            Err(error::unknown_subcommand(word, container.name))
        }
        None if args.len() == 2 => Err(help(container)),
        None => {
            let text = "ERR wrong number of arguments for '{}|help' command";
            Err(Reply::error(text.replace("{}", container.name)))
        }
    }
}

/// Redis's error when the arity of a subcommand is right but its arguments are invalid.
pub fn wrong_use(call: &Call<'_>) -> Reply {
    let word = call.args.get(1).copied().unwrap_or_default();
    let container = call.command.name.split('|').next().unwrap_or_default();
    Reply::error(format!(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
        String::from_utf8_lossy(word),
        container.to_ascii_uppercase()
    ))
}

fn help(container: &Command) -> Reply {
    let mut lines = vec![format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        container.name.to_ascii_uppercase()
    )];
    for row in container.subcommands {
        let (_, name) = row.name.split_once('|').unwrap_or_default();
        let line = format!("{} {}", name.to_ascii_uppercase(), row.docs.usage);
        lines.push(line.trim_end().into());
        lines.push(format!("    {}", row.docs.summary));
    }
    lines.push("HELP".into());
    lines.push("    Print this help.".into());
    Reply::Array(lines.into_iter().map(Reply::simple).collect())
}
