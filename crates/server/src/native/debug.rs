//! DEBUG: for tests of servers and clients. Refused unless `enable-debug-command` allows it.
//!
//! It holds the whole keyspace, so other commands wait meanwhile, as in Redis.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use everbloom::hash::murmur64a;
use everbloom::host::Window;
use everbloom::redisbloom::{FilterParts, LayerParts};
use everbloom_commands::Filter;
use everbloom_commands::flags::{ADMIN, LOADING, NOSCRIPT, PROTECTED, STALE};
use everbloom_resp::Reply;

use super::Handler::WriteAll;
use super::{Call, Command, config, subcommand};
use crate::config::Settings;
use crate::locked::Locked;
use crate::session::Session;
use everbloom_files::Value;
use everbloom_store::keyspace::View;

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// A container for debugging commands.
    Command::new("debug", -2, WriteAll(debug))
        .since("1.0.0").flags(&[ADMIN, NOSCRIPT, LOADING, STALE, PROTECTED]),
};

const HELP: [&str; 9] = [
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DIGEST",
    "    Output a hex signature representing the current DB content.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Whether expired keys are removed before somebody asks for them.",
    "SLEEP <seconds>",
    "    Stop the server for <seconds>. Decimals allowed.",
    "HELP",
    "    Print this help.",
];

/// Whether the settings let this client use DEBUG.
pub fn allowed(session: &Session, settings: &Settings) -> Result<(), Reply> {
    if config::is_let(session, &settings.enable_debug_command) {
        return Ok(());
    }
    Err(Reply::error(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \
         \"local\", you can run it from a local connection, otherwise you need to set this \
         option in the configuration file, and then restart the server.",
    ))
}

fn debug(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let word = args.next_bytes()?.to_ascii_uppercase();
    match (word.as_slice(), args.rest()) {
        (b"DIGEST", []) => Ok(Reply::simple(keyspace_digest(view.read()).to_string())),
        (b"HELP", []) => Ok(Reply::Array(HELP.map(Reply::simple).into())),
        (b"SET-ACTIVE-EXPIRE", [value]) => {
            let on = *value != b"0";
            call.server.active_expire.store(on, Ordering::Relaxed);
            Ok(Reply::OK)
        }
        (b"SLEEP", [seconds]) => {
            std::thread::sleep(duration(seconds));
            Ok(Reply::OK)
        }
        _ => Err(subcommand::wrong_use(call)),
    }
}

/// An invalid number counts as no time, as in Redis.
fn duration(seconds: &[u8]) -> Duration {
    let seconds = str::from_utf8(seconds).ok().and_then(|s| s.parse().ok());
    Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or_default()
}

/// A fingerprint that depends only on keys and values: not on their order, the process, or the
/// version of the server. It is 160 bits of MurmurHash64A, for keys that are not made to collide.
///
/// For a value it covers its type, then a string's bytes, or a filter's fields and bit arrays. For
/// a key it covers database, name, expiry (Unix time in milliseconds, or none) and value. For the
/// keyspace it is the xor over its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest([u64; 3]);

impl Digest {
    fn new() -> Self {
        Digest([1, 2, 3])
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for lane in &mut self.0 {
            // The length is included, so that pieces cannot run into each other.
            *lane = murmur64a(bytes, *lane);
        }
    }

    fn numbers(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.bytes(&number.to_le_bytes());
        }
    }

    fn value(&mut self, value: &Value) {
        self.bytes(value.type_name().as_bytes());
        match value {
            Value::Text(text) => self.bytes(text),
            Value::Filter(Filter::Cuckoo(filter)) => {
                let parts = filter.parts();
                self.numbers(&[parts.items, parts.removed, parts.buckets]);
                self.numbers(&[parts.tables, parts.max_kicks, parts.expansion].map(u64::from));
                self.numbers(&[parts.bucket_size.into()]);
                if let Some(keyed) = parts.keyed {
                    self.bytes(&keyed.key.to_bytes());
                    self.numbers(&[keyed.error_rate.to_bits()]);
                    self.numbers(&[keyed.width.into(), keyed.step.into()]);
                }
                let mut offset = 0;
                while let Some(table) = filter.stream_chunk(offset, usize::MAX) {
                    self.bytes(&table);
                    offset += table.len() as u64;
                }
            }
            Value::Filter(Filter::Bloom(filter)) => {
                let FilterParts {
                    items,
                    options,
                    expansion,
                    key,
                    valkey,
                    window,
                    layers,
                } = filter.parts();
                self.numbers(&[items, options.into(), expansion.into()]);
                if let Some(key) = key {
                    self.bytes(&key.to_bytes());
                }
                if let Some(valkey) = valkey {
                    self.bytes(&valkey.seed);
                    self.numbers(&[valkey.tightening.to_bits()]);
                }
                if let Some(window) = window {
                    self.window(&window);
                }
                for layer in &layers {
                    self.layer(layer);
                }
                for layer in filter.layers() {
                    self.bytes(&layer.as_bytes());
                }
            }
        }
    }

    fn window(&mut self, window: &Window) {
        let ticks = window.span.ticks().unwrap_or(0);
        let rate = window.error_rate.to_bits();
        self.numbers(&[ticks, window.generations.into(), window.capacity, rate]);
        self.numbers(&[window.dropped]);
        for generation in &window.kept {
            self.numbers(&[generation.layers.into(), generation.began]);
        }
    }

    fn layer(&mut self, layer: &LayerParts) {
        let (rate, bits) = (layer.error_rate.to_bits(), layer.bits_per_entry.to_bits());
        let (hashes, log2_bits) = (layer.hashes.into(), layer.log2_bits.into());
        self.numbers(&[layer.bytes, layer.bits, layer.items, rate, bits]);
        self.numbers(&[hashes, layer.capacity, log2_bits]);
    }

    fn xor(&mut self, other: Digest) {
        for (lane, other) in self.0.iter_mut().zip(other.0) {
            *lane ^= other;
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, third] = self.0;
        write!(f, "{first:016x}{second:016x}{:08x}", third >> 32)
    }
}

