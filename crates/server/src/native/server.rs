//! Rows of the table: server.

use super::Command;

/// The rows of this family.
pub const COMMANDS: &[Command] = &[];
