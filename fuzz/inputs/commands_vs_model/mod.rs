//! Inputs of the target `commands_vs_model`, and what must be true of them: any sequence of
//! commands on a few keys goes as models of both families of filters say. The effects, replayed on
//! an empty keyspace with other defaults, give the same filters byte for byte.
//!
//! The model of a Bloom filter knows each reply but one: whether a new item seems to be there
//! already. That of a cuckoo filter knows every slot. That of windows and merged filters knows what
//! must be found. Keys that neither follows take commands of
//! any form.

use std::collections::HashMap;

use arbitrary::{Arbitrary, Unstructured};
use everbloom::Layout;
use everbloom_commands::{COMMANDS, Context, CuckooDefaults, KeySource};
use everbloom_resp::{Protocol, Reply};
use keyspace::{Keyspace, Value};
use options::{Expansion, Rate};
use words::Word;

mod bloom;
mod cuckoo;
mod families;
#[allow(dead_code, reason = "shared with the tests of the commands")]
#[path = "../../../crates/commands/tests/commands/keyspace.rs"]
mod keyspace;
mod model;
mod options;
mod windows;
mod words;

#[derive(Arbitrary, Debug)]
pub(crate) struct Input {
    host: Host,
    replica: Host,
    limit: u8,
    resp3: bool,
    steps: Vec<Step>,
}

/// The configuration of a host.
#[derive(Arbitrary, Debug)]
struct Host {
    rate: Rate,
    capacity: u8,
    expansion: Expansion,
    blocked: bool,
    cuckoo: Cuckoo,
}

/// The part of it that cuckoo filters follow.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Cuckoo {
    capacity: u8,
    bucket_size: u8,
    iterations: u8,
    expansion: u8,
    max_expansions: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Key {
    A,
    B,
    C,
}

#[derive(Arbitrary, Debug)]
enum Items {
    Range(u16, u8),
    Few(u8, Vec<u8>),
}

#[derive(Arbitrary, Debug)]
enum Step {
    Bloom(bloom::Step),
    Cuckoo(cuckoo::Step),
    Windows(windows::Step),
    /// `cf-max-expansions` is changed.
    MaxExpansions(u8),
    /// A command of any form on a key outside the models.
    Raw(u8, u8, Vec<Word>),
}

impl Input {
    /// The input of these bytes, read as libFuzzer's macro does.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        Self::arbitrary_take_rest(Unstructured::new(bytes)).ok()
    }

    pub(crate) fn check(&self) {
        let mut run = Run {
            keys: self.host.keyspace(),
            blooms: HashMap::new(),
            cuckoos: HashMap::new(),
            windows: HashMap::new(),
        };
        run.keys.context.max_filter_bytes = [1 << 20, 1 << 12, 300][usize::from(self.limit % 3)];
        if self.resp3 {
            run.keys.context.protocol = Protocol::Resp3;
        }
        run.keys.keys.insert(b"other".to_vec(), Value::Other);
        for step in &self.steps {
            run.step(step);
        }
        for key in [Key::A, Key::B, Key::C] {
            run.look_at(key);
        }
        run.keys.check_kept();
        let mut replica = self.replica.keyspace();
        // Hosts let neither a log nor a primary meet this limit.
        replica.context.cuckoo.max_expansions = u32::MAX;
        replica.replay(&run.keys.log);
        assert_eq!(replica.dumps(), run.keys.dumps());
    }
}

struct Run {
    keys: Keyspace,
    blooms: HashMap<&'static str, bloom::Model>,
    cuckoos: HashMap<&'static str, model::Model>,
    windows: HashMap<&'static str, windows::Model>,
}

