//! For hosts of many filters, such as a server.
//!
//! - prefetching the memory of several filters, see below
//! - [`begin_capture`](crate::ScalableBloomFilter::begin_capture): a filter read in pieces, as it
//!   was at one moment, while it goes on changing, by any number of readers
//! - [`sample`](crate::ScalableBloomFilter::sample): a large filter measured by some of its bits
//! - [`try_insert_each`](crate::ScalableBloomFilter::try_insert_each): a batch with a limit on
//!   growth
//! - [`relocate_bits`](crate::ScalableBloomFilter::relocate_bits): bits moved to another place
//! - [`give_back`]: much memory freed in steps, so that other threads need not wait
//!
//! A filter for each of a million users lies somewhere in memory, and so do its bits. A host that
//! executes requests one by one waits for each of these places in turn. It waits once for all of
//! them when it prefetches all before it executes the first request:
//!
//! ```
//! use everbloom::{ScalableBloomFilter, host};
//!
//! let mut filters = vec![ScalableBloomFilter::builder().build()?; 3];
//! let items = ["a", "b", "a"];
//!
//! filters.iter().for_each(|filter| host::prefetch(filter));
//! filters.iter().for_each(ScalableBloomFilter::prefetch_layers);
//! let pairs = filters.iter().zip(items);
//! let prepared: Vec<_> = pairs.map(|(filter, item)| filter.prepare(item)).collect();
//! for (filter, prepared) in filters.iter_mut().zip(prepared) {
//!     assert!(!filter.contains_prepared(prepared));
//!     assert_eq!(filter.try_insert_prepared(prepared, u64::MAX), Ok(true));
//! }
//! # Ok::<(), everbloom::BuildError>(())
//! ```

mod capture;
mod cuckoo;
mod prefetch;
mod relocate;
mod sample;

pub use crate::blocked::Instructions;
pub use crate::pages::give_back;
pub use capture::Capture;
pub use prefetch::{Prepared, prefetch};
pub use sample::Sample;
