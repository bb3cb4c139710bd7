//! One command: a row of the table, run on the key that its arguments name.
//!
//! The host calls one command at a time. Answers and changes go to it as the command makes them.
//! Events come after the key is closed: an event may make another module run a command on the same
//! key.
//!
//! The host works for what it answers, so a call asks only for what its reply depends on.

use everbloom_commands::flags::{DENYOOM, DEPENDS_ON_PROTOCOL};
use everbloom_commands::key_use::UPDATE;
use everbloom_commands::run::IgnoredWord;
use everbloom_commands::table::{ReplaceFn, WriteFn};
use everbloom_commands::{
    Action, Answers, Changes, Command, CommandError, Context, Family, Filter, Function,
    LazyContext, ReadSlot, Run, Slot,
};
use everbloom_resp::{Protocol, Reply};
use smallvec::SmallVec;

use crate::clock::now_ms;
use crate::config;
use crate::raw::context::{
    Args, Call, HostContext, HostStr, LogLevel, is_over_memory_limit, log_without_call,
};
use crate::raw::key::{Key, ReadKey};
use crate::stored::Stored;
use crate::windows;

/// As many arguments as most commands have, without an allocation.
const FEW: usize = 8;

const NOT_OPENED: &str = "ERR the key cannot be opened";

/// Runs the command of this row for the host.
pub(crate) fn run(host: &mut HostContext<'_>, row: &Command<Function>, args: Args<'_>) {
    let mut words = SmallVec::<[&[u8]; FEW]>::new();
    words.extend(args.iter());
    let mut answers = host.call();
    match args.get(1) {
        _ if !row.accepts(words.len()) => answers.error(row.wrong_arity()),
        None => answers.reply(Reply::error("ERR a command on a filter names a key")),
        Some(key) => match row.handler {
            Function::Bloom(action) => run_on(host, row, action, key, &words),
            Function::Cuckoo(action) => run_on(host, row, action, key, &words),
            Function::Scan(function) => {
                let key = Key::open_to_read(host, key);
                let piece = function(&words, any_slot(key.as_ref()));
                let filter = key.as_ref().and_then(|key| key.value::<Stored>());
                let filter = filter.map(Stored::filter);
                answers.answer(piece.map(|piece| piece.into_reply(filter)));
            }
            Function::Replace { function, .. } => replace(host, row, function, args, &words),
        },
    }
}

fn run_on<F: Family>(
    host: &mut HostContext<'_>,
    row: &Command<Function>,
    action: Action<F>,
    name: HostStr<'_>,
    words: &[&[u8]],
) {
    let call = host.call();
    let find = || {
        let mut context = match action {
            Action::Read(_) => client_context(),
            Action::Write(_) => write_context(call),
        };
        // The host does not refuse it, so that it can free memory.
        if !row.flags.has(DENYOOM) && context.clock().is_some() && is_over_memory_limit() {
            context.free_bytes = 0;
        }
        if row.flags.has(DEPENDS_ON_PROTOCOL) && call.speaks_resp3() {
            context.protocol = Protocol::Resp3;
        }
        context
    };
    let context = LazyContext::new(&find);
    match action {
        Action::Read(function) => {
            let key = Key::open_to_read(host, name);
            let slot = slot(key.as_ref());
            let mut answers = call;
            function(&context, &mut Run::one(words), slot, &mut answers);
        }
        Action::Write(function) => write(host, row, function, &context, name, words),
    }
}

/// The surroundings of a command of a client.
fn client_context() -> Context {
    Context {
        now_ms: now_ms(),
        max_filter_bytes: config::max_filter_bytes(),
        classic_only: config::redisbloom_compatible(),
        has_replicas: true,
        ..Context::default()
    }
}

/// The surroundings of a command that may change its key. What a primary has accepted, or the log,
/// is not for its replica to refuse. Memory itself may run out all the same.
fn write_context(call: Call<'_>) -> Context {
    write_context_of(call.must_be_obeyed())
}

