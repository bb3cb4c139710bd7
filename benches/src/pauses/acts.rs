//! The acts, each as `everbloom serve` and as redis-server have it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use everbloom::hash::Key;
use everbloom::redisbloom::{FilterParts, LayerParts};
use everbloom::sizing::BlockedSize;
use everbloom_commands::format::header;
use everbloom_dev::Client;
use everbloom_resp::{Reply, encode_request};

/// The key that is acted upon.
pub const BIG: &str = "big";
/// At this rate an item takes 32.1 bits, so that a filter of gigabytes may be reserved.
const RATE: &str = "0.0000002";
/// Of a filter of the blocked layout.
const BLOCKED_RATE: f64 = 0.01;
const ITEMS_A_GIGABYTE: f64 = 1e9 * 8.0 / 32.0;
/// A long value is filled in pieces like this, and read in them.
const PIECE: usize = 16 << 20;
/// How often acts are repeated that are short.
const TIMES: usize = 100;
/// The options of a filter that grows.
const OPTIONS: u32 = 5;
/// The most layers of a filter that a client may load.
const LAYERS: usize = 16_384;

/// The sizes of a run.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub gigabyte: f64,
    pub million: usize,
    pub rounds: usize,
    /// How long pings go on after an act.
    pub after: Duration,
}

impl Scale {
    pub const FULL: Scale = Scale {
        gigabyte: 1.0,
        million: 1_000_000,
        rounds: 3,
        after: Duration::from_secs(1),
    };
    pub const SMOKE: Scale = Scale {
        gigabyte: 0.002,
        million: 1000,
        rounds: 1,
        after: Duration::from_millis(50),
    };
}

/// A server with what the acts need.
pub struct Stage {
    pub client: Client,
    pub port: u16,
    pub is_ours: bool,
    pub metrics_port: u16,
    pub scale: Scale,
    /// What one act leaves for a later one.
    pub payload: Vec<u8>,
}

type Step = fn(&mut Stage) -> Result<()>;

/// Acts that follow each other on one server.
pub struct Scene {
    pub prepare: Step,
    pub acts: &'static [Act],
    /// Whether changes are logged.
    pub log: bool,
}

pub struct Act {
    pub name: &'static str,
    /// What redis-server does instead; empty when it has nothing of the kind.
    pub redis: &'static str,
    pub run: Step,
}

const fn act(name: &'static str, redis: &'static str, run: Step) -> Act {
    Act { name, redis, run }
}

const fn scene(prepare: Step, acts: &'static [Act]) -> Scene {
    Scene {
        prepare,
        acts,
        log: false,
    }
}

