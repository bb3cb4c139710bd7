//! The hot paths, for counting their instructions: `benches/instructions/run.py` runs each of them
//! under callgrind, which counts what is within [`counted`].
//!
//! `instructions` prints the names of the paths; `instructions NAME` runs one, and prints how many
//! operations that was.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use everbloom::{BloomFilter, Layout, ScalableBloomFilter, Span, WindowedBloomFilter};
use everbloom_resp::encode::encode_request;
use everbloom_resp::{Batch, Limits, RequestParser, recycle};
use everbloom_server::internals::{Client, Executor, Replayer, Session, execute, registry};
use everbloom_server::{Server, Settings};
use everbloom_store::clock::Now;
use everbloom_store::persistence::{Persistence, load};

/// Items of the filters, which are made for more than they get.
const CAPACITY: u64 = 1_000_000;
/// Operations of a path.
const OPERATIONS: usize = 12_800;
/// Requests that arrive together.
const PIPELINE: usize = 128;
/// Filters of the paths over many keys: more than are executed together.
const KEYS: usize = 400;

type Path = (&'static str, fn(&str) -> usize);

const PATHS: [Path; 42] = [
    ("library, classic: insert", library),
    ("library, classic: contains", library),
    ("library, classic: insert_each", library),
    ("library, classic: contains_each", library),
    ("library, blocked: insert", library),
    ("library, blocked: contains", library),
    ("library, blocked: insert_each", library),
    ("library, blocked: contains_each", library),
    ("library, fixed blocked: insert", library),
    ("library, fixed blocked: contains", library),
    ("library, grown blocked: insert", library),
    ("library, grown blocked: insert_each", library),
    ("library, classic: build by capacity and rate", build),
    ("library, classic: build by bits and rate", build),
    ("library, classic: build growing", build),
    ("library, blocked: build by capacity and rate", build),
    ("library, blocked: build by bits and capacity", build),
    ("library, blocked: build by bits and rate", build),
    ("library, blocked: build growing", build),
    ("library, blocked: build window", build),
    ("serve, classic: BF.ADD", serve),
    ("serve, classic: BF.EXISTS", serve),
    ("serve, classic: BF.ADD, many keys", serve),
    ("serve, classic: BF.EXISTS, many keys", serve),
    ("serve, classic: BF.ADD, not pipelined", serve),
    ("serve, classic: BF.EXISTS, not pipelined", serve),
    ("serve, classic: BF.MADD of 100", serve),
    ("serve, classic: BF.MEXISTS of 100", serve),
    ("serve, blocked: BF.ADD", serve),
    ("serve, blocked: BF.EXISTS", serve),
    ("serve, blocked: BF.ADD, many keys", serve),
    ("serve, blocked: BF.EXISTS, many keys", serve),
    ("serve, blocked: BF.ADD, not pipelined", serve),
    ("serve, blocked: BF.EXISTS, not pipelined", serve),
    ("serve, blocked: BF.MADD of 100", serve),
    ("serve, blocked: BF.MEXISTS of 100", serve),
    ("serve, logged: BF.ADD", serve),
    ("serve, logged: BF.ADD, many keys", serve),
    ("serve, logged: BF.ADD, not pipelined", serve),
    ("replay: BF.ADD", replay),
    ("replay: BF.ADD, many keys", replay),
    ("replay: BF.ADD, with time stamps", replay),
];

fn main() {
    let wanted = std::env::args().nth(1);
    let known = |name: &str| PATHS.iter().find(|(path, _)| *path == name);
    match wanted.as_deref().map(|name| (name, known(name))) {
        None => PATHS.iter().for_each(|(name, _)| println!("{name}")),
        Some((name, Some((_, path)))) => println!("{}", path(name)),
        Some((name, None)) => panic!("no path '{name}'"),
    }
}

/// What callgrind counts. Its toggle knows this function by its name.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
}

fn layout(name: &str) -> Layout {
    match name.contains("blocked") || name.contains("logged") {
        true => Layout::Blocked,
        false => Layout::Classic,
    }
}

fn items(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("item {i:012}")).collect()
}