/// The surroundings of a change that must be obeyed, or of one by a client.
pub(crate) fn write_context_of(is_obeyed: bool) -> Context {
    let mut context = match is_obeyed {
        true => Context::default(),
        false => client_context(),
    };
    context.defaults = config::defaults();
    context.cuckoo = config::cuckoo_defaults();
    if is_obeyed {
        context.cuckoo.max_expansions = u32::MAX;
    }
    context
}

/// Makes the filter of the first key anew.
fn replace(
    host: &mut HostContext<'_>,
    row: &Command<Function>,
    function: ReplaceFn,
    args: Args<'_>,
    words: &[&[u8]],
) {
    let call = host.call();
    let find = || write_context(call);
    let context = LazyContext::new(&find);
    let keys = row.keys.of(words).count();
    let keys = (1..=keys).map(|at| Key::open_to_read(host, args.get(at)?));
    let keys: SmallVec<[Option<ReadKey<'_>>; 2]> = keys.collect();
    let slots: SmallVec<[ReadSlot<'_, Filter>; 2]> =
        keys.iter().map(|key| any_slot(key.as_ref())).collect();
    let made = function(&context, words, &slots);
    drop(slots);
    drop(keys);
    let mut answers = host.call();
    let (filter, reply) = match made {
        Ok(made) => made,
        Err(refusal) => return answers.reply(refusal),
    };
    let Some(name) = args.get(1) else { return };
    let Some(mut key) = Key::open_to_write(host, name) else {
        return answers.reply(Reply::error(NOT_OPENED));
    };
    let is_created = key.is_empty();
    if let Some(stored) = key.value_mut::<Stored>() {
        // In its place the value keeps the expiry of its key.
        stored.change(|held| *held = filter);
        windows::list(stored, || Some(call.place(name)));
        stored.watch(true, || Some(call.place(name)));
    } else if !key.set(new_stored(call, name, filter)) {
        return answers.reply(Reply::error("ERR the host did not take the filter"));
    }
    drop(key);
    answers.reply(reply);
    host.call().replicate_verbatim();
    host.signal_modified(name);
    if is_created {
        host.notify(c"bloom.reserve", name);
    }
    if let Some(event) = row.event {
        host.notify(event, name);
    }
}

/// The value of a new key.
fn new_stored(call: Call<'_>, name: HostStr<'_>, filter: Filter) -> Stored {
    let mut stored = Stored::new(filter);
    windows::list(&mut stored, || Some(call.place(name)));
    stored.watch(false, || Some(call.place(name)));
    stored
}

/// What a key holds.
fn slot<'k, F: Family>(key: Option<&'k ReadKey<'_>>) -> ReadSlot<'k, F> {
    any_slot(key).of_family()
}

/// What a key holds, of any family.
fn any_slot<'k>(key: Option<&'k ReadKey<'_>>) -> ReadSlot<'k, Filter> {
    match key.filter(|key| !key.is_empty()) {
        None => ReadSlot::Missing,
        Some(key) => match key.value::<Stored>() {
            Some(stored) => ReadSlot::Held(stored.filter()),
            None => ReadSlot::OtherType,
        },
    }
}

/// What a command did to its key: passed on at once, and remembered for the events.
struct Passed<'a> {
    host: Call<'a>,
    /// Whether something was passed on, which is so for every change.
    changed: bool,
    /// Whether the request itself was passed on.
    repeated: bool,
    /// Whether a window has begun a generation.
    advanced: bool,
    /// Whether the host refused a command for its replicas.
    refused: bool,
}

impl Changes for Passed<'_> {
    fn repeat(&mut self, _: &[&[u8]]) {
        (self.changed, self.repeated) = (true, true);
        self.host.replicate_verbatim();
    }

    fn replace(&mut self, commands: &[&[&[u8]]]) {
        self.changed = true;
        for command in commands {
            self.advanced |= command.first() == Some(&b"BF.ADVANCE".as_slice());
            self.refused |= !self.host.replicate(command);
        }
    }

    /// Only a change counts: who watches or caches the key has no use for others.
    fn touch(&mut self) {}
}

