//! Frees the expired generations of windows, also where nobody uses the filter: a timer looks at
//! each window when it has something to forget.
//!
//! The host does not say which keys hold windows. So a window is listed when it is loaded and when
//! a command changes it. One that was renamed, moved or copied since is listed again at its next
//! change. Replicas and logs get `BF.ADVANCE`. A replica changes nothing by itself, and looks so
//! that its list is right when it becomes a primary.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::{c_int, c_longlong};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use everbloom_commands::bf::advance;

use crate::clock::now_ms;
use crate::raw::context::{HostContext, LogLevel, Place, may_change_data};
use crate::raw::key::Key;
use crate::raw::timer::{self, Timed};
use crate::stored::Stored;

/// When a window is to be looked at, its database and its key.
type Listed = Reverse<(u64, c_int, Box<[u8]>)>;

/// The earliest on top. Values may be loaded on any thread.
static LIST: Mutex<BinaryHeap<Listed>> = Mutex::new(BinaryHeap::new());

/// Whether the timer was started, as it is for the first window.
static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// How many windows are looked at before clients have their turn again.
const MAX_LOOKS: usize = 64;

/// A window that was due for so long has another key by now.
const MAX_DELAY_MS: u64 = 10_000;

/// When a window is looked at again that could not forget.
const RETRY_MS: u64 = 1000;

fn all() -> MutexGuard<'static, BinaryHeap<Listed>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lists a filter that was changed or loaded, if it is a window that is not listed.
#[inline]
pub(crate) fn list<'k>(stored: &mut Stored, place: impl FnOnce() -> Option<Place<'k>>) {
    if let Some(at) = stored.filter().outdated_at() {
        list_window(stored, at, place);
    }
}

#[inline(never)]
fn list_window<'k>(stored: &mut Stored, at: u64, place: impl FnOnce() -> Option<Place<'k>>) {
    let is_listed = stored.listed.saturating_add(MAX_DELAY_MS) > now_ms() && stored.listed <= at;
    if !is_listed && let Some(place) = place() {
        stored.listed = at;
        all().push(Reverse((at, place.db, place.key.into())));
        if !IS_STARTED.swap(true, Ordering::Relaxed) {
            timer::start::<Look>(place.call);
        }
    }
}

/// A window that is due.
fn take_due(now: u64) -> Option<Listed> {
    let mut listed = all();
    listed.peek().filter(|Reverse((at, ..))| *at <= now)?;
    listed.pop()
}

/// Looks at the windows that are due.
struct Look;

impl Timed for Look {
    const PERIOD_MS: c_longlong = 100;

    fn tick(host: &mut HostContext<'_>) {
        let now = now_ms();
        let may_change = may_change_data();
        for _ in 0..MAX_LOOKS {
            let Some(listed) = take_due(now) else {
                return;
            };
            look(host, now, may_change, listed);
        }
    }
}

/// Lets a window forget what is out of date.
fn look(host: &mut HostContext<'_>, now: u64, may_change: bool, listed: Listed) {
    let Reverse((listed_at, db, name)) = listed;
    if !host.select(db) {
        return;
    }
    let Some(mut key) = Key::open_unused(host, &name) else {
        return;
    };
    // The key may hold another value by now, which has a place of its own.
    let value = key.value_mut::<Stored>();
    let Some(stored) = value.filter(|stored| stored.listed == listed_at) else {
        return;
    };
    let mut begun = None;
    if may_change {
        begun = stored.change(|filter| advance::forget(filter, now));
    }
    stored.listed = 0;
    if let Some(at) = stored.filter().outdated_at() {
        let at = if at > now { at } else { now + RETRY_MS };
        stored.listed = at;
        all().push(Reverse((at, db, name.clone())));
    }
    drop(key);
    if let Some(begun) = begun
        && !host.call().replicate(&begun.command(&name))
    {
        let line = "the host did not take a command for its replicas, which now differ";
        host.log(LogLevel::Warning, line);
    }
}
