//! Answers of whole batches, as tests compare them.

use everbloom::host::LayeredFilter;
use everbloom::{BloomFilter, Item, ScalableBloomFilter};

pub(crate) trait Batches {
    fn insert_all(&mut self, items: &[impl Item]) -> Vec<bool>;
    fn contains_all(&self, items: &[impl Item]) -> Vec<bool>;
}

macro_rules! batches {
    ($($filter:ty)*) => {
        $(
            impl Batches for $filter {
                fn insert_all(&mut self, items: &[impl Item]) -> Vec<bool> {
                    let mut replies = Vec::new();
                    self.insert_each(items, |new| replies.push(new));
                    replies
                }

                fn contains_all(&self, items: &[impl Item]) -> Vec<bool> {
                    let mut replies = Vec::new();
                    self.contains_each(items, |found| replies.push(found));
                    replies
                }
            }
        )*
    };
}

batches! { BloomFilter ScalableBloomFilter LayeredFilter }
