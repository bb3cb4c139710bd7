//! COMMAND: the table of commands, for clients that read it.

use everbloom_commands::command::KeySpec;
use everbloom_commands::flags::{ADMIN, FAST, Flags, LOADING, READONLY, STALE, WRITE};
use everbloom_commands::key_use::KeyUse;
use everbloom_commands::synopsis::{self, Argument, ArgumentKind};
use everbloom_resp::Reply;

use super::Handler::{Filter, Plain};
use super::subcommand::{help, subcommand};
use super::{Call, Command, count, error, gather, map};
use crate::call::Registry;
use crate::glob;

/// The row of COMMAND, the only container that also runs without a subcommand.
pub const COMMAND: Command = Command::new("command", -1, Plain(all_or_help))
    .since("2.8.13")
    .flags(&[LOADING, STALE])
    .subcommands(SUBCOMMANDS);

const SUBCOMMANDS: &[Command] = rows! {
    /// Return the total number of commands in this server.
    subcommand("command|count", 2, |call| Ok(count(call.registry.commands().len())))
        .since("2.8.13"),
    /// Return documentation details about some commands, or about all.
    subcommand("command|docs", -2, docs).since("7.0.0").usage("[<command-name> ...]"),
    /// Return the keys from a full command.
    subcommand("command|getkeys", -3, get_keys).since("2.8.13").usage("<full-command>"),
    /// Return details about some commands, or about all.
    subcommand("command|info", -2, info).since("2.8.13").usage("[<command-name> ...]"),
    /// Return a list of all commands, or of those of a module, a category or a pattern.
    subcommand("command|list", -2, list)
        .since("7.0.0").usage("[FILTERBY (MODULE <name> | ACLCAT <category> | PATTERN <pattern>)]"),
};

fn all_or_help(call: &mut Call<'_>) -> Result<Reply, Reply> {
    match call.args {
        [_] => info(call),
        _ => help(call),
    }
}

/// A command, or a subcommand written `client|id` with its container.
struct Described {
    row: &'static Command,
    container: Option<&'static Command>,
}

fn find(registry: &'static Registry, name: &[u8]) -> Option<Described> {
    let command = name.split(|byte| *byte == b'|').next()?;
    let command = Described::command(&registry.find(command)?.row);
    let is_named = |found: &Described| found.row.name.as_bytes().eq_ignore_ascii_case(name);
    if is_named(&command) {
        return Some(command);
    }
    command.subcommands().find(is_named)
}

fn all(registry: &'static Registry) -> impl Iterator<Item = Described> {
    let commands = registry.commands().iter();
    commands.map(|command| Described::command(&command.row))
}

impl Described {
    fn command(row: &'static Command) -> Self {
        let container = None;
        Described { row, container }
    }

    fn subcommands(&self) -> impl Iterator<Item = Described> {
        let container = Some(self.row);
        let rows = self.row.subcommands.iter();
        rows.map(move |row| Described { row, container })
    }

