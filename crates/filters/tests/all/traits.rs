//! What every filter implements.

use core::fmt::Debug;

use everbloom::bytes::{BytesError, ReadError};
use everbloom::hash::{DoubleHash, Key};
use everbloom::redisbloom::{ChunkError, CuckooError, PartsError};
use everbloom::{
    AtomicBloomFilter, BloomFilter, BloomView, BuildError, CuckooFilter, InsertError, ItemHash,
    Layout, ScalableBloomFilter, ShrinkError, Span, Stats, UnionError, WindowedBloomFilter,
};

fn shared<T: Send + Sync + Debug + Unpin + 'static>() {}
fn value<T: Clone + PartialEq>() {}
fn error<T: core::error::Error + Send + Sync + 'static>() {}
fn extended<T: for<'a> Extend<&'a str>>() {}

#[test]
fn all_types_are_what_programs_expect() {
    shared::<BloomFilter>();
    shared::<ScalableBloomFilter>();
    shared::<WindowedBloomFilter>();
    shared::<AtomicBloomFilter>();
    shared::<CuckooFilter>();
    shared::<BloomView<'static>>();
    shared::<ItemHash>();
    shared::<(Key, DoubleHash, Layout, Span, Stats)>();

    value::<BloomFilter>();
    value::<ScalableBloomFilter>();
    value::<WindowedBloomFilter>();
    value::<CuckooFilter>();

    error::<BuildError>();
    error::<InsertError>();
    error::<UnionError>();
    error::<ShrinkError>();
    error::<CuckooError>();
    error::<PartsError>();
    error::<ChunkError>();
    error::<BytesError>();
    error::<ReadError>();

    extended::<BloomFilter>();
    extended::<ScalableBloomFilter>();
    extended::<AtomicBloomFilter>();
    extended::<&AtomicBloomFilter>();
}

/// Threads extend one filter through shared references.
#[test]
fn a_reference_to_an_atomic_filter_is_extended() {
    let seen = AtomicBloomFilter::new(1000, 0.01);
    std::thread::scope(|scope| {
        for start in [0, 100] {
            let mut seen = &seen;
            scope.spawn(move || seen.extend(start..start + 100));
        }
    });
    assert!((0..200).all(|item| seen.contains(&item)));
}
