//! Rows of the table: keys.

use super::Command;

/// The rows of this family.
pub const COMMANDS: &[Command] = &[];
