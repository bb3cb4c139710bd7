//! Replies that many commands make.

use crate::error::CommandError;
use everbloom_resp::Reply;

/// The reply of a command that can fail as a whole.
pub(crate) fn answer(result: Result<Reply, CommandError>) -> Reply {
    result.unwrap_or_else(Reply::from)
}

/// An unsigned number as a reply. A number too large for RESP becomes the largest that it has.
pub(crate) fn count(number: u64) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
