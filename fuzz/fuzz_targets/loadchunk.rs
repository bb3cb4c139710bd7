//! Headers and chunks of anyone's making for BF.LOADCHUNK, then commands on what came out: no
//! panic, no memory beyond the limit, no lost item, and what is dumped loads again the same.
//!
//! A header of random bytes is never taken, so most inputs start from the header of a real filter
//! and change some numbers of it, with or without those that must follow.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use everbloom::sizing::hashes;
use everbloom::{Check, FilterParts, LayerParts, ScalableBloomFilter};
use everbloom_commands::format::header;
use everbloom_resp::Reply;
use keyspace::{Keyspace, pieces};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the tests of the commands")]
#[path = "../../crates/commands/tests/commands/keyspace.rs"]
mod keyspace;

/// The largest limit.
const LARGE: u64 = 1 << 20;
/// What a command may allocate besides bit arrays and some copies of its arguments: replies, the
/// list of layers.
const SLACK: u64 = 1 << 18;
/// What BF.DEBUG may allocate for its line about a layer, of which there may be thousands.
const LINE: u64 = 256;
/// How many times a command may copy its arguments, in any form.
const COPIES: u64 = 16;

#[derive(Arbitrary, Debug)]
struct Input {
    limit: Limit,
    header: Header,
    steps: Vec<Step>,
}

/// The most that the bit arrays of a filter may take.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Limit {
    Tiny,
    Small,
    Large,
}

#[derive(Arbitrary, Debug)]
enum Header {
    /// Only the changes that leave it valid.
    Valid(Seed, Vec<Change>),
    Near(Seed, Vec<Change>),
    NearBytes(Seed, Vec<(u16, u8)>),
    Bytes(Vec<u8>),
}

/// A filter to start from.
#[derive(Arbitrary, Debug)]
struct Seed {
    capacity: u8,
    rate: u8,
    expansion: u8,
    fixed: bool,
    items: u8,
}

/// A new number in a header. `layer` is taken modulo the number of layers.
#[derive(Arbitrary, Debug)]
enum Change {
    Items(Number),
    Options(Number),
    Growth(Number),
    Repeat { layer: u8, times: u8 },
    Remove { layer: u8 },
    Layer { layer: u8, field: Field },
}

#[derive(Arbitrary, Debug)]
enum Field {
    Bytes(Number),
    Bits(Number),
    /// Bytes and the bits that go with them.
    BytesAndBits(Number),
    Items(Number),
    Rate(f64),
    BitsPerEntry(f64),
    /// Bits per item and the hashes that go with them.
    Density(u16),
    Hashes(Number),
    Capacity(Number),
    Log2(u8),
}

/// Mostly numbers that lie near an edge.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    Small(u8),
    Large(u8),
    NearPower(u8, i8),
    Any(u64),
}

#[derive(Arbitrary, Debug)]
enum Step {
    Add(u8),
    Madd(u16, u8),
    Exists(u16),
    ScanDump(Number),
    Info(u8),
    Debug,
    Card,
    /// A chunk of random bytes, somewhere.
    Load(Number, Vec<u8>),
    /// A chunk that ends a layer or lies within it, filled with one byte.
    Fill {
        layer: u8,
        from_end: u8,
        len: u16,
        with: u8,
    },
    /// How much memory there is from now on.
    Free(Number),
}

fuzz_target!(|input: Input| {
    let limit = match input.limit {
        Limit::Tiny => 300,
        Limit::Small => 1 << 14,
        Limit::Large => LARGE,
    };
    let mut run = Loaded {
        keys: Keyspace::with_limit(limit),
        certain: HashSet::new(),
    };
    let header = input.header.bytes();
    let reply = run.call(&[b"BF.LOADCHUNK", b"k", b"1", &header]);
    assert_eq!(reply.is_error(), run.keys.keys.is_empty());
    if reply.is_error() {
        return;
    }
    assert_eq!(header::encode(run.keys.filter("k")), header);
    for step in &input.steps {
        run.step(step);
    }
    run.check_certain();
    run.check_dump();
    let mut replica = Keyspace::with_defaults(0.2, 7, 0);
    replica.replay(&run.keys.log);
    assert_eq!(replica.filter("k"), run.keys.filter("k"));
});

