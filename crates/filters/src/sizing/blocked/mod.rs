//! How large a filter of the blocked layout must be.
//!
//! All `k` bits of an item lie in one block of 512. With `lambda` items a block on average, the
//! number of items in the block of an absent item is Poisson distributed, so the error rate is the
//! mixture
//!
//! ```text
//! sum over j of  lambda^j e^-lambda / j!  *  E[(X / 512)^k],   X = bits set by j items
//! ```
//!
//! (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007, section
//! 3.1, has the mixture with the classic formula inside.) `X` is how many of 512 cells are occupied
//! after `t = j k` throws; its first three moments are known exactly (Kolchin, Sevast'yanov and
//! Chistyakov, "Random allocations", 1978, chapter 1), and the expectation follows from them within
//! 0.1 %. In blocks of few the number of items is binomial, which is less spread: the rate is then
//! below what is computed here.

mod load;
mod rate;
mod table;

use super::classic::{LayerSize, RATE_CAP};
use crate::math::whole;
use load::Load;

/// The part of an error rate that a layer is sized for. The rest is for the spread among filters:
/// the items of one lie a little less evenly than those of another.
const SIZED_FOR: f64 = 0.99;

/// Bytes of a block, which is a cache line.
pub(crate) const BLOCK: usize = BlockedSize::BLOCK_BITS as usize / 8;
/// The most items a block may hold on average: at a single hash, an error rate of 0.9998.
const MAX_LOAD: f64 = 4096.0;

/// How many hash counts there are.
const COUNTS: usize = (BlockedSize::MAX_HASHES - BlockedSize::MIN_HASHES + 1) as usize;

/// The dimensions of one blocked layer. [Example](Self::new).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockedSize {
    /// Items it is made for.
    pub capacity: u64,
    /// The error rate when it is full.
    pub error_rate: f64,
    /// Bits set by an item, from [`MIN_HASHES`](Self::MIN_HASHES) to
    /// [`MAX_HASHES`](Self::MAX_HASHES).
    pub hashes: u32,
    /// Length of the bit array in bytes, a multiple of 64.
    pub bytes: u64,
}

impl BlockedSize {
    /// Bits of a block. [Example](Self::new).
    pub const BLOCK_BITS: u32 = 512;

    /// The least bits that an item sets. One would be enough only for error rates above a third,
    /// which are of no use. [Example](Self::from_bits).
    pub const MIN_HASHES: u32 = 2;

    /// The most bits that an item sets. [Example](Self::from_bits).
    pub const MAX_HASHES: u32 = 32;

    /// The lowest error rate of a layer. Below it, the 64 bits of the hash that choose an item's
    /// bits would begin to show. [Example](Self::new).
    pub const MIN_RATE: f64 = 1e-13;

    /// The least capacity of a large layer. [Example](Self::next).
    pub const LARGE: u64 = 1 << 20;

    /// The smallest dimensions for a capacity and an error rate; `None` when the capacity is 0, the
    /// rate is below [`MIN_RATE`](Self::MIN_RATE) or not less than 1, or the bits would be more
    /// than 2^63.
    ///
    /// ```
    /// use everbloom::sizing::BlockedSize;
    /// let size = BlockedSize::new(1_000_000, 0.01).unwrap();
    /// assert_eq!((size.bits(), size.hashes), (9_942_528, 6));
    /// assert!(size.bits().is_multiple_of(BlockedSize::BLOCK_BITS.into()));
    /// assert_eq!(BlockedSize::new(1_000_000, BlockedSize::MIN_RATE / 2.0), None);
    /// ```
    #[must_use]
    pub fn new(capacity: u64, error_rate: f64) -> Option<BlockedSize> {
        if capacity == 0 || !(Self::MIN_RATE..1.0).contains(&error_rate) {
            return None;
        }
        BlockedSize::with_load(capacity, error_rate, Load::best(error_rate * SIZED_FOR))
    }

