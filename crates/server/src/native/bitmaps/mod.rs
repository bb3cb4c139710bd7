//! Strings as arrays of bits: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP, BITFIELD, BITFIELD_RO.
//!
//! - [`bits`]: operations on the bits of a string, without keys and arguments
//! - [`single`]: SETBIT and GETBIT
//! - [`range`]: BITCOUNT and BITPOS
//! - [`bitop`] and [`bitfield`]: the commands of these names

mod bitfield;
mod bitop;
mod bits;
mod range;
pub mod single;

use everbloom_commands::Action;
use everbloom_commands::command::{KeySpec, ONE_KEY};
use everbloom_commands::flags::{DENYOOM, FAST, READONLY, WRITE};
use everbloom_commands::key_use::{EXCHANGE, EXCHANGE_OR_READ, OVERWRITE, READ};

use super::{Command, Handler, reads, writes};

/// The first key is written, the others are read.
const BEHIND_OPERATION: KeySpec = KeySpec::new(2, -1, 1);

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Sets a bit of a key's string and returns what it was.
    Command::new(single::SETBIT, 4, Handler::Text(Action::Write(single::setbit)))
        .uses(EXCHANGE).since("2.2.0").keys(ONE_KEY).flags(&[WRITE, DENYOOM]).pipelines(),
    /// Returns a bit of a key's string.
    Command::new(single::GETBIT, 3, Handler::Text(Action::Read(single::getbit)))
        .since("2.2.0").keys(ONE_KEY).flags(&[READONLY, FAST]).pipelines(),
    /// Counts the bits of a key's string that are 1.
    reads("bitcount", -2, ONE_KEY, range::bitcount).since("2.6.0"),
    /// Finds the first bit of a key's string that is 1, or 0.
    reads("bitpos", -3, ONE_KEY, range::bitpos).since("2.8.7"),
    /// Sets a key to the AND, OR, XOR or NOT of other keys' strings.
    writes("bitop", -4, BEHIND_OPERATION, bitop::bitop).uses(OVERWRITE).uses_others(READ).since("2.6.0").flags(&[DENYOOM]),
    /// Reads and changes integers of any width in a key's string.
    writes("bitfield", -2, ONE_KEY, bitfield::bitfield).uses(EXCHANGE_OR_READ).since("3.2.0").flags(&[DENYOOM]),
    /// Reads integers of any width in a key's string.
    reads("bitfield_ro", -2, ONE_KEY, bitfield::bitfield_ro).since("6.0.0").flags(&[FAST]),
};
