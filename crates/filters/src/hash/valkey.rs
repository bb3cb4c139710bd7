//! The filters of valkey-bloom: their hash, their positions, and the sizes of their layers.
//!
//! Such a filter has the classic layout: an item's bits lie anywhere in the bit array. It is loaded
//! from a file or a server, and then works on as it did there.

use crate::hash::sip13;
use crate::math::{ceil, ln, power, whole};
use crate::sizing::LayerSize;

/// What only a filter of valkey-bloom has. [Example](Self::FIXED_SEED).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValkeyBloom {
    /// The seed of its hash: two keys of SipHash.
    pub seed: [u8; 32],
    /// How many times the error rate of a layer the next one has; between 0 and 1.
    pub tightening: f64,
}

/// The most layers of a filter. A lookup in so many is slower than any use of a filter allows. With
/// a tightening ratio near 1 and an expansion of 1, a filter could get a layer for each item.
const MAX_LAYERS: usize = 1 << 12;

/// The largest prime below 2^64.
const PRIME: u64 = u64::MAX - 58;

impl ValkeyBloom {
    /// The seed of valkey-bloom with `bloom-use-random-seed no`.
    ///
    /// ```
    /// use everbloom::host::LayeredFilter;
    /// use everbloom::redisbloom::ValkeyBloom;
    /// let kind = ValkeyBloom { seed: ValkeyBloom::FIXED_SEED, tightening: 0.5 };
    /// let builder = LayeredFilter::builder().capacity(100).error_rate(0.01);
    /// let mut filter = builder.valkey(kind).build()?;
    /// assert!(filter.insert("a") && filter.contains("a"));
    /// assert_eq!(kind.tightened(3), 0.125);
    /// assert_eq!(kind.max_capacity(100, 0.01, 2, 120 + 276), 100 + 200);
    /// assert_eq!((filter.valkey(), filter.layers()[0].bytes()), (Some(&kind), 120));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    pub const FIXED_SEED: [u8; 32] = [
        0x59, 0x0f, 0xf5, 0x22, 0xea, 0x78, 0x11, 0xda, 0xa7, 0x14, 0xd8, 0x09, 0x3b, 0x3e, 0x7b,
        0xd9, 0x1d, 0x89, 0x8a, 0x73, 0x3e, 0x98, 0x88, 0x87, 0x30, 0x7f, 0x97, 0xcd, 0x28, 0x07,
        0x33, 0x83,
    ];

    /// Whether the tightening ratio is one.
    pub(crate) fn tightens(&self) -> bool {
        self.tightening > 0.0 && self.tightening < 1.0
    }

    /// The tightening ratio to the power of a layer's number, by squaring: how many times the error
    /// rate of the first layer that one has. [Example](Self::FIXED_SEED).
    #[must_use]
    pub fn tightened(&self, layer: usize) -> f64 {
        power(self.tightening, u32::try_from(layer).unwrap_or(u32::MAX))
    }

    /// The items that a filter has room for when it has grown as far as it can: its layers together
    /// have at most `max_bytes`, and the error rate of the last is greater than 0. It gets at most
    /// 4096 layers. [Example](Self::FIXED_SEED).
    #[must_use]
    pub fn max_capacity(
        &self,
        capacity: u64,
        error_rate: f64,
        expansion: u32,
        max_bytes: u64,
    ) -> u64 {
        let (mut size, mut left, mut sum) = (Self::first_size(capacity, error_rate), max_bytes, 0);
        for number in 1..=MAX_LAYERS {
            let Some(layer) = size.filter(|layer| layer.bytes <= left) else {
                break;
            };
            left -= layer.bytes;
            sum = layer.capacity.saturating_add(sum);
            size = self.next_size(number, layer.capacity, error_rate, expansion);
        }
        sum
    }

    /// The hash of an item: SipHash-1-3 of its length, which may have a tag, and its bytes.
    pub(crate) fn hash(&self, length: u64, item: &[u8]) -> [u64; 2] {
        let (keys, _) = self.seed.as_chunks::<8>();
        let number = |at: usize| keys.get(at).map_or(0, |key| u64::from_le_bytes(*key));
        [[number(0), number(1)], [number(2), number(3)]].map(|key| sip13(key, length, item))
    }

    /// The size of the first layer, for this error rate.
    pub(crate) fn first_size(capacity: u64, error_rate: f64) -> Option<LayerSize> {
        if capacity == 0 || !(error_rate > 0.0 && error_rate < 1.0) {
            return None;
        }
        // The order of the operations decides about the last bit.
        let ln2 = core::f64::consts::LN_2;
        let bytes = ceil((capacity as f64 * ln(error_rate)) / (-8.0 * ln2 * ln2));
        let bits = 8.0 * bytes;
        let hashes = whole(bits / capacity as f64 * ln2 + 0.5).max(1);
        Some(LayerSize {
            capacity,
            error_rate,
            bits_per_entry: bits / capacity as f64,
            hashes: u32::try_from(hashes).ok()?,
            bytes: Some(whole(bytes)).filter(|bytes| *bytes < 1 << 60)?,
            log2_bits: 0,
        })
    }

    /// The size of layer `number`, counted from 0, which follows one of this capacity; `None` when
    /// there is no such layer. `error_rate` is that of the first.
    pub(crate) fn next_size(
        &self,
        number: usize,
        capacity: u64,
        error_rate: f64,
        expansion: u32,
    ) -> Option<LayerSize> {
        let rate = error_rate * self.tightened(number);
        let capacity = capacity.checked_mul(expansion.into())?;
        let is_layer = number < MAX_LAYERS && rate > f64::MIN_POSITIVE;
        Self::first_size(capacity, rate).filter(|_| is_layer)
    }
}

/// What an item's position number `index` is before it is reduced to the bits of a layer.
#[inline]
pub(crate) fn position(a: u64, b: u64, index: u32) -> u64 {
    match index {
        0 => a,
        1 => b,
        _ => a.wrapping_add(b.wrapping_mul(index.into())) % PRIME,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_does_not_get_a_layer_for_each_item() {
        let valkey = ValkeyBloom {
            seed: ValkeyBloom::FIXED_SEED,
            tightening: 0.999_999_9,
        };
        let next = |number| valkey.next_size(number, 1, 1e-9, 1);
        assert!(next(MAX_LAYERS - 1).is_some());
        assert!(next(MAX_LAYERS).is_none());
        assert_eq!(valkey.max_capacity(1, 1e-9, 1, u64::MAX), 1 << 12);
    }

    /// No golden filter has an item whose sum lies between the prime and 2^64.
    #[test]
    fn positions_are_reduced_by_the_prime() {
        assert_eq!(
            [0, 1].map(|index| position(u64::MAX, 7, index)),
            [u64::MAX, 7]
        );
        assert_eq!(position(PRIME - 2, 1, 2), 0);
        assert_eq!(position(PRIME, 3, 4), 12);
        assert_eq!(position(u64::MAX, 1, 3), 2);
    }
}
