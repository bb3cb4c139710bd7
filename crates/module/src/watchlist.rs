//! The filters that INFO names: those that err more often than was asked, and those that are full or
//! grow soon.
//!
//! The host does not say which keys hold filters. So a filter is looked at when it is loaded, and
//! when a command makes it nearly full. It has the name that its key had then. Hosts before Redis 7.0
//! do not say the key of what is loaded: it is looked at again when it changes.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use everbloom_commands::Filter;
use everbloom_commands::figures::{Figures, label};

use crate::raw::context::Place;
use crate::raw::entry::InfoWriter;

/// How many filters INFO names at most.
const NAMED: usize = 20;
/// How many filters are in the list at most. The others follow when some of the named ones leave.
const LISTED: usize = 200;
/// The step of a filter that the list would name, if the host had said the name of its key.
const UNNAMED: u8 = u8::MAX;
/// How many blocks are read of a large filter.
const BLOCKS: u64 = 256;

/// Smaller filters err more or less often than asked by chance.
const LEAST_BYTES: u64 = 1024;

/// Why a filter is in the list, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Errs,
    Full,
    FullSoon,
    GrowsSoon,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Errs => "errs",
            State::Full => "full",
            State::FullSoon => "full_soon",
            State::GrowsSoon => "grows_soon",
        }
    }

    /// The state of a filter with these figures; `None` if there is nothing to say.
    fn of(filter: &Filter, figures: &Figures) -> Option<State> {
        if figures.is_above && filter.stream_len() >= LEAST_BYTES {
            return Some(State::Errs);
        }
        // A window of items is full after each generation.
        if figures.window.is_some_and(|window| window.ms.is_none()) {
            return None;
        }
        let size = match filter {
            Filter::Bloom(filter) => filter.layers().last()?.capacity(),
            Filter::Cuckoo(filter) => filter.capacity(),
        };
        match (figures.room, figures.is_fixed) {
            (room, _) if room > size / 10 => None,
            (0, true) => Some(State::Full),
            (_, true) => Some(State::FullSoon),
            (_, false) => Some(State::GrowsSoon),
        }
    }
}

/// A filter in the list.
struct Entry {
    number: NonZeroU64,
    state: State,
    figures: Figures,
    db: i32,
    label: String,
}

impl Entry {
    /// The worst state first, then the largest filter.
    fn rank(&self) -> (State, u64) {
        let [bytes, ..] = self.figures.metrics.figures();
        (self.state, u64::MAX - bytes)
    }
}

/// The first in rank first. Values may be loaded and freed on any thread.
static LIST: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

fn list() -> MutexGuard<'static, Vec<Entry>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the list knows of one filter. Its entry goes with the filter.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// How full the filter was, in [steps](step).
    step: u8,
    entry: Option<NonZeroU64>,
}

impl Watched {
    /// Takes how full the filter is now, in steps. Returns whether it must be looked at: if it is
    /// fuller by a step, or emptier by two. A filter to which items are added and removed in turn
    /// may cross one step with each command.
    #[inline]
    fn note(&mut self, step: u8) -> bool {
        let is_near = (step..=step.saturating_add(1)).contains(&self.step);
        if !is_near {
            self.step = step;
        }
        !is_near
    }

    fn remove(&mut self) {
        if let Some(number) = self.entry.take() {
            list().retain(|entry| entry.number != number);
        }
    }
}

impl Drop for Watched {
    #[inline]
    fn drop(&mut self) {
        self.remove();
    }
}

/// How full the newest layer is, or the cuckoo filter, in steps: 0 as long as nothing is to be said.
/// Each change that is worth a look is of two steps when the filter becomes emptier.
#[inline]
fn step(filter: &Filter) -> u8 {
    match filter {
        Filter::Bloom(filter) => filter.layers().last().map_or(0, |layer| {
            let (capacity, items) = (layer.capacity(), layer.len());
            let is_near = capacity.saturating_sub(items) <= capacity / 10;
            2 * (u8::from(is_near) + u8::from(items >= capacity))
        }),
        Filter::Cuckoo(filter) => {
            let (capacity, used) = (filter.capacity(), filter.used());
            let twentieth = (capacity / 20).max(1);
            // Growth begins when about a tenth is free.
            let free = capacity.saturating_sub(used) / twentieth;
            u8::try_from(free).map_or(0, |free| 6_u8.saturating_sub(free))
        }
    }
}

