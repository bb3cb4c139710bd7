//! Totals over all filters, and lists of those an operator should know, from walks over the keys.
//!
//! A walk looks at some keys at a time, under the lock of one shard, and at a few blocks of a
//! filter's bits. Then it pauses, so it takes at most a fiftieth of one core. A scrape reads the
//! results of the last walk, so its time does not depend on the number of keys.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use everbloom_commands::filter::FilterKind;
use everbloom_commands::metrics::Metrics;
use everbloom_files::Value;
use everbloom_store::Store;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::{Db, Entry, View, scan};

use crate::table::Table;
use everbloom_commands::figures::{Figures, label};

/// The time from the start of one walk to that of the next, if it does not take longer.
pub const INTERVAL: Duration = Duration::from_secs(5);
/// The number of filters in each list.
pub const NAMED: usize = 20;
/// About how many keys are visited under one lock, some hundred microseconds,
const KEYS_A_STEP: u64 = 1024;
/// or fewer, so that about this many bytes of filters are read: a millisecond or two.
const BYTES_A_STEP: u64 = 1 << 20;
/// The number of 64-byte blocks read from a large filter.
const BLOCKS_A_FILTER: u64 = 256;
const BYTES_A_FILTER: u64 = 64 * BLOCKS_A_FILTER;
/// Reading a small filter takes as long as reading this many bytes, some microseconds.
const LEAST_A_FILTER: u64 = 4 << 10;
/// After this much work the walk pauses, for this many times as long.
const WORK: Duration = Duration::from_micros(200);
const REST: u32 = 49;
const LONGEST_STEP: Duration = Duration::from_millis(5);

/// The results of a walk.
#[derive(Debug, Default)]
pub struct Found {
    /// The totals of each kind, in the order of [`FilterKind::ALL`].
    pub kinds: [Sums; FilterKind::ALL.len()],
    largest: List,
    nearest: List,
    above: List,
    /// Filters one by one, for the page.
    pub table: Table,
    /// The number of keys visited.
    pub keys: u64,
    /// When it ended, in Unix time.
    pub ended: u64,
    /// How long it took.
    pub took: Duration,
}

/// The totals over all filters of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Bytes, filters, layers, items and capacity.
    pub metrics: Metrics,
    /// The number of filters above their requested error rate.
    pub above: u64,
}

/// A filter with its database and a label from its key.
#[derive(Debug)]
pub struct Named {
    /// The number of the database.
    pub db: usize,
    /// The key, readable.
    pub label: String,
    /// Its figures.
    pub figures: Figures,
}

/// The filters with the highest scores, those first.
#[derive(Debug, Default)]
struct List(Vec<(f64, Named)>);

impl List {
    fn offer(&mut self, score: f64, named: impl FnOnce() -> Named) {
        let at = self.0.partition_point(|(better, _)| *better >= score);
        if at < NAMED {
            self.0.truncate(NAMED - 1);
            self.0.insert(at, (score, named()));
        }
    }
}

