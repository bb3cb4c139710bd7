//! A filter and a cache in front of a database: requests for absent keys stop at the filter.

mod filter;
mod flight;
mod source;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::wire::wait;
pub use filter::ServerFilter;
use flight::Flights;
use source::Immediate;
pub use source::{AsyncSource, Source};

/// What happens when the filter or the cache fails. A missing filter has failed, too. The caller
/// chooses, because both choices have a cost. A filter and a cache on one server fail together.
///
/// ```
/// use everbloom_client::{FilterFailure, Guard};
/// let guard: Guard<String, std::io::Error> = Guard::new(FilterFailure::Refuse);
/// # assert_eq!(guard.counts().asked, 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterFailure {
    /// The guard continues without what failed ("open"): it answers all calls as long as the
    /// database does. A flood of absent keys, and all that was cached, reaches the database, with
    /// one load at a time for each key.
    AskOn,
    /// The caller gets the error ("closed"): the database is protected, and calls fail.
    Refuse,
}

/// Protects a database: it checks a filter, then a cache, and then loads, with at most one running
/// load for each key in this process. Other callers of that key wait and share the result.
///
/// The filter stops requests for absent keys, except for its error rate. So a flood of absent keys
/// ("cache penetration") does not reach the database. Many callers for a key that just left the
/// cache cause one load.
///
/// ```
/// use std::collections::HashMap;
/// use std::convert::Infallible;
/// use std::sync::Mutex;
///
/// use everbloom_client::{FilterFailure, Guard, Source};
///
/// /// A table, a cache, and a filter of the table's keys.
/// struct Users {
///     filter: everbloom::BloomFilter,
///     cache: Mutex<HashMap<String, String>>,
///     table: HashMap<String, String>,
/// }
///
/// impl Source for Users {
///     type Value = String;
///     type Error = Infallible;
///
///     fn may_exist(&self, id: &str) -> Result<bool, Infallible> {
///         Ok(self.filter.contains(id))
///     }
///     fn cached(&self, id: &str) -> Result<Option<String>, Infallible> {
///         Ok(self.cache.lock().unwrap().get(id).cloned())
///     }
///     fn load(&self, id: &str) -> Result<Option<String>, Infallible> {
///         Ok(self.table.get(id).cloned())
///     }
///     fn keep(&self, id: &str, name: &String) -> Result<(), Infallible> {
///         self.cache.lock().unwrap().insert(id.into(), name.into());
///         Ok(())
///     }
/// }
///
/// let mut filter = everbloom::BloomFilter::new(1000, 0.001);
/// filter.insert("17");
/// let table = HashMap::from([("17".to_owned(), "Ada".to_owned())]);
/// let users = Users { filter, cache: Mutex::default(), table };
///
/// let guard = Guard::new(FilterFailure::AskOn);
/// assert_eq!(guard.get(&users, "17").unwrap().as_deref(), Some("Ada"));
/// assert_eq!(guard.get(&users, "17").unwrap().as_deref(), Some("Ada"));
/// assert_eq!(guard.get(&users, "no such id").unwrap(), None);
/// let counts = guard.counts();
/// assert_eq!((counts.asked, counts.absent, counts.cached, counts.loaded), (3, 1, 1, 1));
/// ```
pub struct Guard<V, E> {
    flights: Flights<Loaded<V, E>>,
    failure: FilterFailure,
    tallies: Tallies,
}

/// The result of a load, shared by all waiting callers.
type Loaded<V, E> = Result<Option<V>, Arc<E>>;

/// Counters of a guard. [Example](Guard).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Calls.
    pub asked: u64,
    /// Calls that ended at the filter: nothing of this key exists.
    pub absent: u64,
    /// Calls that ended at the cache.
    pub cached: u64,
    /// Calls that waited for the load of another one, and shared it.
    pub shared: u64,
    /// Loads: calls that reached the database.
    pub loaded: u64,
    /// Loads that found nothing: the filter's false positives, and all absent keys while the filter
    /// fails open.
    pub nothing: u64,
    /// Calls in which the filter failed.
    pub filter_errors: u64,
    /// Calls in which the cache failed, and values that it did not store.
    pub cache_errors: u64,
}

impl Counts {
    /// The calls that the guard kept from the database.
    ///
    /// ```
    /// use everbloom_client::Counts;
    /// assert_eq!(Counts::default().saved(), 0);
    /// ```
    #[must_use]
    pub fn saved(&self) -> u64 {
        self.absent + self.shared + self.cached
    }
}

