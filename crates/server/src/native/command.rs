//! COMMAND: the table of commands, for clients that ask what there is.

use everbloom_commands::table::{Argument, ArgumentKind, KeySpec};
use everbloom_resp::Reply;

use super::subcommand::{self, SUBCOMMAND, Subcommand};
use super::{Call, client, config, error, server};
use crate::glob;
use crate::lock::keys_of;
use crate::registry::{Kind, Registered, Registry};

/// The subcommands.
pub const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "COUNT",
        since: "2.8.13",
        summary: "Return the total number of commands in this server.",
        usage: "COUNT",
        run: |_| Reply::Integer(number(Registry::get().commands().len())),
        ..SUBCOMMAND
    },
    Subcommand {
        name: "DOCS",
        arity: -2,
        since: "7.0.0",
        summary: "Return documentation details about some commands, or about all.",
        usage: "DOCS [<command-name> ...]",
        run: docs,
        ..SUBCOMMAND
    },
    Subcommand {
        name: "GETKEYS",
        arity: -3,
        since: "2.8.13",
        summary: "Return the keys from a full command.",
        usage: "GETKEYS <full-command>",
        run: get_keys,
        ..SUBCOMMAND
    },
    Subcommand {
        name: "INFO",
        arity: -2,
        since: "2.8.13",
        summary: "Return details about some commands, or about all.",
        usage: "INFO [<command-name> ...]",
        run: info,
        ..SUBCOMMAND
    },
    Subcommand {
        name: "LIST",
        arity: -2,
        since: "7.0.0",
        summary: "Return a list of commands, all or by MODULE, ACLCAT or PATTERN.",
        usage: "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
        run: list,
        ..SUBCOMMAND
    },
];

/// The categories that ACL CAT lists.
pub const CATEGORIES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    "bloom",
];

/// COMMAND.
pub fn command(call: &mut Call<'_>) -> Reply {
    if call.args.len() == 1 {
        return Reply::Array(Registry::get().commands().iter().map(describe).collect());
    }
    subcommand::run(call, SUBCOMMANDS)
}

/// The subcommands of a command, but for HELP.
fn subcommands_of(name: &str) -> &'static [Subcommand] {
    match name {
        "ACL" => server::ACL,
        "CLIENT" => client::SUBCOMMANDS,
        "COMMAND" => SUBCOMMANDS,
        "CONFIG" => config::SUBCOMMANDS,
        "LATENCY" => server::LATENCY,
        "MODULE" => server::MODULE,
        "SLOWLOG" => server::SLOWLOG,
        _ => &[],
    }
}

/// A command, or a subcommand written `client|id`.
enum Found {
    Command(&'static Registered),
    Subcommand(&'static Registered, &'static Subcommand),
}

fn find(name: &[u8]) -> Option<Found> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let command = Registry::get().find(parts.next()?)?;
    let Some(word) = parts.next() else {
        return Some(Found::Command(command));
    };
    let subcommand = subcommands_of(command.name)
        .iter()
        .find(|s| s.name.as_bytes().eq_ignore_ascii_case(word))?;
    Some(Found::Subcommand(command, subcommand))
}

fn info(call: &mut Call<'_>) -> Reply {
    let names = call.args.get(2..).unwrap_or_default();
    if names.is_empty() {
        return Reply::Array(Registry::get().commands().iter().map(describe).collect());
    }
    let described = names.iter().map(|name| match find(name) {
        Some(Found::Command(command)) => describe(command),
        Some(Found::Subcommand(command, subcommand)) => describe_subcommand(command, subcommand),
        None => Reply::Null,
    });
    Reply::Array(described.collect())
}

fn describe(command: &Registered) -> Reply {
    let tips: &[&str] = match command.kind {
        Kind::Filter(row) => row.tips,
        Kind::Native(_) => &[],
    };
    let subcommands = subcommands_of(command.name);
    Reply::Array(vec![
        Reply::bulk(command.lower),
        Reply::Integer(command.arity.into()),
        Reply::Set(
            command
                .flags
                .iter()
                .map(|flag| Reply::simple(*flag))
                .collect(),
        ),
        Reply::Integer(command.keys.first.into()),
        Reply::Integer(command.keys.last.into()),
        Reply::Integer(command.keys.step.into()),
        Reply::Set(categories(command).into_iter().map(Reply::simple).collect()),
        Reply::Array(tips.iter().map(|tip| Reply::bulk(*tip)).collect()),
        key_specs(command.keys, command.write),
        Reply::Array(
            subcommands
                .iter()
                .map(|s| describe_subcommand(command, s))
                .collect(),
        ),
    ])
}