struct Loaded {
    keys: Keyspace,
    /// Items that were answered since the last chunk, and so must be found.
    certain: HashSet<Vec<u8>>,
}

impl Loaded {
    /// Runs a command and checks what it took.
    fn call(&mut self, args: &[&[u8]]) -> Reply {
        let before = self.stream_len();
        let brought: usize = args.iter().map(|arg| arg.len() + size_of::<Reply>()).sum();
        let context = self.keys.context;
        let (reply, took) = memory::measured(|| self.keys.call(args));
        let after = self.stream_len();
        assert!(after <= context.max_filter_bytes, "{after} bytes");
        assert!(
            after - before <= context.free_bytes,
            "{after} after {before} bytes"
        );
        let may_take = after - before + COPIES * brought as u64 + SLACK;
        // A dump is a copy of the bits.
        let may_take = may_take
            + match args[0] {
                b"BF.SCANDUMP" => after,
                b"BF.DEBUG" => self.keys.filter("k").layers().len() as u64 * LINE,
                _ => 0,
            };
        assert!(took <= may_take, "{took} bytes instead of {may_take}");
        if !self.keys.keys.is_empty() {
            let parts = self.keys.filter("k").parts();
            let valid = parts.validate(context.max_filter_bytes, Check::DumpHeader);
            assert_eq!(valid, Ok(()), "{parts:?}");
        }
        reply
    }

