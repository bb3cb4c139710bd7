//! The header of version 3 and its table of layers: everything except the bits.

use alloc::vec::Vec;

use super::error::BytesError;
use super::input::{Input, MAGIC, RECORD, VERSION, version};
use super::note::{NOTED, Note, check_follower};
use crate::bloom::layered::LayeredFilter;
use crate::bloom::window::{Generation, MAX_GENERATIONS, Span, Window};
use crate::formats::redisbloom::{Check, FilterParts, LayerParts, Options, PartsError};
use crate::hash::valkey::ValkeyBloom;
use crate::hash::{Key, murmur64a};
use crate::layer::Layer;
use crate::layer::layout::Layout;

/// Generations of a window in a record.
const GENERATIONS: usize = 4;
/// The bytes of a record before its checksum.
const CONTENT: usize = RECORD - size_of::<u64>();

/// The type of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilterType {
    Fixed = 1,
    Scalable = 2,
}

impl FilterType {
    pub(super) fn new(byte: u8) -> Result<FilterType, BytesError> {
        match byte {
            1 => Ok(FilterType::Fixed),
            2 => Ok(FilterType::Scalable),
            _ => Err(BytesError::Kind),
        }
    }

    /// Fails unless it is this type.
    pub(super) fn expect(self, asked: FilterType) -> Result<(), BytesError> {
        if self != asked {
            return Err(BytesError::Kind);
        }
        Ok(())
    }

    /// Fails unless a filter of this type can have these parts, which are valid.
    pub(super) fn check(self, parts: &FilterParts) -> Result<(), BytesError> {
        let fixed = || {
            parts.options == Options::modern(false).bits()
                && parts.expansion == 0
                && matches!(*parts.layers, [layer]
                    if layer.items == parts.items && layer.log2_bits == 0 && layer.hashes > 0)
        };
        if self == FilterType::Fixed && !fixed() {
            return Err(BytesError::Reserved);
        }
        Ok(())
    }
}

/// How many bytes a bit array takes with the zeros behind it.
pub(super) fn padded(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(RECORD as u64)
}

/// The header and the table of layers, read and checked.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) kind: FilterType,
    pub(super) parts: FilterParts,
    /// Those of the bit arrays.
    pub(super) checksums: Vec<u64>,
    /// Bytes of the whole, without a note.
    pub(super) len: u64,
    /// Bytes of the note in front.
    pub(super) note_len: u64,
}

impl Head {
    /// `fill` gives the next bytes.
    pub(super) fn read<E: From<BytesError>>(
        mut fill: impl FnMut(&mut [u8]) -> Result<(), E>,
    ) -> Result<Head, E> {
        let mut record = [0; RECORD];
        fill(&mut record)?;
        let mut note_len = 0;
        if version(&record)? == NOTED {
            let note = Note::read_after(&record, &mut fill)?;
            if note.is_critical() {
                return Err(BytesError::CriticalNote.into());
            }
            note_len = note.len_of_bytes();
            fill(&mut record)?;
            check_follower(&record)?;
        }
        let (mut head, count) = Head::of_header(&record)?;
        head.note_len = note_len;
        let mut next = |record: &mut [u8; RECORD]| {
            let seed = checksum_of(record);
            fill(record)?;
            verify(record, seed).map_err(E::from)
        };
        if head.parts.options & Options::WINDOW != 0 {
            next(&mut record)?;
            let (mut window, kept) = read_window(&mut Input(&record))?;
            while window.kept.len() < kept {
                next(&mut record)?;
                read_generations(&mut Input(&record), &mut window, kept)?;
            }
            head.parts.window = Some(window);
        }
        if head.parts.options & Options::VALKEY != 0 && head.parts.key.is_none() {
            next(&mut record)?;
            let mut input = Input(&record);
            head.parts.valkey = Some(ValkeyBloom {
                seed: input.take()?,
                tightening: input.f64()?,
            });
            input.zeros::<16>()?;
        }
        for _ in 0..count {
            next(&mut record)?;
            let mut input = Input(&record);
            let layer = read_layer(&mut input, VERSION, head.parts.layout())?;
            head.parts.layers.push(layer);
            head.checksums.push(input.u64()?);
        }
        head.check()?;
        Ok(head)
    }