/// The answers of a command, passed on at once.
struct Noted<'a> {
    host: Call<'a>,
    /// Whether one of them was true. Of the commands that may change a Bloom filter only those that
    /// add items have such answers, and true says that an item was new.
    has_true: bool,
}

impl Answers for Noted<'_> {
    #[inline]
    fn boolean(&mut self, value: bool) {
        self.has_true |= value;
        self.host.boolean(value);
    }

    fn integer(&mut self, number: i64) {
        self.host.integer(number);
    }

    fn array(&mut self, len: usize) {
        self.host.array(len);
    }

    fn element_error(&mut self, error: CommandError) {
        self.host.element_error(error);
    }

    fn ignores(&mut self, word: IgnoredWord<'_>) {
        if word.is_first() {
            log_without_call(LogLevel::Warning, &word.to_string());
        }
    }

    fn reply(&mut self, reply: Reply) {
        self.host.reply(reply);
    }
}

impl Noted<'_> {
    /// Whether the command added an item to a filter that had so many before. A window also counts
    /// items that were only renewed, and forgets others at the same time, so its count does not say.
    fn has_added(&self, filter: &Filter, before: u64) -> bool {
        match filter {
            Filter::Bloom(_) => self.has_true,
            Filter::Cuckoo(_) => filter.items() > before,
        }
    }
}

/// Runs a command that may change its key.
fn write<F: Family>(
    host: &mut HostContext<'_>,
    row: &Command<Function>,
    function: WriteFn<F>,
    context: &LazyContext<'_>,
    name: HostStr<'_>,
    words: &[&[u8]],
) {
    let call = host.call();
    let mut answers = Noted {
        host: call,
        has_true: false,
    };
    let mut changes = Passed {
        host: call,
        changed: false,
        repeated: false,
        advanced: false,
        refused: false,
    };
    let Some(mut key) = Key::open_to_write(host, name) else {
        return answers.reply(Reply::error(NOT_OPENED));
    };
    let run = |slot: &mut Slot<'_, F>, answers: &mut Noted<'_>, changes: &mut Passed<'_>| {
        function(context, &mut Run::one(words), slot, answers, changes);
    };
    let (mut created, mut added, mut kept) = (None, false, true);
    let is_new = key.is_empty();
    match key.value_mut::<Stored>() {
        _ if is_new => run(&mut Slot::Vacant(&mut created), &mut answers, &mut changes),
        None => run(&mut Slot::OtherType, &mut answers, &mut changes),
        // Asking the host takes longer than the setting.
        Some(stored)
            if config::redisbloom_compatible()
                && context.classic_only
                && stored.filter().kind().redisbloom_lacks() =>
        {
            let kind = stored.filter().kind();
            answers.error(CommandError::redisbloom_lacks(kind));
        }
        Some(stored) => {
            stored.change(|filter| {
                let before = filter.items();
                run(&mut (&mut *filter).into(), &mut answers, &mut changes);
                added = answers.has_added(filter, before);
            });
            windows::list(stored, || Some(call.place(name)));
            // A dump may bring any bits.
            let always = row.key_use == UPDATE;
            stored.watch(always, || Some(call.place(name)));
        }
    }
    let created = created.map(F::into);
    let is_created = created.is_some();
    if let Some(filter) = created {
        // The header of a dump brings its counts along, and adds nothing.
        added = !changes.repeated && answers.has_added(&filter, 0);
        kept = key.set(new_stored(call, name, filter));
    }
    drop(key);
    if changes.changed || is_created {
        host.signal_modified(name);
    }
    if !kept {
        host.log(LogLevel::Warning, "the host did not take a new filter");
    }
    if changes.refused {
        let line = "the host did not take a command for its replicas, which now differ";
        host.log(LogLevel::Warning, line);
    }
    if is_created {
        host.notify(c"bloom.reserve", name);
    }
    if added {
        host.notify(c"bloom.add", name);
    }
    match row.event {
        Some(event) if changes.changed => host.notify(event, name),
        None if changes.advanced => host.notify(c"bloom.advance", name),
        _ => {}
    }
}