#[derive(Default)]
struct Tallies {
    asked: AtomicU64,
    absent: AtomicU64,
    cached: AtomicU64,
    shared: AtomicU64,
    loaded: AtomicU64,
    nothing: AtomicU64,
    filter_errors: AtomicU64,
    cache_errors: AtomicU64,
}

fn count(tally: &AtomicU64) {
    tally.fetch_add(1, Ordering::Relaxed);
}

impl<V: Clone + Send, E: Send + Sync> Guard<V, E> {
    /// A guard without running loads. [Example](Self).
    #[must_use]
    pub fn new(failure: FilterFailure) -> Self {
        Guard {
            flights: Flights::new(),
            failure,
            tallies: Tallies::default(),
        }
    }

    /// The value of a key, or `None` when there is none. [Example](Self).
    ///
    /// # Errors
    ///
    /// Those of the source. All callers that waited for a load share its error.
    pub fn get<S>(&self, source: &S, key: &str) -> Result<Option<V>, Arc<E>>
    where
        S: Source<Value = V, Error = E>,
    {
        wait(self.get_async(&Immediate(source), key))
    }

    /// As [`get`](Self::get), for async sources. When the loading task is dropped, another waiting
    /// task loads instead.
    ///
    /// # Errors
    ///
    /// As those of [`get`](Self::get).
    pub async fn get_async<S>(&self, source: &S, key: &str) -> Result<Option<V>, Arc<E>>
    where
        S: AsyncSource<Value = V, Error = E>,
    {
        let tallies = &self.tallies;
        count(&tallies.asked);
        match source.may_exist(key).await {
            Ok(true) => {}
            Ok(false) => {
                count(&tallies.absent);
                return Ok(None);
            }
            Err(error) => self.failed(&tallies.filter_errors, error)?,
        }
        let cache_works = match source.cached(key).await {
            Ok(Some(value)) => {
                count(&tallies.cached);
                return Ok(Some(value));
            }
            Ok(None) => true,
            Err(error) => {
                self.failed(&tallies.cache_errors, error)?;
                false
            }
        };
        loop {
            match self.flights.join(key).await {
                Ok(leader) => {
                    let loaded = self.lead(source, key, cache_works).await;
                    leader.finish(loaded.clone());
                    return loaded;
                }
                Err(Some(loaded)) => {
                    count(&tallies.shared);
                    return loaded;
                }
                // The other load was abandoned, so this caller tries.
                Err(None) => {}
            }
        }
    }

    /// Counts an error of the filter or the cache, and returns it if the guard refuses.
    fn failed(&self, tally: &AtomicU64, error: E) -> Result<(), Arc<E>> {
        count(tally);
        match self.failure {
            FilterFailure::AskOn => Ok(()),
            FilterFailure::Refuse => Err(Arc::new(error)),
        }
    }

    /// The value for all waiting callers. Between this caller's look into the cache and its turn,
    /// another load may have ended and filled the cache. So it looks again before it loads, unless
    /// the cache has just failed.
    async fn lead<S>(&self, source: &S, key: &str, cache_works: bool) -> Loaded<V, E>
    where
        S: AsyncSource<Value = V, Error = E>,
    {
        if cache_works {
            match source.cached(key).await {
                Ok(Some(value)) => {
                    count(&self.tallies.cached);
                    return Ok(Some(value));
                }
                Ok(None) => {}
                Err(error) => self.failed(&self.tallies.cache_errors, error)?,
            }
        }
        self.load(source, key).await
    }

    async fn load<S>(&self, source: &S, key: &str) -> Loaded<V, E>
    where
        S: AsyncSource<Value = V, Error = E>,
    {
        count(&self.tallies.loaded);
        let value = source.load(key).await.map_err(Arc::new)?;
        match &value {
            None => count(&self.tallies.nothing),
            Some(value) => {
                if source.keep(key, value).await.is_err() {
                    count(&self.tallies.cache_errors);
                }
            }
        }
        Ok(value)
    }

    /// The counters so far. [Example](Self).
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |tally: &AtomicU64| tally.load(Ordering::Relaxed);
        let tallies = &self.tallies;
        Counts {
            asked: read(&tallies.asked),
            absent: read(&tallies.absent),
            cached: read(&tallies.cached),
            shared: read(&tallies.shared),
            loaded: read(&tallies.loaded),
            nothing: read(&tallies.nothing),
            filter_errors: read(&tallies.filter_errors),
            cache_errors: read(&tallies.cache_errors),
        }
    }
}

impl<V: Clone + Send, E: Send + Sync> fmt::Debug for Guard<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("failure", &self.failure)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
