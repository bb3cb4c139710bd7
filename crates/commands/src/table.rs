//! The commands on filters as data. Hosts register, document and dispatch from this table; adding a
//! command is one file under [`bf`](crate::bf) or [`cf`] and one row here.

use crate::bf::{add, advance, debug, dump, exists, info, insert, load, replace, reserve, stats};
use crate::cf;
use crate::command::{ALL_KEYS, Command, ONE_KEY, OURS};
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::filter::Filter;
use crate::flags::{DENYOOM, DEPENDS_ON_PROTOCOL, FAST, Flags, READONLY, WRITE};
use crate::key_use::{self, DELETE, INSERT, MERGE, UPDATE};
use crate::piece::Piece;
use crate::replace::Replaced;
use crate::run::{Answers, Changes, Run};
use crate::slot::{ReadSlot, Slot};
use everbloom::CuckooFilter;
use everbloom::host::LayeredFilter;

/// What runs a command: the filters that it works on, and what it does to them.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    /// Works on Bloom filters.
    Bloom(Action<LayeredFilter>),
    /// Works on cuckoo filters.
    Cuckoo(Action<CuckooFilter>),
    /// Looks at its key, and names bytes of the filter there, which the host reads. They may be
    /// megabytes.
    Scan(ScanFn),
    /// Looks at its keys, and makes the filter of the first of them anew. The host stores it,
    /// with the expiry that the key had, and records the request.
    Replace {
        /// The function.
        function: ReplaceFn,
        /// Whether it reads the bits of all filters, which may be megabytes.
        reads_bits: bool,
    },
}

