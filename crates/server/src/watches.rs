//! Ends the watches of WATCH.

use everbloom_store::clock::Now;
use everbloom_store::keyspace::{Footprint, Keyspace, View};

use crate::session::{Session, Watch};

/// Ends all watches of a connection.
pub fn forget(session: &mut Session, keyspace: &Keyspace, now: Now) {
    for watch in session.watches.drain(..) {
        let footprint = Footprint::of_key(keyspace, &watch.key);
        end(&watch, &mut footprint.lock(keyspace, true, now));
    }
}

/// Ends a watch; the shard of its key is locked.
pub fn end(watch: &Watch, view: &mut View<'_>) {
    view.shard_of_key(&watch.key).unwatch(watch.db, &watch.key);
}
