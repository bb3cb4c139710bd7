//! Set operations: union, intersection, shrinking and clearing.

use smallvec::SmallVec;

use super::fixed::BloomFilter;
use super::layered::LayeredFilter;
use super::window::MaybeWindow;
use crate::bits::pages;
use crate::error::{BuildError, first_broken};
use crate::layer::Layer;
use crate::layer::capture::Capture;
use crate::layer::layout::Layout;
use crate::math::saturating_sum;
use crate::sizing::{BLOCK, BlockedSize};

/// Why two filters cannot be united or intersected: a parameter in which they differ.
///
/// [`BloomFilter::empty_like`] makes a filter that can be united with another one.
/// [Example](BloomFilter::union).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnionError {
    /// The layouts differ.
    Layout,
    /// The keys of the blocked layout differ, or the seeds they were made from.
    Key,
    /// The bit counts differ.
    Bits,
    /// The hash counts differ.
    Hashes,
    /// The capacities differ.
    Capacity,
    /// The error rates differ.
    ErrorRate,
    /// One has the 64-bit hash, the other the 32-bit hash of early RedisBloom versions, or that of
    /// valkey-bloom with a seed.
    Hash,
    /// The filters have different windows, or only one has a window.
    Window,
    /// Both remember their last items. Which of all these were the last is unknown.
    WindowOfItems,
    /// One grows, and the other is of fixed size.
    Growth,
    /// There is no memory for another layer. Some layers may have been added before.
    OutOfMemory,
}

messages! {
    UnionError {
        Layout => "the filters have different layouts";
        Key =>
            "the filters have different keys: make one with empty_like of the other, or both with \
             the same seed";
        Bits => "the filters have different bit counts";
        Hashes => "the filters have different hash counts";
        Capacity => "the filters have different capacities";
        ErrorRate => "the filters have different error rates";
        Hash => "the filters have different hashes";
        Window => "the filters have different windows";
        WindowOfItems => "filters that remember a number of items cannot be united";
        Growth => "one of the filters grows, and the other does not";
        OutOfMemory => "there is no memory for the union";
    }
}

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
    /// The filter has more items than the capacity, or the older layers of one that grows have.
    Capacity(u64),
    /// The smaller filter cannot be made.
    Build(BuildError),
}

messages! {
    ShrinkError {
        Layout => "only a filter in the blocked layout can be made smaller";
        Window => "a filter with a window cannot be made smaller";
        Capacity(found) => "the filter needs a capacity of {found}";
        Build(error) => "{error}";
    }
}

impl From<BuildError> for ShrinkError {
    fn from(error: BuildError) -> ShrinkError {
        ShrinkError::Build(error)
    }
}