impl Run {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Bloom(step) => {
                let keys = step.keys();
                match keys.iter().find(|key| self.is_cuckoo(**key)) {
                    Some(key) => self.bloom_on_cuckoo(*key),
                    None => self.bloom(step),
                }
            }
            Step::Cuckoo(step) => {
                let keys = step.keys();
                match keys.iter().find(|key| self.is_bloom(**key)) {
                    Some(key) => self.cuckoo_on_bloom(*key),
                    None => self.cuckoo(step),
                }
            }
            Step::Windows(step) => self.windows(step),
            Step::MaxExpansions(number) => {
                self.keys.context.cuckoo.max_expansions = max_expansions(*number);
            }
            Step::Raw(command, key, words) => self.raw(*command, *key, words),
        }
    }

    fn is_bloom(&self, key: Key) -> bool {
        self.blooms.contains_key(key.name())
    }

    fn is_cuckoo(&self, key: Key) -> bool {
        self.cuckoos.contains_key(key.name())
    }

    /// Asks for all there is to know of a key at the end.
    fn look_at(&mut self, key: Key) {
        if self.is_cuckoo(key) {
            return self.cuckoo_info(key);
        }
        self.bloom_info(key);
        let lost = self.blooms.get(key.name()).and_then(|model| {
            let filter = self.keys.filter(key.name());
            model.certain.iter().find(|item| !filter.contains(item))
        });
        assert_eq!(lost, None);
    }

    fn context(&self) -> &Context {
        &self.keys.context
    }

    fn call(&mut self, start: &[&str], items: &[Vec<u8>]) -> Reply {
        let words = start.iter().map(|word| word.as_bytes());
        let args: Vec<&[u8]> = words.chain(items.iter().map(Vec::as_slice)).collect();
        let key = start[1].as_bytes();
        let (before, logged) = (self.keys.keys.get(key).cloned(), self.keys.log.len());
        let reply = self.keys.call(&args);
        let changed = self.keys.keys.get(key) != before.as_ref();
        assert!(
            !changed || self.keys.log.len() > logged,
            "a change is logged"
        );
        if reply.is_error() {
            assert!(
                !changed && self.keys.log.len() == logged,
                "an error changes nothing"
            );
        }
        reply
    }

    fn raw(&mut self, command: u8, key: u8, words: &[Word]) {
        let command = &COMMANDS[usize::from(command) % COMMANDS.len()];
        let keys = ["raw", "NONSCALING", "expansion", "other", ""];
        let key = keys[usize::from(key) % keys.len()];
        let words: Vec<Vec<u8>> = words.iter().flat_map(Word::words).collect();
        self.call(&[command.name, key], &words);
    }
}

/// Few enough that they come again, and with the empty one.
fn item(number: u16) -> Vec<u8> {
    match number {
        0 => Vec::new(),
        _ => number.to_string().into_bytes(),
    }
}

impl Items {
    /// At least one.
    fn list(&self) -> Vec<Vec<u8>> {
        match self {
            Items::Range(first, more) => (0..=u16::from(*more))
                .map(|number| item(first.wrapping_add(number)))
                .collect(),
            Items::Few(first, more) => std::iter::once(first)
                .chain(more)
                .map(|number| item(u16::from(*number)))
                .collect(),
        }
    }
}

impl Host {
    fn keyspace(&self) -> Keyspace {
        let capacity = u64::from(self.capacity).max(1);
        let mut keys = Keyspace::with_defaults(self.rate.get(), capacity, self.expansion.get());
        if self.blocked {
            keys.context.defaults.layout = Layout::Blocked;
        }
        keys.context.cuckoo = self.cuckoo.defaults();
        // The same for every filter, so that a filter can be made twice.
        keys.context.keys = KeySource(|| everbloom::hash::Key::from_seed(1));
        keys
    }
}

impl Cuckoo {
    fn defaults(self) -> CuckooDefaults {
        let bucket_size = self.bucket_size.max(1);
        CuckooDefaults {
            // No host takes less.
            initial_size: u64::from(self.capacity).max(2 * u64::from(bucket_size)),
            bucket_size,
            max_iterations: u16::from(self.iterations) + 1,
            expansion: u16::from(self.expansion % 5).next_power_of_two(),
            max_expansions: max_expansions(self.max_expansions),
        }
    }
}

/// Often few, so that the limit is met.
fn max_expansions(number: u8) -> u32 {
    match number {
        0..=63 => u32::from(number) + 1,
        _ => 65536,
    }
}

impl Key {
    fn name(self) -> &'static str {
        match self {
            Key::A => "a",
            Key::B => "b",
            Key::C => "c",
        }
    }
}
