//! CSV: fields may be quoted, and then contain delimiters and line ends.
//!
//! The reader finds where records end ([`scanner`]) and takes the headers off ([`header`]). The
//! workers take records apart ([`record`]) and choose the fields ([`columns`]).

pub(super) mod columns;
pub(super) mod header;
mod record;
pub(super) mod scanner;

/// What quotes a field. Within quotes, two of them stand for one.
const QUOTE: u8 = b'"';