    fn stream_len(&self) -> u64 {
        match self.keys.keys.is_empty() {
            true => 0,
            false => self.keys.filter("k").stream_len(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Add(number) => {
                let item = item((*number).into());
                let reply = self.call(&[b"BF.ADD", b"k", &item]);
                self.offered(item, &reply);
            }
            Step::Madd(first, count) => {
                let items: Vec<Vec<u8>> = (0..=u16::from(*count))
                    .map(|number| item(first.wrapping_add(number)))
                    .collect();
                let mut args: Vec<&[u8]> = vec![b"BF.MADD", b"k"];
                args.extend(items.iter().map(Vec::as_slice));
                let replies = self.call(&args).into_elements().expect("an array");
                let full = Reply::error("ERR non scaling filter is full");
                assert!(replies.len() == items.len() || replies.last() == Some(&full));
                for (item, reply) in items.into_iter().zip(&replies) {
                    self.offered(item, reply);
                }
            }
            Step::Exists(number) => {
                let item = item(*number);
                let found = self.call(&[b"BF.EXISTS", b"k", &item]);
                assert!(found == Reply::Boolean(true) || !self.certain.contains(&item));
                let again = self.call(&[b"BF.MEXISTS", b"k", &item]);
                assert_eq!(again.into_elements(), Some(vec![found]));
            }
            Step::ScanDump(iterator) => {
                let iterator = iterator.signed();
                let reply = self.call(&[b"BF.SCANDUMP", b"k", &iterator]);
                assert!(!reply.is_error());
            }
            Step::Info(field) => {
                let fields: [&[u8]; 5] = [b"CAPACITY", b"SIZE", b"FILTERS", b"ITEMS", b"EXPANSION"];
                let all: [&[u8]; 2] = [b"BF.INFO", b"k"];
                let one = fields.get(usize::from(*field));
                let args: Vec<&[u8]> = all.into_iter().chain(one.copied()).collect();
                let values: Vec<Reply> = match self.call(&args) {
                    Reply::Map(lines) => lines.into_iter().map(|(_, value)| value).collect(),
                    Reply::Array(values) => values,
                    other => panic!("{other:?}"),
                };
                for value in values {
                    assert!(
                        matches!(value, Reply::Integer(0..) | Reply::Null),
                        "{value:?}"
                    );
                }
            }
            Step::Debug => assert!(!self.call(&[b"BF.DEBUG", b"k"]).is_error()),
            Step::Card => {
                let len = i64::try_from(self.keys.filter("k").len()).unwrap_or(i64::MAX);
                assert_eq!(self.call(&[b"BF.CARD", b"k"]), Reply::Integer(len));
            }
            Step::Load(iterator, data) => self.load(&iterator.signed(), data),
            Step::Fill {
                layer,
                from_end,
                len,
                with,
            } => {
                let layers = self.keys.filter("k").layers();
                let layer = usize::from(*layer) % layers.len();
                let end: u64 = layers[..=layer].iter().map(|layer| layer.bytes()).sum();
                let iterator = (end + 1).saturating_sub((*from_end).into());
                let data = vec![*with; (*len).into()];
                self.load(iterator.to_string().as_bytes(), &data);
            }
            Step::Free(bytes) => self.keys.context.free_bytes = bytes.get(),
        }
    }

    fn offered(&mut self, item: Vec<u8>, reply: &Reply) {
        match reply {
            Reply::Boolean(new) => {
                assert!(!new || !self.certain.contains(&item), "new twice");
                assert!(self.keys.filter("k").contains(&item), "lost");
                self.certain.insert(item);
            }
            Reply::Error(_) => assert!(!self.certain.contains(&item), "refused what is there"),
            other => panic!("{other:?}"),
        }
    }

    fn load(&mut self, iterator: &[u8], data: &[u8]) {
        self.check_certain();
        let before = self.keys.filter("k").clone();
        if self
            .call(&[b"BF.LOADCHUNK", b"k", iterator, data])
            .is_error()
        {
            assert_eq!(*self.keys.filter("k"), before);
        } else {
            assert_eq!(self.keys.filter("k").parts(), before.parts());
            self.certain.clear();
        }
    }

    fn check_certain(&self) {
        for item in &self.certain {
            assert!(self.keys.filter("k").contains(item), "lost");
        }
    }

    fn check_dump(&self) {
        let mut other = Keyspace::with_limit(self.keys.context.max_filter_bytes);
        for (iterator, data) in pieces(self.keys.filter("k")) {
            let iterator = iterator.to_string();
            let reply = other.call(&[b"BF.LOADCHUNK", b"k", iterator.as_bytes(), &data]);
            assert_eq!(reply, Reply::OK);
        }
        assert_eq!(other.filter("k"), self.keys.filter("k"));
        assert_eq!(other.dumps(), self.keys.dumps());
    }
}

fn item(number: u16) -> Vec<u8> {
    number.to_string().into_bytes()
}

impl Header {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Header::Valid(seed, changes) => {
                let mut parts = seed.parts();
                for change in changes {
                    let mut next = parts.clone();
                    change.apply(&mut next);
                    let counts = next.layers.iter().map(|layer| layer.items);
                    next.items = counts.fold(0, u64::wrapping_add);
                    if next.validate(LARGE, Check::DumpHeader).is_ok() {
                        parts = next;
                    }
                }
                header::encode_parts(&parts)
            }
            Header::Near(seed, changes) => {
                let mut parts = seed.parts();
                changes.iter().for_each(|change| change.apply(&mut parts));
                header::encode_parts(&parts)
            }
            Header::NearBytes(seed, changes) => {
                let mut header = header::encode_parts(&seed.parts());
                for (at, byte) in changes {
                    let at = usize::from(*at) % header.len();
                    header[at] = *byte;
                }
                header
            }
            Header::Bytes(bytes) => bytes.clone(),
        }
    }
}

impl Seed {
    fn parts(&self) -> FilterParts {
        let builder = ScalableBloomFilter::builder()
            .capacity(u64::from(self.capacity).max(1))
            .error_rate([0.25, 0.01, 1e-6, 1e-300, 1e-323][usize::from(self.rate % 5)])
            .expansion(self.expansion.into());
        let builder = if self.fixed { builder.fixed() } else { builder };
        let mut filter = builder.build().unwrap();
        for number in 0..self.items {
            let _ = filter.try_insert(&item(number.into()));
            if filter.layers().len() == 8 {
                break;
            }
        }
        filter.parts()
    }
}