impl BloomFilter {
    /// An empty filter of the same shape and key: the two can be united and intersected.
    ///
    /// ```
    /// use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::new(1000, 0.01);
    /// let mut today = seen.empty_like()?;
    /// today.insert("a");
    /// seen.union(&today)?;
    /// assert!(seen.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub fn empty_like(&self) -> Result<BloomFilter, BuildError> {
        let layer = self.layer.like(self.layer.size(), u64::MAX)?;
        Ok(BloomFilter { layer })
    }

    /// Adds all items of another filter, which must have the same parameters and, in the blocked
    /// layout, the same key: [`empty_like`](Self::empty_like) makes such a filter.
    ///
    /// The number of common items is unknown. So [`len`](Self::len) becomes an estimate from the
    /// fill ratio, at least the larger of both counts and at most their sum.
    ///
    /// ```
    /// # use everbloom::{BloomFilter, UnionError};
    /// let mut one = BloomFilter::builder().capacity(1000).seed(7).build()?;
    /// let mut other = BloomFilter::builder().capacity(1000).seed(7).build()?;
    /// one.insert("a");
    /// other.insert("b");
    /// one.union(&other)?;
    /// assert!(one.contains("a") && one.contains("b"));
    /// assert_eq!(one.union(&BloomFilter::new(1000, 0.01)), Err(UnionError::Key));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnionError`] names a parameter in which the filters differ; nothing has changed then.
    pub fn union(&mut self, other: &BloomFilter) -> Result<(), UnionError> {
        self.check_fits(other)?;
        unite(&mut self.layer, &other.layer);
        Ok(())
    }

    /// Keeps only the items that are also in another filter, which must have the same parameters
    /// and key, as for [`union`](Self::union).
    ///
    /// It keeps every item that is in both. Some items that were in only one are still found,
    /// slightly more than the error rate says.
    ///
    /// [`len`](Self::len) becomes an estimate: what the bits say of both filters, less what they
    /// say of their union. It is at most the smaller of both counts, which it is exactly if one
    /// filter has all bits of the other. While bits are left it is at least 1, since any of them
    /// may be of an item in both. So [`is_empty`](Self::is_empty) is true only if nothing is found
    /// any more.
    ///
    /// ```
    /// # use everbloom::BloomFilter;
    /// let mut one = BloomFilter::builder().capacity(1000).seed(7).build()?;
    /// let mut other = one.empty_like()?;
    /// one.extend(["a", "b"]);
    /// other.extend(["b", "c"]);
    /// one.intersect(&other)?;
    /// assert!(one.contains("b"));
    /// assert!(!one.contains("a"));
    /// assert_eq!(one.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnionError`] names a parameter in which the filters differ; nothing has changed then.
    pub fn intersect(&mut self, other: &BloomFilter) -> Result<(), UnionError> {
        self.check_fits(other)?;
        intersect(&mut self.layer, &other.layer);
        Ok(())
    }

    /// Whether the filters can be combined bit by bit.
    fn check_fits(&self, other: &BloomFilter) -> Result<(), UnionError> {
        first_broken([
            (self.layout() == other.layout(), UnionError::Layout),
            (self.key() == other.key(), UnionError::Key),
            (self.bits() == other.bits(), UnionError::Bits),
            (self.hashes() == other.hashes(), UnionError::Hashes),
            (self.capacity() == other.capacity(), UnionError::Capacity),
            (
                self.error_rate() == other.error_rate(),
                UnionError::ErrorRate,
            ),
        ])
    }

    /// Makes the filter smaller and keeps its items: about as large as a filter of this capacity
    /// and the same error rate. Returns the error rate to expect now. If the filter would not
    /// become smaller, it does not change. It never becomes too small for its items.
    ///
    /// Use it for a filter that was made for far too many items. A multiplication chooses an item's
    /// block, so neighbouring blocks merge into one. If the smaller number of blocks divides the
    /// larger one, the result equals, bit for bit, a filter that was made with the smaller size.
    /// Otherwise a block on a boundary goes into both neighbours, and the filter becomes slightly
    /// larger to keep its rate. Takes time linear in the size.
    ///
    /// ```
    /// # use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::new(1_000_000, 0.01);
    /// seen.extend(0..50_000);
    /// let before = seen.memory_usage();
    /// let rate = seen.shrink_to(50_000)?;
    /// assert!(rate < 0.011);
    /// assert!(seen.memory_usage() * 18 < before);
    /// assert!((0..50_000).all(|number| seen.contains(&number)));
    /// # Ok::<(), everbloom::ShrinkError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ShrinkError`]; nothing has changed then.
    pub fn shrink_to(&mut self, capacity: u64) -> Result<f64, ShrinkError> {
        if self.layout() != Layout::Blocked {
            return Err(ShrinkError::Layout);
        }
        if capacity == 0 {
            return Err(BuildError::Capacity.into());
        }
        let wanted = BlockedSize::new(capacity, self.error_rate())
            .and_then(|size| BlockedSize::from_bits(size.bits(), self.hashes(), Some(capacity)));
        if let Some(size) = smaller(&self.layer, capacity, wanted)? {
            if capacity < self.len() {
                return Err(ShrinkError::Capacity(self.len()));
            }
            self.layer = folded_into(&self.layer, size)?;
        }
        Ok(self.estimated_error_rate())
    }

    /// Removes all items. The filter keeps its shape, its key and its memory.
    ///
    /// ```
    /// # use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::new(1000, 0.01);
    /// seen.insert("a");
    /// seen.clear();
    /// assert!(seen.is_empty() && !seen.contains("a"));
    /// ```
    pub fn clear(&mut self) {
        self.layer.clear();
    }
}

