//! The blocked layout: all bits of an item in one block of 512 bits, which is a cache line.
//!
//! The naive Bloom filter reads one cache line for each bit. Here the first hash value chooses a
//! block, and the second one the bits in it, so that a lookup waits for memory once. (Putze,
//! Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007.) It needs more
//! bits, because some blocks get more items than others: see
//! [`BlockedSize`](crate::sizing::BlockedSize).
//!
//! Each way to test a block has its own file: `portable`, which is the definition, and one for each
//! set of instructions. All give the same answers. [`functions::Kernel::new`] chooses one.
#![allow(unsafe_code)]

mod array;
#[cfg(target_has_atomic = "64")]
mod atomic;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx2;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx512;
mod bits;
mod borrowed;
mod functions;
mod kernel;
mod lanes;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
mod portable;
mod select;
#[cfg(any(test, fuzzing))]
pub(crate) mod tests;
#[cfg(target_has_atomic = "64")]
mod words;

#[cfg(target_has_atomic = "64")]
pub(crate) use atomic::AtomicBits;
pub(crate) use bits::contained;
pub(crate) use borrowed::BorrowedBlocks;
pub(crate) use functions::BlockedBits;
pub use functions::Instructions;
