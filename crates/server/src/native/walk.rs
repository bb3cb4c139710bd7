//! KEYS, SCAN, RANDOMKEY, DBSIZE, FLUSHDB, FLUSHALL, SWAPDB: commands on all keys.

use std::ops::Range;

use everbloom_commands::flags::{FAST, READONLY, WRITE};
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::Handler::{ReadEach, WriteAll};
use super::{Call, Command, append, count, error};
use crate::glob;
use crate::locked::Locked;
use crate::system;
use everbloom_store::keyspace::{Entry, SHARDS, View, scan};

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Lists the keys whose names match a pattern.
    Command::new("keys", 2, ReadEach(keys)).since("1.0.0").flags(&[READONLY]),
    /// Walks the keys in steps.
    Command::new("scan", -2, ReadEach(scan)).since("2.8.0").flags(&[READONLY]),
    /// Names any key.
    Command::new("randomkey", 1, ReadEach(random_key)).since("1.0.0").flags(&[READONLY]),
    /// Counts the keys.
    Command::new("dbsize", 1, ReadEach(db_size))
        .since("1.0.0").flags(&[READONLY, FAST]).group("server"),
    /// Deletes all keys of the database.
    Command::new("flushdb", -1, WriteAll(flush_db)).since("1.0.0").flags(&[WRITE]).group("server"),
    /// Deletes all keys of all databases.
    Command::new("flushall", -1, WriteAll(flush_all))
        .since("1.0.0").flags(&[WRITE]).group("server"),
    /// Exchanges two databases.
    Command::new("swapdb", 3, WriteAll(swap)).since("4.0.0").flags(&[WRITE, FAST]).group("server"),
};

/// A pattern; `None` when every name matches it.
fn pattern(text: &[u8]) -> Option<&[u8]> {
    (text != b"*").then_some(text)
}

fn name_matches(entry: &Entry, pattern: Option<&[u8]>) -> bool {
    pattern.is_none_or(|pattern| match entry.key() {
        // In Redis only the pattern `*` itself finds the key with the empty name; other patterns of
        // stars do not.
        [] => pattern.is_empty(),
        name => glob::matches(pattern, name),
    })
}

/// The names in a reply.
struct Names<'c> {
    call: &'c Call<'c>,
    list: Vec<Reply>,
    /// Bytes that they take in memory.
    bytes: usize,
    /// At so many bytes the limit of a reply is checked again.
    checked: usize,
}

impl<'c> Names<'c> {
    fn new(call: &'c Call<'c>) -> Self {
        Names {
            call,
            list: Vec::new(),
            bytes: 0,
            checked: 0,
        }
    }

    /// Adds the name of an entry, if the reply does not become too large.
    fn add(&mut self, entry: &Entry) -> Result<(), Reply> {
        const CHECK_BYTES: usize = 1 << 20;
        self.bytes += entry.key().len() + 2 * size_of::<Reply>();
        if self.bytes >= self.checked {
            self.call.check_list_reply(self.bytes)?;
            self.checked = self.bytes + CHECK_BYTES;
        }
        append(&mut self.list, Reply::bulk(entry.key()))
    }
}

fn keys(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    let pattern = pattern(call.args().next_bytes()?);
    let mut names = Names::new(call);
    for index in 0..SHARDS {
        view.with_shard(index, |shard| {
            let entries = shard.db(call.session.db).iter(call.now.ms);
            let mut found = entries.filter(|(_, entry)| name_matches(entry, pattern));
            found.try_for_each(|(_, entry)| names.add(entry))
        })?;
    }
    Ok(Reply::Array(names.list))
}

fn db_size(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    Ok(count(len(view, call.session.db)))
}

/// The number of keys in a database, including expired ones that are not yet removed.
fn len(view: View<'_>, db: usize) -> usize {
    let of = |index| view.with_shard(index, |shard| shard.db(db).len());
    (0..SHARDS).map(of).sum()
}

