//! What the requests of a batch do on one key, by their kind.

use everbloom::{CuckooFilter, ScalableBloomFilter};
use everbloom_commands::{CommandError, Context, Effect, Family, ReadSlot, Slot, bf, cf};
use everbloom_store::journal::Record;

/// Looks items up.
pub trait Look {
    /// The filters it works on.
    type Filter: Family;

    /// Calls `emit` with the answer for each item.
    fn look(items: &[&[u8]], slot: ReadSlot<'_, Self::Filter>, emit: impl FnMut(bool));
}

/// Changes a filter item by item.
pub trait Change {
    /// The filters it works on.
    type Filter: Family;
    /// What it changed.
    type Made<'a>;

    /// Calls `emit` with the answer for each item.
    fn change<'a>(
        context: &Context,
        items: &[&'a [u8]],
        slot: &mut Slot<'_, Self::Filter>,
        emit: impl FnMut(Result<bool, CommandError>),
    ) -> Self::Made<'a>;

    /// Notes the changes of a key for the log.
    fn note<'a>(record: &mut Record, db: usize, key: &'a [u8], made: Self::Made<'a>);
}

/// BF.EXISTS.
pub struct BloomExists;
/// BF.ADD.
pub struct BloomAdd;
/// CF.EXISTS.
pub struct CuckooExists;
/// CF.ADD.
pub struct CuckooAdd;
/// CF.DEL.
pub struct CuckooDelete;

impl Look for BloomExists {
    type Filter = ScalableBloomFilter;

    fn look(items: &[&[u8]], slot: ReadSlot<'_>, emit: impl FnMut(bool)) {
        bf::exists::exists_batch(items, slot, emit);
    }
}

impl Look for CuckooExists {
    type Filter = CuckooFilter;

    fn look(items: &[&[u8]], slot: ReadSlot<'_, CuckooFilter>, emit: impl FnMut(bool)) {
        cf::exists::exists_batch(items, slot, emit);
    }
}

impl Change for BloomAdd {
    type Filter = ScalableBloomFilter;
    type Made<'a> = bf::insertion::Insertion<'a>;

    fn change<'a>(
        context: &Context,
        items: &[&'a [u8]],
        slot: &mut Slot<'_>,
        emit: impl FnMut(Result<bool, CommandError>),
    ) -> Self::Made<'a> {
        bf::add::add_batch(context, items, slot, emit)
    }

    fn note<'a>(record: &mut Record, db: usize, key: &'a [u8], made: Self::Made<'a>) {
        record.insertion(db, key, made);
    }
}

impl Change for CuckooAdd {
    type Filter = CuckooFilter;
    type Made<'a> = cf::insertion::Insertion<'a>;

    fn change<'a>(
        context: &Context,
        items: &[&'a [u8]],
        slot: &mut Slot<'_, CuckooFilter>,
        emit: impl FnMut(Result<bool, CommandError>),
    ) -> Self::Made<'a> {
        cf::add::add_batch(context, items, slot, emit)
    }

    fn note<'a>(record: &mut Record, db: usize, key: &'a [u8], made: Self::Made<'a>) {
        record.cuckoo_insertion(db, key, made);
    }
}

impl Change for CuckooDelete {
    type Filter = CuckooFilter;
    type Made<'a> = Vec<&'a [u8]>;

    fn change<'a>(
        _: &Context,
        items: &[&'a [u8]],
        slot: &mut Slot<'_, CuckooFilter>,
        emit: impl FnMut(Result<bool, CommandError>),
    ) -> Self::Made<'a> {
        let mut removed = Vec::new();
        cf::del::del_batch(items, slot, emit, |item| removed.push(item));
        removed
    }

    fn note<'a>(record: &mut Record, db: usize, key: &'a [u8], made: Self::Made<'a>) {
        for item in made {
            record.effect(db, &Effect::Verbatim, &[b"CF.DEL", key, item]);
        }
    }
}