fn describe_subcommand(command: &Registered, subcommand: &Subcommand) -> Reply {
    let flags = subcommand.flags;
    let categories = categories_of(flags, group(command)).into_iter();
    Reply::Array(vec![
        Reply::bulk(subcommand.full_name(command.name)),
        Reply::Integer(subcommand.arity.into()),
        Reply::Set(flags.iter().map(|flag| Reply::simple(*flag)).collect()),
        Reply::Integer(0),
        Reply::Integer(0),
        Reply::Integer(0),
        Reply::Set(categories.map(Reply::simple).collect()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
    ])
}

fn group(command: &Registered) -> &'static str {
    match command.kind {
        Kind::Filter(row) => row.group,
        Kind::Native(row) => row.group,
    }
}

/// The access control categories of a command, with their `@`.
fn categories(command: &Registered) -> Vec<&'static str> {
    match command.kind {
        Kind::Filter(row) => row.acl.to_vec(),
        Kind::Native(row) => categories_of(row.flags, row.group),
    }
}

/// Redis derives most categories from flags and group, and so do we.
fn categories_of(flags: &[&str], group: &str) -> Vec<&'static str> {
    let has = |flag| flags.contains(&flag);
    let mut categories = Vec::new();
    categories.extend(match group {
        "generic" => Some("@keyspace"),
        "string" => Some("@string"),
        "bitmap" => Some("@bitmap"),
        "connection" => Some("@connection"),
        "transactions" => Some("@transaction"),
        _ => None,
    });
    for (flag, category) in [
        ("write", "@write"),
        ("readonly", "@read"),
        ("admin", "@admin"),
    ] {
        if has(flag) {
            categories.push(category);
        }
    }
    categories.push(if has("fast") { "@fast" } else { "@slow" });
    if has("admin") {
        categories.push("@dangerous");
    }
    // In the order in which ACL CAT lists them.
    let place = |name: &str| {
        CATEGORIES
            .iter()
            .position(|c| name.strip_prefix('@') == Some(*c))
    };
    categories.sort_by_key(|name| place(name));
    categories
}

/// The names of the commands in a category, which is given without its `@`.
pub fn in_category(category: &str) -> impl Iterator<Item = &'static str> {
    let commands = Registry::get().commands().iter();
    commands
        .filter(move |command| {
            let categories = categories(command);
            categories
                .iter()
                .any(|c| c.strip_prefix('@') == Some(category))
        })
        .map(|command| command.lower)
}

fn key_specs(keys: KeySpec, write: bool) -> Reply {
    if keys.first == 0 {
        return Reply::Array(Vec::new());
    }
    let flags: &[&str] = if write {
        &["RW", "access", "update"]
    } else {
        &["RO", "access"]
    };
    // Redis counts the last key from the first, unless it counts from the end.
    let last = if keys.last < 0 {
        keys.last
    } else {
        keys.last - keys.first
    };
    Reply::Array(vec![map([
        (
            "flags",
            Reply::Set(flags.iter().map(|flag| Reply::simple(*flag)).collect()),
        ),
        (
            "begin_search",
            map([
                ("type", Reply::bulk("index")),
                ("spec", map([("index", Reply::Integer(keys.first.into()))])),
            ]),
        ),
        (
            "find_keys",
            map([
                ("type", Reply::bulk("range")),
                (
                    "spec",
                    map([
                        ("lastkey", Reply::Integer(last.into())),
                        ("keystep", Reply::Integer(keys.step.into())),
                        ("limit", Reply::Integer(0)),
                    ]),
                ),
            ]),
        ),
    ])])
}

