//! Filters that become smaller and keep their items and their error rate.
//!
//! A multiplication chooses an item's block, so block `j` of `b` holds the hash values from `j / b`
//! to `(j + 1) / b` of 2^64. Neighbouring blocks become one, and the result equals, bit for bit, a
//! filter that was made with so few blocks. That needs a number of blocks which divides the other.
//!
//! Of any other number, a block on a boundary goes into both neighbours, so items take up room
//! twice. If that happened in each of several steps, most blocks would become full. So a filter
//! has one sequence of sizes, in which each divides the one before, except that one of them may be
//! the next lower power of two: see [`next_smaller`]. However many steps it takes to a size, the
//! bits are those of a single step.

use alloc::vec::Vec;
use core::iter::successors;

use super::fixed::BloomFilter;
use super::layered::LayeredFilter;
use super::layers::Layers;
use super::window::MaybeWindow;
use crate::bits::array::count_ones;
use crate::error::BuildError;
use crate::layer::Layer;
use crate::layer::capture::Capture;
use crate::layer::layout::Layout;
use crate::math::saturating_sum;
use crate::sizing::{BLOCK, BlockedSize};

/// Why a filter cannot be made smaller.
///
/// ```
/// use everbloom::{BloomFilter, Layout, ShrinkError};
/// let mut classic = BloomFilter::builder().capacity(1000).layout(Layout::Classic).build()?;
/// assert_eq!(classic.shrink_to(100), Err(ShrinkError::Layout));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShrinkError {
    /// The classic layout spreads an item's bits over the whole array, so their positions in a
    /// smaller array are unknown.
    Layout,
    /// Each generation of a window is made for its part of the items.
    Window,
    /// The filter has more items than the capacity, or the older layers of one that grows have. It
    /// needs this capacity.
    Capacity(u64),
    /// No smaller size keeps the error rate for this many items. For this capacity, or a lower one,
    /// there is a smaller size.
    NotSmaller(u64),
    /// No smaller size keeps the error rate for the items that the filter has.
    Smallest,
    /// The smaller filter cannot be made.
    Build(BuildError),
}

messages! {
    ShrinkError {
        Layout => "only a filter in the blocked layout can be made smaller";
        Window => "a filter with a window cannot be made smaller";
        Capacity(found) => "the filter needs a capacity of {found}";
        NotSmaller(most) => "the filter becomes smaller only for a capacity of {most} or less";
        Smallest => "no smaller size keeps the error rate for the items of the filter";
        Build(error) => "{error}";
    }
}

impl From<BuildError> for ShrinkError {
    fn from(error: BuildError) -> ShrinkError {
        ShrinkError::Build(error)
    }
}

impl BloomFilter {
    /// Makes the filter smaller and keeps its items and its error rate: the smallest that has room
    /// for this many items. Returns the error rate to expect now.
    ///
    /// Use it for a filter that was made for far too many items. Neighbouring blocks become one,
    /// so the size is halved, once or several times; where it is an odd number of blocks, they
    /// become the next lower power of two. The new [`capacity`](Self::capacity) is what the new size has room
    /// for, which may be twice what was asked for. It follows from the bits that are 1, and so
    /// several steps make the same filter as one. Takes time linear in the size.
    ///
    /// ```
    /// # use everbloom::{BloomFilter, ShrinkError};
    /// let mut seen = BloomFilter::new(1_000_000, 0.01);
    /// seen.extend(0..50_000);
    /// let before = seen.memory_usage();
    /// assert!(seen.shrink_to(50_000)? < 0.01);
    /// assert!(seen.memory_usage() * 18 < before);
    /// assert!((0..50_000).all(|number| seen.contains(&number)));
    /// assert!((50_000..53_000).contains(&seen.capacity()));
    ///
    /// // Half of that would find too many others.
    /// assert_eq!(seen.shrink_to(50_000), Err(ShrinkError::Smallest));
    /// # Ok::<(), everbloom::ShrinkError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ShrinkError`], also when the filter would not become smaller; nothing has changed then.
    pub fn shrink_to(&mut self, capacity: u64) -> Result<f64, ShrinkError> {
        if self.layout() != Layout::Blocked {
            return Err(ShrinkError::Layout);
        }
        self.layer = shrunk(&self.layer, capacity, Rate::Fixed)?;
        Ok(self.estimated_error_rate())
    }
}

impl<W: MaybeWindow> LayeredFilter<W> {
    /// As [`ScalableBloomFilter::shrink_to`](crate::ScalableBloomFilter::shrink_to). A
    /// [capture](Self::begin_capture) in progress ends.
    ///
    /// # Errors
    ///
    /// [`ShrinkError`]; nothing has changed then.
    pub fn shrink_to(&mut self, capacity: u64) -> Result<f64, ShrinkError> {
        let layer = self.smaller_newest(capacity)?;
        if let Some(newest) = self.layers.last_mut() {
            self.capture = Capture::default();
            *newest = layer;
        }
        Ok(self.expected_rate())
    }

