//! Versions 1 and 2, which are only read.
//!
//! ```text
//! offset  size  field
//!      0     8  magic: "EVRBLOOM"
//!      8     2  version: 1 = classic layout, 2 = blocked layout
//!     10     1  kind: 1 = BloomFilter, 2 = ScalableBloomFilter
//!     11     1  0
//!     12     4  options
//!     16     4  expansion
//!     20     4  number of layers, n
//!     24     8  items in the filter
//!
//! version 1
//!     32  48 n  layers, oldest first
//!               +0   u64  bytes of the bit array
//!               +8   u64  items in this layer
//!               +16  u64  capacity
//!               +24  f64  error rate
//!               +32  f64  bits per entry
//!               +40  u32  hashes
//!               +44  u8   log2 of the modulus, 0 when that is 8 times the bytes
//!               +45  3 x  0
//!
//! version 2
//!     32    16  key
//!     48  40 n  layers, oldest first
//!               +0   u64  bytes of the bit array, a multiple of 64
//!               +8   u64  items in this layer
//!               +16  u64  capacity
//!               +24  f64  error rate
//!               +32  u32  hashes, from 2 to 32
//!               +36  u32  0
//!
//! both
//!      ?     ?  bit arrays end to end, oldest layer first
//!      ?     8  MurmurHash64A, seed 0, of all bytes before
//! ```

use alloc::vec::Vec;

use super::error::BytesError;
use super::head::{FilterType, read_layer};
use super::input::{Input, version};
use crate::bloom::layered::LayeredFilter;
use crate::formats::redisbloom::{Check, FilterParts, PartsError};
use crate::hash::{Key, murmur64a};
use crate::layer::layout::Layout;

/// The version of the classic layout.
pub(super) const CLASSIC: u16 = 1;
/// The version of the blocked layout.
pub(super) const BLOCKED: u16 = 2;
/// The magic and the version.
const START: usize = 10;
const HEADER: usize = 32;
const KEY: usize = 16;
const CLASSIC_LAYER: usize = 48;
const BLOCKED_LAYER: usize = 40;
const CHECKSUM: usize = 8;

/// The filter of bytes of version 1 or 2.
pub(super) fn read(kind: FilterType, bytes: &[u8]) -> Result<LayeredFilter, BytesError> {
    let (parts, bits) = read_parts(kind, bytes)?;
    let limit = bits.len() as u64;
    // Layers loaded from RDB files may have counts that do not add up, and are written as they
    // are; the checksum says that this is how they were.
    parts.validate(limit, Check::RdbValue)?;
    kind.check(&parts)?;
    let sum = parts.layers.iter().map(|layer| layer.bytes).sum::<u64>();
    if sum != limit {
        let found = bytes.len() as u64;
        let expected = found - limit + sum;
        return Err(BytesError::Length { expected, found });
    }
    let mut filter = LayeredFilter::from_parts_checked(&parts, limit, Check::RdbValue)?;
    let mut bits = Input(bits);
    for layer in &mut filter.layers {
        let len = layer.as_bytes_mut().len();
        layer.load(bits.slice(len)?);
    }
    Ok(filter)
}

/// The fields, not validated, and the bytes of the bit arrays.
fn read_parts(kind: FilterType, bytes: &[u8]) -> Result<(FilterParts, &[u8]), BytesError> {
    let version = version(bytes)?;
    let (key_len, layer_len) = match version {
        CLASSIC => (0, CLASSIC_LAYER),
        BLOCKED => (KEY, BLOCKED_LAYER),
        _ => return Err(BytesError::Version(version)),
    };
    let (content, checksum) = bytes
        .split_last_chunk::<CHECKSUM>()
        .ok_or(BytesError::Truncated)?;
    let mut input = Input(content);
    input.take::<START>()?;
    let [written, zero] = input.take()?;
    let options = input.u32()?;
    let expansion = input.u32()?;
    let count = usize::try_from(input.u32()?).map_err(|_| BytesError::Truncated)?;
    let items = input.u64()?;
    let table = count.checked_mul(layer_len).ok_or(BytesError::Truncated)?;
    let bits_start = table.checked_add(HEADER + key_len);
    let bits = bits_start.and_then(|start| content.get(start..));
    let bits = bits.ok_or(BytesError::Truncated)?;
    // Before the kind and the rest, so that damage is called damage.
    if murmur64a(content, 0) != u64::from_le_bytes(*checksum) {
        return Err(BytesError::Checksum);
    }
    FilterType::new(written)?.expect(kind)?;
    if zero != 0 {
        return Err(BytesError::Reserved);
    }
    let (layout, key) = match version {
        CLASSIC => (Layout::Classic, None),
        _ => (Layout::Blocked, Some(Key::from_bytes(input.take()?))),
    };
    let mut layers = Vec::new();
    layers
        .try_reserve_exact(count)
        .map_err(|_| PartsError::OutOfMemory)?;
    for _ in 0..count {
        layers.push(read_layer(&mut input, version, layout)?);
    }
    let parts = FilterParts {
        items,
        options,
        expansion,
        key,
        layers,
        ..FilterParts::default()
    };
    Ok((parts, bits))
}
