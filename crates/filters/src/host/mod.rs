//! For hosts of many filters, such as a server.
//!
//! This module has no promise: its names, and the methods of filters that are listed here, may
//! change in any version. Bytes and answers never do.
//!
//! - [`LayeredFilter`]: what a host holds for each key, a filter that grows or one that forgets
//! - [`Layer`], [`Window`] and [`Generation`]: the parts of a filter
//! - prefetching the memory of several filters, see below
//! - [`begin_capture`](LayeredFilter::begin_capture): any number of readers read a filter in
//!   pieces, as it was at one moment, while it changes
//! - [`sample`](LayeredFilter::sample): a large filter measured by some of its bits
//! - [`try_insert_each`](LayeredFilter::try_insert_each): a batch with a limit on growth
//! - [`relocate_bits`](LayeredFilter::relocate_bits): moves bits to another address
//! - [`zeros`]: memory that may be refused
//! - [`memory`]: an allocator for a process of its own
//! - [`Limit`]: a threshold that the project's own tests set to its least
//!
//! When a host has a filter for each of a million users, every filter and its bits are at a
//! different place in memory. A host that executes requests one by one waits for each of these
//! reads in turn. If it prefetches all of them before it executes the first request, it waits only
//! once:
//!
//! ```
//! use everbloom::host::{self, LayeredFilter};
//!
//! let mut filters = vec![LayeredFilter::builder().build()?; 3];
//! let items = ["a", "b", "a"];
//!
//! filters.iter().for_each(|filter| host::prefetch(filter));
//! filters.iter().for_each(|filter| filter.prefetch_layers());
//! filters.iter().zip(items).for_each(|(filter, item)| filter.prefetch_item(item));
//! for (filter, item) in filters.iter_mut().zip(items) {
//!     assert!(filter.insert(item));
//! }
//! # Ok::<(), everbloom::BuildError>(())
//! ```

mod bloom;
mod cuckoo;
#[cfg(feature = "std")]
pub mod memory;
mod sample;

pub use crate::bits::blocks::Instructions;
pub use crate::bits::memory::{prefetch_value as prefetch, zeros};
pub use crate::bloom::builder::LayeredBuilder;
pub use crate::bloom::insertion::Inserted;
pub use crate::bloom::layered::LayeredFilter;
pub use crate::bloom::window::{Generation, MAX_GENERATIONS, Window};
pub use crate::layer::Layer;
pub use crate::layer::capture::Capture;
pub use crate::limits::Limit;
pub use cuckoo::Prepared;
pub use sample::Sample;
