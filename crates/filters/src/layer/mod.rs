//! One layer of a filter: its parameters, its item count and its bits.

pub(crate) mod capture;
pub(crate) mod classic;
pub(crate) mod kind;
pub(crate) mod layout;
pub(crate) mod shape;
mod valkey;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use crate::bits::array::{BitArray, count_ones};
use crate::bits::blocks::BlockedBits;
use crate::bits::fill::Fill;
use crate::bits::huge::HugePages;
use crate::bits::memory::prefetch_value;
use crate::bits::pages::{self, STEP};
use crate::error::BuildError;
use crate::hash::item::Item;
use crate::hash::valkey::ValkeyBloom;
use crate::hash::{DoubleHash, FilterKey, HashWidth, Hasher, Key};
use crate::sizing::{BLOCK, BlockedSize, LayerSize};
use classic::{ClassicArray, ClassicBits};
use kind::Kind;
use layout::Layout;
use shape::Shape;

/// One bit array of a filter: fixed in size, made for a capacity and an error rate. All layers of a
/// filter have the same layout, and in the blocked one the same key.
///
/// Layers are read here and changed through the filter they belong to.
///
/// ```
/// use everbloom::host::LayeredFilter;
/// use everbloom::Layout;
/// let filter = LayeredFilter::builder().layout(Layout::Classic).build()?;
/// let layer = &filter.layers()[0];
/// assert_eq!((layer.bits(), layer.hashes(), layer.error_rate()), (1152, 8, 0.005));
/// assert_eq!((layer.layout(), layer.capacity(), layer.len()), (Layout::Classic, 100, 0));
/// assert!(layer.is_empty() && layer.as_bytes().len() as u64 == layer.bytes());
///
/// let filter = LayeredFilter::builder().layout(Layout::Blocked).fixed().build()?;
/// let layer = &filter.layers()[0];
/// assert_eq!((layer.bits(), layer.hashes(), layer.error_rate()), (1024, 6, 0.01));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Debug, PartialEq)]
pub struct Layer {
    bits: Bits,
    items: u64,
    shape: Arc<Shape>,
}

/// The bytes of an array that is prefetched as a whole: a few cache lines.
const SHORT: usize = 256;

/// The bits of either layout.
#[derive(Clone, Debug, PartialEq)]
enum Bits {
    Classic(ClassicArray),
    Blocked(BlockedBits),
}

impl Layer {
    /// An empty layer. The size is one for this kind, or passed the gate.
    pub(crate) fn empty(size: &LayerSize, kind: Kind, max_bytes: u64) -> Result<Layer, BuildError> {
        let bytes = size.bytes;
        if bytes > max_bytes {
            return Err(BuildError::TooLarge { bytes });
        }
        let zeroed = || BitArray::zeroed(bytes).map_err(|_| BuildError::OutOfMemory { bytes });
        let valkey = match kind {
            Kind::Classic => None,
            Kind::Valkey(valkey) => Some(valkey),
            Kind::Blocked(key) => {
                let size = BlockedSize::of_layer(size);
                let shape = Shape::shared(&size.as_layer())?;
                return Ok(Layer::new(
                    Bits::Blocked(BlockedBits::new(&size, key)?),
                    shape,
                ));
            }
        };
        Layer::classic(size, valkey, zeroed)
    }

    /// A layer with these bits, which must be as many bytes as the size says. In the classic layout
    /// a vector without spare capacity becomes part of the layer without being copied.
    pub(crate) fn with_bits(
        size: &LayerSize,
        kind: Kind,
        bits: Vec<u8>,
        max_bytes: u64,
    ) -> Result<Layer, BuildError> {
        if bits.len() as u64 != size.bytes {
            return Err(BuildError::Unsizable);
        }
        let valkey = match kind {
            Kind::Classic => None,
            Kind::Valkey(valkey) => Some(valkey),
            Kind::Blocked(_) => {
                // Blocks have an alignment that a vector of bytes does not have.
                let mut layer = Layer::empty(size, kind, max_bytes)?;
                pages::copy(layer.as_bytes_mut(), &bits);
                return Ok(layer);
            }
        };
        Layer::classic(size, valkey, || Ok(BitArray::from_vec(bits)))
    }

