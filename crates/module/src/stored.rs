//! A filter in a key of the host, counted in INFO.

use everbloom_commands::Filter;

use crate::info::Counted;
use crate::listing::Listing;
use crate::raw::context::Place;
use crate::watchlist::{self, Watched};

/// A filter that a key holds, and its part of what INFO counts.
#[derive(Debug)]
pub(crate) struct Stored {
    filter: Filter,
    counted: Counted,
    /// Its entry in the list of [windows](crate::windows).
    pub(crate) listing: Listing,
    /// What the [list of INFO](crate::watchlist) knows of it.
    watched: Watched,
}

impl Stored {
    pub(crate) fn new(filter: Filter) -> Self {
        let counted = Counted::new(&filter);
        Stored {
            filter,
            counted,
            listing: Listing::default(),
            watched: Watched::default(),
        }
    }

    /// The filter, to read it.
    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Changes the filter.
    pub(crate) fn change<R>(&mut self, work: impl FnOnce(&mut Filter) -> R) -> R {
        let result = work(&mut self.filter);
        self.counted.update(&self.filter);
        result
    }

    /// Looks at the filter for the list of INFO, if `always`, or if it is clearly fuller or emptier
    /// than before.
    #[inline]
    pub(crate) fn watch<'k>(&mut self, always: bool, place: impl FnOnce() -> Option<Place<'k>>) {
        watchlist::watch(&self.filter, &mut self.watched, always, place);
    }

    /// Lets an array be moved to another place in memory, which changes no count.
    pub(crate) fn relocate(&mut self, array: usize, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        self.filter.relocate(array, relocate);
    }
}