#[rustfmt::skip]
pub const SCENES: &[Scene] = &[
    scene(|_| Ok(()), &[
        act("nothing", "the same", |stage| { thread::sleep(3 * stage.scale.after); Ok(()) }),
        act("BF.RESERVE of 4 GB", "SETRANGE of its last byte", |stage| stage.reserve(4.0)),
    ]),
    scene(|stage| stage.keys(3), &[
        act("FLUSHALL of 3 million keys", "the same", |stage| stage.say("FLUSHALL")),
    ]),
    scene(|stage| stage.filter(4.0), &[
        act("100 BF.STATS of 4 GB", "", |stage| stage.repeat("BF.STATS big")),
        act("BF.SCANDUMP of 4 GB, all pieces", "GETRANGE of as many bytes", Stage::scan),
        act("DEL of a filter of 4 GB", "a string", |stage| stage.say("DEL big")),
    ]),
    scene(|stage| stage.text(1.0), &[
        act("COPY of a string of 1 GB", "the same", |stage| stage.say("COPY big copy")),
    ]),
    scene(|stage| stage.blocked(0.5).and_then(|()| stage.say("COPY big other")), &[
        act("COPY of a filter of 500 MB", "a string", |stage| stage.say("COPY big copy")),
        act("BF.MERGE of two filters of 500 MB", "BITOP OR of two strings", |stage| {
            stage.say(if stage.is_ours { "BF.MERGE other big" } else { "BITOP OR other other big" })
        }),
        act("BF.SHRINK of a filter of 500 MB to a half", "", Stage::shrink),
        act("BF.CLEAR of a filter of 500 MB", "", |stage| stage.say("BF.CLEAR copy")),
    ]),
    scene(|stage| stage.filter(1.0), &[
        act("DUMP of a filter of 1 GB", "a string", Stage::dump),
        act("RESTORE of a filter of 1 GB", "a string", Stage::restore),
    ]),
    scene(|stage| stage.text(0.05), &[
        act("10 GETs of 50 MB", "the same", |stage| {
            (0..TIMES / 10).try_for_each(|_| stage.say("GET big"))
        }),
    ]),
    scene(|stage| stage.text(0.001), &[
        act("MGET of 100 strings of 1 MB", "the same", |stage| stage.send(&["MGET"], TIMES, |_| BIG.into())),
    ]),
    scene(|stage| stage.keys(1), &[
        act("WATCH of a million keys", "", |stage| stage.list("WATCH")),
        act("EXEC with these", "", |stage| stage.say("MULTI").and_then(|()| stage.say("EXEC"))),
        act("EXISTS of a million keys", "the same", |stage| stage.list("EXISTS")),
        act("MGET of a million keys", "the same", |stage| stage.list("MGET")),
        act("MSET of a million keys", "the same", |stage| {
            let keys = stage.scale.million;
            stage.send(&["MSET"], 2 * keys, |word| key_name(word / 2))
        }),
        act("DEL of a million keys", "the same", |stage| stage.list("DEL")),
    ]),
    scene(|stage| stage.layers(BIG, LAYERS).and_then(|()| stage.layers("half", LAYERS / 2)), &[
        act("BF.MEXISTS of 100 items on 16 384 layers", "", |stage| {
            stage.send(&["BF.MEXISTS", BIG], TIMES, key_name)
        }),
        act("BF.MERGE of 8192 layers", "", |stage| stage.say("BF.MERGE merged half")),
    ]),
    scene(|stage| stage.filter(1.0).and_then(|()| stage.keys(1)), &[
        act("BGSAVE of 1 GB and 1 million keys, under adds", "the same, under SETBITs", |stage| {
            stage.save("BGSAVE", "rdb_bgsave_in_progress")
        }),
    ]),
    Scene {
        log: true,
        ..scene(|stage| stage.filter(1.0).and_then(|()| stage.keys(1)), &[
            act("BGREWRITEAOF of the same, under adds", "the same, under SETBITs", |stage| {
                stage.save("BGREWRITEAOF", "aof_rewrite_in_progress")
            }),
        ])
    },
    scene(|stage| stage.text(0.5), &[
        act("BGSAVE of a string of 500 MB, under SETBITs", "the same", |stage| {
            stage.save("BGSAVE", "rdb_bgsave_in_progress")
        }),
    ]),
    scene(|stage| stage.keys(10), &[
        act("100 INFOs, 10 million keys", "the same", |stage| stage.repeat("INFO everything")),
        act("100 scrapes of /metrics, 10 million keys", "", |stage| {
            (0..TIMES).try_for_each(|_| get(stage.metrics_port, "/metrics").map(drop))
        }),
        act("100 DBSIZEs, 10 million keys", "the same", |stage| stage.repeat("DBSIZE")),
        act("100 RANDOMKEYs, 10 million keys", "the same", |stage| stage.repeat("RANDOMKEY")),
    ]),
];

impl Stage {
    fn say(&mut self, line: &str) -> Result<()> {
        self.client.ok(line);
        Ok(())
    }

    fn call(&mut self, request: &[&[u8]]) -> Result<()> {
        let reply = self.client.call(request);
        ensure!(!reply.is_error(), "{reply:?}");
        Ok(())
    }

    fn repeat(&mut self, line: &str) -> Result<()> {
        (0..TIMES).try_for_each(|_| self.say(line))
    }

    fn bytes(&self, gigabytes: f64) -> usize {
        (gigabytes * self.scale.gigabyte * 1e9) as usize
    }

    /// So many million keys.
    fn keys(&mut self, millions: usize) -> Result<()> {
        const STEP: usize = 10_000;
        let keys = millions * self.scale.million;
        for first in (0..keys).step_by(STEP) {
            let mut batch = Vec::new();
            let here = first..keys.min(first + STEP);
            for key in here.clone() {
                encode_request(&["SET", &key_name(key), "1"], &mut batch);
            }
            self.client.stream.write_all(&batch)?;
            for _ in here {
                self.client.reply();
            }
        }
        Ok(())
    }

