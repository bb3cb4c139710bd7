//! One layer in RedisBloom's bit layout: a bit array and what it was made for.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::size_of;

use crate::bits::BitArray;
use crate::hash::HashPair;
use crate::math::whole;
use crate::shape::Shape;
use crate::sizing::{LayerSize, textbook};

/// Why a filter cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The error rate is not strictly between 0 and 1.
    #[error("the error rate must be greater than 0 and less than 1")]
    ErrorRate,
    /// The capacity is 0.
    #[error("the capacity must be at least 1")]
    Capacity,
    /// The hash count is 0 or too large, or it does not follow from what was given.
    #[error(
        "the hash count is missing or out of its range: 1 to {}, in the blocked layout {} to {}",
        crate::sizing::MAX_HASHES,
        crate::sizing::blocked::MIN_HASHES,
        crate::sizing::blocked::MAX_HASHES
    )]
    Hashes,
    /// The bit count is 0.
    #[error("the bit count must be at least 1")]
    Bits,
    /// A bit count was given together with both a hash count and an error rate, or a hash count
    /// without a bit count.
    #[error("a bit count and a hash count belong together and leave no error rate to choose")]
    Conflict,
    /// No size fits, such as for an error rate half of which is 0, or one below
    /// [`MIN_RATE`](crate::sizing::blocked::MIN_RATE) in the blocked layout.
    #[error("no filter has such a capacity and error rate")]
    Unsizable,
    /// A key or a seed was given for the classic layout, whose hash has none.
    #[error("a key or a seed is for the blocked layout")]
    UnexpectedKey,
    /// The blocked layout needs a key or a seed where there is no system to ask for a random one.
    #[error("the blocked layout needs a key or a seed")]
    NoKey,
    /// A layer would be larger than the limit.
    #[error("a bit array of {bytes} bytes is over the limit")]
    TooLarge {
        /// The bytes it would need.
        bytes: u64,
    },
    /// The allocator refused.
    #[error("no memory for a bit array of {bytes} bytes")]
    OutOfMemory {
        /// The bytes it would need.
        bytes: u64,
    },
}

/// How many bits of an item are tested before the first branch.
pub(crate) const RUN: u32 = 4;

/// From how many bytes on a bit array counts as far away.
const FAR: u64 = 4 << 20;

/// What bit positions are taken modulo of.
fn modulus_of(size: &LayerSize) -> Result<u64, BuildError> {
    let modulus = match size.log2_bits {
        0 => size.bytes.checked_mul(8),
        log2_bits => 1_u64.checked_shl(u32::from(log2_bits)),
    };
    // Every position must lie in the array; probing relies on it.
    let modulus = modulus.filter(|&modulus| modulus > 0 && (modulus - 1) / 8 < size.bytes);
    modulus.ok_or(BuildError::Unsizable)
}

/// One bit array of a filter: fixed in size, made for a capacity and an error rate.
///
/// Layers are read here and changed through the filter they belong to.
///
/// ```
/// let filter = everbloom::ScalableBloomFilter::builder().capacity(100).build()?;
/// let layer = &filter.layers()[0];
/// assert_eq!((layer.bits(), layer.hashes(), layer.error_rate()), (1152, 8, 0.005));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClassicLayer {
    bits: BitArray,
    items: u64,
    shape: Arc<Shape>,
}

impl ClassicLayer {
    /// An empty layer.
    pub(crate) fn new(size: &LayerSize, max_bytes: u64) -> Result<ClassicLayer, BuildError> {
        let bytes = size.bytes;
        if bytes > max_bytes {
            return Err(BuildError::TooLarge { bytes });
        }
        // Before anything is allocated.
        let modulus = modulus_of(size)?;
        let bits = BitArray::zeroed(bytes).map_err(|_| BuildError::OutOfMemory { bytes })?;
        Ok(ClassicLayer::assembled(size, modulus, bits))
    }

    /// A layer with these bits, which must be as many bytes as the size says.
    pub(crate) fn with_bits(size: &LayerSize, bits: Vec<u8>) -> Result<ClassicLayer, BuildError> {
        let bits = BitArray::from_vec(bits);
        if bits.len() != size.bytes {
            return Err(BuildError::Unsizable);
        }
        Ok(ClassicLayer::assembled(size, modulus_of(size)?, bits))
    }

    fn assembled(size: &LayerSize, modulus: u64, bits: BitArray) -> ClassicLayer {
        ClassicLayer {
            bits,
            items: 0,
            shape: Shape::shared(size, modulus),
        }
    }

