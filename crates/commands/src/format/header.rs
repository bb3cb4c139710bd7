//! The header of a SCANDUMP stream: RedisBloom's, and ours for filters that RedisBloom lacks.
//!
//! This file knows where each number lies. [`LayeredFilter::from_parts`] decides whether the
//! numbers describe a filter. All are little-endian and packed. RedisBloom's header has 20 bytes,
//! and 53 more for each layer, oldest layer first:
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
//!
//! The header of filters in the blocked layout, and of those of valkey-bloom, has 52 bytes, and 36
//! more for each layer:
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
//!
//! Cuckoo filters have [other headers](cuckoo), of which ours has the number 3 in the place of the
//! layout.
//!
//! A header of ours is never taken for one of RedisBloom's. Where the classic header has its layer
//! count, ours has bytes that mean 436 million, so the header would have to be 23 GB long.

pub mod cuckoo;

use everbloom::hash::Key;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{FilterParts, LayerParts, Options, ValkeyBloom};

use super::fields::{Fields, HEAD_VERSION, head, without_layers};

/// The first bytes of every header of ours. RedisBloom's headers never start with them.
const MAGIC: [u8; 12] = *b"everbloom\r\n\x1a";
/// Version 1 and the number of the layout, 16 bits each: the blocked one, valkey-bloom's, and that
/// of cuckoo filters with a chosen error rate.
const BLOCKED: [u8; 4] = [1, 0, 1, 0];
const VALKEY: [u8; 4] = [1, 0, 2, 0];
const KEYED_CUCKOO: [u8; 4] = [1, 0, 3, 0];

/// The bytes of a layer in a header of RedisBloom's, and in one of ours.
const CLASSIC_LAYER_BYTES: usize = 53;
const OUR_LAYER_BYTES: usize = 36;

/// The header of a filter, which [`decode`] and the check of a header take. A filter that came as a
/// value of RedisBloom may have counts that do not add up, and options that nobody knows. Its header
/// has the sum of the layers' counts, and the options that are known.
pub fn encode(filter: &LayeredFilter) -> Vec<u8> {
    let mut parts = filter.parts();
    if parts.key.is_none() && parts.valkey.is_none() {
        parts.options &= Options::KNOWN;
        parts.items = 0;
        for layer in &mut parts.layers {
            layer.items = layer.items.min(u64::MAX - parts.items);
            parts.items += layer.items;
        }
    }
    encode_parts(&parts)
}

/// The header of a filter given as parts.
pub fn encode_parts(parts: &FilterParts) -> Vec<u8> {
    let layout = match (parts.key, parts.valkey) {
        (None, None) => None,
        (_, Some(_)) => Some(VALKEY),
        (Some(_), None) => Some(BLOCKED),
    };
    let mut out = Vec::with_capacity(52 + parts.layers.len() * CLASSIC_LAYER_BYTES);
    if let Some(layout) = layout {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&layout);
    }
    let mut layers = parts.layers.len() as u64;
    let Ok(()) = head(
        &mut out,
        HEAD_VERSION,
        &mut without_layers(parts),
        &mut layers,
    );
    for mut each in parts.layers.iter().copied() {
        let Ok(()) = match layout {
            None => classic_layer(&mut out, &mut each),
            Some(_) => our_layer(&mut out, &mut each),
        };
    }
    out
}

/// The parts that a header describes. `None` when its length does not match its layer count, or
/// when its version or layout is not known.
pub fn decode(header: &[u8]) -> Option<FilterParts> {
    let mut parts = FilterParts::default();
    let mut rest = header;
    let mut layer_bytes = CLASSIC_LAYER_BYTES;
    if let Some(behind) = header.strip_prefix(&MAGIC) {
        let (known, behind) = behind.split_first_chunk::<4>()?;
        match *known {
            BLOCKED => parts.key = Some(Key::from_bytes([0; 16])),
            VALKEY => parts.valkey = Some(ValkeyBloom::default()),
            _ => return None,
        }
        (rest, layer_bytes) = (behind, OUR_LAYER_BYTES);
    }
    let mut layers = 0;
    head(&mut rest, HEAD_VERSION, &mut parts, &mut layers).ok()?;
    // Check that all claimed layers are there before anything is allocated.
    let layers = usize::try_from(layers).ok()?;
    if layers.checked_mul(layer_bytes)? != rest.len() {
        return None;
    }
    parts.layers.resize(layers, LayerParts::default());
    for each in &mut parts.layers {
        if layer_bytes == CLASSIC_LAYER_BYTES {
            classic_layer(&mut rest, each).ok()?;
        } else {
            our_layer(&mut rest, each).ok()?;
            each.bits = each.bytes.checked_mul(8)?;
        }
    }
    Some(parts)
}

fn classic_layer<F: Fields>(fields: &mut F, layer: &mut LayerParts) -> Result<(), F::Error> {
    fields.number("bytes", 8, &mut layer.bytes)?;
    fields.number("bits", 8, &mut layer.bits)?;
    fields.number("items", 8, &mut layer.items)?;
    fields.double(&mut layer.error_rate)?;
    fields.double(&mut layer.bits_per_entry)?;
    fields.number("hashes", 4, &mut layer.hashes)?;
    fields.number("capacity", 8, &mut layer.capacity)?;
    fields.number("n2", 1, &mut layer.log2_bits)
}

fn our_layer<F: Fields>(fields: &mut F, layer: &mut LayerParts) -> Result<(), F::Error> {
    fields.number("bytes", 8, &mut layer.bytes)?;
    fields.number("items", 8, &mut layer.items)?;
    fields.number("capacity", 8, &mut layer.capacity)?;
    fields.double(&mut layer.error_rate)?;
    fields.number("hashes", 4, &mut layer.hashes)
}
