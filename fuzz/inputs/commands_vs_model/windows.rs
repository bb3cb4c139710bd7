//! Windows and the commands that make a filter anew, against sets of what must be found.

use std::collections::{HashMap, HashSet};

use arbitrary::Arbitrary;
use everbloom_resp::Reply;

use super::options::Rate;
use super::{Items, Run, item};

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Key {
    D,
    E,
    F,
}

#[derive(Arbitrary, Debug)]
pub(crate) enum Step {
    Reserve(Key, Rate, u8, Layout),
    Add(Key, u16),
    Madd(Key, Items),
    Insert(Key, Items, Layout),
    Exists(Key, Items),
    Advance(Key, u8),
    /// Tenths of a second.
    Wait(u16),
    Clear(Key),
    Merge(Key, Vec<Key>),
    Shrink(Key, u16),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Layout {
    Classic,
    Blocked,
    Fixed,
    Seconds(u8, u8),
    Items(u8),
}

/// What must be found, and what says how long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    remembers: Remembers,
    /// Oldest first; without a window always one.
    kept: Vec<Generation>,
    /// Of a window of items: when each item was added last, and how many were added.
    added: HashMap<Vec<u8>, u64>,
    count: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Remembers {
    #[default]
    All,
    Milliseconds {
        window: u64,
        generations: u64,
    },
    Items(u64),
}

#[derive(Clone, Debug, Default)]
struct Generation {
    began: u64,
    items: HashSet<Vec<u8>>,
}

impl Key {
    fn name(self) -> &'static str {
        match self {
            Key::D => "d",
            Key::E => "e",
            Key::F => "f",
        }
    }
}

impl Layout {
    fn words(self) -> String {
        match self {
            Layout::Classic => "LAYOUT CLASSIC".to_owned(),
            Layout::Blocked => "LAYOUT BLOCKED".to_owned(),
            Layout::Fixed => "NONSCALING LAYOUT BLOCKED".to_owned(),
            Layout::Seconds(seconds, generations) => {
                let (seconds, generations) = (seconds.max(1), generations % 8 + 1);
                format!("WINDOW SECONDS {seconds} GENERATIONS {generations}")
            }
            Layout::Items(generations) => {
                format!("WINDOW ITEMS GENERATIONS {}", generations % 8 + 1)
            }
        }
    }

    fn model(self, capacity: u64, now: u64) -> Model {
        let remembers = match self {
            Layout::Classic | Layout::Blocked | Layout::Fixed => Remembers::All,
            Layout::Seconds(seconds, generations) => Remembers::Milliseconds {
                window: u64::from(seconds.max(1)) * 1000,
                generations: u64::from(generations % 8 + 1),
            },
            Layout::Items(_) => Remembers::Items(capacity),
        };
        let first = Generation {
            began: now,
            items: HashSet::new(),
        };
        Model {
            remembers,
            kept: vec![first],
            ..Model::default()
        }
    }
}

impl Model {
    /// The milliseconds of a generation, and how many are kept.
    fn clock(&self) -> Option<(u64, usize)> {
        match self.remembers {
            Remembers::Milliseconds {
                window,
                generations,
            } => Some((window.div_ceil(generations), generations as usize + 1)),
            _ => None,
        }
    }

    fn newest(&self) -> u64 {
        self.kept.last().unwrap().began
    }

    /// How many generations the clock has ended.
    fn ended(&self, now: u64) -> u64 {
        let age = now - self.newest();
        self.clock().map_or(0, |(ticks, _)| age / ticks)
    }

    fn begin(&mut self, count: u64, began: u64) {
        let Some((_, most)) = self.clock() else {
            return;
        };
        for _ in 0..count.min(most as u64) {
            self.kept.push(Generation {
                began,
                items: HashSet::new(),
            });
        }
        self.kept.drain(..self.kept.len().saturating_sub(most));
    }

    fn add(&mut self, item: &[u8], now: u64) {
        let ended = self.ended(now);
        let began = self.newest() + self.clock().map_or(0, |(ticks, _)| ended * ticks);
        self.begin(ended, began);
        self.kept.last_mut().unwrap().items.insert(item.to_vec());
        self.count += 1;
        self.added.insert(item.to_vec(), self.count);
    }

    /// Whether the item must be found.
    pub(crate) fn has(&self, item: &[u8], now: u64) -> bool {
        if let Remembers::Items(capacity) = self.remembers {
            let added = self.added.get(item);
            return added.is_some_and(|added| self.count - added <= capacity);
        }
        let most = self.clock().map_or(usize::MAX, |(_, most)| most);
        let over = (self.kept.len() + self.ended(now) as usize).saturating_sub(most);
        let mut kept = self.kept.iter().skip(over);
        kept.any(|generation| generation.items.contains(item))
    }

    /// Takes what another one holds: a generation gets the items of the one that ends with it.
    fn take(&mut self, other: &Model) {
        let newest = self.newest().max(other.newest());
        let empty = |model: &Model| {
            model
                .clock()
                .map_or(0, |(ticks, _)| (newest - model.newest()) / ticks)
        };
        let by_age = |model: &Model| -> Vec<Generation> {
            let skipped = std::iter::repeat_n(Generation::default(), empty(model) as usize);
            skipped.chain(model.kept.iter().rev().cloned()).collect()
        };
        let (mut mine, theirs) = (by_age(self), by_age(other));
        mine.resize(mine.len().max(theirs.len()), Generation::default());
        for (mine, theirs) in mine.iter_mut().zip(theirs) {
            mine.items.extend(theirs.items);
        }
        mine.truncate(self.clock().map_or(1, |(_, most)| most));
        mine.reverse();
        mine.last_mut().unwrap().began = newest;
        self.kept = mine;
    }
}

