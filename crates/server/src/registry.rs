//! Every command the server knows, found by its name in any case.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::OnceLock;

use everbloom_commands::COMMANDS as FILTER_COMMANDS;

use crate::native::{self, Command, Handler};

/// A command with its place in the registry.
#[derive(Debug)]
pub struct Registered {
    /// The place: statistics are kept by it.
    pub index: usize,
    /// Its row.
    pub row: Command,
}

impl Deref for Registered {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.row
    }
}

/// The commands by name.
#[derive(Debug)]
pub struct Registry {
    commands: Vec<Registered>,
    by_name: HashMap<&'static [u8], usize, foldhash::fast::FixedState>,
}

/// Names are no longer than this.
const LONGEST: usize = 32;

impl Registry {
    /// The registry, made at the first call.
    pub fn get() -> &'static Registry {
        static REGISTRY: OnceLock<Registry> = OnceLock::new();
        REGISTRY.get_or_init(Registry::new)
    }

    fn new() -> Self {
        let on_filters = FILTER_COMMANDS
            .iter()
            .map(|row| row.with_handler(Handler::Filter(row.handler)));
        let commands: Vec<Registered> = on_filters
            .chain(native::commands().copied())
            .enumerate()
            .map(|(index, row)| Registered { index, row })
            .collect();
        let by_name = commands
            .iter()
            .map(|command| (command.name.as_bytes(), command.index))
            .collect();
        Registry { commands, by_name }
    }

    /// The command of this name, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&Registered> {
        let mut lower = [0u8; LONGEST];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name
            .get(&*lower)
            .and_then(|index| self.commands.get(*index))
    }

    /// All commands.
    pub fn commands(&self) -> &[Registered] {
        &self.commands
    }
}

#[cfg(test)]
mod tests {
    use everbloom_commands::flags::WRITE;

    use super::*;

    #[test]
    fn every_name_is_found_in_any_case_and_only_once() {
        let registry = Registry::get();
        for command in registry.commands() {
            assert!(command.name.len() <= LONGEST);
            assert_eq!(command.name, command.name.to_ascii_lowercase());
            for name in [command.name, &command.name.to_ascii_uppercase()] {
                assert_eq!(registry.find(name.as_bytes()).unwrap().index, command.index);
            }
        }
        assert!(registry.find(b"NO.SUCH").is_none());
        assert!(registry.find(&[b'A'; 4096]).is_none());
        assert!(registry.find(b"").is_none());
    }

    #[test]
    fn rows_of_writers_say_so_and_subcommands_bear_the_name_of_their_container() {
        for command in Registry::get().commands() {
            if matches!(command.handler, Handler::Write(_)) {
                assert!(command.flags.has(WRITE), "{}", command.name);
            }
            for row in command.subcommands {
                let (container, own) = row.name.split_once('|').unwrap();
                assert_eq!(container, command.name);
                assert!(command.subcommand(own.as_bytes()).is_some());
            }
        }
    }
}
