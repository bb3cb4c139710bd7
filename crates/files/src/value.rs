//! What a key can hold.

use std::ops::Range;

use everbloom::host::Capture;
use everbloom_commands::Filter;
use everbloom_commands::format::value::value_type;

use crate::text::Text;

/// What a key can hold.
#[derive(Debug, Clone)]
pub enum Value {
    /// A string of bytes.
    Text(Text),
    /// A filter.
    Filter(Filter),
}

impl Value {
    /// The name that `TYPE` answers.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Text(_) => "string",
            Value::Filter(filter) => value_type(filter.kind()).name,
        }
    }

    /// Heap bytes of the value.
    pub fn memory(&self) -> usize {
        match self {
            Value::Text(text) => text.memory(),
            Value::Filter(filter) => filter.memory_usage() - size_of::<Filter>(),
        }
    }

    /// When the clock lets the value forget what it holds, at the earliest, if it is a filter with a
    /// window.
    #[inline]
    pub fn outdated_at(&self) -> Option<u64> {
        match self {
            Value::Text(_) => None,
            Value::Filter(filter) => filter.outdated_at(),
        }
    }

    /// How many bytes a reader of all of it reads: those of a string, or of the arrays of a filter
    /// laid end to end.
    pub fn stream_len(&self) -> u64 {
        match self {
            Value::Text(text) => text.len() as u64,
            Value::Filter(filter) => filter.stream_len(),
        }
    }

    /// Begins to read a part of these bytes, as they are now; see [`everbloom::host`].
    pub fn begin_capture(&mut self, id: u64, part: Range<u64>) {
        match self {
            Value::Text(text) => text.begin_capture(id, part),
            Value::Filter(filter) => filter.begin_capture(id, part),
        }
    }

    /// Appends the next captured bytes, at most 64 KiB; false when there are none.
    pub fn capture_next(&mut self, id: u64, out: &mut Vec<u8>) -> bool {
        match self {
            Value::Text(text) => text.capture_next(id, out),
            Value::Filter(filter) => filter.capture_next(id, out),
        }
    }

    /// The readers of the value.
    #[inline]
    pub fn capture(&self) -> &Capture {
        match self {
            Value::Text(text) => text.capture(),
            Value::Filter(filter) => filter.capture(),
        }
    }

    /// The readers of the value, to end some of them.
    pub fn capture_mut(&mut self) -> &mut Capture {
        match self {
            Value::Text(text) => text.capture_mut(),
            Value::Filter(filter) => filter.capture_mut(),
        }
    }
}

/// An empty string.
impl Default for Value {
    fn default() -> Self {
        Value::Text(Text::default())
    }
}