    fn with_load(capacity: u64, error_rate: f64, load: Load) -> Option<BlockedSize> {
        let blocks = load.decide(|load| blocks_of(capacity, load));
        if blocks > (1 << 63) / u64::from(Self::BLOCK_BITS) {
            return None;
        }
        Some(BlockedSize {
            capacity,
            error_rate,
            hashes: load.hashes,
            bytes: blocks * BLOCK as u64,
        })
    }

    /// Dimensions of a layer of at least this many bits and exactly this many hashes; `None` when
    /// there are no bits or more than 2^63, or the hashes are not from
    /// [`MIN_HASHES`](Self::MIN_HASHES) to [`MAX_HASHES`](Self::MAX_HASHES).
    ///
    /// The capacity is the given one, or else the largest for which the hash count is the best; the
    /// error rate is the one expected at that capacity.
    ///
    /// ```
    /// use everbloom::sizing::BlockedSize;
    /// let size = BlockedSize::from_bits(1 << 20, 6, None).unwrap();
    /// assert_eq!((size.bytes, size.capacity), (131_072, 121_136));
    /// assert_eq!(BlockedSize::from_bits(1 << 20, BlockedSize::MIN_HASHES - 1, None), None);
    /// assert_eq!(BlockedSize::from_bits(1 << 20, BlockedSize::MAX_HASHES + 1, None), None);
    /// ```
    #[must_use]
    pub fn from_bits(bits: u64, hashes: u32, capacity: Option<u64>) -> Option<BlockedSize> {
        if bits == 0 || bits > 1 << 63 || !(Self::MIN_HASHES..=Self::MAX_HASHES).contains(&hashes) {
            return None;
        }
        let blocks = bits.div_ceil(Self::BLOCK_BITS.into());
        let capacity =
            capacity.unwrap_or_else(|| whole(load::last_load(hashes) * blocks as f64).max(1));
        let rate = Self::rate_at_load(capacity as f64 / blocks as f64, hashes);
        Some(BlockedSize {
            capacity,
            error_rate: rate.clamp(Self::MIN_RATE, 1.0_f64.next_down()),
            hashes,
            bytes: blocks * BLOCK as u64,
        })
    }

    /// The part that a layer of such a capacity takes of the error rate that the layers before it
    /// have left. The sum stays below the whole, however many layers there will be.
    ///
    /// A small layer becomes a small part of the filter, so a low error rate costs it few bits: it
    /// leaves most of the rate to later layers. A large one takes half, as in the classic layout.
    ///
    /// ```
    /// # use everbloom::sizing::BlockedSize;
    /// assert_eq!(BlockedSize::share(100), 0.125);
    /// assert_eq!(BlockedSize::share(BlockedSize::LARGE), 0.5);
    /// ```
    #[must_use]
    pub fn share(capacity: u64) -> f64 {
        if capacity < Self::LARGE { 0.125 } else { 0.5 }
    }

    /// The largest capacity of a layer of at most this many bits at an error rate; 0 when not even
    /// one item fits.
    ///
    /// ```
    /// # use everbloom::sizing::BlockedSize;
    /// assert_eq!(BlockedSize::max_capacity(9_942_528, 0.01), 1_000_042);
    /// ```
    #[must_use]
    pub fn max_capacity(bits: u64, error_rate: f64) -> u64 {
        if !(Self::MIN_RATE..1.0).contains(&error_rate) {
            return 0;
        }
        let blocks = bits / u64::from(Self::BLOCK_BITS);
        Load::best(error_rate * SIZED_FOR).decide(|load| {
            let mut items = whole(load * blocks as f64);
            // The size adds a block where the quotient comes out whole.
            while items > 0 && blocks_of(items, load) > blocks {
                items -= 1 + items / (1 << 53);
            }
            items
        })
    }

