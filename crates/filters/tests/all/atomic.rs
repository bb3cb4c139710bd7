//! The filter that several threads change: it answers as the other one does, and loses nothing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Barrier;
use std::thread;

use everbloom::hash::DoubleHash;
use everbloom::{AtomicBloomFilter, BloomFilter, BuildError, Layout};
use proptest::prelude::*;

/// Few cases where each takes seconds.
fn cases() -> ProptestConfig {
    ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 100 })
}

proptest! {
    #![proptest_config(cases())]

    /// Any sequence, of bytes and of hash values, one by one and in batches.
    #[test]
    fn it_answers_as_the_other_filter(
        blocks in 1_u64..40, hashes in 2_u32..33, seed in any::<u64>(),
        steps in prop::collection::vec((0..6_u8, 0..200_u64), 0..300),
    ) {
        let builder = BloomFilter::builder().bits(blocks * 512).hashes(hashes).seed(seed);
        let (mut plain, atomic) = (builder.build().unwrap(), builder.build_atomic().unwrap());
        for (step, number) in steps {
            let text = "text ".repeat(usize::try_from(number).unwrap() % 8) + &number.to_string();
            let pair = DoubleHash { a: number << 57, b: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
            match step {
                0 => prop_assert_eq!(plain.insert(&text), atomic.insert(&text)),
                1 => prop_assert_eq!(plain.contains(&number), atomic.contains(&number)),
                2 => prop_assert_eq!(plain.insert_hash(pair), atomic.insert_hash(pair)),
                3 => prop_assert_eq!(plain.contains_hash(pair), atomic.contains_hash(pair)),
                4 => {
                    let (mut plainly, mut atomically) = (Vec::new(), Vec::new());
                    plain.insert_each(number..2 * number, |new| plainly.push(new));
                    atomic.insert_each(number..2 * number, |new| atomically.push(new));
                    prop_assert_eq!(plainly, atomically);
                }
                _ => {
                    let (mut plainly, mut atomically) = (Vec::new(), Vec::new());
                    plain.contains_each(0..number, |found| plainly.push(found));
                    atomic.contains_each(0..number, |found| atomically.push(found));
                    prop_assert_eq!(plainly, atomically);
                }
            }
        }
        let of_atomic = atomic.stats();
        prop_assert_eq!(of_atomic.items, of_atomic.estimated_items);
        let mut of_plain = plain.stats();
        of_plain.items = of_atomic.items;
        prop_assert_eq!(of_atomic, of_plain);
        prop_assert_eq!(plain.key(), Some(atomic.key()));
        let of_plain = (plain.capacity(), plain.error_rate());
        prop_assert_eq!(of_plain, (atomic.capacity(), atomic.error_rate()));
        // A copy, and back.
        let copy = BloomFilter::from(atomic.clone());
        prop_assert!(copy.as_bytes() == plain.as_bytes());
        prop_assert_eq!(copy.len(), copy.estimated_len());
        let back = BloomFilter::from(atomic);
        prop_assert!(back == copy);
    }
}

#[test]
fn one_becomes_the_other_in_the_same_memory() {
    let mut plain = BloomFilter::new(1000, 0.01);
    plain.extend(0..500);
    let bytes = plain.as_bytes().to_vec();
    let place = plain.as_bytes().as_ptr();
    let atomic = AtomicBloomFilter::try_from(plain).unwrap();
    assert!((0..500).all(|item| atomic.contains(&item)));
    atomic.insert(&500);
    let plain = BloomFilter::from(atomic);
    assert_eq!(plain.as_bytes().as_ptr(), place);
    assert!(plain.contains(&500));
    let kept = plain
        .as_bytes()
        .iter()
        .zip(&bytes)
        .all(|(now, before)| now & before == *before);
    assert!(kept);
}

#[test]
fn the_classic_layout_is_refused() {
    let classic = BloomFilter::builder()
        .capacity(1000)
        .layout(Layout::Classic);
    assert_eq!(classic.build_atomic().unwrap_err(), BuildError::Layout);
    let refused = AtomicBloomFilter::try_from(classic.build().unwrap());
    assert_eq!(refused.unwrap_err(), BuildError::Layout);
    let none = BloomFilter::builder().build_atomic();
    assert_eq!(none.unwrap_err(), BuildError::Capacity);
}

#[test]
fn clearing_leaves_the_same_empty_filter() {
    let mut atomic = AtomicBloomFilter::new(1000, 0.01);
    let before = (atomic.key(), atomic.stats(), atomic.memory_usage());
    atomic.insert_each(0..1000, drop);
    atomic.clear();
    assert_eq!((atomic.stats().items, atomic.stats().fill_ratio), (0, 0.0));
    assert_eq!(
        (atomic.key(), atomic.stats(), atomic.memory_usage()),
        before
    );
    assert!(atomic.insert("a"));
}

/// Runs `work` in threads that start together, with the number of each.
fn together<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let ready = Barrier::new(THREADS);
    let run = |thread| {
        ready.wait();
        work(thread)
    };
    let run = &run;
    thread::scope(|scope| {
        let start = |thread| scope.spawn(move || run(thread));
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

const THREADS: usize = 4;

/// Threads that insert the same items at the same time: of every item somebody is told that it is
/// new, unless it seems to be there already, and all are there in the end.
#[test]
fn of_every_item_one_thread_is_told() {
    let (rounds, count) = if cfg!(miri) {
        (2, 20)
    } else {
        (200, 500_usize)
    };
    for round in 0..rounds {
        let builder = BloomFilter::builder()
            .capacity(count as u64)
            .error_rate(1e-6)
            .seed(round);
        let (mut plain, atomic) = (builder.build().unwrap(), builder.build_atomic().unwrap());
        let told = together(|thread| {
            let mut told = Vec::new();
            if thread.is_multiple_of(2) {
                told.extend((0..count).map(|item| atomic.insert(&item)));
            } else {
                atomic.insert_each(0..count, |new| told.push(new));
            }
            assert!(
                (0..count).all(|item| atomic.contains(&item)),
                "its own item"
            );
            told
        });
        let mut seeming = 0;
        plain.insert_each(0..count, |new| seeming += usize::from(!new));
        let nobody = (0..count)
            .filter(|item| told.iter().all(|told| !told[*item]))
            .count();
        assert!(nobody <= seeming, "an item that nobody was told of");
        assert!(BloomFilter::from(atomic).as_bytes() == plain.as_bytes());
    }
}

/// Threads that go through the same blocks, each with items of its own: no bit is lost. They keep
/// meeting, because who is ahead waits for memory and who is behind does not.
#[test]
fn no_thread_loses_the_bits_of_another() {
    let blocks: u64 = if cfg!(miri) { 20 } else { 100_000 };
    let builder = BloomFilter::builder().bits(blocks * 512).hashes(32).seed(0);
    let (mut plain, atomic) = (builder.build().unwrap(), builder.build_atomic().unwrap());
    let items = |thread: usize| {
        (0..blocks).map(move |block| DoubleHash {
            a: block * (u64::MAX / blocks) + u64::MAX / blocks / 2,
            b: (block * 8 + thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        })
    };
    together(|thread| items(thread).for_each(|pair| _ = atomic.insert_hash(pair)));
    (0..THREADS)
        .flat_map(items)
        .for_each(|pair| _ = plain.insert_hash(pair));
    assert!(BloomFilter::from(atomic).as_bytes() == plain.as_bytes());
}
