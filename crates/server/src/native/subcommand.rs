//! Commands with subcommands: CLIENT, CONFIG, COMMAND, SLOWLOG, ... Dispatch chooses the subcommand
//! before it runs a call.

use everbloom_commands::flags::{LOADING, NOSCRIPT, STALE};
use everbloom_resp::Reply;

use super::{Call, Command, Handler};

/// A command that only has subcommands. By itself it answers HELP.
pub const fn container(name: &'static str, subcommands: &'static [Command]) -> Command {
    Command::new(name, -2, Handler::Plain(help)).subcommands(subcommands)
}

/// A subcommand without a key, with the usual flags.
pub const fn subcommand(
    name: &'static str,
    arity: i32,
    function: fn(&mut Call<'_>) -> Result<Reply, Reply>,
) -> Command {
    Command::new(name, arity, Handler::Plain(function)).flags(&[NOSCRIPT, LOADING, STALE])
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

/// The reply to HELP.
pub fn help(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let container = call.command;
    if call.args.len() > 2 {
        let text = "ERR wrong number of arguments for '{}|help' command";
        return Err(Reply::error(text.replace("{}", container.name)));
    }
    let mut lines = vec![format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        container.name.to_ascii_uppercase()
    )];
    for row in container.subcommands {
        let line = format!("{} {}", row.own_name().to_ascii_uppercase(), row.docs.usage);
        lines.push(line.trim_end().into());
        lines.push(format!("    {}", row.docs.summary));
    }
    lines.push("HELP".into());
    lines.push("    Print this help.".into());
    Ok(Reply::Array(lines.into_iter().map(Reply::simple).collect()))
}
