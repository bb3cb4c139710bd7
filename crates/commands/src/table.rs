//! The commands on filters as data. Hosts register, document and dispatch from this table; adding a
//! command is one file under [`bf`](crate::bf) or [`cf`] and one row here.

use crate::bf::replace::{self, Replaced};
use crate::bf::{add, advance, debug, dump, exists, info, insert, load, reserve, stats};
use crate::cf;
use crate::command::{ALL_KEYS, Argument, ArgumentKind, Command, ONE_KEY, OURS};
use crate::context::Context;
use crate::flags::{DENYOOM, DEPENDS_ON_PROTOCOL, FAST, Flags, GIVES_PIECES, READONLY, WRITE};
use crate::run::{Answers, Changes, Run};
use crate::slot::{ReadSlot, Slot};
use everbloom::{CuckooFilter, ScalableBloomFilter};

/// What runs a command: the filters that it works on, and what it does to them.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    /// Works on Bloom filters.
    Bloom(Action<ScalableBloomFilter>),
    /// Works on cuckoo filters.
    Cuckoo(Action<CuckooFilter>),
    /// Looks at its keys, and makes the Bloom filter of the first of them anew. The host stores it,
    /// with the expiry that the key had, and records the request.
    Replace(ReplaceFn),
}

/// A function that is given a request and what its keys hold, and makes a filter for the first.
pub type ReplaceFn = fn(&Context, &[&[u8]], &[ReadSlot<'_>]) -> Replaced;

/// What a command does to a value of one type, request by request of a run.
#[derive(Debug)]
pub enum Action<F: 'static> {
    /// Looks at its key.
    Read(ReadFn<F>),
    /// May change or create its key.
    Write(WriteFn<F>),
}

impl<F> Clone for Action<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Action<F> {}

/// A function that looks at its key.
pub type ReadFn<F> = fn(&Context, &mut Run<'_>, ReadSlot<'_, F>, &mut dyn Answers);
/// A function that may change or create its key.
pub type WriteFn<F> =
    fn(&Context, &mut Run<'_>, &mut Slot<'_, F>, &mut dyn Answers, &mut dyn Changes);

use Action::{Read, Write};
use Function::{Bloom, Cuckoo, Replace};

impl Function {
    /// Whether it may change or create its key.
    pub fn is_write(self) -> bool {
        matches!(
            self,
            Self::Bloom(Write(_)) | Self::Cuckoo(Write(_)) | Self::Replace(_)
        )
    }
}

/// The command of this name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command<Function>> {
    COMMANDS
        .iter()
        .find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

/// A command on the filter of one key.
const fn row(name: &'static str, arity: i32, function: Function) -> Command<Function> {
    let (flags, acl): (&[Flags], &'static [&'static str]) = match function {
        Bloom(Read(_)) => (&[READONLY], &["@read", "@bloom"]),
        Bloom(Write(_)) => (&[WRITE, DENYOOM], &["@write", "@bloom"]),
        Cuckoo(Read(_)) => (&[READONLY, FAST], &["@read", "@cuckoo"]),
        Cuckoo(Write(_)) => (&[WRITE], &["@write", "@cuckoo"]),
        Replace(_) => (&[WRITE], &["@write", "@bloom"]),
    };
    Command::new(name, arity, function)
        .flags(flags)
        .keys(ONE_KEY)
        .acl(acl)
}

const ACL_FAST_WRITE: &[&str] = &["@write", "@fast", "@bloom"];
const ACL_FAST_READ: &[&str] = &["@read", "@fast", "@bloom"];
const DONT_CACHE: &[&str] = &["dont_cache"];

const PER_CUCKOO_ITEM: &str = "O(t) for t tables";
const PER_CUCKOO_ITEMS: &str = "O(n * t) for n items and t tables";
const PER_CUCKOO_ADD: &str = "O(t + i) for t tables and i iterations";
const PER_CUCKOO_INSERT: &str = "O(n * (t + i)) for n items, t tables and i iterations";
const PER_ITEM: &str = "O(k * l) for k hash functions and l layers";
const PER_ITEMS: &str = "O(n * k * l) for n items, k hash functions and l layers";

