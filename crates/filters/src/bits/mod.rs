//! Arrays of bits, their memory, and what the number of ones in them says.

pub(crate) mod array;
pub(crate) mod blocks;
pub(crate) mod fill;
pub(crate) mod huge;
pub(crate) mod memory;
pub(crate) mod pages;
