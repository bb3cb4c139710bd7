//! Every order in which threads may meet at the words of a block. It takes loom, so it runs by
//! itself: `RUSTFLAGS="--cfg loom" cargo test -p everbloom --test atomic_model --target-dir
//! target/loom`.
#![cfg(loom)]
#![allow(clippy::unwrap_used)]

#[path = "../src/bits/blocks/words.rs"]
mod words;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use words::{Word, insert, load};

impl Word for AtomicU64 {
    fn load(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    fn fetch_or(&self, bits: u64) -> u64 {
        self.fetch_or(bits, Ordering::Relaxed)
    }
}

fn contains<const N: usize>(words: &[AtomicU64; N], mask: &[u64; N]) -> bool {
    load(words)
        .iter()
        .zip(mask)
        .all(|(word, mask)| word & mask == *mask)
}

/// Tries the orders; of more than two threads those with up to three switches of threads that did
/// not have to wait, because there are too many others.
fn model(threads: usize, check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = (threads > 2).then_some(3);
    model.check(check);
}

/// Inserts each mask in a thread of its own; what the threads were told. Every thread finds its own
/// item, and all are there in the end.
fn insert_at_once<const N: usize, const T: usize>(
    start: [u64; N],
    masks: [[u64; N]; T],
) -> [bool; T] {
    let block = Arc::new(start.map(AtomicU64::new));
    let threads = masks.map(|mask| {
        let block = Arc::clone(&block);
        thread::spawn(move || {
            let new = insert(&block, &mask);
            assert!(contains(&block, &mask), "a thread's own item");
            new
        })
    });
    let new = threads.map(|thread| thread.join().unwrap());
    assert!(masks.iter().all(|mask| contains(&block, mask)));
    new
}

#[test]
fn one_of_two_threads_is_told_that_an_item_is_new() {
    model(2, || {
        let new = insert_at_once([0, 0b1000], [[0b101, 0b11]; 2]);
        assert!(new[0] || new[1], "nobody was told");
    });
}

#[test]
fn one_of_three_threads_is_told() {
    model(3, || {
        let new = insert_at_once([0, 1], [[1, 1]; 3]);
        assert_eq!(new.iter().filter(|new| **new).count(), 1, "a single bit");
    });
}

#[test]
fn nobody_is_told_of_a_known_item() {
    model(2, || {
        assert_eq!(insert_at_once([0b111, 1], [[0b101, 1]; 2]), [false; 2]);
    });
}

/// Items that share a bit of each word.
#[test]
fn other_items_lose_no_bit() {
    model(2, || {
        let new = insert_at_once([0, 0], [[0b0011, 1], [0b0110, 1]]);
        assert!(new[0], "its first bit is nobody else's");
        assert!(new[1], "its third bit is nobody else's");
    });
}

/// That nobody is told of an item happens only when other items had all its bits.
#[test]
fn two_items_can_make_a_third() {
    static SOMETIMES: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
    model(3, || {
        let [first, second, sum] = insert_at_once([0], [[0b01], [0b10], [0b11]]);
        assert!(sum || (first && second), "nobody was told of a bit");
        SOMETIMES[usize::from(sum)].store(true, Relaxed);
    });
    assert!(SOMETIMES.iter().all(|seen| seen.load(Relaxed)), "one order");
}
