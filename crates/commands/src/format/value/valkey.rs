//! Filters of valkey-bloom: its values, which are read, and ours, which are read and written.
//!
//! ```text
//! field                        type      version 1: valkey-bloom's      version 2: ours
//! number of layers             unsigned  both
//! expansion                    unsigned  both; 0 when it does not grow
//! error rate of the first      double    both
//! tightening ratio             double    both
//! seed is random               unsigned  1 or 0                         -
//! seed                         bytes     -                              32 of them
//! options                      unsigned  -                              37; 45 if it is fixed
//! then for each layer, oldest first:
//!   bitmap, see below          bytes     here, or behind the other two  -
//!   capacity                   unsigned  all                            -
//!   items in the layer         unsigned  of the last one only           -
//!   as in the blocked layout             -                              all its fields
//! ```
//!
//! A bitmap is the byte 1, the length of the bit array (u64), the bits that an item sets (u32), the
//! seed (32 bytes) and the bit array. Numbers are little-endian. Layers before the last are full.

use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{Check, FilterParts, LayerParts, Options};

use super::bloom::{build, load_layers};
use super::fields::{FieldReader, In, NumberOrBytes, TooWide, ValueError};
use crate::format::fields::Fields;
use crate::format::take::take;

/// The version that valkey-bloom writes.
const THEIRS: u32 = 1;

/// The bytes of a bitmap before its bits.
const BITMAP_HEAD: usize = 45;

/// The fields before the layers. `first` is the error rate of the first layer.
pub(super) fn head<F: Fields>(
    fields: &mut F,
    version: u32,
    parts: &mut FilterParts,
    layers: &mut u64,
    first: &mut f64,
) -> Result<(), F::Error> {
    let valkey = parts.valkey.get_or_insert_default();
    fields.number("layers", 8, layers)?;
    fields.number("expansion", 4, &mut parts.expansion)?;
    fields.double(first)?;
    fields.double(&mut valkey.tightening)?;
    if version == THEIRS {
        // Each seed is in a bitmap. Whether it is random does not matter here.
        return fields.number("seed is random", 8, &mut { 0_u64 });
    }
    fields.bytes("seed", &mut valkey.seed)?;
    fields.number("options", 4, &mut parts.options)
}

pub(super) fn load<R: FieldReader>(
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<LayeredFilter, ValueError<R::Error>> {
    let mut fields = In(reader, TooWide::Refuse);
    let (mut parts, mut layers, mut first) = (FilterParts::default(), 0, 0.0);
    head(&mut fields, version, &mut parts, &mut layers, &mut first)?;
    if version != THEIRS {
        return load_layers(
            &mut fields,
            version,
            parts,
            layers,
            limit,
            Check::DumpHeader,
        );
    }
    let mut theirs = Theirs::new(parts, first, limit);
    for number in 1..=layers {
        let (bitmap, capacity, items) = load_theirs(fields.0, number == layers, limit)?;
        let taken = theirs.push(bitmap, capacity, items);
        taken.ok_or(ValueError::Field("bitmap"))?;
    }
    theirs.build()
}

/// The bitmap of a layer, its capacity and its items. The bitmap is first or last.
fn load_theirs<R: FieldReader>(
    reader: &mut R,
    is_last: bool,
    limit: u64,
) -> Result<(Vec<u8>, u64, u64), ValueError<R::Error>> {
    let longest = limit.saturating_add(BITMAP_HEAD as u64);
    let first = reader.number_or_bytes(longest).map_err(ValueError::Read)?;
    let capacity = match &first {
        NumberOrBytes::Number(capacity) => *capacity,
        NumberOrBytes::Bytes(_) => reader.unsigned().map_err(ValueError::Read)?,
    };
    let items = match is_last {
        true => reader.unsigned().map_err(ValueError::Read)?,
        false => capacity,
    };
    let last = match first {
        NumberOrBytes::Number(_) => reader.number_or_bytes(longest).map_err(ValueError::Read)?,
        bitmap @ NumberOrBytes::Bytes(_) => bitmap,
    };
    match last {
        NumberOrBytes::Bytes(bitmap) => Ok((bitmap, capacity, items)),
        NumberOrBytes::Number(_) => Err(ValueError::Field("bitmap")),
    }
}

/// The filter that BF.LOAD of valkey-bloom describes, as its logs have it; `None` when it describes
/// none. Its bit arrays may have `limit` bytes together.
pub fn of_load(bytes: &[u8], limit: u64) -> Option<LayeredFilter> {
    let mut rest = bytes;
    let [1] = take(&mut rest)? else { return None };
    let mut parts = FilterParts {
        expansion: take(&mut rest).map(u32::from_le_bytes)?,
        ..FilterParts::default()
    };
    let first = take(&mut rest).map(f64::from_le_bytes)?;
    let valkey = parts.valkey.get_or_insert_default();
    valkey.tightening = take(&mut rest).map(f64::from_le_bytes)?;
    let [0 | 1] = take(&mut rest)? else {
        return None;
    };
    let count = take(&mut rest).map(u64::from_le_bytes)?;
    let mut theirs = Theirs::new(parts, first, limit);
    for _ in 0..count {
        let len = take(&mut rest).map(u64::from_le_bytes)?;
        let (bytes, behind) = rest.split_at_checked(usize::try_from(len).ok()?)?;
        rest = behind;
        let mut bitmap = Vec::new();
        bitmap.try_reserve_exact(bytes.len()).ok()?;
        bitmap.extend_from_slice(bytes);
        let items = take(&mut rest).map(u64::from_le_bytes)?;
        let capacity = take(&mut rest).map(u64::from_le_bytes)?;
        theirs.push(bitmap, capacity, items)?;
    }
    theirs.build::<()>().ok()
}

/// A filter of valkey-bloom, of which layers have arrived.
struct Theirs {
    parts: FilterParts,
    /// The error rate of the first layer.
    first: f64,
    arrays: Vec<Vec<u8>>,
    limit: u64,
    /// The bytes that further bit arrays may take.
    left: u64,
}

impl Theirs {
    fn new(mut parts: FilterParts, first: f64, limit: u64) -> Theirs {
        parts.options = Options::of_valkey(parts.expansion > 0).bits();
        Theirs {
            parts,
            first,
            arrays: Vec::new(),
            limit,
            left: limit,
        }
    }

    /// Takes a layer; `None` when it is none.
    fn push(&mut self, mut bitmap: Vec<u8>, capacity: u64, items: u64) -> Option<()> {
        let mut head = bitmap.as_slice();
        let [1] = take(&mut head)? else { return None };
        let bytes = take(&mut head).map(u64::from_le_bytes)?;
        let hashes = take(&mut head).map(u32::from_le_bytes)?;
        let seed = take(&mut head)?;
        let valkey = self.parts.valkey.get_or_insert_default();
        let layers = &mut self.parts.layers;
        if layers.is_empty() {
            valkey.seed = seed;
        }
        if head.len() as u64 != bytes || valkey.seed != seed {
            return None;
        }
        self.left = self.left.checked_sub(bytes)?;
        layers.push(LayerParts {
            bytes,
            bits: bytes.checked_mul(8)?,
            items,
            error_rate: self.first * valkey.tightened(layers.len()),
            hashes,
            capacity,
            ..LayerParts::default()
        });
        bitmap.drain(..BITMAP_HEAD);
        self.arrays.push(bitmap);
        Some(())
    }

    fn build<E>(self) -> Result<LayeredFilter, ValueError<E>> {
        build(self.parts, self.arrays, self.limit, Check::DumpHeader)
    }
}
