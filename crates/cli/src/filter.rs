//! What the subcommands do with a filter of either type, of fixed size or growing.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use everbloom::dcso::DcsoFilter;
use everbloom::host::{Layer, LayeredFilter};
use everbloom::redisbloom::FilterParts;
use everbloom::{BloomFilter, InsertError, ItemHash, Layout, Stats, UnionError};

use crate::description::Description;
use crate::other::Program;
use crate::records::chunk::{Chunk, Digest, Hashed};
use crate::records::selection::Selection;
use crate::sort::Sort;
pub(crate) use crate::stable::OwnFilter;

/// Reads a layout on the command line.
pub(crate) fn layouts() -> impl TypedValueParser<Value = Layout> {
    let values = [
        PossibleValue::new("classic").help("RedisBloom's, bit for bit"),
        PossibleValue::new("blocked").help("One cache line an item, with a random key"),
    ];
    PossibleValuesParser::new(values).map(|name| match name.as_str() {
        "classic" => Layout::Classic,
        _ => Layout::Blocked,
    })
}

pub(crate) fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Classic => "classic",
        Layout::Blocked => "blocked",
    }
}

impl From<LayeredFilter> for OwnFilter {
    /// Makes a filter of fixed size if it can, because many programs read only those.
    fn from(filter: LayeredFilter) -> Self {
        BloomFilter::try_from(filter).map_or_else(OwnFilter::Growing, OwnFilter::Fixed)
    }
}

/// A filter that takes records and goes to a file.
pub(crate) enum Writable {
    Own(OwnFilter),
    Dcso(DcsoFilter),
}

impl Writable {
    /// The program whose filter it is; none is our own.
    pub(crate) fn program(&self) -> Option<Program> {
        match self {
            Writable::Own(_) => None,
            Writable::Dcso(_) => Some(Program::Dcso),
        }
    }

    /// What it needs to know of the records.
    pub(crate) fn digest(&self) -> Digest {
        match self {
            Writable::Own(filter) => Digest::Hashes(filter.hasher(), false),
            Writable::Dcso(_) => Digest::Keys,
        }
    }

    pub(crate) fn insert_all(&mut self, chunk: &Chunk) -> Result<(), InsertError> {
        match self {
            Writable::Own(filter) => {
                filter.insert_each(chunk.hashes.iter().map(|hash| Hashed(*hash)))
            }
            Writable::Dcso(filter) => {
                for key in chunk.each_key() {
                    filter.insert(key);
                }
                Ok(())
            }
        }
    }

    /// What a merge begins with: the items in a new filter, as BF.MERGE does it, so that both make
    /// the same bytes.
    pub(crate) fn renewed(self) -> Result<Self, UnionError> {
        let Writable::Own(own) = self else {
            return Ok(self);
        };
        let own = LayeredFilter::from(own);
        let empty = own.empty_like().map_err(|_| UnionError::OutOfMemory)?;
        Writable::Own(empty.into()).union(Writable::Own(own.into()))
    }

    /// All items of both.
    pub(crate) fn union(self, other: Self) -> Result<Self, UnionError> {
        match (self, other) {
            (Writable::Own(one), Writable::Own(other)) => {
                let (mut one, other) = (LayeredFilter::from(one), LayeredFilter::from(other));
                // To a window of another clock no time of ours means anything.
                let now = match has_other_clock(&one) || has_other_clock(&other) {
                    true => u64::MAX,
                    false => now_ms(),
                };
                one.union_at(&other, now)?;
                Ok(Writable::Own(one.into()))
            }
            (Writable::Dcso(mut one), Writable::Dcso(other)) => {
                one.union(&other)?;
                Ok(Writable::Dcso(one))
            }
            _ => Err(UnionError::Layout),
        }
    }

