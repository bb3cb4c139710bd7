//! The `CF.*` commands, one family a file, in the shape of those under [`bf`](crate::bf).

pub mod add;
pub mod del;
pub mod dump;
pub mod exists;
pub mod info;
pub mod insert;
mod insertion;
pub mod reserve;

use crate::context::{Context, CuckooDefaults};
use crate::error::CommandError;
use everbloom::{CuckooError, CuckooFilter};

/// The parameters of a filter to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    capacity: u64,
    bucket_size: u8,
    max_iterations: u16,
    expansion: u16,
}

impl From<CuckooDefaults> for Parameters {
    fn from(defaults: CuckooDefaults) -> Self {
        Self {
            capacity: defaults.initial_size,
            bucket_size: defaults.bucket_size,
            max_iterations: defaults.max_iterations,
            expansion: defaults.expansion,
        }
    }
}

impl Parameters {
    fn build(&self, context: &Context) -> Result<CuckooFilter, CommandError> {
        let builder = CuckooFilter::builder()
            .capacity(self.capacity)
            .bucket_size(self.bucket_size)
            .max_kicks(self.max_iterations)
            .expansion(self.expansion)
            .max_bytes(context.max_new_filter_bytes());
        builder.build().map_err(|error| match error {
            CuckooError::TooLarge { .. } | CuckooError::OutOfMemory => {
                CommandError::InsufficientMemory
            }
            _ => CommandError::CouldNotCreate,
        })
    }
}
