//! One command: the row of the table that has its name, run on the key that it names.
//!
//! The host calls one command at a time. What follows an effect (the reply, the replicas, events)
//! comes after the key is closed: an event may make another module run a command on the same key.

use everbloom::{Layout, ScalableBloomFilter};
use everbloom_commands::table::{ReadFn, WriteFn};
use everbloom_commands::{
    Command, Context, Effect, Function, KeySource, Outcome, ReadSlot, Slot, find,
};
use everbloom_resp::{Protocol, Reply};
use smallvec::SmallVec;

use crate::config;
use crate::raw::context::{Args, HostContext, HostStr, LogLevel};
use crate::raw::key::{Found, Key};
use crate::reply;
use crate::types::{BlockedFilter, ClassicFilter};

/// As many arguments as most commands have, without an allocation.
const FEW: usize = 8;

/// Runs a command that the host received.
pub(crate) fn run(host: &mut HostContext<'_>, args: Args<'_>) {
    let words: SmallVec<[&[u8]; FEW]> = args.iter().collect();
    let name = words.first().copied().unwrap_or_default();
    let reply = match find(name) {
        Some(row) => run_row(host, row, args, &words),
        None => Reply::error("ERR this command is not in the table of commands"),
    };
    reply::send(host, &reply);
}

fn run_row(
    host: &mut HostContext<'_>,
    row: &Command<Function>,
    args: Args<'_>,
    words: &[&[u8]],
) -> Reply {
    if !row.accepts(words.len()) {
        return row.wrong_arity().into();
    }
    let Some(key) = args.get(1) else {
        return Reply::error("ERR a command on a filter names a key");
    };
    let context = context(host);
    match row.handler {
        Function::Read(function) => read(host, function, &context, key, words),
        Function::Write(function) => write(host, function, &context, key, words),
    }
}

/// What the command must know of the host.
fn context(host: &HostContext<'_>) -> Context {
    let flags = host.flags();
    // What a primary has accepted, or the log, is not for its replica to refuse: a limit is for
    // clients only. Memory itself may run out all the same.
    let limited = !flags.already_accepted() && !host.must_obey();
    Context {
        defaults: config::defaults(),
        max_filter_bytes: if limited {
            config::max_filter_bytes()
        } else {
            u64::MAX
        },
        free_bytes: u64::MAX,
        protocol: if flags.resp3() {
            Protocol::Resp3
        } else {
            Protocol::Resp2
        },
        keys: KeySource::default(),
    }
}

fn read(
    host: &mut HostContext<'_>,
    function: ReadFn,
    context: &Context,
    name: HostStr<'_>,
    words: &[&[u8]],
) -> Reply {
    let key = Key::open_to_read(host, name);
    function(context, words, key.as_ref().map_or(ReadSlot::Missing, slot))
}

/// What a reading command finds.
fn slot<'k>(key: &'k Key<'_>) -> ReadSlot<'k> {
    match key.value::<ClassicFilter>() {
        Found::Nothing => ReadSlot::Missing,
        Found::Value(value) => ReadSlot::Filter(value.filter()),
        Found::OtherType => match key.value::<BlockedFilter>() {
            Found::Value(value) => ReadSlot::Filter(value.filter()),
            Found::Nothing | Found::OtherType => ReadSlot::OtherType,
        },
    }
}

/// What a command did to its key, for the events.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    created: bool,
    added: bool,
}

fn write(
    host: &mut HostContext<'_>,
    function: WriteFn,
    context: &Context,
    name: HostStr<'_>,
    words: &[&[u8]],
) -> Reply {
    let Some((outcome, change)) = write_slot(host, function, context, name, words) else {
        return Reply::error("ERR the key cannot be opened");
    };
    if outcome.touched {
        host.signal_modified(name);
    }
    pass_on(host, &outcome.effect);
    if change.created {
        host.notify(c"bloom.reserve", name);
    }
    if change.added {
        host.notify(c"bloom.add", name);
    }
    outcome.reply
}

/// Runs the command on the key and closes that; `None` when there is no such key and none can be
/// made.
fn write_slot(
    host: &mut HostContext<'_>,
    function: WriteFn,
    context: &Context,
    name: HostStr<'_>,
    words: &[&[u8]],
) -> Option<(Outcome, Change)> {
    let mut key = Key::open_to_write(host, name)?;
    let mut created = None;
    let mut change = Change::default();
    let mut work = |filter: &mut ScalableBloomFilter| {
        let before = filter.len();
        let outcome = function(context, words, &mut Slot::Filter(filter));
        change.added = filter.len() != before;
        outcome
    };
    let outcome = match key.value_mut::<ClassicFilter>() {
        Found::Value(value) => value.change(&mut work),
        Found::OtherType => match key.value_mut::<BlockedFilter>() {
            Found::Value(value) => value.change(&mut work),
            Found::Nothing | Found::OtherType => function(context, words, &mut Slot::OtherType),
        },
        Found::Nothing => function(context, words, &mut Slot::Vacant(&mut created)),
    };
    if let Some(filter) = created {
        change.created = true;
        // The header of a dump brings its counts along, and adds nothing.
        change.added = outcome.effect != Effect::Verbatim && !filter.is_empty();
        let set = match filter.layout() {
            Layout::Classic => key.set(Box::new(ClassicFilter::new(filter))),
            Layout::Blocked => key.set(Box::new(BlockedFilter::new(filter))),
        };
        if !set {
            return None;
        }
    }
    Some((outcome, change))
}

/// Passes an effect on to replicas and to the log.
fn pass_on(host: &mut HostContext<'_>, effect: &Effect) {
    match effect {
        Effect::None => {}
        Effect::Verbatim => host.replicate_verbatim(),
        Effect::Replace(commands) => {
            for command in commands {
                if !host.replicate(command) {
                    host.log(
                        LogLevel::Warning,
                        "the host did not take a command for its replicas, which now differ",
                    );
                }
            }
        }
    }
}