    /// A filter of so many small layers, as a client may forge it.
    fn layers(&mut self, key: &str, layers: usize) -> Result<()> {
        if !self.is_ours {
            return Ok(());
        }
        let layer = |number: usize| LayerParts {
            bytes: 64,
            items: 1,
            // The first one says what rate was asked for.
            error_rate: if number == 0 { BLOCKED_RATE } else { 1e-9 },
            hashes: 5,
            capacity: 1 + number as u64,
            ..LayerParts::default()
        };
        let parts = FilterParts {
            expansion: 1,
            options: OPTIONS,
            items: layers as u64,
            layers: (0..layers).map(layer).collect(),
            key: Some(Key::from_seed(1)),
            ..FilterParts::default()
        };
        let header = header::encode_parts(&parts);
        self.call(&[b"BF.LOADCHUNK", key.as_bytes(), b"1", &header])
    }

    /// Sends a command with so many more words.
    fn send(&mut self, words: &[&str], more: usize, word: impl Fn(usize) -> String) -> Result<()> {
        let mut args: Vec<String> = words.iter().map(|&word| word.into()).collect();
        args.extend((0..more).map(word));
        let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
        self.call(&args)
    }

    /// Sends a command on a million keys.
    fn list(&mut self, command: &str) -> Result<()> {
        self.send(&[command], self.scale.million, key_name)
    }

    /// Makes an empty filter, or a string of zeros.
    fn reserve(&mut self, gigabytes: f64) -> Result<()> {
        if !self.is_ours {
            let last = (self.bytes(gigabytes) - 1).to_string();
            return self.say(&format!("SETRANGE {BIG} {last} x"));
        }
        let items = (gigabytes * self.scale.gigabyte * ITEMS_A_GIGABYTE) as u64;
        self.say(&format!("BF.RESERVE {BIG} {RATE} {items} NONSCALING"))
    }

    /// A filter with half of its bits set, all over. redis-server has a string.
    fn filter(&mut self, gigabytes: f64) -> Result<()> {
        if !self.is_ours {
            return self.text(gigabytes);
        }
        self.reserve(gigabytes)?;
        self.load(self.bytes(gigabytes), &pattern(PIECE))
    }

    /// A filter of the blocked layout with an eighth of its bits set, all over, so that it can be
    /// halved. redis-server has a string.
    fn blocked(&mut self, gigabytes: f64) -> Result<()> {
        if !self.is_ours {
            return self.text(gigabytes);
        }
        let size = blocked_size(self.bytes(gigabytes))?;
        let items = size.capacity;
        self.say(&format!(
            "BF.RESERVE {BIG} {BLOCKED_RATE} {items} NONSCALING LAYOUT BLOCKED"
        ))?;
        let mut pattern = pattern(PIECE);
        for at in (16..pattern.len()).rev() {
            pattern[at] &= pattern[at - 8].rotate_left(3) & pattern[at - 16].rotate_left(5);
        }
        self.load(size.bytes as usize, &pattern)
    }

    /// Halves the copy of such a filter. Then there is little room beside its bits.
    fn shrink(&mut self) -> Result<()> {
        let size = blocked_size(self.bytes(0.5))?;
        self.say(&format!("BF.SHRINK other {}", size.capacity / 50))
    }

    /// Writes all bytes of the filter.
    fn load(&mut self, bytes: usize, pattern: &[u8]) -> Result<()> {
        for from in (0..bytes).step_by(PIECE) {
            let piece = &pattern[..PIECE.min(bytes - from)];
            // BF.LOADCHUNK wants the iterator behind the piece.
            let behind = (from + piece.len() + 1).to_string();
            self.call(&[b"BF.LOADCHUNK", BIG.as_bytes(), behind.as_bytes(), piece])?;
        }
        Ok(())
    }

    /// A string of bytes that cannot be compressed.
    fn text(&mut self, gigabytes: f64) -> Result<()> {
        let pattern = pattern(PIECE);
        let bytes = self.bytes(gigabytes);
        // The last byte comes first, so that the string does not grow piece by piece.
        let pieces = (0..bytes).step_by(PIECE);
        for from in std::iter::once(bytes - 1).chain(pieces) {
            let piece = &pattern[..PIECE.min(bytes - from)];
            let from = from.to_string();
            self.call(&[b"SETRANGE", BIG.as_bytes(), from.as_bytes(), piece])?;
        }
        Ok(())
    }

