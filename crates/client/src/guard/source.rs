//! What a guard stands before.

use std::future::{Future, ready};

/// A filter, a cache and what is behind them, over blocking calls. [Example](crate::Guard).
///
/// The key is that of the cache. The filter knows the keys of all that exists: **a new one is added
/// to the filter before it is stored**, or a reader is told that it does not exist.
pub trait Source {
    /// What is loaded.
    type Value: Clone + Send;
    /// What can go wrong, in any of the three.
    type Error: Send + Sync;

    /// Asks the filter: `false` when nothing of this key exists.
    ///
    /// # Errors
    ///
    /// As the filter's. [`FilterFailure`](crate::FilterFailure) says what then happens.
    fn may_exist(&self, key: &str) -> Result<bool, Self::Error>;

    /// Asks the cache.
    ///
    /// # Errors
    ///
    /// As the cache's; the caller of the guard gets it.
    fn cached(&self, key: &str) -> Result<Option<Self::Value>, Self::Error>;

    /// Loads from where it is slow; `None` when nothing of this key exists.
    ///
    /// # Errors
    ///
    /// As the database's; all callers that waited for this load get it.
    fn load(&self, key: &str) -> Result<Option<Self::Value>, Self::Error>;

    /// Puts what was loaded into the cache.
    ///
    /// # Errors
    ///
    /// As the cache's. It is counted, and the caller of the guard gets the value all the same.
    fn keep(&self, key: &str, value: &Self::Value) -> Result<(), Self::Error>;
}

/// As [`Source`], over calls that are waited for.
pub trait AsyncSource {
    /// What is loaded.
    type Value: Clone + Send;
    /// What can go wrong, in any of the three.
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

/// A source over blocking calls as one that is never waited for.
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
