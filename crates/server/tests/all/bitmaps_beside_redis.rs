//! Commands on bits, mixed with those on strings, to Debian's redis-server and to ours: the replies
//! must be the same, byte for byte, and so must the strings in the end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use crate::support::pair::{Pair, shown, words};
use everbloom_dev::Random;

/// Steps of each random walk: lines, or pipelines.
const STEPS: usize = 3000;

const KEYS: &[&str] = &["a", "b", "c", "d"];

/// Numbers that are no offset, or lie at an edge. Strings go up to 1 MiB, 8388608 bits.
const ODD: &[&str] = &[
    "",
    "x",
    "-1",
    "+1",
    "01",
    "1.5",
    "#",
    "#1x",
    "8388607",
    "8388608",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
];
const VALUES: &[&str] = &[
    "",
    "0",
    "17",
    "hello world",
    "\u{ff}\u{ff}\u{ff}\u{ff}\u{ff}\u{ff}\u{ff}\u{ff}\u{ff}\u{ff}\u{ff}\u{ff}",
    "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{1}",
    "\u{ff}\u{f0}\u{0}",
    "-9223372036854775808",
];
const TYPES: &[&str] = &[
    "u1", "u2", "u7", "u8", "u9", "u16", "u31", "u32", "u33", "u62", "u63", "u64", "i1", "i2",
    "i7", "i8", "i9", "i31", "i33", "i63", "i64", "i65", "u0", "i0", "U8", "u08", "8", "u", "",
];
const SUMMANDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "-128",
    "127",
    "255",
    "256",
    "300",
    "-300",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "4611686018427387904",
    "x",
    "9223372036854775808",
];

/// Makes up command lines.
struct Writer(Random);

