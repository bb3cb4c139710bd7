//! The commands whose effects the model knows.

use std::fmt;

use crate::forgery::Change;

/// A command as its words.
pub type Words = Vec<Vec<u8>>;

/// The family of a key, by its first letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `s`
    Text,
    /// `b`
    Bloom,
    /// `w`
    Window,
    /// `c`
    Cuckoo,
}

/// What BF.RESERVE or CF.RESERVE is asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// `expansion` 0 is NONSCALING.
    Bloom {
        rate: &'static str,
        capacity: u64,
        expansion: u32,
        /// The words behind: a layout, a seed, or valkey-bloom's.
        kind: BloomKind,
    },
    Window {
        rate: &'static str,
        capacity: u64,
        /// 0 is a window of items.
        seconds: u64,
        generations: u64,
    },
    Cuckoo {
        capacity: u64,
        /// None makes a filter of RedisBloom's kind.
        rate: Option<&'static str>,
    },
}

/// The kinds of Bloom filters that do not forget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BloomKind {
    Classic,
    Blocked,
    Valkey,
}

/// A command whose effect the model knows.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    Set(String, u8, usize),
    Append(String, u8, usize),
    SetRange(String, usize, u8, usize),
    SetBit(String, usize, bool),
    Get(String),
    GetRange(String, usize, usize),
    StrLen(String),
    Exists(String),
    Del(String),
    PExpire(String, u64),
    Persist(String),
    Rename(String, String),
    Copy(String, String),
    /// FLUSHALL or FLUSHDB.
    Flush(&'static str),
    Reserve(String, Shape),
    /// So many items from this one on, in one command or in one each.
    Add(String, u32, u32),
    /// Whether they are there.
    Ask(String, u32, u32),
    /// CF.DEL, if it is there.
    Remove(String, u32),
    Advance(String, u64),
    Clear(String),
    Merge(String, Vec<String>),
    /// To a capacity.
    Shrink(String, u64),
    /// CONFIG SET.
    Config(&'static str, String),
    /// DUMP and RESTORE under another key.
    DumpRestore(String, String),
    /// SCANDUMP and LOADCHUNK under another key.
    ScanDump(String, String),
    /// SCANDUMP and LOADCHUNK under another key, with changes to the header.
    Forge(String, String, Vec<Change>),
    /// A command on a key with a number at the end of a type's range. What it leaves is asked of the server.
    Extreme(String, String),
    /// The string of a key is asked for many times, at so many percent of a limit of replies.
    ReadMany(String, Asking, ReplyLimit, u64),
    /// A command that changes no key.
    Other(&'static str),
}

/// How a string is asked for, once or many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    Get,
    MGet,
    /// GETs that come together.
    Pipeline,
    ExecOfGets,
    ExecOfMGets,
}

/// What limits the bytes of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyLimit {
    /// `client-output-buffer-limit`
    Output(u64),
    /// `maxmemory-clients`
    Clients(u64),
    /// The free memory, of which there is little.
    Memory,
}

/// An item's bytes.
pub fn item(number: u32) -> Vec<u8> {
    format!("item{number}").into_bytes()
}

fn words(parts: &[&dyn fmt::Display]) -> Words {
    parts
        .iter()
        .map(|part| part.to_string().into_bytes())
        .collect()
}

/// The words of a line.
pub fn words_of(line: &str) -> Words {
    let words = line.split(' ');
    words.map(|word| word.as_bytes().to_vec()).collect()
}

