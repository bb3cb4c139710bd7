//! The smallest host: keys in a map, a log of effects.

#[allow(dead_code, reason = "shared with the tests of the values")]
#[path = "../fields/mod.rs"]
pub(crate) mod fields;

use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{Check, Options};
use everbloom_commands::bf::dump::piece;
use everbloom_commands::format::value::{load, save, value_type};
use everbloom_commands::run::Replies;
use everbloom_commands::table::{COMMANDS, ReplaceFn};
use everbloom_commands::{
    Action, Answers, Changes, Command, Context, Defaults, Family, Filter, FilterKind, Function,
    LazyContext, ReadSlot, Run, Slot, cf, find,
};
use everbloom_resp::{Protocol, Reply, encode};
use fields::{Rest, Row};
use std::collections::BTreeMap;
use std::iter::successors;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Filter(Filter),
    Other,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Keyspace {
    pub(crate) context: Context,
    pub(crate) keys: BTreeMap<Vec<u8>, Value>,
    /// The commands that a log would hold.
    pub(crate) log: Vec<Vec<Vec<u8>>>,
    /// How many calls counted as modifications.
    pub(crate) touched: usize,
}

impl Keyspace {
    pub(crate) fn with_defaults(error_rate: f64, initial_size: u64, expansion: u32) -> Self {
        let defaults = Defaults {
            error_rate,
            initial_size,
            expansion,
            ..Defaults::default()
        };
        Self {
            context: Context {
                defaults,
                ..Context::default()
            },
            ..Self::default()
        }
    }

    pub(crate) fn with_limit(max_filter_bytes: u64) -> Self {
        Self {
            context: Context {
                max_filter_bytes,
                ..Context::default()
            },
            ..Self::default()
        }
    }

    /// Runs a command of blank-separated words. Returns the encoded reply without the last line
    /// break.
    pub(crate) fn say(&mut self, command: &str) -> String {
        let args: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        wire(&self.call(&args), self.context.protocol)
    }

    /// Runs a command as a host does, arity check included.
    pub(crate) fn call(&mut self, args: &[&[u8]]) -> Reply {
        let command = find(args[0]).expect("a command of the table");
        if command.accepts(args.len()) {
            let mut replies = self.run(command.handler, &mut Run::one(args));
            assert_eq!(replies.len(), 1, "one answer to a request");
            replies.remove(0)
        } else {
            command.wrong_arity().into()
        }
    }

    /// Runs pipelined requests on one key, one for each item.
    pub(crate) fn pipeline(&mut self, name: &str, key: &[u8], items: &[&[u8]]) -> Vec<Reply> {
        let command = find(name.as_bytes()).expect("a command of the table");
        assert!(command.pipelines);
        let requests = items.iter().map(|item| [name.as_bytes(), key, *item]);
        let words: Vec<&[u8]> = requests.flatten().collect();
        self.run(command.handler, &mut Run::of(&words, 3))
    }

    /// Runs a command function on the key of a run until the run is at its end.
    pub(crate) fn run(&mut self, function: Function, run: &mut Run<'_>) -> Vec<Reply> {
        let mut replies = Replies::default();
        let mut left = usize::MAX;
        while run.len() < left {
            left = run.len();
            match function {
                Function::Bloom(action) => self.act(action, run, &mut replies),
                Function::Cuckoo(action) => self.act(action, run, &mut replies),
                Function::Scan(function) => {
                    let (request, filter) = (run.first(), self.keys.get(run.key()));
                    let filter = match filter {
                        Some(Value::Filter(filter)) => Some(filter),
                        _ => None,
                    };
                    let piece = function(request, self.any_slot(run.key()));
                    replies.answer(piece.map(|piece| piece.into_reply(filter)));
                    run.take(1);
                }
                Function::Replace { function, .. } => self.replace(function, run, &mut replies),
            }
            if run.is_empty() {
                return replies.into_vec();
            }
        }
        panic!("no request was taken");
    }

