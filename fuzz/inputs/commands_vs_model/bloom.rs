//! The commands on Bloom filters, against sets and plain arithmetic.

use std::collections::HashSet;

use arbitrary::Arbitrary;
use everbloom::Layout;
use everbloom::sizing::{BlockedSize, LayerSize, RATE_CAP, Rounding};
use everbloom_commands::Defaults;
use everbloom_resp::Reply;

use super::keyspace::{Keyspace, pieces};
use super::options::{Blocked, Expansion, Growth, Rate};
use super::{Items, Key, Run, item};

const FULL: &str = "ERR non scaling filter is full";
const CANNOT_GROW: &str = "ERR problem inserting into filter";

#[derive(Arbitrary, Debug)]
pub(crate) enum Step {
    Reserve(Key, Rate, u16, Growth),
    Add(Key, u16),
    AddBatch(Key, Items),
    Madd(Key, Items),
    Insert(Key, Insert),
    Exists(Key, Items),
    Info(Key),
    Copy(Key, Key),
}

#[derive(Arbitrary, Debug)]
pub(crate) struct Insert {
    rate: Option<Rate>,
    capacity: Option<u16>,
    growth: Growth,
    no_create: bool,
    items: Items,
}

/// All there is to know of a filter without its bits.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// Items that were answered, and so must be found for ever.
    pub(crate) certain: HashSet<Vec<u8>>,
    items: u64,
    fixed: bool,
    expansion: u32,
    layers: u64,
    capacity: u64,
    bytes: u64,
    newest: Size,
    /// Of all layers, oldest first.
    rates: Vec<f64>,
    /// The error rate asked for.
    rate: f64,
    items_in_newest: u64,
    /// The most that `bytes` may become.
    limit: u64,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Classic(LayerSize),
    Blocked(BlockedSize),
}

/// What a filter is made with, or why it is not.
type Made = Result<Model, &'static str>;

impl Step {
    /// The keys it names.
    pub(crate) fn keys(&self) -> [Key; 2] {
        match self {
            Step::Copy(from, to) => [*from, *to],
            Step::Reserve(key, ..)
            | Step::Add(key, _)
            | Step::AddBatch(key, _)
            | Step::Madd(key, _)
            | Step::Insert(key, _)
            | Step::Exists(key, _)
            | Step::Info(key) => [*key; 2],
        }
    }
}

impl Run {
    pub(crate) fn bloom(&mut self, step: &Step) {
        match step {
            Step::Reserve(key, rate, capacity, growth) => {
                self.reserve(*key, *rate, *capacity, growth)
            }
            Step::Add(key, number) => {
                let made = self.made_by_default();
                let item = item(*number);
                let reply = self.call(&["BF.ADD", key.name()], std::slice::from_ref(&item));
                match self.model(*key, made) {
                    Ok(model) => model.offered(&item, &reply),
                    Err(error) => assert_eq!(reply, Reply::error(error)),
                }
            }
            Step::AddBatch(key, items) => self.add_batch(*key, &items.list()),
            Step::Madd(key, items) => {
                let made = self.made_by_default();
                self.add_all(&["BF.MADD", key.name()], *key, made, &items.list());
            }
            Step::Insert(key, insert) => self.insert(*key, insert),
            Step::Exists(key, items) => self.exists(*key, &items.list()),
            Step::Info(key) => self.bloom_info(*key),
            Step::Copy(from, to) => self.copy(*from, *to),
        }
    }

    /// The layout of a filter that is made with these options.
    fn layout(&self, growth: &Growth) -> Layout {
        match growth.layout {
            None => self.context().defaults.layout,
            Some(Blocked::No) => Layout::Classic,
            Some(Blocked::Yes(_)) => Layout::Blocked,
        }
    }

