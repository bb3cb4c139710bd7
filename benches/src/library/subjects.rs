//! The filters that are compared, behind one small trait. A new filter needs an `impl` and a line
//! in `SUBJECTS`.

use std::hash::BuildHasher;

use everbloom::hash::{DoubleHash, HashWidth};
use everbloom::{BloomFilter, BuildError, Layout, ScalableBloomFilter};
use foldhash::fast::FixedState;
use growable_bloom_filter::GrowableBloom;
use xorf::Filter as _;

/// The number of items in a batch call.
const BATCH: usize = 256;

/// A filter to compare. All are made for `capacity` items at an error rate.
pub trait Filter: Sized + 'static {
    fn new(capacity: usize, rate: f64) -> Self;
    fn insert(&mut self, item: &[u8]);
    fn contains(&self, item: &[u8]) -> bool;

    /// Called after the last insert. A static filter is built here.
    fn finish(&mut self) {}

    /// Inserts many items by one call. Returns false when there is no such call.
    fn insert_batch(&mut self, _items: &[&[u8]]) -> bool {
        false
    }

    /// Inserts an iterator's items by one call. Returns false when there is no such call.
    fn extend(&mut self, _items: &[&[u8]]) -> bool {
        false
    }

    /// The number of these items that one call finds, or `None` when there is no such call.
    fn contains_batch(&self, _items: &[&[u8]]) -> Option<usize> {
        None
    }

    /// The size of the filter in bytes. `None`: use what the heap has grown by.
    fn bytes(&self) -> Option<usize>;
}

/// A [`Filter`] with the loops inside, so that a dynamic call costs nothing for each item.
pub trait Subject {
    fn insert_each(&mut self, items: &[&[u8]]);
    fn insert_batches(&mut self, items: &[&[u8]]) -> bool;
    fn extend(&mut self, items: &[&[u8]]) -> bool;
    fn finish(&mut self);
    fn count_each(&self, items: &[&[u8]]) -> usize;
    fn count_batches(&self, items: &[&[u8]]) -> Option<usize>;
    fn bytes(&self) -> Option<usize>;
}

impl<F: Filter> Subject for F {
    fn insert_each(&mut self, items: &[&[u8]]) {
        for item in items {
            self.insert(item);
        }
    }

    fn insert_batches(&mut self, items: &[&[u8]]) -> bool {
        items.chunks(BATCH).all(|batch| self.insert_batch(batch))
    }

    fn extend(&mut self, items: &[&[u8]]) -> bool {
        Filter::extend(self, items)
    }

    fn finish(&mut self) {
        Filter::finish(self);
    }

    fn count_each(&self, items: &[&[u8]]) -> usize {
        items.iter().filter(|item| self.contains(item)).count()
    }

    fn count_batches(&self, items: &[&[u8]]) -> Option<usize> {
        items
            .chunks(BATCH)
            .map(|batch| self.contains_batch(batch))
            .sum()
    }

    fn bytes(&self) -> Option<usize> {
        Filter::bytes(self)
    }
}

pub struct Entry {
    pub name: &'static str,
    pub make: fn(usize, f64) -> Box<dyn Subject>,
}

const fn entry<F: Filter>(name: &'static str) -> Entry {
    Entry {
        name,
        make: |capacity, rate| Box::new(F::new(capacity, rate)),
    }
}

pub const SUBJECTS: &[Entry] = &[
    entry::<BloomFilter>("everbloom, fixed"),
    entry::<ScalableBloomFilter>("everbloom, scalable"),
    entry::<Blocked>("everbloom, blocked"),
    entry::<BlockedScalable>("everbloom, blocked, scalable"),
    entry::<BlockedGrown>("everbloom, blocked, grown from 100"),
    entry::<Plain>("classic layout with `%`"),
    entry::<fastbloom::BloomFilter<FixedState>>("fastbloom, foldhash"),
    entry::<bloomfilter::Bloom<[u8]>>("bloomfilter"),
    entry::<Split>("sbbf-rs-safe, foldhash"),
    entry::<GrowableBloom>("growable-bloom-filter"),
    entry::<Fuse>("xorf binary fuse, foldhash"),
];

impl Filter for BloomFilter {
    fn new(capacity: usize, rate: f64) -> Self {
        let builder = Self::builder()
            .layout(Layout::Classic)
            .capacity(capacity as u64)
            .error_rate(rate);
        builder.build().expect("it fits into memory")
    }

