//! A group of items on its way through the layers: all hashed first, so that the waits for memory
//! overlap.
//!
//! In the blocked layout an item has one cache line a layer. In the classic one it has many, and an
//! item that is not in a layer usually fails within the first few bits, so only those are
//! prefetched; the other bits are prefetched when the first ones were all 1.

use core::slice;

use crate::bits::blocks;
use crate::hash::item::Item;
use crate::hash::{DoubleHash, Hasher, ItemHasher};
use crate::layer::Layer;
use crate::layer::classic::{ClassicBits, RUN};
use crate::limits::{self, MAX_GROUP};

/// Whether there is at most one item: a single item gains nothing from a group.
#[inline]
pub(crate) fn is_one_at_most(items: &impl Iterator) -> bool {
    items.size_hint().1.is_some_and(|most| most <= 1)
}

/// Puts the items into groups, and calls `answer` with each group in turn, after `prefetch`.
///
/// A group is prefetched before the group ahead of it is tested, so that memory is busy all the
/// time.
#[inline]
pub(crate) fn each_group<T>(
    bits: &mut T,
    hasher: &Hasher,
    mut items: impl Iterator<Item: Item>,
    prefetch: impl Fn(&T, &Group),
    mut answer: impl FnMut(&mut T, &Group),
) {
    let (mut now, mut next) = (&mut Group::default(), &mut Group::default());
    let mut more = now.fill(&mut items, hasher);
    prefetch(bits, now);
    while more {
        more = next.fill(&mut items, hasher);
        prefetch(bits, next);
        answer(bits, now);
        core::mem::swap(&mut now, &mut next);
    }
}

/// Calls `emit` with whether each item in turn is in one of the layers.
#[inline]
pub(crate) fn contained_groups(
    layers: &[Layer],
    hasher: &Hasher,
    items: impl Iterator<Item: Item>,
    mut emit: impl FnMut(bool),
) {
    let prefetch = |layers: &&[Layer], group: &Group| group.prefetch_blocks(layers);
    let layers = &mut &*layers;
    each_group(layers, hasher, items, prefetch, |layers, group| {
        let found = group.contained_in_any(layers, group.all());
        group.each_in(found, &mut emit);
    });
}

/// Inserts each item in turn into a layer without captures, and calls `emit` with whether it is
/// new.
#[inline]
pub(crate) fn insert_groups(
    layer: &mut Layer,
    hasher: &Hasher,
    items: impl Iterator<Item: Item>,
    mut emit: impl FnMut(bool),
) {
    let prefetch = |layer: &Layer, group: &Group| group.prefetch_blocks(slice::from_ref(layer));
    each_group(layer, hasher, items, prefetch, |layer, group| {
        let found = group.contained_before_insert(slice::from_ref(layer));
        // An item may have come with one before it in the group.
        let new = layer.insert_group(&group.pairs, group.all() & !found);
        group.each_in(new, &mut emit);
    });
}

/// Up to [`MAX_GROUP`] hashed items, to be filled again and again. Sets of them are masks, bit i
/// for item i.
#[derive(Default)]
pub(crate) struct Group {
    pairs: [DoubleHash; MAX_GROUP],
    len: usize,
}

#[expect(
    clippy::indexing_slicing,
    reason = "a bit of a u32 has a number below 32"
)]
impl Group {
    /// Hashes as many of the next items as fit; false when there are none.
    #[inline]
    pub(crate) fn fill(&mut self, items: &mut impl Iterator<Item: Item>, hasher: &Hasher) -> bool {
        self.len = match hasher {
            Hasher::Classic(width) => self.fill_with(items, width),
            Hasher::Valkey(valkey) => self.fill_with(items, valkey),
            Hasher::Blocked(secrets) => self.fill_with(items, secrets),
        };
        self.len > 0
    }

    /// How many items there were.
    #[inline]
    fn fill_with(
        &mut self,
        items: &mut impl Iterator<Item: Item>,
        hasher: &impl ItemHasher,
    ) -> usize {
        let mut len = 0;
        for (slot, item) in self.pairs.iter_mut().take(limits::GROUP.get()).zip(items) {
            *slot = item.hash_with(hasher);
            len += 1;
        }
        len
    }

    /// The items in order.
    #[inline]
    pub(crate) fn pairs(&self) -> &[DoubleHash] {
        self.pairs.get(..self.len).unwrap_or_default()
    }

    /// Calls `emit` with whether each item is in the mask.
    #[inline]
    fn each_in(&self, mask: u32, emit: &mut impl FnMut(bool)) {
        (0..self.len).for_each(|index| emit(mask >> index & 1 == 1));
    }