impl Writer {
    fn key(&mut self) -> &'static str {
        self.0.pick(KEYS)
    }

    fn offset(&mut self) -> String {
        match self.0.below(40) {
            0 => self.0.pick(ODD).to_owned(),
            1 => self.0.below(8 << 20).to_string(),
            2..6 => self.0.below(3000).to_string(),
            _ => self.0.below(140).to_string(),
        }
    }

    /// The end of a range, in bytes or bits, from either end.
    fn index(&mut self) -> String {
        match self.0.below(40) {
            0 => self.0.pick(ODD).to_owned(),
            1..20 => format!("-{}", self.0.below(120)),
            _ => self.0.below(120).to_string(),
        }
    }

    /// A valid range of so many words. This server checks the words of an invalid one before the
    /// key, as Redis 7.4 does; Redis 7.0 checks them only if the key holds a string.
    fn range(&mut self, words: usize) -> Vec<String> {
        let mut number = || {
            let numbers = std::iter::repeat_with(|| self.index());
            let is_number = |text: &String| text.parse().is_ok_and(|n: i64| n.to_string() == *text);
            numbers.filter(is_number).take(1).collect()
        };
        let numbers: [String; 2] = [number(), number()];
        let unit = self.0.pick(&["BIT", "bit", "BYTE", "byte"]).to_owned();
        numbers.into_iter().chain([unit]).take(words).collect()
    }

    fn setbit(&mut self, key: &str) -> Vec<String> {
        let bit = match self.0.below(30) {
            0 => self.0.pick(&["2", "-1", "x", "", "01"]),
            n => ["0", "1"][n % 2],
        };
        vec!["SETBIT".into(), key.into(), self.offset(), bit.into()]
    }

    fn getbit(&mut self, key: &str) -> Vec<String> {
        vec!["GETBIT".into(), key.into(), self.offset()]
    }

    fn bitop(&mut self) -> Vec<String> {
        let operation = self
            .0
            .pick(&["AND", "and", "OR", "or", "XOR", "xor", "NOT", "not", "NOPE"]);
        let mut line = vec!["BITOP".into(), operation.into()];
        let keys = match operation.to_ascii_uppercase().as_str() {
            "NOT" if self.0.chance(80) => 2,
            _ => 1 + self.0.below(5),
        };
        for _ in 0..keys {
            let key = if self.0.chance(15) {
                "none"
            } else {
                self.key()
            };
            line.push(key.into());
        }
        line
    }

    fn bitfield(&mut self) -> Vec<String> {
        let command = self.0.pick(&["BITFIELD", "BITFIELD", "BITFIELD_RO"]);
        let mut line = vec![command.to_owned(), self.key().to_owned()];
        for _ in 0..self.0.below(6) {
            let only_reads = command == "BITFIELD_RO" && self.0.chance(90);
            let word = match self.0.below(12) {
                _ if only_reads => "GET",
                0..3 => "get",
                3..6 => "SET",
                6..9 => "IncrBy",
                9..11 => {
                    line.push("OVERFLOW".into());
                    line.push(
                        self.0
                            .pick(&["WRAP", "sat", "SAT", "fail", "FAIL", "FAIL"])
                            .into(),
                    );
                    continue;
                }
                _ if self.0.chance(30) => "NOPE",
                _ => "GET",
            };
            line.push(word.into());
            let valid = self.0.chance(97);
            let kind = loop {
                let kind = self.0.pick(TYPES);
                let width = kind.get(1..).and_then(|width| width.parse::<u32>().ok());
                let good = width.is_some_and(|width| (1..64).contains(&width))
                    && !kind.contains(['0', 'U'])
                    || kind == "i64";
                if good || !valid {
                    break kind;
                }
            };
            line.push(kind.into());
            line.push(match self.0.chance(30) {
                true => format!("#{}", self.0.below(20)),
                false => self.offset(),
            });
            if !word.eq_ignore_ascii_case("GET") {
                line.push(match self.0.chance(50) {
                    true => self.0.pick(SUMMANDS).to_owned(),
                    // One bit less than there are: Redis computes the distance of a summand from the
                    // least i63 in 64 bits, and saturates at the wrong end when it overflows.
                    false => (self.0.number().cast_signed() >> 1).to_string(),
                });
            }
        }
        if self.0.chance(4) {
            line.pop();
        }
        line
    }

    fn bit_line(&mut self) -> Vec<String> {
        let key = self.key();
        match self.0.below(14) {
            0..3 => self.setbit(key),
            3..5 => self.getbit(key),
            5..7 => {
                let mut line = vec!["BITCOUNT".to_owned(), key.to_owned()];
                let words = [0, 2, 3][self.0.below(3)];
                line.extend(self.range(words));
                line
            }
            7..9 => {
                let bit = self.0.pick(&["0", "1", "0", "1", "0", "1", "2", "x"]);
                let mut line = vec!["BITPOS".to_owned(), key.to_owned(), bit.to_owned()];
                let words = self.0.below(4);
                line.extend(self.range(words));
                line
            }
            9 | 10 => self.bitop(),
            _ => self.bitfield(),
        }
    }

    fn string_line(&mut self) -> Vec<String> {
        let (a, b) = (self.key(), self.key());
        let value = self.0.pick(VALUES);
        let (n, m) = (self.index(), self.index());
        let seconds = self.0.pick(&["0", "-1", "100000", "200000"]);
        let place = self.0.below(60).to_string();
        let words: &[&str] = match self.0.below(22) {
            0..3 => &["SET", a, value],
            3 => &["SET", a, value, "EX", "100000"],
            4 => &["SET", a, value, "KEEPTTL"],
            5 => &["GET", a],
            6 => &["APPEND", a, value],
            7 | 8 => &["SETRANGE", a, &place, value],
            9 => &["GETRANGE", a, &n, &m],
            10 => &["GETDEL", a],
            11 | 12 => &["STRLEN", a],
            13 => &["EXPIRE", a, seconds],
            14 => &["PERSIST", a],
            15 => &["INCR", a],
            16 => &["DEL", a, b],
            17 => &["RENAME", a, b],
            18 => &["EXISTS", a, b],
            19 => &["TYPE", a],
            20 => &["GETSET", a, value],
            _ => &["MGET", a, b],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn line(&mut self) -> Vec<String> {
        if self.0.chance(65) {
            self.bit_line()
        } else {
            self.string_line()
        }
    }

    /// Runs of GETBITs and of SETBITs on one key or on several, now and then with another line
    /// between them.
    fn pipeline(&mut self) -> Vec<Vec<String>> {
        let mut lines = Vec::new();
        for _ in 0..=self.0.below(6) {
            let one = self.0.chance(50).then(|| self.key());
            let sets = self.0.chance(50);
            for _ in 0..self.0.below(150) {
                let key = one.unwrap_or_else(|| self.key());
                lines.push(match sets {
                    true => self.setbit(key),
                    false => self.getbit(key),
                });
            }
            lines.push(self.line());
        }
        lines
    }
}

/// Words as bytes; `\u{ff}` stands for a byte that is no UTF-8.
fn bytes(line: &[String]) -> Vec<Vec<u8>> {
    let byte = |c: char| u8::try_from(u32::from(c)).expect("words are Latin-1");
    line.iter()
        .map(|word| word.chars().map(byte).collect())
        .collect()
}

fn start(protocol: &str) -> Option<Pair> {
    let mut pair = Pair::start()?;
    pair.same("CONFIG SET proto-max-bulk-len 1048576");
    pair.call(&["HELLO", protocol]);
    pair.call(&["CONFIG", "RESETSTAT"]);
    Some(pair)
}

/// Both servers hold the same.
fn same_in_the_end(pair: &mut Pair) {
    for key in KEYS {
        for line in [
            format!("GET {key}"),
            format!("TTL {key}"),
            format!("STRLEN {key}"),
        ] {
            if !line.starts_with("TTL") {
                pair.same(&line);
                continue;
            }
            let [theirs, ours] = pair.call(&words(&line));
            let (theirs, ours) = (theirs.0.as_integer(), ours.0.as_integer());
            let apart = (theirs.unwrap() - ours.unwrap()).abs();
            assert!(apart <= 5, "{line}: {theirs:?}, {ours:?}");
        }
    }
    pair.same("DBSIZE");
    pair.same_look_ups();
}

fn walk(protocol: &str, seed: u64, steps: usize, lines: fn(&mut Writer) -> Vec<Vec<String>>) {
    let Some(mut pair) = start(protocol) else {
        return;
    };
    let mut writer = Writer(Random(seed));
    let mut trail: Vec<String> = Vec::new();
    for step in 0..steps {
        if writer.0.chance(1) {
            let key = writer.key();
            trail.push(format!("(plant) {key}"));
            pair.plant(key);
        }
        let lines: Vec<_> = lines(&mut writer).iter().map(|line| bytes(line)).collect();
        let [theirs, ours] = pair.pipeline(&lines);
        for (line, (theirs, ours)) in lines.iter().zip(theirs.iter().zip(&ours)) {
            trail.push(shown(&line.join(&b' ')));
            // What both call a value that is no string is not the same.
            let is_type = line[0] == b"TYPE" && !theirs.0.is_error();
            let first = trail.len().saturating_sub(12);
            assert!(
                theirs.1 == ours.1 || is_type,
                "seed {seed}, step {step}, after\n{}\nRedis: {}\nours:  {}",
                trail[first..].join("\n"),
                shown(&theirs.1),
                shown(&ours.1),
            );
        }
    }
    same_in_the_end(&mut pair);
}

#[test]
fn random_lines_are_answered_as_by_redis() {
    for (protocol, seed) in [("2", 1), ("3", 2), ("2", 3), ("3", 4)] {
        walk(protocol, seed, STEPS, |writer| vec![writer.line()]);
    }
}

#[test]
fn random_pipelines_are_answered_as_by_redis() {
    for (protocol, seed) in [("2", 11), ("3", 12)] {
        walk(protocol, seed, STEPS / 50, Writer::pipeline);
    }
}

/// What a transaction that watches a key makes of a command: Redis tells what counts as a change.
#[test]
fn watchers_are_told_of_the_same_changes() {
    let Some(mut pair) = start("3") else {
        return;
    };
    let mut writer = Writer(Random(21));
    for _ in 0..STEPS / 5 {
        let line = writer.bit_line();
        let fails = line.iter().any(|word| word.eq_ignore_ascii_case("FAIL"));
        for line in ["WATCH a b c d", "GET a"] {
            pair.same(line);
        }
        let [theirs, ours] = pair.call(&bytes(&line));
        assert_eq!(shown(&theirs.1), shown(&ours.1), "{line:?}");
        pair.same("MULTI");
        pair.same("PING");
        let [theirs, ours] = pair.call(&["EXEC"]);
        // Redis does not count a string that grew for a number that was not written.
        assert!(theirs.1 == ours.1 || fails && ours.0.is_null(), "{line:?}");
    }
}

#[test]
fn sequences_that_chance_seldom_finds() {
    let Some(mut pair) = start("2") else {
        return;
    };
    for line in SEQUENCE
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        match line.strip_prefix("(plant) ") {
            Some(key) => pair.plant(key),
            None => pair.same(line),
        }
    }
}

