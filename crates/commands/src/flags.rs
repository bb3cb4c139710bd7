//! What a host must know of a command before it runs it: a set of flags.

/// A set of flags. Those that COMMAND shows come first, in the order in which it shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

/// May modify data.
pub const WRITE: Flags = Flags(1);
/// Refused when memory is above its limit.
pub const DENYOOM: Flags = Flags(1 << 1);
/// Never modifies data.
pub const READONLY: Flags = Flags(1 << 2);
/// For those who run the server.
pub const ADMIN: Flags = Flags(1 << 3);
/// Not for scripts.
pub const NOSCRIPT: Flags = Flags(1 << 4);
/// Refused while a replica loads beside its old data.
pub const NO_ASYNC_LOADING: Flags = Flags(1 << 5);
/// Runs while data is being loaded.
pub const LOADING: Flags = Flags(1 << 6);
/// Runs on a replica that has lost its primary.
pub const STALE: Flags = Flags(1 << 7);
/// Takes constant or logarithmic time.
pub const FAST: Flags = Flags(1 << 8);
/// Allowed before AUTH.
pub const NO_AUTH: Flags = Flags(1 << 9);
/// Refused inside MULTI.
pub const NO_MULTI: Flags = Flags(1 << 10);
/// Runs while a script keeps the server busy.
pub const ALLOW_BUSY: Flags = Flags(1 << 11);
/// Not entered in the slow log.
pub const SKIP_SLOWLOG: Flags = Flags(1 << 12);

/// Inside MULTI it runs at once and is not queued.
pub const AT_ONCE: Flags = Flags(1 << 13);
/// Ends the open transaction when it is refused.
pub const DISCARDS: Flags = Flags(1 << 14);
/// May change settings.
pub const CHANGES_SETTINGS: Flags = Flags(1 << 15);
/// Changes the database that later commands of the connection work on.
pub const SELECTS: Flags = Flags(1 << 16);
/// Refused unless a setting allows it.
pub const PROTECTED: Flags = Flags(1 << 17);
/// Refused as writes are when nothing can be made to last: clients ask by it whether all is well.
pub const TELLS_HEALTH: Flags = Flags(1 << 18);
/// The reply depends on the protocol, for which a host may have to ask.
pub const DEPENDS_ON_PROTOCOL: Flags = Flags(1 << 19);

/// The names of those that COMMAND shows.
const NAMES: [&str; 13] = [
    "write",
    "denyoom",
    "readonly",
    "admin",
    "noscript",
    "no_async_loading",
    "loading",
    "stale",
    "fast",
    "no_auth",
    "no_multi",
    "allow_busy",
    "skip_slowlog",
];

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);

    /// All flags of these sets.
    pub const fn of(sets: &[Flags]) -> Flags {
        match sets {
            [] => Flags::NONE,
            [first, rest @ ..] => Flags(first.0 | Flags::of(rest).0),
        }
    }

    /// The set without these flags.
    pub const fn without(self, flags: Flags) -> Flags {
        Flags(self.0 & !flags.0)
    }

    /// Whether one of `flags` is in the set.
    #[inline]
    pub const fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    /// The names that COMMAND shows.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let shown = NAMES.into_iter().enumerate();
        shown.filter_map(move |(bit, name)| (self.0 >> bit & 1 == 1).then_some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_they_were_made_of_and_show_the_public_part() {
        let set = Flags::of(&[FAST, WRITE, AT_ONCE]);
        assert!(set.has(FAST) && set.has(AT_ONCE) && set.has(Flags::of(&[WRITE, ADMIN])));
        assert!(!set.has(ADMIN) && !Flags::NONE.has(set));
        assert_eq!(set.names().collect::<Vec<_>>(), ["write", "fast"]);
        assert_eq!(SKIP_SLOWLOG.names().collect::<Vec<_>>(), ["skip_slowlog"]);
        assert_eq!(AT_ONCE.names().count(), 0);
    }
}
