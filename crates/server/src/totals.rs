//! Totals that INFO, the metrics and the page show: of commands over all workers, and of keys over
//! all shards.

use everbloom_store::keyspace::{SHARDS, View};

use crate::call::Registry;
use crate::server::Server;
use crate::stats::{self, CommandStats, Counter};

/// A command that was sent, and what all workers counted for it.
pub struct Sent {
    /// The command, or the subcommand as in `config|set`.
    pub name: &'static str,
    /// Its index in the registry.
    pub index: usize,
    /// Times it ran.
    pub calls: u64,
    /// Total nanoseconds.
    pub nanos: u64,
    /// Times it was refused before it ran.
    pub rejected: u64,
    /// Times it ran and replied with an error.
    pub failed: u64,
}

/// The commands that were sent.
pub fn sent(registry: &'static Registry, server: &Server) -> impl Iterator<Item = Sent> {
    let sums = registry.all().map(|row| {
        let sum = |of: fn(&CommandStats) -> &Counter| {
            let stats = stats::of_command(&server.workers, row.index);
            stats.map(|it| of(it).get()).sum()
        };
        Sent {
            name: row.name,
            index: row.index,
            calls: sum(|it| &it.calls),
            nanos: sum(|it| &it.nanos),
            rejected: sum(|it| &it.rejected),
            failed: sum(|it| &it.failed),
        }
    });
    sums.filter(|it| it.calls + it.rejected > 0)
}

/// A database that has keys.
pub struct Database {
    /// Its number.
    pub number: usize,
    /// The number of its keys.
    pub keys: usize,
    /// The number of those that expire.
    pub expiring: usize,
    /// The sum of the milliseconds until they expire.
    pub left: u64,
}

/// The databases that have keys. The shards are read one after another.
pub fn databases(view: View<'_>) -> Vec<Database> {
    let empty = |number| Database {
        number,
        keys: 0,
        expiring: 0,
        left: 0,
    };
    let mut sums: Vec<Database> = (0..view.keyspace().databases()).map(empty).collect();
    for index in 0..SHARDS {
        view.with_shard(index, |shard| {
            for (sum, db) in sums.iter_mut().zip(shard.dbs()) {
                sum.keys += db.len();
                sum.expiring += db.expiring();
                sum.left = sum.left.saturating_add(db.time_left(view.now().ms));
            }
        });
    }
    sums.retain(|sum| sum.keys > 0);
    sums
}
