//! What may be done only while the host loads the module.

use std::ffi::{CStr, c_int};
use std::panic::PanicHookInfo;

use super::api::{api, c_text};
use super::context::{HostContext, LogLevel, log_without_call};
use super::ffi::{
    API_VERSION, OK, OPTION_ASYNC_LOAD, OPTION_ATOMIC_SLOT_MIGRATION, OPTION_IO_ERRORS,
    OPTION_NO_IMPLICIT_SIGNAL,
};

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

/// Tells the host what the module can do: continue after a broken stream, tell which keys it has
/// modified, load while the old data still serve, and have its keys moved slot by slot.
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

/// How much memory there is, in bytes.
pub(crate) struct MemoryInfo {
    /// Of the machine.
    pub(crate) machine: Option<u64>,
    /// The host's `maxmemory`, if it has a limit.
    pub(crate) limit: Option<u64>,
}

/// How much memory there is, as the host says in INFO.
pub(crate) fn memory_info(context: &HostContext<'_>) -> Option<MemoryInfo> {
    let api = api();
    // SAFETY: a valid context and a C string.
    let info = unsafe { (api.get_server_info)(context.raw(), c"memory".as_ptr()) };
    if info.is_null() {
        return None;
    }
    let field = |name: &CStr| {
        let mut error = OK;
        // SAFETY: what the host gave, a C string and a place for an error.
        let bytes = unsafe { (api.server_info_unsigned)(info, name.as_ptr(), &raw mut error) };
        (error == OK && bytes > 0).then_some(bytes)
    };
    let found = MemoryInfo {
        machine: field(c"total_system_memory"),
        limit: field(c"maxmemory"),
    };
    // SAFETY: what the host gave, which is not used hereafter.
    unsafe { (api.free_server_info)(context.raw(), info) };
    Some(found)
}

/// Whether the host is Valkey.
pub(crate) fn is_valkey() -> bool {
    api().valkey
}

/// Makes an ACL category known. False when the host has no categories of modules.
pub(crate) fn add_acl_category(context: &HostContext<'_>, name: &CStr) -> bool {
    let Some(add) = api().add_acl_category else {
        return false;
    };
    // The error that the host already has the category does no harm.
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

/// Has the message of a panic written to the host's log, before the process ends.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        log_without_call(LogLevel::Warning, &panic.to_string());
    }));
}
