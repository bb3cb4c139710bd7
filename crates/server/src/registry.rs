//! Every command the server knows, of both tables, found by its name in any case.

use std::collections::HashMap;
use std::sync::OnceLock;

use everbloom_commands::table as filters;
use everbloom_commands::table::KeySpec;

use crate::native;

/// Where a command's row stands.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A command on a filter, of the commands crate.
    Filter(&'static filters::Command),
    /// A command of the server's own.
    Native(&'static native::Command),
}

/// A command with what dispatch asks of it for every call, worked out once.
#[derive(Debug)]
pub struct Registered {
    /// Its place in the registry: statistics are kept by it.
    pub index: usize,
    /// In upper case.
    pub name: &'static str,
    /// In lower case, as errors and INFO show it.
    pub lower: &'static str,
    /// Arguments with the name; negative = at least so many.
    pub arity: i32,
    /// Which arguments are keys.
    pub keys: KeySpec,
    /// The row.
    pub kind: Kind,
    /// Flags as COMMAND shows them.
    pub flags: Vec<&'static str>,
    /// It may change the keyspace.
    pub write: bool,
    /// It is refused above maxmemory.
    pub deny_oom: bool,
    /// It is allowed before AUTH.
    pub no_auth: bool,
    /// It is refused inside MULTI.
    pub no_multi: bool,
    /// It runs while data is being loaded.
    pub while_loading: bool,
    /// It is refused unless a setting allows it.
    pub protected: bool,
}

impl Registered {
    /// Whether other settings may be in force after it.
    #[inline]
    pub fn changes_settings(&self) -> bool {
        matches!(self.name, "CONFIG" | "EXEC")
    }

    /// Whether `count` arguments, the name included, are what it takes.
    #[inline]
    pub fn accepts(&self, count: usize) -> bool {
        let wanted = usize::try_from(self.arity.unsigned_abs()).unwrap_or(usize::MAX);
        if self.arity < 0 {
            count >= wanted
        } else {
            count == wanted
        }
    }
}

/// The commands by name.
#[derive(Debug)]
pub struct Registry {
    commands: Vec<Registered>,
    by_name: HashMap<&'static [u8], usize, foldhash::fast::FixedState>,
}

/// Commands whose flags their subcommands have, each of them `loading`.
const CONTAINERS: [&str; 5] = ["ACL", "CLIENT", "CONFIG", "LATENCY", "SLOWLOG"];

/// Names are no longer than this.
const LONGEST: usize = 32;

impl Registry {
    /// The registry, made at the first call.
    pub fn get() -> &'static Registry {
        static REGISTRY: OnceLock<Registry> = OnceLock::new();
        REGISTRY.get_or_init(Registry::new)
    }

    fn new() -> Self {
        let filters = filters::COMMANDS.iter().map(|c| {
            let flags = c.flags.iter().map(|f| f.name()).collect();
            (c.name, c.arity, c.keys, Kind::Filter(c), flags)
        });
        let natives = native::commands()
            .map(|c| (c.name, c.arity, c.keys, Kind::Native(c), c.flags.to_vec()));
        let commands: Vec<Registered> = filters
            .chain(natives)
            .enumerate()
            .map(
                |(index, (name, arity, keys, kind, flags)): (_, (_, _, _, _, Vec<&str>))| {
                    let has = |flag: &str| flags.contains(&flag);
                    Registered {
                        index,
                        name,
                        // A few dozen names, leaked once: they live as long as the registry, which is
                        // static itself.
                        lower: name.to_ascii_lowercase().leak(),
                        arity,
                        keys,
                        kind,
                        write: has("write"),
                        deny_oom: has("denyoom"),
                        no_auth: has("no_auth"),
                        no_multi: has("no_multi"),
                        while_loading: has("loading") || CONTAINERS.contains(&name),
                        // COMMAND does not show it, so it is no flag.
                        protected: name == "DEBUG",
                        flags,
                    }
                },
            )
            .collect();
        let by_name = commands
            .iter()
            .map(|c| (c.name.as_bytes(), c.index))
            .collect();
        Registry { commands, by_name }
    }

    /// The command of this name, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&Registered> {
        let mut upper = [0u8; LONGEST];
        let upper = upper.get_mut(..name.len())?;
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        self.by_name
            .get(&*upper)
            .and_then(|index| self.commands.get(*index))
    }

    /// All commands.
    pub fn commands(&self) -> &[Registered] {
        &self.commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case_and_only_once() {
        let registry = Registry::get();
        for command in registry.commands() {
            assert!(command.name.len() <= LONGEST);
            assert_eq!(command.name, command.name.to_ascii_uppercase());
            for name in [command.name, command.lower] {
                assert_eq!(registry.find(name.as_bytes()).unwrap().index, command.index);
            }
        }
        assert!(registry.find(b"NO.SUCH").is_none());
        assert!(registry.find(&[b'A'; 4096]).is_none());
        assert!(registry.find(b"").is_none());
    }
}