fn scan(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let cursor = str::from_utf8(args.next_bytes()?).map(str::parse);
    let Ok(Ok(cursor)) = cursor else {
        return Err(Reply::error("ERR invalid cursor"));
    };
    let (mut name, mut type_name, mut count) = (None, None, 10);
    while let Some(word) = args.next_optional() {
        let value = args.next_optional().ok_or_else(error::syntax)?;
        match word.to_ascii_uppercase().as_slice() {
            b"MATCH" => name = pattern(value),
            // Up to version 7, of a type that nobody knows there are no keys.
            b"TYPE" => type_name = Some(value),
            b"COUNT" => {
                let number = integer(value).ok_or_else(error::not_an_integer)?;
                let number = usize::try_from(number).ok().filter(|number| *number > 0);
                count = number.ok_or_else(error::syntax)?;
            }
            _ => return Err(error::syntax()),
        }
    }
    let has_type = |entry: &Entry, wanted: &[u8]| {
        // Redis looks up the key to learn its type, and counts that.
        call.stats.keyspace_hits.add(1);
        let name = entry.value.type_name().as_bytes();
        name.eq_ignore_ascii_case(wanted)
    };
    let (mut found, mut listed) = (Names::new(call), Ok(()));
    let next = scan::step(view, call.session.db, cursor, count, |entry| {
        if name_matches(entry, name) && type_name.is_none_or(|wanted| has_type(entry, wanted)) {
            listed = listed.clone().and_then(|()| found.add(entry));
        }
    });
    listed?;
    Ok(Reply::Array(vec![
        Reply::bulk(next.to_string()),
        Reply::Array(found.list),
    ]))
}

/// A key after a random position of a walk, or the first of all behind the last one.
fn random_key(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    for mut cursor in [system::random_below(scan::CURSORS), 0] {
        loop {
            let mut name = None;
            cursor = scan::step(view, call.session.db, cursor, 1, |entry| {
                name.get_or_insert_with(|| Reply::bulk(entry.key()));
            });
            if let Some(name) = name {
                return Ok(name);
            }
            if cursor == 0 {
                break;
            }
        }
    }
    Ok(Reply::Null)
}

/// ASYNC and SYNC do the same here: a separate thread frees large amounts of memory.
fn flush(call: &Call<'_>, view: &mut Locked<'_>, dbs: Range<usize>) -> Result<Reply, Reply> {
    match call.args().rest() {
        [] => {}
        [mode] if mode.eq_ignore_ascii_case(b"SYNC") || mode.eq_ignore_ascii_case(b"ASYNC") => {}
        _ => return Err(error::syntax()),
    }
    let keys: usize = dbs.map(|db| view.flush(db)).sum();
    if keys > 0 {
        view.log(call.session.db, call.args);
    }
    Ok(Reply::OK)
}

fn flush_db(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let db = call.session.db;
    flush(call, view, db..db + 1)
}

fn flush_all(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let all = 0..view.keyspace().databases();
    flush(call, view, all)
}

fn swap(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let mut number = |which: &str| {
        integer(args.next_bytes()?)
            .and_then(|number| i32::try_from(number).ok())
            .ok_or_else(|| Reply::error(format!("ERR invalid {which} DB index")))
    };
    let (a, b) = (number("first")?, number("second")?);
    let index = |number: i32| {
        usize::try_from(number)
            .ok()
            .filter(|index| *index < view.keyspace().databases())
            .ok_or_else(error::bad_db_index)
    };
    let (a, b) = (index(a)?, index(b)?);
    if a == b {
        return Ok(Reply::OK);
    }
    view.swap(a, b);
    view.log(call.session.db, call.args);
    Ok(Reply::OK)
}

#[cfg(test)]
mod tests {
    use super::super::table::registry;
    use super::super::testing::{Bench, bulk, err, int};
    use super::*;

    fn names(reply: Reply) -> Vec<String> {
        let Reply::Array(names) = reply else {
            panic!("{reply:?}");
        };
        let text = |name: &Reply| String::from_utf8(name.as_bytes().unwrap().to_vec()).unwrap();
        let mut names: Vec<String> = names.iter().map(text).collect();
        names.sort();
        names
    }

    fn scan_all(bench: &mut Bench, options: &str) -> Vec<String> {
        let (mut cursor, mut all) = ("0".to_owned(), Vec::new());
        loop {
            let Reply::Array(step) = bench.run(&format!("SCAN {cursor}{options}")) else {
                panic!("an array");
            };
            let [next, found] = <[Reply; 2]>::try_from(step).unwrap();
            cursor = String::from_utf8(next.as_bytes().unwrap().to_vec()).unwrap();
            all.extend(names(found));
            if cursor == "0" {
                all.sort();
                return all;
            }
        }
    }