    /// A copy that [`shrink_to`](Self::shrink_to) made smaller, and its error rate: less memory
    /// than a copy that is then made smaller.
    ///
    /// # Errors
    ///
    /// [`ShrinkError`].
    pub fn shrunk_to(&self, capacity: u64) -> Result<(Self, f64), ShrinkError> {
        let newest = self.smaller_newest(capacity)?;
        let mut layers = Layers::default();
        for layer in self.layers.iter().take(self.layers.len() - 1) {
            layers.push(layer.try_clone()?);
        }
        layers.push(newest);
        // There is none: a filter with a window cannot be made smaller.
        let (window, items) = (self.window.clone(), self.items);
        let copy = Self::from_layers(layers, items, self.options(), self.expansion(), window);
        let rate = copy.expected_rate();
        Ok((copy, rate))
    }

    /// The newest layer as it must be for this capacity.
    fn smaller_newest(&self, capacity: u64) -> Result<Layer, ShrinkError> {
        let (Layout::Blocked, Some((newest, older))) = (self.layout(), self.layers.split_last())
        else {
            return Err(ShrinkError::Layout);
        };
        if self.window().is_some() {
            return Err(ShrinkError::Window);
        }
        let others = saturating_sum(older.iter().map(Layer::capacity));
        let rate = match (older, self.is_fixed()) {
            ([], false) => Rate::ShareOf(self.error_rate()),
            _ => Rate::Fixed,
        };
        // A capacity below those of the older layers leaves none for the items of this one.
        let left = capacity.saturating_sub(others);
        shrunk(newest, left, rate).map_err(|error| match error {
            ShrinkError::Build(BuildError::Capacity) if capacity > 0 => {
                ShrinkError::Capacity(others.saturating_add(newest.len().max(1)))
            }
            ShrinkError::Capacity(least) => ShrinkError::Capacity(others.saturating_add(least)),
            ShrinkError::NotSmaller(most) => ShrinkError::NotSmaller(others.saturating_add(most)),
            error => error,
        })
    }
}

/// The error rate that a layer must keep when it becomes smaller.
#[derive(Clone, Copy)]
enum Rate {
    /// The one that it is made for.
    Fixed,
    /// The [share](BlockedSize::share) of a whole filter's that the first layer of its new capacity
    /// takes.
    ShareOf(f64),
}

/// The smallest layer that has the items of this one, room for as many as this in all, and the
/// error rate. It is smaller than this one.
fn shrunk(layer: &Layer, capacity: u64, rate: Rate) -> Result<Layer, ShrinkError> {
    let least = layer.len().max(1);
    if capacity == 0 {
        return Err(BuildError::Capacity.into());
    }
    if capacity < least {
        return Err(ShrinkError::Capacity(least));
    }
    let bits = layer.as_bytes();
    let (blocks, _) = bits.as_chunks();
    let sizes: Vec<_> = successors(next_smaller(blocks.len()), |few| next_smaller(*few)).collect();
    let measured = |few: usize| capacity_of(layer, few, used(layer, blocks, few), rate);
    // The items that a layer has do not add to its room, so the sizes that are too small even for
    // an empty one need no look at the bits.
    let mut large_enough = sizes.iter().rev().skip_while(|few| {
        let empty = capacity_of(layer, **few, layer.len(), rate);
        empty.capacity < capacity
    });
    let found = large_enough.find_map(|few| {
        let size = measured(*few);
        (size.capacity >= capacity).then_some(size)
    });
    let Some(size) = found else {
        let most = sizes.first().map_or(0, |few| measured(*few).capacity);
        return Err(match most >= least {
            true => ShrinkError::NotSmaller(most),
            false => ShrinkError::Smallest,
        });
    };
    let mut smaller = layer.like(&size.as_layer(), u64::MAX)?;
    smaller.set_len(layer.len());
    let (few, _) = smaller.all_bytes().as_chunks_mut();
    let folded = folded(blocks, few.len());
    // Pages of zeros stay untouched.
    for (block, bits) in few
        .iter_mut()
        .zip(folded)
        .filter(|(_, bits)| *bits != [0; BLOCK])
    {
        *block = bits;
    }
    Ok(smaller)
}

/// The next smaller number of blocks that so many become: half of them; of an odd number, the next
/// lower power of two.
fn next_smaller(blocks: usize) -> Option<usize> {
    match blocks {
        0 | 1 => None,
        even if even.is_multiple_of(2) => Some(even / 2),
        odd => Some(1 << odd.ilog2()),
    }
}

