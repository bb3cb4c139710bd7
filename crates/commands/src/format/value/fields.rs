//! The fields of a value, as a host writes and reads them.

use everbloom::redisbloom::CuckooError;
use everbloom::redisbloom::PartsError;
use thiserror::Error;

use crate::format::fields::{Fields, Name, Number};

/// A type of values in RDB files and in the hosts of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueType {
    /// The name that TYPE answers. A module type's name has nine characters.
    pub name: &'static str,
    /// The version that is written. It is also the newest that is read.
    pub version: u32,
}

/// The host's writer of fields.
pub trait FieldWriter {
    /// Why a field could not be written.
    type Error;

    /// Writes an unsigned number.
    ///
    /// # Errors
    ///
    /// The host's.
    fn unsigned(&mut self, value: u64) -> Result<(), Self::Error>;

    /// Writes a floating-point number.
    ///
    /// # Errors
    ///
    /// The host's.
    fn double(&mut self, value: f64) -> Result<(), Self::Error>;

    /// Writes a string of bytes, which may be very long.
    ///
    /// # Errors
    ///
    /// The host's.
    fn bytes(&mut self, value: &[u8]) -> Result<(), Self::Error>;
}

/// The host's reader of fields.
pub trait FieldReader {
    /// Why a field could not be read.
    type Error;

    /// Reads an unsigned number.
    ///
    /// # Errors
    ///
    /// The next field has another type, or there is no next field.
    fn unsigned(&mut self) -> Result<u64, Self::Error>;

    /// Reads a floating-point number.
    ///
    /// # Errors
    ///
    /// The next field has another type, or there is no next field.
    fn double(&mut self) -> Result<f64, Self::Error>;

    /// Reads a string of bytes, which should be `expected` bytes long. A reader may refuse another
    /// length. It must not take more memory than the bytes that have arrived, and should leave no
    /// spare capacity.
    ///
    /// # Errors
    ///
    /// The next field has another type, or there is no next field.
    fn bytes(&mut self, expected: u64) -> Result<Vec<u8>, Self::Error>;

    /// Reads a number or at most `limit` bytes, whichever is next. A reader that cannot see what is
    /// next reads bytes.
    ///
    /// # Errors
    ///
    /// The next field has another type, or there is no next field.
    fn number_or_bytes(&mut self, limit: u64) -> Result<NumberOrBytes, Self::Error> {
        self.bytes(limit).map(NumberOrBytes::Bytes)
    }
}

/// A field of one of two types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberOrBytes {
    /// An unsigned number.
    Number(u64),
    /// A string of bytes.
    Bytes(Vec<u8>),
}

/// Writes the fields of a value.
pub(super) struct Out<'w, W>(pub(super) &'w mut W);

impl<W: FieldWriter> Fields for Out<'_, W> {
    type Error = W::Error;

    fn number<N: Number>(&mut self, _: Name, _: usize, it: &mut N) -> Result<(), W::Error> {
        self.0.unsigned((*it).into())
    }

    fn double(&mut self, number: &mut f64) -> Result<(), W::Error> {
        self.0.double(*number)
    }

    fn bytes<const N: usize>(&mut self, _: Name, bytes: &mut [u8; N]) -> Result<(), W::Error> {
        self.0.bytes(bytes)
    }
}

/// The fields of a value on their way in.
pub(super) struct In<'r, R>(pub(super) &'r mut R, pub(super) TooWide);

/// What becomes of a number that is too wide for its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooWide {
    Cut,
    Refuse,
}

impl<R: FieldReader> Fields for In<'_, R> {
    type Error = ValueError<R::Error>;

    fn number<N: Number>(&mut self, name: Name, _: usize, it: &mut N) -> Result<(), Self::Error> {
        let mut value = self.0.unsigned().map_err(ValueError::Read)?;
        if self.1 == TooWide::Cut {
            value &= u64::MAX >> (64 - 8 * size_of::<N>());
        }
        *it = N::try_from(value).map_err(|_| ValueError::Field(name))?;
        Ok(())
    }

    fn double(&mut self, number: &mut f64) -> Result<(), Self::Error> {
        *number = self.0.double().map_err(ValueError::Read)?;
        Ok(())
    }

    fn bytes<const N: usize>(
        &mut self,
        name: Name,
        bytes: &mut [u8; N],
    ) -> Result<(), Self::Error> {
        let found = self.0.bytes(N as u64).map_err(ValueError::Read)?;
        *bytes = found.try_into().map_err(|_| ValueError::Field(name))?;
        Ok(())
    }
}

impl<R: FieldReader> In<'_, R> {
    /// Reads the array of a layer or table.
    pub(super) fn array(
        &mut self,
        layer: usize,
        len: u64,
    ) -> Result<Vec<u8>, ValueError<R::Error>> {
        let array = self.0.bytes(len).map_err(ValueError::Read)?;
        match array.len() as u64 {
            bytes if bytes == len => Ok(array),
            bytes => Err(ValueError::BitArray {
                layer,
                bytes,
                expected: len,
            }),
        }
    }
}

/// Why fields do not make a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ValueError<E> {
    /// A field is missing or of another type.
    #[error("{0}")]
    Read(E),
    /// This version of the type is not known.
    #[error("version {version} of {type_name} is not known")]
    Version {
        /// The name of the type.
        type_name: &'static str,
        /// The version.
        version: u32,
    },
    /// The named field has a value that no filter can have.
    #[error("{0}: a value that no filter has")]
    Field(&'static str),
    /// The fields contradict each other, or are too large.
    #[error("{0}")]
    Parts(PartsError),
    /// The same of a cuckoo filter.
    #[error("{0}")]
    Cuckoo(CuckooError),
    /// A bit array does not have the length that its layer states.
    #[error("layer {layer}: a bit array of {bytes} bytes instead of {expected}")]
    BitArray {
        /// The layer's number, from 0.
        layer: usize,
        /// Its length in bytes.
        bytes: u64,
        /// The length in bytes that the layer states.
        expected: u64,
    },
}

impl<E> From<PartsError> for ValueError<E> {
    fn from(error: PartsError) -> Self {
        ValueError::Parts(error)
    }
}

impl<E> From<CuckooError> for ValueError<E> {
    fn from(error: CuckooError) -> Self {
        ValueError::Cuckoo(error)
    }
}