impl Shape {
    fn words(&self, key: &str) -> Words {
        match self {
            Shape::Bloom {
                rate,
                capacity,
                expansion,
                kind,
            } => {
                if *kind == BloomKind::Valkey {
                    let mut all =
                        words(&[&"BF.INSERT", &key, &"CAPACITY", capacity, &"ERROR", rate]);
                    match expansion {
                        0 => all.extend(words(&[&"NONSCALING"])),
                        some => all.extend(words(&[&"EXPANSION", some])),
                    }
                    all.extend(words(&[&"TIGHTENING", &"0.5", &"ITEMS", &"first"]));
                    return all;
                }
                let mut all = words(&[&"BF.RESERVE", &key, rate, capacity]);
                match expansion {
                    0 => all.extend(words(&[&"NONSCALING"])),
                    some => all.extend(words(&[&"EXPANSION", some])),
                }
                if *kind == BloomKind::Blocked {
                    all.extend(words(&[&"LAYOUT", &"BLOCKED", &"SEED", &7]));
                }
                all
            }
            Shape::Window {
                rate,
                capacity,
                seconds,
                generations,
            } => {
                let mut all = words(&[&"BF.RESERVE", &key, rate, capacity, &"SEED", &7]);
                all.extend(words(&[&"WINDOW"]));
                match seconds {
                    0 => all.extend(words(&[&"ITEMS"])),
                    some => all.extend(words(&[&"SECONDS", some])),
                }
                all.extend(words(&[&"GENERATIONS", generations]));
                all.extend(words(&[&"LAYOUT", &"BLOCKED"]));
                all
            }
            Shape::Cuckoo { capacity, rate } => {
                let mut all = words(&[&"CF.RESERVE", &key, capacity]);
                if let Some(rate) = rate {
                    all.extend(words(&[&"ERROR", rate, &"SEED", &7]));
                }
                all
            }
        }
    }
}

/// The names of all keys.
pub fn all_keys() -> impl Iterator<Item = String> {
    let all = ["s", "b", "w", "c"].into_iter();
    let all = all.flat_map(|family| (0..4).map(move |number| format!("{family}{number}")));
    all.chain(FORGED.map(String::from))
}

/// The keys of filters with forged headers: Bloom filters, and a cuckoo filter.
pub const FORGED: [&str; 3] = ["f0", "f1", "x0"];

/// The family of a key.
pub fn family(key: &str) -> Family {
    match key.as_bytes()[0] {
        b's' => Family::Text,
        b'b' | b'f' => Family::Bloom,
        b'w' => Family::Window,
        _ => Family::Cuckoo,
    }
}

impl Op {
    /// The command, unless it is a conversation of several.
    pub fn words(&self) -> Words {
        let fill = |byte: &u8, len: &usize| vec![*byte; *len];
        match self {
            Op::Set(key, byte, len) => [words(&[&"SET", key]), vec![fill(byte, len)]].concat(),
            Op::Append(key, byte, len) => {
                [words(&[&"APPEND", key]), vec![fill(byte, len)]].concat()
            }
            Op::SetRange(key, at, byte, len) => {
                [words(&[&"SETRANGE", key, at]), vec![fill(byte, len)]].concat()
            }
            Op::SetBit(key, at, on) => words(&[&"SETBIT", key, at, &u8::from(*on)]),
            Op::Get(key) => words(&[&"GET", key]),
            Op::GetRange(key, from, to) => words(&[&"GETRANGE", key, from, to]),
            Op::StrLen(key) => words(&[&"STRLEN", key]),
            Op::Exists(key) => words(&[&"EXISTS", key]),
            Op::Del(key) => words(&[&"DEL", key]),
            Op::PExpire(key, ms) => words(&[&"PEXPIRE", key, ms]),
            Op::Persist(key) => words(&[&"PERSIST", key]),
            Op::Rename(from, to) => words(&[&"RENAME", from, to]),
            Op::Copy(from, to) => words(&[&"COPY", from, to, &"REPLACE"]),
            Op::Flush(name) => words(&[name]),
            Op::Reserve(key, shape) => shape.words(key),
            Op::Add(key, from, count) => {
                let name = match (family(key), count) {
                    (Family::Cuckoo, _) => "CF.ADD",
                    (_, 1) => "BF.ADD",
                    _ => "BF.MADD",
                };
                [
                    words(&[&name, key]),
                    (0..*count).map(|n| item(from + n)).collect(),
                ]
                .concat()
            }
            Op::Ask(key, from, count) => {
                let name = match family(key) {
                    Family::Cuckoo => "CF.MEXISTS",
                    _ => "BF.MEXISTS",
                };
                [
                    words(&[&name, key]),
                    (0..*count).map(|n| item(from + n)).collect(),
                ]
                .concat()
            }
            Op::Remove(key, number) => [words(&[&"CF.DEL", key]), vec![item(*number)]].concat(),
            Op::Advance(key, count) => words(&[&"BF.ADVANCE", key, count]),
            Op::Clear(key) => words(&[&"BF.CLEAR", key]),
            Op::Merge(to, sources) => {
                let name = match family(to) {
                    Family::Cuckoo => "CF.MERGE",
                    _ => "BF.MERGE",
                };
                let mut all = words(&[&name, to]);
                all.extend(sources.iter().map(|key| key.clone().into_bytes()));
                all
            }
            Op::Shrink(key, capacity) => words(&[&"BF.SHRINK", key, capacity]),
            Op::Config(name, value) => {
                let mut all = words(&[&"CONFIG", &"SET", name]);
                all.push(value.clone().into_bytes());
                all
            }
            Op::DumpRestore(from, to) => words(&[&"#", &"DUMP", from, &"and RESTORE as", to]),
            Op::ScanDump(from, to) | Op::Forge(from, to, _) => {
                words(&[&"#", &"SCANDUMP", from, &"and LOADCHUNK as", to])
            }
            Op::ReadMany(key, ..) => words(&[&"#", &"read many times", key]),
            Op::Extreme(_, line) => words_of(line),
            Op::Other(line) => words_of(line),
        }
    }