impl Run {
    pub(crate) fn windows(&mut self, step: &Step) {
        let now = self.keys.context.now_ms;
        match step {
            Step::Reserve(key, rate, capacity, layout) => {
                let capacity = u64::from(*capacity) + 1;
                let words = format!("{} {capacity} {}", rate.text(), layout.words());
                let words = words.split(' ').map(|word| word.as_bytes().to_vec());
                let reply = self.call(&["BF.RESERVE", key.name()], &words.collect::<Vec<_>>());
                if reply == Reply::OK {
                    let before = self.windows.insert(key.name(), layout.model(capacity, now));
                    assert!(before.is_none(), "made twice");
                }
            }
            Step::Add(key, number) => {
                let item = item(*number);
                let reply = self.call(&["BF.ADD", key.name()], std::slice::from_ref(&item));
                self.offered(*key, &[item], &[reply], None);
            }
            Step::Madd(key, items) => self.add_many(&["BF.MADD", key.name()], *key, items, None),
            Step::Insert(key, items, layout) => {
                let words = format!(
                    "BF.INSERT {} CAPACITY 20 {} ITEMS",
                    key.name(),
                    layout.words()
                );
                let words: Vec<&str> = words.split(' ').collect();
                self.add_many(&words, *key, items, Some(*layout));
            }
            Step::Exists(key, items) => self.find(*key, &items.list()),
            Step::Advance(key, count) => self.advance(*key, u64::from(*count) + 1),
            Step::Wait(tenths) => self.keys.context.now_ms += 100 * u64::from(*tenths),
            Step::Clear(key) => {
                let reply = self.call(&["BF.CLEAR", key.name()], &[]);
                let model = self.windows.get_mut(key.name());
                assert_eq!(reply == Reply::OK, model.is_some());
                if let Some(model) = model {
                    let newest = model.newest();
                    model.added.clear();
                    model.kept = vec![Generation {
                        began: newest,
                        ..Generation::default()
                    }];
                }
            }
            Step::Merge(key, sources) => self.merge(*key, sources),
            Step::Shrink(key, capacity) => {
                self.call(&["BF.SHRINK", key.name(), &capacity.to_string()], &[]);
            }
        }
        for key in [Key::D, Key::E, Key::F] {
            self.all_are_found(key);
        }
    }

    fn add_many(&mut self, words: &[&str], key: Key, items: &Items, made: Option<Layout>) {
        let items = items.list();
        let reply = self.call(words, &items);
        match reply.into_elements() {
            Some(replies) => self.offered(key, &items, &replies, made),
            None => assert!(!self.windows.contains_key(key.name()) || made.is_some()),
        }
    }

    /// Takes over what was added; a filter that was made had the defaults, unless a layout is said.
    fn offered(&mut self, key: Key, items: &[Vec<u8>], replies: &[Reply], made: Option<Layout>) {
        let now = self.keys.context.now_ms;
        if !self.keys.keys.contains_key(key.name().as_bytes()) {
            return;
        }
        let made = || made.unwrap_or(Layout::Classic).model(20, now);
        let model = self.windows.entry(key.name()).or_insert_with(made);
        for (item, reply) in items.iter().zip(replies) {
            match reply {
                Reply::Boolean(new) => {
                    assert!(!new || !model.has(item, now), "new though it is there");
                    model.add(item, now);
                }
                other => assert!(other.is_error(), "{other:?}"),
            }
        }
    }

    fn find(&mut self, key: Key, items: &[Vec<u8>]) {
        let reply = self.call(&["BF.MEXISTS", key.name()], items);
        let now = self.keys.context.now_ms;
        let model = self.windows.get(key.name());
        for (item, reply) in items.iter().zip(reply.into_elements().unwrap()) {
            let certain = model.is_some_and(|model| model.has(item, now));
            assert!(!certain || reply == Reply::Boolean(true), "lost");
            assert!(model.is_some() || reply == Reply::Boolean(false));
        }
    }

    fn advance(&mut self, key: Key, count: u64) {
        let reply = self.call(&["BF.ADVANCE", key.name(), &count.to_string()], &[]);
        let now = self.keys.context.now_ms;
        if reply.is_error() {
            return;
        }
        let model = self.windows.get_mut(key.name()).expect("a filter");
        model.begin(count + model.ended(now), now);
        model.added.clear();
    }

    fn merge(&mut self, key: Key, sources: &[Key]) {
        let mut words = vec!["BF.MERGE", key.name()];
        words.extend(sources.iter().map(|source| source.name()));
        if self.call(&words, &[]).is_error() {
            return;
        }
        let mut merged = match self.windows.get(key.name()) {
            Some(own) => own.clone(),
            None => self.windows[sources[0].name()].clone(),
        };
        for source in sources {
            let source = &self.windows[source.name()];
            assert_eq!(source.remembers, merged.remembers);
            merged.take(source);
        }
        self.windows.insert(key.name(), merged);
    }

    /// Nothing is lost.
    pub(crate) fn all_are_found(&mut self, key: Key) {
        let now = self.keys.context.now_ms;
        let Some(model) = self.windows.get(key.name()) else {
            return;
        };
        let all = model.kept.iter().flat_map(|generation| &generation.items);
        let mut certain: Vec<&Vec<u8>> = all.filter(|item| model.has(item, now)).collect();
        certain.dedup();
        let filter = self.keys.filter(key.name());
        filter.contains_each_at(certain, now, |found| assert!(found, "lost"));
    }
}
