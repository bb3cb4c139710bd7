//! One call of the host: its arguments, what is answered, and what is passed on.

use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::slice;

use super::api::{api, c_text};
use super::ffi::{
    CTX_ASYNC_LOADING, CTX_LOADING, CTX_REPLICA, CTX_REPLICATED, CTX_RESP3, Ctx, NOTIFY_GENERIC,
    OK, Str,
};

/// A string of the host that is neither changed nor freed as long as a call takes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct HostStr<'a> {
    raw: NonNull<Str>,
    call: PhantomData<&'a ()>,
}

impl<'a> HostStr<'a> {
    /// Its bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        // SAFETY: the string lives during `'a`.
        unsafe { bytes_of(self.raw.as_ptr()) }
    }

    pub(super) fn raw(self) -> *mut Str {
        self.raw.as_ptr()
    }
}

/// The bytes of a string.
///
/// # Safety
///
/// `text` is a string of the host that is neither changed nor freed during `'a`.
pub(super) unsafe fn bytes_of<'a>(text: *const Str) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: a string of the host, and a place for its length.
    let start = unsafe { (api().string_ptr_len)(text, &raw mut len) };
    if start.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the host answers where the string's bytes are and how many.
    unsafe { slice::from_raw_parts(start.cast(), len) }
}

/// The arguments of a call, the command's name first.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a>(&'a [HostStr<'a>]);

impl<'a> Args<'a> {
    /// # Safety
    ///
    /// `argv` points to `argc` strings of the host; neither changes during `'a`.
    pub(super) unsafe fn new(argv: *mut *mut Str, argc: c_int) -> Self {
        let count = usize::try_from(argc).unwrap_or(0);
        if argv.is_null() || count == 0 {
            return Args(&[]);
        }
        // SAFETY: what the caller promises; no argument of the host is null.
        Args(unsafe { slice::from_raw_parts(argv.cast(), count) })
    }

    /// One of them.
    pub(crate) fn get(self, at: usize) -> Option<HostStr<'a>> {
        self.0.get(at).copied()
    }

    /// All of them, as bytes.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().map(|text| text.bytes())
    }
}

/// A call of the host, or the time while it loads the module.
pub(crate) struct HostContext<'a>(Call<'a>);

/// The caller of a command, and the receiver of its answers and changes, also while a key is open.
/// Questions about the caller cost the host time, so ask only when it matters. The host takes an
/// array as its length and then each element.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    raw: *mut Ctx,
    call: PhantomData<&'a ()>,
}

/// A key of a database, as a call names it.
pub(crate) struct Place<'a> {
    pub(crate) call: Call<'a>,
    pub(crate) db: c_int,
    pub(crate) key: &'a [u8],
}

impl<'a> Call<'a> {
    /// The place of a key in the database that it works on.
    pub(crate) fn place(self, key: HostStr<'a>) -> Place<'a> {
        Place {
            call: self,
            // SAFETY: a valid context.
            db: unsafe { (api().selected_db)(self.raw()) },
            key: key.bytes(),
        }
    }
}

impl Call<'_> {
    pub(super) fn raw(self) -> *mut Ctx {
        self.raw
    }

    fn flags(self) -> c_int {
        // SAFETY: a context that is valid during the call.
        unsafe { (api().get_context_flags)(self.raw()) }
    }

    /// Whether it speaks RESP3.
    pub(crate) fn speaks_resp3(self) -> bool {
        self.flags() & CTX_RESP3 != 0
    }

    /// Whether it must be obeyed, as what it says was accepted before: a primary or a log.
    pub(crate) fn must_be_obeyed(self) -> bool {
        // SAFETY: a context that is valid during the call.
        let must_obey = |ask: unsafe extern "C" fn(_) -> _| unsafe { ask(self.raw()) } != 0;
        self.flags() & (CTX_REPLICATED | CTX_LOADING | CTX_ASYNC_LOADING) != 0
            || api().must_obey_client.is_some_and(must_obey)
    }

    /// Passes the command on as it came, to replicas and to the log.
    pub(crate) fn replicate_verbatim(self) {
        // SAFETY: a valid context.
        unsafe { (api().replicate_verbatim)(self.raw()) };
    }

    /// Passes another command on. False when the host refuses it.
    pub(crate) fn replicate(self, command: &[&[u8]]) -> bool {
        let Some((name, args)) = command.split_first() else {
            return false;
        };
        let mut name = name.to_vec();
        name.push(0);
        let owned: Vec<OwnedStr> = args.iter().map(|arg| OwnedStr::new(arg)).collect();
        let mut argv: Vec<*mut Str> = owned.iter().map(|arg| arg.0).collect();
        // SAFETY: a valid context, a C string, and for `v` a vector of strings with its length. The
        // host copies what it needs.
        let result = unsafe {
            (api().replicate)(
                self.raw(),
                name.as_ptr().cast(),
                c"v".as_ptr(),
                argv.as_mut_ptr(),
                argv.len(),
            )
        };
        result == OK
    }
}

