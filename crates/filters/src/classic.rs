//! One layer in RedisBloom's bit layout: a bit array and what it was made for.

use core::mem::size_of;

use crate::bits::BitArray;
use crate::hash::{HashPair, Modulus};
use crate::sizing::LayerSize;

/// Why a filter cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The error rate is not strictly between 0 and 1.
    #[error("the error rate must be greater than 0 and less than 1")]
    ErrorRate,
    /// The capacity is 0.
    #[error("the capacity must be at least 1")]
    Capacity,
    /// The hash count is 0, too large, or missing where the bit count was given.
    #[error("the hash count must be from 1 to {}", crate::sizing::MAX_HASHES)]
    Hashes,
    /// The bit count is 0.
    #[error("the bit count must be at least 1")]
    Bits,
    /// No size fits, such as for an error rate half of which is 0.
    #[error("no filter has such a capacity and error rate")]
    Unsizable,
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
    capacity: u64,
    error_rate: f64,
    bits_per_entry: f64,
    reciprocal: u64,
    hashes: u32,
    log2_bits: u8,
}

impl ClassicLayer {
    /// An empty layer.
    pub(crate) fn new(size: &LayerSize, max_bytes: u64) -> Result<ClassicLayer, BuildError> {
        let bytes = size.bytes;
        if bytes > max_bytes {
            return Err(BuildError::TooLarge { bytes });
        }
        let modulus = match size.log2_bits {
            0 => bytes.checked_mul(8),
            log2_bits => 1_u64.checked_shl(u32::from(log2_bits)),
        };
        let modulus = modulus.filter(|&modulus| {
            // Every position must lie in the array; probing relies on it.
            modulus > 0 && (modulus - 1) / 8 < bytes
        });
        let modulus = modulus.ok_or(BuildError::Unsizable)?;
        let bits = BitArray::zeroed(bytes).map_err(|_| BuildError::OutOfMemory { bytes })?;
        Ok(ClassicLayer {
            bits,
            items: 0,
            capacity: size.capacity,
            error_rate: size.error_rate,
            bits_per_entry: size.bits_per_entry,
            reciprocal: Modulus::new(modulus).reciprocal(),
            hashes: size.hashes,
            log2_bits: size.log2_bits,
        })
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
        self.capacity
    }

    /// The error rate it is made for.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.error_rate
    }

    /// Bits per item of the capacity, before any rounding.
    #[must_use]
    pub fn bits_per_entry(&self) -> f64 {
        self.bits_per_entry
    }

    /// Bits set by an item.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Logarithm of the modulus of bit positions; 0 when the modulus is [`bits`](Self::bits).
    #[must_use]
    pub fn log2_bits(&self) -> u8 {
        self.log2_bits
    }

    /// The bit array: position `p` is bit `p % 8`, least significant first, of byte `p / 8`.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bits.as_bytes()
    }

    /// The part of the bits that are 1. Takes time linear in the length.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.bits.count_ones() as f64 / self.modulus() as f64
    }

    /// What it occupies in memory, in bytes.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.as_bytes().len()
    }

    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        self.bits.as_bytes_mut()
    }

    pub(crate) fn set_len(&mut self, items: u64) {
        self.items = items;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.items >= self.capacity
    }

    #[inline]
    fn modulus(&self) -> u64 {
        if self.log2_bits > 0 {
            1 << self.log2_bits
        } else {
            self.bits()
        }
    }

    #[inline]
    fn positions(&self, pair: HashPair) -> impl Iterator<Item = u64> + use<> {
        pair.reduced(
            self.hashes,
            Modulus::with_reciprocal(self.modulus(), self.reciprocal),
        )
    }

    /// Whether all bits of the item are 1.
    #[inline]
    pub(crate) fn contains(&self, pair: HashPair) -> bool {
        self.positions(pair)
            .all(|position| self.bits.test(position))
    }

    /// Sets the item's bits and counts it.
    #[inline]
    pub(crate) fn insert(&mut self, pair: HashPair) {
        for position in self.positions(pair) {
            self.bits.set(position);
        }
        self.items = self.items.saturating_add(1);
    }

    /// Asks for the cache lines of all bits of the item.
    #[inline]
    pub(crate) fn prefetch(&self, pair: HashPair) {
        for position in self.positions(pair) {
            self.bits.prefetch(position);
        }
    }
}
