//! The data types that the module registers: one for each layout of filters.

mod filter;

/// A filter in the classic layout.
pub(crate) type ClassicFilter = filter::Filter<false>;
/// A filter in the blocked layout.
pub(crate) type BlockedFilter = filter::Filter<true>;

use crate::raw::context::HostContext;
use crate::raw::data_type::{DataType, register as register_type};

/// Registers all of them.
pub(crate) fn register(context: &HostContext<'_>) -> Result<(), String> {
    register_one::<ClassicFilter>(context)?;
    register_one::<BlockedFilter>(context)
}

fn register_one<T: DataType>(context: &HostContext<'_>) -> Result<(), String> {
    if register_type::<T>(context) {
        return Ok(());
    }
    let name = T::NAME.to_string_lossy();
    Err(format!("the data type {name} could not be registered"))
}
