//! Every command as data. Hosts register, document and dispatch from this table; adding a command
//! is one file under [`bf`](crate::bf) and one row here.

use crate::bf::{add, debug, dump, exists, info, insert, reserve, stats};
use crate::context::Context;
use crate::error::CommandError;
use crate::outcome::Outcome;
use crate::slot::{ReadSlot, Slot};
use everbloom_resp::Reply;

/// One command.
#[derive(Debug)]
pub struct Command {
    /// The name in upper case, as in `BF.ADD`.
    pub name: &'static str,
    /// The name in lower case, as error texts write it.
    pub lower: &'static str,
    /// The number of arguments with the name; a negative value is a minimum. Some commands check
    /// more than this by themselves, when they run.
    pub arity: i32,
    /// What the host must know to schedule the command.
    pub flags: &'static [Flag],
    /// The access control categories, with their `@`.
    pub acl: &'static [&'static str],
    /// Whether the reply depends on [`Context::protocol`], for which a host may have to ask.
    pub depends_on_protocol: bool,
    /// Where the key is.
    pub keys: KeySpec,
    /// The tips that COMMAND INFO shows.
    pub tips: &'static [&'static str],
    /// The group of COMMAND DOCS.
    pub group: &'static str,
    /// The RedisBloom version that first had the command, or [`OURS`].
    pub since: &'static str,
    /// One line that says what the command does.
    pub summary: &'static str,
    /// Its cost, in the terms of COMMAND DOCS.
    pub complexity: &'static str,
    /// Its arguments, for COMMAND DOCS.
    pub arguments: &'static [Argument],
    /// The command itself.
    pub run: Run,
}

/// A command function. The first argument it gets is the command name.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Looks at its key.
    Read(fn(&Context, &[&[u8]], ReadSlot<'_>) -> Reply),
    /// May change or create its key.
    Write(fn(&Context, &[&[u8]], &mut Slot<'_>) -> Outcome),
}

/// A command flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// May modify data.
    Write,
    /// Refused when memory is above its limit.
    DenyOom,
    /// Never modifies data.
    ReadOnly,
    /// Takes constant or logarithmic time.
    Fast,
}

impl Flag {
    /// The flag as COMMAND shows it.
    pub fn name(self) -> &'static str {
        match self {
            Flag::Write => "write",
            Flag::DenyOom => "denyoom",
            Flag::ReadOnly => "readonly",
            Flag::Fast => "fast",
        }
    }
}

/// The positions of a command's keys among its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// The first key; the command name is 0.
    pub first: i32,
    /// The last key.
    pub last: i32,
    /// The distance from key to key.
    pub step: i32,
}

impl KeySpec {
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

/// One argument, in the terms of COMMAND DOCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the documentation.
    pub name: &'static str,
    /// What it is.
    pub kind: ArgumentKind,
    /// The word that introduces it, or that it consists of.
    pub token: Option<&'static str>,
    /// Whether it may be left out.
    pub optional: bool,
    /// Whether it may be repeated.
    pub multiple: bool,
}

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A key name.
    Key,
    /// Any bytes.
    String,
    /// An integer.
    Integer,
    /// A floating-point number.
    Double,
    /// A word by itself.
    PureToken,
    /// Exactly one of these.
    OneOf(&'static [Argument]),
}

impl ArgumentKind {
    /// The type as COMMAND DOCS shows it.
    pub fn name(self) -> &'static str {
        match self {
            ArgumentKind::Key => "key",
            ArgumentKind::String => "string",
            ArgumentKind::Integer => "integer",
            ArgumentKind::Double => "double",
            ArgumentKind::PureToken => "pure-token",
            ArgumentKind::OneOf(_) => "oneof",
        }
    }
}

impl Argument {
    const fn new(name: &'static str, kind: ArgumentKind) -> Self {
        Self {
            name,
            kind,
            token: None,
            optional: false,
            multiple: false,
        }
    }

    const fn word(name: &'static str, token: &'static str) -> Self {
        Self::new(name, ArgumentKind::PureToken).token(token)
    }

    const fn token(self, token: &'static str) -> Self {
        Self {
            token: Some(token),
            ..self
        }
    }

    const fn optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }

    const fn multiple(self) -> Self {
        Self {
            multiple: true,
            ..self
        }
    }
}

impl Command {
    /// Whether `n` arguments, the name counted, are a possible number for this command.
    pub fn check_arity(&self, n: usize) -> Result<(), Reply> {
        let least = usize::try_from(self.arity.unsigned_abs()).unwrap_or(usize::MAX);
        let fits = if self.arity < 0 {
            n >= least
        } else {
            n == least
        };
        if fits {
            Ok(())
        } else {
            Err(CommandError::WrongArity(self.lower).into())
        }
    }

    /// Whether the command may modify its key.
    pub fn is_write(&self) -> bool {
        matches!(self.run, Run::Write(_))
    }
}

/// The command of this name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

