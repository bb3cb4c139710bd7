//! What adding items has changed, as a log must replay it.

use smallvec::SmallVec;

use crate::bf::advance::Begun;
use crate::error::CommandError;
use crate::run::{Changes, Run};

/// How a log replays the insertions of a command.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The command that creates a filter.
    ///
    /// The log gets the filter as its SCANDUMP header, because a header says everything. RESERVE
    /// and INSERT depend on the configuration of the host that replays them: with
    /// `bf-expansion-factor 0` BF.RESERVE refuses an expansion and BF.INSERT ignores it.
    pub(crate) create: &'static [u8],
    /// The command that adds items.
    pub(crate) add: &'static [u8],
    /// What stands between the key and the items.
    pub(crate) before_items: &'static [&'static [u8]],
    /// Whether a request is repeated as it is when all its items were added.
    pub(crate) repeats: bool,
}

/// What an insertion has changed so far. The items borrow from the requests.
///
/// Most insertions add one item and create nothing. So this value is never moved, and nothing is
/// prepared in advance.
#[derive(Debug, Default)]
pub(crate) struct Insertion<'a> {
    /// The filter's header, if the insertion created it.
    header: Option<Vec<u8>>,
    /// How many generations of a window began before the first item, and when the newest did.
    advance: Option<(u64, u64)>,
    /// The items that were added.
    items: SmallVec<[&'a [u8]; 16]>,
}

/// Makes room for something about each of so many items, before anything is changed.
pub(crate) fn reserve<T>(list: &mut Vec<T>, items: usize) -> Result<(), CommandError> {
    let reserved = list.try_reserve_exact(items);
    reserved.map_err(|_| CommandError::OutOfMemory)
}

impl<'a> Insertion<'a> {
    /// Makes room for so many items and the words before them, before anything is changed.
    #[inline]
    pub(crate) fn reserve(&mut self, items: usize) -> Result<(), CommandError> {
        /// The command, the key and what stands between it and the items.
        const WORDS: usize = 4;
        // Few of them lie in the list itself.
        if items + WORDS <= self.items.inline_size() {
            return Ok(());
        }
        let reserved = self.items.try_reserve_exact(items.saturating_add(WORDS));
        reserved.map_err(|_| CommandError::OutOfMemory)
    }

    /// The filter was created, and has this header.
    pub(crate) fn create(&mut self, header: Vec<u8>) {
        self.header = Some(header);
    }

    /// Whether the filter was created.
    pub(crate) fn is_creation(&self) -> bool {
        self.header.is_some()
    }

    /// Generations of a window began.
    pub(crate) fn advance(&mut self, count: u64, began: u64) {
        self.advance = Some((count, began));
    }

    /// An item was added.
    #[inline]
    pub(crate) fn push(&mut self, item: &'a [u8]) {
        self.items.push(item);
    }

    /// Notes what a single request has changed. It is repeated if all its items were added, and
    /// nothing else was changed.
    #[inline]
    pub(crate) fn note_request(
        &mut self,
        replayed: &Replayed,
        request: &Run<'a>,
        items: usize,
        changes: &mut dyn Changes,
    ) {
        let only_items = self.header.is_none() && self.advance.is_none();
        match self.items.len() {
            0 if only_items => {}
            added if only_items && added == items && replayed.repeats => {
                changes.repeat(request.first());
            }
            _ => self.note(replayed, request.key(), changes),
        }
    }

    /// Notes what was changed.
    pub(crate) fn note(&mut self, replayed: &Replayed, key: &'a [u8], changes: &mut dyn Changes) {
        if !self.items.is_empty() {
            // The command is written before its items: a list of its own would be as long again.
            let words = [replayed.add, key].into_iter();
            let words = words.chain(replayed.before_items.iter().copied());
            self.items.insert_many(0, words);
        }
        let header = self.header.as_deref();
        let create = header.map(|header| [replayed.create, key, b"1", header]);
        let begun = self.advance.map(|(count, began)| Begun::new(count, began));
        let advance = begun.as_ref().map(|begun| begun.command(key));
        let add = Some(self.items.as_slice()).filter(|add| !add.is_empty());
        let (create, advance) = (
            create.as_ref().map(|it| &it[..]),
            advance.as_ref().map(|it| &it[..]),
        );
        let commands: SmallVec<[&[&[u8]]; 3]> =
            [create, advance, add].into_iter().flatten().collect();
        if !commands.is_empty() {
            changes.replace(&commands);
        }
    }
}
