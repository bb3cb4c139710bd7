//! The same command lines to Debian's redis-server and to ours: the replies must be the same, byte
//! for byte, but where they tell the time or come in any order.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

use crate::support::pair::{FILTER, Pair, Raw, STAND_IN, shown};
use crate::support::{Client, Redis};
use everbloom_dev::Random;
use everbloom_resp::Reply;
use everbloom_server::internals::registry;

/// Steps of each random walk.
const STEPS: usize = 6000;

/// How the replies to a command must agree.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Agreement {
    /// In every byte.
    Exact,
    /// As an array in any order.
    AnyOrder,
    /// A cursor and an array in any order.
    Scan,
    /// An integer, give or take so many.
    Near(i64),
    /// In being an error (the same), a null or something else.
    Kind,
}

fn agreement(args: &[Vec<u8>]) -> Agreement {
    let upper = |at: usize| {
        args.get(at)
            .map_or(Vec::new(), |arg| arg.to_ascii_uppercase())
    };
    match (upper(0).as_slice(), upper(1).as_slice()) {
        (b"TTL" | b"EXPIRETIME", _) | (b"OBJECT", b"IDLETIME") => Agreement::Near(5),
        (b"PTTL" | b"PEXPIRETIME", _) => Agreement::Near(5000),
        (b"KEYS", _) => Agreement::AnyOrder,
        // Cursors of another server are other places, so only a whole walk can be compared.
        (b"SCAN", b"0") if args.contains(&b"1000".to_vec()) => Agreement::Scan,
        (b"SCAN", _) => Agreement::Kind,
        // Where Redis shares small integers, and keeps what was appended to in another form.
        (b"RANDOMKEY" | b"OBJECT" | b"MEMORY", _) => Agreement::Kind,
        _ => Agreement::Exact,
    }
}

fn sorted(reply: &Reply) -> Vec<Vec<u8>> {
    let Reply::Array(items) = reply else {
        panic!("an array: {reply:?}");
    };
    let mut items: Vec<_> = items
        .iter()
        .map(|i| i.as_bytes().unwrap().to_vec())
        .collect();
    items.sort();
    items
}

fn agree(agreement: Agreement, theirs: &Raw, ours: &Raw) -> bool {
    let exact = theirs.1 == ours.1;
    if exact || theirs.0.is_error() {
        return exact;
    }
    match (agreement, &theirs.0, &ours.0) {
        (_, Reply::Simple(theirs), Reply::Simple(ours)) => theirs == STAND_IN && ours == FILTER,
        (Agreement::Exact, ..) => false,
        (Agreement::AnyOrder, theirs, ours) => sorted(theirs) == sorted(ours),
        (Agreement::Scan, Reply::Array(theirs), Reply::Array(ours)) => {
            theirs[0] != Reply::bulk("0") || sorted(&theirs[1]) == sorted(&ours[1])
        }
        (Agreement::Near(by), Reply::Integer(theirs), Reply::Integer(ours)) => {
            theirs.min(ours) >= &0 && (theirs - ours).abs() <= by
        }
        (Agreement::Kind, theirs, ours) => {
            theirs.is_null() == ours.is_null() && ours.is_error() == theirs.is_error()
        }
        _ => false,
    }
}

const KEYS: &[&str] = &["a", "b", "c", "key:1", "key:2", "", "{x}"];
const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "-5",
    "17",
    "017",
    "10.5",
    "3.0e3",
    "abc",
    "hello world",
    "-0",
    "+1",
    " 1",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1e400",
    "nan",
    "inf",
    "12345678901234567890123456789012345678901234",
    "\u{0}\u{ff}\r\n",
    "123456789012345678901234567890123456789012345",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "-1",
    "-2",
    "7",
    "100",
    "-100",
    "x",
    "",
    "1.5",
    "+1",
    "01",
    "0x1",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "536870912",
];
const ODD: &[&str] = &[
    "", "x", "NX", "XX", "GT", "GET", "EX", "-1", "1.5", "KEEPTTL", "\u{0}",
];
const PATTERNS: &[&str] = &[
    "*",
    "**",
    "",
    "?",
    "[ab]",
    "[^ab]",
    "[a-c]",
    "[c-a]",
    "key:*",
    "*:?",
    "\\a",
    "a\\",
    "[",
    "[a",
    "*[12]",
    "k*y*",
    "{*}",
    "key:[\\1-2]",
];

/// Makes up command lines.
struct Writer {
    random: Random,
    /// No two expiries are near each other, so that GT and LT mean the same to both servers.
    expiries: usize,
}