    /// The header without layers, and how many there are.
    fn of_header(record: &[u8; RECORD]) -> Result<(Head, u32), BytesError> {
        match version(record)? {
            VERSION => {}
            old @ (1 | 2) => return Err(BytesError::Old(old)),
            other => return Err(BytesError::Version(other)),
        }
        verify(record, 0)?;
        let mut input = Input(record);
        input.take::<{ MAGIC.len() + size_of::<u16>() }>()?;
        let [kind, layout] = input.take()?;
        let kind = FilterType::new(kind)?;
        let options = input.u32()?;
        let expansion = input.u32()?;
        let count = input.u32()?;
        let items = input.u64()?;
        let key = match layout {
            0 => {
                input.zeros::<16>()?;
                None
            }
            1 => Some(Key::from_bytes(input.take()?)),
            other => return Err(BytesError::Layout(other)),
        };
        let head = Head {
            kind,
            parts: FilterParts {
                items,
                options,
                expansion,
                key,
                ..FilterParts::default()
            },
            checksums: Vec::new(),
            len: input.u64()?,
            note_len: 0,
        };
        Ok((head, count))
    }

    fn check(&self) -> Result<(), BytesError> {
        // Layers loaded from RDB files may have counts that do not add up, and are written as they
        // are; the checksum says that this is how they were.
        self.parts.validate(self.len, Check::RdbValue)?;
        self.kind.check(&self.parts)?;
        let layers = &self.parts.layers;
        let bits = layers
            .iter()
            .try_fold(0_u64, |sum, layer| sum.checked_add(padded(layer.bytes)?));
        let head = len_of_head(&self.parts) as u64;
        let too_large = PartsError::TooLarge { limit: self.len };
        let expected = bits.and_then(|bits| bits.checked_add(head));
        let (expected, found) = (expected.ok_or(too_large)?, self.len);
        if expected != found {
            return Err(BytesError::Length { expected, found });
        }
        Ok(())
    }

    /// The filter, all its bits 0.
    pub(super) fn empty_filter(&self) -> Result<LayeredFilter, BytesError> {
        let made = LayeredFilter::from_parts_checked(&self.parts, self.len, Check::RdbValue);
        made.map_err(BytesError::from)
    }

    /// Fails unless these are the bits of a layer.
    pub(super) fn check_bits(&self, layer: usize, bits: &[u8]) -> Result<(), BytesError> {
        if self.checksums.get(layer) != Some(&murmur64a(bits, 0)) {
            return Err(BytesError::BitsChecksum { layer });
        }
        Ok(())
    }
}

/// Checks the checksum that ends a record.
pub(super) fn verify(record: &[u8; RECORD], seed: u64) -> Result<(), BytesError> {
    let (content, _) = record.split_at(CONTENT);
    if checksum_of(record) != murmur64a(content, seed) {
        return Err(BytesError::HeaderChecksum);
    }
    Ok(())
}

/// Bytes before the bits of the first layer.
fn len_of_head(parts: &FilterParts) -> usize {
    let window = parts.window.as_ref();
    let window = window.map_or(0, |window| 1 + window.kept.len().div_ceil(GENERATIONS));
    RECORD * (1 + window + usize::from(parts.valkey.is_some()) + parts.layers.len())
}

/// The window without its generations, and how many these are.
fn read_window(input: &mut Input<'_>) -> Result<(Window, usize), BytesError> {
    let mut window = Window {
        span: Span::of_ticks(input.u64()?),
        capacity: input.u64()?,
        error_rate: input.f64()?,
        generations: input.u32()?,
        dropped: 0,
        kept: Vec::new(),
    };
    let kept = input.u32()?;
    window.dropped = input.u64()?;
    input.zeros::<16>()?;
    if kept > MAX_GENERATIONS + 1 {
        return Err(PartsError::Window.into());
    }
    Ok((window, kept as usize))
}

/// The next generations, until there are as many as `kept`.
fn read_generations(
    input: &mut Input<'_>,
    window: &mut Window,
    kept: usize,
) -> Result<(), BytesError> {
    for _ in 0..GENERATIONS {
        match (input.u64()?, input.u32()?) {
            (began, layers) if window.kept.len() < kept => {
                window.kept.push(Generation { layers, began });
            }
            (0, 0) => {}
            _ => return Err(BytesError::Reserved),
        }
    }
    input.zeros::<8>()
}

