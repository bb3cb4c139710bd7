//! What must end with its owner: readers, captures, jobs and locks.

use everbloom_store::keyspace::SHARDS;

use super::{Verdict, World};
use crate::server::Connection;

impl World {
    /// Checks after each step what the server counts, and looks at each value when nobody reads.
    pub(super) fn check_owners(&self) -> Verdict {
        let threads = self.machine.threads();
        let runs = |name: &str| threads.iter().any(|thread| thread.1 == name);
        // SAVE waits for a disk that hangs.
        let job = runs("save") || runs("rewrite") || runs("commands");
        let work = runs("work") || self.clients.iter().any(Connection::is_waiting);
        let server = &self.instance().server;
        if !job && self.instance().persistence().is_busy() {
            return Err("no job runs, and none may begin".into());
        }
        if !work && server.holds.any() {
            return Err("a key is held, and no work holds it".into());
        }
        let readers = server.store.keyspace.readers();
        if !job && !work && readers > 0 {
            return Err(format!("{readers} readers are left, and nobody reads"));
        }
        Ok(())
    }

    /// Looks at every database and value.
    pub(super) fn check_no_reader(&self) -> Verdict {
        let threads = self.machine.threads();
        let keyspace = &self.instance().server.store.keyspace;
        let is_joined = |index| {
            let shard = keyspace.shard(index).read();
            shard.dbs().iter().any(|db| db.is_in_snapshot())
        };
        let job = |name: &str| ["save", "rewrite", "commands"].contains(&name);
        if !threads.iter().any(|thread| job(&thread.1)) && (0..SHARDS).any(is_joined) {
            return Err("a database is in a snapshot that has ended".into());
        }
        let waiting = self.clients.iter().any(Connection::is_waiting);
        if !threads.is_empty() || waiting {
            return Ok(());
        }
        let mut read = None;
        self.instance().each(|key, _, value| {
            if value.capture().ids().next().is_some() {
                read = Some(key.to_owned());
            }
        });
        match read {
            Some(key) => Err(format!("{key} has a reader, and nobody reads it")),
            None => Ok(()),
        }
    }
}
