//! The sorts of our own filters in files, as the header tells them.

/// Where the header has the kind of the filter, in every version.
const KIND_AT: usize = 10;

/// The kind of a filter that grows or forgets.
const LAYERS: u8 = 2;

/// The kind of a cuckoo filter.
const CUCKOO: u8 = 3;

/// Where the header has the first byte of the options.
const OPTIONS_AT: usize = 12;

/// The option of a filter with a window.
const WINDOW: u8 = 16;

/// What sort of filter of ours a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Fixed,
    Growing,
    Windowed,
    Cuckoo,
}

impl Sort {
    /// The sort of the filter with this header.
    pub(crate) fn of_header(header: &[u8]) -> Sort {
        let has_window = header.get(OPTIONS_AT).is_some_and(|it| it & WINDOW != 0);
        match header.get(KIND_AT) {
            Some(&CUCKOO) => Sort::Cuckoo,
            Some(&LAYERS) if has_window => Sort::Windowed,
            Some(&LAYERS) => Sort::Growing,
            _ => Sort::Fixed,
        }
    }

    /// What follows the name of a file that has one.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Sort::Fixed => "is a filter of fixed size",
            Sort::Growing => "is a filter that grows, as those of dedup",
            Sort::Windowed => "is a filter that forgets, as those of dedup --window",
            Sort::Cuckoo => "is a cuckoo filter",
        }
    }
}
