//! What a server says of its commands: names to complete, and arguments to hint at.

use std::collections::BTreeMap;

use everbloom_resp::Reply;

/// The commands of a server by name, in lower case; a subcommand as `config get`.
#[derive(Debug, Default)]
pub(super) struct Commands {
    rows: BTreeMap<String, Row>,
}

/// What is known of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) summary: String,
    /// Each argument as a usage line writes it.
    pub(super) arguments: Vec<String>,
}

impl Commands {
    /// Reads the reply to COMMAND DOCS. What has another shape is left out: without any of it the
    /// session only lacks its hints.
    pub(super) fn read(reply: &Reply) -> Self {
        let mut commands = Self::default();
        commands.add_all(reply);
        commands
    }

    fn add_all(&mut self, reply: &Reply) {
        for (name, docs) in fields(reply) {
            let mut row = Row::default();
            for (field, value) in fields(docs) {
                match field {
                    "summary" => row.summary = text(value).unwrap_or_default().to_owned(),
                    "arguments" => row.arguments = list(value).iter().map(usage).collect(),
                    "subcommands" => self.add_all(value),
                    _ => {}
                }
            }
            let name = name.to_ascii_lowercase().replace('|', " ");
            self.rows.insert(name, row);
        }
    }

    /// The names that begin like this, in any case.
    pub(super) fn beginning_with(&self, start: &str) -> impl Iterator<Item = &str> {
        let start = start.to_ascii_lowercase();
        let from = self.rows.range(start.clone()..);
        from.map(|(name, _)| name.as_str())
            .take_while(move |name| name.starts_with(&start))
    }

    /// The command that a line begins with, and how many words its name has.
    pub(super) fn of(&self, words: &[&str]) -> Option<(&Row, usize)> {
        [2, 1].into_iter().find_map(|count| {
            let name = words.get(..count)?.join(" ").to_ascii_lowercase();
            Some((self.rows.get(&name)?, count))
        })
    }
}

/// The pairs of a map, which RESP2 sends as a list of names and values in turn.
fn fields(reply: &Reply) -> Vec<(&str, &Reply)> {
    let named = |(name, value)| Some((text(name)?, value));
    match reply {
        Reply::Map(pairs) => pairs.iter().filter_map(|(k, v)| named((k, v))).collect(),
        other => list(other)
            .chunks_exact(2)
            .filter_map(|pair| match pair {
                [name, value] => named((name, value)),
                _ => None,
            })
            .collect(),
    }
}

fn list(reply: &Reply) -> &[Reply] {
    match reply {
        Reply::Array(items) | Reply::Set(items) => items,
        _ => &[],
    }
}

fn text(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Bulk(bytes) => std::str::from_utf8(bytes).ok(),
        Reply::Simple(text) => Some(text),
        _ => None,
    }
}

/// One argument as a usage line writes it: `key`, `[EXPANSION expansion]`, `item [item ...]`.
fn usage(argument: &Reply) -> String {
    let fields = fields(argument);
    let field = |wanted| {
        let found = fields.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| *value)
    };
    let word = |wanted| field(wanted).and_then(text);
    let inner = |separator| {
        let inner: Vec<String> = field("arguments")
            .map_or(&[][..], list)
            .iter()
            .map(usage)
            .collect();
        inner.join(separator)
    };
    let value = match word("type") {
        Some("pure-token") => String::new(),
        Some("oneof") => inner("|"),
        Some("block") => inner(" "),
        _ => word("display_text")
            .or(word("name"))
            .unwrap_or_default()
            .to_owned(),
    };
    let has = |flag: &str| {
        let flags = field("flags").map_or(&[][..], list);
        flags.iter().any(|known| text(known) == Some(flag))
    };
    let value = if has("multiple") {
        format!("{value} [{value} ...]")
    } else {
        value
    };
    let whole = [word("token").unwrap_or_default(), &value].join(" ");
    if has("optional") {
        format!("[{}]", whole.trim())
    } else {
        whole.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    fn map(pairs: &[(&str, Reply)]) -> Reply {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (bulk(name), value.clone()));
        Reply::Map(pairs.collect())
    }

    fn flat(pairs: &[(&str, Reply)]) -> Reply {
        let pairs = pairs
            .iter()
            .flat_map(|(name, value)| [bulk(name), value.clone()]);
        Reply::Array(pairs.collect())
    }

    fn docs(make: fn(&[(&str, Reply)]) -> Reply) -> Reply {
        let flags = |flag| ("flags", Reply::Set(vec![Reply::Simple(flag)]));
        let word = |name| {
            make(&[
                ("name", bulk("w")),
                ("type", bulk("pure-token")),
                ("token", bulk(name)),
            ])
        };
        let insert = make(&[
            ("summary", bulk("Adds items")),
            (
                "arguments",
                Reply::Array(vec![
                    make(&[("name", bulk("key")), ("type", bulk("key"))]),
                    make(&[
                        ("name", bulk("layout")),
                        ("type", bulk("oneof")),
                        ("token", bulk("LAYOUT")),
                        flags("optional".into()),
                        (
                            "arguments",
                            Reply::Array(vec![word("CLASSIC"), word("BLOCKED")]),
                        ),
                    ]),
                    make(&[
                        ("name", bulk("item")),
                        ("type", bulk("string")),
                        ("token", bulk("ITEMS")),
                        flags("multiple".into()),
                    ]),
                ]),
            ),
        ]);
        let get = make(&[("config|get", make(&[("summary", bulk("Reads settings"))]))]);
        make(&[
            ("bf.insert", insert),
            ("config", make(&[("subcommands", get)])),
        ])
    }

    #[test]
    fn both_protocols_say_the_same() {
        for make in [map, flat] {
            let commands = Commands::read(&docs(make));
            let (row, words) = commands.of(&["BF.Insert", "k"]).unwrap();
            assert_eq!((row.summary.as_str(), words), ("Adds items", 1));
            assert_eq!(
                row.arguments,
                ["key", "[LAYOUT CLASSIC|BLOCKED]", "ITEMS item [item ...]"]
            );
            let (row, words) = commands.of(&["CONFIG", "get", "x"]).unwrap();
            assert_eq!((row.summary.as_str(), words), ("Reads settings", 2));
            let names: Vec<&str> = commands.beginning_with("CON").collect();
            assert_eq!(names, ["config", "config get"]);
            assert!(commands.of(&["none"]).is_none());
        }
    }

    #[test]
    fn replies_of_another_shape_are_left_out() {
        for reply in [
            Reply::Integer(1),
            Reply::Array(vec![bulk("get")]),
            map(&[("get", Reply::Null)]),
            map(&[("get", map(&[("arguments", map(&[]))]))]),
        ] {
            let commands = Commands::read(&reply);
            assert!(commands.of(&["set"]).is_none());
        }
    }
}
