//! The stable bytes of a filter.
//!
//! Integers are little-endian, "f64" is an IEEE double, little-endian.
//!
//! ```text
//! offset  size  field
//!      0     8  magic: "EVRBLOOM"
//!      8     2  version: 1 = classic layout, 2 = blocked layout
//!     10     1  kind: 1 = BloomFilter, 2 = ScalableBloomFilter
//!     11     1  0
//!     12     4  options: 1 NOROUND, 2 ENTS_IS_BITS, 4 FORCE64, 8 NO_SCALING
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
//!
//! A `BloomFilter` is one layer with options 13, expansion 0, log2 0 and at least one hash. In
//! version 2 options are 5 or 13. Readers refuse every other version, so that a byte never changes
//! its meaning. The length of the whole is exact, and it is compared with the lengths inside
//! before memory is asked for.

use alloc::vec;
use alloc::vec::Vec;

use crate::dump::{Check, FilterParts, LayerParts, PartsError};
use crate::fixed::BloomFilter;
use crate::hash::{Key, murmur64a};
use crate::layer::Layer;
use crate::layout::Layout;
use crate::options::Options;
use crate::pages;
use crate::scalable::ScalableBloomFilter;

const MAGIC: [u8; 8] = *b"EVRBLOOM";
/// The version of the classic layout.
const CLASSIC: u16 = 1;
/// The version of the blocked layout.
const BLOCKED: u16 = 2;
const HEADER: usize = 32;
const KEY: usize = 16;
const CLASSIC_LAYER: usize = 48;
const BLOCKED_LAYER: usize = 40;
const CHECKSUM: usize = 8;

/// Why bytes are not a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    /// They do not start as a filter's bytes do.
    #[error("not the bytes of a filter")]
    Magic,
    /// They were written by a later version of this library.
    #[error("version {0} of the format is not known")]
    Version(u16),
    /// They are a filter of the other type: a fixed one instead of a scalable one, or the reverse.
    #[error("the bytes of a filter of another type")]
    Kind,
    /// There are fewer bytes, or more, than they say themselves.
    #[error("the length does not agree with the lengths inside")]
    Length,
    /// A byte was changed.
    #[error("wrong checksum")]
    Checksum,
    /// The parts do not make a filter.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// A byte that must be 0 is not, or a fixed filter has parts that none has.
    #[error("a field has a value that is never written")]
    Reserved,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fixed = 1,
    Scalable = 2,
}

impl ScalableBloomFilter {
    /// The filter as bytes that every later version of this library reads. [`bytes`](crate::bytes)
    /// draws them.
    ///
    /// ```
    /// use everbloom::ScalableBloomFilter;
    /// let mut seen = ScalableBloomFilter::builder().build()?;
    /// seen.insert("a");
    /// let bytes = seen.to_bytes();
    /// assert_eq!(ScalableBloomFilter::from_bytes(&bytes)?, seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        write(Kind::Scalable, &self.parts(), self.layers())
    }

    /// The filter that [`to_bytes`](Self::to_bytes) made into these bytes.
    ///
    /// # Errors
    ///
    /// [`BytesError`] says what is wrong with the bytes. No input makes this panic or ask for more
    /// memory than its own length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        read(Kind::Scalable, bytes)
    }
}

impl BloomFilter {
    /// The filter as bytes that every later version of this library reads. [`bytes`](crate::bytes)
    /// draws them.
    ///
    /// ```
    /// use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::builder().capacity(1000).build()?;
    /// seen.insert("a");
    /// let bytes = seen.to_bytes();
    /// assert_eq!(BloomFilter::from_bytes(&bytes)?, seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let layer = self.layer();
        let options = Options::modern(false).bits();
        let layers = vec![layer.parts()];
        let parts = FilterParts {
            items: layer.len(),
            options,
            expansion: 0,
            key: self.key(),
            layers,
        };
        write(Kind::Fixed, &parts, core::slice::from_ref(layer))
    }

    /// The filter that [`to_bytes`](Self::to_bytes) made into these bytes.
    ///
    /// # Errors
    ///
    /// [`BytesError`] says what is wrong with the bytes. No input makes this panic or ask for more
    /// memory than its own length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        let filter = read(Kind::Fixed, bytes)?;
        let as_written = filter.options() == Options::modern(false) && filter.expansion() == 0;
        let items = filter.len();
        let mut layers = filter.layers;
        match (layers.pop(), layers.is_empty()) {
            (Some(layer), true)
                if as_written
                    && layer.len() == items
                    && layer.size().log2_bits == 0
                    && layer.hashes() > 0 =>
            {
                Ok(BloomFilter::from_layer(layer))
            }
            _ => Err(BytesError::Reserved),
        }
    }
}

