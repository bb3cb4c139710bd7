//! The locked shards of a command or a transaction, and the record of its changes.

use std::ops::{Deref, DerefMut};

use everbloom_resp::Reply;
use everbloom_store::clock::Now;
use everbloom_store::journal::Record;
use everbloom_store::keyspace::{Footprint, View};

use crate::native::error;
use crate::server::Server;
use crate::session::Session;

/// A view of locked shards. What changes there is recorded before they are unlocked.
#[derive(Debug)]
pub struct Locked<'k> {
    server: &'k Server,
    /// The shards.
    pub view: View<'k>,
    /// The changes so far.
    pub record: Record,
}

impl<'k> Locked<'k> {
    /// Locks shards: for writing when `exclusive`, for reading otherwise.
    #[inline]
    pub fn lock(server: &'k Server, footprint: Footprint, exclusive: bool, now: Now) -> Self {
        let view = footprint.lock(&server.store.keyspace, exclusive, now);
        Locked {
            server,
            view,
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

    /// Records a change of database `db`: a log must replay this command.
    pub fn log(&mut self, db: usize, command: &[&[u8]]) {
        self.log_expired();
        self.record.command(db, command);
    }

    /// Records the keys that were found expired. It must precede the changes made to them.
    #[inline]
    pub fn log_expired(&mut self) {
        if self.view.has_removed_expired() {
            self.log_removed();
        }
    }

    #[cold]
    fn log_removed(&mut self) {
        let expired = self.view.take_expired();
        for (db, key) in &expired.keys {
            self.record.expired(*db, key);
        }
        if expired.unlisted > 0 {
            self.record.lose();
        }
        self.server
            .stats
            .expired(expired.keys.len() + expired.unlisted);
    }

    /// Moves the record into the journal, then unlocks the shards. The replies of a session that
    /// `writes` wait for the log even if nothing changed.
    #[inline]
    pub fn commit(self, session: &mut Session, writes: bool) {
        if writes || !self.record.is_empty() {
            session.wrote(self.server.store.journal.append(self.record));
        }
    }
}

impl<'k> Deref for Locked<'k> {
    type Target = View<'k>;

    fn deref(&self) -> &View<'k> {
        &self.view
    }
}

impl<'k> DerefMut for Locked<'k> {
    fn deref_mut(&mut self) -> &mut View<'k> {
        &mut self.view
    }
}
