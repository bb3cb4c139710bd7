//! Reads a large value in pieces, as it was when the reader began. The lock of its shard is held
//! for one piece at a time, so that commands can run. What they change is kept for the reader
//! ([`everbloom::host::Capture`]).

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use everbloom_files::{OutOfMemory, Value};

use crate::keyspace::captured::Captured;
use crate::keyspace::{KeyRef, Keyspace};
use crate::limits::{LEFT_CHANGES, STEP_CHANGES};
use crate::pace::Pace;
use crate::store::Store;

/// A reader of a value. It ends when it is dropped, while no shard may be locked.
#[derive(Debug)]
pub struct ValueReader {
    value: Captured,
    left: u64,
    pace: Pace,
}

impl ValueReader {
    /// Begins to read the value under a key. `begin` inspects it and returns which bytes to read:
    /// of a string, or of the arrays of a filter laid end to end. `None` when `begin` returns that,
    /// or the key does not exist.
    pub fn begin<T>(
        store: &Arc<Store>,
        key: KeyRef<'_>,
        begin: impl FnOnce(&Value) -> Option<(T, Range<u64>)>,
    ) -> Option<(T, ValueReader)> {
        ValueReader::begin_with(store, key, |value, id| {
            let (result, part) = begin(value)?;
            value.begin_capture(id, part.clone());
            Some((result, part))
        })
    }

    /// The same; `begin` begins the capture.
    fn begin_with<T>(
        store: &Arc<Store>,
        key: KeyRef<'_>,
        begin: impl FnOnce(&mut Value, u64) -> Option<(T, Range<u64>)>,
    ) -> Option<(T, ValueReader)> {
        // A key may have got another expiry since the command began, so its time is of no use here.
        let now = store.machine.now();
        let begun = Captured::begin(&store.keyspace, key, now, begin);
        let ((result, part), value) = begun?;
        let reader = ValueReader {
            value,
            left: part.end.saturating_sub(part.start),
            pace: Pace::new(&store.machine),
        };
        Some((result, reader))
    }

    /// Puts the next bytes in place of those in `piece`, while nothing else is locked; false when
    /// there are none.
    pub fn next(&mut self, piece: &mut Vec<u8>) -> bool {
        self.pace.rest();
        piece.clear();
        let more = self.left > 0 && self.value.next(piece);
        self.left = self.left.saturating_sub(piece.len() as u64);
        more
    }

    /// Whether all bytes have come.
    pub fn is_at_end(&self) -> bool {
        self.left == 0
    }
}

/// A copy of a value, and the reader that knows what has changed since.
#[derive(Debug)]
pub struct Copied {
    value: Value,
    reader: ValueReader,
    keyspace: Arc<Keyspace>,
}

/// How often a copy is brought up to date while the value goes on to change.
const MAX_ROUNDS: usize = 8;

impl Copied {
    /// Copies the value under a key, while `go_on` says so; `None` when there is none.
    ///
    /// # Errors
    ///
    /// There is no memory for it, or it did not go on.
    pub fn make(
        store: &Arc<Store>,
        key: KeyRef<'_>,
        go_on: impl Fn() -> bool,
    ) -> Result<Option<Copied>, OutOfMemory> {
        let begun = ValueReader::begin_with(store, key, |value, id| {
            let all = 0..value.stream_len();
            value.begin_capture(id, all.clone());
            value.capture_mut().track_changes(id);
            Some((value.outline(), all))
        });
        let Some((outline, mut reader)) = begun else {
            return Ok(None);
        };
        let mut value = Value::empty(&outline).ok_or(OutOfMemory)?;
        let (mut piece, mut array, mut at) = (Vec::new(), 0, 0);
        while go_on() && reader.next(&mut piece) {
            if !value.put(array, at, &piece) {
                return Err(OutOfMemory);
            }
            at += piece.len() as u64;
            if outline.array_bytes(array) == Some(at) {
                (array, at) = (array + 1, 0);
            }
        }
        if !reader.is_at_end() {
            return Err(OutOfMemory);
        }
        let keyspace = Arc::clone(&store.keyspace);
        let mut copied = Copied {
            value,
            reader,
            keyspace,
        };
        copied.follow(go_on);
        Ok(Some(copied))
    }

    /// Copies what has changed meanwhile, until little is left of it. In the end,
    /// [`current`](Self::current) says whether the copy is one.
    fn follow(&mut self, go_on: impl Fn() -> bool) {
        let (original, id) = (&self.reader.value, self.reader.value.id());
        for _ in 0..MAX_ROUNDS {
            let taken = original.with(|value| {
                let changes = value.capture().changes(id)?;
                (changes.len() > LEFT_CHANGES.get())
                    .then(|| value.capture_mut().take_changes(id))?
            });
            let Some(Some(changes)) = taken else {
                return;
            };
            for step in changes.chunks(STEP_CHANGES.get()) {
                let read = original.with(|value| {
                    let part =
                        |(array, part): &(usize, Range<u64>)| value.part(*array, part.clone());
                    step.iter().map(part).collect::<Vec<_>>()
                });
                let read = read.unwrap_or_default();
                for ((array, part), bytes) in step.iter().zip(&read) {
                    self.value.put(*array, part.start, bytes);
                }
                if !go_on() {
                    return;
                }
                self.reader.pace.rest();
            }
        }
    }

    /// The copy.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Makes the copy one of the value as it is now, wherever that is. False if it cannot be: it is
    /// of no use then.
    pub fn refresh(&mut self, go_on: impl Fn() -> bool) -> bool {
        self.follow(go_on);
        let (original, id) = (&self.reader.value, self.reader.value.id());
        let updated = original.with(|value| {
            let is_updated = value.update_copy(id, &mut self.value);
            value.capture_mut().take_changes(id);
            is_updated
        });
        updated == Some(true)
    }

    /// Whether this value is the one that was copied, and has not changed since the copy was
    /// [refreshed](Self::refresh).
    pub fn is_current(&self, value: &Value) -> bool {
        let changes = value.capture().changes(self.reader.value.id());
        changes.is_some_and(|changes| changes.is_empty()) && value.outline() == self.value.outline()
    }

    /// Takes the copy, brought up to date with the value that the key holds now. `None` if that is
    /// another value, or has other arrays by now.
    pub fn current(&mut self, value: &Value) -> Option<Value> {
        let is_current = value.update_copy(self.reader.value.id(), &mut self.value);
        is_current.then(|| mem::take(&mut self.value))
    }
}

/// What is left of a copy is freed behind others.
impl Drop for Copied {
    fn drop(&mut self) {
        let bytes = self.value.memory();
        let value = mem::take(&mut self.value);
        self.keyspace.free(Some(value), bytes);
    }
}
