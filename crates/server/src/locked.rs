//! The shards of a command or a transaction that changes them, and the record of its changes.

use std::mem;
use std::ops::{Deref, DerefMut};

use everbloom_resp::Reply;
use everbloom_store::clock::Now;
use everbloom_store::journal::Record;
use everbloom_store::keyspace::{EntryMut, Expired, Footprint, KeyRef, Place, ViewMut};

use crate::error;
use crate::server::Server;
use crate::session::Session;

/// Shards that are locked to be changed. What changes there is recorded before they are unlocked.
#[derive(Debug)]
pub struct Locked<'k> {
    server: &'k Server,
    /// The shards.
    pub view: ViewMut<'k>,
    /// The changes so far.
    pub record: Record,
}

impl<'k> Locked<'k> {
    /// Locks shards.
    #[inline]
    pub fn lock(server: &'k Server, footprint: Footprint, now: Now) -> Self {
        Locked {
            server,
            view: footprint.write(&server.store.keyspace, now),
            record: server.store.journal.record(),
        }
    }

    /// Makes room for the record of a request, or of several with their words one after another,
    /// before they change anything. Refuses those for which there is no memory.
    #[inline]
    pub fn reserve(&mut self, words: &[&[u8]]) -> Result<(), Reply> {
        match self.record.reserve(words) {
            true => Ok(()),
            false => Err(error::out_of_memory()),
        }
    }

    /// The entry of a key, to change it, and the record of its changes.
    #[inline]
    pub fn entry_and_record<'v>(
        &'v mut self,
        key: KeyRef<'v>,
        place: Place,
    ) -> (EntryMut<'v>, &'v mut Record) {
        let mut entry = self.view.entry_at(key, place);
        if !entry.expired().keys.is_empty() {
            log_removed(self.server, &mut self.record, mem::take(entry.expired()));
        }
        (entry, &mut self.record)
    }

    /// Records a change of database `db`: a log must replay this command.
    pub fn log(&mut self, db: usize, command: &[&[u8]]) {
        self.log_expired();
        self.record.command(db, command);
    }

    /// The same for a command that is encoded already.
    pub fn log_encoded(&mut self, db: usize, command: Vec<u8>) {
        self.log_expired();
        self.record.encoded(db, command);
    }

    /// Records the keys that were found expired. It must precede the changes made to them.
    #[inline]
    pub fn log_expired(&mut self) {
        if self.view.has_removed_expired() {
            let expired = self.view.take_expired();
            log_removed(self.server, &mut self.record, expired);
        }
    }

    /// Moves the record into the journal, then unlocks the shards. The replies of a session that
    /// `writes` wait for the log even if nothing changed.
    #[inline]
    pub fn commit(self, session: &mut Session, writes: bool) {
        if writes || !self.record.is_empty() {
            session.wrote(self.append());
        }
    }

    /// Moves the record into the journal, then unlocks the shards. Returns the position in the
    /// journal behind it.
    #[inline]
    pub fn append(self) -> u64 {
        self.server.store.journal.append(self.record)
    }
}

#[cold]
fn log_removed(server: &Server, record: &mut Record, expired: Expired) {
    for (db, key) in &expired.keys {
        record.expired(*db, key);
    }
    if expired.unlisted > 0 {
        record.lose();
    }
    server.stats.expired(expired.keys.len() + expired.unlisted);
}

impl<'k> Deref for Locked<'k> {
    type Target = ViewMut<'k>;

    fn deref(&self) -> &ViewMut<'k> {
        &self.view
    }
}

impl<'k> DerefMut for Locked<'k> {
    fn deref_mut(&mut self) -> &mut ViewMut<'k> {
        &mut self.view
    }
}
