//! The list of windows: where each of them is, and when it is to be looked at.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::raw::context::Place;

/// When a window is to be looked at, and a number that no other entry has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    at: u64,
    number: NonZeroU64,
}

/// The database and the key of a window.
pub(crate) type Address = (c_int, Box<[u8]>);

/// The earliest first. Values may be loaded and freed on any thread.
static LIST: Mutex<BTreeMap<Ticket, Address>> = Mutex::new(BTreeMap::new());

fn all() -> MutexGuard<'static, BTreeMap<Ticket, Address>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the entry of a window that is due.
pub(crate) fn take_due(now: u64) -> Option<(Ticket, Address)> {
    let mut all = all();
    let first = all.first_entry()?;
    (first.key().at <= now).then(|| first.remove_entry())
}

/// The entry of one filter in the list, if it has one. It goes with the filter, so that there are
/// never more entries than windows.
#[derive(Debug, Default)]
pub(crate) struct Listing(Option<Ticket>);

impl Listing {
    /// Adds an entry. The window is looked at here when the time has come.
    pub(crate) fn new(at: u64, address: Address) -> Listing {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let number = NonZeroU64::MIN.saturating_add(count);
        let ticket = Ticket { at, number };
        all().insert(ticket, address);
        Listing(Some(ticket))
    }

    /// Whether it is the entry with this ticket.
    pub(crate) fn is(&self, ticket: Ticket) -> bool {
        self.0 == Some(ticket)
    }

    /// Whether the window is looked at by this time, where it is now. The entry may have another
    /// key, or may be gone because nothing was there when it was due.
    pub(crate) fn is_right(&self, at: u64, place: &Place<'_>) -> bool {
        let Some(ticket) = self.0.filter(|ticket| ticket.at <= at) else {
            return false;
        };
        let all = all();
        let address = all.get(&ticket);
        address.is_some_and(|(db, key)| *db == place.db && **key == *place.key)
    }
}

impl Drop for Listing {
    #[inline]
    fn drop(&mut self) {
        if let Some(ticket) = self.0 {
            all().remove(&ticket);
        }
    }
}
