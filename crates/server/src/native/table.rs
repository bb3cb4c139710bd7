//! All commands: those of this folder, and those on filters.

use std::sync::OnceLock;

use everbloom_commands::COMMANDS as FILTER_COMMANDS;

use super::{
    Command, Handler, bitmaps, connection, counters, debug, expire, inspect, keys, persistence,
    server, set, strings, transaction, walk,
};
use crate::call::Registry;

/// The registry of all commands, created at the first call.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| Registry::new(on_filters().chain(natives())))
}

fn on_filters() -> impl Iterator<Item = Command> {
    let rows = FILTER_COMMANDS.iter();
    rows.map(|row| {
        let group = row.name.split('.').next().unwrap_or_default();
        row.with_handler(Handler::Filter(row.handler)).group(group)
    })
}

/// The families with their groups, the default for rows without a group.
const FAMILIES: &[(&str, &[Command])] = &[
    ("connection", connection::COMMANDS),
    ("transactions", transaction::COMMANDS),
    ("generic", keys::COMMANDS),
    ("generic", inspect::COMMANDS),
    ("generic", expire::COMMANDS),
    ("generic", walk::COMMANDS),
    ("string", strings::COMMANDS),
    ("string", set::COMMANDS),
    ("string", counters::COMMANDS),
    ("bitmap", bitmaps::COMMANDS),
    ("server", persistence::COMMANDS),
    ("server", debug::COMMANDS),
    ("server", server::COMMANDS),
];

fn natives() -> impl Iterator<Item = Command> {
    FAMILIES.iter().flat_map(|(group, rows)| {
        rows.iter().map(|row| match row.docs.group {
            "" => row.group(group),
            _ => *row,
        })
    })
}

#[cfg(test)]
mod tests {
    use everbloom_commands::flags::WRITE;
    use everbloom_commands::{Action, Function};

    use super::*;
    use crate::call::CountFn;

    #[test]
    fn every_name_is_found_in_any_case_and_only_once() {
        let registry = registry();
        for command in registry.commands() {
            assert!(command.name.len() <= crate::call::MAX_NAME_BYTES);
            assert_eq!(command.name, command.name.to_ascii_lowercase());
            for name in [command.name, &command.name.to_ascii_uppercase()] {
                assert_eq!(registry.find(name.as_bytes()).unwrap().name, command.name);
            }
        }
        assert!(registry.find(b"NO.SUCH").is_none());
        assert!(registry.find(&[b'A'; 4096]).is_none());
        assert!(registry.find(b"").is_none());
        assert!(registry.find(b"client|id").is_none());
        let indices = registry.all().map(|row| row.index);
        assert!(indices.eq(0..registry.len()));
        let names = registry.all().map(|row| row.name);
        assert!(names.eq((0..registry.len()).filter_map(|at| Some(registry.at(at)?.name))));
        assert!(registry.at(registry.len()).is_none());
    }

    #[test]
    fn rows_say_whether_their_commands_change_keys() {
        for command in registry().all() {
            let changes = match command.handler {
                Handler::Filter(Function::Bloom(action)) => matches!(action, Action::Write(_)),
                Handler::Filter(Function::Cuckoo(action)) => matches!(action, Action::Write(_)),
                Handler::Filter(Function::Scan(_)) => false,
                Handler::Filter(Function::Replace { .. }) => true,
                Handler::Text(action) => matches!(action, Action::Write(_)),
                Handler::Plain(_) | Handler::PlainOrWork(_) | Handler::Exec => false,
                Handler::Count(function) => matches!(function, CountFn::Write(_)),
                Handler::Read(_) | Handler::ReadEach(_) | Handler::Select(_) => false,
                Handler::Write(_) | Handler::Exchange(_) | Handler::Make(_) => true,
                // DEBUG only wants to see one moment.
                Handler::WriteAll(_) => command.name != "debug",
            };
            assert_eq!(command.flags.has(WRITE), changes, "{}", command.name);
        }
    }

    #[test]
    fn subcommands_bear_the_name_of_their_container() {
        for command in registry().commands() {
            for row in &command.subcommands {
                let (container, own) = row.name.split_once('|').unwrap();
                assert_eq!(container, command.name);
                let own = own.to_ascii_uppercase();
                let args = [command.name, &own].map(str::as_bytes);
                assert_eq!(command.of_call(&args).unwrap().name, row.name);
            }
        }
    }
}
