//! A guard before a slow source, asked by many at once.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use everbloom::BloomFilter;
use everbloom_client::redis::TypedCommands;
use everbloom_client::{AsyncSource, Error, FilterFailure, Guard, ServerFilter, Source};
use everbloom_dev::wait_for;

use crate::support::{Host, runtime};

const IDS: usize = 1000;

/// A table of ids that is slow, and knows how many asked it at once.
struct Table {
    filter: Option<BloomFilter>,
    /// `None` while it fails.
    cache: Option<Mutex<HashMap<String, u64>>>,
    loading: Mutex<HashMap<String, usize>>,
    most_at_once: AtomicUsize,
    loads: AtomicU64,
    pause: Duration,
}

impl Table {
    fn new(pause: u64) -> Table {
        let mut filter = BloomFilter::new(IDS as u64, 0.001);
        filter.extend((0..IDS).map(|id| id.to_string()));
        Table {
            filter: Some(filter),
            cache: Some(Mutex::default()),
            loading: Mutex::default(),
            most_at_once: AtomicUsize::new(0),
            loads: AtomicU64::new(0),
            pause: Duration::from_millis(pause),
        }
    }

    fn begin(&self, key: &str) {
        self.loads.fetch_add(1, Ordering::Relaxed);
        let mut loading = self.loading.lock().unwrap();
        let at_once = loading.entry(key.to_owned()).or_default();
        *at_once += 1;
        self.most_at_once.fetch_max(*at_once, Ordering::Relaxed);
    }

    fn end(&self, key: &str) -> Result<Option<u64>, String> {
        *self.loading.lock().unwrap().get_mut(key).unwrap() -= 1;
        match key {
            "broken" => Err("the table is broken".into()),
            _ => Ok(key.parse().ok().filter(|id| *id < IDS as u64)),
        }
    }
}

impl Source for Table {
    type Value = u64;
    type Error = String;

    fn may_exist(&self, key: &str) -> Result<bool, String> {
        let filter = self.filter.as_ref().ok_or("no filter")?;
        Ok(key == "broken" || filter.contains(key))
    }

    fn cached(&self, key: &str) -> Result<Option<u64>, String> {
        let cache = self.cache.as_ref().ok_or("no cache")?;
        Ok(cache.lock().unwrap().get(key).copied())
    }

    fn load(&self, key: &str) -> Result<Option<u64>, String> {
        self.begin(key);
        thread::sleep(self.pause);
        assert_ne!(key, "13", "unlucky");
        self.end(key)
    }

    fn keep(&self, key: &str, value: &u64) -> Result<(), String> {
        let cache = self.cache.as_ref().ok_or("no cache")?;
        cache.lock().unwrap().insert(key.to_owned(), *value);
        Ok(())
    }
}

impl AsyncSource for Table {
    type Value = u64;
    type Error = String;

    async fn may_exist(&self, key: &str) -> Result<bool, String> {
        Source::may_exist(self, key)
    }

    async fn cached(&self, key: &str) -> Result<Option<u64>, String> {
        Source::cached(self, key)
    }

    fn load(&self, key: &str) -> impl Future<Output = Result<Option<u64>, String>> + Send {
        self.begin(key);
        async move {
            tokio::time::sleep(self.pause).await;
            self.end(key)
        }
    }

    async fn keep(&self, key: &str, value: &u64) -> Result<(), String> {
        Source::keep(self, key, value)
    }
}

#[test]
fn a_flood_of_absent_keys_is_no_load() {
    let (table, guard) = (Table::new(0), Guard::new(FilterFailure::AskOn));
    for key in 0..100_000 {
        assert_eq!(guard.get(&table, &format!("absent{key}")), Ok(None));
    }
    let counts = guard.counts();
    assert_eq!(counts.asked, 100_000);
    assert!(
        counts.loaded < 300 && counts.loaded == counts.nothing,
        "{counts:?}"
    );
    assert_eq!(counts.saved() + counts.loaded, counts.asked);
    assert_eq!(table.loads.into_inner(), counts.loaded);
}