fn keyspace_digest(view: View<'_>) -> Digest {
    let mut all = Digest([0; 3]);
    for (db, number) in (0..view.keyspace().databases()).zip(0u64..) {
        for (_, entry) in view.entries(db) {
            let mut digest = Digest::new();
            digest.numbers(&[number, entry.expires_at().unwrap_or(0)]);
            digest.bytes(entry.key());
            digest.value(&entry.value);
            all.xor(digest);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    fn digest(bench: &mut Bench) -> String {
        match bench.run("DEBUG DIGEST") {
            Reply::Simple(text) => text.into_owned(),
            other => panic!("a digest, not {other:?}"),
        }
    }

    #[test]
    fn a_digest_tells_everything_that_a_client_can_see() {
        let mut bench = Bench::default();
        assert_eq!(digest(&mut bench), "0".repeat(40));
        let mut seen = vec![digest(&mut bench)];
        for line in [
            "SET a 1",
            "SET a 2",
            "SET b 2",
            "PEXPIREAT a 99999999999999",
            "PEXPIREAT a 99999999999998",
            "RENAME b c",
            "BF.RESERVE f 0.1 10",
            "BF.ADD f x",
            "BF.ADD f y",
            "BF.RESERVE b 0.1 10 LAYOUT BLOCKED SEED 1",
            "BF.ADD b x",
            "MOVE c 1",
        ] {
            bench.run(line);
            let now = digest(&mut bench);
            assert!(!seen.contains(&now), "{line}");
            assert_eq!(now.len(), 40);
            seen.push(now);
        }
    }

    #[test]
    fn a_digest_does_not_depend_on_order_or_process() {
        let lines = ["SET a 1", "SET b 2", "BF.ADD f x", "BF.ADD f y"];
        let mut forwards = Bench::default();
        let mut backwards = Bench::default();
        for line in lines {
            forwards.run(line);
        }
        for line in ["BF.ADD f x", "BF.ADD f y", "SET b 2", "SET a 3", "SET a 1"] {
            backwards.run(line);
        }
        assert_eq!(digest(&mut forwards), digest(&mut backwards));
        assert_eq!(
            digest(&mut forwards),
            "e8ed1e8a0f66b1ab7d6215b42d4978534967dff5",
            "the digest never changes its meaning"
        );
    }

    #[test]
    fn a_digest_tells_layouts_and_keys_apart() {
        let value = |line: &str| {
            let mut bench = Bench::default();
            assert_eq!(bench.run(line), Reply::OK, "{line}");
            bench.run("BF.MADD f a b c");
            digest(&mut bench)
        };
        let blocked = value("BF.RESERVE f 0.1 10 LAYOUT BLOCKED SEED 1");
        assert_eq!(value("BF.RESERVE f 0.1 10 SEED 1 LAYOUT BLOCKED"), blocked);
        for line in [
            "BF.RESERVE f 0.1 10",
            "BF.RESERVE f 0.1 10 LAYOUT BLOCKED SEED 2",
            "BF.RESERVE f 0.1 10 LAYOUT BLOCKED",
        ] {
            assert_ne!(value(line), blocked, "{line}");
        }
        // Also when they are empty, and have as many buckets.
        let keyed = value("CF.RESERVE f 10 ERROR 0.1 SEED 1");
        assert_eq!(value("CF.RESERVE f 10 SEED 1 ERROR 0.1"), keyed);
        for line in [
            "CF.RESERVE f 10",
            "CF.RESERVE f 10 ERROR 0.1 SEED 2",
            "CF.RESERVE f 10 ERROR 0.099 SEED 1",
            "CF.RESERVE f 10 ERROR 0.01 SEED 1",
        ] {
            assert_ne!(value(line), keyed, "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_as_in_redis() {
        let mut bench = Bench::default();
        for line in [
            "DEBUG FOO",
            "DEBUG RELOAD",
            "DEBUG SLEEP",
            "DEBUG OBJECT k",
            "DEBUG SET-ACTIVE-EXPIRE",
        ] {
            let word = line.split(' ').nth(1).unwrap();
            let text = format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try DEBUG HELP."
            );
            assert_eq!(bench.run(line), Reply::error(text));
        }
        assert_eq!(bench.run("DEBUG SLEEP x"), Reply::OK);
    }

    #[test]
    fn only_those_are_let_in_whom_the_setting_names() {
        let bench = Bench::default();
        let with = |word: &str| {
            let settings = Settings {
                enable_debug_command: word.into(),
                ..Settings::default()
            };
            allowed(&bench.session, &settings).is_ok()
        };
        assert!(!with("no"));
        assert!(with("yes"));
        assert!(with("local"), "the bench's client is on this machine");
    }
}
