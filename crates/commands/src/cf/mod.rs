//! The `CF.*` commands, one family a file, in the shape of those under [`bf`](crate::bf).

pub mod add;
pub mod del;
pub mod dump;
pub mod exists;
pub mod info;
pub mod insert;
pub(crate) mod insertion;
pub mod merge;
pub mod reserve;

use crate::context::{CuckooDefaults, LazyContext};
use crate::error::CommandError;
use everbloom::redisbloom::CuckooError;
use everbloom::{CuckooBuilder, CuckooFilter};

/// A filter of RedisBloom's kind with these parameters, to be made.
fn builder(parameters: &CuckooDefaults) -> CuckooBuilder {
    CuckooFilter::builder()
        .slots(parameters.initial_size)
        .bucket_size(parameters.bucket_size)
        .max_kicks(parameters.max_iterations)
        .expansion(parameters.expansion)
}

/// Makes a filter within the limits.
fn build(builder: CuckooBuilder, context: &LazyContext<'_>) -> Result<CuckooFilter, CommandError> {
    let built = builder.max_bytes(context.max_new_filter_bytes()).build();
    built.map_err(refusal)
}

/// Why a filter is not made.
fn refusal(error: CuckooError) -> CommandError {
    match error {
        CuckooError::TooLarge { .. } | CuckooError::OutOfMemory => CommandError::InsufficientMemory,
        CuckooError::ErrorRate => CommandError::CuckooErrorRateRange,
        _ => CommandError::CouldNotCreate,
    }
}