impl<W: MaybeWindow> LayeredFilter<W> {
    /// As [`ScalableBloomFilter::empty_like`](crate::ScalableBloomFilter::empty_like). A window goes
    /// on with its newest generation.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub fn empty_like(&self) -> Result<Self, BuildError> {
        let first = self.layers.first().ok_or(BuildError::Capacity)?;
        let layer = first.like(first.size(), u64::MAX)?;
        let mut window = self.window.clone();
        if let Some(window) = window.get_mut() {
            *window = window.emptied(self.stream_len());
        }
        let (options, expansion) = (self.options(), self.expansion());
        Ok(Self::from_layers([layer], 0, options, expansion, window))
    }

    /// As [`ScalableBloomFilter::shrink_to`](crate::ScalableBloomFilter::shrink_to). A
    /// [capture](Self::begin_capture) in progress ends.
    ///
    /// # Errors
    ///
    /// [`ShrinkError`]; nothing has changed then.
    pub fn shrink_to(&mut self, capacity: u64) -> Result<f64, ShrinkError> {
        if let Some(layer) = self.smaller_newest(capacity)?
            && let Some(newest) = self.layers.last_mut()
        {
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
        let mut layers = SmallVec::new();
        let copied = self.layers.len() - usize::from(newest.is_some());
        for layer in self.layers.iter().take(copied) {
            layers.push(layer.try_clone()?);
        }
        layers.extend(newest);
        // There is none: a filter with a window cannot be made smaller.
        let (window, items) = (self.window.clone(), self.items);
        let copy = Self::from_layers(layers, items, self.options(), self.expansion(), window);
        let rate = copy.expected_rate();
        Ok((copy, rate))
    }

    /// The newest layer as it must be for this capacity; `None` when it would not be smaller.
    fn smaller_newest(&self, capacity: u64) -> Result<Option<Layer>, ShrinkError> {
        let (Layout::Blocked, Some((newest, older))) = (self.layout(), self.layers.split_last())
        else {
            return Err(ShrinkError::Layout);
        };
        if self.window().is_some() {
            return Err(ShrinkError::Window);
        }
        let others = saturating_sum(older.iter().map(Layer::capacity));
        let least = others.saturating_add(newest.len().max(1));
        let Some(left) = capacity.checked_sub(others).filter(|_| capacity >= least) else {
            return Err(ShrinkError::Capacity(least));
        };
        let size = match (older, self.is_fixed()) {
            ([], true) => BlockedSize::only(left, self.error_rate()),
            ([], false) => BlockedSize::first(left, self.error_rate()),
            _ => BlockedSize::new(left, newest.error_rate()),
        };
        // A folded item has as many bits as before.
        let size = size.and_then(|size| size.with_hashes(newest.hashes()));
        let size = smaller(newest, left, size)?;
        Ok(size.map(|size| folded_into(newest, size)).transpose()?)
    }

    /// The error rate to expect: the sum of the layers'.
    fn expected_rate(&self) -> f64 {
        self.layers.iter().map(rate_now).sum()
    }

    /// Removes all items, and all layers except the first. A [capture](Self::begin_capture) in
    /// progress ends.
    pub fn clear(&mut self) {
        self.capture = Capture::default();
        let bytes = self.stream_len();
        self.layers.truncate(1);
        self.layers.iter_mut().for_each(Layer::clear);
        self.items = 0;
        if let Some(window) = self.window.get_mut() {
            *window = window.emptied(bytes);
        }
    }
}

/// The error rate to expect of a layer: what it is made for, or what its bits say if it has more
/// items than that.
pub(crate) fn rate_now(layer: &Layer) -> f64 {
    match layer.len() {
        0 => 0.0,
        items if items <= layer.capacity() => layer.error_rate(),
        _ => layer.fill().error_rate,
    }
}

