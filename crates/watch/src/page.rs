//! The page for people: HTML with its script, and the figures as JSON that the script requests.
//!
//! The name of a key is bytes. `name` is a readable form; `key` is percent-encoded and complete.

use std::sync::atomic::Ordering::Relaxed;

use everbloom::host::Generation;
use everbloom::redisbloom::FilterParts;
use everbloom_commands::filter::Parts;
use everbloom_commands::metrics::Metrics;
use everbloom_files::Value as Held;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::Footprint;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use serde_json::{Value, json};

use crate::forecast;
use crate::metrics::{Watch, seconds};
use crate::table::{Reading, Row};
use everbloom_commands::figures::{Figures, kind_name, label};
use everbloom_server::Server;
use everbloom_server::window::{error_codes, registry, sent};

/// The page. NONCE is replaced by the nonce of a response.
pub const HTML: &str = include_str!("page.html");

/// The most rows in one answer, and the most layers of a filter.
const MOST_ROWS: usize = 200;

/// The number of 64-byte blocks read from the selected filter.
const MOST_BLOCKS: u64 = 16_384;

/// The part of an address after the question mark, decoded.
pub struct Query(Vec<(String, Vec<u8>)>);

impl Query {
    /// Decodes it.
    pub fn new(text: &str) -> Self {
        let pairs = text.split('&').map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), percent_decode_str(value).collect())
        });
        Query(pairs.collect())
    }

    /// The value of this name, if there is one.
    fn bytes(&self, name: &str) -> &[u8] {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(it, _)| it == name);
        found.map_or(&[], |(_, value)| value)
    }

    fn text(&self, name: &str) -> &str {
        std::str::from_utf8(self.bytes(name)).unwrap_or("")
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.text(name).parse().ok()
    }

    /// The number of the database: the first if none is named.
    fn database(&self) -> Option<usize> {
        match self.text("db") {
            "" => Some(0),
            text => text.parse().ok(),
        }
    }
}

/// The server's state, now and in the last minutes.
pub fn now(watch: &Watch, trouble: Option<String>) -> Value {
    let server = &*watch.server;
    let history = watch.history.lock();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime": server.started.elapsed().as_secs(),
        "now": Now::read().ms / 1000,
        "trouble": trouble,
        "clients": server.clients.len(),
        "maxmemory": server.config.snapshot().maxmemory,
        "samples": history.samples,
        "commands": commands(server),
        "errors": error_codes(&server.workers),
        "snapshot": snapshot(server),
    })
}

/// The commands that were sent, each with its counters.
fn commands(server: &Server) -> Vec<Value> {
    let rows = sent(registry(), server).map(|it| {
        json!({
            "name": it.name, "calls": it.calls, "seconds": seconds(it.nanos),
            "failed": it.failed, "rejected": it.rejected,
        })
    });
    rows.collect()
}

/// The last snapshot; `null` without a data directory.
fn snapshot(server: &Server) -> Value {
    let Some(persistence) = server.store.persistence() else {
        return Value::Null;
    };
    let (figures, journal) = (&persistence.figures, &server.store.journal);
    let good = figures.save.done.load(Relaxed) > 0;
    json!({
        "good_at": good.then(|| figures.last_save.load(Relaxed)),
        "failed": figures.save.failed.load(Relaxed),
        "unsaved": journal.changes().saturating_sub(figures.saved_changes.load(Relaxed)),
        "log_bytes": journal.is_logging().then(|| figures.log_size.load(Relaxed)),
    })
}

/// Some filters of the last walk; `null` before the first.
pub fn filters(watch: &Watch, query: &Query) -> Value {
    let Some(found) = watch.filters() else {
        return Value::Null;
    };
    let search = query.text("search").to_lowercase();
    let down = query.text("order") == "down";
    let rows = found.table.select(&search, query.text("sort"), down);
    let from = query.number("from").unwrap_or(0);
    let count = query.number("count").unwrap_or(MOST_ROWS).min(MOST_ROWS);
    let shown = rows.iter().skip(from).take(count);
    let shown = shown.map(|row| describe(row.db, &row.key, &row.figures));
    let all = found.kinds.iter();
    let all = all.fold(Metrics::default(), |sum, kind| sum.plus(kind.metrics));
    let [bytes, filters, _, items, _] = all.figures();
    json!({
        "walked": found.ended,
        "filters": filters, "bytes": bytes, "items": items,
        "above": found.kinds.iter().map(|kind| kind.above).sum::<u64>(),
        "listed": found.table.len(), "left_out": found.table.left_out, "matches": rows.len(),
        "rows": shown.collect::<Vec<_>>(),
    })
}