    /// A subcommand is in the group of its container.
    fn group(&self) -> &'static str {
        self.container.unwrap_or(self.row).docs.group
    }

    /// The access control categories, with their `@`.
    fn categories(&self) -> Vec<&'static str> {
        match self.row.docs.acl {
            [] => categories_of(self.row.flags, self.group()),
            acl => acl.to_vec(),
        }
    }

    /// Whether a filter of COMMAND LIST shows it; `None` if there is no such filter.
    fn is_of(&self, by: &[u8], value: &[u8]) -> Option<bool> {
        match by.to_ascii_uppercase().as_slice() {
            b"MODULE" => Some(matches!(self.row.handler, Filter(_)) && value == b"bf"),
            b"ACLCAT" => {
                let mut categories = self.categories().into_iter();
                Some(categories.any(|name| name.as_bytes().strip_prefix(b"@") == Some(value)))
            }
            b"PATTERN" => Some(glob::matches_any_case(value, self.row.name.as_bytes())),
            _ => None,
        }
    }

    fn describe(&self) -> Reply {
        let Command {
            name,
            arity,
            flags,
            keys,
            docs,
            ..
        } = self.row;
        Reply::Array(vec![
            Reply::bulk(*name),
            Reply::Integer((*arity).into()),
            Reply::Set(flags.names().map(Reply::simple).collect()),
            Reply::Integer(keys.first.into()),
            Reply::Integer(keys.last.into()),
            Reply::Integer(keys.step.into()),
            Reply::Set(self.categories().into_iter().map(Reply::simple).collect()),
            Reply::Array(docs.tips.iter().map(|tip| Reply::bulk(*tip)).collect()),
            Reply::Array(self.row.key_specs().map(key_spec).collect()),
            Reply::Array(self.subcommands().map(|found| found.describe()).collect()),
        ])
    }

    fn document(&self) -> (Reply, Reply) {
        let docs = self.row.docs;
        let mut fields = vec![
            ("summary", Reply::bulk(docs.summary)),
            ("since", Reply::bulk(docs.since)),
            ("group", Reply::bulk(self.group())),
        ];
        if !docs.complexity.is_empty() {
            fields.push(("complexity", Reply::bulk(docs.complexity)));
        }
        if matches!(self.row.handler, Filter(_)) {
            fields.push(("module", Reply::bulk("bf")));
            fields.push(("arguments", arguments(&synopsis::arguments(docs.usage))));
        }
        let subcommands: Vec<_> = self.subcommands().map(|found| found.document()).collect();
        if !subcommands.is_empty() {
            fields.push(("subcommands", Reply::Map(subcommands)));
        }
        (Reply::bulk(self.row.name), map(fields))
    }
}

/// The named commands, or all.
fn asked(call: &Call<'_>) -> Result<Vec<Option<Described>>, Reply> {
    match call.args().rest() {
        [] => gather(all(call.registry).map(|found| Ok(Some(found)))),
        names => {
            call.check_list_reply(names.len().saturating_mul(MAX_DESCRIBED_BYTES))?;
            gather(names.iter().map(|n| Ok(find(call.registry, n))))
        }
    }
}

/// More bytes than the description of a command takes in memory, with its subcommands.
const MAX_DESCRIBED_BYTES: usize = 16 << 10;

fn info(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let describe = |found: Option<Described>| found.map_or(Reply::Null, |found| found.describe());
    let found = asked(call)?.into_iter();
    gather(found.map(|found| Ok(describe(found)))).map(Reply::Array)
}

fn docs(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let found = asked(call)?.into_iter().flatten();
    gather(found.map(|found| Ok(found.document()))).map(Reply::Map)
}

/// Redis derives most categories from flags and group, and so does this server, in Redis's order.
fn categories_of(flags: Flags, group: &str) -> Vec<&'static str> {
    let all = [
        ("@keyspace", group == "generic"),
        ("@read", flags.has(READONLY)),
        ("@write", flags.has(WRITE)),
        ("@string", group == "string"),
        ("@bitmap", group == "bitmap"),
        ("@admin", flags.has(ADMIN)),
        ("@fast", flags.has(FAST)),
        ("@slow", !flags.has(FAST)),
        ("@dangerous", flags.has(ADMIN)),
        ("@connection", group == "connection"),
        ("@transaction", group == "transactions"),
    ];
    let held = all.into_iter().filter(|(_, is_in)| *is_in);
    held.map(|(category, _)| category).collect()
}

fn key_spec((keys, key_use): (KeySpec, KeyUse)) -> Reply {
    // Redis counts the last key from the first, unless it counts from the end.
    let last = if keys.last < 0 {
        keys.last
    } else {
        keys.last - keys.first
    };
    let flags = key_use.names().map(Reply::simple).collect();
    let begin = map([
        ("type", Reply::bulk("index")),
        ("spec", map([("index", Reply::Integer(keys.first.into()))])),
    ]);
    let range = map([
        ("lastkey", Reply::Integer(last.into())),
        ("keystep", Reply::Integer(keys.step.into())),
        ("limit", Reply::Integer(0)),
    ]);
    let find = map([("type", Reply::bulk("range")), ("spec", range)]);
    map([
        ("flags", Reply::Set(flags)),
        ("begin_search", begin),
        ("find_keys", find),
    ])
}

