//! The host's functions, looked up by name when the module is loaded.
//!
//! A host hands over one function that finds the others. Those that every host since Redis 6.2 has
//! must be there; the others are `None` where the host is too old, and are done without.

use std::ffi::{CStr, c_char, c_double, c_float, c_int, c_long, c_longlong, c_uint, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use super::ffi::{
    Apply, CommandFn, CommandHandle, CommandInfo, Ctx, Cursor, DefragCtx, Digest, Event, EventFn,
    GetNumber, GetText, GetWord, InfoCtx, InfoFn, Io, KeyHandle, ServerInfo, SetNumber, SetText,
    SetWord, Str, TimerFn, TypeHandle, TypeMethods,
};

/// The function that finds the others: it writes the function of that name where the second
/// argument points.
type GetApi = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;

/// Declares [`Api`] and the look-up of every function of it.
macro_rules! api {
    (
        required {
            $($name:ident: $symbol:literal, fn($($arg:ty),*; $($rest:tt)*) $(-> $out:ty)?;)*
        }
        optional {
            $($opt:ident: $opt_symbol:literal, fn($($opt_arg:ty),*) $(-> $opt_out:ty)?;)*
        }
    ) => {
        /// The functions of the host.
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($arg,)* $($rest)*) $(-> $out)?,)*
            $(pub(crate) $opt: Option<unsafe extern "C" fn($($opt_arg),*) $(-> $opt_out)?>,)*
            /// Whether the host is Valkey.
            pub(crate) valkey: bool,
        }

        impl Api {
            /// # Safety
            ///
            /// `get` is the host's look-up function.
            unsafe fn look_up(get: GetApi) -> Option<Api> {
                Some(Api {
                    // SAFETY: a function is a pointer that is not null; each has the name and the
                    // type of the host's.
                    $($name: unsafe { find(get, concat!("RedisModule_", $symbol, "\0")) }?,)*
                    // SAFETY: as above.
                    $($opt: unsafe { find(get, concat!("RedisModule_", $opt_symbol, "\0")) },)*
                    // SAFETY: as above, and it is not called.
                    valkey: unsafe { find::<NonNull<c_void>>(get, "ValkeyModule_Alloc\0") }
                        .is_some(),
                })
            }
        }
    };
}