impl<'a> HostContext<'a> {
    /// # Safety
    ///
    /// `raw` is a context of the host that is valid during `'a`.
    pub(super) unsafe fn new(raw: *mut Ctx) -> Self {
        let call = PhantomData;
        HostContext(Call { raw, call })
    }

    pub(super) fn raw(&self) -> *mut Ctx {
        self.0.raw
    }

    /// What may be used while a key is open.
    pub(crate) fn call(&self) -> Call<'a> {
        self.0
    }

    /// Tells those who WATCH or cache the key that it may have changed.
    pub(crate) fn signal_modified(&mut self, key: HostStr<'_>) {
        // SAFETY: a valid context and a string of the host.
        unsafe { (api().signal_modified_key)(self.raw(), key.raw()) };
    }

    /// Publishes a keyspace event of the class `g`.
    pub(crate) fn notify(&mut self, event: &CStr, key: HostStr<'_>) {
        let api = api();
        // SAFETY: a valid context, a C string and a string of the host.
        unsafe {
            (api.notify_keyspace_event)(self.raw(), NOTIFY_GENERIC, event.as_ptr(), key.raw());
        }
    }

    /// Selects the database of all that follows; false when there is no such database.
    pub(crate) fn select(&mut self, db: c_int) -> bool {
        // SAFETY: a valid context.
        unsafe { (api().select_db)(self.raw(), db) == OK }
    }

    /// Writes a line to the host's log.
    pub(crate) fn log(&self, level: LogLevel, line: &str) {
        // SAFETY: a valid context.
        unsafe { log(self.raw(), level, line) };
    }
}

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LogLevel {
    Notice,
    Warning,
}

impl LogLevel {
    pub(super) fn name(self) -> &'static CStr {
        match self {
            LogLevel::Notice => c"notice",
            LogLevel::Warning => c"warning",
        }
    }
}

/// Writes a line to the host's log.
///
/// # Safety
///
/// `ctx` is a valid context, or null.
unsafe fn log(ctx: *mut Ctx, level: LogLevel, line: &str) {
    let line = c_text(line);
    // SAFETY: a context or null, and C strings; the format takes the one that follows.
    unsafe {
        (api().log)(
            ctx,
            level.name().as_ptr(),
            c"%s".as_ptr(),
            line.as_ptr().cast::<c_void>(),
        );
    }
}

/// Writes a line to the host's log where there is no call.
pub(crate) fn log_without_call(level: LogLevel, line: &str) {
    // SAFETY: the host logs without a context, too.
    unsafe { log(null_mut(), level, line) };
}

/// Whether changes come from clients now: the host is no replica, and loads nothing. For callbacks
/// without a call.
pub(crate) fn clients_decide() -> bool {
    // SAFETY: without a context the host says what is true of itself.
    let flags = unsafe { (api().get_context_flags)(null_mut()) };
    flags & (CTX_REPLICA | CTX_LOADING | CTX_ASYNC_LOADING) == 0
}

/// Whether the host may change data of its own accord now: it decides itself what changes, and does
/// not hold back what goes to its replicas.
pub(crate) fn may_change_data() -> bool {
    let waits = api().avoid_replica_traffic;
    // SAFETY: a plain question.
    clients_decide() && waits.is_none_or(|waits| unsafe { waits() } == 0)
}

/// Whether the host uses more memory than it may.
pub(crate) fn is_over_memory_limit() -> bool {
    // SAFETY: a plain question.
    unsafe { (api().used_memory_ratio)() > 1.0 }
}

/// A string of the host that is ours.
pub(crate) struct OwnedStr(pub(super) *mut Str);

impl OwnedStr {
    /// A copy of these bytes.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        // SAFETY: no context is allowed; the host copies the bytes.
        OwnedStr(unsafe { (api().create_string)(null_mut(), bytes.as_ptr().cast(), bytes.len()) })
    }

    /// The string, to name a key by.
    pub(crate) fn lent(&self) -> Option<HostStr<'_>> {
        let (raw, call) = (NonNull::new(self.0)?, PhantomData);
        Some(HostStr { raw, call })
    }

    /// Gives it to the host, which will free it.
    pub(super) fn into_raw(self) -> *mut Str {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }
}

impl Drop for OwnedStr {
    fn drop(&mut self) {
        // SAFETY: it came from `create_string` without a context, and nobody else frees it.
        unsafe { (api().free_string)(null_mut(), self.0) };
    }
}

// SAFETY: a string of the host is memory without a tie to a thread, and this is its one owner.
unsafe impl Send for OwnedStr {}