const KEY: Argument = Argument::new("key", ArgumentKind::Key);
const ITEM: Argument = Argument::new("item", ArgumentKind::String);
const ITERATOR: Argument = Argument::new("iterator", ArgumentKind::Integer);
const POSITION: Argument = Argument::new("position", ArgumentKind::Integer);
const DATA: Argument = Argument::new("data", ArgumentKind::String);
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
const WINDOW: Argument = Argument::new(
    "window",
    ArgumentKind::OneOf(&[
        Argument::new("seconds", ArgumentKind::Integer).token("SECONDS"),
        Argument::word("items", "ITEMS"),
    ]),
)
.token("WINDOW")
.optional();
const GENERATIONS: Argument = Argument::new("generations", ArgumentKind::Integer)
    .token("GENERATIONS")
    .optional();
const TIGHTENING: Argument = Argument::new("tightening", ArgumentKind::Double)
    .token("TIGHTENING")
    .optional();
const SCALE_TO: Argument = Argument::new("validatescaleto", ArgumentKind::Integer)
    .token("VALIDATESCALETO")
    .optional();
const INFO_FIELD: Argument = Argument::new(
    "field",
    ArgumentKind::OneOf(&[
        Argument::word("capacity", "CAPACITY"),
        Argument::word("size", "SIZE"),
        Argument::word("filters", "FILTERS"),
        Argument::word("items", "ITEMS"),
        Argument::word("expansion", "EXPANSION"),
        Argument::word("error", "ERROR"),
        Argument::word("tightening", "TIGHTENING"),
        Argument::word("maxscaledcapacity", "MAXSCALEDCAPACITY"),
    ]),
)
.optional();

const BUCKET_SIZE: Argument = Argument::new("bucketsize", ArgumentKind::Integer)
    .token("BUCKETSIZE")
    .optional();
const ITERATIONS: Argument = Argument::new("maxiterations", ArgumentKind::Integer)
    .token("MAXITERATIONS")
    .optional();
const CUCKOO_INSERT: &[Argument] = &[
    KEY,
    CAPACITY.token("CAPACITY").optional(),
    Argument::word("nocreate", "NOCREATE").optional(),
    ITEM.token("ITEMS").multiple(),
];

