//! Rows of the table: walk.

use super::Command;

/// The rows of this family.
pub const COMMANDS: &[Command] = &[];