api! {
    required {
        alloc: "Alloc", fn(usize;) -> *mut c_void;
        calloc: "Calloc", fn(usize, usize;) -> *mut c_void;
        realloc: "Realloc", fn(*mut c_void, usize;) -> *mut c_void;
        free: "Free", fn(*mut c_void;);
        set_module_attribs: "SetModuleAttribs", fn(*mut Ctx, *const c_char, c_int, c_int;);
        is_module_name_busy: "IsModuleNameBusy", fn(*const c_char;) -> c_int;
        set_module_options: "SetModuleOptions", fn(*mut Ctx, c_int;);
        create_command: "CreateCommand", fn(
            *mut Ctx, *const c_char, CommandFn, *const c_char, c_int, c_int, c_int;
        ) -> c_int;
        create_data_type: "CreateDataType", fn(
            *mut Ctx, *const c_char, c_int, *const TypeMethods;
        ) -> *mut TypeHandle;
        register_info_func: "RegisterInfoFunc", fn(*mut Ctx, InfoFn;) -> c_int;
        get_context_flags: "GetContextFlags", fn(*mut Ctx;) -> c_int;
        get_server_info: "GetServerInfo", fn(*mut Ctx, *const c_char;) -> *mut ServerInfo;
        free_server_info: "FreeServerInfo", fn(*mut Ctx, *mut ServerInfo;);
        server_info_unsigned: "ServerInfoGetFieldUnsigned", fn(
            *mut ServerInfo, *const c_char, *mut c_int;
        ) -> u64;
        used_memory_ratio: "GetUsedMemoryRatio", fn(;) -> c_float;
        selected_db: "GetSelectedDb", fn(*mut Ctx;) -> c_int;
        select_db: "SelectDb", fn(*mut Ctx, c_int;) -> c_int;
        create_timer: "CreateTimer", fn(*mut Ctx, c_longlong, TimerFn, *mut c_void;) -> u64;
        log: "Log", fn(*mut Ctx, *const c_char, *const c_char; ...);

        string_ptr_len: "StringPtrLen", fn(*const Str, *mut usize;) -> *const c_char;
        create_string: "CreateString", fn(*mut Ctx, *const c_char, usize;) -> *mut Str;
        free_string: "FreeString", fn(*mut Ctx, *mut Str;);

        reply_integer: "ReplyWithLongLong", fn(*mut Ctx, c_longlong;) -> c_int;
        reply_error: "ReplyWithError", fn(*mut Ctx, *const c_char;) -> c_int;
        reply_simple: "ReplyWithSimpleString", fn(*mut Ctx, *const c_char;) -> c_int;
        reply_array: "ReplyWithArray", fn(*mut Ctx, c_long;) -> c_int;
        reply_null_array: "ReplyWithNullArray", fn(*mut Ctx;) -> c_int;
        reply_bulk: "ReplyWithStringBuffer", fn(*mut Ctx, *const c_char, usize;) -> c_int;
        reply_verbatim: "ReplyWithVerbatimString", fn(*mut Ctx, *const c_char, usize;) -> c_int;
        reply_null: "ReplyWithNull", fn(*mut Ctx;) -> c_int;
        reply_double: "ReplyWithDouble", fn(*mut Ctx, c_double;) -> c_int;

        open_key: "OpenKey", fn(*mut Ctx, *mut Str, c_int;) -> *mut KeyHandle;
        close_key: "CloseKey", fn(*mut KeyHandle;);
        key_type: "KeyType", fn(*mut KeyHandle;) -> c_int;
        value_type: "ModuleTypeGetType", fn(*mut KeyHandle;) -> *mut TypeHandle;
        get_value: "ModuleTypeGetValue", fn(*mut KeyHandle;) -> *mut c_void;
        set_value: "ModuleTypeSetValue", fn(*mut KeyHandle, *mut TypeHandle, *mut c_void;) -> c_int;
        signal_modified_key: "SignalModifiedKey", fn(*mut Ctx, *mut Str;) -> c_int;
        notify_keyspace_event: "NotifyKeyspaceEvent", fn(
            *mut Ctx, c_int, *const c_char, *mut Str;
        ) -> c_int;
        replicate: "Replicate", fn(*mut Ctx, *const c_char, *const c_char; ...) -> c_int;
        replicate_verbatim: "ReplicateVerbatim", fn(*mut Ctx;) -> c_int;

        is_io_error: "IsIOError", fn(*mut Io;) -> c_int;
        save_unsigned: "SaveUnsigned", fn(*mut Io, u64;);
        load_unsigned: "LoadUnsigned", fn(*mut Io;) -> u64;
        save_double: "SaveDouble", fn(*mut Io, c_double;);
        load_double: "LoadDouble", fn(*mut Io;) -> c_double;
        save_bytes: "SaveStringBuffer", fn(*mut Io, *const c_char, usize;);
        load_bytes: "LoadStringBuffer", fn(*mut Io, *mut usize;) -> *mut c_char;
        io_context: "GetContextFromIO", fn(*mut Io;) -> *mut Ctx;
        io_key: "GetKeyNameFromIO", fn(*mut Io;) -> *const Str;
        log_io_error: "LogIOError", fn(*mut Io, *const c_char, *const c_char; ...);
        emit_aof: "EmitAOF", fn(*mut Io, *const c_char, *const c_char; ...);

        digest_bytes: "DigestAddStringBuffer", fn(*mut Digest, *const c_char, usize;);
        digest_end: "DigestEndSequence", fn(*mut Digest;);

        info_section: "InfoAddSection", fn(*mut InfoCtx, *const c_char;) -> c_int;
        info_field: "InfoAddFieldULongLong", fn(*mut InfoCtx, *const c_char, u64;) -> c_int;
        info_text: "InfoAddFieldCString", fn(*mut InfoCtx, *const c_char, *const c_char;) -> c_int;
        info_begin_record: "InfoBeginDictField", fn(*mut InfoCtx, *const c_char;) -> c_int;
        info_end_record: "InfoEndDictField", fn(*mut InfoCtx;) -> c_int;

        defrag_alloc: "DefragAlloc", fn(*mut DefragCtx, *mut c_void;) -> *mut c_void;
        defrag_should_stop: "DefragShouldStop", fn(*mut DefragCtx;) -> c_int;
        defrag_cursor_set: "DefragCursorSet", fn(*mut DefragCtx, Cursor;) -> c_int;
        defrag_cursor_get: "DefragCursorGet", fn(*mut DefragCtx, *mut Cursor;) -> c_int;
    }
    optional {
        // Some of Redis 6.2.
        avoid_replica_traffic: "AvoidReplicaTraffic", fn() -> c_int;
        // Redis 7.0 on.
        io_db: "GetDbIdFromIO", fn(*mut Io) -> c_int;
        try_alloc: "TryAlloc", fn(usize) -> *mut c_void;
        reply_bool: "ReplyWithBool", fn(*mut Ctx, c_int) -> c_int;
        reply_map: "ReplyWithMap", fn(*mut Ctx, c_long) -> c_int;
        reply_set: "ReplyWithSet", fn(*mut Ctx, c_long) -> c_int;
        reply_big_number: "ReplyWithBigNumber", fn(*mut Ctx, *const c_char, usize) -> c_int;
        get_command: "GetCommand", fn(*mut Ctx, *const c_char) -> *mut CommandHandle;
        set_command_info: "SetCommandInfo", fn(*mut CommandHandle, *const CommandInfo) -> c_int;
        register_numeric_config: "RegisterNumericConfig", fn(
            *mut Ctx, *const c_char, c_longlong, c_uint, c_longlong, c_longlong,
            GetNumber, SetNumber, Option<Apply>, *mut c_void
        ) -> c_int;
        register_string_config: "RegisterStringConfig", fn(
            *mut Ctx, *const c_char, *const c_char, c_uint,
            GetText, SetText, Option<Apply>, *mut c_void
        ) -> c_int;
        register_enum_config: "RegisterEnumConfig", fn(
            *mut Ctx, *const c_char, c_int, c_uint, *mut *const c_char, *const c_int, c_int,
            GetWord, SetWord, Option<Apply>, *mut c_void
        ) -> c_int;
        load_configs: "LoadConfigs", fn(*mut Ctx) -> c_int;
        // Of Redis 6.0, where it has no event of settings.
        subscribe: "SubscribeToServerEvent", fn(*mut Ctx, Event, EventFn) -> c_int;
        // Redis 7.2 on.
        set_command_acl: "SetCommandACLCategories", fn(*mut CommandHandle, *const c_char) -> c_int;
        get_module_options_all: "GetModuleOptionsAll", fn() -> c_int;
        // Redis 7.4 and Valkey 8 on.
        try_calloc: "TryCalloc", fn(usize, usize) -> *mut c_void;
        try_realloc: "TryRealloc", fn(*mut c_void, usize) -> *mut c_void;
        add_acl_category: "AddACLCategory", fn(*mut Ctx, *const c_char) -> c_int;
        // Valkey 8.1 on.
        must_obey_client: "MustObeyClient", fn(*mut Ctx) -> c_int;
    }
}

