//! What a key can hold.

use std::borrow::Cow;
use std::ops::Range;

use everbloom::host::Capture;
use everbloom_commands::format::value::value_type;
use everbloom_commands::{Filter, Parts};

use crate::text::Text;

/// What a key can hold.
#[derive(Debug, Clone)]
pub enum Value {
    /// A string of bytes.
    Text(Text),
    /// A filter.
    Filter(Filter),
}

/// Everything about a value but its bytes: those of a string, or of the arrays of a filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Outline {
    /// Of a string of so many bytes.
    Text(u64),
    /// Of a filter.
    Filter(Parts),
}

impl Outline {
    /// The bytes of an array of a filter by its number; `None` when there is no such array.
    pub fn array_bytes(&self, number: usize) -> Option<u64> {
        match self {
            Outline::Text(_) => None,
            Outline::Filter(parts) => parts.array_bytes(number),
        }
    }
}

impl Value {
    /// Everything about it but its bytes.
    pub fn outline(&self) -> Outline {
        match self {
            Value::Text(text) => Outline::Text(text.len() as u64),
            Value::Filter(filter) => Outline::Filter(filter.parts()),
        }
    }

    /// These of its bytes: at most those of one array of a filter.
    pub fn bytes(&self, part: Range<u64>) -> Cow<'_, [u8]> {
        let len = part.end.saturating_sub(part.start);
        let at = |number| usize::try_from(number).unwrap_or(usize::MAX);
        match self {
            Value::Text(text) => {
                let part = text.get(at(part.start)..at(part.end));
                part.unwrap_or_default().into()
            }
            Value::Filter(filter) => filter.stream_chunk(part.start, at(len)).unwrap_or_default(),
        }
    }

    /// A value of this outline, its bytes still to be put; `None` when there is no memory for it.
    pub fn empty(outline: &Outline) -> Option<Value> {
        Some(match outline {
            Outline::Text(len) => {
                Value::Text(Text::with_capacity(usize::try_from(*len).ok()?).ok()?)
            }
            Outline::Filter(parts) => Value::Filter(Filter::empty(parts)?),
        })
    }

    /// A copy, if there is memory for it.
    pub fn try_clone(&self) -> Option<Value> {
        Some(match self {
            Value::Text(text) => Value::Text(text.try_clone().ok()?),
            Value::Filter(filter) => Value::Filter(filter.try_clone()?),
        })
    }

    /// Some bytes of an array by its number, up to its end; a string is array 0.
    pub fn part(&self, array: usize, part: Range<u64>) -> Vec<u8> {
        let bytes = match self {
            Value::Text(text) => Cow::Borrowed(&**text),
            Value::Filter(filter) => filter.array(array).unwrap_or_default(),
        };
        let at = |number| {
            usize::try_from(number)
                .unwrap_or(usize::MAX)
                .min(bytes.len())
        };
        let part = bytes.get(at(part.start)..at(part.end));
        part.unwrap_or_default().to_vec()
    }

    /// Puts bytes at a place of an array by its number: behind a string, or over what is there.
    /// False if there is no such place, or no memory.
    pub fn put(&mut self, array: usize, at: u64, bytes: &[u8]) -> bool {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        match self {
            Value::Text(text) if at == text.len() => text.append(bytes).is_ok(),
            Value::Text(text) => {
                let end = at.saturating_add(bytes.len()).min(text.len());
                let place = text.part_mut(at.min(end)..end);
                place.copy_from_slice(bytes.get(..place.len()).unwrap_or_default());
                true
            }
            Value::Filter(filter) => filter.load_array(array, at, bytes).is_ok(),
        }
    }

    /// Makes a copy, which has what this reader has read, a copy of the value as it is now. False if
    /// that cannot be; see [`everbloom::host`].
    pub fn update_copy(&self, id: u64, copy: &mut Value) -> bool {
        match (self, copy) {
            (Value::Text(text), Value::Text(copy)) => text.update_copy(id, copy),
            (Value::Filter(filter), Value::Filter(copy)) => filter.update_copy(id, copy),
            _ => false,
        }
    }

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
