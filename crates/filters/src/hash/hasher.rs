//! What hashes the items of a filter, whatever its layout.

use super::keyed::Secrets;
use super::pair::HashWidth;

/// What hashes the items of a filter.
#[derive(Clone, Copy)]
pub(crate) enum Hasher {
    Classic(HashWidth),
    Blocked(Secrets),
}