    /// Reads all of the filter or string in pieces.
    fn scan(&mut self) -> Result<()> {
        let mut at = 0;
        if self.is_ours {
            loop {
                let reply = self.client.ok(&format!("BF.SCANDUMP big {at}"));
                let pair = reply.into_elements().context("not a pair")?;
                let [next, piece] = pair.as_slice() else {
                    anyhow::bail!("not a pair: {pair:?}");
                };
                at = next.as_integer().context("no iterator")?;
                if piece.as_bytes().is_none_or(<[u8]>::is_empty) {
                    return Ok(());
                }
            }
        }
        let mut from = 0;
        loop {
            let until = from + PIECE - 1;
            let line = format!("GETRANGE big {from} {until}");
            let piece = self.client.ok(&line);
            if piece.as_bytes().is_none_or(<[u8]>::is_empty) {
                return Ok(());
            }
            from = until + 1;
        }
    }

    fn dump(&mut self) -> Result<()> {
        let Reply::Bulk(payload) = self.client.ok("DUMP big") else {
            anyhow::bail!("no payload");
        };
        self.payload = payload;
        Ok(())
    }

    fn restore(&mut self) -> Result<()> {
        // It is not freed here: that would keep this process from pinging.
        let payload = &self.payload;
        let mut head = Vec::new();
        encode_request(&["RESTORE", "restored", "0", ""], &mut head);
        // The request, with the payload in place of the empty argument.
        head.truncate(head.len() - b"$0\r\n\r\n".len());
        let stream = &mut self.client.stream;
        stream.write_all(&head)?;
        stream.write_all(format!("${}\r\n", payload.len()).as_bytes())?;
        stream.write_all(payload)?;
        stream.write_all(b"\r\n")?;
        let reply = self.client.reply();
        ensure!(!reply.is_error(), "RESTORE: {reply:?}");
        Ok(())
    }

    /// Saves in the background, while another connection changes the value all over.
    fn save(&mut self, command: &str, field: &str) -> Result<()> {
        let mut load = Client::try_connect(("127.0.0.1", self.port))?;
        let is_filter = self.is_ours && self.client.line("STRLEN big").is_error();
        let bits = self.bytes(0.4) as u64 * 8;
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let load = scope.spawn(|| {
                let mut number = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    number += 1;
                    let at = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    load.ok(&match is_filter {
                        true => format!("BF.ADD big {at}"),
                        false => format!("SETBIT big {} 1", at % bits),
                    });
                }
            });
            let saved = self.save_and_wait(command, field);
            done.store(true, Ordering::Relaxed);
            ensure!(load.join().is_ok(), "the load broke");
            saved
        })
    }

    fn save_and_wait(&mut self, command: &str, field: &str) -> Result<()> {
        // A large file takes a minute at most.
        const MOST: Duration = Duration::from_secs(300);
        let begun = std::time::Instant::now();
        self.say(command)?;
        while self.client.info(field) != "0" {
            ensure!(begun.elapsed() < MOST, "{command} does not end");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

/// The name of a key of many.
fn key_name(number: usize) -> String {
    format!("key:{number:08}")
}

/// Reads a page over HTTP.
pub fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    ensure!(page.starts_with("HTTP/1.1 200"), "{path}: {page}");
    Ok(page)
}

/// The largest filter of the blocked layout with at most so many bytes.
fn blocked_size(bytes: usize) -> Result<BlockedSize> {
    let capacity = BlockedSize::max_capacity(bytes as u64 * 8, BLOCKED_RATE);
    BlockedSize::new(capacity, BLOCKED_RATE).context("no filter has so many bytes")
}

/// Bytes that look like chance.
fn pattern(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let words = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state ^ state >> 29)
            .wrapping_mul(0xbf58_476d_1ce4_e5b9)
            .rotate_left(31)
    });
    words
        .take(length / 8 + 1)
        .flat_map(u64::to_le_bytes)
        .take(length)
        .collect()
}
