//! The host's C types and constants, as far as they are used here.
//!
//! Written from the module API's documentation; the names are Redis's without `RedisModule`.

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_ulong, c_void};

/// A type of the host that is only ever pointed to.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Debug)]
        pub(crate) struct $name {
            _private: [u8; 0],
        }
    )*};
}

opaque! {
    /// What one call of the host into the module is about.
    Ctx;
    /// A string of the host.
    Str;
    /// A key that is open.
    KeyHandle;
    /// A stream of fields, in an RDB file or a payload, or of commands, in a log.
    Io;
    /// A digest being computed.
    Digest;
    /// A registered data type.
    TypeHandle;
    /// A registered command.
    CommandHandle;
    /// A reply of INFO being put together.
    InfoCtx;
    /// A defragmentation in progress.
    DefragCtx;
    /// What INFO says, for a module to read.
    ServerInfo;
}

pub(crate) const OK: c_int = 0;
pub(crate) const ERR: c_int = 1;
pub(crate) const API_VERSION: c_int = 1;

pub(crate) const KEY_READ: c_int = 1;
pub(crate) const KEY_WRITE: c_int = 2;
/// Redis's, from 7.0 on: the time of the last access stays. Older hosts do not look at it.
pub(crate) const KEY_NOTOUCH: c_int = 1 << 16;
pub(crate) const KEYTYPE_EMPTY: c_int = 0;

/// `NOTIFY_GENERIC`, the class of events that is for keys of any type.
pub(crate) const NOTIFY_GENERIC: c_int = 1 << 2;

pub(crate) const CTX_REPLICA: c_int = 1 << 3;
pub(crate) const CTX_REPLICATED: c_int = 1 << 12;
pub(crate) const CTX_LOADING: c_int = 1 << 13;
pub(crate) const CTX_RESP3: c_int = 1 << 22;
pub(crate) const CTX_ASYNC_LOADING: c_int = 1 << 23;

pub(crate) const OPTION_IO_ERRORS: c_int = 1 << 0;
pub(crate) const OPTION_NO_IMPLICIT_SIGNAL: c_int = 1 << 1;
pub(crate) const OPTION_ASYNC_LOAD: c_int = 1 << 2;
/// Valkey's, from 9.0 on.
pub(crate) const OPTION_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

pub(crate) const CONFIG_MEMORY: c_uint = 1 << 7;
/// Redis's, from 8.0 on: the name stands without the module's in front.
pub(crate) const CONFIG_UNPREFIXED: c_uint = 1 << 9;

/// An event of the host and the version of its data.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) version: u64,
}
/// Settings were changed by `CONFIG SET`.
pub(crate) const EVENT_CONFIG: Event = Event { id: 16, version: 1 };
pub(crate) type EventFn = unsafe extern "C" fn(*mut Ctx, Event, u64, *mut c_void);

pub(crate) type CommandFn = unsafe extern "C" fn(*mut Ctx, *mut *mut Str, c_int) -> c_int;
pub(crate) type TimerFn = unsafe extern "C" fn(*mut Ctx, *mut c_void);
pub(crate) type InfoFn = unsafe extern "C" fn(*mut InfoCtx, c_int);
pub(crate) type GetNumber = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_longlong;
pub(crate) type SetNumber =
    unsafe extern "C" fn(*const c_char, c_longlong, *mut c_void, *mut *mut Str) -> c_int;
pub(crate) type GetWord = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;
pub(crate) type SetWord =
    unsafe extern "C" fn(*const c_char, c_int, *mut c_void, *mut *mut Str) -> c_int;
pub(crate) type GetText = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut Str;
pub(crate) type SetText =
    unsafe extern "C" fn(*const c_char, *mut Str, *mut c_void, *mut *mut Str) -> c_int;
pub(crate) type Apply = unsafe extern "C" fn(*mut Ctx, *mut c_void, *mut *mut Str) -> c_int;

/// The version of [`TypeMethods`]: the one of Redis 6.2, which has all that is used here.
pub(crate) const TYPE_METHODS_VERSION: u64 = 3;

