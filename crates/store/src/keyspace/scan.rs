//! Walks all keys with a cursor while they change.
//!
//! Keys are walked shard by shard, and within a shard in the order (`order.rs`) of their hashes.
//! The shard's number and the position make the cursor. A key's position depends only on its name,
//! so a key that exists during the whole walk is seen exactly once, however often its table is
//! rebuilt. One step visits slices wide enough for about `count` keys, each under the lock of its
//! shard.

use super::db::Db;
use super::entry::Entry;
use super::key::SHARDS;
use super::order::{POSITION_BITS, POSITIONS};
use super::view::View;

/// All cursors are below this.
pub const CURSORS: u64 = (SHARDS as u64) << POSITION_BITS;

/// One step of a walk over database `db` from `cursor` (0 at first). Passes about `count` keys, or
/// more, to `found` and returns the cursor of the next step, 0 at the end. Any cursor is a valid
/// position.
pub fn step(
    view: View<'_>,
    db: usize,
    cursor: u64,
    count: usize,
    found: impl FnMut(&Entry),
) -> u64 {
    step_where(view, db, cursor, |_| count.max(1), found)
}

/// The same with a count for each shard's part of the database. Where that is 0, no key is visited.
pub fn step_where(
    view: View<'_>,
    db: usize,
    cursor: u64,
    count: impl Fn(&Db) -> usize,
    mut found: impl FnMut(&Entry),
) -> u64 {
    let (mut shard_number, mut from) = (cursor >> POSITION_BITS, cursor % POSITIONS);
    let mut seen = 0;
    while let Some(index) = usize::try_from(shard_number).ok().filter(|n| *n < SHARDS) {
        let (until, count) = view.with_shard(index, |shard| {
            let keys = shard.db(db);
            let count = count(keys);
            if count == 0 {
                return (POSITIONS, usize::MAX);
            }
            // A slice that holds `count` of the shard's evenly spread keys on average.
            let slices = u64::try_from(keys.len() / count)
                .unwrap_or(1)
                .next_power_of_two();
            let until = (from + POSITIONS / slices).min(POSITIONS);
            keys.slice(from..until, |entry| {
                seen += 1;
                if !entry.is_expired(view.now().ms) {
                    found(entry);
                }
            });
            (until, count)
        });
        from = if until == POSITIONS { 0 } else { until };
        shard_number += u64::from(from == 0);
        if seen >= count {
            break;
        }
    }
    if shard_number >= SHARDS as u64 {
        0
    } else {
        shard_number << POSITION_BITS | from
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::clock::Now;
    use crate::keyspace::{Footprint, Keyspace};
    use everbloom_files::Value;

    fn fill(keyspace: &Keyspace, keys: std::ops::Range<u32>) {
        let mut view = Footprint::Whole.write(keyspace, Now::default());
        for key in keys {
            let name = format!("key:{key}");
            let key = keyspace.key(0, name.as_bytes());
            view.entry(key).insert(Value::Text(Vec::new().into()), None);
        }
    }

    #[test]
    fn a_walk_sees_every_key_once_while_others_come() {
        let keyspace = Keyspace::new(1);
        fill(&keyspace, 0..50_000);
        let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
        let (mut cursor, mut steps) = (0, 0);
        loop {
            // Either no shard is held, or all are, as in a transaction.
            let found = |entry: &Entry| *seen.entry(entry.key().to_vec()).or_default() += 1;
            let now = Now::default();
            cursor = match steps % 2 {
                0 => step(View::of_each(&keyspace, now), 0, cursor, 10, found),
                _ => {
                    let whole = Footprint::Whole.read(&keyspace, now);
                    step(whole.view(), 0, cursor, 10, found)
                }
            };
            steps += 1;
            if cursor == 0 {
                break;
            }
            if steps % 50 == 0 {
                fill(&keyspace, 50_000 + steps * 20..50_000 + steps * 20 + 1000);
            }
        }
        assert!(steps > 1000, "slices are small: {steps}");
        for key in 0..50_000 {
            assert_eq!(
                seen.get(format!("key:{key}").as_bytes()),
                Some(&1),
                "key:{key}"
            );
        }
    }

    #[test]
    fn any_cursor_is_a_place() {
        let keyspace = Keyspace::new(1);
        fill(&keyspace, 0..100);
        let view = View::of_each(&keyspace, Now::default());
        for cursor in [1, u64::MAX, 1 << 63, (1 << 50) - 1, 1 << 50] {
            step(view, 0, cursor, 10, |_| ());
        }
    }
}
