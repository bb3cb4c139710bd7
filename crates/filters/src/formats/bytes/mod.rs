//! The stable bytes of a filter.
//!
//! [`to_bytes`] and `write_to` write version 3, which [`from_bytes`], `read_from` and
//! [`BloomView`](crate::BloomView) read. It is blocks of 64 bytes: a header, one for each layer, and
//! the bits.
//! Integers are little-endian, "f64" is an IEEE double, little-endian.
//!
//! ```text
//! offset  size  field
//!      0     8  magic: "EVRBLOOM"
//!      8     2  version: 3
//!     10     1  kind: 1 = BloomFilter, 2 = one with layers; 3 and 4 = CuckooFilter, see below
//!     11     1  layout: 0 = classic, 1 = blocked
//!     12     4  options: 1 NOROUND, 2 ENTS_IS_BITS, 4 FORCE64, 8 NO_SCALING
//!     16     4  expansion
//!     20     4  number of layers, n
//!     24     8  items in the filter
//!     32    16  key; zeros in the classic layout
//!     48     8  length of the whole
//!     56     8  checksum: MurmurHash64A of the 56 bytes before, with seed 0
//!
//!     64  64 n  layers, oldest first
//!               +0   u64  bytes of the bit array; in the blocked layout a multiple of 64
//!               +8   u64  items in this layer
//!               +16  u64  capacity
//!               +24  f64  error rate
//!               +32  f64  bits per entry; 0 in the blocked layout
//!               +40  u32  hashes; in the blocked layout from 2 to 32
//!               +44  u8   log2 of the modulus, 0 when that is 8 times the bytes
//!               +45  3 x  0
//!               +48  u64  checksum of the bits: MurmurHash64A of the bit array, with seed 0
//!               +56  u64  checksum: MurmurHash64A of the 56 bytes before, with the checksum that
//!                         ends the 64 bytes before them as its seed
//!
//!      ?     ?  bit arrays, oldest layer first, each with zeros up to a multiple of 64
//! ```
//!
//! Between the header and the layers of a `WindowedBloomFilter`, which has kind 2 and 16 more as
//! its options, lie a block of the window and one for each four of its generations, oldest first:
//!
//! ```text
//!               +0   u64  ticks of the window, of any clock; 0 for a window of items
//!               +8   u64  items that the window holds
//!               +16  f64  error rate of all generations together
//!               +24  u32  generations of the window
//!               +28  u32  generations that are kept
//!               +32  u64  bytes of the layers that were dropped so far
//!               +40  16 x 0
//!               +56  u64  checksum, as that of a layer
//!
//!               +0   4 times: u64 when the generation began, u32 how many layers it has; zeros
//!                    where there is none
//!               +48  8 x  0
//!               +56  u64  checksum
//! ```
//!
//! There a filter of valkey-bloom, which has 32 more as its options, has a block of its hash: the
//! seed (32 bytes), the tightening ratio (f64), 16 zeros and the checksum.
//!
//! A `BloomFilter` is one layer with options 13, expansion 0, log2 0 and at least one hash; the
//! layer has as many items as the filter. In the blocked layout options are 5 or 13, 16 more with a
//! window, and the items are the sum of the layers' items. Readers refuse every value that is never
//! written, so that equal filters have equal bytes and a byte never changes its meaning.
//!
//! A `CuckooFilter` has kind 3 and other fields:
//!
//! ```text
//!     10     1  kind: 3
//!     11     1  slots of a bucket
//!     12     2  the most kicks
//!     14     2  expansion
//!     16     2  number of tables, n
//!     18     6  zeros
//!     24     8  items
//!     32     8  items removed since the last compaction
//!     40     8  buckets of the first table
//!     48     8  length of the whole
//!     56     8  checksum
//!
//!     64  64 n  tables, oldest first
//!               +0   u64  checksum of the slots: MurmurHash64A of them, with seed 0
//!               +8   48 x 0
//!               +56  u64  checksum, as that of a layer
//!
//!      ?     ?  slots, oldest table first, each with zeros up to a multiple of 64
//! ```
//!
//! A `CuckooFilter` with a chosen error rate has kind 4, and a block between the header and the
//! tables:
//!
//! ```text
//!               +0   16   key
//!               +16  f64  error rate that was asked for
//!               +24  u8   bits of a fingerprint in the first table
//!               +25  u8   how many more bits the second table has, less one
//!               +26  30 x 0
//!               +56  u64  checksum, as that of a layer
//! ```
//!
//! A [`Note`] may be in front of a filter of version 3, and has version 4:
//!
//! ```text
//!      0     8  magic: "EVRBLOOM"
//!      8     2  version: 4
//!     10     1  0
//!     11     1  flags: 1 = critical
//!     12     2  bytes of the text, m: from 1 to 4096
//!     14     m  the text, in UTF-8
//!      ?     ?  zeros up to 8 bytes before a multiple of 64
//!      ?     8  checksum: MurmurHash64A of the bytes before, with seed 0
//! ```
//!
//! The filter follows. Who does not know a critical note must not use it.
//!
//! [`from_bytes`] also reads versions 1 and 2; the other functions do not.
//!
//! [`to_bytes`]: crate::BloomFilter::to_bytes
//! [`from_bytes`]: crate::BloomFilter::from_bytes

mod cuckoo;
mod error;
mod filters;
mod head;
mod input;
#[cfg(feature = "std")]
mod io;
mod note;
mod old;
pub(crate) mod view;
mod windowed;

pub use error::BytesError;
#[cfg(feature = "std")]
pub use error::ReadError;
pub use note::Note;
