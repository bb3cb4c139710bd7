//! The header of filters in the blocked layout, and of those of valkey-bloom.
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
//! A filter of valkey-bloom has the number 2 for its layout. In the place of the key it has the
//! seed of its hash, 32 bytes, and its tightening ratio, an f64.
//!
//! When the options have 16, a window lies between the key and the layers: 40 bytes and 12 more for
//! each generation, oldest first. Its milliseconds are 0 for a window of items.
//!
//! ```text
//!  0       8             12       20      28       36     40
//!  +-------+-------------+--------+-------+--------+------+                      +--------+-------+
//!  |millis.|generations g|capacity| error |dropped | kept |   then for each kept |layers  | began |
//!  |  u64  |     u32     |  u64   |  f64  |bytes   | u32  |                      |  u32   |  u64  |
//!  +-------+-------------+--------+-------+--------+------+                      +--------+-------+
//! ```
//!
//! A transfer as text would damage a header. It would also change the line break or the 0x1a among
//! the first bytes, so such damage is noticed.

use everbloom::hash::Key;
use everbloom::redisbloom::{FilterParts, LayerParts, Options, ValkeyBloom};
use everbloom::{Generation, MAX_GENERATIONS, Span, Window};

use crate::format::take::take;

/// The first bytes of every header of ours. RedisBloom's headers never start with them.
pub(super) const MAGIC: [u8; 12] = *b"everbloom\r\n\x1a";
const VERSION: u16 = 1;
/// The numbers of the blocked layout, and of valkey-bloom's. 0 is not used.
const BLOCKED: u16 = 1;
const VALKEY: u16 = 2;

const FIXED_BYTES: usize = 52;
const LAYER_BYTES: usize = 36;

pub(super) fn encode(parts: &FilterParts) -> Vec<u8> {
    let mut out = Vec::with_capacity(FIXED_BYTES + parts.layers.len() * LAYER_BYTES);
    // 2^32 layers fit into no memory, because every layer but the last holds an item.
    let layers = u32::try_from(parts.layers.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    let layout = if parts.valkey.is_some() {
        VALKEY
    } else {
        BLOCKED
    };
    out.extend_from_slice(&layout.to_le_bytes());
    out.extend_from_slice(&parts.items.to_le_bytes());
    out.extend_from_slice(&layers.to_le_bytes());
    out.extend_from_slice(&parts.options.to_le_bytes());
    out.extend_from_slice(&parts.expansion.to_le_bytes());
    if let Some(key) = parts.key {
        out.extend_from_slice(&key.to_bytes());
    }
    if let Some(valkey) = &parts.valkey {
        out.extend_from_slice(&valkey.seed);
        out.extend_from_slice(&valkey.tightening.to_le_bytes());
    }
    if let Some(window) = &parts.window {
        encode_window(window, &mut out);
    }
    for layer in &parts.layers {
        out.extend_from_slice(&layer.bytes.to_le_bytes());
        out.extend_from_slice(&layer.items.to_le_bytes());
        out.extend_from_slice(&layer.capacity.to_le_bytes());
        out.extend_from_slice(&layer.error_rate.to_le_bytes());
        out.extend_from_slice(&layer.hashes.to_le_bytes());
    }
    out
}

fn encode_window(window: &Window, out: &mut Vec<u8>) {
    // A window has at most 65 generations.
    let kept = u32::try_from(window.kept.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&window.span.ticks().unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&window.generations.to_le_bytes());
    out.extend_from_slice(&window.capacity.to_le_bytes());
    out.extend_from_slice(&window.error_rate.to_le_bytes());
    out.extend_from_slice(&window.dropped.to_le_bytes());
    out.extend_from_slice(&kept.to_le_bytes());
    for generation in &window.kept {
        out.extend_from_slice(&generation.layers.to_le_bytes());
        out.extend_from_slice(&generation.began.to_le_bytes());
    }
}

fn decode_window(rest: &mut &[u8]) -> Option<Window> {
    let span = Span::of_ticks(take(rest).map(u64::from_le_bytes)?);
    let generations = take(rest).map(u32::from_le_bytes)?;
    let capacity = take(rest).map(u64::from_le_bytes)?;
    let error_rate = take(rest).map(f64::from_le_bytes)?;
    let dropped = take(rest).map(u64::from_le_bytes)?;
    let count = take(rest).map(u32::from_le_bytes)?;
    let mut kept = Vec::new();
    for _ in 0..Some(count).filter(|count| *count <= MAX_GENERATIONS + 1)? {
        kept.push(Generation {
            layers: take(rest).map(u32::from_le_bytes)?,
            began: take(rest).map(u64::from_le_bytes)?,
        });
    }
    Some(Window {
        span,
        generations,
        capacity,
        error_rate,
        dropped,
        kept,
    })
}

/// Decodes a header. `header` is what follows the magic.
pub(super) fn decode(header: &[u8]) -> Option<FilterParts> {
    let mut rest = header;
    let version = take(&mut rest).map(u16::from_le_bytes)?;
    let layout = take(&mut rest).map(u16::from_le_bytes)?;
    if version != VERSION {
        return None;
    }
    let items = take(&mut rest).map(u64::from_le_bytes)?;
    let count = take(&mut rest).map(u32::from_le_bytes)?;
    let options = take(&mut rest).map(u32::from_le_bytes)?;
    let expansion = take(&mut rest).map(u32::from_le_bytes)?;
    let (mut key, mut valkey) = (None, None);
    match layout {
        BLOCKED => key = Some(take(&mut rest).map(Key::from_bytes)?),
        VALKEY => {
            valkey = Some(ValkeyBloom {
                seed: take(&mut rest)?,
                tightening: take(&mut rest).map(f64::from_le_bytes)?,
            });
        }
        _ => return None,
    }
    let window = match options & Options::WINDOW {
        0 => None,
        _ => Some(decode_window(&mut rest)?),
    };
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
        key,
        valkey,
        window,
        layers,
    })
}
