//! What must be true: strings exactly, filters by the items that were acknowledged.

use std::collections::BTreeMap;
use std::rc::Rc;

use everbloom_resp::Reply;

use crate::op::{BloomKind, Family, Op, Shape, family};
use crate::window::{self, Addition, Window};

/// All keys at a moment.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// By name.
    pub keys: BTreeMap<String, Rc<Key>>,
}

/// A key.
#[derive(Debug, Clone)]
pub struct Key {
    /// When it expires, Unix milliseconds.
    pub expires_at: Option<u64>,
    /// Its value.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone)]
pub enum Value {
    /// The bytes.
    Text(Vec<u8>),
    /// The items.
    Bloom(Bloom),
    /// What was added, and when.
    Window(Window),
    /// How often each item is in it.
    Cuckoo(BTreeMap<u32, u32>),
    /// A filter with a forged header, of whose items nothing is known.
    Forged,
}

/// A filter that does not forget.
#[derive(Debug, Clone)]
pub struct Bloom {
    /// The items.
    pub items: std::collections::BTreeSet<u32>,
    /// The rate that must hold, if one must.
    pub rate: Option<f64>,
}

/// Whether a reply says that nothing was changed, for a reason that any command may have.
pub fn is_refusal(reply: &Reply) -> bool {
    let Reply::Error(text) = reply else {
        return false;
    };
    let codes = ["OOM", "MISCONF", "LOADING", "EXECABORT"];
    codes.iter().any(|code| text.starts_with(code)) || text.contains("nsufficient memory")
}

/// From this capacity on the rate of a filter is checked.
const LEAST_CAPACITY: u64 = 100;

type Verdict = Result<(), String>;

/// A command that frees memory is not refused for want of memory.
fn check_refusal(op: &Op, reply: &Reply) -> Verdict {
    match (op, reply) {
        (Op::Del(_) | Op::Flush(_), Reply::Error(text)) if text.starts_with("OOM") => {
            Err(format!("it frees memory, and is refused: {text}"))
        }
        _ => Ok(()),
    }
}

fn expect(reply: &Reply, wanted: &Reply) -> Verdict {
    if reply == wanted {
        return Ok(());
    }
    let text = |reply: &Reply| {
        let text = match reply {
            Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        };
        text.chars().take(100).collect::<String>()
    };
    Err(format!(
        "the reply is {}, and must be {}",
        text(reply),
        text(wanted)
    ))
}

fn int(number: usize) -> Reply {
    Reply::Integer(number as i64)
}

/// The rate of a blocked filter. With few items, that of the filter at hand is far from it by chance.
fn promised(rate: &str, capacity: u64) -> Option<f64> {
    (capacity >= LEAST_CAPACITY).then(|| rate.parse().unwrap())
}

impl Model {
    /// The keys that have not expired.
    pub fn alive(&self, now: u64) -> impl Iterator<Item = (&String, &Rc<Key>)> {
        let alive = move |key: &Rc<Key>| key.expires_at.is_none_or(|at| at > now);
        self.keys.iter().filter(move |(_, key)| alive(key))
    }

    /// A key that has not expired.
    pub fn get(&self, name: &str, now: u64) -> Option<&Rc<Key>> {
        let key = self.keys.get(name)?;
        key.expires_at.is_none_or(|at| at > now).then_some(key)
    }

    fn text(&self, name: &str, now: u64) -> &[u8] {
        match self.get(name, now).map(|key| &key.value) {
            Some(Value::Text(text)) => text,
            _ => &[],
        }
    }

    /// A key to change; one that has expired is gone.
    fn get_mut(&mut self, name: &str, now: u64) -> Option<&mut Key> {
        self.get(name, now)?;
        self.keys.get_mut(name).map(Rc::make_mut)
    }

    /// A key has a filter with a forged header.
    pub fn put_forged(&mut self, name: &str) {
        self.put(name, Value::Forged);
    }

    /// A key is as the server says.
    pub fn put_as_said(&mut self, name: &str, value: Value, expires_at: Option<u64>) {
        let key = Key { expires_at, value };
        self.keys.insert(name.into(), Rc::new(key));
    }