    /// Length of the bit array in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bits.len()
    }

    /// Length of the bit array in bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits.len() * 8
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

    /// Bits per item of the capacity, before any rounding.
    #[must_use]
    pub fn bits_per_entry(&self) -> f64 {
        self.shape.size.bits_per_entry
    }

    /// Bits set by an item.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.shape.size.hashes
    }

    /// Logarithm of the modulus of bit positions; 0 when the modulus is [`bits`](Self::bits).
    #[must_use]
    pub fn log2_bits(&self) -> u8 {
        self.shape.size.log2_bits
    }

    /// The bit array: position `p` is bit `p % 8`, least significant first, of byte `p / 8`.
    #[must_use]
    ///
    /// Borrowed, but for a small array with few ones, of which only their positions are kept.
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        self.bits.as_bytes()
    }

    /// The part of the bits that are 1. Takes time linear in the length.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.bits.count_ones() as f64 / self.modulus() as f64
    }

    /// The error rate to expect now, from the bits that are 1. Takes time linear in the length.
    #[must_use]
    pub fn estimated_error_rate(&self) -> f64 {
        textbook::error_rate_from_fill(self.fill_ratio(), f64::from(self.hashes()))
    }

    /// How many different items were inserted, estimated from the bits that are 1; when all are,
    /// the most that a fill can tell. Takes time linear in the length.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        if self.hashes() == 0 {
            return self.items;
        }
        let bits = self.modulus() as f64;
        let ones = (self.bits.count_ones() as f64).min(bits - 1.0);
        whole(textbook::items_from_ones(bits, f64::from(self.hashes()), ones) + 0.5)
    }

    /// What it occupies in memory, in bytes. What layers of equal parameters share is left out.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.bits.memory()
    }

    pub(crate) fn bits_mut(&mut self) -> &mut BitArray {
        &mut self.bits
    }

    pub(crate) fn size(&self) -> LayerSize {
        self.shape.size
    }

    /// The number of bits that positions are taken modulo of.
    pub(crate) fn modulus(&self) -> u64 {
        self.shape.modulus.get()
    }

    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        self.bits.as_bytes_mut()
    }

    /// Gives memory back that few bits do not need.
    pub(crate) fn shrink(&mut self) {
        self.bits.shrink();
    }

    pub(crate) fn set_len(&mut self, items: u64) {
        self.items = items;
    }

    #[inline]
    fn positions(&self, pair: HashPair) -> impl Iterator<Item = u64> + use<> {
        pair.reduced(self.hashes(), self.shape.modulus)
    }

    /// Whether it is too large for the processor's nearer caches, so that asking for cache lines
    /// ahead of time pays.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.bits.len() >= FAR
    }

    /// Whether all bits of the item are 1.
    #[inline]
    pub(crate) fn contains(&self, pair: HashPair) -> bool {
        self.contains_first(pair) && self.contains_rest(pair)
    }

    /// Whether the item's first bits, [`RUN`] of them, are 1.
    #[inline]
    pub(crate) fn contains_first(&self, pair: HashPair) -> bool {
        if self.hashes() < RUN {
            return self
                .positions(pair)
                .all(|position| self.bits.test(position));
        }
        self.run(pair)
    }

    /// Whether the item's other bits are 1.
    #[inline]
    pub(crate) fn contains_rest(&self, pair: HashPair) -> bool {
        let mut pair = pair;
        let mut left = self.hashes();
        while left >= 2 * RUN {
            left -= RUN;
            pair = pair.skip(RUN);
            if !self.run(pair) {
                return false;
            }
        }
        let mut rest = pair
            .skip(RUN)
            .reduced(left.saturating_sub(RUN), self.shape.modulus);
        rest.all(|position| self.bits.test(position))
    }

    /// Whether [`RUN`] bits from the pair's first position on are 1. All of them are looked at:
    /// in a half-full layer a branch after each would be a coin toss for the processor.
    #[inline]
    fn run(&self, pair: HashPair) -> bool {
        self.test_all(self.run_of(pair))
    }

    /// [`RUN`] positions from the pair's first on.
    #[inline]
    pub(crate) fn run_of(&self, pair: HashPair) -> [u64; RUN as usize] {
        let (a, b) = (pair.a, pair.b);
        let x = [
            a,
            a.wrapping_add(b),
            a.wrapping_add(b << 1),
            a.wrapping_add(b << 1).wrapping_add(b),
        ];
        x.map(|x| self.shape.modulus.reduce(x))
    }

    /// Whether the bits at these positions are 1.
    #[inline]
    pub(crate) fn test_all(&self, positions: [u64; RUN as usize]) -> bool {
        self.bits.test_all(positions)
    }

    /// Asks for the cache lines of these positions.
    #[inline]
    pub(crate) fn prefetch(&self, positions: [u64; RUN as usize]) {
        for position in positions {
            self.bits.prefetch(position);
        }
    }

    /// Calls `note` with each byte that [`insert`](Self::insert) would change, and what it is now.
    pub(crate) fn note_insert(&self, pair: HashPair, mut note: impl FnMut(u64, u8)) {
        for position in self.positions(pair) {
            if !self.bits.test(position) {
                let byte = position / 8;
                note(byte, self.bits.byte(byte));
            }
        }
    }

    /// Sets the item's bits and counts it.
    #[inline]
    pub(crate) fn insert(&mut self, pair: HashPair) {
        self.insert_uncounted(pair);
        self.items = self.items.saturating_add(1);
    }

    /// Sets the item's bits; counts it, and says so, unless all of them were set before.
    #[inline]
    pub(crate) fn insert_if_new(&mut self, pair: HashPair) -> bool {
        let new = self.insert_uncounted(pair);
        self.items = self.items.saturating_add(u64::from(new));
        new
    }

    /// Sets the item's bits; whether one of them was not.
    #[inline]
    pub(crate) fn insert_uncounted(&mut self, pair: HashPair) -> bool {
        let positions = self.positions(pair);
        self.bits.set_all(positions)
    }

    /// Asks for the cache lines of the item's other bits.
    #[inline]
    pub(crate) fn prefetch_rest(&self, pair: HashPair) {
        let rest = self.hashes().saturating_sub(RUN);
        for position in pair.skip(RUN).reduced(rest, self.shape.modulus) {
            self.bits.prefetch(position);
        }
    }
}
