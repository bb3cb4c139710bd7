//! The three kinds of layers: RedisBloom's, valkey-bloom's, and those of the blocked layout.

use crate::hash::Key;
use crate::hash::valkey::ValkeyBloom;

/// What hashes the items of a layer, and decides where their bits lie. All layers of a filter are
/// of the same kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// RedisBloom's, in the classic layout.
    Classic,
    /// valkey-bloom's: in the classic layout, too, with a hash and positions of its own.
    Valkey(ValkeyBloom),
    /// In the blocked layout, with the key of the hash.
    Blocked(Key),
}

impl Kind {
    /// The kind of a filter with this key, or else with what only one of valkey-bloom has.
    pub(crate) fn of(key: Option<Key>, valkey: Option<ValkeyBloom>) -> Kind {
        match (key, valkey) {
            (Some(key), _) => Kind::Blocked(key),
            (None, Some(valkey)) => Kind::Valkey(valkey),
            (None, None) => Kind::Classic,
        }
    }
}