    fn put(&mut self, name: &str, value: Value) {
        let key = Key {
            expires_at: None,
            value,
        };
        self.keys.insert(name.into(), Rc::new(key));
    }

    /// Removes the keys that have expired.
    pub fn purge(&mut self, now: u64) {
        self.keys
            .retain(|_, key| key.expires_at.is_none_or(|at| at > now));
    }

    /// Windows forget by this clock, also those that nobody changes. One that lies ahead of it waits for a change.
    pub fn see(&mut self, now: u64) {
        for key in self.keys.values_mut() {
            if let Value::Window(window) = &mut Rc::make_mut(key).value {
                window.latest = window.latest.max(now);
            }
        }
    }

    /// Windows may have seen a later clock, as those of the same keys in another model have. They then
    /// forget earlier or later.
    pub fn may_be(&mut self, other: &Model) {
        for (name, key) in &mut self.keys {
            let other = other.keys.get(name).map(|it| &it.value);
            if let (Value::Window(window), Some(Value::Window(other))) = (&key.value, other)
                && window.latest < other.latest
                && let Value::Window(window) = &mut Rc::make_mut(key).value
            {
                window.latest = other.latest;
            }
        }
    }

    /// Removes the items that need not be found.
    pub fn drop_forgotten(&mut self, now: u64) {
        for key in self.keys.values_mut() {
            if let Value::Window(window) = &mut Rc::make_mut(key).value {
                let mut items = std::mem::take(&mut window.items);
                items.retain(|_, addition| window.remembers(addition, now));
                window.items = items;
            }
        }
    }

    /// A copy in pieces has begun: a value of the same kind, in which nothing must be found yet.
    pub fn begin_copy(&mut self, from: &str, to: &str, now: u64) {
        let Some(mut value) = self.get(from, now).map(|key| key.value.clone()) else {
            return;
        };
        match &mut value {
            Value::Text(text) => text.clear(),
            Value::Bloom(bloom) => {
                bloom.items.clear();
                bloom.rate = None;
            }
            Value::Window(window) => {
                window.items.clear();
                window.rate = None;
            }
            Value::Cuckoo(items) => items.clear(),
            Value::Forged => {}
        }
        self.put(to, value);
    }