const FIRST: KeySpec = KeySpec {
    first: 1,
    last: 1,
    step: 1,
};
const WRITE: &[Flag] = &[Flag::Write, Flag::DenyOom];
const READ: &[Flag] = &[Flag::ReadOnly, Flag::Fast];
const SLOW_READ: &[Flag] = &[Flag::ReadOnly];
const ACL_WRITE: &[&str] = &["@write", "@bloom"];
const ACL_FAST_WRITE: &[&str] = &["@write", "@fast", "@bloom"];
const ACL_READ: &[&str] = &["@read", "@bloom"];
const ACL_FAST_READ: &[&str] = &["@read", "@fast", "@bloom"];
const NO_TIPS: &[&str] = &[];
const DONT_CACHE: &[&str] = &["dont_cache"];

const PER_ITEM: &str = "O(k * l) for k hash functions and l layers";
const PER_ITEMS: &str = "O(n * k * l) for n items, k hash functions and l layers";

const KEY: Argument = Argument::new("key", ArgumentKind::Key);
const ITEM: Argument = Argument::new("item", ArgumentKind::String);
const ITERATOR: Argument = Argument::new("iterator", ArgumentKind::Integer);
const ERROR: Argument = Argument::new("error_rate", ArgumentKind::Double);
const CAPACITY: Argument = Argument::new("capacity", ArgumentKind::Integer);
const EXPANSION: Argument = Argument::new("expansion", ArgumentKind::Integer)
    .token("EXPANSION")
    .optional();
const NONSCALING: Argument = Argument::word("nonscaling", "NONSCALING").optional();
const LAYOUT: Argument = Argument::new(
    "layout",
    ArgumentKind::OneOf(&[
        Argument::word("classic", "CLASSIC"),
        Argument::word("blocked", "BLOCKED"),
    ]),
)
.token("LAYOUT")
.optional();
const SEED: Argument = Argument::new("seed", ArgumentKind::Integer)
    .token("SEED")
    .optional();
const INFO_FIELD: Argument = Argument::new(
    "field",
    ArgumentKind::OneOf(&[
        Argument::word("capacity", "CAPACITY"),
        Argument::word("size", "SIZE"),
        Argument::word("filters", "FILTERS"),
        Argument::word("items", "ITEMS"),
        Argument::word("expansion", "EXPANSION"),
    ]),
)
.optional();

/// The version of this project that first had the commands that RedisBloom does not have.
pub const OURS: &str = "0.1.0";

/// What the rows have in common.
const BASE: Command = Command {
    name: "",
    lower: "",
    arity: 0,
    flags: READ,
    acl: ACL_READ,
    depends_on_protocol: false,
    keys: FIRST,
    tips: NO_TIPS,
    group: "bf",
    since: "1.0.0",
    summary: "",
    complexity: "O(1)",
    arguments: &[],
    run: Run::Read(exists::exists),
};

