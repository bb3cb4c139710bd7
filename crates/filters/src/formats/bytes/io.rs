//! Filters written to a file or a socket and read from it, without a second copy of the bits.

use alloc::vec;
use std::io::{self, Read, Write};

use super::error::{BytesError, ReadError};
use super::filters::{fixed, fixed_parts, of_kind};
use super::head::{self, FilterType, Head};
use super::input::RECORD;
use crate::bits::pages;
use crate::bloom::fixed::BloomFilter;
use crate::bloom::layered::LayeredFilter;
use crate::bloom::scalable::ScalableBloomFilter;
use crate::bloom::window::MaybeWindow;
use crate::formats::redisbloom::FilterParts;
use crate::layer::Layer;

/// How much is read at once.
const PIECE: usize = 64 << 10;

impl ScalableBloomFilter {
    /// Writes the bytes of [`to_bytes`](Self::to_bytes) without a copy of them in memory. A
    /// writer need not be buffered: the bits of a layer are one write.
    ///
    /// ```
    /// use everbloom::ScalableBloomFilter;
    /// let mut seen = ScalableBloomFilter::builder().build()?;
    /// seen.insert("a");
    /// let mut file = Vec::new();
    /// seen.write_to(&mut file)?;
    /// assert_eq!(file, seen.to_bytes());
    /// assert_eq!(ScalableBloomFilter::read_from(&*file)?, seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// That of the writer.
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        self.0.write_to(writer)
    }

    /// Reads the filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote,
    /// and not a byte more. A reader need not be buffered.
    ///
    /// It allocates once, for the number of bits in the header. If the bytes may come from an
    /// attacker, load or map them first: [`from_bytes`](Self::from_bytes) compares the header with
    /// their length.
    ///
    /// # Errors
    ///
    /// That of the reader, or [`BytesError`]. Only [`from_bytes`](Self::from_bytes) reads bytes of
    /// versions 1 and 2.
    pub fn read_from(reader: impl Read) -> Result<Self, ReadError> {
        Ok(of_kind(LayeredFilter::read_from(reader)?)?)
    }
}

impl<W: MaybeWindow> LayeredFilter<W> {
    /// As [`ScalableBloomFilter::write_to`].
    ///
    /// # Errors
    ///
    /// That of the writer.
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        write(FilterType::Scalable, &self.parts(), self.layers(), writer)
    }
}

impl LayeredFilter {
    /// Reads a filter with or without a window, as [`ScalableBloomFilter::read_from`] does.
    ///
    /// # Errors
    ///
    /// As [`ScalableBloomFilter::read_from`].
    pub fn read_from(reader: impl Read) -> Result<Self, ReadError> {
        read(FilterType::Scalable, reader)
    }
}

impl BloomFilter {
    /// Writes the bytes of [`to_bytes`](Self::to_bytes) without a copy of them in memory. A
    /// writer need not be buffered: the bits are one write.
    ///
    /// ```
    /// use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::builder().capacity(1000).build()?;
    /// seen.insert("a");
    /// let mut file = Vec::new();
    /// seen.write_to(&mut file)?;
    /// assert_eq!(file, seen.to_bytes());
    /// assert_eq!(BloomFilter::read_from(&*file)?, seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// That of the writer.
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        let layers = core::slice::from_ref(&self.layer);
        write(FilterType::Fixed, &fixed_parts(self), layers, writer)
    }

    /// Reads the filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote,
    /// and not a byte more. A reader need not be buffered.
    ///
    /// It allocates once, for the number of bits in the header. If the bytes may come from an
    /// attacker, load or map them first: [`from_bytes`](Self::from_bytes) compares the header with
    /// their length.
    ///
    /// # Errors
    ///
    /// That of the reader, or [`BytesError`]. Only [`from_bytes`](Self::from_bytes) reads bytes of
    /// versions 1 and 2.
    pub fn read_from(reader: impl Read) -> Result<Self, ReadError> {
        Ok(fixed(read(FilterType::Fixed, reader)?)?)
    }
}

fn write(
    kind: FilterType,
    parts: &FilterParts,
    layers: &[Layer],
    mut writer: impl Write,
) -> io::Result<()> {
    writer.write_all(&head::write(kind, parts, layers))?;
    for layer in layers {
        let bits = layer.as_bytes();
        writer.write_all(&bits)?;
        writer.write_all(padding(&mut [0; RECORD], bits.len()))?;
    }
    Ok(())
}

fn read(kind: FilterType, mut reader: impl Read) -> Result<LayeredFilter, ReadError> {
    let mut fill = |place: &mut [u8]| reader.read_exact(place).map_err(ReadError::from);
    let head = Head::read(&mut fill)?;
    head.kind.expect(kind)?;
    let mut filter = head.empty_filter()?;
    let mut buffer = vec![0; PIECE];
    for (number, layer) in filter.layers.iter_mut().enumerate() {
        let bytes = layer.as_bytes_mut().len();
        for start in (0..bytes).step_by(PIECE) {
            let end = bytes.min(start + PIECE);
            let (piece, _) = buffer.split_at_mut(end - start);
            fill(piece)?;
            pages::copy(layer.place(start..end).unwrap_or_default(), piece);
        }
        let mut zeros = [0; RECORD];
        fill(padding(&mut zeros, bytes))?;
        if zeros != [0; RECORD] {
            return Err(BytesError::Reserved.into());
        }
        head.check_bits(number, layer.as_bytes_mut())?;
        layer.shrink();
    }
    Ok(filter)
}

/// The padding after this many bytes of bits.
fn padding(record: &mut [u8; RECORD], bits: usize) -> &mut [u8] {
    let len = bits.next_multiple_of(RECORD) - bits;
    record.get_mut(..len).unwrap_or_default()
}
