//! Loading: the symbol that a host looks for, and what may be done only while it loads.

use std::ffi::{CStr, c_int};
use std::panic::PanicHookInfo;
use std::ptr::null_mut;

use super::api::{self, api, c_text};
use super::context::{Args, HostContext, LogLevel, command, log};
use super::ffi::{
    API_VERSION, Ctx, ERR, InfoCtx, OK, OPTION_ASYNC_LOAD, OPTION_ATOMIC_SLOT_MIGRATION,
    OPTION_IO_ERRORS, OPTION_NO_IMPLICIT_SIGNAL, Str,
};

/// What the host calls to load the module. Redis looks for this name, and Valkey too.
///
/// # Safety
///
/// Only for the host: `ctx` is a valid context and `argv` points to `argc` strings, for as long as
/// the call takes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut Ctx,
    argv: *mut *mut Str,
    argc: c_int,
) -> c_int {
    // SAFETY: the context is the one that a host loads with, and nothing was allocated yet.
    if !unsafe { api::initialise(ctx) } {
        return ERR;
    }
    // SAFETY: what the host promises.
    let (context, args) = unsafe { (HostContext::new(ctx), Args::new(argv, argc)) };
    let Some(mut context) = context else {
        return ERR;
    };
    match crate::load::load(&mut context, args) {
        Ok(()) => OK,
        Err(reason) => {
            context.log(LogLevel::Warning, &reason);
            ERR
        }
    }
}

/// Takes the name and says which version this is. False when another module has the name.
pub(crate) fn introduce(context: &HostContext<'_>, name: &CStr, version: c_int) -> bool {
    let api = api();
    // SAFETY: a C string.
    if unsafe { (api.is_module_name_busy)(name.as_ptr()) } != 0 {
        return false;
    }
    // SAFETY: a valid context and a C string, which the host copies.
    unsafe { (api.set_module_attribs)(context.raw(), name.as_ptr(), version, API_VERSION) };
    true
}

/// Tells the host what the module can do: go on after a stream that breaks off, say by itself which
/// keys it modified, load while the old data still serve, and have its keys moved slot by slot.
pub(crate) fn declare_options(context: &HostContext<'_>) {
    let mut options = OPTION_IO_ERRORS | OPTION_NO_IMPLICIT_SIGNAL | OPTION_ASYNC_LOAD;
    if api().valkey {
        // The same bit has another meaning elsewhere, or none.
        options |= OPTION_ATOMIC_SLOT_MIGRATION;
    }
    if let Some(all) = api().get_module_options_all {
        // SAFETY: a plain question.
        options &= unsafe { all() };
    }
    // SAFETY: a valid context, and options that the host knows; where it cannot be asked it looks
    // only at those it knows.
    unsafe { (api().set_module_options)(context.raw(), options) };
}

/// The version of Redis that the host is, or is compatible with, as `0x00MMmmpp`, if it says so.
pub(crate) fn server_version() -> Option<c_int> {
    // SAFETY: a plain question.
    api().get_server_version.map(|version| unsafe { version() })
}

/// How many bytes of memory the machine has, as the host says in INFO.
pub(crate) fn machine_memory(context: &HostContext<'_>) -> Option<u64> {
    let api = api();
    // SAFETY: a valid context and a C string.
    let info = unsafe { (api.get_server_info)(context.raw(), c"memory".as_ptr()) };
    if info.is_null() {
        return None;
    }
    let mut error = OK;
    let field = c"total_system_memory".as_ptr();
    // SAFETY: what the host gave, a C string and a place for an error.
    let bytes = unsafe { (api.server_info_unsigned)(info, field, &raw mut error) };
    // SAFETY: what the host gave, which is not used hereafter.
    unsafe { (api.free_server_info)(context.raw(), info) };
    (error == OK && bytes > 0).then_some(bytes)
}

/// Whether the host is Valkey.
pub(crate) fn is_valkey() -> bool {
    api().valkey
}

/// Registers a command that is run by [`crate::command::run`]. `flags` are words of the module API.
pub(crate) fn register_command(
    context: &HostContext<'_>,
    name: &str,
    flags: &str,
    (first, last, step): (c_int, c_int, c_int),
) -> bool {
    let (name, flags) = (c_text(name), c_text(flags));
    // SAFETY: a valid context, C strings, which the host copies, and a function of its type.
    let created = unsafe {
        (api().create_command)(
            context.raw(),
            name.as_ptr().cast(),
            command,
            flags.as_ptr().cast(),
            first,
            last,
            step,
        )
    };
    created == OK
}

/// Makes an ACL category known. False when the host has no categories of modules.
pub(crate) fn add_acl_category(context: &HostContext<'_>, name: &CStr) -> bool {
    let Some(add) = api().add_acl_category else {
        return false;
    };
    // It fails where the host has the category already, which is as well.
    // SAFETY: a valid context and a C string, which the host copies.
    unsafe { add(context.raw(), name.as_ptr()) };
    true
}

/// Puts a command into ACL categories, words without their `@`, if the host has that.
pub(crate) fn set_acl_categories(
    context: &HostContext<'_>,
    command: &str,
    categories: &str,
) -> bool {
    let (Some(get), Some(set)) = (api().get_command, api().set_command_acl) else {
        return true;
    };
    let (command, categories) = (c_text(command), c_text(categories));
    // SAFETY: a valid context and a C string.
    let handle = unsafe { get(context.raw(), command.as_ptr().cast()) };
    // SAFETY: a command of this module, and a C string.
    !handle.is_null() && unsafe { set(handle, categories.as_ptr().cast()) } == OK
}

/// Registers [`crate::info::report`] for INFO.
pub(crate) fn register_info(context: &HostContext<'_>) {
    unsafe extern "C" fn report(ctx: *mut InfoCtx, _for_crash: c_int) {
        crate::info::report(&mut InfoWriter(ctx));
    }
    // SAFETY: a valid context and a function of its type.
    unsafe { (api().register_info_func)(context.raw(), report) };
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
}

/// Has the message of a panic written to the host's log, before the process ends.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        // SAFETY: the host logs without a context, too.
        unsafe { log(null_mut(), LogLevel::Warning, &panic.to_string()) };
    }));
}