    fn insert(&mut self, item: &[u8]) {
        self.insert(item);
    }

    fn contains(&self, item: &[u8]) -> bool {
        self.contains(item)
    }

    fn insert_batch(&mut self, items: &[&[u8]]) -> bool {
        self.insert_each(items, drop);
        true
    }

    fn extend(&mut self, items: &[&[u8]]) -> bool {
        Extend::extend(self, items.iter().copied());
        true
    }

    fn contains_batch(&self, items: &[&[u8]]) -> Option<usize> {
        let mut count = 0;
        self.contains_each(items, |found| count += usize::from(found));
        Some(count)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.memory_usage())
    }
}

impl Filter for ScalableBloomFilter {
    fn new(capacity: usize, rate: f64) -> Self {
        let builder = Self::builder()
            .layout(Layout::Classic)
            .capacity(capacity as u64)
            .error_rate(rate);
        builder.build().expect("it fits into memory")
    }

    fn insert(&mut self, item: &[u8]) {
        self.insert(item);
    }

    fn contains(&self, item: &[u8]) -> bool {
        self.contains(item)
    }

    fn insert_batch(&mut self, items: &[&[u8]]) -> bool {
        self.insert_each(items, drop);
        true
    }

    fn extend(&mut self, items: &[&[u8]]) -> bool {
        Extend::extend(self, items.iter().copied());
        true
    }

    fn contains_batch(&self, items: &[&[u8]]) -> Option<usize> {
        let mut count = 0;
        self.contains_each(items, |found| count += usize::from(found));
        Some(count)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.memory_usage())
    }
}

/// A filter in the blocked layout, made in one of three ways. It calls the type inside directly.
macro_rules! blocked {
    ($name:ident, $inner:ty, $make:expr) => {
        pub struct $name($inner);

        impl Filter for $name {
            fn new(capacity: usize, rate: f64) -> Self {
                let make: fn(u64, f64) -> Result<$inner, BuildError> = $make;
                Self(make(capacity as u64, rate).expect("it fits into memory"))
            }

            fn insert(&mut self, item: &[u8]) {
                self.0.insert(item);
            }

            fn contains(&self, item: &[u8]) -> bool {
                self.0.contains(item)
            }

            fn insert_batch(&mut self, items: &[&[u8]]) -> bool {
                Filter::insert_batch(&mut self.0, items)
            }

            fn extend(&mut self, items: &[&[u8]]) -> bool {
                Filter::extend(&mut self.0, items)
            }

            fn contains_batch(&self, items: &[&[u8]]) -> Option<usize> {
                Filter::contains_batch(&self.0, items)
            }

            fn bytes(&self) -> Option<usize> {
                Filter::bytes(&self.0)
            }
        }
    };
}

blocked!(Blocked, BloomFilter, |capacity, rate| {
    let builder = BloomFilter::builder().layout(Layout::Blocked);
    builder.capacity(capacity).error_rate(rate).build()
});
blocked!(BlockedScalable, ScalableBloomFilter, |capacity, rate| {
    let builder = ScalableBloomFilter::builder().layout(Layout::Blocked);
    builder.capacity(capacity).error_rate(rate).build()
});
blocked!(BlockedGrown, ScalableBloomFilter, |_, rate| {
    let builder = ScalableBloomFilter::builder().layout(Layout::Blocked);
    builder.capacity(100).error_rate(rate).build()
});

/// The classic layout as RedisBloom computes it: one item at a time, `%` for each position. The
/// batches of everbloom are compared with it.
pub struct Plain {
    bytes: Vec<u8>,
    bits: u64,
    hashes: u64,
}

impl Plain {
    fn positions(&self, item: &[u8]) -> impl Iterator<Item = u64> + use<> {
        let DoubleHash { a, b } = DoubleHash::new(item, HashWidth::Bits64);
        let bits = self.bits;
        (0..self.hashes).map(move |i| a.wrapping_add(i.wrapping_mul(b)) % bits)
    }
}

impl Filter for Plain {
    fn new(capacity: usize, rate: f64) -> Self {
        let same: BloomFilter = Filter::new(capacity, rate);
        Self {
            bytes: vec![0; same.as_bytes().len()],
            bits: same.bits(),
            hashes: u64::from(same.hashes()),
        }
    }

