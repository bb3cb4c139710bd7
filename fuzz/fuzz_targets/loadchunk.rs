//! Headers and chunks of anyone's making for BF.LOADCHUNK, then commands on what came out: no
//! panic, no memory beyond the limit, no lost item, and what is dumped loads again the same.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use everbloom::redisbloom::Check;
use everbloom_commands::format::header;
use everbloom_resp::Reply;
use inputs::{Input, LARGE, Limit, Step, ends};
use keyspace::{Keyspace, pieces};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the tests that replay the corpus")]
#[path = "../inputs/loadchunk.rs"]
mod inputs;

#[allow(dead_code, reason = "shared with the tests of the commands")]
#[path = "../../crates/commands/tests/commands/keyspace.rs"]
mod keyspace;

/// What a command may allocate besides bit arrays and some copies of its arguments: replies, the
/// list of layers.
const SLACK: u64 = 1 << 18;
/// What BF.DEBUG may allocate for its line about a layer, of which there may be thousands.
const LINE: u64 = 256;
/// How many times a command may copy its arguments, in any form.
const COPIES: u64 = 16;

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
    run.keys.check_kept();
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
        let layers = self.keys.filter("k").layers();
        let request = step.request(&ends(layers.iter().map(|layer| layer.bytes())));
        let args: Vec<&[u8]> = request.iter().flatten().map(Vec::as_slice).collect();
        match step {
            Step::Free(bytes) => self.keys.context.free_bytes = bytes.get(),
            Step::Load(..) | Step::Fill { .. } => self.load(&args),
            Step::Add(_) => {
                let reply = self.call(&args);
                self.offered(args[2], &reply);
            }
            Step::Madd(..) => {
                let items = &args[2..];
                let replies = self.call(&args).into_elements().expect("an array");
                let full = Reply::error("ERR non scaling filter is full");
                assert!(replies.len() == items.len() || replies.last() == Some(&full));
                for (item, reply) in items.iter().zip(&replies) {
                    self.offered(item, reply);
                }
            }
            Step::Exists(_) => {
                let found = self.call(&args);
                assert!(found == Reply::Boolean(true) || !self.certain.contains(args[2]));
                let again = self.call(&[b"BF.MEXISTS", b"k", args[2]]);
                assert_eq!(again.into_elements(), Some(vec![found]));
            }
            Step::Info(_) => {
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
            Step::ScanDump(_) | Step::Debug => assert!(!self.call(&args).is_error()),
            Step::Card => {
                let len = i64::try_from(self.keys.filter("k").len()).unwrap_or(i64::MAX);
                assert_eq!(self.call(&args), Reply::Integer(len));
            }
        }
    }

    fn offered(&mut self, item: &[u8], reply: &Reply) {
        match reply {
            Reply::Boolean(new) => {
                assert!(!new || !self.certain.contains(item), "new twice");
                assert!(self.keys.filter("k").contains(item), "lost");
                self.certain.insert(item.to_vec());
            }
            Reply::Error(_) => assert!(!self.certain.contains(item), "refused what is there"),
            other => panic!("{other:?}"),
        }
    }

    fn load(&mut self, args: &[&[u8]]) {
        self.check_certain();
        let before = self.keys.filter("k").clone();
        if self.call(args).is_error() {
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
