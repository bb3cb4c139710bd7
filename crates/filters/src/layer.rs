//! A layer of either layout: one match an operation.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use core::mem::size_of;

use crate::blocked::BlockedLayer;
use crate::capture::Capture;
use crate::classic::{BuildError, ClassicLayer};
use crate::hash::{HashPair, HashWidth, Key, Secrets};
use crate::sizing::LayerSize;

/// Where the bits of an item lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// RedisBloom's, bit for bit: all over the bit array.
    #[default]
    Classic,
    /// All in one block of 512 bits, which is a cache line, chosen by a keyed hash: several times
    /// faster, and safe from items crafted to collide, for a few per cent more bits.
    Blocked,
}

impl Layout {
    /// The key of a filter to be, when `given` was asked for: none in the classic layout, a random
    /// one in the blocked layout unless one is given.
    pub(crate) fn key(self, given: Option<Key>) -> Result<Option<Key>, BuildError> {
        match (self, given) {
            (Layout::Classic, None) => Ok(None),
            (Layout::Classic, Some(_)) => Err(BuildError::UnexpectedKey),
            (Layout::Blocked, Some(key)) => Ok(Some(key)),
            #[cfg(feature = "std")]
            (Layout::Blocked, None) => Ok(Some(Key::random())),
            #[cfg(not(feature = "std"))]
            (Layout::Blocked, None) => Err(BuildError::NoKey),
        }
    }
}

/// What hashes the items of a filter.
#[derive(Clone, Copy)]
pub(crate) enum Hasher {
    Classic(HashWidth),
    Blocked(Secrets),
}

/// One bit array of a filter. All layers of a filter have the same layout, and in the blocked one
/// the same key.
///
/// Layers are read here and changed through the filter they belong to.
///
/// ```
/// use everbloom::{Layout, ScalableBloomFilter};
/// let filter = ScalableBloomFilter::builder().capacity(100).build()?;
/// let layer = &filter.layers()[0];
/// assert_eq!((layer.layout(), layer.bits(), layer.hashes()), (Layout::Classic, 1152, 8));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// In RedisBloom's layout.
    Classic(ClassicLayer),
    /// In the blocked layout.
    Blocked(Box<BlockedLayer>),
}

impl Layer {
    /// Where the bits of an item lie.
    #[must_use]
    pub fn layout(&self) -> Layout {
        match self {
            Layer::Classic(_) => Layout::Classic,
            Layer::Blocked(_) => Layout::Blocked,
        }
    }

    /// The layer, if it is in the classic layout.
    #[must_use]
    pub fn as_classic(&self) -> Option<&ClassicLayer> {
        match self {
            Layer::Classic(layer) => Some(layer),
            Layer::Blocked(_) => None,
        }
    }

    /// The layer, if it is in the blocked layout.
    #[must_use]
    pub fn as_blocked(&self) -> Option<&BlockedLayer> {
        match self {
            Layer::Classic(_) => None,
            Layer::Blocked(layer) => Some(layer),
        }
    }