    fn insert(&mut self, item: &[u8]) {
        for position in self.positions(item) {
            self.bytes[(position / 8) as usize] |= 1 << (position % 8);
        }
    }

    fn contains(&self, item: &[u8]) -> bool {
        self.positions(item)
            .all(|position| self.bytes[(position / 8) as usize] >> (position % 8) & 1 == 1)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.bytes.len())
    }
}

impl Filter for fastbloom::BloomFilter<FixedState> {
    fn new(capacity: usize, rate: f64) -> Self {
        fastbloom::BloomFilter::with_false_pos(rate)
            .hasher(FixedState::default())
            .expected_items(capacity)
    }

    fn insert(&mut self, item: &[u8]) {
        self.insert(item);
    }

    fn contains(&self, item: &[u8]) -> bool {
        self.contains(item)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.num_bits() / 8)
    }
}

impl Filter for bloomfilter::Bloom<[u8]> {
    fn new(capacity: usize, rate: f64) -> Self {
        Self::new_for_fp_rate(capacity, rate).expect("the rate is a rate")
    }

    fn insert(&mut self, item: &[u8]) {
        self.set(item);
    }

    fn contains(&self, item: &[u8]) -> bool {
        self.check(item)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.as_slice().len())
    }
}

/// A split block filter. It takes hashes, and bits an item instead of an error rate.
pub struct Split {
    filter: sbbf_rs_safe::Filter,
    hasher: FixedState,
}

impl Filter for Split {
    fn new(capacity: usize, rate: f64) -> Self {
        // These are from the sizing table of this filter in the specification of Parquet.
        let bits_per_item = if rate >= 0.01 { 10.5 } else { 16.9 };
        let bits = (capacity as f64 * bits_per_item).ceil() as usize;
        Self {
            // This is the only way to ask for a fraction of a bit.
            filter: sbbf_rs_safe::Filter::new(1, bits),
            hasher: FixedState::default(),
        }
    }

    fn insert(&mut self, item: &[u8]) {
        self.filter.insert_hash(self.hasher.hash_one(item));
    }

    fn contains(&self, item: &[u8]) -> bool {
        self.filter.contains_hash(self.hasher.hash_one(item))
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.filter.as_bytes().len())
    }
}

impl Filter for GrowableBloom {
    fn new(capacity: usize, rate: f64) -> Self {
        GrowableBloom::new(rate, capacity)
    }

    fn insert(&mut self, item: &[u8]) {
        self.insert(item);
    }

    fn contains(&self, item: &[u8]) -> bool {
        self.contains(item)
    }

    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// A static filter. It collects hashes and is built from them at once. It has two error rates,
/// 1/256 and 1/65536. The one that keeps the rate asked for is taken.
pub struct Fuse {
    hashes: Vec<u64>,
    hasher: FixedState,
    rate: f64,
    built: Built,
}

enum Built {
    Not,
    Eight(xorf::BinaryFuse8),
    Sixteen(xorf::BinaryFuse16),
}

impl Filter for Fuse {
    fn new(capacity: usize, rate: f64) -> Self {
        Self {
            hashes: Vec::with_capacity(capacity),
            hasher: FixedState::default(),
            rate,
            built: Built::Not,
        }
    }

    fn insert(&mut self, item: &[u8]) {
        self.hashes.push(self.hasher.hash_one(item));
    }

    fn finish(&mut self) {
        let hashes = std::mem::take(&mut self.hashes);
        self.built = if self.rate >= 1.0 / 256.0 {
            Built::Eight(hashes.try_into().expect("the hashes differ"))
        } else {
            Built::Sixteen(hashes.try_into().expect("the hashes differ"))
        };
    }

    fn contains(&self, item: &[u8]) -> bool {
        let hash = self.hasher.hash_one(item);
        match &self.built {
            Built::Not => false,
            Built::Eight(filter) => filter.contains(&hash),
            Built::Sixteen(filter) => filter.contains(&hash),
        }
    }

    fn bytes(&self) -> Option<usize> {
        Some(match &self.built {
            Built::Not => 0,
            Built::Eight(filter) => filter.fingerprints.len(),
            Built::Sixteen(filter) => 2 * filter.fingerprints.len(),
        })
    }
}