    fn text_mut(&mut self, name: &str, now: u64) -> &mut Vec<u8> {
        if self.get(name, now).is_none() {
            self.put(name, Value::Text(Vec::new()));
        }
        match &mut Rc::make_mut(self.keys.get_mut(name).unwrap()).value {
            Value::Text(text) => text,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// Compares the reply to a command with what it must be, and does the command.
    pub fn apply(&mut self, op: &Op, reply: &Reply, now: u64) -> Verdict {
        if is_refusal(reply) {
            return self.apply_refused(op, reply, now);
        }
        self.purge(now);
        match op {
            Op::Set(..) | Op::Append(..) | Op::SetRange(..) | Op::SetBit(..) => {
                self.change_text(op, reply, now)
            }
            Op::Get(key) => match self.get(key, now) {
                None => expect(reply, &Reply::Null),
                Some(_) => expect(reply, &Reply::Bulk(self.text(key, now).to_vec())),
            },
            Op::GetRange(key, from, to) => {
                let text = self.text(key, now);
                let part = text.get(*from..text.len().min(to + 1)).unwrap_or_default();
                expect(reply, &Reply::Bulk(part.to_vec()))
            }
            Op::StrLen(key) => expect(reply, &int(self.text(key, now).len())),
            Op::Exists(key) => expect(reply, &int(usize::from(self.get(key, now).is_some()))),
            Op::Del(key) => {
                let there = self.get(key, now).is_some();
                self.keys.remove(key);
                expect(reply, &int(usize::from(there)))
            }
            Op::PExpire(key, ms) => {
                let key = self.get_mut(key, now);
                let wanted = int(usize::from(key.is_some()));
                if let Some(key) = key {
                    key.expires_at = Some(now + ms);
                }
                expect(reply, &wanted)
            }
            Op::Persist(key) => {
                let had = self.get_mut(key, now).and_then(|key| key.expires_at.take());
                expect(reply, &int(usize::from(had.is_some())))
            }
            Op::Rename(from, to) => match self.get(from, now).cloned() {
                None => expect(reply, &Reply::error("ERR no such key")),
                Some(key) => {
                    self.keys.remove(from);
                    self.keys.insert(to.clone(), key);
                    expect(reply, &Reply::OK)
                }
            },
            Op::Copy(from, to) => self.copy(from, to, reply, now),
            Op::Flush(_) => {
                self.keys.clear();
                expect(reply, &Reply::OK)
            }
            Op::Reserve(key, shape) => self.reserve(key, shape, reply, now),
            Op::Add(key, from, count) => self.add(key, *from, *count, reply, now),
            Op::Ask(key, from, count) => self.ask(key, *from, *count, reply, now),
            Op::Remove(key, number) => self.remove(key, *number, reply, now),
            Op::Advance(key, count) => self.advance(key, *count, reply, now),
            Op::Clear(key) => self.clear(key, reply, now),
            Op::Merge(to, sources) => self.merge(to, sources, reply, now),
            Op::DumpRestore(from, to) | Op::ScanDump(from, to) => {
                if let Some(key) = self.get(from, now).cloned()
                    && *reply == Reply::OK
                {
                    self.put(to, key.value.clone());
                }
                Ok(())
            }
            Op::Shrink(key, capacity) => {
                self.shrink(key, *capacity, reply, now);
                Ok(())
            }
            // Nothing of the model changes.
            _ => Ok(()),
        }
    }

    fn change_text(&mut self, op: &Op, reply: &Reply, now: u64) -> Verdict {
        match op {
            Op::Set(key, byte, len) => {
                self.put(key, Value::Text(vec![*byte; *len]));
                expect(reply, &Reply::OK)
            }
            Op::Append(key, byte, len) => {
                let text = self.text_mut(key, now);
                text.extend(vec![*byte; *len]);
                expect(reply, &int(text.len()))
            }
            Op::SetRange(key, _, _, 0) => {
                let len = self.text(key, now).len();
                expect(reply, &int(len))
            }
            Op::SetRange(key, at, byte, len) => {
                let text = self.text_mut(key, now);
                let end = at + len;
                text.resize(text.len().max(end), 0);
                text[*at..end].fill(*byte);
                expect(reply, &int(text.len()))
            }
            Op::SetBit(key, at, on) => {
                let text = self.text_mut(key, now);
                text.resize(text.len().max(at / 8 + 1), 0);
                let (byte, mask) = (&mut text[at / 8], 128u8 >> (at % 8));
                let before = *byte & mask != 0;
                *byte = if *on { *byte | mask } else { *byte & !mask };
                expect(reply, &int(usize::from(before)))
            }
            _ => Ok(()),
        }
    }

    fn copy(&mut self, from: &str, to: &str, reply: &Reply, now: u64) -> Verdict {
        if from == to {
            return Ok(());
        }
        match self.get(from, now).cloned() {
            None => expect(reply, &int(0)),
            Some(key) => {
                self.keys.insert(to.into(), key);
                expect(reply, &int(1))
            }
        }
    }

    fn reserve(&mut self, name: &str, shape: &Shape, reply: &Reply, now: u64) -> Verdict {
        let exists = self.get(name, now).is_some();
        let valkey = matches!(
            shape,
            Shape::Bloom {
                kind: BloomKind::Valkey,
                ..
            }
        );
        if exists && !valkey {
            return match reply {
                Reply::Error(_) => Ok(()),
                other => Err(format!("an existing key is reserved: {other:?}")),
            };
        }
        if matches!(reply, Reply::Error(_)) {
            return Err(format!("it is refused: {reply:?}"));
        }
        if exists {
            return Ok(());
        }
        let value = match shape {
            Shape::Bloom {
                rate,
                capacity,
                kind,
                ..
            } => Value::Bloom(Bloom {
                items: Default::default(),
                rate: promised(rate, *capacity).filter(|_| *kind == BloomKind::Blocked),
            }),
            Shape::Window {
                rate,
                capacity,
                seconds,
                generations,
            } => Value::Window(Window {
                span_ms: seconds * 1000,
                capacity: *capacity,
                generations: match seconds {
                    0 => window::generations(*capacity, *generations),
                    seconds => window::generations(seconds * 1000, *generations),
                },
                rate: promised(rate, *capacity),
                latest: now,
                added: 0,
                advanced: 0,
                merged: 0,
                items: BTreeMap::new(),
            }),
            Shape::Cuckoo { .. } => Value::Cuckoo(BTreeMap::new()),
        };
        self.put(name, value);
        Ok(())
    }

    fn add(&mut self, name: &str, from: u32, count: u32, reply: &Reply, now: u64) -> Verdict {
        if self.get(name, now).is_none() {
            // It is made with the defaults.
            let value = match family(name) {
                Family::Cuckoo => Value::Cuckoo(BTreeMap::new()),
                _ => Value::Bloom(Bloom {
                    items: Default::default(),
                    rate: None,
                }),
            };
            self.put(name, value);
        }
        let answers = match reply {
            Reply::Array(answers) => answers.as_slice(),
            one => std::slice::from_ref(one),
        };
        let value = &mut Rc::make_mut(self.keys.get_mut(name).unwrap()).value;
        if matches!(value, Value::Forged) {
            return Ok(());
        }
        if let Value::Window(window) = value {
            window.see(now);
        }
        for (number, answer) in (from..from + count).zip(answers) {
            if let Reply::Error(text) = answer {
                let known = ["full", "OOM", "emory", "problem inserting"];
                if !known.iter().any(|known| text.contains(known)) {
                    return Err(format!("item{number} is refused: {text}"));
                }
                continue;
            }
            let new = match answer {
                Reply::Integer(0) => false,
                Reply::Integer(1) => true,
                other => return Err(format!("item{number}: {other:?}")),
            };
            match value {
                Value::Bloom(bloom) => {
                    let was_new = bloom.items.insert(number);
                    if new && !was_new {
                        return Err(format!("item{number} is new, but it was added before"));
                    }
                }
                Value::Window(window) => {
                    let before = window.items.get(&number);
                    if new && before.is_some_and(|before| window.remembers(before, now)) {
                        return Err(format!("item{number} is new, but it was added before"));
                    }
                    let (added, advanced) = (window.added, window.advanced);
                    window.added += 1;
                    let addition = Addition {
                        at: now,
                        added,
                        advanced,
                    };
                    window.items.insert(number, addition);
                }
                Value::Cuckoo(items) => *items.entry(number).or_default() += 1,
                Value::Text(_) | Value::Forged => return Err("no known filter".into()),
            }
        }
        if count as usize != answers.len() && count != 1 {
            // RedisBloom ends the replies at the first error.
            return match answers.last() {
                Some(Reply::Error(_)) => Ok(()),
                _ => Err(format!("{} answers for {count} items", answers.len())),
            };
        }
        Ok(())
    }

    /// Whether an item must be found.
    pub fn must_find(value: &Value, number: u32, now: u64) -> bool {
        match value {
            Value::Bloom(bloom) => bloom.items.contains(&number),
            Value::Window(window) => {
                let addition = window.items.get(&number);
                addition.is_some_and(|addition| window.remembers(addition, now))
            }
            Value::Cuckoo(items) => items.get(&number).is_some_and(|count| *count > 0),
            Value::Text(_) | Value::Forged => false,
        }
    }

    /// The items that must be found.
    pub fn wanted(value: &Value, now: u64) -> Box<dyn Iterator<Item = u32> + '_> {
        match value {
            Value::Bloom(bloom) => Box::new(bloom.items.iter().copied()),
            Value::Window(window) => {
                let items = window.items.iter();
                Box::new(
                    items
                        .filter(move |item| window.remembers(item.1, now))
                        .map(|item| *item.0),
                )
            }
            Value::Cuckoo(items) => Box::new(items.iter().filter(|it| *it.1 > 0).map(|it| *it.0)),
            Value::Text(_) | Value::Forged => Box::new(std::iter::empty()),
        }
    }

    /// The rate that a filter must keep, if it must.
    pub fn rate(value: &Value) -> Option<f64> {
        match value {
            Value::Bloom(bloom) => bloom.rate,
            Value::Window(window) => window.rate,
            _ => None,
        }
    }

    fn ask(&self, name: &str, from: u32, count: u32, reply: &Reply, now: u64) -> Verdict {
        let Some(key) = self.get(name, now) else {
            return Ok(());
        };
        let Reply::Array(answers) = reply else {
            return Err(format!("{reply:?}"));
        };
        for (number, answer) in (from..from + count).zip(answers) {
            if Self::must_find(&key.value, number, now) && *answer != Reply::Integer(1) {
                return Err(format!("item{number} is missing: {answer:?}"));
            }
        }
        Ok(())
    }

    fn remove(&mut self, name: &str, number: u32, reply: &Reply, now: u64) -> Verdict {
        let key = self.get_mut(name, now);
        let Some(Key {
            value: Value::Cuckoo(items),
            ..
        }) = key
        else {
            return Ok(());
        };
        let count = items.entry(number).or_default();
        if *count == 0 {
            return Ok(());
        }
        *count -= 1;
        expect(reply, &int(1))
    }

    /// What a refused command has changed: a window that lies ahead of the clock begins again, though there is no memory
    /// for a generation. Otherwise it would forget nothing, and there would never be any.
    fn apply_refused(&mut self, op: &Op, reply: &Reply, now: u64) -> Verdict {
        if let (Op::Advance(name, _), Reply::Error(text)) = (op, reply)
            && text.starts_with("OOM")
            && let Some(key) = self.get_mut(name, now)
            && let Value::Window(window) = &mut key.value
        {
            window.see(now);
        }
        check_refusal(op, reply)
    }

    fn advance(&mut self, name: &str, count: u64, reply: &Reply, now: u64) -> Verdict {
        if let Some(Key {
            value: Value::Window(window),
            ..
        }) = self.get_mut(name, now)
        {
            window.see(now);
            window.advanced += count;
            if matches!(reply, Reply::Error(_)) {
                return Err(format!("it is refused: {reply:?}"));
            }
        }
        Ok(())
    }

    /// It answers with the rate to expect, or refuses; the items and the error rate stay.
    fn shrink(&mut self, name: &str, capacity: u64, reply: &Reply, now: u64) {
        if capacity < LEAST_CAPACITY
            && !matches!(reply, Reply::Error(_))
            && let Some(Key {
                value: Value::Bloom(bloom),
                ..
            }) = self.get_mut(name, now)
        {
            bloom.rate = None;
        }
    }

    fn clear(&mut self, name: &str, reply: &Reply, now: u64) -> Verdict {
        if matches!(reply, Reply::Error(_)) {
            return Ok(());
        }
        match self.get_mut(name, now).map(|key| &mut key.value) {
            Some(Value::Bloom(bloom)) => bloom.items.clear(),
            Some(Value::Window(window)) => window.items.clear(),
            _ => {}
        }
        Ok(())
    }

    fn merge(&mut self, to: &str, sources: &[String], reply: &Reply, now: u64) -> Verdict {
        if matches!(reply, Reply::Error(_)) {
            return Ok(());
        }
        // A missing destination is made like the first source. A filter is merged once, however often
        // it is named.
        let mut names = vec![to];
        for name in sources {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let mut values = names.into_iter().filter_map(|name| self.get(name, now));
        let Some(mut merged) = values.next().map(|key| key.value.clone()) else {
            return Err("nothing is merged".into());
        };
        for source in values {
            match (&mut merged, &source.value) {
                (Value::Bloom(to), Value::Bloom(from)) => to.items.extend(&from.items),
                (Value::Window(to), Value::Window(from)) => to.merge(from),
                (Value::Cuckoo(to), Value::Cuckoo(from)) => from
                    .iter()
                    .for_each(|(item, count)| *to.entry(*item).or_default() += count),
                (to, Value::Forged) => *to = Value::Forged,
                (Value::Forged, _) => {}
                (to, from) => return Err(format!("{to:?} and {from:?} are merged")),
            }
        }
        match self.get_mut(to, now) {
            Some(key) => key.value = merged,
            None => self.put(to, merged),
        }
        Ok(())
    }
}
