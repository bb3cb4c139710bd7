//! Where the host enters: the symbol that it looks for, every command, and INFO.
//!
//! These callbacks are generic over a [`Module`], so nothing here knows what they run.

use std::ffi::{CStr, c_int};

use super::api::{api, c_text, initialise};
use super::context::{Args, HostContext, LogLevel};
use super::ffi::{CommandFn, ERR, InfoCtx, OK};
pub(crate) use super::ffi::{Ctx, Str};

/// What the host calls.
pub(crate) trait Module: 'static {
    /// Registers everything. An error is for the log, and the module is not loaded.
    fn load(host: &mut HostContext<'_>, args: Args<'_>) -> Result<(), String>;
    /// Runs the command of a row of the module's table and sends its reply.
    fn command<const ROW: usize>(host: &mut HostContext<'_>, args: Args<'_>);
    /// Writes the sections of INFO.
    fn info(writer: &mut InfoWriter);
}

/// Exports the function that a host calls to load the module, for a [`Module`].
macro_rules! export {
    ($module:ty) => {
        /// What the host calls to load the module. Redis looks for this name, and Valkey too.
        ///
        /// # Safety
        ///
        /// As for [`load`]($crate::raw::entry::load).
        #[allow(unsafe_code)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn RedisModule_OnLoad(
            ctx: *mut $crate::raw::entry::Ctx,
            argv: *mut *mut $crate::raw::entry::Str,
            argc: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: what the host promises.
            unsafe { $crate::raw::entry::load::<$module>(ctx, argv, argc) }
        }
    };
}
pub(crate) use export;

/// Loads the module.
///
/// # Safety
///
/// Only for the host, before anything is allocated: `ctx` is the context that it loads with, and
/// `argv` points to `argc` strings. Both are valid for as long as the call takes.
pub(crate) unsafe fn load<M: Module>(ctx: *mut Ctx, argv: *mut *mut Str, argc: c_int) -> c_int {
    // SAFETY: the context is the one that a host loads with, and nothing was allocated yet.
    if !unsafe { initialise(ctx) } {
        return ERR;
    }
    // SAFETY: what the host promises.
    let (mut host, args) = unsafe { (HostContext::new(ctx), Args::new(argv, argc)) };
    match M::load(&mut host, args) {
        Ok(()) => OK,
        Err(reason) => {
            host.log(LogLevel::Warning, &reason);
            ERR
        }
    }
}

/// What the host calls for one command.
#[derive(Clone, Copy)]
pub(crate) struct Callback(CommandFn);

/// Has [`Module::command`] run this row.
pub(crate) const fn callback<M: Module, const ROW: usize>() -> Callback {
    Callback(command::<M, ROW>)
}

/// Registers a command. `flags` are words of the module API.
pub(crate) fn register_command(
    context: &HostContext<'_>,
    name: &str,
    flags: &str,
    (first, last, step): (c_int, c_int, c_int),
    callback: Callback,
) -> bool {
    let (name, flags) = (c_text(name), c_text(flags));
    // SAFETY: a valid context, C strings, which the host copies, and a function of its type.
    let created = unsafe {
        (api().create_command)(
            context.raw(),
            name.as_ptr().cast(),
            callback.0,
            flags.as_ptr().cast(),
            first,
            last,
            step,
        )
    };
    created == OK
}

/// The function that the host calls for a command.
///
/// # Safety
///
/// Only for the host: `ctx` is a valid context and `argv` points to `argc` strings, for as long as
/// the call takes.
unsafe extern "C" fn command<M: Module, const ROW: usize>(
    ctx: *mut Ctx,
    argv: *mut *mut Str,
    argc: c_int,
) -> c_int {
    // SAFETY: what the host promises.
    let (mut host, args) = unsafe { (HostContext::new(ctx), Args::new(argv, argc)) };
    M::command::<ROW>(&mut host, args);
    OK
}

/// Registers [`Module::info`].
pub(crate) fn register_info<M: Module>(context: &HostContext<'_>) {
    unsafe extern "C" fn report<M: Module>(ctx: *mut InfoCtx, _for_crash: c_int) {
        M::info(&mut InfoWriter(ctx));
    }
    // SAFETY: a valid context and a function of its type.
    unsafe { (api().register_info_func)(context.raw(), report::<M>) };
}

/// A reply of INFO being put together.
pub(crate) struct InfoWriter(*mut InfoCtx);

impl InfoWriter {
    /// Begins a section. False when the client did not ask for it.
    pub(crate) fn section(&mut self, name: &CStr) -> bool {
        // SAFETY: a valid context, as only `report` makes one of these, and a C string.
        unsafe { (api().info_section)(self.0, name.as_ptr()) == OK }
    }

    /// Adds a number.
    pub(crate) fn field(&mut self, name: &CStr, value: u64) {
        // SAFETY: as above.
        unsafe { (api().info_field)(self.0, name.as_ptr(), value) };
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, name: &CStr, value: &str) {
        let value = c_text(value);
        // SAFETY: as above; the host copies the text.
        unsafe { (api().info_text)(self.0, name.as_ptr(), value.as_ptr().cast()) };
    }

    /// Adds a line of several fields, those that are written meanwhile.
    pub(crate) fn record(&mut self, name: &str, fields: impl FnOnce(&mut Self)) {
        let name = c_text(name);
        // SAFETY: as above; the host copies the name.
        unsafe { (api().info_begin_record)(self.0, name.as_ptr().cast()) };
        fields(self);
        // SAFETY: as above.
        unsafe { (api().info_end_record)(self.0) };
    }
}
