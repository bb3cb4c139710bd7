//! The filter, cache and database behind a guard.

use std::future::{Future, ready};

/// A filter, a cache and a database, with blocking calls. [Example](crate::Guard).
///
/// The filter contains the cache keys of everything that exists. **Add a new key to the filter
/// before you store it**, otherwise readers get "does not exist".
pub trait Source {
    /// The loaded value.
    type Value: Clone + Send;
    /// The error type of all three.
    type Error: Send + Sync;

    /// Looks the key up in the filter: `false` when it does not exist. A missing filter must be an
    /// error, because "not in the filter" would hide every row;
    /// [`ServerFilter`](crate::ServerFilter) returns one.
    ///
    /// # Errors
    ///
    /// As the filter's, and when the filter is missing. [`FilterFailure`](crate::FilterFailure)
    /// says what then happens.
    fn may_exist(&self, key: &str) -> Result<bool, Self::Error>;

    /// Looks the key up in the cache. A caller that is about to load looks a second time, because
    /// another load may have just ended.
    ///
    /// # Errors
    ///
    /// As the cache's. [`FilterFailure`](crate::FilterFailure) says what then happens.
    fn cached(&self, key: &str) -> Result<Option<Self::Value>, Self::Error>;

    /// Loads from the database; `None` when the key does not exist.
    ///
    /// # Errors
    ///
    /// As the database's; all callers that waited for this load get it.
    fn load(&self, key: &str) -> Result<Option<Self::Value>, Self::Error>;

    /// Stores a loaded value in the cache.
    ///
    /// # Errors
    ///
    /// As the cache's. The guard counts it, and its caller still gets the value.
    fn keep(&self, key: &str, value: &Self::Value) -> Result<(), Self::Error>;
}

/// As [`Source`], with async calls.
pub trait AsyncSource {
    /// The loaded value.
    type Value: Clone + Send;
    /// The error type of all three.
    type Error: Send + Sync;

    /// As [`Source::may_exist`].
    fn may_exist(&self, key: &str) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// As [`Source::cached`].
    fn cached(
        &self,
        key: &str,
    ) -> impl Future<Output = Result<Option<Self::Value>, Self::Error>> + Send;

    /// As [`Source::load`].
    fn load(
        &self,
        key: &str,
    ) -> impl Future<Output = Result<Option<Self::Value>, Self::Error>> + Send;

    /// As [`Source::keep`].
    fn keep(
        &self,
        key: &str,
        value: &Self::Value,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A blocking source as an async one whose futures are always ready.
pub(super) struct Immediate<'a, S>(pub(super) &'a S);

impl<S: Source> AsyncSource for Immediate<'_, S> {
    type Value = S::Value;
    type Error = S::Error;

    fn may_exist(&self, key: &str) -> impl Future<Output = Result<bool, S::Error>> + Send {
        ready(self.0.may_exist(key))
    }

    fn cached(&self, key: &str) -> impl Future<Output = Result<Option<S::Value>, S::Error>> + Send {
        ready(self.0.cached(key))
    }

    fn load(&self, key: &str) -> impl Future<Output = Result<Option<S::Value>, S::Error>> + Send {
        ready(self.0.load(key))
    }

    fn keep(
        &self,
        key: &str,
        value: &S::Value,
    ) -> impl Future<Output = Result<(), S::Error>> + Send {
        ready(self.0.keep(key, value))
    }
}