    /// The key of the hash, in the blocked layout.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        self.as_blocked().map(BlockedLayer::key)
    }

    /// Length of the bit array in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Layer::Classic(layer) => layer.bytes(),
            Layer::Blocked(layer) => layer.bytes(),
        }
    }

    /// Length of the bit array in bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bytes() * 8
    }

    /// Items added so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Layer::Classic(layer) => layer.len(),
            Layer::Blocked(layer) => layer.len(),
        }
    }

    /// Whether nothing was added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Items it is made for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        match self {
            Layer::Classic(layer) => layer.capacity(),
            Layer::Blocked(layer) => layer.capacity(),
        }
    }

    /// The error rate it is made for.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        match self {
            Layer::Classic(layer) => layer.error_rate(),
            Layer::Blocked(layer) => layer.error_rate(),
        }
    }

    /// Bits per item of the capacity: in the classic layout before any rounding.
    #[must_use]
    pub fn bits_per_entry(&self) -> f64 {
        self.size().bits_per_entry
    }

    /// Bits set by an item.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        match self {
            Layer::Classic(layer) => layer.hashes(),
            Layer::Blocked(layer) => layer.hashes(),
        }
    }

    /// In the classic layout the logarithm of the modulus of bit positions, 0 when the modulus is
    /// [`bits`](Self::bits); in the blocked layout 0.
    #[must_use]
    pub fn log2_bits(&self) -> u8 {
        match self {
            Layer::Classic(layer) => layer.log2_bits(),
            Layer::Blocked(_) => 0,
        }
    }

    /// The bit array: bit `p` is bit `p % 8`, least significant first, of byte `p / 8`.
    #[must_use]
    ///
    /// Borrowed, but for a small array with few ones, of which only their positions are kept.
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Layer::Classic(layer) => layer.as_bytes(),
            Layer::Blocked(layer) => Cow::Borrowed(layer.as_bytes()),
        }
    }

    /// The part of the bits that are 1. Takes time linear in the length.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        match self {
            Layer::Classic(layer) => layer.fill_ratio(),
            Layer::Blocked(layer) => layer.fill_ratio(),
        }
    }

    /// The error rate to expect now, from the bits that are 1. Takes time linear in the length.
    #[must_use]
    pub fn estimated_error_rate(&self) -> f64 {
        match self {
            Layer::Classic(layer) => layer.estimated_error_rate(),
            Layer::Blocked(layer) => layer.estimated_error_rate(),
        }
    }

    /// How many different items were inserted, estimated from the bits that are 1. Takes time
    /// linear in the length.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        match self {
            Layer::Classic(layer) => layer.estimated_len(),
            Layer::Blocked(layer) => layer.estimated_len(),
        }
    }

    /// What it occupies in memory beside itself, in bytes.
    pub(crate) fn heap(&self) -> usize {
        match self {
            Layer::Classic(layer) => layer.memory_usage() - size_of::<ClassicLayer>(),
            Layer::Blocked(layer) => layer.memory_usage(),
        }
    }

    /// What it occupies in memory, in bytes, itself included.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.heap()
    }

    pub(crate) fn size(&self) -> LayerSize {
        match self {
            Layer::Classic(layer) => layer.size(),
            Layer::Blocked(layer) => layer.size().as_layer(),
        }
    }

    /// The number of bits that an item may set.
    pub(crate) fn modulus(&self) -> u64 {
        match self {
            Layer::Classic(layer) => layer.modulus(),
            Layer::Blocked(layer) => layer.bits(),
        }
    }

    /// Makes every bit 1 that is 1 in the other layer, which has the same length.
    pub(crate) fn union_bits(&mut self, other: &Layer) {
        for (byte, more) in self.as_bytes_mut().iter_mut().zip(&*other.as_bytes()) {
            *byte |= more;
        }
    }

    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Layer::Classic(layer) => layer.as_bytes_mut(),
            Layer::Blocked(layer) => layer.as_bytes_mut(),
        }
    }

    /// Gives memory back that few bits do not need.
    pub(crate) fn shrink(&mut self) {
        if let Layer::Classic(layer) = self {
            layer.shrink();
        }
    }

    /// Lets the bytes be moved to another place, in the classic layout.
    pub(crate) fn relocate_bits(&mut self, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        if let Layer::Classic(layer) = self {
            layer.bits_mut().relocate(relocate);
        }
    }

    pub(crate) fn set_len(&mut self, items: u64) {
        match self {
            Layer::Classic(layer) => layer.set_len(items),
            Layer::Blocked(layer) => layer.set_len(items),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.capacity()
    }

    /// What hashes items as the layer's layout does; `width` is the classic one's.
    pub(crate) fn hasher(&self, width: HashWidth) -> Hasher {
        match self {
            Layer::Classic(_) => Hasher::Classic(width),
            Layer::Blocked(layer) => Hasher::Blocked(layer.secrets()),
        }
    }

    /// Hashes an item as the layer's layout does; `width` is the classic one's.
    #[inline]
    pub(crate) fn hash(&self, item: &[u8], width: HashWidth) -> HashPair {
        match self {
            Layer::Classic(_) => HashPair::new(item, width),
            Layer::Blocked(layer) => layer.hash(item),
        }
    }

    /// Whether all bits of the item are 1.
    #[inline]
    pub(crate) fn contains(&self, pair: HashPair) -> bool {
        match self {
            Layer::Classic(layer) => layer.contains(pair),
            Layer::Blocked(layer) => layer.contains(pair),
        }
    }

    /// Sets the item's bits and counts it.
    #[inline]
    pub(crate) fn insert(&mut self, pair: HashPair) {
        match self {
            Layer::Classic(layer) => layer.insert(pair),
            Layer::Blocked(layer) => layer.insert(pair),
        }
    }

    /// Sets the item's bits; counts it, and says so, unless all of them were set before.
    #[inline]
    pub(crate) fn insert_if_new(&mut self, pair: HashPair) -> bool {
        match self {
            Layer::Classic(layer) => layer.insert_if_new(pair),
            Layer::Blocked(layer) => {
                let new = !layer.contains(pair);
                if new {
                    layer.insert(pair);
                }
                new
            }
        }
    }

    /// Sets the item's bits.
    #[inline]
    pub(crate) fn insert_uncounted(&mut self, pair: HashPair) {
        match self {
            Layer::Classic(layer) => drop(layer.insert_uncounted(pair)),
            Layer::Blocked(layer) => layer.insert_uncounted(pair),
        }
    }

    /// Tells the capture which bytes [`insert`](Self::insert) is about to change.
    #[cold]
    pub(crate) fn note_insert(&self, pair: HashPair, number: usize, capture: &mut Capture) {
        let bytes = self.as_bytes();
        let note = |byte, old| capture.note(&bytes, number, byte, old);
        match self {
            Layer::Classic(layer) => layer.note_insert(pair, note),
            Layer::Blocked(layer) => layer.note_insert(pair, note),
        }
    }
}