    /// A layer in the classic layout. The size is checked before the bits are made.
    fn classic(
        size: &LayerSize,
        valkey: Option<ValkeyBloom>,
        bits: impl FnOnce() -> Result<BitArray, BuildError>,
    ) -> Result<Layer, BuildError> {
        let mut size = *size;
        if valkey.is_some() {
            // valkey-bloom stores no bits per item: they follow.
            size.bits_per_entry = size.bits() as f64 / size.capacity as f64;
        }
        let shape = Shape::shared(&size)?;
        let bits = ClassicArray::new(bits()?, valkey);
        Ok(Layer::new(Bits::Classic(bits), shape))
    }

    /// An empty layer of this size and of the same kind.
    pub(crate) fn like(&self, size: &LayerSize, max_bytes: u64) -> Result<Layer, BuildError> {
        match &self.bits {
            Bits::Blocked(bits) if size.bytes <= max_bytes => {
                let size = BlockedSize::of_layer(size);
                let shape = Shape::shared(&size.as_layer())?;
                Ok(Layer::new(Bits::Blocked(bits.like(&size)?), shape))
            }
            _ => Layer::empty(size, self.kind(), max_bytes),
        }
    }

    /// Shares the key of another layer, if it is equal.
    pub(crate) fn share_key(&mut self, key: &Arc<FilterKey>) {
        if let Bits::Blocked(bits) = &mut self.bits
            && bits.key.key() == key.key()
        {
            bits.key = Arc::clone(key);
        }
    }

    /// The key to share, in the blocked layout.
    pub(crate) fn filter_key(&self) -> Option<&Arc<FilterKey>> {
        self.as_blocked().map(|bits| &bits.key)
    }

    /// What hashes its items, and decides where their bits lie.
    pub(crate) fn kind(&self) -> Kind {
        match &self.bits {
            Bits::Classic(ClassicArray::RedisBloom(_)) => Kind::Classic,
            Bits::Classic(ClassicArray::Valkey(bits)) => Kind::Valkey(bits.valkey),
            Bits::Blocked(bits) => Kind::Blocked(bits.key.key()),
        }
    }

    /// What only a layer of valkey-bloom has.
    pub(crate) fn valkey_bloom(&self) -> Option<&ValkeyBloom> {
        match &self.bits {
            Bits::Classic(ClassicArray::Valkey(bits)) => Some(&bits.valkey),
            _ => None,
        }
    }

    fn new(bits: Bits, shape: Arc<Shape>) -> Layer {
        Layer {
            bits,
            items: 0,
            shape,
        }
    }

    /// Where the bits of an item lie.
    #[must_use]
    pub fn layout(&self) -> Layout {
        match self.bits {
            Bits::Classic(_) => Layout::Classic,
            Bits::Blocked(_) => Layout::Blocked,
        }
    }

