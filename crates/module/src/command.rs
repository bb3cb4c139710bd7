//! One command: a row of the table, run on the key that its arguments name.
//!
//! The host calls one command at a time. What follows an effect (the reply, the replicas, events)
//! comes after the key is closed: an event may make another module run a command on the same key.
//!
//! The host works for what it answers, so a call asks only for what its reply depends on.

use everbloom::Layout;
use everbloom_commands::flags::DEPENDS_ON_PROTOCOL;
use everbloom_commands::table::WriteFn;
use everbloom_commands::{
    Action, Command, CommandError, Context, Effect, Family, Filter, Function, Kind, Outcome,
    ReadSlot, Slot,
};
use everbloom_resp::{Protocol, Reply};
use smallvec::SmallVec;

use crate::config;
use crate::raw::context::{Args, Caller, HostContext, HostStr, LogLevel};
use crate::raw::key::{Found, Key};
use crate::reply;
use crate::types::{BlockedFilter, ClassicFilter, CuckooFilter};

/// As many arguments as most commands have, without an allocation.
const FEW: usize = 8;

/// Runs the command of this row for the host.
pub(crate) fn run(host: &mut HostContext<'_>, row: &Command<Function>, args: Args<'_>) {
    let words: SmallVec<[&[u8]; FEW]> = args.iter().collect();
    let reply = match args.get(1) {
        _ if !row.accepts(words.len()) => row.wrong_arity().into(),
        None => Reply::error("ERR a command on a filter names a key"),
        Some(key) => match row.handler {
            Function::Bloom(action) => run_on(host, row, action, key, &words),
            Function::Cuckoo(action) => run_on(host, row, action, key, &words),
        },
    };
    reply::send(host, &reply);
}

fn run_on<F: Family>(
    host: &mut HostContext<'_>,
    row: &Command<Function>,
    action: Action<F>,
    name: HostStr<'_>,
    words: &[&[u8]],
) -> Reply {
    let caller = host.caller();
    let mut protocol = Protocol::default();
    if row.flags.has(DEPENDS_ON_PROTOCOL) && caller.speaks_resp3() {
        protocol = Protocol::Resp3;
    }
    match action {
        Action::Read(function) => {
            let context = Context {
                protocol,
                ..Context::default()
            };
            let key = Key::open_to_read(host, name);
            function(
                &context,
                words,
                key.as_ref().map_or(ReadSlot::Missing, slot),
            )
        }
        Action::Write(function) => {
            let write = Write {
                function,
                protocol,
                words,
                caller,
            };
            write.run(host, name)
        }
    }
}

/// What a reading command finds.
fn slot<'k, F: Family>(key: &'k Key<'_>) -> ReadSlot<'k, F> {
    match key.value::<ClassicFilter>() {
        Found::Nothing => return ReadSlot::Missing,
        Found::Value(value) => return value.filter().into(),
        Found::OtherType => {}
    }
    if let Found::Value(value) = key.value::<BlockedFilter>() {
        return value.filter().into();
    }
    match key.value::<CuckooFilter>() {
        Found::Value(value) => value.filter().into(),
        Found::Nothing | Found::OtherType => ReadSlot::OtherType,
    }
}

/// What a command did to its key, for the events.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    created: bool,
    added: bool,
}

/// A command that may change its key.
struct Write<'a, F> {
    function: WriteFn<F>,
    protocol: Protocol,
    words: &'a [&'a [u8]],
    caller: Caller<'a>,
}

impl<F: Family> Write<'_, F> {
    fn run(&self, host: &mut HostContext<'_>, name: HostStr<'_>) -> Reply {
        let unopened = || Reply::error("ERR the key cannot be opened");
        let Some(mut key) = Key::open_to_write(host, name) else {
            return unopened();
        };
        let mut created = None;
        let mut change = Change::default();
        let mut work = |filter: &mut Filter| {
            let before = items(filter);
            let outcome = self.call(self.may_grow(filter), &mut filter.into());
            change.added = items(filter) > before;
            outcome
        };
        let outcome = match key.value_mut::<ClassicFilter>() {
            Found::Value(value) => value.change(&mut work),
            Found::OtherType => match key.value_mut::<BlockedFilter>() {
                Found::Value(_) if self.classic_only() => {
                    Outcome::unchanged(CommandError::ClassicOnly)
                }
                Found::Value(value) => value.change(&mut work),
                Found::Nothing | Found::OtherType => match key.value_mut::<CuckooFilter>() {
                    Found::Value(value) => value.change(&mut work),
                    Found::Nothing | Found::OtherType => self.call(false, &mut Slot::OtherType),
                },
            },
            Found::Nothing => self.call(true, &mut Slot::Vacant(&mut created)),
        };
        if let Some(filter) = created.map(F::into) {
            change.created = true;
            // The header of a dump brings its counts along, and adds nothing.
            change.added = outcome.effect != Effect::Verbatim && items(&filter) > 0;
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
    fn may_grow(&self, filter: &Filter) -> bool {
        let room = match filter {
            Filter::Bloom(filter) => filter
                .layers()
                .last()
                .map_or(0, |layer| layer.capacity().saturating_sub(layer.len())),
            // One item may need a table whatever room there is for others.
            Filter::Cuckoo(_) => 0,
        };
        room < self.words.len() as u64
    }

    /// Whether RedisBloom may have to follow.
    fn classic_only(&self) -> bool {
        config::redisbloom_compatible() && !self.caller.must_be_obeyed()
    }

    /// Calls the function of the row. Only what `makes` a filter or a layer heeds a limit.
    fn call(&self, makes: bool, slot: &mut Slot<'_, F>) -> Outcome {
        let mut context = Context {
            defaults: config::defaults(),
            cuckoo: config::cuckoo_defaults(),
            protocol: self.protocol,
            ..Context::default()
        };
        if self.caller.must_be_obeyed() {
            context.cuckoo.max_expansions = u32::MAX;
        }
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
fn keep(key: &mut Key<'_>, filter: Filter) -> bool {
    match filter.kind() {
        Kind::Bloom(Layout::Classic) => key.set(Box::new(ClassicFilter::new(filter))),
        Kind::Bloom(Layout::Blocked) => key.set(Box::new(BlockedFilter::new(filter))),
        Kind::Cuckoo => key.set(Box::new(CuckooFilter::new(filter))),
    }
}

fn items(filter: &Filter) -> u64 {
    match filter {
        Filter::Bloom(filter) => filter.len(),
        Filter::Cuckoo(filter) => filter.len(),
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