impl Number {
    fn get(self) -> u64 {
        match self {
            Number::Small(number) => number.into(),
            Number::Large(below) => u64::MAX - u64::from(below),
            Number::NearPower(power, by) => (1_u64 << (power % 64)).wrapping_add_signed(by.into()),
            Number::Any(number) => number,
        }
    }

    /// As an argument.
    fn signed(self) -> Vec<u8> {
        self.get().cast_signed().to_string().into_bytes()
    }

    fn low(self) -> u32 {
        (self.get() & u64::from(u32::MAX)) as u32
    }
}

impl Change {
    fn apply(&self, parts: &mut FilterParts) {
        let layers = parts.layers.len();
        let place = |layer: u8| usize::from(layer).checked_rem(layers);
        match self {
            Change::Items(number) => parts.items = number.get(),
            Change::Options(number) => parts.options = number.low(),
            Change::Growth(number) => parts.growth = number.low(),
            Change::Repeat { layer, times } => {
                let layer = place(*layer).map(|at| parts.layers[at]);
                let copies = layer
                    .into_iter()
                    .flat_map(|layer| std::iter::repeat_n(layer, usize::from(*times)));
                parts.layers.extend(copies);
            }
            Change::Remove { layer } => {
                place(*layer).map(|at| parts.layers.remove(at));
            }
            Change::Layer { layer, field } => {
                if let Some(at) = place(*layer) {
                    field.apply(&mut parts.layers[at]);
                }
            }
        }
    }
}

impl Field {
    fn apply(&self, layer: &mut LayerParts) {
        match self {
            Field::Bytes(number) => layer.bytes = number.get(),
            Field::Bits(number) => layer.bits = number.get(),
            Field::BytesAndBits(number) => {
                layer.bytes = number.get();
                layer.bits = layer.bytes.wrapping_mul(8);
            }
            Field::Items(number) => layer.items = number.get(),
            Field::Rate(rate) => layer.error_rate = *rate,
            Field::BitsPerEntry(bits) => layer.bits_per_entry = *bits,
            Field::Density(bits) => {
                layer.bits_per_entry = f64::from(*bits) / 16.0;
                layer.hashes = hashes(layer.bits_per_entry).unwrap_or(1);
            }
            Field::Hashes(number) => layer.hashes = number.low(),
            Field::Capacity(number) => layer.capacity = number.get(),
            Field::Log2(log2_bits) => layer.log2_bits = *log2_bits,
        }
    }
}

/// What the program has allocated, and the most it had or asked for at one time.
mod memory {
    use super::*;

    static HELD: AtomicUsize = AtomicUsize::new(0);
    static PEAK: AtomicUsize = AtomicUsize::new(0);

    #[global_allocator]
    static COUNTING: Counting = Counting;

    struct Counting;

    /// The result of `run`, and by how many bytes more than before it needed.
    pub(super) fn measured<R>(run: impl FnOnce() -> R) -> (R, u64) {
        let before = HELD.load(Relaxed);
        PEAK.store(before, Relaxed);
        let result = run();
        (result, (PEAK.load(Relaxed) - before) as u64)
    }

    /// Before the allocator is asked, so that a request it refuses counts too.
    fn asked(bytes: usize) {
        let held = HELD.load(Relaxed).saturating_add(bytes);
        PEAK.fetch_max(held, Relaxed);
    }

    fn got(start: *mut u8, bytes: usize) -> *mut u8 {
        if !start.is_null() {
            HELD.fetch_add(bytes, Relaxed);
        }
        start
    }

    // SAFETY: every call goes to the system's allocator as it came.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            asked(layout.size());
            got(unsafe { System.alloc(layout) }, layout.size())
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            asked(layout.size());
            got(unsafe { System.alloc_zeroed(layout) }, layout.size())
        }

        unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
            HELD.fetch_sub(layout.size(), Relaxed);
            unsafe { System.dealloc(start, layout) }
        }

        unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            asked(size);
            let moved = unsafe { System.realloc(start, layout, size) };
            if !moved.is_null() {
                HELD.fetch_add(size, Relaxed);
                HELD.fetch_sub(layout.size(), Relaxed);
            }
            moved
        }
    }
}
