//! Ends the watches of WATCH.

use std::mem;

use everbloom_store::clock::Now;
use everbloom_store::keyspace::{Footprint, Keyspace, ViewMut};

use crate::session::Session;

/// Ends all watches of a connection.
pub fn forget(session: &mut Session, keyspace: &Keyspace, now: Now) {
    let keys = session.watches.iter().map(|watch| watch.key(keyspace));
    let footprint = Footprint::of(keys);
    end(session, keyspace, &mut footprint.write(keyspace, now));
}

/// Ends all watches of a connection; the shards of their keys are locked.
pub fn end(session: &mut Session, keyspace: &Keyspace, view: &mut ViewMut<'_>) {
    session.watched_bytes = 0;
    // The list is freed: after many watches it would take memory that nobody counts.
    for watch in mem::take(&mut session.watches) {
        let key = watch.key(keyspace);
        view.shard(key).unwatch(key);
    }
}
