//! Sizes that no filter has: an error of a builder, and a panic of `new` that names its caller.

use std::panic::{self, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use everbloom::redisbloom::CuckooError;
use everbloom::{
    AtomicBloomFilter, BloomFilter, BuildError, CuckooFilter, Layout, ScalableBloomFilter, Span,
    WindowedBloomFilter,
};

#[test]
fn no_filter_keeps_a_rate_that_is_too_low() {
    for layout in [Layout::Classic, Layout::Blocked] {
        let builder = BloomFilter::builder().layout(layout).capacity(1);
        let low = builder.error_rate(1e-300).build();
        assert_eq!(low, Err(BuildError::Unsizable), "{layout:?}");
        let low = BloomFilter::builder().layout(layout).bits(1 << 16);
        let low = low.error_rate(1e-14).build();
        assert_eq!(low, Err(BuildError::Unsizable), "{layout:?}");
        assert!(builder.error_rate(1e-12).build().is_ok(), "{layout:?}");
    }
    let items = CuckooFilter::builder().capacity(u64::MAX);
    assert_eq!(items.build(), Err(CuckooError::Buckets));
    let no_slots = CuckooFilter::builder().capacity(7).bucket_size(0);
    assert_eq!(no_slots.build(), Err(CuckooError::BucketSize));
}

#[test]
fn a_panic_names_its_caller() {
    let places = Arc::new(Mutex::new(Vec::new()));
    let (noted, this) = (Arc::clone(&places), thread::current().id());
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == this {
            let place = info.location().map(|place| place.file().to_owned());
            noted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(place);
        } else {
            before(info);
        }
    }));
    assert!(catch_unwind(|| BloomFilter::new(u64::MAX, 0.01)).is_err());
    assert!(catch_unwind(|| BloomFilter::new(10, 1e-300)).is_err());
    assert!(catch_unwind(|| AtomicBloomFilter::new(0, 0.01)).is_err());
    assert!(catch_unwind(|| ScalableBloomFilter::new(u64::MAX, 0.01)).is_err());
    assert!(catch_unwind(|| WindowedBloomFilter::new(10, 1.0, Span::Items)).is_err());
    assert!(catch_unwind(|| CuckooFilter::new(u64::MAX)).is_err());
    drop(panic::take_hook());
    let places = places.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(places.len(), 6);
    let is_here = |place: &Option<String>| place.as_deref().is_some_and(|it| it == file!());
    assert!(places.iter().all(is_here), "{places:?}");
}

/// What programs expect of every filter.
#[test]
fn filters_can_go_to_other_threads() {
    fn is_shared<T: Send + Sync + Clone + std::fmt::Debug>() {}
    is_shared::<BloomFilter>();
    is_shared::<ScalableBloomFilter>();
    is_shared::<WindowedBloomFilter>();
    is_shared::<AtomicBloomFilter>();
    is_shared::<CuckooFilter>();
    is_shared::<everbloom::BloomView<'_>>();
}
