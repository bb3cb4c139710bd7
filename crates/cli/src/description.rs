//! What `info` shows of a filter.

use everbloom::Stats;
use everbloom::host::Window;

use crate::records::selection::Selection;

/// A filter of this program or of another one.
#[derive(Debug)]
pub(crate) struct Description {
    /// The type in JSON, and as text.
    pub(crate) kind: [&'static str; 2],
    /// What distinguishes filters of this type, with its name in JSON.
    pub(crate) variant: Option<(&'static str, &'static str)>,
    pub(crate) stats: Stats,
    /// Whether it holds more than it was made for, so that a high error rate is no chance.
    pub(crate) is_overfull: bool,
    /// Only Bloom filters of this program have layers.
    pub(crate) layers: Option<usize>,
    /// Bytes of attached data.
    pub(crate) data: u64,
    /// What a filter that forgets remembers.
    pub(crate) window: Option<Window>,
    /// Only of a cuckoo filter.
    pub(crate) fingerprints: Option<Fingerprints>,
    /// What of the records was put in, as the file remembers it.
    pub(crate) selection: Selection,
}

/// What a cuckoo filter stores, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprints {
    /// The bits of one in the first table.
    pub(crate) bits: u32,
    /// The slots of all tables.
    pub(crate) slots: u64,
    pub(crate) tables: usize,
    /// 0 when the filter does not grow.
    pub(crate) expansion: u16,
}