    /// What sort of filter it is; another program's has a fixed size.
    pub(crate) fn sort(&self) -> Sort {
        match self {
            Writable::Own(OwnFilter::Growing(filter)) if filter.window().is_some() => {
                Sort::Windowed
            }
            Writable::Own(OwnFilter::Growing(_)) => Sort::Growing,
            Writable::Own(OwnFilter::Fixed(_)) | Writable::Dcso(_) => Sort::Fixed,
        }
    }

    pub(crate) fn write_to(&self, mut file: &File) -> io::Result<()> {
        match self {
            Writable::Own(filter) => filter.write_to(file),
            Writable::Dcso(filter) => file.write_all(filter.as_bytes()),
        }
    }

    /// What the filter holds, and its bytes in memory.
    pub(crate) fn stats(&self) -> (Stats, usize) {
        match self {
            Writable::Own(filter) => (filter.stats(), filter.memory_usage()),
            Writable::Dcso(filter) => (filter.view().stats(), filter.as_bytes().len()),
        }
    }

    /// As [`Filter::full_error_rate`].
    pub(crate) fn full_error_rate(&self) -> f64 {
        match self {
            Writable::Own(filter) => filter.full_error_rate(),
            Writable::Dcso(filter) => filter.view().header().error_rate(),
        }
    }

    /// As [`Filter::is_overfull`].
    pub(crate) fn is_overfull(&self) -> bool {
        match self {
            Writable::Own(filter) => filter.is_overfull(),
            Writable::Dcso(filter) => {
                let view = filter.view();
                view.header().len() > view.header().capacity()
            }
        }
    }
}

impl From<OwnFilter> for LayeredFilter {
    fn from(filter: OwnFilter) -> Self {
        match filter {
            OwnFilter::Fixed(filter) => filter.into(),
            OwnFilter::Growing(filter) => filter,
        }
    }
}

/// Inserts items, and calls `emit` with whether each is new. Stops at one for which the filter must
/// grow and cannot. A filter of fixed size takes all of them; the summary warns.
pub(crate) fn insert_growing(
    filter: &mut LayeredFilter,
    items: impl IntoIterator<Item = Hashed>,
    emit: impl FnMut(bool),
) -> Result<(), InsertError> {
    if filter.is_fixed() {
        filter.insert_each(items, emit);
        return Ok(());
    }
    filter.insert_until_refused(items, emit)
}

/// Calls a method that both types have.
macro_rules! either {
    ($filter:expr, $name:ident => $call:expr) => {
        match $filter {
            OwnFilter::Fixed($name) => $call,
            OwnFilter::Growing($name) => $call,
        }
    };
}

impl OwnFilter {
    /// What hashes for the filter in other threads.
    pub(crate) fn hasher(&self) -> ItemHash {
        either!(self, filter => filter.hasher())
    }

    pub(crate) fn insert_each(
        &mut self,
        items: impl IntoIterator<Item = Hashed>,
    ) -> Result<(), InsertError> {
        match self {
            OwnFilter::Fixed(filter) => {
                filter.insert_each(items, drop);
                Ok(())
            }
            OwnFilter::Growing(filter) => insert_growing(filter, items, drop),
        }
    }

