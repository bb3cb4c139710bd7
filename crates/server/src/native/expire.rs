//! Rows of the table: expire.

use super::Command;

/// The rows of this family.
pub const COMMANDS: &[Command] = &[];
