//! Values of Bloom filters. RedisBloom's have their fields in RedisBloom's order:
//!
//! ```text
//! field                              type      versions
//! items in the filter                unsigned  all
//! number of layers                   unsigned  all
//! options                            unsigned  from 2 on; before: 0
//! expansion                          unsigned  from 4 on; before: 2
//! then for each layer, oldest first:
//!   capacity                         unsigned  all
//!   error rate                       double    all
//!   hashes                           unsigned  all
//!   bits per item                    double    all
//!   bits                             unsigned  from 1 on; before: floor(capacity * bits per item)
//!   n2, logarithm of the modulus     unsigned  from 1 on; before: 0
//!   bit array                        bytes     all; bits / 8 of them
//!   items in the layer               unsigned  all
//! ```
//!
//! Version 4 is written, 0 to 4 are read. As in RedisBloom, a field too wide for its place is cut,
//! and neither the sum of the items nor unknown option bits are checked.
//!
//! Values of the blocked layout:
//!
//! ```text
//! field                        type      what it must be
//! items in the filter          unsigned  the sum of the layers' items
//! number of layers             unsigned  at least 1
//! options                      unsigned  5; 8 more when the filter does not grow, 16 with a window
//! expansion                    unsigned  below 2^32
//! key of the hash              bytes     16 of them
//! then, with a window:
//!   milliseconds of the window unsigned  0 for a window of items
//!   generations of a span      unsigned  1 to 64
//!   capacity of the window     unsigned  at least 1
//!   error rate of the window   double    between 0 and 1
//!   bytes dropped so far       unsigned
//!   generations kept           unsigned  1 to 1 more than those of a span
//!   then for each, oldest first:
//!     layers of the generation unsigned  their sum is the number of layers
//!     when it began            unsigned  Unix milliseconds, or how many items came before
//! then for each layer, oldest first:
//!   capacity                   unsigned  at least 1
//!   error rate                 double    between 0 and 1
//!   hashes                     unsigned  2 to 32
//!   bytes of the bit array     unsigned  a multiple of 64, not 0
//!   bit array                  bytes     as many as that says
//!   items in the layer         unsigned
//! ```
//!
//! This is version 1. Nobody else writes this type, so the checks are strict.

use everbloom::Layout;
use everbloom::hash::Key;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{Check, FilterParts, LayerParts, PartsError};

use super::fields::{FieldReader, In, TooWide, ValueError};
use crate::format::fields::{Fields, HEAD_VERSION, head};

/// Every value had this expansion before values had theirs.
const OLD_EXPANSION: u32 = 2;

pub(super) fn load<R: FieldReader>(
    layout: Layout,
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<LayeredFilter, ValueError<R::Error>> {
    let mut parts = FilterParts::default();
    let (mut fields, version, check) = match layout {
        Layout::Classic => {
            parts.expansion = OLD_EXPANSION;
            (In(reader, TooWide::Cut), version, Check::RdbValue)
        }
        Layout::Blocked => {
            parts.key = Some(Key::from_bytes([0; 16]));
            let fields = In(reader, TooWide::Refuse);
            (fields, HEAD_VERSION, Check::DumpHeader)
        }
    };
    let mut layers = 0;
    head(&mut fields, version, &mut parts, &mut layers)?;
    if parts
        .window
        .as_ref()
        .is_some_and(|window| window.kept.is_empty())
    {
        return Err(PartsError::Window.into());
    }
    load_layers(&mut fields, version, parts, layers, limit, check)
}

/// Reads the layers behind a head. Takes memory only for layers that have arrived, and for bit
/// arrays of at most `limit` bytes together.
pub(super) fn load_layers<R: FieldReader>(
    fields: &mut In<'_, R>,
    version: u32,
    mut parts: FilterParts,
    layers: u64,
    limit: u64,
    check: Check,
) -> Result<LayeredFilter, ValueError<R::Error>> {
    let (mut arrays, mut left) = (Vec::new(), limit);
    for _ in 0..layers {
        let (mut layer, number) = (LayerParts::default(), parts.layers.len());
        layer_head(fields, version, &parts, &mut layer)?;
        match (parts.key, parts.valkey) {
            (Some(_), _) => layer.validate_blocked(number)?,
            (None, None) => layer.validate(number)?,
            (None, Some(_)) => {}
        }
        let room = left.checked_sub(layer.bytes);
        left = room.ok_or(PartsError::TooLarge { limit })?;
        arrays.push(fields.array(number, layer.bytes)?);
        fields.number("items", 8, &mut layer.items)?;
        parts.layers.push(layer);
    }
    build(parts, arrays, limit, check)
}

pub(super) fn build<E>(
    mut parts: FilterParts,
    arrays: Vec<Vec<u8>>,
    limit: u64,
    check: Check,
) -> Result<LayeredFilter, ValueError<E>> {
    if parts.valkey.is_some() {
        let items = parts.layers.iter().map(|layer| layer.items);
        parts.items = items.fold(0, u64::saturating_add);
    }
    let filter = LayeredFilter::from_parts_and_bits(&parts, arrays, limit, check);
    Ok(filter?)
}

/// The fields of a layer before its bit array.
pub(super) fn layer_head<F: Fields>(
    fields: &mut F,
    version: u32,
    of: &FilterParts,
    layer: &mut LayerParts,
) -> Result<(), F::Error> {
    fields.number("capacity", 8, &mut layer.capacity)?;
    fields.double(&mut layer.error_rate)?;
    fields.number("hashes", 4, &mut layer.hashes)?;
    if of.key.is_some() || of.valkey.is_some() {
        fields.number("bytes", 8, &mut layer.bytes)?;
        // The check of the parts refuses a number that is too large for a bit count.
        layer.bits = layer.bytes.wrapping_mul(8);
        return Ok(());
    }
    fields.double(&mut layer.bits_per_entry)?;
    if version >= 1 {
        fields.number("bits", 8, &mut layer.bits)?;
        fields.number("n2", 1, &mut layer.log2_bits)?;
    } else {
        layer.bits = bits_of_version_0(layer.capacity, layer.bits_per_entry);
    }
    // The check of the parts refuses a bit count that is not a multiple of 8.
    layer.bytes = layer.bits / 8;
    Ok(())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and what is no number becomes 0, which no layer may have"
)]
fn bits_of_version_0(capacity: u64, bits_per_entry: f64) -> u64 {
    (capacity as f64 * bits_per_entry) as u64
}
