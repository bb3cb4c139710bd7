//! What a command does with a key: the flags of Redis's key specifications, by which access control
//! knows whether a client needs permission to read or to write.

/// What a command does with a key. Permission to read is needed for what says `access`, permission
/// to write for `update`, `insert` and `delete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse(u64);

const RO: u64 = 1;
const RW: u64 = 1 << 1;
const OW: u64 = 1 << 2;
const RM: u64 = 1 << 3;
const ACCESSES: u64 = 1 << 4;
const UPDATES: u64 = 1 << 5;
const INSERTS: u64 = 1 << 6;
const DELETES: u64 = 1 << 7;
const VARIES: u64 = 1 << 10;

/// Returns or copies what the key holds.
pub const READ: KeyUse = KeyUse(RO | ACCESSES);
/// Tells that the key exists, or what kind of value it has.
pub const INSPECT: KeyUse = KeyUse(RO);
/// Adds to what the key holds.
pub const INSERT: KeyUse = KeyUse(RW | INSERTS);
/// Adds to what the key holds and uses it.
pub const MERGE: KeyUse = KeyUse(RW | ACCESSES | INSERTS);
/// Changes what the key holds.
pub const UPDATE: KeyUse = KeyUse(RW | UPDATES);
/// Changes what the key holds and returns some of it.
pub const EXCHANGE: KeyUse = KeyUse(RW | ACCESSES | UPDATES);
/// Returns what the key holds and may change it: its options decide.
pub const EXCHANGE_OR_READ: KeyUse = KeyUse(RW | ACCESSES | UPDATES | VARIES);
/// Deletes some of what the key holds.
pub const DELETE: KeyUse = KeyUse(RW | DELETES);
/// Returns what the key holds and deletes it.
pub const TAKE: KeyUse = KeyUse(RW | ACCESSES | DELETES);
/// Replaces what the key holds.
pub const OVERWRITE: KeyUse = KeyUse(OW | UPDATES);
/// Creates the key.
pub const CREATE: KeyUse = KeyUse(OW | INSERTS);
/// Removes the key.
pub const REMOVE: KeyUse = KeyUse(RM | DELETES);

/// The names of the bits, in the order in which COMMAND shows them.
const NAMES: [(u64, &str); 9] = [
    (RO, "RO"),
    (RW, "RW"),
    (OW, "OW"),
    (RM, "RM"),
    (ACCESSES, "access"),
    (UPDATES, "update"),
    (INSERTS, "insert"),
    (DELETES, "delete"),
    (VARIES, "variable_flags"),
];

impl KeyUse {
    /// The bits, which are those of the module API.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The names that COMMAND shows.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let held = NAMES.iter().filter(move |(bit, _)| self.0 & bit != 0);
        held.map(|(_, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_bits() {
        let names = |key_use: KeyUse| key_use.names().collect::<Vec<_>>();
        assert_eq!(names(READ), ["RO", "access"]);
        assert_eq!(names(MERGE), ["RW", "access", "insert"]);
        assert_eq!(MERGE.bits(), 1 << 1 | 1 << 4 | 1 << 6);
        assert_eq!(names(EXCHANGE_OR_READ).last(), Some(&"variable_flags"));
    }
}