/// Counts the work of a path on a filter of this builder. A macro, because the filters have no type
/// in common.
macro_rules! count_library {
    ($name:expr, $builder:expr) => {{
        let builder = $builder.error_rate(0.001).layout(layout($name));
        let builder = match layout($name) {
            Layout::Blocked => builder.seed(1),
            Layout::Classic => builder,
        };
        let mut filter = builder.build().unwrap();
        let items = items(OPERATIONS);
        let (_, what) = $name.split_once(": ").unwrap();
        if what.starts_with("contains") {
            filter.extend(&items);
        }
        let mut found = 0_usize;
        counted(&mut || match what {
            "insert" => items
                .iter()
                .for_each(|item| found += usize::from(filter.insert(item))),
            "contains" => items
                .iter()
                .for_each(|item| found += usize::from(filter.contains(item))),
            "insert_each" => filter.insert_each(&items, |new| found += usize::from(new)),
            _ => filter.contains_each(&items, |is| found += usize::from(is)),
        });
        // An item in a thousand may be a false positive.
        assert!(black_box(found) > OPERATIONS - 100);
        OPERATIONS
    }};
}

/// Filters that can grow have room for all items, but for those that are to grow from a hundred.
fn library(name: &str) -> usize {
    let growing = ScalableBloomFilter::builder();
    match name {
        _ if name.contains("fixed") => {
            count_library!(name, BloomFilter::builder().capacity(CAPACITY))
        }
        _ if name.contains("grown") => count_library!(name, growing.capacity(100)),
        _ => count_library!(name, growing.capacity(CAPACITY)),
    }
}

/// Makes and drops filters for a hundred items or nearly so.
fn build(name: &str) -> usize {
    let layout = layout(name);
    let fixed = BloomFilter::builder().layout(layout);
    let growing = ScalableBloomFilter::builder().layout(layout).capacity(100);
    let window = WindowedBloomFilter::builder()
        .capacity(100)
        .span(Span::Items);
    let (_, what) = name.split_once(": build ").unwrap();
    counted(&mut || {
        for _ in 0..OPERATIONS {
            // The compiler must not know the sizes.
            let (items, bits, rate) = black_box((100, 1000, 0.01));
            match what {
                "by capacity and rate" => {
                    _ = black_box(fixed.capacity(items).error_rate(rate).build())
                }
                "by bits and capacity" => _ = black_box(fixed.bits(bits).capacity(items).build()),
                "by bits and rate" => _ = black_box(fixed.bits(bits).error_rate(rate).build()),
                "growing" => _ = black_box(growing.error_rate(rate).build()),
                _ => _ = black_box(window.error_rate(rate).build()),
            }
        }
    });
    OPERATIONS
}

/// A connection without a socket.
struct Connection {
    server: Arc<Server>,
    session: Session,
    parser: RequestParser,
    batch: Batch,
    args: Vec<&'static [u8]>,
    settings: Arc<Settings>,
    out: Vec<u8>,
}