/// All commands.
pub static COMMANDS: &[Command<Function>] = &[
    row(add::ADD, 3, Bloom(Write(add::add)))
        .docs(
            "1.0.0",
            "Adds an item to a filter, creating the filter when it is missing",
        )
        .takes(PER_ITEM, &[KEY, ITEM])
        .pipelines(),
    row(exists::EXISTS, 3, Bloom(Read(exists::exists)))
        .flags(&[FAST])
        .docs(
            "1.0.0",
            "Tells whether an item may have been added to a filter",
        )
        .takes(PER_ITEM, &[KEY, ITEM])
        .pipelines(),
    row(add::MADD, -3, Bloom(Write(add::madd)))
        .docs(
            "1.0.0",
            "Adds items to a filter, creating the filter when it is missing",
        )
        .takes(PER_ITEMS, &[KEY, ITEM.multiple()]),
    row(exists::MEXISTS, -3, Bloom(Read(exists::mexists)))
        .flags(&[FAST])
        .docs(
            "1.0.0",
            "Tells for each of several items whether it may have been added to a filter",
        )
        .takes(PER_ITEMS, &[KEY, ITEM.multiple()]),
    row(insert::INSERT, -4, Bloom(Write(insert::insert)))
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
                WINDOW,
                GENERATIONS,
                TIGHTENING,
                SCALE_TO,
                ITEM.token("ITEMS").multiple(),
            ],
        ),
    row(reserve::RESERVE, -4, Bloom(Write(reserve::reserve)))
        .docs(
            "1.0.0",
            "Creates an empty filter for an error rate and a capacity",
        )
        .takes(
            "O(m) for the m bytes that are zeroed",
            &[
                KEY,
                ERROR,
                CAPACITY,
                EXPANSION,
                NONSCALING,
                LAYOUT,
                SEED,
                WINDOW,
                GENERATIONS,
            ],
        )
        .acl(ACL_FAST_WRITE),
    row(info::INFO, -2, Bloom(Read(info::info)))
        .flags(&[FAST, DEPENDS_ON_PROTOCOL])
        .docs(
            "1.0.0",
            "Shows the parameters and the fill of a filter, or one of them",
        )
        .takes("O(1)", &[KEY, INFO_FIELD])
        .acl(ACL_FAST_READ)
        .tips(DONT_CACHE),
    row(info::CARD, 2, Bloom(Read(info::card)))
        .flags(&[FAST])
        .docs("2.4.4", "Counts the items that were added to a filter")
        .takes("O(1)", &[KEY])
        .acl(ACL_FAST_READ),
    row(dump::SCANDUMP, 3, Bloom(Read(dump::scandump)))
        .flags(&[FAST, GIVES_PIECES])
        .docs(
            "1.0.0",
            "Begins or continues an incremental dump of a filter",
        )
        .takes("O(m) for the m bytes of the piece", &[KEY, ITERATOR])
        .tips(DONT_CACHE),
    row(dump::LOADCHUNK, 4, Bloom(Write(dump::loadchunk)))
        .docs(
            "1.0.0",
            "Restores a piece of a filter that BF.SCANDUMP gave",
        )
        .takes("O(m) for the m bytes of the piece", &[KEY, ITERATOR, DATA]),
    row(load::LOAD, 3, Bloom(Write(load::load_object)))
        .docs(
            "1.0.0",
            "Makes a filter of a record in a log of valkey-bloom",
        )
        .takes("O(m) for the m bytes of the filter", &[KEY, DATA]),
    row(debug::DEBUG, 2, Bloom(Read(debug::debug)))
        .flags(&[FAST])
        .docs("1.0.0", "Shows every layer of a filter")
        .takes("O(l) for l layers", &[KEY])
        .tips(DONT_CACHE),
    row(stats::STATS, 2, Bloom(Read(stats::stats)))
        .docs(
            OURS,
            "Shows the layout, the fill and the expected error rate of a filter",
        )
        .takes("O(m) for the m bytes of the filter", &[KEY])
        .tips(DONT_CACHE),
    row(advance::ADVANCE, -2, Bloom(Write(advance::advance)))
        .docs(
            OURS,
            "Begins generations of a filter with a window, which forgets the oldest",
        )
        .takes(
            "O(m) for the m bytes that are zeroed",
            &[
                KEY,
                Argument::new("count", ArgumentKind::Integer).optional(),
                Argument::new("milliseconds", ArgumentKind::Integer)
                    .token("AT")
                    .optional(),
            ],
        ),
    row(replace::CLEAR, 2, Replace(replace::clear))
        .docs(
            OURS,
            "Removes all items of a filter, and keeps its parameters",
        )
        .takes("O(m) for the m bytes of the first layer", &[KEY]),
    row(replace::MERGE, -3, Replace(replace::merge))
        .flags(&[DENYOOM])
        .keys(ALL_KEYS)
        .docs(OURS, "Adds all items of some filters to another one")
        .takes(
            "O(m) for the m bytes of all filters",
            &[
                Argument::new("destination", ArgumentKind::Key),
                Argument::new("source", ArgumentKind::Key).multiple(),
            ],
        ),
    row(replace::SHRINK, 3, Replace(replace::shrink))
        .docs(
            OURS,
            "Makes a filter of the blocked layout smaller, for fewer items than it was made for",
        )
        .takes("O(m) for the m bytes of the filter", &[KEY, CAPACITY]),
    row(
        cf::reserve::RESERVE,
        -3,
        Cuckoo(Write(cf::reserve::reserve)),
    )
    .flags(&[DENYOOM])
    .docs("1.0.0", "Creates an empty cuckoo filter for a capacity")
    .takes(
        "O(m) for the m bytes that are zeroed",
        &[KEY, CAPACITY, BUCKET_SIZE, ITERATIONS, EXPANSION],
    )
    .acl(&["@write", "@fast", "@cuckoo"]),
    row(cf::add::ADD, 3, Cuckoo(Write(cf::add::add::<false>)))
        .flags(&[DENYOOM])
        .docs(
            "1.0.0",
            "Adds an item to a cuckoo filter once more, creating the filter when it is missing",
        )
        .takes(PER_CUCKOO_ADD, &[KEY, ITEM])
        .pipelines(),
    row(cf::add::ADDNX, 3, Cuckoo(Write(cf::add::add::<true>)))
        .flags(&[DENYOOM])
        .docs(
            "1.0.0",
            "Adds an item to a cuckoo filter unless it seems to be there",
        )
        .takes(PER_CUCKOO_ADD, &[KEY, ITEM]),
    row(
        cf::insert::INSERT,
        -4,
        Cuckoo(Write(cf::insert::insert::<false>)),
    )
    .flags(&[DENYOOM, DEPENDS_ON_PROTOCOL])
    .docs(
        "1.0.0",
        "Adds items to a cuckoo filter once more, creating it with a capacity when missing",
    )
    .takes(PER_CUCKOO_INSERT, CUCKOO_INSERT),
    row(
        cf::insert::INSERTNX,
        -4,
        Cuckoo(Write(cf::insert::insert::<true>)),
    )
    .flags(&[DENYOOM])
    .docs(
        "1.0.0",
        "Adds those of several items to a cuckoo filter that do not seem to be there",
    )
    .takes(PER_CUCKOO_INSERT, CUCKOO_INSERT),
    row(cf::exists::EXISTS, 3, Cuckoo(Read(cf::exists::exists)))
        .docs(
            "1.0.0",
            "Tells whether an item may have been added to a cuckoo filter",
        )
        .takes(PER_CUCKOO_ITEM, &[KEY, ITEM])
        .pipelines(),
    row(cf::exists::MEXISTS, -3, Cuckoo(Read(cf::exists::mexists)))
        .docs(
            "1.0.0",
            "Tells for each of several items whether it may have been added to a cuckoo filter",
        )
        .takes(PER_CUCKOO_ITEMS, &[KEY, ITEM.multiple()]),
    row(cf::exists::COUNT, 3, Cuckoo(Read(cf::exists::count)))
        .docs(
            "1.0.0",
            "Tells how often an item may have been added to a cuckoo filter",
        )
        .takes(PER_CUCKOO_ITEM, &[KEY, ITEM]),
    row(cf::del::DEL, 3, Cuckoo(Write(cf::del::del)))
        .flags(&[FAST])
        .docs(
            "1.0.0",
            "Removes an item once; only for items that were added, or others may be missed",
        )
        .takes(PER_CUCKOO_ITEM, &[KEY, ITEM])
        .pipelines(),
    row(cf::del::COMPACT, 2, Cuckoo(Write(cf::del::compact)))
        .docs(
            "1.0.0",
            "Moves items to older tables of a cuckoo filter, and drops tables that are empty",
        )
        .takes("O(m) for the m bytes of the filter", &[KEY]),
    row(cf::info::INFO, 2, Cuckoo(Read(cf::info::info)))
        .docs(
            "1.0.0",
            "Shows the parameters and the fill of a cuckoo filter",
        )
        .takes("O(1)", &[KEY])
        .acl(&["@read", "@fast", "@cuckoo"])
        .tips(DONT_CACHE),
    row(cf::info::DEBUG, 2, Cuckoo(Read(cf::info::debug)))
        .docs("1.0.0", "Shows the same in one line")
        .takes("O(1)", &[KEY])
        .tips(DONT_CACHE),
    row(cf::info::STATS, 2, Cuckoo(Read(cf::info::stats)))
        .docs(
            OURS,
            "Shows the load, the expected error rate and the room of a cuckoo filter",
        )
        .takes("O(t) for t tables", &[KEY])
        .tips(DONT_CACHE),
    row(cf::dump::SCANDUMP, 3, Cuckoo(Read(cf::dump::scandump)))
        .flags(&[GIVES_PIECES])
        .docs(
            "1.0.0",
            "Begins or continues an incremental dump of a cuckoo filter",
        )
        .takes("O(m) for the m bytes of the piece", &[KEY, POSITION])
        .tips(DONT_CACHE),
    row(cf::dump::LOADCHUNK, 4, Cuckoo(Write(cf::dump::loadchunk)))
        .flags(&[DENYOOM])
        .docs(
            "1.0.0",
            "Restores a piece of a cuckoo filter that CF.SCANDUMP gave",
        )
        .takes("O(m) for the m bytes of the piece", &[KEY, POSITION, DATA]),
];

