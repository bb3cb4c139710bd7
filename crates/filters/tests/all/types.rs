//! The types of a program do what the one of hosts does: with a window, without, and with either.

use std::ops::ControlFlow;

use everbloom::host::{Inserted, LayeredFilter};
use everbloom::{Layout, ScalableBloomFilter, Span, WindowedBloomFilter};
use proptest::prelude::*;

proptest! {
    /// Whatever is done with a filter that grows, the host's has the same answers and bits.
    #[test]
    fn a_filter_that_grows_is_that_of_hosts(
        is_blocked: bool,
        steps in prop::collection::vec((0..9_u8, prop::collection::vec(0..3000_u64, 0..90)), 1..40),
    ) {
        let layout = if is_blocked { Layout::Blocked } else { Layout::Classic };
        let builder = ScalableBloomFilter::builder().capacity(20).layout(layout);
        let mut own = if is_blocked { builder.seed(7) } else { builder }.build().unwrap();
        let mut other = own.empty_like().unwrap();
        let mut host = LayeredFilter::from(own.clone());
        for (step, items) in steps {
            let (mut ours, mut hosts) = (Vec::new(), Vec::new());
            match step {
                0 => own.clear(),
                1 => _ = own.shrink_to(items.len() as u64),
                2 => {
                    other.extend(&items);
                    own.union(&other).unwrap();
                }
                3 => ours.extend(items.iter().map(|item| own.insert(item))),
                4 => ours.extend(items.iter().map(|item| own.try_insert(item).unwrap())),
                5 => ours.extend(items.iter().map(|item| own.contains(item))),
                6 => own.contains_each(&items, |found| ours.push(found)),
                _ => own.insert_each(&items, |is_new| ours.push(is_new)),
            }
            match step {
                0 => host.clear(),
                1 => _ = host.shrink_to(items.len() as u64),
                2 => host.union(&other.clone().into()).unwrap(),
                3 | 4 => host.try_insert_each(&items, u64::MAX, |inserted| {
                    hosts.push(inserted == Ok(Inserted::New));
                    ControlFlow::Continue(())
                }),
                5 | 6 => host.contains_each(&items, |found| hosts.push(found)),
                _ => hosts.extend(items.iter().map(|item| host.insert(item))),
            }
            prop_assert_eq!(ours, hosts);
            prop_assert_eq!(LayeredFilter::from(own.clone()), host.clone());
        }
        let facts = (own.capacity(), own.error_rate(), own.len(), own.stats());
        prop_assert_eq!(facts, (host.capacity(), host.error_rate(), host.len(), host.stats()));
        let host = WindowedBloomFilter::try_from(host).unwrap_err();
        prop_assert_eq!(ScalableBloomFilter::try_from(host), Ok(own));
    }

    /// The same of a filter that forgets.
    #[test]
    fn a_filter_that_forgets_is_that_of_hosts(
        steps in prop::collection::vec((0..6_u8, prop::collection::vec(0..3000_u64, 0..90)), 1..40),
        by_items: bool,
    ) {
        let span = if by_items { Span::Items } else { Span::Ticks(90) };
        let builder = WindowedBloomFilter::builder().capacity(60).span(span);
        let mut own = builder.seed(7).build().unwrap();
        let mut host = LayeredFilter::from(own.clone());
        let mut now = 0;
        for (step, items) in steps {
            now += items.len() as u64;
            let (mut ours, mut hosts) = (Vec::new(), Vec::new());
            match step {
                0 => own.clear(),
                1 => own.advance(1, now).unwrap(),
                2 => own.contains_each_at(&items, now, |found| ours.push(found)),
                3 => ours.extend(items.iter().map(|item| own.contains_at(item, now))),
                4 if !items.is_empty() => {
                    ours.extend(items.iter().map(|item| own.insert_at(item, now)));
                }
                _ => own.insert_each_at(&items, now, |is_new| ours.push(is_new)).unwrap(),
            }
            match step {
                0 => host.clear(),
                1 => host.advance(1, now).unwrap(),
                2 | 3 => host.contains_each_at(&items, now, |found| hosts.push(found)),
                _ => {
                    host.advance_to(now).unwrap();
                    hosts.extend(items.iter().map(|item| host.insert(item)));
                }
            }
            prop_assert_eq!(ours, hosts);
            prop_assert_eq!(LayeredFilter::from(own.clone()), host.clone());
        }
        prop_assert_eq!(Some(own.window()), host.window());
        prop_assert_eq!((own.error_rate(), own.len()), (host.error_rate(), host.len()));
        let host = ScalableBloomFilter::try_from(host).unwrap_err();
        prop_assert_eq!(WindowedBloomFilter::try_from(host), Ok(own));
    }
}