impl Writer {
    fn key(&mut self) -> &'static str {
        self.random.pick(KEYS)
    }

    /// Seconds from now, or a number that is refused.
    fn seconds(&mut self) -> String {
        const REFUSED: &[&str] = &[
            "x",
            "",
            "1.5",
            "9223372036854775807",
            "-9223372036854775808",
        ];
        if self.random.chance(15) {
            return self.random.pick(REFUSED).to_owned();
        }
        self.expiries += 1;
        (10_000 + self.expiries * 7919 % 1_000_000 * 10).to_string()
    }

    /// A time with a unit; `past` allows one that has passed.
    fn time(&mut self, command: &str, past: bool) -> String {
        if past && self.random.chance(15) {
            return self.random.pick(&["0", "-1", "-100"]).to_owned();
        }
        let seconds = self.seconds();
        let Ok(mut time) = seconds.parse::<i64>() else {
            return seconds;
        };
        if !(0..1 << 40).contains(&time) {
            return seconds;
        }
        if command.ends_with("AT") {
            time += 4_000_000_000;
        }
        if command.starts_with('P') {
            time *= 1000;
        }
        time.to_string()
    }

    /// One of the time options of SET and GETEX, with its time.
    fn time_option(&mut self) -> [String; 2] {
        let option = self.random.pick(&["EX", "PX", "EXAT", "PXAT"]);
        let time = if self.random.chance(5) {
            "0".into()
        } else {
            self.time(option, false)
        };
        [option.to_owned(), time]
    }

    fn line(&mut self) -> Vec<String> {
        let mut line = match self.random.below(10) {
            0..=3 => self.string_line(),
            4..=5 => self.set_line(),
            6 => self.expiry_line(),
            7..=8 => self.key_line(),
            _ => self.walk_line(),
        };
        if self.random.chance(6) && line.len() > 1 {
            let at = 1 + self.random.below(line.len() - 1);
            match self.random.below(3) {
                0 => drop(line.remove(at)),
                1 => line.push(self.random.pick(ODD).to_owned()),
                // An odd word in the place of a key names a key that is as good as any.
                _ => line[at] = self.random.pick(ODD).to_owned(),
            }
        }
        if line[0] == "SCAN" && ["", "-1", "\0"].contains(&line[1].as_str()) {
            // Redis takes them for numbers.
            line[1] = "0".into();
        }
        if self.random.chance(10) {
            line[0] = line[0].to_ascii_lowercase();
        }
        line
    }

    fn string_line(&mut self) -> Vec<String> {
        let (a, b) = (self.key(), self.key());
        let (v, w) = (self.random.pick(VALUES), self.random.pick(VALUES));
        let (n, m) = (self.random.pick(NUMBERS), self.random.pick(NUMBERS));
        let words: &[&str] = match self.random.below(14) {
            0 => &["GET", a],
            1 => &["MGET", a, b],
            2 => &["MSET", a, v, b, w],
            3 => &["MSETNX", a, v, b, w],
            4 => &["STRLEN", a],
            5 => &["APPEND", a, v],
            6 => &["GETRANGE", a, n, m],
            7 => &["SUBSTR", a, n, m],
            8 => &["SETRANGE", a, n, v],
            9 => &["INCR", a],
            10 => &["DECR", a],
            11 => &["INCRBY", a, n],
            12 => &["DECRBY", a, n],
            _ => &["GETSET", a, v],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn set_line(&mut self) -> Vec<String> {
        let (key, value) = (self.key().to_owned(), self.random.pick(VALUES).to_owned());
        match self.random.below(10) {
            0 => vec!["SETNX".into(), key, value],
            1 => vec!["SETEX".into(), key, self.time("EX", false), value],
            2 => vec!["PSETEX".into(), key, self.time("PX", false), value],
            3 => vec!["GETDEL".into(), key],
            4 | 5 => {
                let mut line = vec!["GETEX".into(), key];
                match self.random.below(5) {
                    0 => line.push("PERSIST".into()),
                    1 => line.extend(["EXAT".into(), "1".into()]),
                    2 => {}
                    _ => line.extend(self.time_option()),
                }
                line
            }
            _ => {
                let mut line = vec!["SET".into(), key, value];
                for _ in 0..self.random.below(4) {
                    match self.random.below(6) {
                        0 | 1 => line.extend(self.time_option()),
                        _ => line.push(self.random.pick(&["NX", "xx", "GET", "KEEPTTL"]).into()),
                    }
                }
                line
            }
        }
    }

    fn expiry_line(&mut self) -> Vec<String> {
        const ASK: &[&str] = &["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "PERSIST"];
        const SET: &[&str] = &["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"];
        let key = self.key().to_owned();
        if self.random.chance(40) {
            return vec![self.random.pick(ASK).into(), key];
        }
        let command = self.random.pick(SET);
        let mut line = vec![command.to_owned(), key, self.time(command, true)];
        for _ in 0..self.random.below(3) {
            line.push(self.random.pick(&["NX", "XX", "GT", "lt", "NOPE"]).into());
        }
        line
    }

    fn key_line(&mut self) -> Vec<String> {
        let (a, b) = (self.key(), self.key());
        let db = self
            .random
            .pick(&["0", "1", "2", "-1", "16", "x", "99999999999"]);
        let object = self.random.pick(&["ENCODING", "idletime", "NOPE"]);
        let words: &[&str] = match self.random.below(20) {
            0 => &["DEL", a, b],
            1 => &["UNLINK", a],
            2 | 3 => &["EXISTS", a, b, a],
            4 => &["TYPE", a],
            5 | 6 => &["RENAME", a, b],
            7 => &["RENAMENX", a, b],
            8 => &["COPY", a, b],
            9 => &["COPY", a, b, "REPLACE"],
            10 => &["COPY", a, b, "DB", db],
            11 => &["COPY", a, b, "db", db, "replace"],
            12 | 13 => &["MOVE", a, db],
            14 => &["TOUCH", a, b],
            15 | 16 => &["OBJECT", object, a],
            17 => &["MEMORY", "USAGE", a],
            18 => &["MEMORY", "USAGE", a, "SAMPLES", db],
            _ => &["OBJECT", object],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn walk_line(&mut self) -> Vec<String> {
        let pattern = self.random.pick(PATTERNS);
        let kind = self.random.pick(&["string", "STRING", FILTER, "hash"]);
        let cursor = self
            .random
            .pick(&["x", "-", "1x", "18446744073709551616", " 1"]);
        let count = self
            .random
            .pick(&["0", "-1", "x", "1", "99999999999999999999"]);
        let (n, m) = (self.random.pick(NUMBERS), self.random.pick(NUMBERS));
        let mode = self.random.pick(&["SYNC", "async", "NOPE"]);
        let words: &[&str] = match self.random.below(20) {
            0..=3 => &["KEYS", pattern],
            4 | 5 => &["SCAN", "0", "COUNT", "1000"],
            6 | 7 => &["SCAN", "0", "COUNT", "1000", "MATCH", pattern],
            8 | 9 => &["SCAN", "0", "COUNT", "1000", "TYPE", kind],
            10 => &["SCAN", cursor, "COUNT", count],
            11 => &["SCAN", "0", "MATCH", "*", "COUNT", count],
            12 => &["RANDOMKEY"],
            13 | 14 => &["DBSIZE"],
            15 => &["SELECT", n],
            16 => &["SELECT", "0"],
            17 => &["SWAPDB", n, m],
            18 => &["SWAPDB", "0", "1"],
            _ if self.random.chance(70) => &["FLUSHDB", mode],
            _ => &["FLUSHALL", mode],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// Words as bytes; `\u{ff}` stands for a byte that is no UTF-8.
fn bytes(line: &[String]) -> Vec<Vec<u8>> {
    let byte = |c: char| u8::try_from(u32::from(c)).expect("words are Latin-1");
    line.iter()
        .map(|word| word.chars().map(byte).collect())
        .collect()
}

fn walk(protocol: &str, seed: u64) {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    pair.call(&["HELLO", protocol]);
    pair.call(&["CONFIG", "RESETSTAT"]);
    let mut writer = Writer {
        random: Random(seed),
        expiries: 0,
    };
    let mut trail: Vec<String> = Vec::new();
    for step in 0..STEPS {
        if writer.random.chance(2) {
            let key = writer.key();
            trail.push(format!("(plant) {key}"));
            pair.plant(key);
        }
        let args = bytes(&writer.line());
        let copies = args[0].eq_ignore_ascii_case(b"COPY") && args.len() > 1;
        // Redis copies a list; a filter is not copied.
        if copies && pair.holds_filter(&args[1]) {
            continue;
        }
        trail.push(shown(&args.join(&b' ')));
        let [theirs, ours] = pair.call(&args);
        let first = trail.len().saturating_sub(12);
        assert!(
            agree(agreement(&args), &theirs, &ours),
            "seed {seed}, step {step}, after\n{}\nRedis: {}\nours:  {}",
            trail[first..].join("\n"),
            shown(&theirs.1),
            shown(&ours.1),
        );
    }
    pair.same_look_ups();
}

#[test]
fn random_commands_are_answered_as_by_redis_in_resp2() {
    for seed in 1..=3 {
        walk("2", seed);
    }
}

#[test]
fn random_commands_are_answered_as_by_redis_in_resp3() {
    for seed in 101..=103 {
        walk("3", seed);
    }
}

#[test]
fn sequences_that_chance_seldom_finds() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    for protocol in ["2", "3"] {
        pair.call(&["HELLO", protocol]);
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
}

const SEQUENCE: &str = "
    FLUSHALL
    SET gone 1 PXAT 1
    GET gone
    EXISTS gone
    SET n 123
    OBJECT ENCODING n
    SET n 12345678901234567890
    OBJECT ENCODING n
    SET n 12345678901234567890123456789012345678901234
    OBJECT ENCODING n
    SET n 123456789012345678901234567890123456789012345
    OBJECT ENCODING n
    OBJECT
    OBJECT ENCODING
    OBJECT HELP x
    MEMORY
    MEMORY NOPE
    MEMORY USAGE
    MEMORY USAGE none
    (plant) f
    GET f
    SET f 1 GET
    GETSET f 1
    GETDEL f
    GETEX f EX 100
    GETEX f EX x
    GETRANGE f 0 -1
    STRLEN f
    APPEND f x
    SETRANGE f 0 x
    SETRANGE f 0 ''
    SETRANGE f 536870912 x
    INCR f
    MGET f n
    SETNX f 1
    SET f 1 NX
    MSETNX f 1 g 2
    EXPIRE f 100
    PERSIST f
    RENAME f g
    MOVE g 1
    MOVE g 1
    SELECT 1
    SET g 1
    TYPE g
    SELECT 0
    MULTI
    SET a 1
    INCR a
    GET
    EXEC
    MULTI
    SET a 1
    INCR a
    APPEND a x
    INCR a
    EXEC
    SETRANGE big 536870911 xy
    SETRANGE big 536870912 ''
    EXISTS big
    SWAPDB x 1
    SWAPDB 0 y
    SWAPDB 0 99
    COPY a a
    COPY a b DB
    COPY none none2 DB 1
";

#[test]
fn rows_say_what_redis_says() {
    let Some(redis) = Redis::start(&[]) else {
        return;
    };
    let mut redis = Client::connect(redis.addr);
    let rows = registry().commands().iter().filter(|row| {
        ["string", "bitmap", "generic"].contains(&row.docs.group)
            || ["dbsize", "flushdb", "flushall", "swapdb"].contains(&row.name)
    });
    for row in rows {
        let Reply::Array(info) = redis.call(&["COMMAND", "INFO", row.name]) else {
            panic!("an array");
        };
        let Reply::Array(info) = &info[0] else {
            panic!("an array")
        };
        let mut flags: Vec<&[u8]> = row.flags.names().map(str::as_bytes).collect();
        flags.sort_unstable();
        assert_eq!(info[1], Reply::Integer(row.arity.into()), "{}", row.name);
        assert_eq!(sorted(&info[2]), flags, "{}", row.name);
        let keys = [row.keys.first, row.keys.last, row.keys.step];
        assert_eq!(
            info[3..6],
            keys.map(|n| Reply::Integer(n.into())),
            "{}",
            row.name
        );

        let Reply::Array(docs) = redis.call(&["COMMAND", "DOCS", row.name]) else {
            panic!("an array");
        };
        let Reply::Array(docs) = &docs[1] else {
            panic!("an array")
        };
        let value = |name: &str| {
            let at = docs
                .iter()
                .position(|field| *field == Reply::bulk(name))
                .unwrap();
            docs[at + 1].clone()
        };
        assert_eq!(value("since"), Reply::bulk(row.docs.since), "{}", row.name);
        assert_eq!(value("group"), Reply::bulk(row.docs.group), "{}", row.name);
    }
}

/// Which keys a command has, and what it does with them, where Redis has a specification without an
/// option's name.
#[test]
fn key_specifications_are_those_of_redis() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let mut compared = 0;
    for row in registry().all() {
        let [theirs, ours] = pair.call(&["COMMAND", "INFO", row.name]);
        let [theirs, ours] = [theirs, ours].map(|(reply, _)| key_specs(&reply));
        if let (Some(theirs), Some(ours)) = (theirs, ours) {
            assert_eq!(ours, theirs, "{}", row.name);
            compared += ours.len();
        }
    }
    assert!(compared > 50, "{compared}");
}

/// The key specifications of the one command in a reply of COMMAND INFO: its flags, and where the
/// keys begin and end. Nothing for a command that Redis does not have.
fn key_specs(info: &Reply) -> Option<Vec<String>> {
    let Reply::Array(commands) = info else {
        panic!("an array")
    };
    let Reply::Array(fields) = &commands[0] else {
        return None;
    };
    let Reply::Array(specs) = &fields[8] else {
        panic!("an array")
    };
    let shown = specs.iter().map(|spec| {
        let Reply::Array(fields) = spec else {
            panic!("an array")
        };
        let value = |name: &str| {
            let at = fields.iter().position(|field| *field == Reply::bulk(name));
            &fields[at.unwrap() + 1]
        };
        let (flags, begin, end) = (value("flags"), value("begin_search"), value("find_keys"));
        format!("{:?} {begin:?} {end:?}", sorted(flags))
    });
    Some(shown.collect())
}
