//! Prefetching the memory of many filters.

use crate::bits;
use crate::error::InsertError;
use crate::hash::HashPair;
use crate::item::Item;
use crate::scalable::{Inserted, ScalableBloomFilter};

/// Prefetches the memory of a value that will be read soon. The call does not wait for it.
/// [Example](crate::host).
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    bits::prefetch_value(value);
}

/// An item hashed for one filter. For another filter its hash may differ. [Example](crate::host).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared(pub(super) HashPair);

impl ScalableBloomFilter {
    /// Prefetches the headers of the bits, if there are any. It reads the filter struct, so call
    /// [`prefetch`] for that first. [Example](crate::host).
    #[inline]
    pub fn prefetch_layers(&self) {
        if self.layers.spilled() {
            prefetch(self.layers.as_slice());
        } else if let Some(layer) = self.layers.last() {
            layer.prefetch_box();
        }
    }

    /// Hashes an item, and prefetches the bits that a test of it reads. [Example](crate::host).
    #[inline]
    #[must_use]
    pub fn prepare<T: Item + ?Sized>(&self, item: &T) -> Prepared {
        let pair = self.hash(item);
        let mut newest_first = self.layers.iter().rev();
        if let Some(newest) = newest_first.next() {
            newest.prefetch(pair);
        }
        newest_first.for_each(|layer| layer.prefetch_first(pair));
        Prepared(pair)
    }

    /// [`contains`](Self::contains) for an item that this filter has prepared.
    /// [Example](crate::host).
    #[inline]
    #[must_use]
    pub fn contains_prepared(&self, item: Prepared) -> bool {
        self.found_from(0, item.0)
    }

    /// [`try_insert`](Self::try_insert) for an item that this filter has prepared. An item that
    /// would need a new layer of more than `max_layer_bytes` is refused. [Example](crate::host).
    ///
    /// # Errors
    ///
    /// [`InsertError`] when the item is new and there is no room for it; nothing has changed then.
    #[inline]
    pub fn try_insert_prepared(
        &mut self,
        item: Prepared,
        max_layer_bytes: u64,
    ) -> Result<bool, InsertError> {
        let inserted = self.try_insert_pair(item.0, max_layer_bytes)?;
        Ok(inserted == Inserted::New)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::prefetch;
    use crate::{Inserted, Layout, ScalableBloomFilter};

    #[test]
    fn any_value_can_be_prefetched() {
        prefetch(&());
        prefetch(&[0_u8; 1000]);
        prefetch("text");
        prefetch(&Vec::<u8>::new());
    }

    proptest! {
        /// Filters of no bit array, of one and of many, before and after they grow.
        #[test]
        fn prepared_items_are_the_items(
            blocked: bool, capacity in prop_oneof![1_u64..300, Just(3_000_000)], fixed: bool,
            rate in 0.0001..0.5, items in prop::collection::vec(0_u16..500, 0..400),
            max_layer_bytes in prop_oneof![Just(u64::MAX), 0_u64..2000],
        ) {
            let mut builder = ScalableBloomFilter::builder().capacity(capacity).error_rate(rate);
            builder = match blocked {
                true => builder.seed(1),
                false => builder.layout(Layout::Classic),
            };
            if fixed {
                builder = builder.fixed();
            }
            let mut plain = builder.build().unwrap();
            let mut filter = plain.clone();
            for some in items.chunks(7) {
                prefetch(&filter);
                filter.prefetch_layers();
                // Prepared before the filter changes.
                let prepared = some.iter().map(|item| filter.prepare(&item.to_le_bytes()));
                let prepared: Vec<_> = prepared.collect();
                for (item, prepared) in some.iter().zip(prepared) {
                    let item = item.to_le_bytes();
                    prop_assert_eq!(filter.contains_prepared(prepared), plain.contains(&item));
                    let mut expected = Ok(false);
                    plain.try_insert_each([&item], max_layer_bytes, |reply| {
                        expected = reply.map(|done| done == Inserted::New);
                        core::ops::ControlFlow::Continue(())
                    });
                    let reply = filter.try_insert_prepared(prepared, max_layer_bytes);
                    prop_assert_eq!(reply, expected);
                    prop_assert_eq!(filter.contains_prepared(prepared), plain.contains(&item));
                }
            }
            prop_assert!(filter == plain);
        }
    }
}
