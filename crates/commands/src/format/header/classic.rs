//! RedisBloom's header.
//!
//! It is little-endian and packed, 20 bytes and 53 more for each layer, oldest layer first:
//!
//! ```text
//!  0        8      12      16          20
//!  +--------+------+-------+---------+   then for each layer
//!  | items  |layers|options|expansion|
//!  |  u64   | u32  |  u32  |   u32   |
//!  +--------+------+-------+---------+
//!
//!  0       8       16      24      32      40     44       52
//!  +-------+-------+-------+-------+-------+------+--------+-+
//!  | bytes | bits  | items | error | bits/ |hashes|capacity|n2
//!  |  u64  |  u64  |  u64  |  f64  |item f64 u32  |  u64   |u8
//!  +-------+-------+-------+-------+-------+------+--------+-+
//! ```

use everbloom::redisbloom::{FilterParts, LayerParts};

use crate::format::take::take;

const FIXED_BYTES: usize = 20;
const LAYER_BYTES: usize = 53;

pub(super) fn encode(parts: &FilterParts) -> Vec<u8> {
    let mut out = Vec::with_capacity(FIXED_BYTES + parts.layers.len() * LAYER_BYTES);
    // 2^32 layers fit into no memory, because every layer but the last holds an item.
    let layers = u32::try_from(parts.layers.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&parts.items.to_le_bytes());
    out.extend_from_slice(&layers.to_le_bytes());
    out.extend_from_slice(&parts.options.to_le_bytes());
    out.extend_from_slice(&parts.expansion.to_le_bytes());
    for layer in &parts.layers {
        out.extend_from_slice(&layer.bytes.to_le_bytes());
        out.extend_from_slice(&layer.bits.to_le_bytes());
        out.extend_from_slice(&layer.items.to_le_bytes());
        out.extend_from_slice(&layer.error_rate.to_le_bytes());
        out.extend_from_slice(&layer.bits_per_entry.to_le_bytes());
        out.extend_from_slice(&layer.hashes.to_le_bytes());
        out.extend_from_slice(&layer.capacity.to_le_bytes());
        out.push(layer.log2_bits);
    }
    out
}

/// Decodes a header. `None` when its length does not match its layer count.
pub(super) fn decode(header: &[u8]) -> Option<FilterParts> {
    let mut rest = header;
    let items = take(&mut rest).map(u64::from_le_bytes)?;
    let count = take(&mut rest).map(u32::from_le_bytes)?;
    let options = take(&mut rest).map(u32::from_le_bytes)?;
    let expansion = take(&mut rest).map(u32::from_le_bytes)?;
    let count = usize::try_from(count).ok()?;
    // Check that all claimed layers are there before anything is allocated.
    if count.checked_mul(LAYER_BYTES)? != rest.len() {
        return None;
    }
    let mut layers = Vec::with_capacity(count);
    for _ in 0..count {
        layers.push(LayerParts {
            bytes: take(&mut rest).map(u64::from_le_bytes)?,
            bits: take(&mut rest).map(u64::from_le_bytes)?,
            items: take(&mut rest).map(u64::from_le_bytes)?,
            error_rate: take(&mut rest).map(f64::from_le_bytes)?,
            bits_per_entry: take(&mut rest).map(f64::from_le_bytes)?,
            hashes: take(&mut rest).map(u32::from_le_bytes)?,
            capacity: take(&mut rest).map(u64::from_le_bytes)?,
            log2_bits: take(&mut rest).map(u8::from_le_bytes)?,
        });
    }
    Some(FilterParts {
        items,
        options,
        expansion,
        key: None,
        valkey: None,
        window: None,
        layers,
    })
}