    /// Drops what is older than the window, if it has one of our clock.
    pub(crate) fn forget(&mut self) -> Result<(), InsertError> {
        match self {
            OwnFilter::Growing(filter) if has_our_clock(filter) => {
                filter.advance_to(now_ms()).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Calls `emit` for each item with whether it is in the filter now: what is older than its
    /// window is not. By another program's clock nothing is too old.
    pub(crate) fn contains_each(
        &self,
        items: impl IntoIterator<Item = Hashed>,
        emit: impl FnMut(bool),
    ) {
        match self {
            OwnFilter::Growing(filter) if has_our_clock(filter) => {
                filter.contains_each_at(items, now_ms(), emit);
            }
            OwnFilter::Growing(filter) => filter.contains_each(items, emit),
            OwnFilter::Fixed(filter) => filter.contains_each(items, emit),
        }
    }

    /// How many items were inserted.
    pub(crate) fn items(&self) -> u64 {
        either!(self, filter => filter.len())
    }

    pub(crate) fn write_to(&self, file: &File) -> io::Result<()> {
        either!(self, filter => filter.write_to(file))
    }

    pub(crate) fn error_rate(&self) -> f64 {
        either!(self, filter => filter.error_rate())
    }

    /// Looks at all bits.
    pub(crate) fn stats(&self) -> Stats {
        either!(self, filter => filter.stats())
    }

    pub(crate) fn memory_usage(&self) -> usize {
        either!(self, filter => filter.memory_usage())
    }

    pub(crate) fn describe(&self) -> Description {
        let (kind, layers, window) = match self {
            OwnFilter::Fixed(_) => ("fixed", 1, None),
            OwnFilter::Growing(filter) => {
                let kind = match filter.window() {
                    Some(_) => "windowed",
                    None if filter.is_fixed() => "fixed",
                    None => "growing",
                };
                (kind, filter.layers().len(), filter.window().cloned())
            }
        };
        let layout = layout_name(either!(self, filter => filter.layout()));
        Description {
            kind: [kind; 2],
            variant: Some(("layout", layout)),
            stats: self.stats(),
            is_overfull: self.is_overfull(),
            layers: Some(layers),
            data: 0,
            window,
            selection: Selection::default(),
        }
    }

    /// The error rate expected when each layer holds its capacity. For merged filters this may
    /// exceed the rate asked for.
    pub(crate) fn full_error_rate(&self) -> f64 {
        match self {
            OwnFilter::Fixed(filter) => filter.error_rate(),
            OwnFilter::Growing(filter) => filter.layers().iter().map(Layer::error_rate).sum(),
        }
    }

    /// Whether it was not made for what it holds, so that a high error rate is no chance.
    pub(crate) fn is_overfull(&self) -> bool {
        let is_over = match self {
            OwnFilter::Fixed(filter) => filter.len() > filter.capacity(),
            OwnFilter::Growing(filter) => {
                let mut layers = filter.layers().iter();
                layers.any(|layer| layer.len() > layer.capacity())
            }
        };
        is_over || self.full_error_rate() > self.error_rate()
    }
}

/// The filter with these parts, whose pieces come in order. `wrong` makes an error of what is wrong
/// with them.
pub(crate) fn of_pieces<E>(
    parts: &FilterParts,
    mut next: impl FnMut() -> Result<Option<Vec<u8>>, E>,
    wrong: impl Fn(String) -> E,
) -> Result<LayeredFilter, E> {
    let made = LayeredFilter::from_parts(parts, u64::MAX);
    let mut filter = made.map_err(|error| wrong(error.to_string()))?;
    let mut offset = 0_u64;
    while let Some(piece) = next()? {
        let loaded = filter.load_chunk(offset, &piece);
        loaded.map_err(|error| wrong(error.to_string()))?;
        offset = offset.saturating_add(piece.len() as u64);
    }
    Ok(filter)
}

/// The times that are taken for those of our clock, from 2001 to 5138. Seconds and days are below,
/// microseconds and nanoseconds above.
const OUR_CLOCK: Range<u64> = 1_000_000_000_000..100_000_000_000_000;

/// Whether the filter has a window of time, by the clock of [`now_ms`]. A program may give its own
/// windows another clock, such as one of seconds or days.
pub(crate) fn has_our_clock(filter: &LayeredFilter) -> bool {
    newest_began(filter).is_some_and(|began| OUR_CLOCK.contains(&began))
}

/// Whether it has one by another clock.
fn has_other_clock(filter: &LayeredFilter) -> bool {
    newest_began(filter).is_some_and(|began| !OUR_CLOCK.contains(&began))
}

/// When the newest generation of a window of time began.
fn newest_began(filter: &LayeredFilter) -> Option<u64> {
    let window = filter.window()?;
    window.span.ticks()?;
    window.kept.last().map(|newest| newest.began)
}

/// The clock of windows, as the server has it: milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    })
}
