//! Rows of the table: strings.

use super::Command;

/// The rows of this family.
pub const COMMANDS: &[Command] = &[];
