//! What adding items has changed, as a log must replay it.

use smallvec::SmallVec;

use crate::run::{Changes, Run};

/// The commands that replay an insertion, collected during the insertion. The items borrow from the
/// requests.
#[derive(Debug)]
pub(crate) struct Insertion<'a> {
    /// The command that creates a filter, and its header if the insertion created it.
    ///
    /// The log gets the filter as its SCANDUMP header, because a header says everything. RESERVE
    /// and INSERT depend on the configuration of the host that replays them: with
    /// `bf-expansion-factor 0` BF.RESERVE refuses an expansion and BF.INSERT ignores it.
    create: &'static [u8],
    header: Option<Vec<u8>>,
    /// How many generations of a window began before the first item, and when the newest did.
    advance: Option<[String; 2]>,
    /// The command that adds the items: what stands before them, and they.
    add: SmallVec<[&'a [u8]; 16]>,
    /// How many words stand before them. The second is the key.
    head: usize,
}

impl<'a> Insertion<'a> {
    /// One that has changed nothing yet, and will add `items` items at most.
    pub(crate) fn new(
        create: &'static [u8],
        header: Option<Vec<u8>>,
        head: &[&'a [u8]],
        items: usize,
    ) -> Self {
        let mut add = SmallVec::with_capacity(head.len().saturating_add(items));
        add.extend_from_slice(head);
        Insertion {
            create,
            header,
            advance: None,
            add,
            head: head.len(),
        }
    }

    /// Whether the filter was created.
    pub(crate) fn is_creation(&self) -> bool {
        self.header.is_some()
    }

    /// Generations of a window began.
    pub(crate) fn advance(&mut self, count: u64, began: u64) {
        self.advance = Some([count, began].map(|number| number.to_string()));
    }

    /// An item was added.
    #[inline]
    pub(crate) fn push(&mut self, item: Option<&'a [u8]>) {
        self.add.extend(item);
    }

    /// How many items were added, if nothing else was changed.
    fn added_only(&self) -> Option<usize> {
        let added = self.add.len().saturating_sub(self.head);
        let only = self.header.is_none() && self.advance.is_none();
        only.then_some(added)
    }

    /// Notes what a single request has changed. It is repeated if all its items were added.
    pub(crate) fn note_request(&self, request: &Run<'_>, items: usize, changes: &mut dyn Changes) {
        match self.added_only() {
            Some(added) if added == items && items > 0 => changes.repeat(request.first()),
            _ => self.note(changes),
        }
    }

    /// Notes what was changed.
    pub(crate) fn note(&self, changes: &mut dyn Changes) {
        let key = self.add.get(1).copied().unwrap_or_default();
        let header = self.header.as_deref();
        let create = header.map(|header| [self.create, key, b"1", header]);
        let advance = self.advance.as_ref().map(|[count, began]| {
            let [count, began] = [count, began].map(String::as_bytes);
            [&b"BF.ADVANCE"[..], key, count, b"AT", began]
        });
        let add = Some(self.add.as_slice()).filter(|add| add.len() > self.head);
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
