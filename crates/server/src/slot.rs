//! The value of a key as the slot of a command.

use everbloom::CuckooFilter;
use everbloom::host::LayeredFilter;
use everbloom_commands::{Family, Filter, ReadSlot};
use everbloom_files::{Text, Value};

/// A type of values that commands of this shape work on. To them, other values have the wrong type.
pub trait Stored: Sized + 'static {
    /// The value, if it is of this type.
    fn of(value: &Value) -> Option<&Self>;

    /// The same, for changes.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;

    /// The value of a new key.
    fn into_value(self) -> Value;

    /// The layers or tables that a request may look at one after another.
    fn arrays(&self) -> usize;
}

macro_rules! stored {
    ($type:ty, $variant:ident, $of:expr, $of_mut:expr, $arrays:expr) => {
        impl Stored for $type {
            #[inline]
            fn of(value: &Value) -> Option<&Self> {
                match value {
                    Value::$variant(held) => $of(held),
                    _ => None,
                }
            }

            #[inline]
            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                match value {
                    Value::$variant(held) => $of_mut(held),
                    _ => None,
                }
            }

            fn into_value(self) -> Value {
                Value::$variant(self.into())
            }

            #[inline]
            fn arrays(&self) -> usize {
                $arrays(self)
            }
        }
    };
}

stored!(
    LayeredFilter,
    Filter,
    Family::of,
    Family::of_mut,
    |filter: &LayeredFilter| filter.layers().len()
);
stored!(
    CuckooFilter,
    Filter,
    Family::of,
    Family::of_mut,
    CuckooFilter::tables
);
stored!(Text, Text, Some, Some, |_| 1);

/// A value for a command that reads it.
pub fn read_slot<T: Stored>(value: Option<&Value>) -> ReadSlot<'_, T> {
    match value {
        None => ReadSlot::Missing,
        Some(value) => T::of(value).map_or(ReadSlot::OtherType, ReadSlot::Held),
    }
}

/// The same for a command on filters of any family.
pub fn any_slot(value: Option<&Value>) -> ReadSlot<'_, Filter> {
    match value {
        None => ReadSlot::Missing,
        Some(Value::Filter(filter)) => ReadSlot::Held(filter),
        Some(Value::Text(_)) => ReadSlot::OtherType,
    }
}