/// What the host calls for values of a data type.
#[repr(C)]
pub(crate) struct TypeMethods {
    pub(crate) version: u64,
    pub(crate) rdb_load: unsafe extern "C" fn(*mut Io, c_int) -> *mut c_void,
    pub(crate) rdb_save: unsafe extern "C" fn(*mut Io, *mut c_void),
    pub(crate) aof_rewrite: unsafe extern "C" fn(*mut Io, *mut Str, *mut c_void),
    pub(crate) mem_usage: unsafe extern "C" fn(*const c_void) -> usize,
    pub(crate) digest: unsafe extern "C" fn(*mut Digest, *mut c_void),
    pub(crate) free: unsafe extern "C" fn(*mut c_void),
    pub(crate) aux_load: Option<unsafe extern "C" fn(*mut Io, c_int, c_int) -> c_int>,
    pub(crate) aux_save: Option<unsafe extern "C" fn(*mut Io, c_int)>,
    pub(crate) aux_save_triggers: c_int,
    pub(crate) free_effort: unsafe extern "C" fn(*mut Str, *const c_void) -> usize,
    pub(crate) unlink: Option<unsafe extern "C" fn(*mut Str, *const c_void)>,
    pub(crate) copy: unsafe extern "C" fn(*mut Str, *mut Str, *const c_void) -> *mut c_void,
    pub(crate) defrag: unsafe extern "C" fn(*mut DefragCtx, *mut Str, *mut *mut c_void) -> c_int,
}

/// The sizes of the structures of [`CommandInfo`], by which a host of any version finds its way.
#[repr(C)]
pub(crate) struct CommandInfoVersion {
    pub(crate) version: c_int,
    pub(crate) sizeof_history: usize,
    pub(crate) sizeof_key_spec: usize,
    pub(crate) sizeof_arg: usize,
}

#[repr(C)]
pub(crate) struct CommandHistory {
    pub(crate) since: *const c_char,
    pub(crate) changes: *const c_char,
}

pub(crate) const ARG_STRING: c_int = 0;
pub(crate) const ARG_INTEGER: c_int = 1;
pub(crate) const ARG_DOUBLE: c_int = 2;
pub(crate) const ARG_KEY: c_int = 3;
pub(crate) const ARG_PURE_TOKEN: c_int = 6;
pub(crate) const ARG_ONEOF: c_int = 7;

pub(crate) const ARG_FLAG_OPTIONAL: c_int = 1 << 0;
pub(crate) const ARG_FLAG_MULTIPLE: c_int = 1 << 1;

/// One argument. A name that is null ends a list of them.
#[repr(C)]
#[derive(Default)]
pub(crate) struct CommandArg {
    pub(crate) name: *const c_char,
    pub(crate) kind: c_int,
    pub(crate) key_spec_index: c_int,
    pub(crate) token: *const c_char,
    pub(crate) summary: *const c_char,
    pub(crate) since: *const c_char,
    pub(crate) flags: c_int,
    pub(crate) deprecated_since: *const c_char,
    pub(crate) subargs: *mut CommandArg,
    pub(crate) display_text: *const c_char,
}

pub(crate) const BEGIN_INVALID: c_int = 0;
pub(crate) const BEGIN_INDEX: c_int = 2;
pub(crate) const FIND_RANGE: c_int = 2;

/// A keyword to search for, as far as its size goes; of the union only `index` is used.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Keyword {
    pub(crate) keyword: *const c_char,
    pub(crate) start_from: c_int,
}

#[repr(C)]
pub(crate) union BeginSearch {
    pub(crate) index: c_int,
    pub(crate) keyword: Keyword,
}

/// A range of keys. The other form of the union has the same three numbers.
#[repr(C)]
pub(crate) struct FindRange {
    pub(crate) last_key: c_int,
    pub(crate) key_step: c_int,
    pub(crate) limit: c_int,
}

/// The positions of keys. A list ends with a value whose `begin_search` is [`BEGIN_INVALID`].
#[repr(C)]
pub(crate) struct KeySpec {
    pub(crate) notes: *const c_char,
    pub(crate) flags: u64,
    pub(crate) begin_search: c_int,
    pub(crate) begin: BeginSearch,
    pub(crate) find_keys: c_int,
    pub(crate) find: FindRange,
}

#[repr(C)]
pub(crate) struct CommandInfo {
    pub(crate) version: *const CommandInfoVersion,
    pub(crate) summary: *const c_char,
    pub(crate) complexity: *const c_char,
    pub(crate) since: *const c_char,
    pub(crate) history: *mut CommandHistory,
    pub(crate) tips: *const c_char,
    pub(crate) arity: c_int,
    pub(crate) key_specs: *mut KeySpec,
    pub(crate) args: *mut CommandArg,
}

pub(crate) type Cursor = c_ulong;
