//! Filters of two servers, read in pieces: what `copy` and `compare` share.
//!
//! - [`server`]: a connection, its errors, and which node of a Cluster has a key
//! - [`family`]: the families of filters, and what differs between them
//! - [`walk`]: the names of all filters
//! - [`dump`]: one filter, piece by piece
//! - [`difference`]: two filters, compared in bounded memory
//! - [`answers`]: two filters, asked for the same items
//! - [`temporary`]: names for filters that are not whole yet

pub(crate) mod answers;
pub(crate) mod difference;
pub(crate) mod dump;
pub(crate) mod family;
pub(crate) mod server;
pub(crate) mod temporary;
pub(crate) mod walk;