    /// The most items with which a layer of this many bits and hashes keeps an error rate.
    pub(crate) fn max_items(bits: u64, hashes: u32, error_rate: f64) -> u64 {
        let blocks = bits / u64::from(Self::BLOCK_BITS);
        let items = Load::new(hashes, error_rate).decide(|load| whole(load * blocks as f64));
        // The load is rounded down.
        let more = items.saturating_add(1);
        match Self::rate_of(bits, hashes, more) <= error_rate {
            true => more,
            false => items,
        }
    }

    /// The error rate of a layer with this many bits, hashes and items; bits count in whole blocks.
    ///
    /// ```
    /// use everbloom::sizing::BlockedSize;
    /// let rate = BlockedSize::rate_of(9_942_528, 6, 1_000_000);
    /// assert!((0.0098..0.01).contains(&rate));
    /// ```
    #[must_use]
    pub fn rate_of(bits: u64, hashes: u32, items: u64) -> f64 {
        let blocks = bits / u64::from(Self::BLOCK_BITS);
        if blocks == 0 {
            return if items == 0 { 0.0 } else { 1.0 };
        }
        Self::rate_at_load(items as f64 / blocks as f64, hashes)
    }

    /// The hash count with the lowest error rate for this many bits and items.
    ///
    /// ```
    /// # use everbloom::sizing::BlockedSize;
    /// assert_eq!(BlockedSize::best_hashes(9_942_528, 1_000_000), 6);
    /// ```
    #[must_use]
    pub fn best_hashes(bits: u64, items: u64) -> u32 {
        let blocks = (bits / u64::from(Self::BLOCK_BITS)).max(1);
        if items == 0 {
            return Self::MIN_HASHES;
        }
        let load = items as f64 / blocks as f64;
        let rate = |hashes: &u32| Self::rate_at_load(load, *hashes);
        let search = || {
            (Self::MIN_HASHES..=Self::MAX_HASHES)
                .min_by(|one, other| rate(one).total_cmp(&rate(other)))
        };
        load::best_hashes(load)
            .or_else(search)
            .unwrap_or(Self::MIN_HASHES)
    }

    /// The error rate at a load, which is the mean number of items in a block. Loads above 4096
    /// count as that.
    ///
    /// ```
    /// # use everbloom::sizing::BlockedSize;
    /// assert!((0.0096..0.0097).contains(&BlockedSize::rate_at_load(51.2, 6)));
    /// ```
    #[must_use]
    pub fn rate_at_load(load: f64, hashes: u32) -> f64 {
        rate::rate_at_load(load, hashes)
    }

