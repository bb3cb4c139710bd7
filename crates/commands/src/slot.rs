//! The one key a command works on, as its host lends it.

use crate::error::CommandError;
use everbloom::ScalableBloomFilter;

/// A key that a command may write.
#[derive(Debug)]
pub enum Slot<'a> {
    /// No such key. Putting a filter here creates it.
    Vacant(&'a mut Option<ScalableBloomFilter>),
    /// The key holds a filter.
    Filter(&'a mut ScalableBloomFilter),
    /// The key holds a value of another type.
    OtherType,
}

impl Slot<'_> {
    /// The filter in the slot, also one that the command has just put there.
    pub fn filter(&mut self) -> Result<Option<&mut ScalableBloomFilter>, CommandError> {
        match self {
            Slot::Vacant(value) => Ok(value.as_mut()),
            Slot::Filter(filter) => Ok(Some(filter)),
            Slot::OtherType => Err(CommandError::WrongType),
        }
    }
}

/// A key that a command only reads.
#[derive(Clone, Copy, Debug)]
pub enum ReadSlot<'a> {
    /// No such key.
    Missing,
    /// The key holds a filter.
    Filter(&'a ScalableBloomFilter),
    /// The key holds a value of another type.
    OtherType,
}

impl<'a> ReadSlot<'a> {
    /// The filter, or the error of a command that needs one.
    pub fn required(self) -> Result<&'a ScalableBloomFilter, CommandError> {
        match self {
            ReadSlot::Missing => Err(CommandError::NotFound),
            ReadSlot::Filter(filter) => Ok(filter),
            ReadSlot::OtherType => Err(CommandError::WrongType),
        }
    }

    /// The filter, if the key holds one. BF.EXISTS and BF.MEXISTS treat every other key as empty.
    pub fn lenient(self) -> Option<&'a ScalableBloomFilter> {
        match self {
            ReadSlot::Filter(filter) => Some(filter),
            ReadSlot::Missing | ReadSlot::OtherType => None,
        }
    }
}
