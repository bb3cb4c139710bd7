//! A filter of any family, as a host keeps it: what does not depend on the family.

use std::borrow::Cow;
use std::ops::Range;

use everbloom::host::Layer;
use everbloom::host::{Capture, LayeredFilter};
use everbloom::redisbloom::{Check, ChunkError, CuckooParts, FilterParts};
use everbloom::{CuckooFilter, Layout};

/// A filter of any family: what one key holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// A filter of the `BF.*` commands.
    Bloom(LayeredFilter),
    /// A filter of the `CF.*` commands.
    Cuckoo(CuckooFilter),
}

/// The same expression for a filter of any family.
macro_rules! each {
    ($any:expr, $filter:ident => $result:expr) => {
        match $any {
            Filter::Bloom($filter) => $result,
            Filter::Cuckoo($filter) => $result,
        }
    };
}

/// A kind of filters. Each is a type of values in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// Bloom filters in a layout.
    Bloom(Layout),
    /// Bloom filters of valkey-bloom.
    Valkey,
    /// Cuckoo filters of RedisBloom.
    Cuckoo,
    /// Cuckoo filters with a chosen error rate, whose hash has a key.
    KeyedCuckoo,
}

impl FilterKind {
    /// All of them.
    pub const ALL: [FilterKind; 5] = [
        FilterKind::Bloom(Layout::Classic),
        FilterKind::Bloom(Layout::Blocked),
        FilterKind::Cuckoo,
        FilterKind::Valkey,
        FilterKind::KeyedCuckoo,
    ];

    /// Whether it is a kind that RedisBloom does not have.
    pub fn redisbloom_lacks(self) -> bool {
        matches!(
            self,
            FilterKind::Bloom(Layout::Blocked) | FilterKind::Valkey | FilterKind::KeyedCuckoo
        )
    }
}

/// Everything about a filter but its arrays: the bits of its layers, or the slots of its tables.
#[derive(Clone, Debug, PartialEq)]
pub enum Parts {
    /// The parts of a Bloom filter.
    Bloom(FilterParts),
    /// The parts of a cuckoo filter.
    Cuckoo(CuckooParts),
}

impl Parts {
    /// The kind of the filter.
    pub fn kind(&self) -> FilterKind {
        match self {
            Parts::Bloom(parts) if parts.valkey.is_some() => FilterKind::Valkey,
            Parts::Bloom(parts) => FilterKind::Bloom(parts.layout()),
            Parts::Cuckoo(parts) if parts.keyed.is_some() => FilterKind::KeyedCuckoo,
            Parts::Cuckoo(_) => FilterKind::Cuckoo,
        }
    }

    /// The number of its arrays.
    pub fn arrays(&self) -> usize {
        match self {
            Parts::Bloom(parts) => parts.layers.len(),
            Parts::Cuckoo(parts) => parts.tables.into(),
        }
    }

    /// The bytes of an array by its number from 0; `None` when there is no such array.
    pub fn array_bytes(&self, number: usize) -> Option<u64> {
        match self {
            Parts::Bloom(parts) => parts.layers.get(number).map(|layer| layer.bytes),
            Parts::Cuckoo(parts) => {
                let number = u16::try_from(number).ok().filter(|it| *it < parts.tables);
                number
                    .and_then(|it| parts.table(it))
                    .map(|(_, bytes)| bytes)
            }
        }
    }
}

impl Filter {
    /// Its kind.
    pub fn kind(&self) -> FilterKind {
        match self {
            Filter::Bloom(filter) if filter.valkey().is_some() => FilterKind::Valkey,
            Filter::Bloom(filter) => FilterKind::Bloom(filter.layout()),
            Filter::Cuckoo(filter) if filter.key().is_some() => FilterKind::KeyedCuckoo,
            Filter::Cuckoo(_) => FilterKind::Cuckoo,
        }
    }

