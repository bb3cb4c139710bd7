//! The `CF.*` commands, one family a file, in the shape of those under [`bf`](crate::bf).

pub mod add;
pub mod del;
pub mod dump;
pub mod exists;
pub mod info;
pub mod insert;
pub(crate) mod insertion;
pub mod reserve;

use crate::context::{CuckooDefaults, LazyContext};
use crate::error::CommandError;
use everbloom::CuckooFilter;
use everbloom::redisbloom::CuckooError;

/// Makes a filter with these parameters.
fn build(
    parameters: &CuckooDefaults,
    context: &LazyContext<'_>,
) -> Result<CuckooFilter, CommandError> {
    let builder = CuckooFilter::builder()
        .slots(parameters.initial_size)
        .bucket_size(parameters.bucket_size)
        .max_kicks(parameters.max_iterations)
        .expansion(parameters.expansion)
        .max_bytes(context.max_new_filter_bytes());
    builder.build().map_err(|error| match error {
        CuckooError::TooLarge { .. } | CuckooError::OutOfMemory => CommandError::InsufficientMemory,
        _ => CommandError::CouldNotCreate,
    })
}
