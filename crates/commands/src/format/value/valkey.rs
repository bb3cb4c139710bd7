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

use everbloom::ScalableBloomFilter;
use everbloom::redisbloom::{Check, FilterParts, LayerParts, Options, ValkeyBloom};

use super::arrived::Arrived;
use super::blocked::load_layer_head;
use super::fields::{FieldReader, FieldWriter, NumberOrBytes, ValueError, ValueType, narrow};
use crate::format::take::take;

/// The type.
pub const TYPE: ValueType = ValueType {
    name: "bloomfltr",
    version: 2,
};

/// The version that valkey-bloom writes.
const THEIRS: u32 = 1;

/// The bytes of a bitmap before its bits.
const BITMAP_HEAD: usize = 45;

pub(super) fn save_head<W: FieldWriter>(
    parts: &FilterParts,
    valkey: &ValkeyBloom,
    writer: &mut W,
) -> Result<(), W::Error> {
    writer.unsigned(parts.layers.len() as u64)?;
    writer.unsigned(parts.expansion.into())?;
    let first = parts.layers.first();
    writer.double(first.map_or(0.0, |layer| layer.error_rate))?;
    writer.double(valkey.tightening)?;
    writer.bytes(&valkey.seed)?;
    writer.unsigned(parts.options.into())
}

pub(super) fn load<R: FieldReader>(
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<ScalableBloomFilter, ValueError<R::Error>> {
    if ![THEIRS, TYPE.version].contains(&version) {
        return Err(ValueError::Version {
            type_name: TYPE.name,
            version,
        });
    }
    let count = reader.unsigned().map_err(ValueError::Read)?;
    let expansion = narrow(reader, "expansion")?;
    let error_rate = reader.double().map_err(ValueError::Read)?;
    let tightening = reader.double().map_err(ValueError::Read)?;
    if version == THEIRS {
        let mut theirs = Theirs::new(expansion, error_rate, tightening, limit);
        // Each seed is in a bitmap. Whether it is random does not matter here.
        reader.unsigned().map_err(ValueError::Read)?;
        for number in 1..=count {
            let (bitmap, capacity, items) = load_theirs(reader, number == count, limit)?;
            let taken = theirs.push(bitmap, capacity, items);
            taken.ok_or(ValueError::Field("bitmap"))?;
        }
        return theirs.build();
    }
    let seed = reader.bytes(32).map_err(ValueError::Read)?;
    let seed = seed.try_into().map_err(|_| ValueError::Field("seed"))?;
    let options = narrow(reader, "options")?;
    let mut arrived = Arrived::new(limit);
    for _ in 0..count {
        arrived.push(load_layer_head(reader)?, reader)?;
    }
    let valkey = ValkeyBloom { seed, tightening };
    build(
        valkey,
        options,
        expansion,
        arrived.layers,
        arrived.arrays,
        limit,
    )
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
pub fn of_load(bytes: &[u8], limit: u64) -> Option<ScalableBloomFilter> {
    let mut rest = bytes;
    let [1] = take(&mut rest)? else { return None };
    let expansion = take(&mut rest).map(u32::from_le_bytes)?;
    let error_rate = take(&mut rest).map(f64::from_le_bytes)?;
    let tightening = take(&mut rest).map(f64::from_le_bytes)?;
    let [0 | 1] = take(&mut rest)? else {
        return None;
    };
    let count = take(&mut rest).map(u64::from_le_bytes)?;
    let mut theirs = Theirs::new(expansion, error_rate, tightening, limit);
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

/// The layers of valkey-bloom that have arrived.
struct Theirs {
    expansion: u32,
    error_rate: f64,
    tightening: f64,
    seed: Option<[u8; 32]>,
    layers: Vec<LayerParts>,
    arrays: Vec<Vec<u8>>,
    limit: u64,
    /// The bytes that further bit arrays may take.
    left: u64,
}

impl Theirs {
    fn new(expansion: u32, error_rate: f64, tightening: f64, limit: u64) -> Theirs {
        Theirs {
            expansion,
            error_rate,
            tightening,
            seed: None,
            layers: Vec::new(),
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
        if head.len() as u64 != bytes || *self.seed.get_or_insert(seed) != seed {
            return None;
        }
        let tightening = self.tightening;
        let valkey = ValkeyBloom { seed, tightening };
        self.left = self.left.checked_sub(bytes)?;
        self.layers.push(LayerParts {
            bytes,
            bits: bytes.checked_mul(8)?,
            items,
            error_rate: self.error_rate * valkey.tightened(self.layers.len()),
            bits_per_entry: 0.0,
            hashes,
            capacity,
            log2_bits: 0,
        });
        bitmap.drain(..BITMAP_HEAD);
        self.arrays.push(bitmap);
        Some(())
    }

    fn build<E>(self) -> Result<ScalableBloomFilter, ValueError<E>> {
        let seed = self.seed.ok_or(ValueError::Field("number of layers"))?;
        let tightening = self.tightening;
        let options = Options::of_valkey(self.expansion > 0).bits();
        let valkey = ValkeyBloom { seed, tightening };
        build(
            valkey,
            options,
            self.expansion,
            self.layers,
            self.arrays,
            self.limit,
        )
    }
}

fn build<E>(
    valkey: ValkeyBloom,
    options: u32,
    expansion: u32,
    layers: Vec<LayerParts>,
    arrays: Vec<Vec<u8>>,
    limit: u64,
) -> Result<ScalableBloomFilter, ValueError<E>> {
    let items = layers.iter().map(|layer| layer.items);
    let parts = FilterParts {
        items: items.fold(0, u64::saturating_add),
        options,
        expansion,
        key: None,
        valkey: Some(valkey),
        window: None,
        layers,
    };
    let check = Check::DumpHeader;
    Ok(ScalableBloomFilter::from_parts_and_bits(
        &parts, arrays, limit, check,
    )?)
}