    /// The model of the key, made if it is missing.
    fn model(&mut self, key: Key, made: Made) -> Result<&mut Model, &'static str> {
        if !self.blooms.contains_key(key.name()) {
            self.blooms.insert(key.name(), made?);
        }
        Ok(self.blooms.get_mut(key.name()).unwrap())
    }

    fn made_by_default(&self) -> Made {
        let Defaults {
            error_rate,
            initial_size,
            expansion,
            layout,
        } = self.context().defaults;
        self.made(error_rate, initial_size, expansion, expansion == 0, layout)
    }

    fn made(&self, rate: f64, capacity: u64, expansion: u32, fixed: bool, layout: Layout) -> Made {
        let first = match (layout, fixed) {
            (Layout::Classic, true) => LayerSize::only(capacity, rate).map(Size::Classic),
            (Layout::Classic, false) => LayerSize::first(capacity, rate).map(Size::Classic),
            (Layout::Blocked, true) => BlockedSize::only(capacity, rate).map(Size::Blocked),
            (Layout::Blocked, false) => BlockedSize::first(capacity, rate).map(Size::Blocked),
        };
        let first = first.ok_or("ERR could not create filter")?;
        if first.bytes() > self.context().max_filter_bytes {
            return Err("ERR Insufficient memory to create filter");
        }
        Ok(Model {
            certain: HashSet::new(),
            items: 0,
            fixed,
            expansion,
            layers: 1,
            capacity,
            bytes: first.bytes(),
            newest: first,
            rates: vec![first.error_rate()],
            rate: rate.min(RATE_CAP),
            items_in_newest: 0,
            limit: self.context().max_filter_bytes,
        })
    }

    fn reserve(&mut self, key: Key, rate: Rate, capacity: u16, growth: &Growth) {
        let mut words = vec![rate.text().to_owned(), capacity.to_string()];
        growth.append_to(&mut words);
        let words: Vec<Vec<u8>> = words.into_iter().map(String::into_bytes).collect();

        let layout = self.layout(growth);
        let default = self.context().defaults.expansion;
        let fixed_by_word = growth.non_scaling || default == 0;
        let expansion = growth.expansion.map(Expansion::get);
        let fixed = fixed_by_word || expansion == Some(0);
        let expected = if capacity == 0 {
            Err("ERR capacity must be in the range [1, 1073741824]")
        } else if fixed_by_word && expansion.is_some_and(|expansion| expansion > 0) {
            Err("Nonscaling filters cannot expand")
        } else if self.blooms.contains_key(key.name()) {
            Err("ERR item exists")
        } else {
            self.made(
                rate.get(),
                capacity.into(),
                expansion.unwrap_or(default),
                fixed,
                layout,
            )
        };
        let reply = self.call(&["BF.RESERVE", key.name()], &words);
        match expected {
            Ok(model) => {
                assert_eq!(reply, Reply::OK);
                self.blooms.insert(key.name(), model);
            }
            Err(error) => assert_eq!(reply, Reply::error(error)),
        }
    }

    fn insert(&mut self, key: Key, insert: &Insert) {
        let mut words = vec!["BF.INSERT".to_owned(), key.name().to_owned()];
        if let Some(rate) = insert.rate {
            words.extend(["ERROR", rate.text()].map(str::to_owned));
        }
        if let Some(capacity) = insert.capacity {
            words.extend(["CAPACITY".to_owned(), capacity.to_string()]);
        }
        insert.growth.append_to(&mut words);
        words.extend(insert.no_create.then(|| "NOCREATE".to_owned()));
        words.push("ITEMS".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let items = insert.items.list();

        let defaults = self.context().defaults;
        let expansion = insert
            .growth
            .expansion
            .map_or(defaults.expansion, Expansion::get);
        let made = if insert.no_create {
            Err("ERR not found")
        } else {
            let fixed = insert.growth.non_scaling || defaults.expansion == 0 || expansion == 0;
            let rate = insert.rate.map_or(defaults.error_rate, Rate::get);
            let capacity = insert.capacity.map_or(defaults.initial_size, u64::from);
            let layout = self.layout(&insert.growth);
            self.made(rate, capacity, expansion, fixed, layout)
        };
        if insert.capacity == Some(0) {
            assert_eq!(self.call(&words, &items), Reply::error("Bad capacity"));
        } else {
            self.add_all(&words, key, made, &items);
        }
    }

    /// A command that adds all items behind `words`.
    fn add_all(&mut self, words: &[&str], key: Key, made: Made, items: &[Vec<u8>]) {
        let reply = self.call(words, items);
        let model = match self.model(key, made) {
            Ok(model) => model,
            Err(error) => return assert_eq!(reply, Reply::error(error)),
        };
        let replies = reply.into_elements().expect("an array");
        let full = Reply::error(FULL);
        assert!(replies.len() == items.len() || replies.last() == Some(&full));
        for (at, (item, reply)) in items.iter().zip(&replies).enumerate() {
            assert!(
                *reply != full || at + 1 == replies.len(),
                "tried after full"
            );
            model.offered(item, reply);
        }
    }

    /// Pipelined BF.ADDs as one batch, and one by one.
    fn add_batch(&mut self, key: Key, items: &[Vec<u8>]) {
        let context = self.keys.context;
        let slices: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
        let name = key.name().as_bytes();
        let mut other = Keyspace {
            context,
            ..Keyspace::default()
        };
        let value = self.keys.keys.get(name).cloned();
        other.keys.extend(value.map(|value| (name.to_vec(), value)));
        let replies = match slices.is_empty() {
            true => Vec::new(),
            false => self.keys.pipeline("BF.ADD", name, &slices),
        };
        let one_by_one: Vec<Reply> = slices
            .iter()
            .map(|item| other.call(&[b"BF.ADD", name, item]))
            .collect();
        assert_eq!(replies, one_by_one);
        assert_eq!(self.keys.keys.get(name), other.keys.get(name));
        let made = self.made_by_default();
        match self.model(key, made) {
            Ok(model) => {
                for (item, reply) in items.iter().zip(&replies) {
                    model.offered(item, reply);
                }
            }
            Err(error) => assert!(replies.iter().all(|reply| *reply == Reply::error(error))),
        }
    }

    fn exists(&mut self, key: Key, items: &[Vec<u8>]) {
        let reply = self.call(&["BF.MEXISTS", key.name()], items);
        let replies = reply.into_elements().expect("an array");
        assert_eq!(replies.len(), items.len());
        let slices: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
        let run = self
            .keys
            .pipeline("BF.EXISTS", key.name().as_bytes(), &slices);
        assert_eq!(run, replies);
        for (item, reply) in items.iter().zip(replies) {
            let one = self.keys.call(&[b"BF.EXISTS", key.name().as_bytes(), item]);
            assert_eq!(one, reply);
            let model = self.blooms.get(key.name());
            let certain = model.is_some_and(|model| model.certain.contains(item));
            let possible = model.is_some_and(|model| model.items > 0);
            assert!(!certain || reply == Reply::Boolean(true), "lost");
            assert!(
                possible || reply == Reply::Boolean(false),
                "found in nothing"
            );
        }
    }

    pub(crate) fn bloom_info(&mut self, key: Key) {
        let info = self.call(&["BF.INFO", key.name()], &[]);
        let card = self.call(&["BF.CARD", key.name()], &[]);
        let debug = self.call(&["BF.DEBUG", key.name()], &[]);
        let Some(model) = self.blooms.get(key.name()) else {
            let missing = Reply::error("ERR not found");
            assert_eq!(
                (info, card, debug),
                (missing.clone(), Reply::Integer(0), missing)
            );
            return;
        };
        let number = |number: u64| Reply::Integer(number.try_into().unwrap());
        let expansion = match model.fixed {
            true => Reply::Null,
            false => number(model.expansion.into()),
        };
        let lines = [
            ("Capacity", number(model.capacity)),
            ("Size", number(32 + 64 * model.layers + model.bytes)),
            ("Number of filters", number(model.layers)),
            ("Number of items inserted", number(model.items)),
            ("Expansion rate", expansion),
        ];
        let lines = lines.map(|(label, value)| (Reply::simple(label), value));
        assert_eq!(info, Reply::Map(lines.to_vec()));
        assert_eq!(card, number(model.items));
        let Reply::Array(lines) = debug else {
            panic!("{debug:?}");
        };
        assert_eq!(lines.len() as u64, 1 + model.layers);
        assert_eq!(lines[0], Reply::bulk(format!("size:{}", model.items)));
    }

    /// BF.SCANDUMP of one key into another.
    fn copy(&mut self, from: Key, to: Key) {
        let Some(model) = self.blooms.get(from.name()).cloned() else {
            let reply = self.call(&["BF.SCANDUMP", from.name(), "0"], &[]);
            return assert_eq!(reply, Reply::error("ERR not found"));
        };
        let dump = pieces(self.keys.filter(from.name()));
        let there = self.blooms.contains_key(to.name());
        for (iterator, data) in dump {
            let iterator = iterator.to_string();
            let words = ["BF.LOADCHUNK", to.name(), &iterator];
            let reply = self.call(&words, &[data]);
            if there {
                return assert_eq!(reply, Reply::error("ERR received bad data"));
            }
            assert_eq!(reply, Reply::OK);
        }
        assert_eq!(self.keys.filter(to.name()), self.keys.filter(from.name()));
        self.blooms.insert(to.name(), model);
    }
}