    /// Length of the bit array in bits. [Example](Self::new).
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bytes.saturating_mul(8)
    }

    /// Dimensions of the first layer of a filter that grows, which takes its
    /// [`share`](Self::share) of the error rate. A rate above [`RATE_CAP`] is lowered to it first.
    /// [Example](Self::next).
    #[must_use]
    pub fn first(capacity: u64, error_rate: f64) -> Option<BlockedSize> {
        let rate = error_rate.min(RATE_CAP);
        // What is best for the first large layer after small ones, which will be most of a chain.
        let hashes = Load::best(rate * 0.3 * SIZED_FOR).hashes;
        BlockedSize::in_chain(capacity, rate * Self::share(capacity), hashes)
    }

    /// Dimensions of the only layer of a filter that does not grow. A rate above [`RATE_CAP`] is
    /// lowered to it.
    ///
    /// ```
    /// use everbloom::sizing::BlockedSize;
    /// assert_eq!(BlockedSize::only(1_000_000, 0.01), BlockedSize::new(1_000_000, 0.01));
    /// ```
    #[must_use]
    pub fn only(capacity: u64, error_rate: f64) -> Option<BlockedSize> {
        BlockedSize::new(capacity, error_rate.min(RATE_CAP))
    }

    /// As [`new`](Self::new), with this many hashes unless that takes many more bits. Layers with
    /// the same hash count are tested together, which is worth a few bits.
    fn in_chain(capacity: u64, error_rate: f64, hashes: u32) -> Option<BlockedSize> {
        let best = BlockedSize::new(capacity, error_rate)?;
        // A small layer takes whole blocks, too.
        let most = (best.bytes + best.bytes / 8).next_multiple_of(BLOCK as u64);
        best.with_hashes(hashes)
            .filter(|alike| alike.bytes <= most)
            .or(Some(best))
    }

    /// Dimensions for the same capacity and error rate with this many hashes.
    pub(crate) fn with_hashes(self, hashes: u32) -> Option<BlockedSize> {
        if self.hashes == hashes {
            return Some(self);
        }
        let load = Load::new(hashes, self.error_rate * SIZED_FOR);
        BlockedSize::with_load(self.capacity, self.error_rate, load)
    }

    /// Dimensions of the layer after this one, of `expansion` times its capacity, when the existing
    /// layers leave `left` of the given error rate; `None` when no layer fits.
    ///
    /// ```
    /// use everbloom::sizing::BlockedSize;
    /// let small = BlockedSize::first(100, 0.01).unwrap();
    /// assert_eq!(small.error_rate, 0.01 / 8.0);
    /// let next = small.next(4, 0.01 - small.error_rate).unwrap();
    /// assert_eq!((next.capacity, next.error_rate), (400, (0.01 - 0.01 / 8.0) / 8.0));
    ///
    /// let large = BlockedSize::first(BlockedSize::LARGE, 0.01).unwrap();
    /// let next = large.next(2, 0.01 - large.error_rate).unwrap();
    /// assert_eq!((next.capacity, next.error_rate), (2 * BlockedSize::LARGE, 0.01 / 4.0));
    /// ```
    #[must_use]
    pub fn next(&self, expansion: u32, left: f64) -> Option<BlockedSize> {
        let capacity = self.capacity.checked_mul(expansion.into())?;
        let rate = BlockedSize::next_rate(capacity, expansion, self.error_rate, left);
        BlockedSize::in_chain(capacity, rate, self.hashes)
    }

    /// The error rate of a layer of this capacity, when the one before it has the rate `newest` and
    /// all of them leave `left`.
    ///
    /// Layers that grow are few, and take their [`share`](Self::share). Of equal ones there may be
    /// thousands, and rates that shrink by a factor would soon be too low for any layer. There the
    /// parts of what is left are 1/8, 1/9, 1/10 and so on: this follows from the last part.
    pub(crate) fn next_rate(capacity: u64, expansion: u32, newest: f64, left: f64) -> f64 {
        match expansion {
            1 => left * newest / (left + 2.0 * newest),
            _ => left * Self::share(capacity),
        }
    }

    /// The sizes of a layer in the blocked layout.
    pub(crate) fn of_layer(size: &LayerSize) -> BlockedSize {
        BlockedSize {
            capacity: size.capacity,
            error_rate: size.error_rate,
            hashes: size.hashes,
            bytes: size.bytes,
        }
    }

    /// Converts it into the sizes of a layer of any layout.
    pub(crate) fn as_layer(self) -> LayerSize {
        LayerSize {
            capacity: self.capacity,
            error_rate: self.error_rate,
            bits_per_entry: self.bits() as f64 / self.capacity as f64,
            hashes: self.hashes,
            bytes: self.bytes,
            log2_bits: 0,
        }
    }
}

/// The blocks that so many items need: rounded up, and once more where the quotient is whole.
fn blocks_of(items: u64, load: f64) -> u64 {
    whole(items as f64 / load).saturating_add(1)
}

/// What is known of a hash count, where there are so many.
fn row<T>(rows: &[T], hashes: u32) -> Option<&T> {
    let at = hashes.checked_sub(BlockedSize::MIN_HASHES)?;
    rows.get(usize::try_from(at).ok()?)
}

#[cfg(test)]
mod generator;