    /// All items.
    #[inline]
    pub(crate) fn all(&self) -> u32 {
        u32::MAX >> (MAX_GROUP - self.len)
    }

    /// The items in the mask.
    #[inline]
    fn select(&self, mask: u32) -> impl Iterator<Item = (u32, DoubleHash)> {
        let mut rest = mask;
        core::iter::from_fn(move || {
            let index = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some((index, self.pairs[index as usize % MAX_GROUP]))
        })
    }

    /// The items that are in any of the layers, as far as an insert into the newest does not tell
    /// it: in the blocked layout that layer is left out. In the classic one the other lines of the
    /// other items are prefetched.
    #[inline]
    pub(crate) fn contained_before_insert(&self, layers: &[Layer]) -> u32 {
        let Some((newest, older)) = layers.split_last() else {
            return 0;
        };
        if newest.as_blocked().is_some() {
            return self.contained_in_any(older, self.all());
        }
        let found = self.contained_in_any(layers, self.all());
        self.prefetch_others(newest, found);
        found
    }

    /// The items in the mask that are in any of the layers, as bits. The newest layer is tested
    /// first: it is the largest, so it is the likeliest to have an item.
    #[inline]
    pub(crate) fn contained_in_any(&self, layers: &[Layer], mask: u32) -> u32 {
        let is_blocked = |layer: &Layer| layer.as_blocked().is_some();
        if layers.first().is_some_and(is_blocked) {
            let layers = layers.iter().filter_map(Layer::as_blocked);
            return blocks::contained(layers, &self.pairs, mask);
        }
        let mut open = mask;
        for layer in layers.iter().rev() {
            open &= !match layer.as_classic() {
                Some(bits) => self.contained_in(bits, open),
                None => self.contained_one_by_one(layer, open),
            };
            if open == 0 {
                break;
            }
        }
        mask & !open
    }

    /// Prefetches the items' blocks in the newest layers, as far as these are blocked and far away.
    #[inline]
    pub(crate) fn prefetch_blocks(&self, layers: &[Layer]) {
        for layer in layers.iter().rev() {
            let Some(bits) = layer.as_blocked().filter(|bits| bits.is_far(layers.len())) else {
                break;
            };
            let pairs = self.pairs().iter();
            pairs.for_each(|pair| bits.array.prefetch(pair.a));
        }
    }

    /// The items in the mask that are in the layer, as bits, in the plain way.
    #[cold]
    fn contained_one_by_one(&self, layer: &Layer, mask: u32) -> u32 {
        let test = |found: u32, (index, pair)| found | u32::from(layer.contains(pair)) << index;
        self.select(mask).fold(0, test)
    }

    /// The items in the mask that are in the layer, as bits.
    #[inline]
    fn contained_in(&self, layer: ClassicBits<'_>, mask: u32) -> u32 {
        if layer.is_far() && layer.hashes >= RUN {
            return self.contained_far(layer, mask);
        }
        let test =
            |found: u32, (index, pair)| found | u32::from(layer.contains_first(pair)) << index;
        let candidates = self.select(mask).fold(0, test);
        let test =
            |found: u32, (index, pair)| found | u32::from(layer.contains_rest(pair)) << index;
        self.select(candidates).fold(0, test)
    }

    /// The same in rounds: [`RUN`] bits of every item that is still a candidate are prefetched,
    /// then all of them are tested. Each position is computed once.
    #[inline]
    fn contained_far(&self, layer: ClassicBits<'_>, mask: u32) -> u32 {
        let mut positions = [[0; RUN as usize]; MAX_GROUP];
        let mut candidates = mask;
        let last = layer.hashes - RUN;
        let mut first = 0;
        loop {
            for (index, pair) in self.select(candidates) {
                let run = layer.run_of(pair.skip(first));
                layer.bits.prefetch_all(run.into_iter());
                positions[index as usize % MAX_GROUP] = run;
            }
            let test = |found: u32, (index, _)| {
                let run = positions[index as usize % MAX_GROUP];
                found | u32::from(layer.bits.test_all(run.into_iter())) << index
            };
            candidates = self.select(candidates).fold(0, test);
            if first == last || candidates == 0 {
                return candidates;
            }
            // The last run may begin within the one before: some bits are then tested twice.
            first = (first + RUN).min(last);
        }
    }

    /// Prefetches the other cache lines of the items that are not in the mask.
    #[inline]
    fn prefetch_others(&self, layer: &Layer, mask: u32) {
        // In the blocked layout there is no other line.
        if let Some(bits) = layer.as_classic().filter(|bits| bits.is_far()) {
            self.select(self.all() & !mask)
                .for_each(|(_, pair)| bits.prefetch_rest(pair));
        }
    }
}