#[cfg(test)]
mod tests {
    use everbloom::{Layout, ScalableBloomFilter};
    use everbloom_resp::Protocol;

    use super::*;
    use crate::run::Replies;

    #[test]
    fn names_are_found_in_any_case() {
        for command in COMMANDS {
            assert_eq!(command.name.to_ascii_lowercase(), command.name);
            for name in [command.name, &command.name.to_ascii_uppercase()] {
                assert!(std::ptr::eq(find(name.as_bytes()).unwrap(), command));
            }
        }
        for name in [&b""[..], b"BF", b"BF.", b"BF.ADDS", b"CF.ADDS", b"\xff\xfe"] {
            assert!(find(name).is_none());
        }
    }

    #[test]
    fn flags_say_what_the_function_may_do() {
        for command in COMMANDS {
            let name = command.name;
            let write = command.handler.is_write();
            assert_eq!(command.is_write(), write, "{name}");
            assert_ne!(command.flags.has(READONLY), write, "{name}");
            assert_eq!(command.docs.acl.contains(&"@write"), write, "{name}");
            assert_eq!(command.keys.first, 1);
            let several = command.name == "bf.merge";
            assert_eq!(command.keys == ONE_KEY, !several, "{name}");
        }
    }

    #[test]
    fn replies_depend_on_the_protocol_only_where_the_row_says_so() {
        let bloom = ScalableBloomFilter::builder().layout(Layout::Classic);
        let bloom = bloom.build().unwrap();
        let cuckoo = CuckooFilter::new(100);
        for command in COMMANDS {
            let words: [&[u8]; 6] = [command.name.as_bytes(), b"key", b"items", b"1", b"2", b"3"];
            let words = &words[..command.arity.unsigned_abs().max(3) as usize];
            let words = if command.arity == 2 {
                &words[..2]
            } else {
                words
            };
            let [two, three] = [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
                let context = Context {
                    protocol,
                    ..Context::default()
                };
                let (run, answers) = (&mut Run::one(words), &mut Replies::default());
                match command.handler {
                    Function::Bloom(Read(function)) => {
                        function(&context, run, ReadSlot::Held(&bloom), answers);
                    }
                    Function::Cuckoo(Read(function)) => {
                        function(&context, run, ReadSlot::Held(&cuckoo), answers);
                    }
                    Function::Bloom(Write(function)) => {
                        let mut slot = Slot::Held(&mut bloom.clone());
                        function(&context, run, &mut slot, answers, &mut ());
                    }
                    Function::Cuckoo(Write(function)) => {
                        let mut slot = Slot::Held(&mut cuckoo.clone());
                        function(&context, run, &mut slot, answers, &mut ());
                    }
                    Function::Replace(function) => {
                        let made = function(&context, words, &[ReadSlot::Held(&bloom); 2]);
                        answers.reply(made.map_or_else(|refusal| refusal, |(_, reply)| reply));
                    }
                }
                answers.clone().into_last().map(|reply| {
                    let mut out = Vec::new();
                    everbloom_resp::encode(&reply, Protocol::Resp3, &mut out);
                    out
                })
            });
            let depends = command.flags.has(DEPENDS_ON_PROTOCOL);
            assert_eq!(two != three, depends, "{}: {two:?}", command.name);
        }
    }
}
