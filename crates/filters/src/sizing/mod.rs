//! How large a filter must be: bits and hash count from capacity and error rate, and back.
//!
//! Two families. The functions of this module are RedisBloom's, with its exact constants and
//! roundings: what they return is what a filter of this crate has. Those of [`textbook`] are the
//! formulas as papers give them, without rounding, for planning and for questions that RedisBloom
//! has no formula for.
//!
//! | asked | given | here | textbook |
//! |---|---|---|---|
//! | bits | capacity, error rate | [`LayerSize::new`] | [`textbook::bits`] |
//! | bits | capacity, error rate, hashes | | [`textbook::bits_with_hashes`] |
//! | hashes | error rate | [`LayerSize::hashes_of`] its [`LayerSize::bits_per_entry_of`] | |
//! | hashes | bits, capacity | | [`textbook::hashes`] |
//! | capacity | bits, error rate | [`LayerSize::max_capacity`] | [`textbook::capacity`] |
//! | capacity | bits, hashes, error rate | | [`textbook::capacity_with_hashes`] |
//! | capacity | bits, hashes | [`LayerSize::from_bits`] | |
//! | error rate | bits, capacity | [`LayerSize::rate_of`] | |
//! | error rate | bits, hashes, items | [`LayerSize::rate_at`] | [`textbook::error_rate`] |
//! | error rate | fill ratio, bits, hashes | [`LayerSize::rate_from_fill`] | [`textbook::error_rate_from_fill`] |
//! | items | bits that are 1 | | [`textbook::items_from_ones`] |

mod blocked;
mod classic;
pub mod textbook;

pub(crate) use blocked::BLOCK;
pub use blocked::BlockedSize;
pub use classic::{LayerSize, RATE_CAP, Rounding};