const SEQUENCE: &str = "
    CONFIG SET proto-max-bulk-len 536870912
    SETBIT far 4294967295 1
    STRLEN far
    BITCOUNT far
    BITPOS far 1
    GETBIT far 4294967296
    SETBIT far 4294967296 0
    BITFIELD far SET u8 4294967295 255 GET u8 4294967295 GET u8 #536870911
    STRLEN far
    BITCOUNT far -2 -1
    BITFIELD far SET u8 #536870912 1
    DEL far
    SET gone x PXAT 1
    SETBIT gone 0 0
    GET gone
    SET gone x PXAT 1
    GETBIT gone 1
    SET gone x PXAT 1
    BITOP OR d gone none
    EXISTS d
    SET gone x PXAT 1
    BITFIELD gone INCRBY u8 0 1
    TTL gone
    SETBIT
    SETBIT a
    SETBIT a 1
    SETBIT a 1 1 1
    GETBIT a
    GETBIT a 1 1
    BITCOUNT
    BITPOS a
    BITOP NOT d
    BITFIELD
    BITFIELD_RO
    (plant) f
    SETBIT f x 2
    SETBIT f 1 2
    SETBIT f 1 1
    GETBIT f x
    GETBIT f 1
    BITCOUNT f 1 2
    BITPOS f 2
    BITPOS f 1 2
    BITOP AND f f a
    BITOP NOT f a b
    BITFIELD f
    BITFIELD f GET u8
    BITFIELD f SET u8 0 1
    BITFIELD_RO f SET u8 0 1
    BITFIELD_RO f GET u8 0
    BITOP AND f none
    EXISTS f
    MULTI
    SETBIT t 3 1
    GETBIT t 3
    BITCOUNT t
    GETBIT t x
    BITFIELD t GET u8 0
    EXEC
    GET t
";
