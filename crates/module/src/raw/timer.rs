//! A timer of the host, which calls again and again.

use std::ffi::{c_longlong, c_void};
use std::ptr::null_mut;

use super::api::api;
use super::context::{Call, HostContext};
use super::ffi::Ctx;

/// What is done again and again, between the commands of clients.
pub(crate) trait Timed: 'static {
    /// The milliseconds from one time to the next.
    const PERIOD_MS: c_longlong;
    /// What is done.
    fn tick(host: &mut HostContext<'_>);
}

/// Begins to call [`Timed::tick`]. Not while the module is loaded: a host that then unloads it stops
/// no timer.
pub(crate) fn start<T: Timed>(call: Call<'_>) {
    // SAFETY: a valid context and a function of its type, which uses no data.
    unsafe { (api().create_timer)(call.raw(), T::PERIOD_MS, fire::<T>, null_mut()) };
}

/// # Safety
///
/// Only for the host: `ctx` is a valid context for as long as the call takes.
unsafe extern "C" fn fire<T: Timed>(ctx: *mut Ctx, _: *mut c_void) {
    // SAFETY: what the host promises.
    let mut host = unsafe { HostContext::new(ctx) };
    T::tick(&mut host);
    // A timer of the host fires once.
    start::<T>(host.call());
}
