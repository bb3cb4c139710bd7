//! Cuckoo filters to bytes and back.

use alloc::vec::Vec;

use super::error::BytesError;
use super::head::{checksum_of, end_record, padded, verify};
use super::input::{Input, MAGIC, RECORD, VERSION, version};
use super::note::Note;
use crate::cuckoo::CuckooFilter;
use crate::cuckoo::keyed::KeyedParts;
use crate::cuckoo::parts::CuckooParts;
use crate::hash::{Key, murmur64a};

/// The kind of RedisBloom's filters in the header, beside those of Bloom filters.
const PLAIN: u8 = 3;

/// The kind of filters with a chosen error rate, which have one more record.
const KEYED: u8 = 4;

impl CuckooFilter {
    /// The filter as bytes that every later version of this library reads. [`bytes`](crate::bytes)
    /// draws them.
    ///
    /// ```
    /// use everbloom::bytes::BytesError;
    /// use everbloom::CuckooFilter;
    /// let mut absent = CuckooFilter::new(1000);
    /// absent.insert("a")?;
    /// let mut bytes = absent.to_bytes();
    /// assert_eq!(CuckooFilter::from_bytes(&bytes)?, absent);
    /// bytes[30] ^= 1;
    /// assert_eq!(CuckooFilter::from_bytes(&bytes), Err(BytesError::HeaderChecksum));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let parts = self.parts();
        let slots = self.tables.iter().map(|table| &*table.slots);
        let lengths = slots
            .clone()
            .map(|slots| slots.len().next_multiple_of(RECORD));
        let records = 1 + usize::from(parts.keyed.is_some()) + self.tables.len();
        let len = RECORD * records + lengths.sum::<usize>();
        let mut out = Vec::with_capacity(len);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend([kind_of(&parts), parts.bucket_size]);
        out.extend(parts.max_kicks.to_le_bytes());
        out.extend(parts.expansion.to_le_bytes());
        out.extend(parts.tables.to_le_bytes());
        out.extend([0; 6]);
        out.extend(parts.items.to_le_bytes());
        out.extend(parts.removed.to_le_bytes());
        out.extend(parts.buckets.to_le_bytes());
        out.extend((len as u64).to_le_bytes());
        let mut seed = end_record(&mut out, 0);
        if let Some(keyed) = &parts.keyed {
            out.extend(keyed.key.to_bytes());
            out.extend(keyed.error_rate.to_le_bytes());
            out.extend([keyed.width, keyed.step]);
            seed = end_record(&mut out, seed);
        }
        for slots in slots.clone() {
            out.extend(murmur64a(slots, 0).to_le_bytes());
            seed = end_record(&mut out, seed);
        }
        for slots in slots {
            out.extend(slots);
            out.resize(out.len().next_multiple_of(RECORD), 0);
        }
        out
    }

    /// Reads the filter from bytes that [`to_bytes`](Self::to_bytes) made, in this or an earlier
    /// version of the library.
    ///
    /// # Errors
    ///
    /// [`BytesError`] says what is wrong with the bytes. No input causes a panic, or an allocation
    /// for more slots than the input has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        let (note, bytes) = Note::split(bytes)?;
        if note.is_some_and(|note| note.is_critical()) {
            return Err(BytesError::CriticalNote);
        }
        match version(bytes)? {
            VERSION => {}
            1 | 2 => return Err(BytesError::Kind),
            other => return Err(BytesError::Version(other)),
        }
        let mut input = Input(bytes);
        let header = input.take()?;
        let (kind, mut parts, len) = parts_of(&header)?;
        let mut seed = checksum_of(&header);
        if kind == KEYED {
            let record = input.take()?;
            verify(&record, seed)?;
            seed = checksum_of(&record);
            parts.keyed = Some(keyed_of(&record)?);
        }
        let found = bytes.len() as u64;
        parts.validate(found)?;
        let expected = len_of(&parts).ok_or(BytesError::Truncated)?;
        for found in [len, found] {
            if expected != found {
                return Err(BytesError::Length { expected, found });
            }
        }
        let mut checksums = Vec::new();
        for _ in 0..parts.tables {
            let record = input.take()?;
            verify(&record, seed)?;
            seed = checksum_of(&record);
            let mut fields = Input(&record);
            checksums.push(fields.u64()?);
            fields.zeros::<48>()?;
        }
        let mut tables = Vec::new();
        for (number, checksum) in (0..parts.tables).zip(checksums) {
            let (_, bytes) = parts.table(number).ok_or(BytesError::Truncated)?;
            let slots = usize::try_from(bytes).map_err(|_| BytesError::Truncated)?;
            let (slots, padding) = (input.slice(slots)?, slots.next_multiple_of(RECORD) - slots);
            if murmur64a(slots, 0) != checksum {
                let layer = number.into();
                return Err(BytesError::BitsChecksum { layer });
            }
            if input.slice(padding)?.iter().any(|byte| *byte != 0) {
                return Err(BytesError::Reserved);
            }
            tables.push(slots.to_vec());
        }
        Ok(CuckooFilter::from_parts_and_slots(&parts, tables, found)?)
    }
}

/// The kind and the fields of the header, and the length that it names.
fn parts_of(header: &[u8; RECORD]) -> Result<(u8, CuckooParts, u64), BytesError> {
    verify(header, 0)?;
    let mut input = Input(header);
    input.take::<{ MAGIC.len() + size_of::<u16>() }>()?;
    let [kind, bucket_size] = input.take()?;
    if ![PLAIN, KEYED].contains(&kind) {
        return Err(BytesError::Kind);
    }
    let [max_kicks, expansion, tables] = [input.u16()?, input.u16()?, input.u16()?];
    input.zeros::<6>()?;
    let parts = CuckooParts {
        items: input.u64()?,
        removed: input.u64()?,
        buckets: input.u64()?,
        tables,
        bucket_size,
        max_kicks,
        expansion,
        keyed: None,
    };
    Ok((kind, parts, input.u64()?))
}

/// The record of a filter with a chosen error rate.
fn keyed_of(record: &[u8; RECORD]) -> Result<KeyedParts, BytesError> {
    let mut input = Input(record);
    let (key, error_rate) = (Key::from_bytes(input.take()?), input.f64()?);
    let [width, step] = input.take()?;
    input.zeros::<30>()?;
    Ok(KeyedParts {
        key,
        error_rate,
        width,
        step,
    })
}

fn kind_of(parts: &CuckooParts) -> u8 {
    if parts.keyed.is_some() { KEYED } else { PLAIN }
}

/// The bytes of a filter of these parts, if they are countable.
fn len_of(parts: &CuckooParts) -> Option<u64> {
    let records = 1 + u64::from(parts.keyed.is_some()) + u64::from(parts.tables);
    let head = records * RECORD as u64;
    (0..parts.tables).try_fold(head, |sum, number| {
        let (_, bytes) = parts.table(number)?;
        sum.checked_add(padded(bytes)?)
    })
}
