//! One command: a row of the table, run on the key that its arguments name.
//!
//! The host calls one command at a time. What follows an effect (the reply, the replicas, events)
//! comes after the key is closed: an event may make another module run a command on the same key.
//!
//! The host works for what it answers, so a call asks only for what its reply depends on.

use everbloom::{Layer, Layout, ScalableBloomFilter};
use everbloom_commands::flags::DEPENDS_ON_PROTOCOL;
use everbloom_commands::table::WriteFn;
use everbloom_commands::{
    Command, CommandError, Context, Effect, Function, Outcome, ReadSlot, Slot,
};
use everbloom_resp::{Protocol, Reply};
use smallvec::SmallVec;

use crate::config;
use crate::raw::context::{Args, Caller, HostContext, HostStr, LogLevel};
use crate::raw::key::{Found, Key};
use crate::reply;
use crate::types::{BlockedFilter, ClassicFilter};

/// As many arguments as most commands have, without an allocation.
const FEW: usize = 8;

/// Runs the command of this row for the host.
pub(crate) fn run(host: &mut HostContext<'_>, row: &Command<Function>, args: Args<'_>) {
    let words: SmallVec<[&[u8]; FEW]> = args.iter().collect();
    let reply = match args.get(1) {
        _ if !row.accepts(words.len()) => row.wrong_arity().into(),
        None => Reply::error("ERR a command on a filter names a key"),
        Some(key) => run_on(host, row, key, &words),
    };
    reply::send(host, &reply);
}

fn run_on(
    host: &mut HostContext<'_>,
    row: &Command<Function>,
    name: HostStr<'_>,
    words: &[&[u8]],
) -> Reply {
    let caller = host.caller();
    match row.handler {
        Function::Read(function) => {
            let mut context = Context::default();
            if row.flags.has(DEPENDS_ON_PROTOCOL) && caller.speaks_resp3() {
                context.protocol = Protocol::Resp3;
            }
            let key = Key::open_to_read(host, name);
            function(
                &context,
                words,
                key.as_ref().map_or(ReadSlot::Missing, slot),
            )
        }
        Function::Write(function) => {
            let write = Write {
                function,
                words,
                caller,
            };
            write.run(host, name)
        }
    }
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

/// A command that may change its key.
struct Write<'a> {
    function: WriteFn,
    words: &'a [&'a [u8]],
    caller: Caller<'a>,
}

impl Write<'_> {
    fn run(&self, host: &mut HostContext<'_>, name: HostStr<'_>) -> Reply {
        let unopened = || Reply::error("ERR the key cannot be opened");
        let Some(mut key) = Key::open_to_write(host, name) else {
            return unopened();
        };
        let mut created = None;
        let mut change = Change::default();
        let mut work = |filter: &mut ScalableBloomFilter| {
            let before = filter.len();
            let outcome = self.call(self.may_grow(filter), &mut Slot::Filter(filter));
            change.added = filter.len() != before;
            outcome
        };
        let outcome = match key.value_mut::<ClassicFilter>() {
            Found::Value(value) => value.change(&mut work),
            Found::OtherType => match key.value_mut::<BlockedFilter>() {
                Found::Value(_) if self.classic_only() => {
                    Outcome::unchanged(CommandError::ClassicOnly)
                }
                Found::Value(value) => value.change(&mut work),
                Found::Nothing | Found::OtherType => self.call(false, &mut Slot::OtherType),
            },
            Found::Nothing => self.call(true, &mut Slot::Vacant(&mut created)),
        };
        if let Some(filter) = created {
            change.created = true;
            // The header of a dump brings its counts along, and adds nothing.
            change.added = outcome.effect != Effect::Verbatim && !filter.is_empty();
            if !keep(&mut key, filter) {
                return unopened();
            }
        }
        drop(key);
        tell(host, name, &outcome, change);
        outcome.reply
    }

    /// Whether the filter may get a layer: its newest has no room for as many items as there are
    /// words.
    fn may_grow(&self, filter: &ScalableBloomFilter) -> bool {
        let room = |layer: &Layer| layer.capacity().saturating_sub(layer.len());
        filter.layers().last().map_or(0, room) < self.words.len() as u64
    }

    /// Whether RedisBloom may have to follow.
    fn classic_only(&self) -> bool {
        config::redisbloom_compatible() && !self.caller.must_be_obeyed()
    }

    /// Calls the function of the row. Only what `makes` a filter or a layer heeds a limit.
    fn call(&self, makes: bool, slot: &mut Slot<'_>) -> Outcome {
        let mut context = Context {
            defaults: config::defaults(),
            ..Context::default()
        };
        // What a primary has accepted, or the log, is not for its replica to refuse: a limit is for
        // clients only. Memory itself may run out all the same.
        if makes && !self.caller.must_be_obeyed() {
            context.max_filter_bytes = config::max_filter_bytes();
            context.classic_only = config::redisbloom_compatible();
        }
        (self.function)(&context, self.words, slot)
    }
}

/// Lets the key hold a new filter; false when it cannot.
fn keep(key: &mut Key<'_>, filter: ScalableBloomFilter) -> bool {
    match filter.layout() {
        Layout::Classic => key.set(Box::new(ClassicFilter::new(filter))),
        Layout::Blocked => key.set(Box::new(BlockedFilter::new(filter))),
    }
}

/// Tells of a change, once the key is closed.
fn tell(host: &mut HostContext<'_>, name: HostStr<'_>, outcome: &Outcome, change: Change) {
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
