//! Rows of the table: connection.

use super::Command;

/// The rows of this family.
pub const COMMANDS: &[Command] = &[];
