//! What a key can hold.

use everbloom_commands::Filter;
use everbloom_commands::format::value::value_type;

/// What a key can hold.
#[derive(Debug, Clone)]
pub enum Value {
    /// A string of bytes.
    Text(Vec<u8>),
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
            Value::Text(text) => text.capacity(),
            Value::Filter(filter) => filter.memory_usage() - size_of::<Filter>(),
        }
    }
}
