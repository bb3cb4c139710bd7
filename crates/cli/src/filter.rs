//! What the subcommands do with a filter of either type, of fixed size or growing.

use std::fs::File;
use std::io::{self, Write};
use std::ops::{ControlFlow, Range};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use everbloom::dcso::DcsoFilter;
use everbloom::host::{Layer, LayeredFilter};
use everbloom::redisbloom::FilterParts;
use everbloom::{BloomFilter, CuckooFilter, InsertError, Layout, Stats, UnionError};

use crate::description::{Description, Fingerprints};
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
            Writable::Own(filter) => filter.digest(),
            Writable::Dcso(_) => Digest::Keys,
        }
    }

    pub(crate) fn insert_all(&mut self, chunk: &Chunk) -> Result<(), InsertError> {
        match self {
            Writable::Own(filter) => filter.insert_all(chunk),
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
        let own = match self {
            Writable::Own(OwnFilter::Fixed(filter)) => LayeredFilter::from(filter),
            Writable::Own(OwnFilter::Growing(filter)) => filter,
            Writable::Own(OwnFilter::Cuckoo(_)) | Writable::Dcso(_) => return Ok(self),
        };
        let empty = own.empty_like().map_err(|_| UnionError::OutOfMemory)?;
        Writable::Own(empty.into()).union(Writable::Own(own.into()))
    }

    /// All items of both.
    pub(crate) fn union(self, other: Self) -> Result<Self, UnionError> {
        match (self, other) {
            (
                Writable::Own(OwnFilter::Cuckoo(mut one)),
                Writable::Own(OwnFilter::Cuckoo(other)),
            ) => {
                one.union(&other)?;
                Ok(Writable::Own(OwnFilter::Cuckoo(one)))
            }
            (Writable::Own(one), Writable::Own(other)) => {
                let layered = |own: OwnFilter| own.layered().map_err(|_| UnionError::Hash);
                let (mut one, other) = (layered(one)?, layered(other)?);
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
            Writable::Own(OwnFilter::Cuckoo(_)) => Sort::Cuckoo,
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

/// Calls a method that all types have.
macro_rules! any {
    ($filter:expr, $name:ident => $call:expr) => {
        match $filter {
            OwnFilter::Fixed($name) => $call,
            OwnFilter::Growing($name) => $call,
            OwnFilter::Cuckoo($name) => $call,
        }
    };
}

impl OwnFilter {
    /// The Bloom filter in it; a cuckoo filter comes back.
    pub(crate) fn layered(self) -> Result<LayeredFilter, CuckooFilter> {
        match self {
            OwnFilter::Fixed(filter) => Ok(filter.into()),
            OwnFilter::Growing(filter) => Ok(filter),
            OwnFilter::Cuckoo(filter) => Err(filter),
        }
    }

    /// What it needs to know of the records.
    pub(crate) fn digest(&self) -> Digest {
        match self {
            OwnFilter::Fixed(filter) => Digest::Hashes(filter.hasher(), false),
            OwnFilter::Growing(filter) => Digest::Hashes(filter.hasher(), false),
            OwnFilter::Cuckoo(_) => Digest::Keys,
        }
    }

    fn insert_all(&mut self, chunk: &Chunk) -> Result<(), InsertError> {
        match self {
            OwnFilter::Fixed(filter) => {
                filter.insert_each(hashes(chunk), drop);
                Ok(())
            }
            OwnFilter::Growing(filter) => insert_growing(filter, hashes(chunk), drop),
            OwnFilter::Cuckoo(filter) => {
                let mut inserted = Ok(());
                filter.insert_each(chunk.each_key(), u64::MAX, |reply| {
                    inserted = reply;
                    match reply {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    }
                });
                inserted
            }
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

    /// Calls `emit` for each key with whether it is in the filter now: what is older than its
    /// window is not. By another program's clock nothing is too old.
    pub(crate) fn contains_all(&self, chunk: &Chunk, emit: impl FnMut(bool)) {
        match self {
            OwnFilter::Growing(filter) if has_our_clock(filter) => {
                filter.contains_each_at(hashes(chunk), now_ms(), emit);
            }
            OwnFilter::Growing(filter) => filter.contains_each(hashes(chunk), emit),
            OwnFilter::Fixed(filter) => filter.contains_each(hashes(chunk), emit),
            OwnFilter::Cuckoo(filter) => filter.contains_each(chunk.each_key(), emit),
        }
    }

    /// How many items were inserted.
    pub(crate) fn items(&self) -> u64 {
        any!(self, filter => filter.len())
    }

    pub(crate) fn write_to(&self, mut file: &File) -> io::Result<()> {
        match self {
            OwnFilter::Fixed(filter) => filter.write_to(file),
            OwnFilter::Growing(filter) => filter.write_to(file),
            OwnFilter::Cuckoo(filter) => file.write_all(&filter.to_bytes()),
        }
    }

    /// Looks at all bits.
    pub(crate) fn stats(&self) -> Stats {
        any!(self, filter => filter.stats())
    }

    pub(crate) fn memory_usage(&self) -> usize {
        any!(self, filter => filter.memory_usage())
    }

    pub(crate) fn describe(&self) -> Description {
        let mut description = Description {
            kind: ["fixed"; 2],
            variant: None,
            stats: self.stats(),
            is_overfull: self.is_overfull(),
            layers: Some(1),
            data: 0,
            window: None,
            fingerprints: None,
            selection: Selection::default(),
        };
        let layout = match self {
            OwnFilter::Fixed(filter) => filter.layout(),
            OwnFilter::Growing(filter) => {
                description.kind = match filter.window() {
                    Some(_) => ["windowed"; 2],
                    None if filter.is_fixed() => ["fixed"; 2],
                    None => ["growing"; 2],
                };
                description.layers = Some(filter.layers().len());
                description.window = filter.window().cloned();
                filter.layout()
            }
            OwnFilter::Cuckoo(filter) => {
                let keyed = filter.parts().keyed;
                description.kind = match keyed {
                    Some(_) => ["cuckoo"; 2],
                    None => ["cuckoo", "cuckoo, RedisBloom's"],
                };
                description.layers = None;
                description.fingerprints = Some(Fingerprints {
                    bits: keyed.map_or(u8::BITS, |keyed| keyed.width.into()),
                    slots: filter.slots(),
                    tables: filter.tables(),
                    expansion: filter.expansion(),
                });
                return description;
            }
        };
        description.variant = Some(("layout", layout_name(layout)));
        description
    }

    /// The error rate expected when each layer holds its capacity. For merged filters this may
    /// exceed the rate asked for.
    pub(crate) fn full_error_rate(&self) -> f64 {
        match self {
            OwnFilter::Fixed(filter) => filter.error_rate(),
            OwnFilter::Growing(filter) => filter.layers().iter().map(Layer::error_rate).sum(),
            OwnFilter::Cuckoo(filter) => filter.full_error_rate(),
        }
    }

    /// Whether it was not made for what it holds, so that a high error rate is no chance.
    pub(crate) fn is_overfull(&self) -> bool {
        let (is_over, rate) = match self {
            OwnFilter::Fixed(filter) => (filter.len() > filter.capacity(), filter.error_rate()),
            OwnFilter::Growing(filter) => {
                let mut layers = filter.layers().iter();
                let is_over = layers.any(|layer| layer.len() > layer.capacity());
                (is_over, filter.error_rate())
            }
            // Its tables take no more than they have slots for, at the rate that was asked for.
            OwnFilter::Cuckoo(_) => return false,
        };
        is_over || self.full_error_rate() > rate
    }
}

/// The keys as items of a filter that hashes as the chunk's digest did.
fn hashes(chunk: &Chunk) -> impl Iterator<Item = Hashed> {
    chunk.hashes.iter().map(|hash| Hashed(*hash))
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
