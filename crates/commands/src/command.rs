//! A command as data, one row of a table. All hosts describe all their commands by it, and the
//! subcommands of those that have any.

use std::ffi::CStr;

use crate::error::CommandError;
use crate::flags::{Flags, WRITE};
use crate::key_use::{self, KeyUse};

/// A command, or a subcommand of one. `H` is what its host calls to run it.
///
/// ```
/// use everbloom_commands::Command;
/// use everbloom_commands::command::ONE_KEY;
/// use everbloom_commands::flags::{FAST, READONLY};
///
/// type Function = fn(&[u8]) -> usize;
///
/// const STRLEN: Command<Function> = Command::new("strlen", 2, <[u8]>::len as Function)
///     .flags(&[READONLY, FAST])
///     .keys(ONE_KEY)
///     .since("2.2.0")
///     .does("Returns the length of a key's string.");
/// assert!(STRLEN.accepts(2) && !STRLEN.accepts(3));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Command<H: 'static> {
    /// The name in lower case, as COMMAND and error texts write it: `bf.add`, `client|id`.
    pub name: &'static str,
    /// The number of arguments with the name, or both names of a subcommand; a negative value is
    /// a minimum. Some commands check more than this by themselves, when they run.
    pub arity: i32,
    /// What the host must know to schedule the command.
    pub flags: Flags,
    /// Where its keys are.
    pub keys: KeySpec,
    /// What it does with its keys, or with the first of them.
    pub key_use: KeyUse,
    /// What it does with the keys behind the first, if that is something else.
    pub other_keys_use: Option<KeyUse>,
    /// The keyspace event when it has changed its key, beside those of a creation and of new items.
    pub event: Option<&'static CStr>,
    /// What COMMAND DOCS says.
    pub docs: Docs,
    /// Whether pipelined requests on one key are one [run](crate::run). Their words must be as
    /// many, and the third be an item or the offset of a bit.
    pub pipelines: bool,
    /// Its subcommands.
    pub subcommands: &'static [Command<H>],
    /// What runs it.
    pub handler: H,
}

/// The documentation of a command, for people and clients.
#[derive(Clone, Copy, Debug)]
pub struct Docs {
    /// The group, as in `string`; empty: that of its container or its family.
    pub group: &'static str,
    /// The version of Redis or RedisBloom that first had the command, or [`OURS`].
    pub since: &'static str,
    /// One line that says what the command does.
    pub summary: &'static str,
    /// Its cost.
    pub complexity: &'static str,
    /// Its arguments: for a command on filters its [synopsis](crate::synopsis), for a subcommand
    /// as HELP shows them.
    pub usage: &'static str,
    /// The access control categories, with their `@`; none: they follow from flags and group.
    pub acl: &'static [&'static str],
    /// The tips that COMMAND INFO shows.
    pub tips: &'static [&'static str],
}

/// The version of this project that first had the commands that nobody else has.
pub const OURS: &str = "0.1.0";

/// The positions of a command's keys among its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// The first key; the command name is 0.
    pub first: i32,
    /// The last key; a negative value counts from the end.
    pub last: i32,
    /// The distance from key to key.
    pub step: i32,
}

/// No argument is a key.
pub const NO_KEY: KeySpec = KeySpec::new(0, 0, 0);
/// The first argument is the key.
pub const ONE_KEY: KeySpec = KeySpec::new(1, 1, 1);
/// The first two arguments are keys.
pub const TWO_KEYS: KeySpec = KeySpec::new(1, 2, 1);
/// All arguments are keys.
pub const ALL_KEYS: KeySpec = KeySpec::new(1, -1, 1);

impl KeySpec {
    /// Keys from the first position to the last.
    pub const fn new(first: i32, last: i32, step: i32) -> Self {
        Self { first, last, step }
    }

    /// The keys among the arguments of a command, whose name is argument 0.
    pub fn of<'a>(self, args: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
        let count = i64::try_from(args.len()).unwrap_or(i64::MAX);
        let last = if self.last < 0 {
            count + i64::from(self.last)
        } else {
            i64::from(self.last)
        };
        let first = usize::try_from(self.first).unwrap_or(0);
        let step = usize::try_from(self.step).unwrap_or(1).max(1);
        let end = usize::try_from(last.min(count - 1) + 1).unwrap_or(0);
        let keyed = if first == 0 {
            0..0
        } else {
            first..end.max(first)
        };
        keyed.step_by(step).filter_map(|at| args.get(at).copied())
    }
}

impl<H: Copy> Command<H> {
    /// A command without keys, flags and documentation.
    pub const fn new(name: &'static str, arity: i32, handler: H) -> Self {
        Self {
            name,
            arity,
            flags: Flags::NONE,
            keys: NO_KEY,
            key_use: key_use::READ,
            other_keys_use: None,
            event: None,
            docs: Docs {
                group: "",
                since: "",
                summary: "",
                complexity: "",
                usage: "",
                acl: &[],
                tips: &[],
            },
            pipelines: false,
            subcommands: &[],
            handler,
        }
    }

    /// Adds flags.
    pub const fn flags(mut self, flags: &[Flags]) -> Self {
        self.flags = Flags::of(&[self.flags, Flags::of(flags)]);
        self
    }

    /// Sets what it does with its keys.
    pub const fn uses(mut self, key_use: KeyUse) -> Self {
        self.key_use = key_use;
        self
    }