impl Found {
    /// The filters of all lists, each once.
    pub fn named(&self) -> Vec<&Named> {
        let lists = [&self.largest, &self.nearest, &self.above];
        let all = lists.into_iter().flat_map(|list| &list.0);
        let by_key = all.map(|(_, named)| ((named.db, named.label.as_str()), named));
        by_key.collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Visits a few keys of a database, starting at `cursor`; returns the next cursor, 0 at the
    /// end.
    pub fn step(&mut self, store: &Store, db: usize, cursor: u64) -> u64 {
        let view = View::of_each(&store.keyspace, Now::read());
        let count = |keys: &Db| keys_a_step(keys.len(), keys.sums().filters);
        let next = scan::step_where(view, db, cursor, count, |entry| self.note(db, entry));
        self.table.trim();
        next
    }

    #[expect(clippy::cast_precision_loss, reason = "for a ranking")]
    fn note(&mut self, db: usize, entry: &Entry) {
        self.keys += 1;
        let Value::Filter(filter) = &entry.value else {
            return;
        };
        let figures = Figures::of(filter, BLOCKS_A_FILTER);
        if let Some(at) = FilterKind::ALL
            .iter()
            .position(|kind| *kind == figures.kind)
            && let Some(sums) = self.kinds.get_mut(at)
        {
            sums.metrics = sums.metrics.plus(figures.metrics);
            sums.above += u64::from(figures.is_above);
        }
        let named = || Named {
            db,
            label: label(entry.key()),
            figures,
        };
        self.table
            .offer(db, entry.key(), figures, Now::read().seconds());
        let [bytes, _, _, _, capacity] = figures.metrics.figures();
        self.largest.offer(bytes as f64, named);
        let left = figures.room as f64 / capacity.max(1) as f64;
        self.nearest.offer(-left, named);
        if let Some(asked) = figures.asked.filter(|_| figures.is_above) {
            self.above.offer(figures.expected / asked, named);
        }
    }
}

/// How many keys to visit in one step, in a part of the keyspace with this many keys, of which this
/// many are filters; 0 if it is empty.
fn keys_a_step(keys: usize, filters: Metrics) -> usize {
    let [bytes, filters, ..] = filters.figures();
    if filters == 0 {
        return 0;
    }
    let read = bytes.clamp(
        filters.saturating_mul(LEAST_A_FILTER),
        filters.saturating_mul(BYTES_A_FILTER),
    );
    let keys = u64::try_from(keys).unwrap_or(u64::MAX);
    let count = keys.saturating_mul(BYTES_A_STEP) / read;
    usize::try_from(count.clamp(1, KEYS_A_STEP)).unwrap_or(1)
}

/// Walks over all keys again and again, and publishes the results of each walk. It never returns.
pub async fn walk(store: &Store, found: impl Fn(Found)) {
    loop {
        let begun = Instant::now();
        if !store.health.is_loading() {
            let mut walk = walk_once(store).await;
            walk.ended = Now::read().seconds();
            walk.took = begun.elapsed();
            found(walk);
        }
        let pause = INTERVAL.saturating_sub(begun.elapsed());
        tokio::time::sleep(pause).await;
    }
}

async fn walk_once(store: &Store) -> Found {
    let mut walk = Found::default();
    let mut worked = Duration::ZERO;
    for db in 0..store.keyspace.databases() {
        let mut cursor = 0;
        loop {
            let begun = Instant::now();
            cursor = walk.step(store, db, cursor);
            // Any further time was spent waiting for a lock or a core.
            worked += begun.elapsed().min(LONGEST_STEP);
            if worked >= WORK {
                tokio::time::sleep(worked * REST).await;
                worked = Duration::ZERO;
            }
            if cursor == 0 {
                break;
            }
        }
    }
    walk
}

#[cfg(test)]
mod tests {
    use everbloom::host::LayeredFilter;
    use everbloom::{CuckooFilter, Layout};
    use everbloom_commands::filter::Filter;
    use everbloom_store::Settings;

    use everbloom_store::keyspace::{Footprint, Keyspace};

    use super::*;

    fn store() -> std::sync::Arc<Store> {
        Store::new(Settings::default(), None, u64::MAX)
    }

    fn put(store: &Store, db: usize, key: &[u8], value: Value) {
        let key = store.keyspace.key(db, key);
        let mut view = Footprint::of([key]).write(&store.keyspace, Now::read());
        view.entry(key).insert(value, None);
    }

    /// A blocked filter with this capacity, error rate and number of items.
    fn filter(capacity: u64, rate: f64, items: u64) -> Value {
        let builder = LayeredFilter::builder().layout(Layout::Blocked);
        let builder = builder.seed(1).capacity(capacity).error_rate(rate);
        let mut filter = builder.build().unwrap();
        for item in 0..items {
            filter.insert(&item);
        }
        Value::Filter(filter.into())
    }

    /// Walks over all keys, and returns the largest number of keys visited in one step.
    fn walk(store: &Store) -> (Found, u64) {
        let (mut found, mut most) = (Found::default(), 0);
        for db in 0..store.keyspace.databases() {
            let mut cursor = 0;
            loop {
                let before = found.keys;
                cursor = found.step(store, db, cursor);
                most = most.max(found.keys - before);
                if cursor == 0 {
                    break;
                }
            }
        }
        (found, most)
    }