    /// Everything but its arrays.
    pub fn parts(&self) -> Parts {
        match self {
            Filter::Bloom(filter) => Parts::Bloom(filter.parts()),
            Filter::Cuckoo(filter) => Parts::Cuckoo(filter.parts()),
        }
    }

    /// What it occupies in memory, in bytes, itself included.
    #[inline]
    pub fn memory_usage(&self) -> usize {
        let beside = each!(self, filter => filter.memory_usage() - size_of_val(filter));
        beside + size_of::<Filter>()
    }

    /// When the clock lets the filter forget what it holds, at the earliest, if it has a window.
    #[inline]
    pub fn outdated_at(&self) -> Option<u64> {
        match self {
            Filter::Bloom(filter) => filter.outdated_at(),
            Filter::Cuckoo(_) => None,
        }
    }

    /// The number of items, as the filter counts them.
    #[inline]
    pub fn items(&self) -> u64 {
        each!(self, filter => filter.len())
    }

    /// The bytes of all its arrays.
    pub fn stream_len(&self) -> u64 {
        match self {
            Filter::Bloom(filter) => filter.stream_len(),
            Filter::Cuckoo(filter) => filter.stream_len(),
        }
    }

    /// Its arrays laid end to end from `offset` to the end of that array, at most `max` bytes;
    /// `None` at and past the end.
    pub fn stream_chunk(&self, offset: u64, max: usize) -> Option<Cow<'_, [u8]>> {
        each!(self, filter => filter.stream_chunk(offset, max))
    }

    /// An array by its number from 0.
    pub fn array(&self, number: usize) -> Option<Cow<'_, [u8]>> {
        match self {
            Filter::Bloom(filter) => filter.layers().get(number).map(Layer::as_bytes),
            Filter::Cuckoo(filter) => filter.table(number).map(Cow::Borrowed),
        }
    }

    /// The length of that array, 0 if there is none.
    pub fn array_bytes(&self, number: usize) -> u64 {
        match self {
            Filter::Bloom(filter) => filter.layers().get(number).map_or(0, Layer::bytes),
            Filter::Cuckoo(filter) => filter.table(number).map_or(0, |slots| slots.len() as u64),
        }
    }

    /// Writes bytes at `start` of an array; they must lie within it.
    ///
    /// # Errors
    ///
    /// They do not.
    pub fn load_array(
        &mut self,
        number: usize,
        start: usize,
        data: &[u8],
    ) -> Result<(), ChunkError> {
        match self {
            Filter::Bloom(filter) => filter.load_layer(number, start, data),
            Filter::Cuckoo(filter) => filter.load_table(number, start, data),
        }
    }

    /// A copy, if there is memory for it.
    pub fn try_clone(&self) -> Option<Filter> {
        let mut copy = Filter::empty(&self.parts())?;
        for number in 0..self.arrays() {
            copy.load_array(number, 0, &self.array(number)?).ok()?;
        }
        Some(copy)
    }

    /// A filter of these parts with zeros in all arrays, if there is memory for it.
    pub fn empty(parts: &Parts) -> Option<Filter> {
        Some(match parts {
            Parts::Bloom(parts) => {
                let check = Check::RdbValue;
                let copy = LayeredFilter::from_parts_checked(parts, u64::MAX, check);
                Filter::Bloom(copy.ok()?)
            }
            Parts::Cuckoo(parts) => Filter::Cuckoo(CuckooFilter::from_parts(parts, u64::MAX).ok()?),
        })
    }

    /// Makes a copy, which has what this reader has read, a copy of the filter as it is now. False
    /// if that cannot be; see [`everbloom::host`].
    pub fn update_copy(&self, id: u64, copy: &mut Filter) -> bool {
        match (self, copy) {
            (Filter::Bloom(filter), Filter::Bloom(copy)) => filter.update_copy(id, copy),
            (Filter::Cuckoo(filter), Filter::Cuckoo(copy)) => filter.update_copy(id, copy),
            _ => false,
        }
    }

    /// Writes bytes at `offset` of its arrays laid end to end; they must lie within one.
    ///
    /// # Errors
    ///
    /// They do not.
    pub fn load_chunk(&mut self, offset: u64, data: &[u8]) -> Result<(), ChunkError> {
        each!(self, filter => filter.load_chunk(offset, data))
    }

    /// The number of its arrays.
    pub fn arrays(&self) -> usize {
        match self {
            Filter::Bloom(filter) => filter.layers().len(),
            Filter::Cuckoo(filter) => filter.tables(),
        }
    }

    /// Lets an array be moved to another place in memory; it must stay as long.
    pub fn relocate(&mut self, array: usize, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        match self {
            Filter::Bloom(filter) => filter.relocate_bits(array, relocate),
            Filter::Cuckoo(filter) => filter.relocate_slots(array, relocate),
        }
    }

    /// Prefetches the memory in which these items are, or would be.
    pub fn prefetch_items<'a>(&self, items: impl Iterator<Item = &'a [u8]>) {
        match self {
            Filter::Bloom(filter) => {
                filter.prefetch_layers();
                for item in items {
                    filter.prefetch_item(item);
                }
            }
            Filter::Cuckoo(filter) => {
                filter.prefetch_tables();
                for item in items {
                    let _ = filter.prepare(item);
                }
            }
        }
    }

    /// Begins to read a part of the arrays as they are now; see [`everbloom::host`].
    pub fn begin_capture(&mut self, id: u64, part: Range<u64>) {
        each!(self, filter => filter.begin_capture(id, part))
    }

    /// Appends the next captured bytes of an array; false when there are none.
    pub fn capture_next(&mut self, id: u64, out: &mut Vec<u8>) -> bool {
        each!(self, filter => filter.capture_next(id, out))
    }

    /// The readers of the filter.
    #[inline]
    pub fn capture(&self) -> &Capture {
        each!(self, filter => filter.capture())
    }

    /// The readers of the filter, to end some of them.
    pub fn capture_mut(&mut self) -> &mut Capture {
        each!(self, filter => filter.capture_mut())
    }
}