/// A layer of the table of any version.
pub(super) fn read_layer(
    input: &mut Input<'_>,
    version: u16,
    layout: Layout,
) -> Result<LayerParts, BytesError> {
    let bytes = input.u64()?;
    let items = input.u64()?;
    let capacity = input.u64()?;
    let error_rate = input.f64()?;
    let bits_per_entry = match layout {
        Layout::Classic => input.f64()?,
        Layout::Blocked => {
            if version == VERSION {
                input.zeros::<8>()?;
            }
            bytes as f64 * 8.0 / capacity as f64
        }
    };
    let hashes = input.u32()?;
    let [log2_bits] = input.take()?;
    input.zeros::<3>()?;
    Ok(LayerParts {
        bytes,
        bits: bytes.saturating_mul(8),
        items,
        error_rate,
        bits_per_entry,
        hashes,
        capacity,
        log2_bits,
    })
}

/// The checksum that ends a record.
pub(super) fn checksum_of(record: &[u8; RECORD]) -> u64 {
    record
        .last_chunk()
        .map_or(0, |checksum| u64::from_le_bytes(*checksum))
}

/// The header and the table of layers of a filter.
pub(super) fn write(kind: FilterType, parts: &FilterParts, layers: &[Layer]) -> Vec<u8> {
    let head = len_of_head(parts);
    let bits = layers
        .iter()
        .filter_map(|layer| padded(layer.bytes()))
        .sum::<u64>();
    // A filter of an RDB file may have option bits without a meaning. Two of them announce a record
    // here, which it does not have.
    let mut options = parts.options;
    if parts.window.is_none() {
        options &= !Options::WINDOW;
    }
    if parts.valkey.is_none() {
        options &= !Options::VALKEY;
    }
    let mut out = Vec::with_capacity(head);
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend([kind as u8, u8::from(parts.key.is_some())]);
    out.extend(options.to_le_bytes());
    out.extend(parts.expansion.to_le_bytes());
    // A layer has at most half the error rate of the one before, so there are never many.
    let count = u32::try_from(layers.len()).unwrap_or(u32::MAX);
    out.extend(count.to_le_bytes());
    out.extend(parts.items.to_le_bytes());
    out.extend(parts.key.map_or([0; 16], Key::to_bytes));
    out.extend((head as u64 + bits).to_le_bytes());
    let mut seed = end_record(&mut out, 0);
    if let Some(window) = &parts.window {
        seed = push_window(window, &mut out, seed);
    }
    if let Some(valkey) = &parts.valkey {
        out.extend(valkey.seed);
        out.extend(valkey.tightening.to_le_bytes());
        seed = end_record(&mut out, seed);
    }
    for (part, layer) in parts.layers.iter().zip(layers) {
        let bits_per_entry = match parts.layout() {
            Layout::Classic => part.bits_per_entry,
            Layout::Blocked => 0.0,
        };
        out.extend(part.bytes.to_le_bytes());
        out.extend(part.items.to_le_bytes());
        out.extend(part.capacity.to_le_bytes());
        out.extend(part.error_rate.to_le_bytes());
        out.extend(bits_per_entry.to_le_bytes());
        out.extend(part.hashes.to_le_bytes());
        out.extend([part.log2_bits, 0, 0, 0]);
        out.extend(murmur64a(&layer.as_bytes(), 0).to_le_bytes());
        seed = end_record(&mut out, seed);
    }
    out
}

/// Appends the records of a window, and returns the last checksum.
fn push_window(window: &Window, out: &mut Vec<u8>, seed: u64) -> u64 {
    // A window has at most 65 generations.
    let kept = u32::try_from(window.kept.len()).unwrap_or(u32::MAX);
    out.extend(window.span.ticks().unwrap_or(0).to_le_bytes());
    out.extend(window.capacity.to_le_bytes());
    out.extend(window.error_rate.to_le_bytes());
    out.extend(window.generations.to_le_bytes());
    out.extend(kept.to_le_bytes());
    out.extend(window.dropped.to_le_bytes());
    let mut seed = end_record(out, seed);
    for generations in window.kept.chunks(GENERATIONS) {
        for generation in generations {
            out.extend(generation.began.to_le_bytes());
            out.extend(generation.layers.to_le_bytes());
        }
        seed = end_record(out, seed);
    }
    seed
}

/// Ends a record with zeros and its checksum, and returns that.
pub(super) fn end_record(out: &mut Vec<u8>, seed: u64) -> u64 {
    out.resize(out.len().next_multiple_of(RECORD) - size_of::<u64>(), 0);
    let content: &[u8; CONTENT] = out.last_chunk().unwrap_or(&[0; CONTENT]);
    let checksum = murmur64a(content, seed);
    out.extend(checksum.to_le_bytes());
    checksum
}