    #[test]
    fn a_walk_passes_over_shards_without_filters_and_takes_small_steps() {
        let store = store();
        const KEYS: u64 = 1_000_000;
        for key in 0..KEYS {
            put(
                &store,
                0,
                &key.to_le_bytes(),
                Value::Text(Vec::new().into()),
            );
        }
        let (found, _) = walk(&store);
        assert_eq!(found.keys, 0);
        for key in 0..10 {
            put(
                &store,
                0,
                format!("f{key}").as_bytes(),
                filter(100, 0.01, 1),
            );
        }
        let (found, most) = walk(&store);
        assert_eq!(found.named().len(), 10);
        // Ten shards of 1024, each of about 977 keys.
        assert!((1000..15_000).contains(&found.keys), "{}", found.keys);
        // A step that is one key short, and then a slice with less than twice the requested number.
        assert!(most <= 3 * KEYS_A_STEP, "{most}");
    }

    #[test]
    fn a_step_is_short_whatever_the_filters_are() {
        let sums = |number: usize, value: &Value| {
            let Value::Filter(filter) = value else {
                unreachable!();
            };
            let one = Metrics::of(filter);
            (0..number).fold(Metrics::default(), |sum, _| sum.plus(one))
        };
        let (tiny, large) = (filter(10, 0.01, 1), filter(1_000_000, 0.01, 0));
        assert_eq!(keys_a_step(1000, Metrics::default()), 0);
        assert_eq!(keys_a_step(1_000_000, sums(1, &tiny)), 1024);
        assert_eq!(keys_a_step(100_000, sums(100_000, &tiny)), 256);
        // 64 of them are a megabyte to read.
        assert_eq!(keys_a_step(1000, sums(1000, &large)), 64);
        assert_eq!(keys_a_step(1000, sums(500, &large)), 128);
    }

    #[test]
    fn the_filters_named_are_the_largest_the_fullest_and_those_that_err() {
        let store = store();
        for key in 0..200 {
            put(
                &store,
                3,
                format!("small{key}").as_bytes(),
                filter(100, 0.01, 0),
            );
        }
        put(&store, 0, b"large", filter(1_000_000, 0.01, 1000));
        put(&store, 0, b"full", filter(1000, 0.01, 990));
        put(
            &store,
            1,
            b"cuckoo",
            Value::Filter(CuckooFilter::new(1000).into()),
        );
        let (found, _) = walk(&store);
        let named = found.named();
        assert!(named.len() <= 3 * NAMED, "{}", named.len());
        let find = |label: &str| {
            let found = named.iter().find(|named| named.label == label);
            found.unwrap_or_else(|| panic!("{label} is not named"))
        };
        // Some items may already seem present.
        assert!((10..30).contains(&find("full").figures.room));
        assert_eq!(find("large").figures.room, 999_000);
        assert_eq!(find("cuckoo").db, 1);
        let [_, blocked, cuckoo, ..] = found.kinds;
        assert_eq!(blocked.metrics.figures()[1..3], [202, 202]);
        assert_eq!(cuckoo.metrics.figures()[1], 1);
        assert_eq!(blocked.above, 0);
    }

    #[test]
    fn filters_that_err_too_often_are_named_the_worst_first() {
        let mut found = Found::default();
        let keyspace = Keyspace::new(1);
        let mut note = |name: String, value| {
            let key = keyspace.key(0, name.as_bytes());
            found.note(0, &Entry::new(key, value, None, 0));
        };
        for key in 0..100 {
            note(format!("good{key}"), filter(500 + key * 50, 0.01, 500));
        }
        // Every bit is set, so that the error rate is 1.
        for (key, rate) in [("bad", 0.1), ("worst", 0.001), ("worse", 0.01)] {
            let Value::Filter(Filter::Bloom(mut full)) = filter(100, rate, 0) else {
                unreachable!();
            };
            let ones = vec![0xff; usize::try_from(full.stream_len()).unwrap()];
            full.load_chunk(0, &ones).unwrap();
            note(key.into(), Value::Filter(full.into()));
        }
        let above: Vec<&str> = found.above.0.iter().map(|(_, it)| &*it.label).collect();
        assert_eq!(above, ["worst", "worse", "bad"]);
        assert_eq!(found.kinds[1].above, 3);
        assert_eq!(found.above.0[0].1.figures.expected, 1.0);
        let lists = [&found.largest, &found.nearest].map(|list| list.0.len());
        assert_eq!(lists, [NAMED; 2]);
    }
}
