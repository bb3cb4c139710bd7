//! What a key can hold.

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

    /// The id of the capture in progress.
    pub fn capture_id(&self) -> Option<u64> {
        match self {
            Value::Text(text) => text.capture_id(),
            Value::Filter(filter) => filter.capture_id(),
        }
    }

    /// Gives up the capture in progress.
    pub fn end_capture(&mut self) {
        match self {
            Value::Text(text) => text.end_capture(),
            Value::Filter(filter) => filter.end_capture(),
        }
    }

    /// Appends the next captured bytes; false when there are none.
    pub fn capture_next(&mut self, out: &mut Vec<u8>) -> bool {
        match self {
            Value::Text(text) => text.capture_next(out),
            Value::Filter(filter) => filter.capture_next(out),
        }
    }
}