impl Model {
    /// Holds the reply to one item against what is known.
    fn offered(&mut self, item: &[u8], reply: &Reply) {
        if self.certain.contains(item) {
            return assert_eq!(*reply, Reply::Boolean(false));
        }
        let full = self.items_in_newest >= self.newest.capacity();
        match reply {
            // A false positive: all its bits are there, and stay.
            Reply::Boolean(false) => assert!(self.items > 0, "found in nothing"),
            Reply::Boolean(true) => {
                if full {
                    assert!(!self.fixed, "more than its capacity");
                    self.grow();
                }
                self.items += 1;
                self.items_in_newest += 1;
            }
            Reply::Error(error) => {
                assert!(full, "refused though there is room");
                assert_eq!(error, if self.fixed { FULL } else { CANNOT_GROW });
                assert!(self.fixed || self.next().is_none(), "refused to grow");
                return;
            }
            other => panic!("{other:?}"),
        }
        self.certain.insert(item.to_vec());
    }

    /// The next layer, when there is one and memory for it.
    fn next(&self) -> Option<Size> {
        let next = match self.newest {
            Size::Classic(newest) => Size::Classic(newest.next(self.expansion, Rounding::Words)?),
            Size::Blocked(newest) => {
                let left = self.rate - self.rates.iter().sum::<f64>();
                Size::Blocked(newest.next(self.expansion, left)?)
            }
        };
        (self.bytes + next.bytes() <= self.limit).then_some(next)
    }

    fn grow(&mut self) {
        self.newest = self.next().expect("it cannot grow");
        self.items_in_newest = 0;
        self.layers += 1;
        self.capacity += self.newest.capacity();
        self.bytes += self.newest.bytes();
        self.rates.push(self.newest.error_rate());
    }
}

impl Size {
    fn capacity(&self) -> u64 {
        match self {
            Size::Classic(size) => size.capacity,
            Size::Blocked(size) => size.capacity,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Size::Classic(size) => size.bytes,
            Size::Blocked(size) => size.bytes,
        }
    }

    fn error_rate(&self) -> f64 {
        match self {
            Size::Classic(size) => size.error_rate,
            Size::Blocked(size) => size.error_rate,
        }
    }
}
