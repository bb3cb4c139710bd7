//! The hash of a filter, apart from it.

use core::fmt;

use crate::hash::item::Item;
use crate::hash::{DoubleHash, Hasher, Key, Secrets};

/// Hashes items as a filter does, without the filter: in other threads, say.
///
/// ```
/// use everbloom::hash::Key;
/// use everbloom::host::LayeredFilter;
/// use everbloom::{BloomFilter, ItemHash};
/// let seen = BloomFilter::builder().capacity(1000).seed(7).build()?;
/// assert_eq!(seen.hasher().hash("a"), seen.hash("a"));
/// let growing = LayeredFilter::from(seen);
/// assert_eq!(growing.hasher().hash("a"), ItemHash::of_key(Key::from_seed(7)).hash("a"));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy)]
pub struct ItemHash(pub(crate) Hasher);

impl ItemHash {
    /// The hasher of filters in the blocked layout with this key.
    #[must_use]
    pub fn of_key(key: Key) -> ItemHash {
        ItemHash(Hasher::Blocked(Secrets::new(key)))
    }

    /// The two hash values of an item.
    #[must_use]
    #[inline]
    pub fn hash<T: Item + ?Sized>(&self, item: &T) -> DoubleHash {
        match &self.0 {
            Hasher::Classic(width) => item.hash_with(width),
            Hasher::Valkey(valkey) => item.hash_with(valkey),
            Hasher::Blocked(secrets) => item.hash_with(secrets),
        }
    }
}

impl fmt::Debug for ItemHash {
    /// Without the key, as a [`Key`] is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ItemHash(..)")
    }
}