impl Connection {
    fn new(name: &str) -> Self {
        let mut settings = Settings {
            // Under callgrind everything is slow.
            slowlog_log_slower_than: -1,
            ..Settings::default()
        };
        settings.bf.layout = layout(name);
        let server = Server::new(settings, 1, registry().len(), None);
        server.store.journal.set_logging(name.contains("logged"));
        Connection {
            settings: server.config.snapshot(),
            server,
            session: Session::new(Arc::new(Client::unlisted()), true),
            parser: RequestParser::new(),
            batch: Batch::new(),
            args: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Answers what a read of the socket brings.
    fn answer(&mut self, bytes: &[u8]) {
        self.out.clear();
        let limits = Limits::default();
        self.parser.parse(bytes, &limits, &mut self.batch).unwrap();
        assert_eq!(self.parser.consume(), bytes.len());
        let mut args = recycle(std::mem::take(&mut self.args));
        self.batch.resolve(bytes, &mut args);
        let start = Instant::now();
        let mut executor = Executor {
            server: &self.server,
            stats: &self.server.workers[0],
            settings: &mut self.settings,
            session: &mut self.session,
            now: Now::read(),
            mark: start,
            // Under callgrind everything is slow.
            until: start + Duration::from_secs(86_400),
            last: None,
            out: &mut self.out,
        };
        let executed = execute(&mut executor, &self.batch, &args, 0, None);
        assert_eq!(executed.next, self.batch.len());
        self.args = recycle(args);
        self.write_log();
        assert_ne!(self.out.first(), Some(&b'-'), "{}", self.out.escape_ascii());
    }
}

impl Connection {
    /// Takes what a log would write, if one is kept.
    fn write_log(&self) {
        let journal = &self.server.store.journal;
        let taken = journal.is_logging().then(|| journal.take_commands());
        let Some(mut unwritten) = taken.flatten() else {
            return;
        };
        while unwritten.next().is_some() {
            unwritten.skip();
        }
        journal.return_buffer(unwritten.into_buffer());
    }
}

/// Requests in the protocol, so many at a time.
fn batches(requests: &[Vec<String>], together: usize) -> Vec<Vec<u8>> {
    let batches = requests.chunks(together).map(|requests| {
        let mut bytes = Vec::new();
        requests
            .iter()
            .for_each(|it| encode_request(it, &mut bytes));
        bytes
    });
    batches.collect()
}

fn request(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The key of request number `at`.
fn key(name: &str, at: usize) -> String {
    match name.contains("many keys") {
        true => format!("key:{:06}", at * 7 % KEYS),
        false => "filter".to_owned(),
    }
}

fn serve(name: &str) -> usize {
    let mut connection = Connection::new(name);
    let (_, what) = name.split_once(": ").unwrap();
    let command = what.split([',', ' ']).next().unwrap();
    let adds = command.starts_with("BF.ADD") || command.starts_with("BF.MADD");
    let mut before: Vec<Vec<String>> = match name.contains("many keys") {
        true => (0..KEYS)
            .map(|at| request(&["BF.ADD", &key(name, at), "first"]))
            .collect(),
        false => vec![request(&[
            "BF.RESERVE",
            "filter",
            "0.001",
            &CAPACITY.to_string(),
        ])],
    };
    let items = items(OPERATIONS);
    if !adds {
        let add = |(at, item): (usize, &String)| request(&["BF.ADD", &key(name, at), item]);
        before.extend(items.iter().enumerate().map(add));
    }
    batches(&before, PIPELINE)
        .iter()
        .for_each(|it| connection.answer(it));
    let requests: Vec<Vec<String>> = match what.ends_with("of 100") {
        true => {
            let of_100 = |items: &[String]| [&request(&[command, "filter"])[..], items].concat();
            items.chunks(100).map(of_100).collect()
        }
        false => {
            let one = |(at, item): (usize, &String)| request(&[command, &key(name, at), item]);
            items.iter().enumerate().map(one).collect()
        }
    };
    let together = match (what.ends_with("of 100"), what.ends_with("not pipelined")) {
        (true, _) => 4,
        (_, true) => 1,
        _ => PIPELINE,
    };
    let batches = batches(&requests, together);
    // Buffers grow once.
    connection.out.reserve(1 << 16);
    counted(&mut || batches.iter().for_each(|batch| connection.answer(batch)));
    requests.len()
}

fn replay(name: &str) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.data.dir = Some(dir.path().into());
    settings.data.appendonly = true;
    let log = dir.path().join("appendonlydir");
    std::fs::create_dir(&log).unwrap();
    let manifest = "file appendonly.aof.1.incr.aof seq 1 type i\n";
    std::fs::write(log.join("appendonly.aof.manifest"), manifest).unwrap();
    let items = items(OPERATIONS * 4);
    let add = |(at, item): (usize, &String)| request(&["BF.ADD", &key(name, at), item]);
    let mut requests = match name.contains("many keys") {
        true => Vec::new(),
        false => vec![request(&[
            "BF.RESERVE",
            "filter",
            "0.001",
            &CAPACITY.to_string(),
        ])],
    };
    requests.extend(items.iter().enumerate().map(add));
    // Redis writes a time stamp before the first command of a second.
    let (together, stamp): (_, &[u8]) = match name.contains("time stamps") {
        true => (10, b"#TS:1700000000\r\n"),
        false => (requests.len(), b""),
    };
    let bytes = batches(&requests, together).join(stamp);
    std::fs::write(log.join("appendonly.aof.1.incr.aof"), bytes).unwrap();

    let persistence = Persistence::open(&settings.data).unwrap();
    let server = Server::new(settings, 1, registry().len(), persistence);
    let store = &server.store;
    counted(&mut || {
        let mut replayer = Replayer::new(&server);
        let persistence = store.persistence().unwrap();
        assert!(
            load::load(store, persistence, &mut replayer)
                .unwrap()
                .is_some()
        );
    });
    requests.len()
}
