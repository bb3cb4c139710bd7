//! The data types that the module registers: one for each layout of filters.
//!
//! A layout is a file here that says what its values are and implements
//! [`DataType`](crate::raw::data_type::DataType) for them, a line in [`register`], and an arm where
//! [`crate::command`] looks at what a key holds.

mod classic;

pub(crate) use classic::Filter;

use crate::raw::context::HostContext;
use crate::raw::data_type::{DataType, register as register_type};

/// Registers all of them.
pub(crate) fn register(context: &HostContext<'_>) -> Result<(), String> {
    register_one::<Filter>(context)
}

fn register_one<T: DataType>(context: &HostContext<'_>) -> Result<(), String> {
    if register_type::<T>(context) {
        return Ok(());
    }
    let name = T::NAME.to_string_lossy();
    Err(format!("the data type {name} could not be registered"))
}