/// # Safety
///
/// `get` is the host's look-up function, `name` ends with a zero byte, and `T` is a pointer that is
/// not null, to what the host has under that name.
unsafe fn find<T>(get: GetApi, name: &'static str) -> Option<T> {
    const { assert!(size_of::<Option<T>>() == size_of::<*mut c_void>()) };
    let mut found: Option<T> = None;
    // SAFETY: what the caller promises: the host writes one pointer. A function that is not there
    // leaves `found` as it is, so the answer says nothing more.
    unsafe { get(name.as_ptr().cast(), (&raw mut found).cast()) };
    found
}

static API: OnceLock<Api> = OnceLock::new();

/// The host's functions; `None` outside of a host, as in unit tests.
#[inline]
pub(super) fn host() -> Option<&'static Api> {
    API.get()
}

/// The host's functions, for callbacks of the host.
#[inline]
#[expect(
    clippy::expect_used,
    reason = "the host calls nothing before the module is loaded, which sets them"
)]
pub(super) fn api() -> &'static Api {
    API.get().expect("the module was loaded by a host")
}

/// Looks the functions up. False when the host lacks one that must be there.
///
/// Nothing may have been allocated before: from here on the host allocates and frees.
///
/// # Safety
///
/// `ctx` is the context that a host passes to the function that loads a module.
pub(super) unsafe fn initialise(ctx: *mut Ctx) -> bool {
    if API.get().is_some() {
        // Loaded before, by the same host.
        return true;
    }
    // SAFETY: the first word of a context is the look-up function.
    let get = unsafe { *ctx.cast::<Option<GetApi>>() };
    // SAFETY: that function is the host's.
    let found = get.and_then(|get| unsafe { Api::look_up(get) });
    found.is_some_and(|api| API.set(api).is_ok())
}

/// Text for a host, which ends it at the first zero byte.
pub(super) fn c_text(text: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.bytes().take_while(|byte| *byte != 0).collect();
    bytes.push(0);
    bytes
}

/// The bytes of a C string of the host.
///
/// # Safety
///
/// `text` is null or a C string that outlives `'a`.
pub(super) unsafe fn c_str<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
    // SAFETY: what the caller promises.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}