fn describe(db: usize, key: &[u8], figures: &Figures) -> Value {
    let [bytes, _, layers, items, capacity] = figures.metrics.figures();
    json!({
        "db": db, "key": percent_encode(key, NON_ALPHANUMERIC).to_string(), "name": label(key),
        "layout": kind_name(figures.kind), "layers": layers, "bytes": bytes,
        "items": items, "capacity": capacity, "room": figures.room, "fill": figures.fill_ratio,
        "asked": figures.asked, "expected": figures.expected, "above": figures.is_above,
        "fixed": figures.is_fixed,
    })
}

/// The current state of one filter, and its forecast; `null` if no filter has that name.
pub fn filter(watch: &Watch, query: &Query) -> Value {
    let key = query.bytes("key");
    let found = query.database().and_then(|db| {
        let (figures, parts) = look_at(&watch.server, db, key)?;
        Some((db, figures, parts))
    });
    let Some((db, figures, parts)) = found else {
        return Value::Null;
    };
    let found = watch.filters();
    let row = found.as_ref().and_then(|found| found.table.find(db, key));
    let past: Vec<Reading> = row.into_iter().flat_map(Row::past).collect();
    let mut value = describe(db, key, &figures);
    if let Value::Object(fields) = &mut value {
        fields.extend([
            ("now".into(), json!(Now::read().ms / 1000)),
            ("parts".into(), json!(layers(&parts))),
            ("past".into(), json!(past)),
            ("curve".into(), json!(forecast::curve(&parts))),
            ("window".into(), window(&parts)),
        ]);
    }
    value
}

/// A filter. The lock of its shard is held while at most a megabyte of its bits is read, as for
/// BF.STATS.
fn look_at(server: &Server, db: usize, key: &[u8]) -> Option<(Figures, Parts)> {
    let keyspace = &server.store.keyspace;
    if db >= keyspace.databases() {
        return None;
    }
    let key = keyspace.key(db, key);
    let locks = Footprint::of([key]).read(keyspace, Now::read());
    match &locks.view().peek(key)?.value {
        Held::Filter(filter) => Some((Figures::of(filter, MOST_BLOCKS), filter.parts())),
        _ => None,
    }
}

/// The window of a filter that forgets, with its generations, oldest first; times in seconds.
fn window(parts: &Parts) -> Value {
    let Parts::Bloom(FilterParts {
        window: Some(window),
        layers,
        ..
    }) = parts
    else {
        return Value::Null;
    };
    let generations = window.items(layers.iter().map(|layer| layer.items));
    let began = |generation: Generation| window.span.ticks().map(|_| generation.began / 1000);
    let generations = generations.map(|(it, items)| json!({"began": began(it), "items": items}));
    json!({
        "seconds": window.span.ticks().map(|ms| ms / 1000),
        "capacity": window.capacity,
        "next": window.next_generation().map(|ms| ms / 1000),
        "generations": generations.collect::<Vec<_>>(),
    })
}

/// The first layers or tables of a filter.
fn layers(parts: &Parts) -> Vec<Value> {
    match parts {
        Parts::Bloom(parts) => {
            let layers = parts.layers.iter().take(MOST_ROWS).map(|it| {
                json!({
                    "bytes": it.bytes, "capacity": it.capacity, "items": it.items,
                    "rate": it.error_rate, "hashes": it.hashes,
                })
            });
            layers.collect()
        }
        Parts::Cuckoo(parts) => {
            let tables = (0..parts.tables).filter_map(|number| parts.table(number));
            let slots = |buckets: u64| buckets.saturating_mul(parts.bucket_size.into());
            let tables = tables
                .take(MOST_ROWS)
                .map(|(buckets, bytes)| json!({"bytes": bytes, "capacity": slots(buckets)}));
            tables.collect()
        }
    }
}
