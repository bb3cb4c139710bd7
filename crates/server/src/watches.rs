//! Ends the watches of WATCH.

use everbloom_store::clock::Now;
use everbloom_store::keyspace::{Footprint, Keyspace, View};

use crate::session::Session;

/// Ends all watches of a connection.
pub fn forget(session: &mut Session, keyspace: &Keyspace, now: Now) {
    end(session, |key, end| {
        let mut footprint = Footprint::none();
        footprint.add_key(keyspace, key);
        end(&mut footprint.lock(keyspace, true, now));
    });
}

/// Ends all watches of a session; `with_view` locks the shard of a key.
pub fn end(session: &mut Session, mut with_view: impl FnMut(&[u8], &mut dyn FnMut(&mut View<'_>))) {
    for watch in session.watches.drain(..) {
        with_view(&watch.key, &mut |view| {
            view.shard_of_key(&watch.key).unwatch(watch.db, &watch.key);
        });
    }
}
