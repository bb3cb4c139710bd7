//! The header of the blocked layout.
//!
//! It is little-endian and packed, 52 bytes and 36 more for each layer, oldest layer first:
//!
//! ```text
//!  0            12      14     16      24     28      32        36     52
//!  +------------+-------+------+-------+------+-------+---------+------+   then for each layer
//!  | "everbloom"|version|layout| items |layers|options|expansion| key  |
//!  | 0d 0a 1a   |u16: 1 |u16: 1|  u64  | u32  |  u32  |   u32   | 16 B |
//!  +------------+-------+------+-------+------+-------+---------+------+
//!
//!  0       8       16       24      32     36
//!  +-------+-------+--------+-------+------+
//!  | bytes | items |capacity| error |hashes|
//!  |  u64  |  u64  |  u64   |  f64  | u32  |
//!  +-------+-------+--------+-------+------+
//! ```
//!
//! A transfer as text would damage a header. It would also change the line break or the 0x1a among
//! the first bytes, so such damage is noticed.

use everbloom::hash::Key;
use everbloom::redisbloom::{FilterParts, LayerParts};

use super::take::take;

/// The first bytes of every blocked header. RedisBloom's headers never start with them.
pub(super) const MAGIC: [u8; 12] = *b"everbloom\r\n\x1a";
const VERSION: u16 = 1;
/// The number of the blocked layout. 0 is not used.
const LAYOUT: u16 = 1;

const FIXED_BYTES: usize = 52;
const LAYER_BYTES: usize = 36;

pub(super) fn encode(parts: &FilterParts, key: Key) -> Vec<u8> {
    let mut out = Vec::with_capacity(FIXED_BYTES + parts.layers.len() * LAYER_BYTES);
    // 2^32 layers fit into no memory, because every layer but the last holds an item.
    let layers = u32::try_from(parts.layers.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&LAYOUT.to_le_bytes());
    out.extend_from_slice(&parts.items.to_le_bytes());
    out.extend_from_slice(&layers.to_le_bytes());
    out.extend_from_slice(&parts.options.to_le_bytes());
    out.extend_from_slice(&parts.expansion.to_le_bytes());
    out.extend_from_slice(&key.to_bytes());
    for layer in &parts.layers {
        out.extend_from_slice(&layer.bytes.to_le_bytes());
        out.extend_from_slice(&layer.items.to_le_bytes());
        out.extend_from_slice(&layer.capacity.to_le_bytes());
        out.extend_from_slice(&layer.error_rate.to_le_bytes());
        out.extend_from_slice(&layer.hashes.to_le_bytes());
    }
    out
}

/// Decodes a header. `header` is what follows the magic.
pub(super) fn decode(header: &[u8]) -> Option<FilterParts> {
    let mut rest = header;
    let version = take(&mut rest).map(u16::from_le_bytes)?;
    let layout = take(&mut rest).map(u16::from_le_bytes)?;
    if (version, layout) != (VERSION, LAYOUT) {
        return None;
    }
    let items = take(&mut rest).map(u64::from_le_bytes)?;
    let count = take(&mut rest).map(u32::from_le_bytes)?;
    let options = take(&mut rest).map(u32::from_le_bytes)?;
    let expansion = take(&mut rest).map(u32::from_le_bytes)?;
    let key = take(&mut rest).map(Key::from_bytes)?;
    let count = usize::try_from(count).ok()?;
    // Check that all claimed layers are there before anything is allocated.
    if count.checked_mul(LAYER_BYTES)? != rest.len() {
        return None;
    }
    let mut layers = Vec::with_capacity(count);
    for _ in 0..count {
        let bytes = take(&mut rest).map(u64::from_le_bytes)?;
        layers.push(LayerParts {
            bytes,
            bits: bytes.checked_mul(8)?,
            items: take(&mut rest).map(u64::from_le_bytes)?,
            capacity: take(&mut rest).map(u64::from_le_bytes)?,
            error_rate: take(&mut rest).map(f64::from_le_bytes)?,
            bits_per_entry: 0.0,
            hashes: take(&mut rest).map(u32::from_le_bytes)?,
            log2_bits: 0,
        });
    }
    Some(FilterParts {
        items,
        options,
        expansion,
        key: Some(key),
        window: None,
        layers,
    })
}