    fn act<F: Family>(&mut self, action: Action<F>, run: &mut Run<'_>, replies: &mut Replies) {
        let context = LazyContext::from(self.context);
        match action {
            Action::Read(function) => {
                function(&context, run, self.slot(run.key()), replies);
            }
            Action::Write(function) => {
                let mut changes = Effects::default();
                let key = run.key();
                self.write(key, |slot| {
                    function(&context, run, slot, replies, &mut changes);
                });
                self.touched += usize::from(changes.touched);
                assert!(changes.touched || changes.commands.is_empty());
                self.log.extend(changes.commands);
            }
        }
    }

    fn replace(&mut self, function: ReplaceFn, run: &mut Run<'_>, replies: &mut Replies) {
        let request = run.first();
        let is_row = |row: &&Command<Function>| matches!(row.handler, Function::Replace { function: of, .. } if std::ptr::fn_addr_eq(of, function));
        let row = COMMANDS
            .iter()
            .find(is_row)
            .expect("a command of the table");
        let slots: Vec<_> = row.keys.of(request).map(|key| self.any_slot(key)).collect();
        let made = function(&self.context.into(), request, &slots);
        match made {
            Err(refusal) => replies.reply(refusal),
            Ok((filter, reply)) => {
                let key = run.key().to_vec();
                self.keys.insert(key, Value::Filter(filter));
                self.touched += 1;
                self.log
                    .push(request.iter().map(|word| word.to_vec()).collect());
                replies.reply(reply);
            }
        }
        run.take(1);
    }

    fn slot<F: Family>(&self, key: &[u8]) -> ReadSlot<'_, F> {
        match self.keys.get(key) {
            None => ReadSlot::Missing,
            Some(Value::Filter(filter)) => filter.into(),
            Some(Value::Other) => ReadSlot::OtherType,
        }
    }

    fn any_slot(&self, key: &[u8]) -> ReadSlot<'_, Filter> {
        match self.keys.get(key) {
            None => ReadSlot::Missing,
            Some(Value::Filter(filter)) => ReadSlot::Held(filter),
            Some(Value::Other) => ReadSlot::OtherType,
        }
    }

    /// Lends the key and keeps the filter that the command puts there.
    fn write<F: Family>(&mut self, key: &[u8], run: impl FnOnce(&mut Slot<'_, F>)) {
        match self.keys.get_mut(key) {
            Some(Value::Filter(filter)) => run(&mut filter.into()),
            Some(Value::Other) => run(&mut Slot::OtherType),
            None => {
                let mut value = None;
                run(&mut Slot::Vacant(&mut value));
                self.keys
                    .extend(value.map(|filter| (key.to_vec(), Value::Filter(filter.into()))));
            }
        }
    }

    /// Runs a log; every command of it must succeed.
    pub(crate) fn replay(&mut self, log: &[Vec<Vec<u8>>]) {
        for command in log {
            let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            let reply = self.call(&args);
            let is_rate = matches!(reply, Reply::Double(_));
            let reply = wire(&reply, Protocol::Resp2);
            assert!(
                is_rate || !reply.contains('-'),
                "{reply} to {}",
                args.join(&b' ').escape_ascii()
            );
        }
    }

    pub(crate) fn filter(&self, key: &str) -> &LayeredFilter {
        match &self.keys[key.as_bytes()] {
            Value::Filter(Filter::Bloom(filter)) => filter,
            _ => panic!("{key} is no Bloom filter"),
        }
    }

    /// Every filter with its complete dump.
    pub(crate) fn dumps(&self) -> BTreeMap<Vec<u8>, Vec<(i64, Vec<u8>)>> {
        let filters = self.keys.iter().filter_map(|(key, value)| match value {
            Value::Filter(filter) => Some((key.clone(), dump(filter))),
            Value::Other => None,
        });
        filters.collect()
    }

    /// Checks that every filter is what another host reads of its value, and of its dump.
    pub(crate) fn check_kept(&self) {
        for (key, value) in &self.keys {
            let Value::Filter(filter) = value else {
                continue;
            };
            let mut row = Row::default();
            let Ok(()) = save(filter, &mut row);
            assert_eq!(read(filter.kind(), &row, u64::MAX).as_ref(), Ok(filter));
            let mut other = Keyspace::default();
            let name = match filter {
                Filter::Bloom(_) => "BF.LOADCHUNK",
                Filter::Cuckoo(_) => "CF.LOADCHUNK",
            };
            for (iterator, piece) in dump(filter) {
                let iterator = iterator.to_string();
                let reply = other.call(&[name.as_bytes(), key, iterator.as_bytes(), &piece]);
                assert_eq!(reply, Reply::OK, "{name} {iterator}");
            }
            let counted = Value::Filter(counted(filter));
            assert_eq!(other.keys.get(key), Some(&counted));
        }
    }

    /// The log with one line a command. Binary arguments are cut to their first eight bytes.
    pub(crate) fn log_text(&self) -> Vec<String> {
        let show = |arg: &Vec<u8>| match arg.is_ascii() && !arg.contains(&0) {
            true => String::from_utf8(arg.clone()).unwrap(),
            false => format!("<{} bytes>", arg.len()),
        };
        let line = |command: &Vec<Vec<u8>>| command.iter().map(show).collect::<Vec<_>>().join(" ");
        self.log.iter().map(line).collect()
    }
}

