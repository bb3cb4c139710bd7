//! Debian's redis-server and ours side by side: the same lines to both.
#![allow(clippy::expect_used, clippy::panic)]

use std::io::Write;

use everbloom_resp::{Reply, encode_request};
use everbloom_server::{Running, Settings};

use super::{Client, OfRunning, Redis, server};

/// The key whose value is no string. Redis here knows no filters, so there it is a list.
pub const FILTER: &str = "MBbloom--";
pub const STAND_IN: &str = "list";

/// A reply with its bytes.
pub type Raw = (Reply, Vec<u8>);

/// Both servers, with one connection each.
pub struct Pair {
    theirs: Client,
    ours: Client,
    _redis: Redis,
    _running: Running,
}

impl Pair {
    pub fn start() -> Option<Pair> {
        let redis = Redis::start(&[])?;
        let running = server(Settings {
            io_threads: 1,
            ..Settings::default()
        });
        Some(Pair {
            theirs: Client::connect(redis.addr),
            ours: Client::of(&running),
            _redis: redis,
            _running: running,
        })
    }

    /// Sends a line to both and returns both replies with their bytes, Redis's first.
    pub fn call<T: AsRef<[u8]>>(&mut self, args: &[T]) -> [Raw; 2] {
        let [mut theirs, mut ours] = self.pipeline(&[args]);
        [theirs.remove(0), ours.remove(0)]
    }

    /// Sends lines to both in one piece and returns both's replies, Redis's first.
    pub fn pipeline<T: AsRef<[u8]>, L: AsRef<[T]>>(&mut self, lines: &[L]) -> [Vec<Raw>; 2] {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for line in lines.iter().map(AsRef::as_ref) {
            let for_redis: Vec<&[u8]> = line.iter().map(|arg| for_redis(arg.as_ref())).collect();
            encode_request(&for_redis, &mut theirs);
            encode_request(line, &mut ours);
        }
        self.theirs.stream.write_all(&theirs).unwrap();
        self.ours.stream.write_all(&ours).unwrap();
        let replies = |client: &mut Client| {
            let reply = || client.raw_reply().expect("a server closed the connection");
            std::iter::repeat_with(reply).take(lines.len()).collect()
        };
        [replies(&mut self.theirs), replies(&mut self.ours)]
    }

    /// Replies to a line must be the same bytes.
    pub fn same(&mut self, line: &str) {
        let [theirs, ours] = self.call(&words(line));
        assert_eq!(shown(&ours.1), shown(&theirs.1), "{line}");
    }

    /// Puts a value that is no string under a key.
    pub fn plant(&mut self, key: &str) {
        for client in [&mut self.theirs, &mut self.ours] {
            client.call(&["DEL", key]);
        }
        self.theirs.call(&["RPUSH", key, "x"]);
        self.ours.call(&["BF.ADD", key, "x"]);
    }

    /// Whether the key holds what only stands in for a filter.
    pub fn holds_filter(&mut self, key: &[u8]) -> bool {
        let [theirs, _] = self.call(&[b"TYPE", key]);
        theirs.0 == Reply::simple(STAND_IN)
    }

    /// Both must have counted as many look-ups that found a key, and that did not, since
    /// CONFIG RESETSTAT.
    pub fn same_look_ups(&mut self) {
        let [theirs, ours] = self.call(&["INFO", "stats"]);
        for figure in ["keyspace_hits", "keyspace_misses"] {
            assert_eq!(info(&ours.0, figure), info(&theirs.0, figure), "{figure}");
        }
    }
}

fn info(reply: &Reply, figure: &str) -> String {
    let text = String::from_utf8(reply.as_bytes().unwrap().to_vec()).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(figure));
    line.unwrap_or_else(|| panic!("no {figure}")).to_owned()
}

fn for_redis(arg: &[u8]) -> &[u8] {
    if arg.eq_ignore_ascii_case(FILTER.as_bytes()) {
        STAND_IN.as_bytes()
    } else {
        arg
    }
}

/// The words of a line; `''` is an empty one.
pub fn words(line: &str) -> Vec<String> {
    let word = |word: &str| {
        if word == "''" {
            String::new()
        } else {
            word.to_owned()
        }
    };
    line.split(' ').map(word).collect()
}

pub fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