    /// The bits, if they are those of RedisBloom.
    #[inline]
    pub(crate) fn as_classic(&self) -> Option<ClassicBits<'_>> {
        match &self.bits {
            Bits::Classic(ClassicArray::RedisBloom(bits)) => {
                Some(ClassicBits::new(bits, &self.shape))
            }
            _ => None,
        }
    }

    /// The bits, if they are in the blocked layout.
    #[inline]
    pub(crate) fn as_blocked(&self) -> Option<&BlockedBits> {
        match &self.bits {
            Bits::Classic(_) => None,
            Bits::Blocked(bits) => Some(bits),
        }
    }

    /// The key of the hash, in the blocked layout.
    pub(crate) fn key(&self) -> Option<Key> {
        self.filter_key().map(|key| key.key())
    }

    /// Bytes of memory of the key, which all layers of a filter share.
    pub(crate) fn key_bytes(&self) -> usize {
        self.filter_key().map_or(0, |key| key.memory())
    }

    /// Bytes in memory beside itself of a layer that shares its key with none.
    #[inline]
    pub(crate) fn heap_bytes_alone(&self) -> usize {
        match &self.bits {
            Bits::Classic(bits) => bits.memory(),
            Bits::Blocked(bits) => bits.memory() + bits.key.memory(),
        }
    }

    /// Length of the bit array in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shape.size.bytes
    }

    /// Length of the bit array in bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bytes() * 8
    }

    /// Items added so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether nothing was added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Items it is made for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shape.size.capacity
    }

    /// The error rate it is made for.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.shape.size.error_rate
    }

    /// Bits set by an item.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.shape.size.hashes
    }

    /// The parameters of the layer. In the classic layout, bits per item are the value before any
    /// rounding.
    pub(crate) fn size(&self) -> &LayerSize {
        &self.shape.size
    }

    /// The number of bits that an item may set.
    pub(crate) fn modulus(&self) -> u64 {
        self.shape.modulus.get()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.items >= self.capacity()
    }

    /// The bit array: bit `p` is bit `p % 8`, least significant first, of byte `p / 8`.
    ///
    /// Borrowed, unless only the positions of a few ones are kept.
    #[must_use]
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        match &self.bits {
            Bits::Classic(bits) => bits.array().as_bytes(),
            Bits::Blocked(bits) => Cow::Borrowed(bits.array.as_bytes()),
        }
    }

    /// What the number of ones says. Takes time linear in the length.
    pub(crate) fn fill(&self) -> Fill {
        match &self.bits {
            Bits::Classic(bits) => self.fill_of([bits.array().count_ones()].into_iter()),
            Bits::Blocked(bits) => bits.fill(),
        }
    }

    /// What the number of ones would say if each byte were combined in this way with that of a
    /// layer of the same size.
    pub(crate) fn fill_with(&self, other: &Layer, combine: impl Fn(u8, u8) -> u8) -> Fill {
        let (own, others) = (self.as_bytes(), other.as_bytes());
        let blocks = own.chunks(BLOCK).zip(others.chunks(BLOCK));
        self.fill_of(blocks.map(|(own, others)| {
            let mut block = [0; BLOCK];
            for (byte, (own, other)) in block.iter_mut().zip(own.iter().zip(others)) {
                *byte = combine(*own, *other);
            }
            count_ones(&block)
        }))
    }

    /// What this number of ones in each block of the array says.
    pub(crate) fn fill_of(&self, ones_of_each: impl Iterator<Item = u64>) -> Fill {
        let hashes = self.hashes();
        if self.layout() == Layout::Blocked {
            return Fill::of_blocks(ones_of_each, hashes);
        }
        let fill = Fill::of_classic(ones_of_each.sum(), self.modulus(), hashes);
        // Without hashes the bits tell nothing of the items.
        let items = if hashes == 0 { self.items } else { fill.items };
        Fill { items, ..fill }
    }

    /// What [`Stats::of_layers`](crate::Stats) takes of a layer.
    pub(crate) fn measured(&self) -> (LayerSize, u64, Fill) {
        (*self.size(), self.modulus(), self.fill())
    }

    /// The huge pages; none while only the positions of a few ones are kept.
    fn huge_pages(&self) -> HugePages<'_> {
        let touched = match &self.bits {
            Bits::Classic(_) => self.hashes(),
            Bits::Blocked(_) => 1,
        };
        HugePages {
            bytes: self.dense_bytes(),
            touched,
        }
    }

    /// The bit array; none while only the positions of a few ones are kept.
    #[inline]
    fn dense_bytes(&self) -> &[u8] {
        match &self.bits {
            Bits::Classic(bits) => bits.array().dense().unwrap_or_default(),
            Bits::Blocked(bits) => bits.array.as_bytes(),
        }
    }

    /// Copies these bits, which are as many, into an empty layer that has its item count.
    pub(crate) fn load(&mut self, bits: &[u8]) {
        pages::copy(self.all_bytes(), bits);
        self.shrink();
    }

    /// All bytes, to be overwritten, as [`place`](Self::place) has a part of them.
    pub(crate) fn all_bytes(&mut self) -> &mut [u8] {
        let len = self.as_bytes_mut().len();
        self.place(0..len).unwrap_or_default()
    }

    /// A part of the bytes, to be overwritten. Its pages that are due at this item count become huge
    /// pages first.
    pub(crate) fn place(&mut self, part: Range<usize>) -> Option<&mut [u8]> {
        // If only the positions of a few ones were kept, there is an array from here on.
        self.as_bytes_mut();
        self.huge_pages().prepare(part.clone(), self.items);
        self.as_bytes_mut().get_mut(part)
    }

    /// Moves the pages that are due at this item count to huge pages, after bits were loaded.
    pub(crate) fn collapse_loaded(&self) {
        self.collapse_since(0);
    }

    /// Bytes in memory beside itself, without what layers of equal parameters share, and without the
    /// key.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.bits {
            Bits::Classic(bits) => bits.memory(),
            Bits::Blocked(bits) => bits.memory(),
        }
    }

    /// Makes all bits 0. A large array gives its memory back, if another one can be had.
    pub(crate) fn clear(&mut self) {
        match self.like(self.size(), u64::MAX) {
            Ok(empty) => *self = empty,
            Err(_) => {
                self.as_bytes_mut().fill(0);
                self.items = 0;
            }
        }
    }

    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.bits {
            Bits::Classic(bits) => bits.array_mut().as_bytes_mut(),
            Bits::Blocked(bits) => bits.array.as_bytes_mut(),
        }
    }

    /// Lets the bits be moved to another place, if there are any; they must stay as many.
    pub(crate) fn relocate(&mut self, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        match &mut self.bits {
            Bits::Classic(bits) => bits.array_mut().relocate(relocate),
            Bits::Blocked(bits) => bits.array.relocate(relocate),
        }
    }

    /// Gives memory back that few bits do not need.
    pub(crate) fn shrink(&mut self) {
        if let Bits::Classic(bits) = &mut self.bits {
            bits.array_mut().shrink();
        }
    }

    pub(crate) fn set_len(&mut self, items: u64) {
        self.items = items;
    }

    /// What hashes items as this layer does; `width` is that of RedisBloom's hash.
    pub(crate) fn hasher(&self, width: HashWidth) -> Hasher {
        match &self.bits {
            Bits::Classic(ClassicArray::RedisBloom(_)) => Hasher::Classic(width),
            Bits::Classic(ClassicArray::Valkey(bits)) => Hasher::Valkey(bits.valkey),
            Bits::Blocked(bits) => Hasher::Blocked(bits.key.secrets()),
        }
    }

    /// Hashes an item as this layer does; `width` is that of RedisBloom's hash.
    #[inline]
    pub(crate) fn hash(&self, item: &(impl Item + ?Sized), width: HashWidth) -> DoubleHash {
        match &self.bits {
            Bits::Classic(bits) => bits.hash(item, width),
            Bits::Blocked(bits) => item.hash_with(&*bits.key),
        }
    }

    /// Whether [`contains_item`](Self::contains_item) hashes as a filter of this width does.
    #[inline]
    pub(crate) fn hashes_as(&self, width: HashWidth) -> bool {
        match &self.bits {
            Bits::Classic(ClassicArray::RedisBloom(_)) => width == HashWidth::Bits64,
            Bits::Classic(ClassicArray::Valkey(_)) => false,
            Bits::Blocked(_) => true,
        }
    }

    /// Whether all bits of the item are 1, for which RedisBloom's hash has 64 bits.
    #[inline]
    pub(crate) fn contains_item(&self, item: &(impl Item + ?Sized)) -> bool {
        match (item.as_item_bytes(), &self.bits) {
            (Some(bytes), Bits::Blocked(bits)) => bits.contains_item(bytes),
            (Some(bytes), Bits::Classic(bits)) => bits.contains_item(bytes, &self.shape),
            (None, _) => self.contains(self.hash(item, HashWidth::Bits64)),
        }
    }

    /// Whether all bits of the hashed item are 1.
    #[inline]
    pub(crate) fn contains(&self, pair: DoubleHash) -> bool {
        match &self.bits {
            Bits::Classic(bits) => bits.contains(&self.shape, pair),
            Bits::Blocked(bits) => bits.contains(pair),
        }
    }

    /// Prefetches the key, if there is one.
    #[inline]
    pub(crate) fn prefetch_key(&self) {
        if let Bits::Blocked(bits) = &self.bits {
            bits.prefetch_key();
        }
    }

    /// Prefetches all bits, if these are in few cache lines: that is less work than to hash an item
    /// and to find where its bits are. Returns whether they are.
    #[inline]
    pub(crate) fn prefetch_short(&self) -> bool {
        let bytes = self.dense_bytes();
        let is_short = bytes.len() <= SHORT;
        if is_short {
            prefetch_value(bytes);
        }
        is_short
    }

    /// Prefetches this many of the item's bits.
    #[inline]
    pub(crate) fn prefetch(&self, pair: DoubleHash, most: u32) {
        match &self.bits {
            Bits::Classic(bits) => bits.prefetch(&self.shape, pair, most),
            Bits::Blocked(bits) => bits.array.prefetch(pair.a),
        }
    }

    /// Sets the item's bits and counts it.
    #[inline]
    pub(crate) fn insert(&mut self, pair: DoubleHash) {
        self.insert_uncounted(pair);
        self.count(1);
    }

    /// Sets the item's bits; counts it, and says so, unless all of them were set before.
    #[inline]
    pub(crate) fn insert_if_new(&mut self, pair: DoubleHash) -> bool {
        let new = match &mut self.bits {
            Bits::Classic(bits) => bits.insert(&self.shape, pair),
            Bits::Blocked(bits) => bits.insert(pair),
        };
        self.count(new.into());
        new
    }

    #[inline]
    fn count(&mut self, new: u32) {
        let before = self.items;
        self.items = before.wrapping_add(new.into());
        // The count passes a multiple of STEP, or its own end.
        if (self.items ^ before) >= STEP {
            self.pass_step(before);
        }
    }

    /// Ends a step of the item count, which was this before. Not inlined, so that an insertion has
    /// no registers to save.
    #[cold]
    #[inline(never)]
    fn pass_step(&mut self, before: u64) {
        if self.items < before {
            self.items = u64::MAX;
        }
        self.collapse_since(before);
    }

    /// Moves the pages that are due since this item count to huge pages.
    fn collapse_since(&self, before: u64) {
        self.huge_pages().collapse_since(before, self.items);
    }

    /// [`insert_if_new`](Self::insert_if_new) for an item. `width` is that of RedisBloom's hash.
    #[inline]
    pub(crate) fn insert_item(&mut self, item: &(impl Item + ?Sized), width: HashWidth) -> bool {
        let Bits::Blocked(bits) = &mut self.bits else {
            return self.insert_classic(item, width);
        };
        let new = match item.as_item_bytes() {
            Some(bytes) => bits.insert_item(bytes),
            None => bits.insert(item.hash_with(&*bits.key)),
        };
        self.count(new.into());
        new
    }

    /// [`insert_item`](Self::insert_item) in the classic layout; a known item writes nothing. Not
    /// inlined, so that an insertion in the blocked layout has no registers to save.
    #[inline(never)]
    fn insert_classic(&mut self, item: &(impl Item + ?Sized), width: HashWidth) -> bool {
        let Bits::Classic(bits) = &mut self.bits else {
            return false;
        };
        let pair = bits.hash(item, width);
        let new = bits.insert_unless_known(&self.shape, pair);
        self.count(new.into());
        new
    }

    /// [`insert_if_new`](Self::insert_if_new) for those of the items in the mask, in order; which
    /// of them are new.
    #[inline]
    pub(crate) fn insert_group(&mut self, pairs: &[DoubleHash; 32], mask: u32) -> u32 {
        let Bits::Blocked(bits) = &mut self.bits else {
            let mut new = 0;
            for (index, &pair) in pairs.iter().enumerate() {
                new |= u32::from(mask >> index & 1 == 1 && self.insert_if_new(pair)) << index;
            }
            return new;
        };
        let new = bits.insert_group(pairs, mask);
        self.count(new.count_ones());
        new
    }

    /// Sets the item's bits.
    #[inline]
    pub(crate) fn insert_uncounted(&mut self, pair: DoubleHash) {
        match &mut self.bits {
            Bits::Classic(bits) => drop(bits.insert(&self.shape, pair)),
            Bits::Blocked(bits) => drop(bits.insert(pair)),
        }
    }

    /// Calls `note` with each byte that [`insert`](Self::insert) would change.
    #[cold]
    pub(crate) fn note_insert(&self, pair: DoubleHash, note: impl FnMut(u64)) {
        match &self.bits {
            Bits::Classic(bits) => bits.note_insert(&self.shape, pair, note),
            Bits::Blocked(bits) => bits.note_insert(pair, note),
        }
    }
}

