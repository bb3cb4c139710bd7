//! The commands on cuckoo filters, against a slow filter that removes, too: after each step every
//! slot is the same.

use std::slice::from_ref;

use arbitrary::Arbitrary;
use everbloom::CuckooFilter;
use everbloom_commands::cf::dump::piece;
use everbloom_commands::{CuckooDefaults, Filter};
use everbloom_resp::{Protocol, Reply};

use super::keyspace::{Keyspace, Value};
use super::model::Model;
use super::{Key, Run};

const MAX_EXPANSIONS: &str = "Maximum expansions reached";
const NOT_FOUND: &str = "ERR not found";

/// Items are small numbers, so that they come again and can be removed.
#[derive(Arbitrary, Debug)]
pub(crate) enum Step {
    Reserve(Key, Reserve),
    Add(Key, u8),
    AddIfAbsent(Key, u8),
    AddBatch(Key, Vec<u8>),
    Insert(Key, Insert),
    Remove(Key, u8),
    RemoveBatch(Key, Vec<u8>),
    Compact(Key),
    Exists(Key, u8, Vec<u8>),
    Info(Key),
    Copy(Key, Key),
    Load(Key, u16, Vec<u8>),
}

#[derive(Arbitrary, Debug)]
pub(crate) struct Reserve {
    capacity: u16,
    bucket_size: Option<u8>,
    iterations: Option<u8>,
    expansion: Option<u8>,
}

#[derive(Arbitrary, Debug)]
pub(crate) struct Insert {
    absent: bool,
    capacity: Option<u16>,
    no_create: bool,
    first: u8,
    more: Vec<u8>,
}

/// What a filter is made with, or why it is not.
type Made = Result<Model, &'static str>;

impl Step {
    /// The keys it names.
    pub(crate) fn keys(&self) -> [Key; 2] {
        match self {
            Step::Copy(from, to) => [*from, *to],
            Step::Reserve(key, _)
            | Step::Add(key, _)
            | Step::AddIfAbsent(key, _)
            | Step::AddBatch(key, _)
            | Step::Insert(key, _)
            | Step::Remove(key, _)
            | Step::RemoveBatch(key, _)
            | Step::Compact(key)
            | Step::Exists(key, ..)
            | Step::Info(key)
            | Step::Load(key, ..) => [*key; 2],
        }
    }
}

fn bytes(item: u8) -> Vec<u8> {
    u16::from(item).to_le_bytes().to_vec()
}

fn all_bytes(items: &[u8]) -> Vec<Vec<u8>> {
    items.iter().map(|item| bytes(*item)).collect()
}

impl Run {
    pub(crate) fn cuckoo(&mut self, step: &Step) {
        match step {
            Step::Reserve(key, reserve) => self.cuckoo_reserve(*key, reserve),
            Step::Add(key, item) => self.cuckoo_add(*key, *item, false),
            Step::AddIfAbsent(key, item) => self.cuckoo_add(*key, *item, true),
            Step::AddBatch(key, items) => self.cuckoo_add_batch(*key, items),
            Step::Insert(key, insert) => self.cuckoo_insert(*key, insert),
            Step::Remove(key, item) => self.cuckoo_remove(*key, *item),
            Step::RemoveBatch(key, items) => self.cuckoo_remove_batch(*key, items),
            Step::Compact(key) => self.cuckoo_compact(*key),
            Step::Exists(key, first, more) => {
                self.cuckoo_exists(*key, &[from_ref(first), more].concat());
            }
            Step::Info(key) => self.cuckoo_info(*key),
            Step::Copy(from, to) => self.cuckoo_copy(*from, *to),
            Step::Load(key, position, data) => self.cuckoo_load(*key, *position, data),
        }
        for key in step.keys() {
            self.check_slots(key);
        }
    }

    /// The filter of the key and its model are the same.
    fn check_slots(&self, key: Key) {
        let Some(model) = self.cuckoos.get(key.name()) else {
            assert!(!self.keys.keys.contains_key(key.name().as_bytes()));
            return;
        };
        let filter = self.filter_of(key);
        let mut slots = Vec::new();
        while let Some(chunk) = filter.stream_chunk(slots.len() as u64, usize::MAX) {
            slots.extend_from_slice(&chunk);
        }
        assert_eq!(slots, model.slow.tables.concat());
        let counts = (filter.len(), filter.removed(), filter.tables());
        let slow = &model.slow;
        assert_eq!(counts, (slow.items, slow.removed, slow.tables.len()));
        assert!(model.bytes() <= self.context().max_filter_bytes);
    }