    #[test]
    fn keys_are_found_by_pattern_and_type() {
        let mut bench = Bench::default();
        bench.run("MSET a1 1 a2 2 b1 3");
        bench.run("BF.ADD f1 x");
        bench.run("SET gone 1 PX 10");
        bench.wait(10);
        assert_eq!(names(bench.run("KEYS *")), ["a1", "a2", "b1", "f1"]);
        assert_eq!(names(bench.run("KEYS a?")), ["a1", "a2"]);
        assert_eq!(scan_all(&mut bench, ""), ["a1", "a2", "b1", "f1"]);
        assert_eq!(
            scan_all(&mut bench, " MATCH *1 COUNT 1"),
            ["a1", "b1", "f1"]
        );
        assert_eq!(scan_all(&mut bench, " TYPE mbbloom--"), ["f1"]);
        bench.run("BF.RESERVE e1 0.01 10 LAYOUT BLOCKED");
        assert_eq!(scan_all(&mut bench, " TYPE everbloom"), ["e1"]);
        bench.run("CF.RESERVE d1 10 ERROR 0.01");
        assert_eq!(scan_all(&mut bench, " TYPE everblmcf"), ["d1"]);
        assert_eq!(scan_all(&mut bench, " type string match b*"), ["b1"]);
        assert!(scan_all(&mut bench, " TYPE list").is_empty());
    }

    #[test]
    fn scan_refuses_what_redis_refuses() {
        let mut bench = Bench::default();
        for cursor in ["x", "1x", "-", "18446744073709551616"] {
            let reply = bench.run(&format!("SCAN {cursor}"));
            assert_eq!(reply, err("ERR invalid cursor"), "{cursor}");
        }
        assert_eq!(bench.run("SCAN x COUNT x"), err("ERR invalid cursor"));
        assert_eq!(bench.run("SCAN 0 COUNT 0"), error::syntax());
        assert_eq!(bench.run("SCAN 0 COUNT x"), error::not_an_integer());
        assert_eq!(bench.run("SCAN 0 MATCH"), error::syntax());
        assert_eq!(bench.run("SCAN 0 NOPE x"), error::syntax());
        for name in ["ZSET", "MBbloomCF", "bloomfltr", "nosuchtype"] {
            assert!(!bench.run(&format!("SCAN 0 TYPE {name}")).is_error());
        }
    }

    #[test]
    fn commands_that_look_at_all_keys_lock_one_shard_at_a_time() {
        for name in ["INFO", "SCAN", "KEYS", "DBSIZE", "RANDOMKEY"] {
            let row = registry().find(name.as_bytes()).unwrap();
            assert!(matches!(row.handler, ReadEach(_)), "{name}");
        }
    }

    #[test]
    fn any_key_is_one_that_is_there() {
        let mut bench = Bench::default();
        assert_eq!(bench.run("RANDOMKEY"), Reply::Null);
        for n in 0..20 {
            bench.run(&format!("SET gone{n} 1 PX 10"));
        }
        bench.run("SET here 1");
        bench.wait(10);
        assert_eq!(bench.run("RANDOMKEY"), bulk("here"));
        bench.run("SET there 1");
        let mut seen: Vec<Reply> = (0..200).map(|_| bench.run("RANDOMKEY")).collect();
        seen.sort_by_key(|key| key.as_bytes().map(<[u8]>::to_vec));
        seen.dedup();
        assert_eq!(seen, [bulk("here"), bulk("there")]);
    }

    #[test]
    fn databases_are_emptied_and_exchanged() {
        let mut bench = Bench::default();
        bench.run("MSET a 1 b 2");
        assert_eq!(bench.run("SWAPDB 0 1"), Reply::OK);
        assert_eq!(bench.run("DBSIZE"), int(0));
        assert_eq!(bench.logged("FLUSHDB"), None);
        bench.session.db = 1;
        assert_eq!(bench.run("DBSIZE"), int(2));
        assert_eq!(bench.run("SWAPDB 0 16"), error::bad_db_index());
        assert_eq!(bench.run("SWAPDB x 99"), err("ERR invalid first DB index"));
        assert_eq!(bench.run("SWAPDB 99 x"), err("ERR invalid second DB index"));
        assert_eq!(bench.logged("SWAPDB 3 3"), None);
        assert_eq!(bench.run("FLUSHALL NOW"), error::syntax());
        assert_eq!(bench.run("FLUSHALL ASYNC SYNC"), error::syntax());
        assert_eq!(bench.logged("FLUSHALL async").unwrap(), "FLUSHALL async");
        assert_eq!(bench.run("DBSIZE"), int(0));
        assert_eq!(bench.server.store.keyspace.memory(), 0);
    }
}