/// A function that is given a request and what its key holds, and says which piece of the filter it
/// answers with.
pub type ScanFn = fn(&[&[u8]], ReadSlot<'_, Filter>) -> Result<Piece, CommandError>;
/// A function that is given a request and what its keys hold, and makes a filter for the first.
pub type ReplaceFn = fn(&LazyContext<'_>, &[&[u8]], &[ReadSlot<'_, Filter>]) -> Replaced;

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
pub type ReadFn<F> = fn(&LazyContext<'_>, &mut Run<'_>, ReadSlot<'_, F>, &mut dyn Answers);
/// A function that may change or create its key.
pub type WriteFn<F> =
    fn(&LazyContext<'_>, &mut Run<'_>, &mut Slot<'_, F>, &mut dyn Answers, &mut dyn Changes);

use Action::{Read, Write};
use Function::{Bloom, Cuckoo, Replace, Scan};

impl Function {
    /// Whether it may change or create its key.
    pub fn is_write(self) -> bool {
        matches!(
            self,
            Self::Bloom(Write(_)) | Self::Cuckoo(Write(_)) | Self::Replace { .. }
        )
    }
}

/// The command of this name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command<Function>> {
    COMMANDS
        .iter()
        .find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

/// A command on the filter of one key, as most of its kind are.
const fn row(name: &'static str, arity: i32, function: Function) -> Command<Function> {
    let (flags, acl): (&[Flags], &'static [&'static str]) = match function {
        Bloom(Read(_)) => (&[READONLY], &["@read", "@bloom"]),
        Bloom(Write(_)) => (&[WRITE, DENYOOM], &["@write", "@bloom"]),
        Cuckoo(Read(_)) => (&[READONLY, FAST], &["@read", "@cuckoo"]),
        Cuckoo(Write(_)) => (&[WRITE], &["@write", "@cuckoo"]),
        Scan(_) => (&[READONLY], &["@read", "@bloom"]),
        Replace { .. } => (&[WRITE], &["@write", "@bloom"]),
    };
    let key_use = match function {
        Bloom(Write(_)) | Cuckoo(Write(_)) => INSERT,
        Replace { .. } => UPDATE,
        _ => key_use::READ,
    };
    Command::new(name, arity, function)
        .flags(flags)
        .keys(ONE_KEY)
        .uses(key_use)
        .since("1.0.0")
        .acl(acl)
}

const fn bloom(name: &'static str, arity: i32, action: Action<LayeredFilter>) -> Command<Function> {
    row(name, arity, Bloom(action))
}

const fn makes(
    name: &'static str,
    arity: i32,
    function: ReplaceFn,
    reads_bits: bool,
) -> Command<Function> {
    let function = Replace {
        function,
        reads_bits,
    };
    row(name, arity, function)
}

const fn cuckoo(name: &'static str, arity: i32, action: Action<CuckooFilter>) -> Command<Function> {
    row(name, arity, Cuckoo(action))
}

const ACL_FAST_WRITE: &[&str] = &["@write", "@fast", "@bloom"];
const ACL_FAST_READ: &[&str] = &["@read", "@fast", "@bloom"];
const DONT_CACHE: &[&str] = &["dont_cache"];

const PER_BYTE: &str = "O(m) for the m bytes of the filter";
const PER_ZEROED_BYTE: &str = "O(m) for the m bytes that are zeroed";
const PER_PIECE: &str = "O(m) for the m bytes of the piece";
const PER_CUCKOO_ITEM: &str = "O(t) for t tables";
const PER_CUCKOO_ITEMS: &str = "O(n * t) for n items and t tables";
const PER_CUCKOO_ADD: &str = "O(t + i) for t tables and i iterations";
const PER_CUCKOO_INSERT: &str = "O(n * (t + i)) for n items, t tables and i iterations";
const PER_ITEM: &str = "O(k * l) for k hash functions and l layers";
const PER_ITEMS: &str = "O(n * k * l) for n items, k hash functions and l layers";

const CUCKOO_INSERT: &str = "key [CAPACITY capacity] [NOCREATE] ITEMS item ...";

/// All commands.
pub static COMMANDS: &[Command<Function>] = &[
    bloom(add::ADD, 3, Write(add::add))
        .does("Adds an item to a filter, creating the filter when it is missing")
        .takes(PER_ITEM, "key item")
        .pipelines(),
    bloom(exists::EXISTS, 3, Read(exists::exists))
        .does("Tells whether an item may have been added to a filter")
        .flags(&[FAST])
        .takes(PER_ITEM, "key item")
        .pipelines(),
    bloom(add::MADD, -3, Write(add::madd))
        .does("Adds items to a filter, creating the filter when it is missing")
        .takes(PER_ITEMS, "key item ..."),
    bloom(exists::MEXISTS, -3, Read(exists::mexists))
        .does("Tells for each of several items whether it may have been added to a filter")
        .flags(&[FAST])
        .takes(PER_ITEMS, "key item ..."),
    bloom(insert::INSERT, -4, Write(insert::insert))
        .does("Adds items to a filter, creating it with the given parameters when missing")
        .takes(
            PER_ITEMS,
            "key [CAPACITY capacity] [ERROR error_rate] [EXPANSION expansion] [NOCREATE] \
             [NONSCALING] [LAYOUT CLASSIC | BLOCKED] [SEED seed] \
             [WINDOW SECONDS seconds | ITEMS] [GENERATIONS generations] \
             [TIGHTENING tightening] [VALIDATESCALETO validatescaleto] ITEMS item ...",
        ),
    bloom(reserve::RESERVE, -4, Write(reserve::reserve))
        .does("Creates an empty filter for an error rate and a capacity")
        .takes(
            PER_ZEROED_BYTE,
            "key error_rate capacity [EXPANSION expansion] [NONSCALING] \
             [LAYOUT CLASSIC | BLOCKED] [SEED seed] [WINDOW SECONDS seconds | ITEMS] \
             [GENERATIONS generations]",
        )
        .acl(ACL_FAST_WRITE),
    bloom(info::INFO, -2, Read(info::info))
        .does("Shows the parameters and the fill of a filter, or one of them")
        .flags(&[FAST, DEPENDS_ON_PROTOCOL])
        .takes(
            "O(1)",
            "key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION | ERROR | TIGHTENING | \
             MAXSCALEDCAPACITY]",
        )
        .acl(ACL_FAST_READ)
        .tips(DONT_CACHE),
    bloom(info::CARD, 2, Read(info::card))
        .does("Counts the items that were added to a filter")
        .flags(&[FAST])
        .since("2.4.4")
        .takes("O(1)", "key")
        .acl(ACL_FAST_READ),
    row(dump::SCANDUMP, 3, Scan(dump::scandump))
        .does("Begins or continues an incremental dump of a filter")
        .flags(&[FAST])
        .takes(PER_PIECE, "key iterator")
        .tips(DONT_CACHE),
    bloom(dump::LOADCHUNK, 4, Write(dump::loadchunk))
        .uses(UPDATE)
        .does("Restores a piece of a filter that BF.SCANDUMP gave")
        .takes(PER_PIECE, "key iterator data"),
    bloom(load::LOAD, 3, Write(load::load_object))
        .does("Makes a filter of a record in a log of valkey-bloom")
        .takes(PER_BYTE, "key data"),
    bloom(debug::DEBUG, 2, Read(debug::debug))
        .does("Shows every layer of a filter")
        .flags(&[FAST])
        .takes("O(l) for l layers", "key")
        .tips(DONT_CACHE),
    bloom(stats::STATS, 2, Read(stats::stats))
        .does("Shows the layout, the fill and the expected error rate of a filter")
        .since(OURS)
        .takes(PER_BYTE, "key")
        .tips(DONT_CACHE),
    bloom(advance::ADVANCE, -2, Write(advance::advance))
        // It frees what it drops, and checks for itself whether it takes more.
        .without(DENYOOM)
        .uses(DELETE)
        .event(c"bloom.advance")
        .does("Begins generations of a filter with a window, which forgets the oldest")
        .since(OURS)
        .takes(PER_ZEROED_BYTE, "key [count] [AT milliseconds]"),
    makes(replace::CLEAR, 2, replace::clear, false)
        .uses(DELETE)
        .event(c"bloom.clear")
        .does("Removes all items of a filter, and keeps its parameters")
        .since(OURS)
        .takes("O(m) for the m bytes of the first layer", "key"),
    makes(replace::MERGE, -3, replace::merge, true)
        .event(c"bloom.merge")
        .does("Adds all items of some filters to another one")
        .flags(&[DENYOOM])
        .keys(ALL_KEYS)
        .uses(MERGE)
        .uses_others(key_use::READ)
        .since(OURS)
        .takes(
            "O(m) for the m bytes of all filters",
            "destination source ...",
        ),
    makes(replace::SHRINK, 3, replace::shrink, true)
        .event(c"bloom.shrink")
        .does("Makes a filter of the blocked layout smaller, for fewer items than it was made for")
        .since(OURS)
        .takes(PER_BYTE, "key capacity"),
    cuckoo(cf::reserve::RESERVE, -3, Write(cf::reserve::reserve))
        .does("Creates an empty cuckoo filter for a capacity, perhaps with an error rate")
        .flags(&[DENYOOM])
        .takes(
            PER_ZEROED_BYTE,
            "key capacity [BUCKETSIZE bucketsize] [MAXITERATIONS maxiterations] \
             [EXPANSION expansion] [ERROR error_rate] [SEED seed]",
        )
        .acl(&["@write", "@fast", "@cuckoo"]),
    cuckoo(cf::add::ADD, 3, Write(cf::add::add::<false>))
        .does("Adds an item to a cuckoo filter once more, creating the filter when it is missing")
        .flags(&[DENYOOM])
        .takes(PER_CUCKOO_ADD, "key item")
        .pipelines(),
    cuckoo(cf::add::ADDNX, 3, Write(cf::add::add::<true>))
        .does("Adds an item to a cuckoo filter unless it seems to be there")
        .flags(&[DENYOOM])
        .takes(PER_CUCKOO_ADD, "key item"),
    cuckoo(cf::insert::INSERT, -4, Write(cf::insert::insert::<false>))
        .does("Adds items to a cuckoo filter once more, creating it with a capacity when missing")
        .flags(&[DENYOOM, DEPENDS_ON_PROTOCOL])
        .takes(PER_CUCKOO_INSERT, CUCKOO_INSERT),
    cuckoo(cf::insert::INSERTNX, -4, Write(cf::insert::insert::<true>))
        .does("Adds those of several items to a cuckoo filter that do not seem to be there")
        .flags(&[DENYOOM])
        .takes(PER_CUCKOO_INSERT, CUCKOO_INSERT),
    cuckoo(cf::exists::EXISTS, 3, Read(cf::exists::exists))
        .does("Tells whether an item may have been added to a cuckoo filter")
        .takes(PER_CUCKOO_ITEM, "key item")
        .pipelines(),
    cuckoo(cf::exists::MEXISTS, -3, Read(cf::exists::mexists))
        .does("Tells for each of several items whether it may have been added to a cuckoo filter")
        .takes(PER_CUCKOO_ITEMS, "key item ..."),
    cuckoo(cf::exists::COUNT, 3, Read(cf::exists::count))
        .does("Tells how often an item may have been added to a cuckoo filter")
        .takes(PER_CUCKOO_ITEM, "key item"),
    cuckoo(cf::del::DEL, 3, Write(cf::del::del))
        .uses(DELETE)
        .event(c"bloom.del")
        .does("Removes an item once; only for items that were added, or others may be missed")
        .flags(&[FAST])
        .takes(PER_CUCKOO_ITEM, "key item")
        .pipelines(),
    cuckoo(cf::del::COMPACT, 2, Write(cf::del::compact))
        .uses(UPDATE)
        .does("Moves items to older tables of a cuckoo filter, and drops tables that are empty")
        .takes(PER_BYTE, "key"),
    makes(cf::merge::MERGE, -3, cf::merge::merge, true)
        .event(c"bloom.merge")
        .does("Adds all items of some cuckoo filters to another one, as often as they are in each")
        .flags(&[DENYOOM])
        .keys(ALL_KEYS)
        .uses(MERGE)
        .uses_others(key_use::READ)
        .since(OURS)
        .takes(
            "O(n * (t + i)) for n items, t tables and i iterations, and O(m) for the m bytes of all \
             filters",
            "destination source ...",
        )
        .acl(&["@write", "@cuckoo"]),
    cuckoo(cf::info::INFO, 2, Read(cf::info::info))
        .does("Shows the parameters and the fill of a cuckoo filter")
        .takes("O(1)", "key")
        .acl(&["@read", "@fast", "@cuckoo"])
        .tips(DONT_CACHE),
    cuckoo(cf::info::DEBUG, 2, Read(cf::info::debug))
        .does("Shows the same in one line")
        .takes("O(1)", "key")
        .tips(DONT_CACHE),
    cuckoo(cf::info::STATS, 2, Read(cf::info::stats))
        .does("Shows the load, the expected error rate and the room of a cuckoo filter")
        .since(OURS)
        .takes("O(t) for t tables", "key")
        .tips(DONT_CACHE),
    row(cf::dump::SCANDUMP, 3, Scan(cf::dump::scandump))
        .does("Begins or continues an incremental dump of a cuckoo filter")
        .flags(&[FAST])
        .acl(&["@read", "@cuckoo"])
        .takes(PER_PIECE, "key position")
        .tips(DONT_CACHE),
    cuckoo(cf::dump::LOADCHUNK, 4, Write(cf::dump::loadchunk))
        .uses(UPDATE)
        .does("Restores a piece of a cuckoo filter that CF.SCANDUMP gave")
        .flags(&[DENYOOM])
        .takes(PER_PIECE, "key position data"),
];

#[cfg(test)]
mod tests {
    use crate::context::Context;
    use crate::context::LazyContext;
    use everbloom::Layout;
    use everbloom::host::LayeredFilter;
    use everbloom_resp::Protocol;

    use super::*;
    use crate::run::Replies;
    use crate::synopsis::{self, ArgumentKind};

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
            let several = command.name.ends_with(".merge");
            assert_eq!(command.keys == ONE_KEY, !several, "{name}");
            let arguments = synopsis::arguments(command.docs.usage);
            let specs = arguments.iter().filter_map(|argument| match argument.kind {
                ArgumentKind::Key(number) => Some(usize::from(number)),
                _ => None,
            });
            let numbers = 0..command.key_specs().count();
            assert!(specs.eq(numbers), "{name}");
        }
    }

    #[test]
    fn replies_depend_on_the_protocol_only_where_the_row_says_so() {
        let bloom = LayeredFilter::builder().layout(Layout::Classic);
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
                let context = LazyContext::from(Context {
                    protocol,
                    ..Context::default()
                });
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
                    Function::Scan(function) => {
                        let filter = match command.name.starts_with("bf") {
                            true => bloom.clone().into(),
                            false => cuckoo.clone().into(),
                        };
                        let piece = function(words, ReadSlot::Held(&filter));
                        let reply = piece.map(|piece| piece.into_reply(Some(&filter)));
                        answers.answer(reply);
                    }
                    Function::Replace { function, .. } => {
                        let filter = match command.name.starts_with("bf") {
                            true => bloom.clone().into(),
                            false => cuckoo.clone().into(),
                        };
                        let made = function(&context, words, &[ReadSlot::Held(&filter); 2]);
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