#[test]
fn many_threads_for_one_key_are_one_load() {
    let (table, guard) = (Table::new(300), Guard::new(FilterFailure::AskOn));
    let start = Barrier::new(16);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                start.wait();
                assert_eq!(guard.get(&table, "7"), Ok(Some(7)));
            });
        }
    });
    let counts = guard.counts();
    assert_eq!((counts.loaded, counts.shared + counts.cached), (1, 15));
    assert_eq!(table.most_at_once.into_inner(), 1);
}

#[test]
fn many_tasks_for_one_key_are_one_load() {
    let (table, guard) = (Table::new(300), Guard::new(FilterFailure::AskOn));
    let both = Arc::new((table, guard));
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let both = Arc::clone(&both);
            tasks.spawn(async move { both.1.get_async(&both.0, "7").await });
        }
        for outcome in tasks.join_all().await {
            assert_eq!(outcome, Ok(Some(7)));
        }
    });
    let counts = both.1.counts();
    assert_eq!((counts.loaded, counts.shared + counts.cached), (1, 99));
}

/// A table whose caller is overtaken: right after it finds nothing in the cache, another call loads
/// the key.
struct Overtaken<'a> {
    table: &'a Table,
    guard: &'a Guard<u64, String>,
    looks: AtomicUsize,
}

impl Source for Overtaken<'_> {
    type Value = u64;
    type Error = String;

    fn may_exist(&self, key: &str) -> Result<bool, String> {
        Source::may_exist(self.table, key)
    }

    fn cached(&self, key: &str) -> Result<Option<u64>, String> {
        let found = Source::cached(self.table, key);
        if self.looks.fetch_add(1, Ordering::Relaxed) == 0 {
            assert_eq!(self.guard.get(self.table, key), Ok(Some(7)));
        }
        found
    }

    fn load(&self, key: &str) -> Result<Option<u64>, String> {
        Source::load(self.table, key)
    }

    fn keep(&self, key: &str, value: &u64) -> Result<(), String> {
        Source::keep(self.table, key, value)
    }
}

#[test]
fn a_load_that_has_just_ended_is_not_repeated() {
    let (table, guard) = (Table::new(0), Guard::new(FilterFailure::AskOn));
    let overtaken = Overtaken {
        table: &table,
        guard: &guard,
        looks: AtomicUsize::new(0),
    };
    assert_eq!(guard.get(&overtaken, "7"), Ok(Some(7)));
    let counts = guard.counts();
    assert_eq!((counts.asked, counts.cached, counts.loaded), (2, 1, 1));
    assert_eq!(overtaken.looks.into_inner(), 2);
}

#[test]
fn an_error_is_shared_and_not_kept() {
    let (table, guard) = (Table::new(300), Guard::new(FilterFailure::AskOn));
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                assert!(guard.get(&table, "broken").is_err());
            });
        }
    });
    assert_eq!(table.most_at_once.load(Ordering::Relaxed), 1);
    let before = guard.counts().loaded;
    assert!(guard.get(&table, "broken").is_err());
    assert_eq!(guard.counts().loaded, before + 1);
}

#[test]
fn when_a_load_panics_another_caller_loads() {
    let shared = Arc::new((Table::new(100), Guard::new(FilterFailure::AskOn)));
    let panics = [(); 3].map(|()| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || shared.1.get(&shared.0, "13"))
    });
    for thread in panics {
        // A caller that is never woken must fail the test, not stop it.
        wait_for("the turn of a caller", || thread.is_finished());
        assert!(thread.join().is_err(), "each had its turn");
    }
    let guard = &shared.1;
    assert_eq!(guard.counts().loaded, 3);
}

#[test]
fn when_a_task_that_loads_is_dropped_another_one_loads() {
    let (table, guard) = (Table::new(200), Guard::new(FilterFailure::AskOn));
    runtime().block_on(async {
        let first = guard.get_async(&table, "7");
        let second = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            guard.get_async(&table, "7").await
        };
        let patience = Duration::from_millis(50);
        let (first, second) = tokio::join!(tokio::time::timeout(patience, first), second);
        assert!(first.is_err(), "it was dropped");
        assert_eq!(second, Ok(Some(7)));
    });
    assert_eq!(guard.counts().loaded, 2);
}

