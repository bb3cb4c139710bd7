//! A filter in a key of the host, counted in INFO.

use everbloom_commands::Filter;

use crate::info::Counted;
use crate::listing::Listing;
use crate::watchlist::Watched;

/// A filter that a key holds, and its part of what INFO counts.
#[derive(Debug)]
pub(crate) struct Stored {
    filter: Filter,
    counted: Counted,
    /// Its entry in the list of [windows](crate::windows).
    pub(crate) listing: Listing,
    /// What the [list of INFO](crate::watchlist) knows of it.
    pub(crate) watched: Watched,
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

    /// Lets an array be moved to another place in memory, which changes no count.
    pub(crate) fn relocate(&mut self, array: usize, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        self.filter.relocate(array, relocate);
    }
}