/// For filters that several threads change.
#[cfg(target_has_atomic = "64")]
impl Layer {
    /// The bits and what they were made for, if they are in the blocked layout.
    pub(crate) fn into_blocked(self) -> Option<(BlockedBits, Arc<Shape>)> {
        match self.bits {
            Bits::Classic(_) => None,
            Bits::Blocked(bits) => Some((bits, self.shape)),
        }
    }

    /// The layer that [`into_blocked`](Self::into_blocked) took apart. Its items are those that the
    /// bits suggest.
    pub(crate) fn from_blocked(bits: BlockedBits, shape: Arc<Shape>) -> Layer {
        let layer = Layer {
            items: bits.fill().items,
            bits: Bits::Blocked(bits),
            shape,
        };
        layer.collapse_loaded();
        layer
    }
}

impl Layer {
    /// A copy, if there is memory for it.
    pub(crate) fn try_clone(&self) -> Result<Layer, BuildError> {
        let mut copy = self.like(self.size(), u64::MAX)?;
        copy.items = self.items;
        copy.load(&self.as_bytes());
        Ok(copy)
    }
}

impl Clone for Layer {
    fn clone(&self) -> Layer {
        let copy = Layer {
            bits: self.bits.clone(),
            items: self.items,
            shape: Arc::clone(&self.shape),
        };
        copy.collapse_loaded();
        copy
    }
}

