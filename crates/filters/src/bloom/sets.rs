//! Set operations: union, intersection and clearing.

use super::fixed::BloomFilter;
use super::layered::LayeredFilter;
use super::window::MaybeWindow;
use crate::bits::pages;
use crate::error::{BuildError, first_broken};
use crate::layer::Layer;
use crate::layer::capture::Capture;

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
    /// One grows, and the other is of fixed size. Cuckoo filters have different expansions, or one
    /// that is no power of two.
    Growth,
    /// A cuckoo filter has no room for the fingerprints of the other one: the tables that they fit
    /// are full.
    Room,
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
        Growth => "the filters do not grow in the same way";
        Room =>
            "the tables have no room for the other filter's items: make both filters for all items \
             together";
        OutOfMemory => "there is no memory for the union";
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

    /// The error rate to expect: the sum of the layers'.
    pub(super) fn expected_rate(&self) -> f64 {
        self.layers.iter().map(rate_now).sum()
    }

    /// Removes all items, and all layers except the first. A [capture](Self::begin_capture) in
    /// progress ends.
    pub fn clear(&mut self) {
        self.capture = Capture::default();
        let bytes = self.stream_len();
        self.layers.keep_first();
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::BloomFilter;
    use crate::Layout;

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
            let mut builder = BloomFilter::builder().capacity(5000).layout(layout);
            if layout == Layout::Blocked {
                // With one key of many, the estimate is off by more.
                builder = builder.seed(1);
            }
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