fn map<const N: usize>(pairs: [(&'static str, Reply); N]) -> Reply {
    Reply::Map(pairs.map(|(name, value)| (Reply::bulk(name), value)).into())
}

fn docs(call: &mut Call<'_>) -> Reply {
    let names = call.args.get(2..).unwrap_or_default();
    if names.is_empty() {
        let all = Registry::get().commands().iter().map(document);
        return Reply::Map(all.collect());
    }
    let found = names.iter().filter_map(|name| find(name));
    let documented = found.map(|found| match found {
        Found::Command(command) => document(command),
        Found::Subcommand(command, subcommand) => document_subcommand(command, subcommand),
    });
    Reply::Map(documented.collect())
}

fn document(command: &Registered) -> (Reply, Reply) {
    let mut fields: Vec<(&str, Reply)> = Vec::new();
    match command.kind {
        Kind::Filter(row) => {
            fields.push(("summary", Reply::bulk(row.summary)));
            fields.push(("since", Reply::bulk(row.since)));
            fields.push(("group", Reply::bulk(row.group)));
            fields.push(("complexity", Reply::bulk(row.complexity)));
            fields.push(("module", Reply::bulk("bf")));
            fields.push(("arguments", arguments(row.arguments)));
        }
        Kind::Native(row) => {
            fields.push(("summary", Reply::bulk(row.summary)));
            fields.push(("since", Reply::bulk(row.since)));
            fields.push(("group", Reply::bulk(row.group)));
        }
    }
    let subcommands = subcommands_of(command.name);
    if !subcommands.is_empty() {
        let documented = subcommands.iter().map(|s| document_subcommand(command, s));
        fields.push(("subcommands", Reply::Map(documented.collect())));
    }
    let fields = fields.into_iter();
    (
        Reply::bulk(command.lower),
        Reply::Map(
            fields
                .map(|(name, value)| (Reply::bulk(name), value))
                .collect(),
        ),
    )
}

fn document_subcommand(command: &Registered, subcommand: &Subcommand) -> (Reply, Reply) {
    let fields = map([
        ("summary", Reply::bulk(subcommand.summary)),
        ("since", Reply::bulk(subcommand.since)),
        ("group", Reply::bulk(group(command))),
    ]);
    (Reply::bulk(subcommand.full_name(command.name)), fields)
}

fn arguments(list: &[Argument]) -> Reply {
    Reply::Array(list.iter().map(argument).collect())
}

fn argument(argument: &Argument) -> Reply {
    let mut fields = vec![
        ("name", Reply::bulk(argument.name)),
        ("type", Reply::bulk(argument.kind.name())),
    ];
    if argument.kind == ArgumentKind::Key {
        fields.push(("key_spec_index", Reply::Integer(0)));
    }
    if let Some(token) = argument.token {
        fields.push(("token", Reply::bulk(token)));
    }
    let flags = [
        ("optional", argument.optional),
        ("multiple", argument.multiple),
    ];
    let flags: Vec<Reply> = flags
        .into_iter()
        .filter(|(_, set)| *set)
        .map(|(name, _)| Reply::simple(name))
        .collect();
    if !flags.is_empty() {
        fields.push(("flags", Reply::Set(flags)));
    }
    if let ArgumentKind::OneOf(choices) = argument.kind {
        fields.push(("arguments", arguments(choices)));
    }
    let fields = fields.into_iter();
    Reply::Map(
        fields
            .map(|(name, value)| (Reply::bulk(name), value))
            .collect(),
    )
}

fn list(call: &mut Call<'_>) -> Reply {
    let all = Registry::get().commands().iter();
    let names: Vec<&str> = match call.args.get(2..).unwrap_or_default() {
        [] => all.map(|command| command.lower).collect(),
        [filter, kind, value] if filter.eq_ignore_ascii_case(b"FILTERBY") => {
            match kind.to_ascii_uppercase().as_slice() {
                b"MODULE" => all
                    .filter(|command| {
                        matches!(command.kind, Kind::Filter(_)) && value.eq_ignore_ascii_case(b"bf")
                    })
                    .map(|command| command.lower)
                    .collect(),
                b"ACLCAT" => {
                    let category = String::from_utf8_lossy(value).to_ascii_lowercase();
                    in_category(&category).collect()
                }
                b"PATTERN" => all
                    .map(|command| command.lower)
                    .filter(|name| glob::matches_any_case(value, name.as_bytes()))
                    .collect(),
                _ => return error::syntax(),
            }
        }
        _ => return error::syntax(),
    };
    Reply::Array(names.into_iter().map(Reply::bulk).collect())
}

fn get_keys(call: &mut Call<'_>) -> Reply {
    let args = call.args.get(2..).unwrap_or_default();
    let Some(command) = args.first().and_then(|name| Registry::get().find(name)) else {
        return Reply::error("ERR Invalid command specified");
    };
    if command.keys.first == 0 {
        return Reply::error("ERR The command has no key arguments");
    }
    if !command.accepts(args.len()) {
        return Reply::error("ERR Invalid number of arguments specified for command");
    }
    Reply::Array(keys_of(command.keys, args).map(Reply::bulk).collect())
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use everbloom_resp::{Protocol, encode};

    use super::super::testing::Bench;

    /// What clients read at their start: flags, keys, categories and documentation, word for word.
    #[test]
    fn what_clients_ask_for_first_is_what_it_was() {
        let mut bench = Bench::default();
        let mut bytes = Vec::new();
        for line in [
            "COMMAND",
            "COMMAND DOCS",
            "COMMAND INFO client|id Get acl|cat object nope get|x",
            "COMMAND DOCS client|id Get nope bf.add",
            "COMMAND LIST FILTERBY MODULE bf",
            "COMMAND LIST FILTERBY ACLCAT dangerous",
        ] {
            bytes.extend_from_slice(format!("> {line}\r\n").as_bytes());
            encode(&bench.run(line), Protocol::Resp3, &mut bytes);
        }
        let text = String::from_utf8(bytes).unwrap();
        // The lengths of strings make no difference that the strings do not.
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
