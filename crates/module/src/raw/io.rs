//! The streams that the callbacks of a data type get: fields in and out, commands, a digest, and a
//! defragmentation. Each is made for one callback, which only borrows it, of pointers that the host
//! keeps valid meanwhile.

use std::convert::Infallible;
use std::ffi::c_void;

use everbloom_commands::format::value::{FieldReader, FieldWriter};
use thiserror::Error;

use super::api::{api, c_text};
use super::context::{HostContext, LogLevel, Place, bytes_of};
use super::ffi::{Cursor, DefragCtx, Digest, Io, OK, Str};

/// The fields end too early, or the next one is of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a field is missing or of another type")]
pub(crate) struct FieldError;

/// Fields on their way in. The host says that it handles errors, so a field that is not there is
/// an error here and does not end the host.
pub(crate) struct Loader(pub(super) *mut Io);

impl Loader {
    fn checked<T>(&self, value: T) -> Result<T, FieldError> {
        // SAFETY: a valid stream.
        let failed = unsafe { (api().is_io_error)(self.0) } != 0;
        if failed { Err(FieldError) } else { Ok(value) }
    }

    /// The database and the key of what is loaded, where the host says them.
    pub(crate) fn place(&self) -> Option<Place<'_>> {
        let api = api();
        let db = api.io_db?;
        // SAFETY: a valid stream.
        let (db, key) = unsafe { (db(self.0), (api.io_key)(self.0)) };
        if key.is_null() || db < 0 {
            return None;
        }
        // SAFETY: the name and the context live as long as the stream.
        let (key, context) = unsafe { (bytes_of(key), (api.io_context)(self.0)) };
        // SAFETY: as above.
        let host = unsafe { HostContext::new(context) };
        Some(Place {
            call: host.call(),
            db,
            key,
        })
    }

    /// Writes a line to the host's log, with the name of what is loaded.
    pub(crate) fn log(&self, line: &str) {
        let line = c_text(line);
        // SAFETY: a valid stream and C strings; the format takes the one that follows.
        unsafe {
            (api().log_io_error)(
                self.0,
                LogLevel::Warning.name().as_ptr(),
                c"%s".as_ptr(),
                line.as_ptr().cast::<c_void>(),
            );
        }
    }
}

impl FieldReader for Loader {
    type Error = FieldError;

    fn unsigned(&mut self) -> Result<u64, FieldError> {
        // SAFETY: a valid stream.
        let value = unsafe { (api().load_unsigned)(self.0) };
        self.checked(value)
    }

    fn double(&mut self) -> Result<f64, FieldError> {
        // SAFETY: a valid stream.
        let value = unsafe { (api().load_double)(self.0) };
        self.checked(value)
    }

    /// The host allocates the whole string and reads it. The caller compares its length with
    /// `expected`.
    fn bytes(&mut self, _expected: u64) -> Result<Vec<u8>, FieldError> {
        let mut len = 0;
        // SAFETY: a valid stream, and a place for the length.
        let start = unsafe { (api().load_bytes)(self.0, &raw mut len) };
        if start.is_null() {
            return Err(FieldError);
        }
        if len == 0 {
            // SAFETY: the host allocated it, and nobody else frees it.
            unsafe { (api().free)(start.cast()) };
            return self.checked(Vec::new());
        }
        // SAFETY: the host allocated `len` bytes and filled them; the global allocator is the
        // host's, which frees a block whose alignment is 1 as it is.
        let bytes = unsafe { Vec::from_raw_parts(start.cast::<u8>(), len, len) };
        self.checked(bytes)
    }
}

/// Writes fields. The host does not report write errors.
pub(crate) struct Saver(pub(super) *mut Io);

impl FieldWriter for Saver {
    type Error = Infallible;

    fn unsigned(&mut self, value: u64) -> Result<(), Infallible> {
        // SAFETY: a valid stream.
        unsafe { (api().save_unsigned)(self.0, value) };
        Ok(())
    }