    fn filter_of(&self, key: Key) -> &CuckooFilter {
        match &self.keys.keys[key.name().as_bytes()] {
            Value::Filter(Filter::Cuckoo(filter)) => filter,
            other => panic!("{other:?}"),
        }
    }

    fn cuckoo_made(&self, defaults: CuckooDefaults) -> Made {
        let model = Model::new(defaults);
        match model.bytes() <= self.context().max_filter_bytes {
            true => Ok(model),
            false => Err("ERR Insufficient memory to create filter"),
        }
    }

    /// The model of the key for a command that adds, made if it is missing.
    fn model_to_add(&mut self, key: Key, made: Made) -> Result<&mut Model, &'static str> {
        let model = self.cuckoos.get(key.name());
        let tables = model.map_or(1, |model| model.slow.tables.len());
        if tables as u64 >= u64::from(self.context().cuckoo.max_expansions) {
            return Err(MAX_EXPANSIONS);
        }
        if model.is_none() {
            self.cuckoos.insert(key.name(), made?);
        }
        Ok(self.cuckoos.get_mut(key.name()).unwrap())
    }

    fn cuckoo_reserve(&mut self, key: Key, reserve: &Reserve) {
        let mut defaults = self.context().cuckoo;
        let mut words = vec![reserve.capacity.to_string()];
        let mut push = |word: &str, number: u64| words.extend([word.into(), number.to_string()]);
        let range = |name: &str, value: Option<u8>, from: u8| {
            value
                .is_some_and(|value| value < from)
                .then(|| name.to_owned())
        };
        let mut refused = None;
        if let Some(iterations) = reserve.iterations {
            push("MAXITERATIONS", iterations.into());
            defaults.max_iterations = iterations.into();
            let name = "MAXITERATIONS: value must be in the range [1, 65535]";
            refused = range(name, reserve.iterations, 1);
        }
        if let Some(size) = reserve.bucket_size {
            push("BUCKETSIZE", size.into());
            defaults.bucket_size = size;
            let name = "BUCKETSIZE: value must be in the range [1, 255]";
            refused = refused.or_else(|| range(name, reserve.bucket_size, 1));
        }
        if let Some(expansion) = reserve.expansion.map(|number| number % 6) {
            push("EXPANSION", expansion.into());
            defaults.expansion = match expansion {
                0 => 0,
                factor => u16::from(factor).next_power_of_two(),
            };
        }
        defaults.initial_size = reserve.capacity.into();
        if defaults.initial_size < 2 * u64::from(defaults.bucket_size) {
            let text = "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
            refused.get_or_insert(text.to_owned());
        }
        let words: Vec<Vec<u8>> = words.into_iter().map(String::into_bytes).collect();
        let reply = self.call(&["CF.RESERVE", key.name()], &words);
        if let Some(text) = refused {
            return assert_eq!(reply.as_error(), Some(&*text));
        }
        if self.is_cuckoo(key) {
            return assert_eq!(reply, Reply::error("ERR item exists"));
        }
        match self.cuckoo_made(defaults) {
            Err(error) => assert_eq!(reply, Reply::error(error)),
            Ok(model) => {
                assert_eq!(reply, Reply::OK);
                self.cuckoos.insert(key.name(), model);
            }
        }
    }

    /// What CF.ADD or CF.ADDNX answers.
    fn added(&mut self, key: Key, item: u8, absent: bool) -> Reply {
        let made = self.cuckoo_made(self.context().cuckoo);
        let limit = self.context().max_filter_bytes;
        match self.model_to_add(key, made) {
            Err(error) => Reply::error(error),
            Ok(model) => {
                let mut room = limit - model.bytes();
                let added = model.insert(item.into(), absent, &mut room);
                added.map_or_else(Reply::error, Reply::Boolean)
            }
        }
    }

    fn cuckoo_add(&mut self, key: Key, item: u8, absent: bool) {
        let name = if absent { "CF.ADDNX" } else { "CF.ADD" };
        let reply = self.call(&[name, key.name()], &[bytes(item)]);
        assert_eq!(reply, self.added(key, item, absent));
    }

    /// A keyspace of this key only, for what is done one by one.
    fn beside(&self, key: Key) -> Keyspace {
        let mut beside = Keyspace {
            context: self.keys.context,
            ..Keyspace::default()
        };
        let name = key.name().as_bytes();
        let value = self.keys.keys.get(name).cloned();
        beside
            .keys
            .extend(value.map(|value| (name.to_vec(), value)));
        beside
    }

    /// Pipelined CF.ADDs as one batch, and one by one.
    fn cuckoo_add_batch(&mut self, key: Key, items: &[u8]) {
        // Hosts make batches of two requests and more.
        if items.len() < 2 {
            return;
        }
        let mut other = self.beside(key);
        let (list, name) = (all_bytes(items), key.name().as_bytes());
        let slices: Vec<&[u8]> = list.iter().map(Vec::as_slice).collect();
        let replies = self.keys.pipeline("CF.ADD", name, &slices);
        let one_by_one = slices
            .iter()
            .map(|item| other.call(&[b"CF.ADD", name, item]));
        assert_eq!(replies, one_by_one.collect::<Vec<_>>());
        assert_eq!(self.keys.keys.get(name), other.keys.get(name));
        for (item, reply) in items.iter().zip(replies) {
            assert_eq!(reply, self.added(key, *item, false));
        }
    }

    fn cuckoo_insert(&mut self, key: Key, insert: &Insert) {
        let mut defaults = self.context().cuckoo;
        let name = if insert.absent {
            "CF.INSERTNX"
        } else {
            "CF.INSERT"
        };
        let mut words = vec![name.to_owned(), key.name().to_owned()];
        let mut made_of = Ok(());
        if let Some(capacity) = insert.capacity {
            words.extend(["CAPACITY".to_owned(), capacity.to_string()]);
            defaults.initial_size = capacity.into();
            if defaults.initial_size < 2 * u64::from(defaults.bucket_size) {
                made_of = Err("Capacity must be in the range [cf-bucket-size * 2, 1073741824]");
            }
        }
        words.extend(insert.no_create.then(|| "NOCREATE".to_owned()));
        words.push("ITEMS".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let items = [from_ref(&insert.first), &insert.more].concat();
        let reply = self.call(&words, &all_bytes(&items));
        if insert.no_create && !self.is_cuckoo(key) {
            made_of = made_of.and(Err(NOT_FOUND));
        }
        let (limit, protocol) = (self.context().max_filter_bytes, self.context().protocol);
        let made = self.cuckoo_made(defaults);
        let model = made_of.and_then(|()| self.model_to_add(key, made));
        let model = match model {
            Ok(model) => model,
            Err(error) => return assert_eq!(reply, Reply::error(error)),
        };
        let mut room = limit - model.bytes();
        let replies = items.iter().map(|item| {
            let added = model.insert((*item).into(), insert.absent, &mut room);
            match (insert.absent, protocol) {
                (false, Protocol::Resp3) => Reply::Boolean(added == Ok(true)),
                _ => Reply::Integer(added.map_or(-1, i64::from)),
            }
        });
        let replies: Vec<Reply> = replies.collect();
        assert_eq!(reply.into_elements(), Some(replies));
    }

    /// What CF.DEL answers.
    fn removed(&mut self, key: Key, item: u8) -> Reply {
        match self.cuckoos.get_mut(key.name()) {
            None => Reply::error("Not found"),
            Some(model) => Reply::Boolean(model.slow.remove(item.into())),
        }
    }

    fn cuckoo_remove(&mut self, key: Key, item: u8) {
        let reply = self.call(&["CF.DEL", key.name()], &[bytes(item)]);
        assert_eq!(reply, self.removed(key, item));
    }

    /// Pipelined CF.DELs as one batch, and one by one.
    fn cuckoo_remove_batch(&mut self, key: Key, items: &[u8]) {
        let mut other = self.beside(key);
        let (list, name) = (all_bytes(items), key.name().as_bytes());
        let slices: Vec<&[u8]> = list.iter().map(Vec::as_slice).collect();
        let replies = match slices.is_empty() {
            true => Vec::new(),
            false => self.keys.pipeline("CF.DEL", name, &slices),
        };
        let one_by_one = slices
            .iter()
            .map(|item| other.call(&[b"CF.DEL", name, item]));
        assert_eq!(replies, one_by_one.collect::<Vec<_>>());
        assert_eq!(self.keys.keys.get(name), other.keys.get(name));
        for (item, reply) in items.iter().zip(replies) {
            assert_eq!(reply, self.removed(key, *item));
        }
    }

    fn cuckoo_compact(&mut self, key: Key) {
        let reply = self.call(&["CF.COMPACT", key.name()], &[]);
        match self.cuckoos.get_mut(key.name()) {
            None => assert_eq!(reply, Reply::error("Cuckoo filter was not found")),
            Some(model) => {
                assert_eq!(reply, Reply::OK);
                model.slow.compact(true);
            }
        }
    }

    fn cuckoo_exists(&mut self, key: Key, items: &[u8]) {
        let list = all_bytes(items);
        let reply = self.call(&["CF.MEXISTS", key.name()], &list);
        let replies = reply.into_elements().expect("an array");
        let slices: Vec<&[u8]> = list.iter().map(Vec::as_slice).collect();
        let run = self
            .keys
            .pipeline("CF.EXISTS", key.name().as_bytes(), &slices);
        assert_eq!(run, replies);
        assert_eq!(run.len(), items.len());
        for (item, reply) in items.iter().zip(replies) {
            let model = self.cuckoos.get(key.name());
            let count = model.map_or(0, |model| model.slow.count((*item).into()));
            assert_eq!(reply, Reply::Boolean(count > 0));
            let one = self.call(&["CF.EXISTS", key.name()], &[bytes(*item)]);
            assert_eq!(one, reply);
            let counted = self.call(&["CF.COUNT", key.name()], &[bytes(*item)]);
            assert_eq!(counted, Reply::Integer(count.try_into().unwrap()));
        }
    }

    pub(crate) fn cuckoo_info(&mut self, key: Key) {
        let info = self.call(&["CF.INFO", key.name()], &[]);
        let debug = self.call(&["CF.DEBUG", key.name()], &[]);
        let stats = self.call(&["CF.STATS", key.name()], &[]);
        let Some(model) = self.cuckoos.get(key.name()) else {
            let missing = Reply::error(NOT_FOUND);
            assert_eq!([info, debug, stats], [(); 3].map(|()| missing.clone()));
            return;
        };
        assert!(matches!(stats, Reply::Map(_)), "{stats:?}");
        let Model {
            slow,
            buckets,
            bucket_size,
            iterations,
            expansion,
        } = model;
        let (tables, items, removed) = (slow.tables.len(), slow.items, slow.removed);
        let slots = slow.tables.iter().map(Vec::len).sum::<usize>();
        let number = |number: u64| Reply::Integer(number.try_into().unwrap());
        let lines = [
            ("Size", number((40 + 16 * tables + slots) as u64)),
            ("Number of buckets", number(*buckets)),
            ("Number of filters", number(tables as u64)),
            ("Number of items inserted", number(items)),
            ("Number of items deleted", number(removed)),
            ("Bucket size", number((*bucket_size).into())),
            ("Expansion rate", number((*expansion).into())),
            ("Max iterations", number((*iterations).into())),
        ];
        let lines = lines.map(|(label, value)| (Reply::simple(label), value));
        assert_eq!(info, Reply::Map(lines.to_vec()));
        let line = format!(
            "bktsize:{bucket_size} buckets:{buckets} items:{items} deletes:{removed} \
             filters:{tables} max_iterations:{iterations} expansion:{expansion}"
        );
        assert_eq!(debug, Reply::bulk(line));
    }

    /// CF.SCANDUMP of one key into another, as a rewritten log has it.
    fn cuckoo_copy(&mut self, from: Key, to: Key) {
        let Some(model) = self.cuckoos.get(from.name()).cloned() else {
            let reply = self.call(&["CF.SCANDUMP", from.name(), "0"], &[]);
            return assert_eq!(reply, Reply::error(NOT_FOUND));
        };
        let there = self.is_cuckoo(to);
        let mut position = 0;
        while let Some((next, data)) = piece(self.filter_of(from), position) {
            let scanned = self.call(&["CF.SCANDUMP", from.name(), &position.to_string()], &[]);
            let expected = match model.slow.items {
                0 => vec![Reply::Integer(0), Reply::Null],
                _ => vec![Reply::Integer(next), Reply::Bulk(data.clone())],
            };
            assert_eq!(scanned, Reply::Array(expected));
            let words = ["CF.LOADCHUNK", to.name(), &next.to_string()];
            let reply = self.call(&words, &[data]);
            if there {
                return assert_eq!(reply, Reply::error("ERR item exists"));
            }
            assert_eq!(reply, Reply::OK);
            position = next.try_into().unwrap();
        }
        assert_eq!(self.filter_of(to), self.filter_of(from));
        self.cuckoos.insert(to.name(), model);
    }

    fn cuckoo_load(&mut self, key: Key, position: u16, data: &[u8]) {
        // Position 1 is the header's.
        let position = u64::from(position) + 2;
        let words = ["CF.LOADCHUNK", key.name(), &position.to_string()];
        let reply = self.call(&words, &[data.to_vec()]);
        let Some(model) = self.cuckoos.get_mut(key.name()) else {
            return assert_eq!(reply, Reply::error(NOT_FOUND));
        };
        let offset = (position - 1).checked_sub(data.len() as u64);
        let offset = offset.filter(|_| !data.is_empty());
        let loaded = offset.is_some_and(|offset| model.slow.load(offset, data));
        let expected = match loaded {
            true => Reply::OK,
            false => Reply::error("Couldn't load chunk!"),
        };
        assert_eq!(reply, expected);
    }
}