#[cfg(test)]
#[cfg(target_pointer_width = "64")]
mod tests {
    use alloc::vec::Vec;

    use super::{Arc, BitArray, BlockedBits, DoubleHash, HashWidth, Kind, Layer, Shape};
    use crate::hash::Key;
    use crate::sizing::BlockedSize;

    /// A file may say any count.
    #[test]
    fn a_count_stays_at_its_end() {
        let size = BlockedSize::from_bits(1 << 20, 6, Some(1)).unwrap();
        let kind = Kind::Blocked(Key::from_seed(1));
        let mut layer = Layer::empty(&size.as_layer(), kind, u64::MAX).unwrap();
        layer.set_len(u64::MAX - 2);
        let mut counts = Vec::new();
        for item in ["a", "b", "b", "c"] {
            layer.insert_item(item, HashWidth::Bits64);
            counts.push(layer.len());
        }
        let [max, last] = [u64::MAX, u64::MAX - 1];
        assert_eq!(counts, [last, max, max, max]);
        layer.set_len(last);
        let pair = |number: u64| DoubleHash {
            a: number << 59,
            b: number,
        };
        let pairs = core::array::from_fn(|index| pair(index as u64));
        assert!(layer.insert_group(&pairs, u32::MAX).count_ones() > 2);
        assert_eq!(layer.len(), max);
    }

    #[test]
    fn the_blocked_layout_makes_no_layer_larger() {
        assert_eq!(size_of::<BlockedBits>(), 32);
        let parts = size_of::<BitArray>() + size_of::<u64>() + size_of::<Arc<Shape>>();
        assert_eq!(size_of::<Layer>(), parts);
        // What each layer would take more without sharing, beside two counters.
        assert_eq!(size_of::<Shape>(), 56);
    }
}
