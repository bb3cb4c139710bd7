//! The rules of the house, as functions from files to complaints.
//!
//! A crate draws its floors in the documentation or a comment of its `lib.rs` or `main.rs`: a block
//! ```` ```text
//! ```` whose first line is `floors`, then a floor a line, the top one first, as modules separated
//! by spaces. A module stands for its children, unless a child is named itself. A file may import
//! from its own floor and from lower ones. The root file itself stands above all floors.
//!
//! The checks read text, not types. They know comments, literals, what is under `#[cfg(test)]`,
//! nested `use` trees, `super`, and names that a parent re-exports. Macros and globs hide what they
//! name.

mod arrows;
mod circles;
mod files;
mod floors;
mod limits;
mod names;
mod source;

pub use arrows::{Arrow, arrows};
pub use circles::circles;
pub use files::{File, crates, files_below};
pub use floors::Floors;
pub use limits::{lines_of_code, long_files, long_lines, table_is_true};
