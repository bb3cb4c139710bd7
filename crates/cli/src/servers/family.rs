//! The families of filters, and what each of them is called.

/// Filters with the same commands, headers and pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Family {
    Bloom,
    Cuckoo,
}

impl Family {
    /// The family whose type has this name.
    pub(crate) fn of_type(name: &[u8]) -> Option<Self> {
        match name {
            b"MBbloom--" | b"everbloom" | b"bloomfltr" => Some(Self::Bloom),
            b"MBbloomCF" | b"everblmCF" => Some(Self::Cuckoo),
            _ => None,
        }
    }

    /// A filter of it, for people.
    pub(crate) fn filter(self) -> &'static str {
        match self {
            Self::Bloom => "a Bloom filter",
            Self::Cuckoo => "a cuckoo filter",
        }
    }

    /// The command that reads a piece.
    pub(crate) fn scandump(self) -> &'static str {
        match self {
            Self::Bloom => "BF.SCANDUMP",
            Self::Cuckoo => "CF.SCANDUMP",
        }
    }

    /// The command that asks for items.
    pub(crate) fn mexists(self) -> &'static str {
        match self {
            Self::Bloom => "BF.MEXISTS",
            Self::Cuckoo => "CF.MEXISTS",
        }
    }

    /// The command that writes a piece.
    pub(crate) fn loadchunk(self) -> &'static str {
        match self {
            Self::Bloom => "BF.LOADCHUNK",
            Self::Cuckoo => "CF.LOADCHUNK",
        }
    }

    /// What a filter grows by.
    pub(crate) fn parts(self) -> &'static str {
        match self {
            Self::Bloom => "layers",
            Self::Cuckoo => "tables",
        }
    }

    /// What the pieces hold: one of them, and several.
    pub(crate) fn units(self) -> [&'static str; 2] {
        match self {
            Self::Bloom => ["bit", "bits"],
            Self::Cuckoo => ["fingerprint", "fingerprints"],
        }
    }
}