/// All commands.
pub static COMMANDS: &[Command] = &[
    Command {
        name: "BF.ADD",
        lower: add::ADD,
        arity: 3,
        flags: WRITE,
        acl: ACL_WRITE,
        summary: "Adds an item to a filter, creating the filter when it is missing",
        complexity: PER_ITEM,
        arguments: &[KEY, ITEM],
        run: Run::Write(add::add),
        ..BASE
    },
    Command {
        name: "BF.EXISTS",
        lower: exists::EXISTS,
        arity: 3,
        summary: "Tells whether an item may have been added to a filter",
        complexity: PER_ITEM,
        arguments: &[KEY, ITEM],
        run: Run::Read(exists::exists),
        ..BASE
    },
    Command {
        name: "BF.MADD",
        lower: add::MADD,
        arity: -3,
        flags: WRITE,
        acl: ACL_WRITE,
        summary: "Adds items to a filter, creating the filter when it is missing",
        complexity: PER_ITEMS,
        arguments: &[KEY, ITEM.multiple()],
        run: Run::Write(add::madd),
        ..BASE
    },
    Command {
        name: "BF.MEXISTS",
        lower: exists::MEXISTS,
        arity: -3,
        summary: "Tells for each of several items whether it may have been added to a filter",
        complexity: PER_ITEMS,
        arguments: &[KEY, ITEM.multiple()],
        run: Run::Read(exists::mexists),
        ..BASE
    },
    Command {
        name: "BF.INSERT",
        lower: insert::INSERT,
        arity: -4,
        flags: WRITE,
        acl: ACL_WRITE,
        summary: "Adds items to a filter, creating it with the given parameters when missing",
        complexity: PER_ITEMS,
        arguments: &[
            KEY,
            CAPACITY.token("CAPACITY").optional(),
            ERROR.token("ERROR").optional(),
            EXPANSION,
            Argument::word("nocreate", "NOCREATE").optional(),
            NONSCALING,
            LAYOUT,
            SEED,
            ITEM.token("ITEMS").multiple(),
        ],
        run: Run::Write(insert::insert),
        ..BASE
    },
    Command {
        name: "BF.RESERVE",
        lower: reserve::RESERVE,
        arity: -4,
        flags: WRITE,
        acl: ACL_FAST_WRITE,
        summary: "Creates an empty filter for an error rate and a capacity",
        complexity: "O(m) for the m bytes that are zeroed",
        arguments: &[KEY, ERROR, CAPACITY, EXPANSION, NONSCALING, LAYOUT, SEED],
        run: Run::Write(reserve::reserve),
        ..BASE
    },
    Command {
        name: "BF.INFO",
        lower: info::INFO,
        arity: -2,
        acl: ACL_FAST_READ,
        tips: DONT_CACHE,
        depends_on_protocol: true,
        summary: "Shows the parameters and the fill of a filter, or one of them",
        arguments: &[KEY, INFO_FIELD],
        run: Run::Read(info::info),
        ..BASE
    },
    Command {
        name: "BF.CARD",
        lower: info::CARD,
        arity: 2,
        acl: ACL_FAST_READ,
        since: "2.4.4",
        summary: "Counts the items that were added to a filter",
        arguments: &[KEY],
        run: Run::Read(info::card),
        ..BASE
    },
    Command {
        name: "BF.SCANDUMP",
        lower: dump::SCANDUMP,
        arity: 3,
        tips: DONT_CACHE,
        summary: "Begins or continues an incremental dump of a filter",
        complexity: "O(m) for the m bytes of the piece",
        arguments: &[KEY, ITERATOR],
        run: Run::Read(dump::scandump),
        ..BASE
    },
    Command {
        name: "BF.LOADCHUNK",
        lower: dump::LOADCHUNK,
        arity: 4,
        flags: WRITE,
        acl: ACL_WRITE,
        summary: "Restores a piece of a filter that BF.SCANDUMP gave",
        complexity: "O(m) for the m bytes of the piece",
        arguments: &[KEY, ITERATOR, Argument::new("data", ArgumentKind::String)],
        run: Run::Write(dump::loadchunk),
        ..BASE
    },
    Command {
        name: "BF.DEBUG",
        lower: debug::DEBUG,
        arity: 2,
        tips: DONT_CACHE,
        summary: "Shows every layer of a filter",
        complexity: "O(l) for l layers",
        arguments: &[KEY],
        run: Run::Read(debug::debug),
        ..BASE
    },
    Command {
        name: "BF.STATS",
        lower: stats::STATS,
        arity: 2,
        flags: SLOW_READ,
        tips: DONT_CACHE,
        since: OURS,
        summary: "Shows the layout, the fill and the expected error rate of a filter",
        complexity: "O(m) for the m bytes of the filter",
        arguments: &[KEY],
        run: Run::Read(stats::stats),
        ..BASE
    },
];

#[cfg(test)]
mod tests {
    use everbloom::ScalableBloomFilter;
    use everbloom_resp::Protocol;

    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        for command in COMMANDS {
            assert_eq!(command.name.to_ascii_lowercase(), command.lower);
            for name in [command.name, command.lower] {
                assert!(std::ptr::eq(find(name.as_bytes()).unwrap(), command));
            }
        }
        assert!(std::ptr::eq(
            find(b"bF.mAdD").unwrap(),
            find(b"BF.MADD").unwrap()
        ));
        for name in [&b""[..], b"BF", b"BF.", b"BF.ADDS", b"CF.ADD", b"\xff\xfe"] {
            assert!(find(name).is_none());
        }
    }

    #[test]
    fn arity_counts_the_name() {
        let add = find(b"BF.ADD").unwrap();
        assert!(add.check_arity(3).is_ok());
        let error = Reply::error("ERR wrong number of arguments for 'bf.add' command");
        assert_eq!(add.check_arity(2), Err(error.clone()));
        assert_eq!(add.check_arity(4), Err(error));
        let insert = find(b"BF.INSERT").unwrap();
        assert!(insert.check_arity(3).is_err());
        assert!(insert.check_arity(400).is_ok());
    }

    #[test]
    fn flags_say_what_the_function_may_do() {
        for command in COMMANDS {
            let write = command.flags.contains(&Flag::Write);
            assert_eq!(write, command.is_write(), "{}", command.name);
            assert_eq!(write, command.acl.contains(&"@write"), "{}", command.name);
            assert_ne!(
                write,
                command.flags.contains(&Flag::ReadOnly),
                "{}",
                command.name
            );
            assert_eq!(command.keys, FIRST);
        }
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

    #[test]
    fn replies_depend_on_the_protocol_only_where_the_row_says_so() {
        let filter = ScalableBloomFilter::builder().build().unwrap();
        for command in COMMANDS {
            let Run::Read(function) = command.run else {
                assert!(!command.depends_on_protocol, "{}", command.name);
                continue;
            };
            let words = [command.lower.as_bytes(), b"key", b"items"];
            let words = &words[..if command.arity == 2 { 2 } else { 3 }];
            let [two, three] = [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
                let context = Context {
                    protocol,
                    ..Context::default()
                };
                function(&context, words, ReadSlot::Filter(&filter))
            });
            assert_eq!(
                two != three,
                command.depends_on_protocol,
                "{}",
                command.name
            );
        }
    }
}
