//! The server's settings, under the names and in the syntax of redis.conf.
//!
//! - [`settings`]: the settings as typed values
//! - [`parameter`]: each setting's name, how it is read and how it is shown
//! - [`ClientMemory`]: how many bytes all clients together may hold
//! - [`output_limit`]: how many bytes of replies a client may leave unread
//! - [`text`]: numbers, amounts of memory, quoted words
//! - [`load()`]: a file in the format of redis.conf, and the command line
//! - [`rewrite()`]: the settings back into their file, and [`explained`] in a new one
//! - [`foreign`]: the settings of Redis that this server does not support

mod client_memory;
pub mod foreign;
mod load;
pub mod output_limit;
pub mod parameter;
mod rewrite;
mod row;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

pub use client_memory::ClientMemory;
pub use load::{Loaded, load};
pub use rewrite::{explained, rewrite};
pub use settings::Settings;

/// The current settings. A reader keeps its snapshot until [`Config::version`] shows that there is
/// a newer one.
#[derive(Debug)]
pub struct Config {
    current: Mutex<Arc<Settings>>,
    version: AtomicU64,
    /// Held while the log is switched on or off, until the settings say so.
    pub turning: Mutex<()>,
}

impl Config {
    /// Begins with these settings.
    pub fn new(settings: Settings) -> Self {
        Config {
            current: Mutex::new(Arc::new(settings)),
            version: AtomicU64::new(1),
            turning: Mutex::new(()),
        }
    }

    /// The current settings.
    pub fn snapshot(&self) -> Arc<Settings> {
        Arc::clone(&self.current.lock())
    }

    /// Changes whenever the settings change.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Changes the settings: `change` works on a copy, which replaces them when it succeeds.
    pub fn update<E>(&self, change: impl FnOnce(&mut Settings) -> Result<(), E>) -> Result<(), E> {
        let mut current = self.current.lock();
        let mut copy = Settings::clone(&current);
        change(&mut copy)?;
        *current = Arc::new(copy);
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }
}