#[test]
fn without_a_filter_it_goes_on_or_refuses() {
    let mut table = Table::new(0);
    table.filter = None;
    let open = Guard::new(FilterFailure::AskOn);
    assert_eq!(open.get(&table, "7"), Ok(Some(7)));
    assert_eq!(open.get(&table, "absent"), Ok(None));
    assert_eq!((open.counts().filter_errors, open.counts().nothing), (2, 1));
    let closed = Guard::new(FilterFailure::Refuse);
    assert!(closed.get(&table, "7").is_err());
    assert_eq!(
        (closed.counts().filter_errors, closed.counts().loaded),
        (1, 0)
    );
}

#[test]
fn without_a_cache_it_goes_on_or_refuses() {
    let mut table = Table::new(0);
    table.cache = None;
    // Where the filter is on the server of the cache, both fail together.
    for filter in [table.filter.clone(), None] {
        table.filter = filter;
        let open = Guard::new(FilterFailure::AskOn);
        assert_eq!(open.get(&table, "7"), Ok(Some(7)));
        assert_eq!(open.get(&table, "absent"), Ok(None));
        assert!(open.counts().cache_errors >= 2, "{:?}", open.counts());
        let closed = Guard::new(FilterFailure::Refuse);
        assert!(closed.get(&table, "7").is_err());
        assert_eq!(closed.counts().loaded, 0);
    }
}

/// A table whose filter is on a server.
struct Rows {
    filter: ServerFilter,
    connection: Mutex<everbloom_client::redis::Connection>,
}

impl Source for Rows {
    type Value = String;
    type Error = Error;

    fn may_exist(&self, key: &str) -> Result<bool, Error> {
        self.filter
            .contains(&mut *self.connection.lock().unwrap(), key)
    }

    fn cached(&self, _: &str) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn load(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(key.starts_with("row").then(|| key.to_owned()))
    }

    fn keep(&self, _: &str, _: &String) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_filter_that_is_gone_hides_no_row() {
    let host = Host::serve();
    let mut server = host.connect();
    let losses: [&[&str]; 4] = [
        &["DEL", "filter"],
        &["FLUSHALL"],
        &["RENAME", "filter", "elsewhere"],
        &["SET", "filter", "a text"],
    ];
    for loss in losses {
        server.bf_reserve("filter", 0.001, 1000).unwrap();
        let rows = Rows {
            filter: ServerFilter::new("filter"),
            connection: Mutex::new(host.connect()),
        };
        assert!(rows.filter.add(&mut server, "row 1").unwrap());
        assert!(!rows.filter.add(&mut server, "row 1").unwrap());
        let [open, closed] =
            [FilterFailure::AskOn, FilterFailure::Refuse].map(Guard::<String, Error>::new);
        assert_eq!(open.get(&rows, "row 1").unwrap().as_deref(), Some("row 1"));
        assert_eq!(
            open.get(&rows, "row 2").unwrap(),
            None,
            "it is not in the filter"
        );
        assert_eq!(open.counts().absent, 1);

        let [name, args @ ..] = loss else { panic!() };
        let mut command = everbloom_client::redis::cmd(name);
        command.arg(args).exec(&mut server).unwrap();
        for row in ["row 1", "row 2"] {
            assert_eq!(
                open.get(&rows, row).unwrap().as_deref(),
                Some(row),
                "{loss:?}"
            );
            let error = closed.get(&rows, row).unwrap_err();
            let is_named = matches!(*error, Error::NotFound { .. } | Error::WrongType { .. });
            assert!(is_named, "{loss:?}: {error}");
        }
        assert_eq!(
            (open.counts().filter_errors, closed.counts().loaded),
            (2, 0)
        );
        // An item does not make the filter: it would hide all others.
        assert!(rows.filter.add(&mut server, "row 3").is_err(), "{loss:?}");
        assert!(open.get(&rows, "row 1").unwrap().is_some(), "{loss:?}");
        everbloom_client::redis::cmd("FLUSHALL")
            .exec(&mut server)
            .unwrap();
    }
}
