//! The smallest host: keys in a map, a log of effects.

use everbloom::ScalableBloomFilter;
use everbloom_commands::bf::dump::piece;
use everbloom_commands::{
    Action, Context, Defaults, Effect, Family, Filter, Function, Outcome, ReadSlot, Slot, cf, find,
};
use everbloom_resp::{Protocol, Reply, encode};
use std::collections::BTreeMap;

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
            self.run(command.handler, args)
        } else {
            command.wrong_arity().into()
        }
    }

    /// Runs a command function on the key that is its first argument.
    pub(crate) fn run(&mut self, function: Function, args: &[&[u8]]) -> Reply {
        match function {
            Function::Bloom(action) => self.act(action, args),
            Function::Cuckoo(action) => self.act(action, args),
        }
    }

    fn act<F: Family>(&mut self, action: Action<F>, args: &[&[u8]]) -> Reply {
        let key = args.get(1).map(|key| key.to_vec()).unwrap_or_default();
        match action {
            Action::Read(run) => match self.keys.get(&key) {
                None => run(&self.context, args, ReadSlot::Missing),
                Some(Value::Filter(filter)) => run(&self.context, args, filter.into()),
                Some(Value::Other) => run(&self.context, args, ReadSlot::OtherType),
            },
            Action::Write(run) => {
                let context = self.context;
                let outcome = self.write(&key, |slot| run(&context, args, slot));
                self.record(args, outcome)
            }
        }
    }

    /// Lends the key and keeps the filter that the command puts there.
    pub(crate) fn write<R, F: Family>(
        &mut self,
        key: &[u8],
        run: impl FnOnce(&mut Slot<'_, F>) -> R,
    ) -> R {
        match self.keys.get_mut(key) {
            Some(Value::Filter(filter)) => run(&mut filter.into()),
            Some(Value::Other) => run(&mut Slot::OtherType),
            None => {
                let mut value = None;
                let result = run(&mut Slot::Vacant(&mut value));
                self.keys
                    .extend(value.map(|filter| (key.to_vec(), Value::Filter(filter.into()))));
                result
            }
        }
    }

    fn record(&mut self, args: &[&[u8]], outcome: Outcome) -> Reply {
        self.touched += usize::from(outcome.touched);
        assert!(outcome.touched || outcome.effect == Effect::None);
        self.log_effect(args, outcome.effect);
        outcome.reply
    }

    pub(crate) fn log_effect(&mut self, args: &[&[u8]], effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Verbatim => self.log.push(args.iter().map(|arg| arg.to_vec()).collect()),
            Effect::Replace(commands) => self.log.extend(commands),
        }
    }

    /// Runs a log; every command of it must succeed.
    pub(crate) fn replay(&mut self, log: &[Vec<Vec<u8>>]) {
        for command in log {
            let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            let reply = wire(&self.call(&args), Protocol::Resp2);
            assert!(
                !reply.contains('-'),
                "{reply} to {}",
                args.join(&b' ').escape_ascii()
            );
        }
    }

    pub(crate) fn filter(&self, key: &str) -> &ScalableBloomFilter {
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

fn dump(filter: &Filter) -> Vec<(i64, Vec<u8>)> {
    match filter {
        Filter::Bloom(filter) => pieces(filter),
        Filter::Cuckoo(filter) => {
            let mut pieces = vec![cf::dump::piece(filter, 0).unwrap()];
            while let Some(piece) = cf::dump::piece(filter, pieces.last().unwrap().0 as u64) {
                pieces.push(piece);
            }
            pieces
        }
    }
}

pub(crate) fn pieces(filter: &ScalableBloomFilter) -> Vec<(i64, Vec<u8>)> {
    let mut pieces = vec![piece(filter, 0)];
    while let Some(&(iterator, _)) = pieces.last().filter(|(iterator, _)| *iterator != 0) {
        pieces.push(piece(filter, iterator));
    }
    pieces.pop();
    pieces
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
