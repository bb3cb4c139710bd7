//! Answers of whole batches, as tests compare them, and filters that older versions grew.

use everbloom::host::LayeredFilter;
use everbloom::redisbloom::Check;
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

/// A blocked filter of this capacity and of seed 42, as it once grew: small layers by 18, although
/// the expansion was 2.
pub(crate) fn grown_by_18(
    capacity: u64,
    error_rate: f64,
    items: impl IntoIterator<Item: Item>,
) -> LayeredFilter {
    let builder = LayeredFilter::builder()
        .capacity(capacity)
        .error_rate(error_rate);
    let mut filter = builder.expansion(18).seed(42).build().unwrap();
    filter.extend(items);
    let mut parts = filter.parts();
    parts.expansion = 2;
    let layers = filter.layers().iter();
    let arrays = layers.map(|layer| layer.as_bytes().into_owned()).collect();
    LayeredFilter::from_parts_and_bits(&parts, arrays, 1 << 20, Check::RdbValue).unwrap()
}
