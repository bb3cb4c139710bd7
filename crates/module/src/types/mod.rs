//! The data types that the module registers: one for each kind of filters.

mod filter;

/// A Bloom filter in the classic layout.
pub(crate) type ClassicFilter = filter::Stored<0>;
/// A Bloom filter in the blocked layout.
pub(crate) type BlockedFilter = filter::Stored<1>;
/// A cuckoo filter.
pub(crate) type CuckooFilter = filter::Stored<2>;

use crate::raw::context::HostContext;
use crate::raw::data_type::{DataType, register as register_type};

/// Registers all of them.
pub(crate) fn register(context: &HostContext<'_>) -> Result<(), String> {
    register_one::<ClassicFilter>(context)?;
    register_one::<BlockedFilter>(context)?;
    register_one::<CuckooFilter>(context)
}

fn register_one<T: DataType>(context: &HostContext<'_>) -> Result<(), String> {
    if register_type::<T>(context) {
        return Ok(());
    }
    let name = T::NAME.to_string_lossy();
    Err(format!("the data type {name} could not be registered"))
}
