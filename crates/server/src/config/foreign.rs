//! Settings of Redis that this server does not support.

use super::parameter::PARAMETERS;

/// How an unsupported setting is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// It tunes something that does not exist here: a warning in the log is enough.
    Ignored,
    /// Users rely on its effect, for example on a list of users, so the server refuses to start.
    Refused {
        /// The value that has no effect.
        unless: &'static str,
    },
}

/// All of them; the file explains its format.
fn all() -> impl Iterator<Item = (&'static str, Foreign)> {
    let lines = include_str!("foreign.txt").lines();
    let rows = lines.filter(|line| !line.starts_with('#'));
    rows.map(|row| match row.split_once('=') {
        None => (row, Foreign::Ignored),
        Some((name, unless)) => (name, Foreign::Refused { unless }),
    })
}

/// Finds a setting by its name, in any case.
pub fn find(name: &str) -> Option<Foreign> {
    all()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, foreign)| foreign)
}

/// The message for an unknown setting, with the most similar name.
pub fn unknown(name: &str) -> String {
    const MAX_TYPOS: usize = 2;
    let lower = name.to_ascii_lowercase();
    let own = PARAMETERS.iter().map(|parameter| parameter.name);
    let meant = own
        .chain(all().map(|(known, _)| known))
        .map(|known| (strsim::osa_distance(&lower, known), known))
        .filter(|(typos, known)| *typos <= MAX_TYPOS && typos * 2 < known.len())
        .min();
    match meant {
        Some((_, meant)) => format!("unknown setting '{name}', did you mean '{meant}'?"),
        None => format!("unknown setting '{name}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameter::Parameter;
    use super::*;

    #[test]
    fn names_are_in_order_and_are_nobody_elses() {
        assert!(all().map(|(name, _)| name).is_sorted());
        for (name, foreign) in all() {
            assert!(Parameter::find(name).is_none(), "{name}");
            assert_eq!(find(&name.to_uppercase()), Some(foreign), "{name}");
        }
        assert_eq!(find("replicaof"), Some(Foreign::Refused { unless: "" }));
        assert_eq!(find("no-such-setting"), None);
    }

    #[test]
    fn a_typo_is_told_from_a_name_that_nobody_knows() {
        for (name, meant) in [
            ("maxmemroy", "maxmemory"),
            ("AppendOnyl", "appendonly"),
            ("lfu-decaytime", "lfu-decay-time"),
        ] {
            let text = format!("unknown setting '{name}', did you mean '{meant}'?");
            assert_eq!(unknown(name), text);
        }
        assert_eq!(unknown("bogus"), "unknown setting 'bogus'");
        assert_eq!(unknown("h"), "unknown setting 'h'");
    }
}
