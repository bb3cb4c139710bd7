//! Frees the expired generations of windows, also where nobody uses the filter: a timer looks at
//! each window when it has something to forget.
//!
//! The host does not say which keys hold windows. So a window is listed when it is loaded and when
//! a command changes it. One that was renamed, moved or copied since is listed again at its next
//! change. Replicas and logs get `BF.ADVANCE`. A replica changes nothing by itself, and looks so
//! that its list is right when it becomes a primary.

use std::ffi::c_longlong;
use std::sync::atomic::{AtomicBool, Ordering};

use everbloom_commands::bf::advance;

use crate::clock::now_ms;
use crate::listing::{Address, Listing, Ticket, take_due};
use crate::raw::context::{HostContext, LogLevel, OwnedStr, Place, may_change_data};
use crate::raw::key::Key;
use crate::raw::timer::{self, Timed};
use crate::stored::Stored;

/// Whether the timer was started, as it is for the first window.
static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// How many windows are looked at before clients have their turn again.
const MAX_LOOKS: usize = 64;

/// When a window is looked at again that could not forget.
const RETRY_MS: u64 = 1000;

/// Lists a filter that was changed or loaded, if it is a window that is not listed.
#[inline]
pub(crate) fn list<'k>(stored: &mut Stored, place: impl FnOnce() -> Option<Place<'k>>) {
    if let Some(at) = stored.filter().outdated_at() {
        list_window(stored, at, place);
    }
}

#[inline(never)]
fn list_window<'k>(stored: &mut Stored, at: u64, place: impl FnOnce() -> Option<Place<'k>>) {
    if let Some(place) = place()
        && !stored.listing.is_right(at, &place)
    {
        stored.listing = Listing::new(at, (place.db, place.key.into()));
        if !IS_STARTED.swap(true, Ordering::Relaxed) {
            timer::start::<Look>(place.call);
        }
    }
}

/// Looks at the windows that are due.
struct Look;

impl Timed for Look {
    const PERIOD_MS: c_longlong = 100;

    fn tick(host: &mut HostContext<'_>) {
        let now = now_ms();
        let may_change = may_change_data();
        for _ in 0..MAX_LOOKS {
            let Some((ticket, address)) = take_due(now) else {
                return;
            };
            look(host, now, may_change, ticket, address);
        }
    }
}

/// Lets a window forget what is out of date.
fn look(
    host: &mut HostContext<'_>,
    now: u64,
    may_change: bool,
    ticket: Ticket,
    (db, name): Address,
) {
    if !host.select(db) {
        return;
    }
    let Some(mut key) = Key::open_unused(host, &name) else {
        return;
    };
    // The key may hold another value by now, which has an entry of its own.
    let value = key.value_mut::<Stored>();
    let Some(stored) = value.filter(|stored| stored.listing.is(ticket)) else {
        return;
    };
    let mut begun = None;
    if may_change {
        begun = stored.change(|filter| advance::forget(filter, now));
    }
    let next = stored.filter().outdated_at();
    stored.listing = next.map_or_else(Listing::default, |at| {
        let at = if at > now { at } else { now + RETRY_MS };
        Listing::new(at, (db, name.clone()))
    });
    drop(key);
    let Some(begun) = begun else { return };
    if !host.call().replicate(&begun.command(&name)) {
        let line = "the host did not take a command for its replicas, which now differ";
        host.log(LogLevel::Warning, line);
    }
    if let Some(name) = OwnedStr::new(&name).lent() {
        host.signal_modified(name);
        host.notify(c"bloom.advance", name);
    }
}
