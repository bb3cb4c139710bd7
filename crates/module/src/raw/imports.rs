//! Whether slots come from another node, all at once, as Valkey moves them from 9.0 on.
//!
//! Until they have come their keys are here and there. The other node changes them, and sends what
//! it changes.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::api::api;
use super::context::HostContext;
use super::ffi::{Ctx, Event, IMPORT_ABORTED, IMPORT_COMPLETED, IMPORT_STARTED, SLOT_MIGRATION};

/// How many imports have begun and not ended.
static IMPORTS: AtomicUsize = AtomicUsize::new(0);

/// Whether slots are coming.
pub(super) fn are_running() -> bool {
    IMPORTS.load(Ordering::Relaxed) > 0
}

/// Has the host tell of imports.
pub(crate) fn follow(context: &HostContext<'_>) {
    // The same number is another event elsewhere. A Valkey that does not know it refuses.
    if api().valkey {
        // SAFETY: a valid context, and a function of its type.
        unsafe { (api().subscribe)(context.raw(), SLOT_MIGRATION, note) };
    }
}

/// # Safety
///
/// Only for the host. It uses no argument but the number.
unsafe extern "C" fn note(_: *mut Ctx, _: Event, what: u64, _: *mut c_void) {
    let count = |imports: usize| match what {
        IMPORT_STARTED => Some(imports + 1),
        IMPORT_ABORTED | IMPORT_COMPLETED => imports.checked_sub(1),
        _ => None,
    };
    // Ignore the error: it is another event.
    let _ = IMPORTS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
}