/// The size that a layer's blocks are put into when it shrinks to a capacity, for which this size
/// is wanted, if there is one; `None` when that is not smaller.
fn smaller(
    layer: &Layer,
    capacity: u64,
    wanted: Option<BlockedSize>,
) -> Result<Option<BlockedSize>, BuildError> {
    let Some(mut size) = wanted else {
        // So many items that their bits cannot be counted.
        let is_larger = capacity >= layer.capacity();
        return is_larger.then_some(None).ok_or(BuildError::Unsizable);
    };
    size.bytes = folded_bytes(layer.bytes(), size.bytes);
    Ok(Some(size).filter(|size| size.bytes < layer.bytes()))
}

/// The layer with its blocks put into those of a layer of this size, which is no larger.
fn folded_into(layer: &Layer, size: BlockedSize) -> Result<Layer, BuildError> {
    let mut smaller = layer.like(&size.as_layer(), u64::MAX)?;
    smaller.set_len(layer.len());
    fold(&layer.as_bytes(), smaller.all_bytes());
    Ok(smaller)
}

/// Adds the items of a layer of the same size and key. The new count is an estimate from the fill
/// ratio, at least the larger of both counts and at most their sum. A filter that has all bits of
/// the other one counts as it did.
pub(crate) fn unite(mine: &mut Layer, other: &Layer) {
    let least = mine.len().max(other.len());
    let most = mine.len().saturating_add(other.len());
    mine.set_len(least);
    let has_grown = pages::unite(mine.all_bytes(), &other.as_bytes());
    if has_grown && least < most {
        mine.set_len(mine.fill().items.clamp(least, most));
    }
}

/// Keeps the bits that a layer of the same size and key has, too, and estimates the items of both:
/// Swamidass and Baldi's estimate of each, less that of the union. The bits that two layers have in
/// common by chance are those that the union lacks, so they do not count.
fn intersect(mine: &mut Layer, other: &Layer) {
    let common = mine.fill_with(other, |mine, other| mine & other);
    let union = mine.fill_with(other, |mine, other| mine | other);
    let (own, others) = (mine.fill(), other.fill());
    let most = mine.len().min(other.len());
    let estimate = own
        .items
        .saturating_add(others.items)
        .saturating_sub(union.items);
    let has_all = common.ratio == own.ratio.min(others.ratio);
    let items = if has_all { most } else { estimate.min(most) };
    let bytes = mine.as_bytes_mut().iter_mut();
    for (byte, others) in bytes.zip(&*other.as_bytes()) {
        *byte &= others;
    }
    mine.shrink();
    mine.set_len(items.max(u64::from(common.ratio > 0.0)));
}

/// The bytes of a folded filter that would have `wanted` bytes if it were newly made. They are more
/// where blocks on a boundary go into two, so that the blocks are no fuller than in a new filter.
fn folded_bytes(bytes: u64, wanted: u64) -> u64 {
    let block = BLOCK as u64;
    let (many, few) = (bytes / block, wanted / block);
    if many.is_multiple_of(few) || few >= many {
        return wanted;
    }
    // A block gets its part of the old ones, and on average half of one more at either end.
    let blocks = u128::from(few) * u128::from(many) / u128::from(many - few);
    u64::try_from(blocks)
        .unwrap_or(u64::MAX)
        .saturating_add(1)
        .saturating_mul(block)
}