/// For how many items a layer's bits count once they are folded into so few blocks: at least as many
/// as it has, and more if blocks went into two, or an intersection has left bits.
fn used(layer: &Layer, blocks: &[[u8; BLOCK]], few: usize) -> u64 {
    let fill = layer.fill_of(folded(blocks, few).map(|block| count_ones(&block)));
    let bits = few as u64 * u64::from(BlockedSize::BLOCK_BITS);
    // Blocks may be filled unevenly. As many items evenly are wrong as often.
    BlockedSize::max_items(bits, layer.hashes(), fill.error_rate).max(layer.len())
}

/// The layer of so few blocks, with the largest capacity at which it keeps its rate when it has
/// `used` items instead of its own. The capacity is 0 if there is none, and not more than that of
/// the layer.
fn capacity_of(layer: &Layer, few: usize, used: u64, rate: Rate) -> BlockedSize {
    let bytes = few as u64 * BLOCK as u64;
    let of_rate = |error_rate: f64| {
        let most = match error_rate < BlockedSize::MIN_RATE {
            true => None,
            false => {
                BlockedSize::max_items(bytes * 8, layer.hashes(), error_rate).checked_sub(used)
            }
        };
        let capacity = most.map_or(0, |more| layer.len().saturating_add(more));
        BlockedSize {
            capacity: capacity.min(layer.capacity()),
            error_rate,
            hashes: layer.hashes(),
            bytes,
        }
    };
    match rate {
        Rate::Fixed => of_rate(layer.error_rate()),
        Rate::ShareOf(whole) => {
            let share = |capacity| of_rate(whole * BlockedSize::share(capacity));
            let large = share(BlockedSize::LARGE);
            match large.capacity >= BlockedSize::LARGE {
                true => large,
                false => share(0),
            }
        }
    }
}

/// The blocks of a filter put into fewer ones: half of them, once or several times, and perhaps then
/// the next lower power of two, or one below it.
fn folded(blocks: &[[u8; BLOCK]], few: usize) -> impl Iterator<Item = [u8; BLOCK]> {
    // Halved until there are so few, or else until their number is odd.
    let odd = blocks.len() >> blocks.len().trailing_zeros();
    let parts = odd.max(few);
    let width = blocks.len() / parts;
    // A block begins in the part `first`, with `rest` of `few` pieces of it before.
    let (mut first, mut rest) = (0, 0);
    (0..few).map(move |_| {
        let begin = first;
        first += parts / few;
        rest += parts % few;
        if rest >= few {
            (first, rest) = (first + 1, rest - few);
        }
        let end = first + usize::from(rest > 0);
        let mut all = [0; BLOCK];
        for block in blocks.get(begin * width..end * width).unwrap_or_default() {
            for (byte, more) in all.iter_mut().zip(block) {
                *byte |= more;
            }
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::iter::successors;

    use proptest::prelude::*;

    use super::{BLOCK, folded, next_smaller};
    use crate::BloomFilter;

    fn with_blocks(blocks: usize, items: &[u64]) -> BloomFilter {
        let builder = BloomFilter::builder()
            .bits(blocks as u64 * 512)
            .hashes(6)
            .capacity(1000);
        let mut filter = builder.seed(3).build().unwrap();
        filter.extend(items);
        filter
    }

    /// The blocks that the filter's become.
    fn blocks_of(blocks: &[[u8; BLOCK]], few: usize) -> Vec<[u8; BLOCK]> {
        folded(blocks, few).collect()
    }

    proptest! {
        /// Halves are the filter of that size. The other blocks have all bits of such a filter, and
        /// are the same in one step and in several.
        #[test]
        fn fewer_blocks_have_all_bits(
            many in 1_usize..200, items in prop::collection::vec(any::<u64>(), 0..300),
        ) {
            let large = with_blocks(many, &items);
            let bytes = large.as_bytes();
            let (blocks, _) = bytes.as_chunks();
            let mut step = blocks.to_vec();
            for few in successors(next_smaller(many), |few| next_smaller(*few)) {
                step = blocks_of(&step, few);
                prop_assert!(step == blocks_of(blocks, few));
                let direct = with_blocks(few, &items);
                let direct = direct.as_bytes();
                let pairs = step.as_flattened().iter().zip(&*direct);
                prop_assert!(pairs.clone().all(|(more, bits)| more & bits == *bits));
                prop_assert!(few * many.next_power_of_two() != many * few.next_power_of_two()
                    || pairs.clone().all(|(more, bits)| more == bits));
            }
        }
    }

    #[test]
    fn each_size_divides_the_one_before_but_for_the_first_power_of_two() {
        let sizes = |many| successors(next_smaller(many), |few| next_smaller(*few));
        assert_eq!(sizes(88).collect::<Vec<_>>(), [44, 22, 11, 8, 4, 2, 1]);
        assert_eq!(sizes(7).collect::<Vec<_>>(), [4, 2, 1]);
        assert_eq!(sizes(64).collect::<Vec<_>>(), [32, 16, 8, 4, 2, 1]);
        assert_eq!((sizes(1).count(), sizes(0).count()), (0, 0));
    }
}
