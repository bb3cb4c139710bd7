//! What adding items has changed, as a log must replay it.

use smallvec::SmallVec;

use crate::bf::advance::Begun;
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

impl<'a> Insertion<'a> {
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
        &self,
        replayed: &Replayed,
        request: &Run<'_>,
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
    pub(crate) fn note(&self, replayed: &Replayed, key: &[u8], changes: &mut dyn Changes) {
        let header = self.header.as_deref();
        let create = header.map(|header| [replayed.create, key, b"1", header]);
        let begun = self.advance.map(|(count, began)| Begun::new(count, began));
        let advance = begun.as_ref().map(|begun| begun.command(key));
        let mut add: Vec<&[u8]> = Vec::new();
        if !self.items.is_empty() {
            add.reserve_exact(2 + replayed.before_items.len() + self.items.len());
            add.extend([replayed.add, key]);
            add.extend_from_slice(replayed.before_items);
            add.extend_from_slice(&self.items);
        }
        let add = Some(add.as_slice()).filter(|add| !add.is_empty());
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
