//! CF.MERGE: the items of several cuckoo filters in one.

use crate::context::LazyContext;
use crate::error::CommandError;
use crate::filter::{Filter, FilterKind};
use crate::replace::{Replaced, allowed, differs, each_once, made_like};
use crate::slot::ReadSlot;
use everbloom::{CuckooFilter, UnionError};
use everbloom_resp::Reply;

pub(crate) const MERGE: &str = "cf.merge";

/// `CF.MERGE destination source [source ...]`
///
/// An item that is in several filters is in the result as often as in all of them. A destination
/// that does not exist begins as a copy of the first source. A source that is named several times,
/// and the destination among the sources, is merged once.
pub fn merge(context: &LazyContext<'_>, _: &[&[u8]], slots: &[ReadSlot<'_, Filter>]) -> Replaced {
    allowed(context, MERGE)?;
    let first: &CuckooFilter = made_like(slots)?;
    let filters = each_once(first, slots)?;
    let bytes = filters.iter().map(|filter| filter.stream_len());
    check_bytes(context, bytes.fold(0, u64::saturating_add))?;
    let mut merged = first.try_clone().map_err(super::refusal)?;
    for source in filters.into_iter().skip(1) {
        merged = merged.united(source).map_err(refusal)?;
        // Its tables may be less full than those of the sources, and more.
        check_bytes(context, merged.stream_len())?;
        context.check_loaded(FilterKind::Cuckoo, merged.tables())?;
    }
    Ok((merged.into(), Reply::OK))
}

fn check_bytes(context: &LazyContext<'_>, bytes: u64) -> Result<(), CommandError> {
    match bytes <= context.max_new_filter_bytes() {
        true => Ok(()),
        false => Err(CommandError::InsufficientMemory),
    }
}

fn refusal(error: UnionError) -> Reply {
    match error {
        UnionError::Hash => Reply::error(
            "ERR the filters have different hashes: create all with ERROR, or all without",
        ),
        error => differs(error),
    }
}