/// A family of filters, each with commands of its own. To these, filters of another family are
/// values of another type.
pub trait Family: Into<Filter> {
    /// The filter, if it is of this family.
    fn of(filter: &Filter) -> Option<&Self>;

    /// The same, to be changed.
    fn of_mut(filter: &mut Filter) -> Option<&mut Self>;
}

macro_rules! families {
    ($($filter:ty: $family:ident,)*) => {
        $(
            impl Family for $filter {
                #[inline]
                fn of(filter: &Filter) -> Option<&Self> {
                    match filter {
                        Filter::$family(filter) => Some(filter),
                        _ => None,
                    }
                }

                #[inline]
                fn of_mut(filter: &mut Filter) -> Option<&mut Self> {
                    match filter {
                        Filter::$family(filter) => Some(filter),
                        _ => None,
                    }
                }
            }

            impl From<$filter> for Filter {
                fn from(filter: $filter) -> Filter {
                    Filter::$family(filter)
                }
            }
        )*
    };
}

families! { LayeredFilter: Bloom, CuckooFilter: Cuckoo, }

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of 38 bytes makes such a filter. A step for each pair of tables would take seconds.
    #[test]
    fn a_filter_of_many_tables_is_copied_table_by_table() {
        let parts = CuckooParts {
            tables: 32_769,
            ..CuckooFilter::builder().slots(2).parts().unwrap()
        };
        let mut filter = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
        filter.load_table(32_768, 0, &[7]).unwrap();
        let filter = Filter::from(filter);
        let copy = filter.try_clone().unwrap();
        assert!(copy == filter);
        assert_eq!(copy.array(32_768).unwrap().first(), Some(&7));
        assert!(copy.array(32_769).is_none());
        assert_eq!(copy.array_bytes(32_769), 0);
    }
}
