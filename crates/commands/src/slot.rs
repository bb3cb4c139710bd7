//! The one key a command works on, as its host lends it. A value is a filter, for all commands of
//! this crate; a host may have commands of the same shape on values of its own.

use crate::error::CommandError;
use crate::filter::{Family, Filter};
use everbloom::host::LayeredFilter;

/// A key that a command on values of type `F` may write.
#[derive(Debug)]
pub enum Slot<'a, F = LayeredFilter> {
    /// No such key. Putting a value here creates it.
    Vacant(&'a mut Option<F>),
    /// The key holds a value of the type.
    Held(&'a mut F),
    /// The key holds a value of another type.
    OtherType,
}

impl<'a, F: Family> From<&'a mut Filter> for Slot<'a, F> {
    #[inline]
    fn from(filter: &'a mut Filter) -> Self {
        F::of_mut(filter).map_or(Slot::OtherType, Slot::Held)
    }
}

impl<F> Slot<'_, F> {
    /// The filter in the slot, also one that the command has just put there.
    pub fn filter(&mut self) -> Result<Option<&mut F>, CommandError> {
        match self {
            Slot::Vacant(value) => Ok(value.as_mut()),
            Slot::Held(filter) => Ok(Some(filter)),
            Slot::OtherType => Err(CommandError::WrongType),
        }
    }

    /// The place for a filter, if the key holds nothing.
    pub(crate) fn vacant(&mut self) -> Result<&mut Option<F>, CommandError> {
        match self {
            Slot::Vacant(value) if value.is_none() => Ok(value),
            Slot::OtherType => Err(CommandError::WrongType),
            Slot::Vacant(_) | Slot::Held(_) => Err(CommandError::ItemExists),
        }
    }

    /// The filter in the slot, and whether it had to be made.
    pub(crate) fn filter_or_new(
        &mut self,
        build: impl FnOnce() -> Result<F, CommandError>,
    ) -> Result<(&mut F, bool), CommandError> {
        match self {
            Slot::OtherType => Err(CommandError::WrongType),
            Slot::Held(filter) => Ok((filter, false)),
            Slot::Vacant(value) => match value {
                Some(filter) => Ok((filter, false)),
                None => Ok((value.insert(build()?), true)),
            },
        }
    }
}

/// A key that a command on values of type `F` only reads.
#[derive(Debug)]
pub enum ReadSlot<'a, F = LayeredFilter> {
    /// No such key.
    Missing,
    /// The key holds a value of the type.
    Held(&'a F),
    /// The key holds a value of another type.
    OtherType,
}

impl<F> Clone for ReadSlot<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for ReadSlot<'_, F> {}

impl<'a, F: Family> From<&'a Filter> for ReadSlot<'a, F> {
    #[inline]
    fn from(filter: &'a Filter) -> Self {
        F::of(filter).map_or(ReadSlot::OtherType, ReadSlot::Held)
    }
}

impl<'a> ReadSlot<'a, Filter> {
    /// The same to a command on filters of one family.
    pub fn of_family<F: Family>(self) -> ReadSlot<'a, F> {
        match self {
            ReadSlot::Missing => ReadSlot::Missing,
            ReadSlot::Held(filter) => filter.into(),
            ReadSlot::OtherType => ReadSlot::OtherType,
        }
    }
}

impl<'a, F> ReadSlot<'a, F> {
    /// The filter, or the error of a command that needs one.
    pub fn required(self) -> Result<&'a F, CommandError> {
        match self {
            ReadSlot::Missing => Err(CommandError::NotFound),
            ReadSlot::Held(filter) => Ok(filter),
            ReadSlot::OtherType => Err(CommandError::WrongType),
        }
    }

    /// The filter, if the key holds one. EXISTS and MEXISTS treat every other key as empty.
    pub fn lenient(self) -> Option<&'a F> {
        match self {
            ReadSlot::Held(filter) => Some(filter),
            ReadSlot::Missing | ReadSlot::OtherType => None,
        }
    }
}