/// The filter that a host reads from a value, or why it reads none.
pub(crate) fn read(kind: FilterKind, row: &Row, limit: u64) -> Result<Filter, String> {
    let version = value_type(kind).version;
    let read = load(kind, &mut Rest(&row.0), version, limit);
    read.map_err(|error| error.to_string())
}

/// The filter as its dump has it: its count is the sum of its layers' counts, and all its options
/// are known. In a value of RedisBloom they may be others.
fn counted(filter: &Filter) -> Filter {
    let Filter::Bloom(bloom) = filter else {
        return filter.clone();
    };
    let mut parts = bloom.parts();
    parts.items = 0;
    for layer in &mut parts.layers {
        layer.items = layer.items.min(u64::MAX - parts.items);
        parts.items += layer.items;
    }
    if filter.kind() == FilterKind::Bloom(Layout::Classic) {
        parts.options &= Options::KNOWN;
    }
    let arrays = bloom.layers().iter();
    let arrays = arrays.map(|layer| layer.as_bytes().into_owned()).collect();
    let counted = LayeredFilter::from_parts_and_bits(&parts, arrays, u64::MAX, Check::DumpHeader);
    Filter::Bloom(counted.unwrap())
}

/// The changes of one call.
#[derive(Default)]
struct Effects {
    commands: Vec<Vec<Vec<u8>>>,
    touched: bool,
}

impl Changes for Effects {
    fn repeat(&mut self, request: &[&[u8]]) {
        self.replace(&[request]);
    }

    fn replace(&mut self, commands: &[&[&[u8]]]) {
        let owned = commands
            .iter()
            .map(|words| words.iter().map(|word| word.to_vec()).collect());
        self.commands.extend(owned);
    }

    fn touch(&mut self) {
        self.touched = true;
    }
}

fn dump(filter: &Filter) -> Vec<(i64, Vec<u8>)> {
    match filter {
        Filter::Bloom(filter) => pieces(filter),
        Filter::Cuckoo(filter) => {
            let next = |(position, _): &(i64, _)| cf::dump::piece(filter, *position as u64);
            successors(cf::dump::piece(filter, 0), next).collect()
        }
    }
}

pub(crate) fn pieces(filter: &LayeredFilter) -> Vec<(i64, Vec<u8>)> {
    successors(piece(filter, 0), |(iterator, _)| piece(filter, *iterator)).collect()
}

pub(crate) fn wire(reply: &Reply, protocol: Protocol) -> String {
    let mut out = Vec::new();
    encode(reply, protocol, &mut out);
    out.escape_ascii()
        .to_string()
        .replace("\\r\\n", " ")
        .replace("\\'", "'")
        .trim_end()
        .to_owned()
}