    fn double(&mut self, value: f64) -> Result<(), Infallible> {
        // SAFETY: a valid stream.
        unsafe { (api().save_double)(self.0, value) };
        Ok(())
    }

    fn bytes(&mut self, value: &[u8]) -> Result<(), Infallible> {
        // SAFETY: a valid stream, and bytes with their length.
        unsafe { (api().save_bytes)(self.0, value.as_ptr().cast(), value.len()) };
        Ok(())
    }
}

/// Writes commands on one key into a log that is rewritten.
pub(crate) struct Rewriter {
    pub(super) io: *mut Io,
    pub(super) key: *mut Str,
}

impl Rewriter {
    /// Writes `command key number bytes`.
    pub(crate) fn emit(&mut self, command: &str, number: i64, bytes: &[u8]) {
        let command = c_text(command);
        // SAFETY: a valid stream and a C string; `s`, `l` and `b` take a string of the host, a
        // number, and bytes with their length.
        unsafe {
            (api().emit_aof)(
                self.io,
                command.as_ptr().cast(),
                c"slb".as_ptr(),
                self.key,
                number,
                bytes.as_ptr().cast::<c_void>(),
                bytes.len(),
            );
        }
    }
}

/// A digest being computed.
pub(crate) struct Digester(pub(super) *mut Digest);

impl Digester {
    /// Adds bytes to what is digested, in the order of the calls.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        // SAFETY: a valid digest, and bytes with their length.
        unsafe { (api().digest_bytes)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Ends a row of what was added in order.
    pub(crate) fn end(&mut self) {
        // SAFETY: a valid digest.
        unsafe { (api().digest_end)(self.0) };
    }
}

/// A defragmentation in progress.
pub(crate) struct Defragmenter {
    pub(super) ctx: *mut DefragCtx,
    pub(super) moved: u64,
    pub(super) kept: u64,
}

impl Defragmenter {
    /// How many blocks were moved, and how many the host would not move.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.moved, self.kept)
    }

    /// Where the last call stopped, as it told [`stop_at`](Self::stop_at); 0 at the start.
    pub(crate) fn cursor(&self) -> u64 {
        let mut cursor: Cursor = 0;
        // SAFETY: a valid defragmentation, and a place for the cursor.
        let found = unsafe { (api().defrag_cursor_get)(self.ctx, &raw mut cursor) };
        if found == OK { cursor } else { 0 }
    }

    /// Whether the time for this step is over.
    pub(crate) fn should_stop(&self) -> bool {
        // SAFETY: a valid defragmentation.
        unsafe { (api().defrag_should_stop)(self.ctx) != 0 }
    }

    /// Remembers where to continue. False when there will be no further step.
    pub(crate) fn stop_at(&mut self, cursor: u64) -> bool {
        // SAFETY: a valid defragmentation.
        unsafe { (api().defrag_cursor_set)(self.ctx, cursor) == OK }
    }

    /// Bytes where memory is less fragmented, or the same as they were.
    pub(crate) fn bytes(&mut self, bytes: Box<[u8]>) -> Box<[u8]> {
        if bytes.is_empty() {
            return bytes;
        }
        let mut block = Box::into_raw(bytes);
        let len = block.len();
        let mut start: *mut c_void = block.cast();
        // SAFETY: bytes that were boxed, which the host allocated, and the only pointer to them.
        unsafe { self.move_block(&mut start) };
        block = std::ptr::slice_from_raw_parts_mut(start.cast(), len);
        // SAFETY: the block that was boxed, or one of the same length with the same contents.
        unsafe { Box::from_raw(block) }
    }

    /// Moves a block of memory, if that helps.
    ///
    /// # Safety
    ///
    /// `block` is the only pointer to a block of the host's allocator, to its start.
    pub(super) unsafe fn move_block(&mut self, block: &mut *mut c_void) {
        // SAFETY: what the caller promises; when the host moves the block it frees the old one.
        let moved = unsafe { (api().defrag_alloc)(self.ctx, *block) };
        if moved.is_null() {
            self.kept += 1;
        } else {
            self.moved += 1;
            *block = moved;
        }
    }
}
