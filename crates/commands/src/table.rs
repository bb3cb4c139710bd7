//! The commands on filters as data. Hosts register, document and dispatch from this table; adding a
//! command is one file under [`bf`](crate::bf) and one row here.

use crate::bf::{add, debug, dump, exists, info, insert, reserve, stats};
use crate::command::{Argument, ArgumentKind, BatchKind, Command, ONE_KEY, OURS};
use crate::context::Context;
use crate::flags::{DENYOOM, DEPENDS_ON_PROTOCOL, FAST, READONLY, WRITE};
use crate::outcome::Outcome;
use crate::slot::{ReadSlot, Slot};
use everbloom_resp::Reply;

/// What a command on a filter does. The first argument that a function gets is the command name.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    /// Looks at its key.
    Read(ReadFn),
    /// May change or create its key.
    Write(WriteFn),
}

/// A function that looks at its key.
pub type ReadFn = fn(&Context, &[&[u8]], ReadSlot<'_>) -> Reply;
/// A function that may change or create its key.
pub type WriteFn = fn(&Context, &[&[u8]], &mut Slot<'_>) -> Outcome;

use Function::{Read, Write};

/// The command of this name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command<Function>> {
    COMMANDS
        .iter()
        .find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

/// A command that looks at its key.
const fn look(name: &'static str, arity: i32, function: ReadFn) -> Command<Function> {
    Command::new(name, arity, Read(function))
        .flags(&[READONLY])
        .keys(ONE_KEY)
        .acl(&["@read", "@bloom"])
}

/// A command that may change its key.
const fn change(name: &'static str, arity: i32, function: WriteFn) -> Command<Function> {
    Command::new(name, arity, Write(function))
        .flags(&[WRITE, DENYOOM])
        .keys(ONE_KEY)
        .acl(&["@write", "@bloom"])
}

const ACL_FAST_WRITE: &[&str] = &["@write", "@fast", "@bloom"];
const ACL_FAST_READ: &[&str] = &["@read", "@fast", "@bloom"];
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

/// All commands.
pub static COMMANDS: &[Command<Function>] = &[
    change(add::ADD, 3, add::add)
        .docs(
            "1.0.0",
            "Adds an item to a filter, creating the filter when it is missing",
        )
        .takes(PER_ITEM, &[KEY, ITEM])
        .batch(BatchKind::Add),
    look(exists::EXISTS, 3, exists::exists)
        .flags(&[FAST])
        .docs(
            "1.0.0",
            "Tells whether an item may have been added to a filter",
        )
        .takes(PER_ITEM, &[KEY, ITEM])
        .batch(BatchKind::Exists),
    change(add::MADD, -3, add::madd)
        .docs(
            "1.0.0",
            "Adds items to a filter, creating the filter when it is missing",
        )
        .takes(PER_ITEMS, &[KEY, ITEM.multiple()]),
    look(exists::MEXISTS, -3, exists::mexists)
        .flags(&[FAST])
        .docs(
            "1.0.0",
            "Tells for each of several items whether it may have been added to a filter",
        )
        .takes(PER_ITEMS, &[KEY, ITEM.multiple()]),
    change(insert::INSERT, -4, insert::insert)
        .docs(
            "1.0.0",
            "Adds items to a filter, creating it with the given parameters when missing",
        )
        .takes(
            PER_ITEMS,
            &[
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
        ),
    change(reserve::RESERVE, -4, reserve::reserve)
        .docs(
            "1.0.0",
            "Creates an empty filter for an error rate and a capacity",
        )
        .takes(
            "O(m) for the m bytes that are zeroed",
            &[KEY, ERROR, CAPACITY, EXPANSION, NONSCALING, LAYOUT, SEED],
        )
        .acl(ACL_FAST_WRITE),
    look(info::INFO, -2, info::info)
        .flags(&[FAST, DEPENDS_ON_PROTOCOL])
        .docs(
            "1.0.0",
            "Shows the parameters and the fill of a filter, or one of them",
        )
        .takes("O(1)", &[KEY, INFO_FIELD])
        .acl(ACL_FAST_READ)
        .tips(DONT_CACHE),
    look(info::CARD, 2, info::card)
        .flags(&[FAST])
        .docs("2.4.4", "Counts the items that were added to a filter")
        .takes("O(1)", &[KEY])
        .acl(ACL_FAST_READ),
    look(dump::SCANDUMP, 3, dump::scandump)
        .flags(&[FAST])
        .docs(
            "1.0.0",
            "Begins or continues an incremental dump of a filter",
        )
        .takes("O(m) for the m bytes of the piece", &[KEY, ITERATOR])
        .tips(DONT_CACHE),
    change(dump::LOADCHUNK, 4, dump::loadchunk)
        .docs(
            "1.0.0",
            "Restores a piece of a filter that BF.SCANDUMP gave",
        )
        .takes(
            "O(m) for the m bytes of the piece",
            &[KEY, ITERATOR, Argument::new("data", ArgumentKind::String)],
        ),
    look(debug::DEBUG, 2, debug::debug)
        .flags(&[FAST])
        .docs("1.0.0", "Shows every layer of a filter")
        .takes("O(l) for l layers", &[KEY])
        .tips(DONT_CACHE),
    look(stats::STATS, 2, stats::stats)
        .docs(
            OURS,
            "Shows the layout, the fill and the expected error rate of a filter",
        )
        .takes("O(m) for the m bytes of the filter", &[KEY])
        .tips(DONT_CACHE),
];

#[cfg(test)]
mod tests {
    use everbloom::{Layout, ScalableBloomFilter};
    use everbloom_resp::Protocol;

    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        for command in COMMANDS {
            assert_eq!(command.name.to_ascii_lowercase(), command.name);
            for name in [command.name, &command.name.to_ascii_uppercase()] {
                assert!(std::ptr::eq(find(name.as_bytes()).unwrap(), command));
            }
        }
        for name in [&b""[..], b"BF", b"BF.", b"BF.ADDS", b"CF.ADD", b"\xff\xfe"] {
            assert!(find(name).is_none());
        }
    }

    #[test]
    fn flags_say_what_the_function_may_do() {
        for command in COMMANDS {
            let name = command.name;
            let write = matches!(command.handler, Write(_));
            assert_eq!(command.is_write(), write, "{name}");
            assert_ne!(command.flags.has(READONLY), write, "{name}");
            assert_eq!(command.docs.acl.contains(&"@write"), write, "{name}");
            assert_eq!(command.keys, ONE_KEY);
        }
    }

    #[test]
    fn replies_depend_on_the_protocol_only_where_the_row_says_so() {
        let filter = ScalableBloomFilter::builder()
            .layout(Layout::Classic)
            .build()
            .unwrap();
        for command in COMMANDS {
            let Function::Read(function) = command.handler else {
                assert!(!command.flags.has(DEPENDS_ON_PROTOCOL), "{}", command.name);
                continue;
            };
            let words = [command.name.as_bytes(), b"key", b"items"];
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
                command.flags.has(DEPENDS_ON_PROTOCOL),
                "{}",
                command.name
            );
        }
    }
}