/// Looks at a filter that was changed or loaded, if `always`, or if it is clearly fuller or emptier
/// than before.
#[inline]
pub(crate) fn watch<'k>(
    filter: &Filter,
    watched: &mut Watched,
    always: bool,
    place: impl FnOnce() -> Option<Place<'k>>,
) {
    let step = step(filter);
    if always {
        watched.step = step;
        look(filter, watched, place);
    } else if watched.note(step) {
        look(filter, watched, place);
    }
}

#[inline(never)]
fn look<'k>(filter: &Filter, watched: &mut Watched, place: impl FnOnce() -> Option<Place<'k>>) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    watched.remove();
    let figures = Figures::of(filter, BLOCKS);
    let Some(state) = State::of(filter, &figures) else {
        return;
    };
    let Some(place) = place() else {
        // The next change says it.
        watched.step = UNNAMED;
        return;
    };
    let count = COUNT.fetch_add(1, Relaxed);
    let entry = Entry {
        number: NonZeroU64::MIN.saturating_add(count),
        state,
        figures,
        db: place.db,
        // A comma ends a field of INFO, and its value begins behind the equals sign.
        label: label(place.key).replace(',', "\\x2c").replace('=', "\\x3d"),
    };
    let mut list = list();
    let at = list.partition_point(|other| other.rank() <= entry.rank());
    if at < LISTED {
        watched.entry = Some(entry.number);
        list.truncate(LISTED - 1);
        list.insert(at, entry);
    }
}

/// Writes the section of INFO.
pub(crate) fn report(writer: &mut InfoWriter) {
    // INFO is also part of the report of a crash, which may come at any time.
    let Ok(list) = LIST.try_lock() else { return };
    if list.is_empty() || !writer.section(c"bloom_watched_filters") {
        return;
    }
    for (number, entry) in list.iter().take(NAMED).enumerate() {
        let [bytes, _, layers, _, capacity] = entry.figures.metrics.figures();
        writer.record(&format!("bloom_filter_{number}"), |writer| {
            writer.field(c"db", entry.db.unsigned_abs().into());
            writer.text(c"state", entry.state.name());
            writer.field(c"bytes", bytes);
            writer.field(c"layers", layers);
            writer.field(c"capacity", capacity);
            if let Some(asked) = entry.figures.asked {
                writer.text(c"error_rate", &asked.to_string());
            }
            let expected = entry.figures.expected;
            writer.text(c"expected_error_rate", &format!("{expected:.2e}"));
            writer.text(c"key", &entry.label);
        });
    }
}

#[cfg(test)]
mod tests {
    use everbloom::CuckooFilter;

    use super::*;

    /// Each look reads a part of the filter.
    #[test]
    fn a_filter_that_swings_over_a_step_is_looked_at_once_a_step() {
        let builder = CuckooFilter::builder().slots(1000).bucket_size(8);
        let mut filter = Filter::Cuckoo(builder.max_kicks(500).build().unwrap());
        let mut watched = Watched::default();
        let mut looks = 0;
        let mut change = |change: &dyn Fn(&mut CuckooFilter)| {
            if let Filter::Cuckoo(cuckoo) = &mut filter {
                change(cuckoo);
            }
            looks += u32::from(watched.note(step(&filter)));
        };
        for item in 0..900 {
            for _ in 0..4 {
                change(&|cuckoo| cuckoo.insert(&item).unwrap());
                change(&|cuckoo| assert!(cuckoo.remove(&item)));
            }
            change(&|cuckoo| cuckoo.insert(&item).unwrap());
        }
        assert!((3..=6).contains(&looks), "{looks}");
    }
}