    /// The keys that it may change.
    pub fn changes(&self) -> Vec<&str> {
        match self {
            Op::Get(_) | Op::GetRange(..) | Op::StrLen(_) | Op::Exists(_) | Op::Ask(..) => vec![],
            Op::Flush(_) | Op::Config(..) | Op::Other(_) | Op::ReadMany(..) => vec![],
            Op::Rename(from, to) => vec![from, to],
            Op::Copy(_, to)
            | Op::DumpRestore(_, to)
            | Op::ScanDump(_, to)
            | Op::Forge(_, to, _) => vec![to],
            Op::Set(key, ..)
            | Op::Append(key, ..)
            | Op::SetRange(key, ..)
            | Op::SetBit(key, ..)
            | Op::Del(key)
            | Op::PExpire(key, _)
            | Op::Persist(key)
            | Op::Reserve(key, _)
            | Op::Add(key, ..)
            | Op::Remove(key, _)
            | Op::Advance(key, _)
            | Op::Clear(key)
            | Op::Merge(key, _)
            | Op::Shrink(key, _)
            | Op::Extreme(key, _) => vec![key],
        }
    }

    /// Whether it is a conversation of several commands.
    pub fn is_conversation(&self) -> bool {
        matches!(
            self,
            Op::DumpRestore(..)
                | Op::ScanDump(..)
                | Op::Forge(..)
                | Op::Extreme(..)
                | Op::ReadMany(..)
        )
    }
}

impl fmt::Display for Op {
    /// As a line for redis-cli.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Op::Add(key, from, count) | Op::Ask(key, from, count) = self
            && *count > 1
        {
            let name = self.words().swap_remove(0);
            let name = String::from_utf8_lossy(&name);
            return write!(f, "{name} {key} item{{{from}..{}}}", from + count - 1);
        }
        if let Op::Forge(from, to, changes) = self {
            return write!(
                f,
                "# SCANDUMP {from} and LOADCHUNK as {to} with {changes:?}"
            );
        }
        if let Op::ReadMany(key, how, limit, percent) = self {
            return write!(f, "# {how:?} of {key} for {percent} % of {limit:?}");
        }
        for (index, word) in self.words().iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            let text = String::from_utf8_lossy(word);
            match word.first() {
                Some(first) if word.len() > 40 && word.iter().all(|byte| byte == first) => {
                    let first = char::from(*first);
                    write!(f, "{space}$(printf {first}%.0s {{1..{}}})", word.len())?;
                }
                _ => write!(f, "{space}{text}")?,
            }
        }
        Ok(())
    }
}