/// Puts blocks into fewer blocks: block `j` of `b` holds the hash values from `j / b` to
/// `(j + 1) / b` of 2^64, and goes to all blocks that hold some of these.
fn fold(from: &[u8], to: &mut [u8]) {
    let (old, _) = from.as_chunks::<BLOCK>();
    let (new, _) = to.as_chunks_mut::<BLOCK>();
    let (many, few) = (old.len(), new.len());
    // A block begins in the new block `first`, with `rest` of `many` parts of it before.
    let (mut first, mut rest) = (0, 0);
    for block in old {
        rest += few;
        let (next, left) = match rest.checked_sub(many) {
            Some(left) => (first + 1, left),
            None => (first, rest),
        };
        let last = if left == 0 { first } else { next };
        for target in new.get_mut(first..=last).unwrap_or_default() {
            for (byte, more) in target.iter_mut().zip(block) {
                *byte |= more;
            }
        }
        (first, rest) = (next, left);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{BlockedSize, BloomFilter, ShrinkError, folded_into};
    use crate::host::LayeredFilter;
    use crate::{BuildError, Layout};

    fn with_blocks(blocks: u64, items: &[u64]) -> BloomFilter {
        let builder = BloomFilter::builder()
            .bits(blocks * 512)
            .hashes(6)
            .capacity(1000);
        let mut filter = builder.seed(3).build().unwrap();
        filter.extend(items);
        filter
    }

    fn folded(filter: &BloomFilter, blocks: u64) -> BloomFilter {
        let size = BlockedSize::from_bits(blocks * 512, 6, Some(1000)).unwrap();
        let layer = folded_into(&filter.layer, size).unwrap();
        BloomFilter { layer }
    }

    proptest! {
        /// Blocks that become one give the filter of that size; others lose no item, and have all
        /// bits of that filter.
        #[test]
        fn a_smaller_filter_has_all_items(
            blocks in 1_u64..60, times in 1_u64..8, other in 1_u64..60,
            items in prop::collection::vec(any::<u64>(), 0..300),
        ) {
            let large = with_blocks(blocks * times, &items);
            let direct = with_blocks(blocks, &items);
            prop_assert!(folded(&large, blocks).as_bytes() == direct.as_bytes());
            let smaller = folded(&large, other.min(blocks * times));
            prop_assert!(items.iter().all(|item| smaller.contains(item)));
            let direct = with_blocks(other.min(blocks * times), &items);
            let (smaller, direct) = (smaller.as_bytes(), direct.as_bytes());
            prop_assert!(smaller.iter().zip(&*direct).all(|(more, bits)| more & bits == *bits));
        }
    }

    #[test]
    fn shrinking_keeps_the_rate() {
        let builder = BloomFilter::builder()
            .capacity(200_000)
            .error_rate(0.01)
            .seed(1);
        let mut filter = builder.build().unwrap();
        filter.extend(0..20_000_u32);
        let before = filter.clone();
        let rate = filter.shrink_to(20_000).unwrap();
        assert!((0.007..0.0115).contains(&rate), "{rate}");
        assert_eq!((filter.len(), filter.capacity()), (before.len(), 20_000));
        assert!(filter.bits() * 8 < before.bits());
        assert!((0..20_000_u32).all(|item| filter.contains(&item)));
        let mut wrong = 0;
        filter.contains_each(20_000..220_000_u32, |found| wrong += u32::from(found));
        assert!((1500..2400).contains(&wrong), "{wrong} of 200000");
        // What is not larger stays.
        let small = filter.clone();
        filter.shrink_to(30_000).unwrap();
        assert!(filter == small);
    }

    #[test]
    fn no_filter_shrinks_below_its_items_or_to_a_larger_one() {
        let builder = BloomFilter::builder().capacity(100_000).seed(1);
        let mut fixed = builder.build().unwrap();
        fixed.extend(0..40_000);
        let before = fixed.clone();
        let needed = ShrinkError::Capacity(fixed.len());
        assert_eq!(fixed.shrink_to(10), Err(needed));
        assert!(fixed.shrink_to(u64::MAX).unwrap() < 0.01);
        assert!(fixed == before);
        let mut growing = LayeredFilter::builder().seed(1).build().unwrap();
        growing.extend(0..4000);
        let before = growing.clone();
        assert!(growing.shrink_to(u64::MAX).unwrap() < 0.01);
        assert!(growing == before);
        // One that holds too many may not become smaller, but need not.
        let mut full = BloomFilter::builder().capacity(10).seed(1).build().unwrap();
        full.extend(0..200);
        full.shrink_to(10).unwrap();
    }

    #[test]
    fn what_cannot_shrink_stays() {
        let classic = BloomFilter::builder()
            .layout(Layout::Classic)
            .capacity(1000);
        let mut classic = classic.build().unwrap();
        assert_eq!(classic.shrink_to(10), Err(ShrinkError::Layout));
        let mut blocked = with_blocks(9, &[1, 2]);
        assert_eq!(blocked.shrink_to(0), Err(BuildError::Capacity.into()));
        assert!(blocked == with_blocks(9, &[1, 2]));
    }

    #[test]
    fn an_intersection_keeps_what_both_have() {
        let items: Vec<u64> = (0..900).collect();
        for layout in [Layout::Classic, Layout::Blocked] {
            let builder = BloomFilter::builder().capacity(1000).layout(layout);
            let mut one = builder.build().unwrap();
            let mut other = one.empty_like().unwrap();
            one.extend(&items[..600]);
            other.extend(&items[300..]);
            one.intersect(&other).unwrap();
            assert!(items[300..600].iter().all(|item| one.contains(item)));
            let found = items.iter().filter(|item| one.contains(*item)).count();
            assert!(found < 330, "{found}");
            one.clear();
            assert!(one == other.empty_like().unwrap());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Five standard deviations of three estimates, or one where the rest is chance.
        #[test]
        fn an_intersection_estimates_its_items(
            is_blocked: bool, only in 0..3000_u64, common in 0..3000_u64, others in 0..3000_u64,
            third: bool, seed: u64,
        ) {
            let layout = if is_blocked { Layout::Blocked } else { Layout::Classic };
            let builder = BloomFilter::builder().capacity(6000).layout(layout);
            let mut one = if is_blocked { builder.seed(seed) } else { builder }.build().unwrap();
            let mut other = one.empty_like().unwrap();
            let mut last = one.empty_like().unwrap();
            let start = seed >> 32;
            let item = |number: u64| start + number;
            one.extend((0..only + common).map(item));
            other.extend((only..only + common + others).map(item));
            last.extend((10_000..16_000).map(item));
            let most = one.len().min(other.len());
            one.intersect(&other).unwrap();
            // Accidental bits of one intersection do not count in the next.
            let common = if third { 0 } else { common };
            if third {
                one.intersect(&last).unwrap();
            }
            let has_bits = one.as_bytes().iter().any(|byte| *byte != 0);
            prop_assert_eq!(one.is_empty(), !has_bits);
            prop_assert!(one.len() <= most.max(1), "{} of {}", one.len(), most);
            let wrong = one.len().abs_diff(common);
            prop_assert!(wrong <= 60, "{} for {}", one.len(), common);
        }
    }

    #[test]
    fn an_intersection_with_a_filter_that_has_all_bits_counts_as_before() {
        for layout in [Layout::Classic, Layout::Blocked] {
            let builder = BloomFilter::builder().capacity(3000).layout(layout);
            let mut small = builder.build().unwrap();
            let mut large = small.empty_like().unwrap();
            let mut empty = small.empty_like().unwrap();
            small.extend(0..1000);
            large.extend(0..3000);
            let before = small.clone();
            small.intersect(&large).unwrap();
            assert!(small == before);
            large.intersect(&small).unwrap();
            assert!(large == before);
            empty.intersect(&large).unwrap();
            assert!(empty.is_empty());
            large.intersect(&empty).unwrap();
            assert!(large == empty);
        }
    }

    #[test]
    fn an_intersection_of_disjoint_filters_may_hold_an_item() {
        for layout in [Layout::Classic, Layout::Blocked] {
            let builder = BloomFilter::builder().capacity(5000).layout(layout);
            let mut one = builder.build().unwrap();
            let mut other = one.empty_like().unwrap();
            one.extend(0..5000);
            other.extend(5000..10_000);
            one.intersect(&other).unwrap();
            assert!((1..60).contains(&one.len()), "{}", one.len());
            // Some of them are still found, so it does not claim to be empty.
            assert!(!one.is_empty() && (0..10_000).any(|item| one.contains(&item)));
        }
    }
}