fn arguments(list: &[Argument]) -> Reply {
    Reply::Array(list.iter().map(argument).collect())
}

fn argument(argument: &Argument) -> Reply {
    let mut fields = vec![
        ("name", Reply::bulk(argument.name.as_str())),
        ("type", Reply::bulk(argument.kind.name())),
    ];
    if let ArgumentKind::Key(number) = argument.kind {
        fields.push(("key_spec_index", Reply::Integer(number.into())));
    }
    if let Some(token) = argument.token {
        fields.push(("token", Reply::bulk(token)));
    }
    let optional = argument.optional.then_some("optional");
    let multiple = argument.multiple.then_some("multiple");
    if optional.or(multiple).is_some() {
        let flags = optional.into_iter().chain(multiple).map(Reply::simple);
        fields.push(("flags", Reply::Set(flags.collect())));
    }
    if let ArgumentKind::OneOf(choices) = &argument.kind {
        fields.push(("arguments", arguments(choices)));
    }
    map(fields)
}

fn list(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let filter = match call.args().rest() {
        [] => None,
        [word, by, value] if word.eq_ignore_ascii_case(b"FILTERBY") => Some((*by, *value)),
        _ => return Err(error::syntax()),
    };
    let described = all(call.registry).flat_map(|found| {
        let own: Vec<Described> = found.subcommands().collect();
        std::iter::once(found).chain(own)
    });
    let mut names = Vec::new();
    for found in described {
        let shown = match filter {
            Some((by, value)) => found.is_of(by, value).ok_or_else(error::syntax)?,
            None => true,
        };
        if shown {
            names.push(Reply::bulk(found.row.name));
        }
    }
    Ok(Reply::Array(names))
}

fn get_keys(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let args = call.args().rest();
    let command = args.first().and_then(|name| call.registry.find(name));
    let command = command.and_then(|command| command.of_call(args).ok());
    let command = command.ok_or_else(|| Reply::error("ERR Invalid command specified"))?;
    if command.keys.first == 0 {
        return Err(Reply::error("ERR The command has no key arguments"));
    }
    if !command.accepts(args.len()) {
        return Err(Reply::error(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    let keys = command.keys.of(args);
    gather(keys.map(|key| Ok(Reply::bulk(key)))).map(Reply::Array)
}

#[cfg(test)]
mod tests {
    use everbloom_resp::{Protocol, encode};

    use super::super::testing::Bench;

    /// The replies that clients read at their start: flags, keys, categories and documentation,
    /// word for word.
    #[test]
    fn what_clients_ask_for_first_is_what_it_was() {
        let mut bench = Bench::default();
        let mut bytes = Vec::new();
        for line in [
            "COMMAND",
            "COMMAND DOCS",
            "COMMAND INFO client|id Get acl|whoami object nope get|x",
            "COMMAND DOCS client|id Get nope bf.add",
        ] {
            bytes.extend_from_slice(format!("> {line}\r\n").as_bytes());
            encode(&bench.run(line), Protocol::Resp3, &mut bytes);
        }
        let text = String::from_utf8(bytes).unwrap();
        // The lengths of strings are redundant in a comparison of strings.
        let words = text.split("\r\n").filter(|word| !word.starts_with('$'));
        // One line for each command, and for each of its parts that is a map.
        let starts_line = |word: &str| word == "*10" || word.starts_with(['>', '%']);
        let text: String = words
            .map(|word| format!("{}{word}", if starts_line(word) { '\n' } else { ' ' }))
            .collect();
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/command.txt");
        let wanted = std::fs::read_to_string(golden).unwrap_or_default();
        if text != wanted {
            let new = std::env::temp_dir().join("everbloom-command.txt");
            std::fs::write(&new, &text).unwrap();
            panic!("{} differs from {golden}", new.display());
        }
    }
}