fn write(kind: Kind, parts: &FilterParts, layers: &[Layer]) -> Vec<u8> {
    let bits: usize = layers.iter().map(|layer| layer.as_bytes().len()).sum();
    let head = HEADER + KEY + CLASSIC_LAYER * layers.len();
    let mut out = Vec::with_capacity(head + bits + CHECKSUM);
    let version = match parts.layout() {
        Layout::Classic => CLASSIC,
        Layout::Blocked => BLOCKED,
    };
    out.extend(MAGIC);
    out.extend(version.to_le_bytes());
    out.extend([kind as u8, 0]);
    out.extend(parts.options.to_le_bytes());
    out.extend(parts.expansion.to_le_bytes());
    // A layer has at most half the error rate of the one before, so there are never many.
    out.extend(
        u32::try_from(layers.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes(),
    );
    out.extend(parts.items.to_le_bytes());
    if let Some(key) = parts.key {
        out.extend(key.to_bytes());
    }
    for layer in &parts.layers {
        out.extend(layer.bytes.to_le_bytes());
        out.extend(layer.items.to_le_bytes());
        out.extend(layer.capacity.to_le_bytes());
        out.extend(layer.error_rate.to_le_bytes());
        if version == CLASSIC {
            out.extend(layer.bits_per_entry.to_le_bytes());
        }
        out.extend(layer.hashes.to_le_bytes());
        out.extend([layer.log2_bits, 0, 0, 0]);
    }
    for layer in layers {
        out.extend_from_slice(&layer.as_bytes());
    }
    let checksum = murmur64a(&out, 0);
    out.extend(checksum.to_le_bytes());
    out
}

fn read(kind: Kind, bytes: &[u8]) -> Result<ScalableBloomFilter, BytesError> {
    let (parts, bits) = read_parts(kind, bytes)?;
    let limit = bits.len() as u64;
    // Layers loaded from RDB files may have counts that do not add up, and are written as they
    // are; the checksum says that this is how they were.
    parts.validate(limit, Check::RdbValue)?;
    if parts.layers.iter().map(|layer| layer.bytes).sum::<u64>() != limit {
        return Err(BytesError::Length);
    }
    let mut filter = ScalableBloomFilter::from_parts_checked(&parts, limit, Check::RdbValue)?;
    let mut rest = bits;
    for layer in &mut filter.layers {
        let place = layer.as_bytes_mut();
        let (data, more) = rest
            .split_at_checked(place.len())
            .ok_or(BytesError::Length)?;
        pages::copy(place, data);
        layer.collapse_loaded();
        rest = more;
    }
    Ok(filter)
}

/// The fields, not validated, and the bytes of the bit arrays.
fn read_parts(kind: Kind, bytes: &[u8]) -> Result<(FilterParts, &[u8]), BytesError> {
    let mut input = Input(bytes);
    if input.take().ok() != Some(MAGIC) {
        return Err(BytesError::Magic);
    }
    let version = u16::from_le_bytes(input.take()?);
    let (key_len, layer_len) = match version {
        CLASSIC => (0, CLASSIC_LAYER),
        BLOCKED => (KEY, BLOCKED_LAYER),
        _ => return Err(BytesError::Version(version)),
    };
    let (content, checksum) = bytes
        .split_last_chunk::<CHECKSUM>()
        .ok_or(BytesError::Length)?;
    let [written, zero] = input.take()?;
    let options = input.u32()?;
    let expansion = input.u32()?;
    let count = usize::try_from(input.u32()?).map_err(|_| BytesError::Length)?;
    let items = input.u64()?;
    let table = count.checked_mul(layer_len).ok_or(BytesError::Length)?;
    let bits_start = table.checked_add(HEADER + key_len);
    let bits_start = bits_start.ok_or(BytesError::Length)?;
    let bits = content.get(bits_start..).ok_or(BytesError::Length)?;
    // Before the kind and the rest, so that damage is called damage.
    if murmur64a(content, 0) != u64::from_le_bytes(*checksum) {
        return Err(BytesError::Checksum);
    }
    if written != kind as u8 {
        return Err(BytesError::Kind);
    }
    if zero != 0 {
        return Err(BytesError::Reserved);
    }
    let key = match version {
        CLASSIC => None,
        _ => Some(Key::from_bytes(input.take()?)),
    };
    let mut layers = Vec::new();
    layers
        .try_reserve_exact(count)
        .map_err(|_| PartsError::OutOfMemory)?;
    for _ in 0..count {
        layers.push(input.layer(version)?);
    }
    Ok((
        FilterParts {
            items,
            options,
            expansion,
            key,
            layers,
        },
        bits,
    ))
}

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BytesError> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(BytesError::Length)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u32(&mut self) -> Result<u32, BytesError> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BytesError> {
        self.take().map(u64::from_le_bytes)
    }

    fn f64(&mut self) -> Result<f64, BytesError> {
        self.take().map(f64::from_le_bytes)
    }

    fn layer(&mut self, version: u16) -> Result<LayerParts, BytesError> {
        let bytes = self.u64()?;
        let items = self.u64()?;
        let capacity = self.u64()?;
        let error_rate = self.f64()?;
        let bits_per_entry = match version {
            CLASSIC => self.f64()?,
            _ => bytes as f64 * 8.0 / capacity as f64,
        };
        let hashes = self.u32()?;
        let [log2_bits, zeros @ ..] = self.take::<4>()?;
        if zeros != [0; 3] {
            return Err(BytesError::Reserved);
        }
        let bits = bytes.saturating_mul(8);
        Ok(LayerParts {
            bytes,
            bits,
            items,
            error_rate,
            bits_per_entry,
            hashes,
            capacity,
            log2_bits,
        })
    }
}