    /// Sets what it does with the keys behind the first.
    pub const fn uses_others(mut self, key_use: KeyUse) -> Self {
        self.other_keys_use = Some(key_use);
        self
    }

    /// Removes flags.
    pub const fn without(mut self, flags: Flags) -> Self {
        self.flags = self.flags.without(flags);
        self
    }

    /// Sets the event when it has changed its key.
    pub const fn event(mut self, name: &'static CStr) -> Self {
        self.event = Some(name);
        self
    }

    /// Sets the positions of the keys.
    pub const fn keys(mut self, keys: KeySpec) -> Self {
        self.keys = keys;
        self
    }

    /// Sets the version that first had it.
    pub const fn since(mut self, version: &'static str) -> Self {
        self.docs.since = version;
        self
    }

    /// Sets the line that says what it does.
    pub const fn does(mut self, summary: &'static str) -> Self {
        self.docs.summary = summary;
        self
    }

    /// Sets the group.
    pub const fn group(mut self, group: &'static str) -> Self {
        self.docs.group = group;
        self
    }

    /// Sets the arguments as HELP writes them.
    pub const fn usage(mut self, usage: &'static str) -> Self {
        self.docs.usage = usage;
        self
    }

    /// Sets its complexity and its synopsis.
    pub const fn takes(mut self, complexity: &'static str, synopsis: &'static str) -> Self {
        self.docs.complexity = complexity;
        self.docs.usage = synopsis;
        self
    }

    /// Sets the access control categories.
    pub const fn acl(mut self, categories: &'static [&'static str]) -> Self {
        self.docs.acl = categories;
        self
    }

    /// Sets its tips.
    pub const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.docs.tips = tips;
        self
    }

    /// Executes pipelined requests on one key as one run.
    pub const fn pipelines(mut self) -> Self {
        self.pipelines = true;
        self
    }

    /// Adds subcommands.
    pub const fn subcommands(mut self, subcommands: &'static [Command<H>]) -> Self {
        self.subcommands = subcommands;
        self
    }

    /// The same command with the handler of another host, without subcommands.
    pub const fn with_handler<G: Copy>(self, handler: G) -> Command<G> {
        Command {
            name: self.name,
            arity: self.arity,
            flags: self.flags,
            keys: self.keys,
            key_use: self.key_use,
            other_keys_use: self.other_keys_use,
            event: self.event,
            docs: self.docs,
            pipelines: self.pipelines,
            subcommands: &[],
            handler,
        }
    }
}

impl<H> Command<H> {
    /// Whether `count` arguments, the name or names included, are what it takes.
    #[inline]
    pub fn accepts(&self, count: usize) -> bool {
        let wanted = usize::try_from(self.arity.unsigned_abs()).unwrap_or(usize::MAX);
        count == wanted || self.arity < 0 && count > wanted
    }

    /// The error for a number of arguments that it does not take.
    pub fn wrong_arity(&self) -> CommandError {
        CommandError::WrongArity(self.name)
    }

    /// Whether it may modify data.
    pub fn is_write(&self) -> bool {
        self.flags.has(WRITE)
    }

    /// Its keys, and what it does with them: all together, or the first and the others.
    pub fn key_specs(&self) -> impl Iterator<Item = (KeySpec, KeyUse)> {
        let KeySpec { first, last, step } = self.keys;
        let specs = match self.other_keys_use {
            _ if first == 0 => [None, None],
            None => [Some((self.keys, self.key_use)), None],
            Some(others) => [
                Some((KeySpec::new(first, first, step), self.key_use)),
                Some((KeySpec::new(first + step, last, step), others)),
            ],
        };
        specs.into_iter().flatten()
    }

    /// The name without that of its container.
    pub fn own_name(&self) -> &'static str {
        self.name.rsplit('|').next().unwrap_or(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: Command<()> = Command::new("outer|inner", -3, ());
    const OUTER: Command<()> = Command::new("outer", 3, ()).subcommands(&[INNER]);

    #[test]
    fn arity_counts_the_names() {
        assert_eq!([2, 3, 4].map(|n| OUTER.accepts(n)), [false, true, false]);
        assert_eq!([2, 3, 400].map(|n| INNER.accepts(n)), [false, true, true]);
        assert_eq!(
            INNER.wrong_arity().to_string(),
            "ERR wrong number of arguments for 'outer|inner' command"
        );
    }

    #[test]
    fn a_subcommand_has_a_name_of_its_own() {
        assert_eq!((OUTER.own_name(), INNER.own_name()), ("outer", "inner"));
    }

    #[test]
    fn keys_follow_first_last_and_step() {
        let args: Vec<&[u8]> = vec![b"MSET", b"a", b"1", b"b", b"2"];
        let names =
            |first, last, step| -> Vec<&[u8]> { KeySpec { first, last, step }.of(&args).collect() };
        assert_eq!(names(1, -1, 2), vec![b"a".as_slice(), b"b"]);
        assert_eq!(names(1, 1, 1), vec![b"a".as_slice()]);
        assert_eq!(names(1, 2, 1), vec![b"a".as_slice(), b"1"]);
        assert!(names(0, 0, 0).is_empty());
        assert_eq!(names(4, 9, 1), vec![b"2".as_slice()]);
    }
}
