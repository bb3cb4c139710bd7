//! Filters with windows to bytes and back: a window is a part of a filter that grows.

#[cfg(feature = "std")]
use std::io::{self, Read, Write};

use alloc::vec::Vec;

use super::error::BytesError;
#[cfg(feature = "std")]
use super::error::ReadError;
use super::filters::of_kind;
use crate::bloom::layered::LayeredFilter;
use crate::bloom::windowed::WindowedBloomFilter;

impl WindowedBloomFilter {
    /// The filter as bytes that every later version of this library reads. [`bytes`](crate::bytes)
    /// draws them.
    ///
    /// ```
    /// use everbloom::bytes::BytesError;
    /// use everbloom::{ScalableBloomFilter, Span, WindowedBloomFilter};
    /// let mut seen = WindowedBloomFilter::new(1000, 0.01, Span::Ticks(60));
    /// seen.insert_at("a", 5);
    /// let bytes = seen.to_bytes();
    /// assert_eq!(WindowedBloomFilter::from_bytes(&bytes)?, seen);
    /// # let mut file = Vec::new();
    /// # seen.write_to(&mut file)?;
    /// # assert_eq!((WindowedBloomFilter::read_from(&*file)?, file), (seen, bytes));
    ///
    /// let other = ScalableBloomFilter::new(1000, 0.01).to_bytes();
    /// assert_eq!(WindowedBloomFilter::from_bytes(&other), Err(BytesError::Kind));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// Reads the filter from bytes that [`to_bytes`](Self::to_bytes) made, in this or an earlier
    /// version of the library.
    ///
    /// # Errors
    ///
    /// [`BytesError`] says what is wrong with the bytes. No input causes a panic, or an allocation
    /// for more bits than the input has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        of_kind(LayeredFilter::from_bytes(bytes)?)
    }

    /// Writes the bytes of [`to_bytes`](Self::to_bytes) without a copy of them in memory. See
    /// [`ScalableBloomFilter::write_to`](crate::ScalableBloomFilter::write_to).
    ///
    /// # Errors
    ///
    /// That of the writer.
    #[cfg(feature = "std")]
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        self.0.write_to(writer)
    }

    /// Reads the filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote,
    /// and not a byte more. See
    /// [`ScalableBloomFilter::read_from`](crate::ScalableBloomFilter::read_from).
    ///
    /// # Errors
    ///
    /// That of the reader, or [`BytesError`].
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl Read) -> Result<Self, ReadError> {
        Ok(of_kind(LayeredFilter::read_from(reader)?)?)
    }
}
