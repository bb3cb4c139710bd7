//! KEYS, SCAN, RANDOMKEY, DBSIZE, FLUSHDB, FLUSHALL, SWAPDB: what works on all keys.

use everbloom_commands::Outcome;
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::{Call, Command, NO_KEY, Run, answer, count, error, settle};
use crate::glob;
use crate::stats::WorkerStats;
use crate::system;
use everbloom_store::keyspace::{Entry, View, scan};

/// The rows of this family.
pub const COMMANDS: &[Command] = &[
    Command {
        arity: 2,
        summary: "Lists the keys whose names match a pattern.",
        ..row("KEYS", &["readonly"], Run::ReadAll(keys))
    },
    Command {
        arity: -2,
        since: "2.8.0",
        summary: "Walks the keys in steps.",
        ..row(
            "SCAN",
            &["readonly"],
            Run::ReadAll(|call, view| answer(scan(call, view))),
        )
    },
    Command {
        arity: 1,
        summary: "Names any key.",
        ..row("RANDOMKEY", &["readonly"], Run::ReadAll(random_key))
    },
    Command {
        arity: 1,
        group: "server",
        summary: "Counts the keys.",
        ..row("DBSIZE", &["readonly", "fast"], Run::ReadAll(db_size))
    },
    Command {
        arity: -1,
        group: "server",
        summary: "Deletes all keys of the database.",
        ..row(
            "FLUSHDB",
            &["write"],
            Run::WriteAll(|call, view| settle(flush_db(call, view))),
        )
    },
    Command {
        arity: -1,
        group: "server",
        summary: "Deletes all keys of all databases.",
        ..row(
            "FLUSHALL",
            &["write"],
            Run::WriteAll(|call, view| settle(flush_all(call, view))),
        )
    },
    Command {
        arity: 3,
        group: "server",
        since: "4.0.0",
        summary: "Exchanges two databases.",
        ..row(
            "SWAPDB",
            &["write", "fast"],
            Run::WriteAll(|call, view| settle(swap(call, view))),
        )
    },
];

const fn row(name: &'static str, flags: &'static [&'static str], run: Run) -> Command {
    Command {
        name,
        arity: 0,
        flags,
        keys: NO_KEY,
        group: "generic",
        since: "1.0.0",
        summary: "",
        run,
    }
}

/// A pattern; none when every name matches it.
fn pattern(text: &[u8]) -> Option<&[u8]> {
    (text != b"*").then_some(text)
}

fn name_matches(entry: &Entry, pattern: Option<&[u8]>) -> bool {
    pattern.is_none_or(|pattern| match entry.key() {
        // In Redis a pattern of stars does not find the key without a name, but for `*` itself.
        [] => pattern.is_empty(),
        name => glob::matches(pattern, name),
    })
}

fn keys(call: &mut Call<'_>, view: &View<'_>) -> Reply {
    let pattern = pattern(call.arg(1));
    let entries = view.entries(call.session.db).map(|(_, entry)| entry);
    let found = entries.filter(|entry| name_matches(entry, pattern));
    Reply::Array(found.map(|entry| Reply::bulk(entry.key())).collect())
}

/// What SCAN looks for.
struct Search<'a> {
    pattern: Option<&'a [u8]>,
    type_name: Option<&'a [u8]>,
    count: usize,
}

impl<'a> Search<'a> {
    fn parse(words: &'a [&'a [u8]]) -> Result<Self, Reply> {
        let mut search = Search {
            pattern: None,
            type_name: None,
            count: 10,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(error::syntax)?;
            match word.to_ascii_uppercase().as_slice() {
                b"MATCH" => search.pattern = pattern(value),
                b"TYPE" => search.type_name = Some(value),
                b"COUNT" => {
                    let count = integer(value).ok_or_else(error::not_an_integer)?;
                    search.count = usize::try_from(count)
                        .ok()
                        .filter(|count| *count > 0)
                        .ok_or_else(error::syntax)?;
                }
                _ => return Err(error::syntax()),
            }
        }
        Ok(search)
    }

    fn finds(&self, entry: &Entry, stats: &WorkerStats) -> bool {
        if !name_matches(entry, self.pattern) {
            return false;
        }
        self.type_name.is_none_or(|wanted| {
            // Redis looks the key up to learn its type, and counts that.
            stats.keyspace_hits.add(1);
            let name = entry.value.type_name().as_bytes();
            name.eq_ignore_ascii_case(wanted)
        })
    }
}

fn scan(call: &Call<'_>, view: &View<'_>) -> Result<Reply, Reply> {
    let cursor = cursor(call.arg(1)).ok_or_else(|| Reply::error("ERR invalid cursor"))?;
    let search = Search::parse(call.args_from(2))?;
    let mut found = Vec::new();
    let next = scan::step(view, call.session.db, cursor, search.count, |entry| {
        if search.finds(entry, call.stats) {
            found.push(Reply::bulk(entry.key()));
        }
    });
    Ok(Reply::Array(vec![
        Reply::bulk(next.to_string()),
        Reply::Array(found),
    ]))
}

/// A cursor as C's `strtoul` reads it, since Redis does: a sign is allowed, nothing at all is 0, and
/// a zero byte is the end.
fn cursor(text: &[u8]) -> Option<u64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let (negative, digits) = match text {
        [] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative {
        number.wrapping_neg()
    } else {
        number
    })
}

fn random_key(call: &mut Call<'_>, view: &View<'_>) -> Reply {
    let db = call.session.db;
    // A few tries at keys that have not expired; then the first one that has not.
    const TRIES: usize = 16;
    let any = (0..TRIES)
        .find_map(|_| nth_key(view, db, system::random_below(view.len(db))))
        .or_else(|| view.entries(db).map(|(_, entry)| entry).next());
    any.map_or(Reply::Null, |entry| Reply::bulk(entry.key()))
}

/// The `n`-th key, expired ones counted, or `None` if no key alive is there.
fn nth_key<'v>(view: &'v View<'_>, db: usize, n: usize) -> Option<&'v Entry> {
    let mut left = n;
    let (_, shard) = view.shards().find(|(_, shard)| {
        let len = shard.db(db).len();
        let here = left < len;
        left -= if here { 0 } else { len };
        here
    })?;
    let mut entries = shard.db(db).iter(view.now().ms);
    entries.nth(left).map(|(_, entry)| entry)
}

fn db_size(call: &mut Call<'_>, view: &View<'_>) -> Reply {
    count(view.len(call.session.db))
}

/// ASYNC and SYNC are the same here: memory is freed after the locks are.
fn check_flush_mode(call: &Call<'_>) -> Result<(), Reply> {
    match call.args_from(1) {
        [] => Ok(()),
        [mode] if mode.eq_ignore_ascii_case(b"SYNC") || mode.eq_ignore_ascii_case(b"ASYNC") => {
            Ok(())
        }
        _ => Err(error::syntax()),
    }
}

fn flush_db(call: &Call<'_>, view: &mut View<'_>) -> Result<Outcome, Reply> {
    check_flush_mode(call)?;
    Ok(flushed(view.flush(call.session.db)))
}

fn flush_all(call: &Call<'_>, view: &mut View<'_>) -> Result<Outcome, Reply> {
    check_flush_mode(call)?;
    let keys = (0..view.databases()).map(|db| view.flush(db)).sum();
    Ok(flushed(keys))
}

fn flushed(keys: usize) -> Outcome {
    if keys == 0 {
        return Outcome::unchanged(Reply::OK);
    }
    Outcome::verbatim(Reply::OK)
}

fn swap(call: &Call<'_>, view: &mut View<'_>) -> Result<Outcome, Reply> {
    let number = |at: usize, which: &str| {
        integer(call.arg(at))
            .and_then(|number| i32::try_from(number).ok())
            .ok_or_else(|| Reply::error(format!("ERR invalid {which} DB index")))
    };
    let (a, b) = (number(1, "first")?, number(2, "second")?);
    let index = |number: i32| {
        usize::try_from(number)
            .ok()
            .filter(|index| *index < view.databases())
            .ok_or_else(error::bad_db_index)
    };
    let (a, b) = (index(a)?, index(b)?);
    if a == b {
        return Ok(Outcome::unchanged(Reply::OK));
    }
    view.swap(a, b);
    Ok(Outcome::verbatim(Reply::OK))
}

#[cfg(test)]
mod tests {
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
        assert_eq!(scan_all(&mut bench, " type string match b*"), ["b1"]);
        assert!(scan_all(&mut bench, " TYPE list").is_empty());
    }

    #[test]
    fn scan_refuses_what_redis_refuses() {
        let mut bench = Bench::default();
        for cursor in ["x", "1x", "-", " 1", "18446744073709551616"] {
            assert!(super::cursor(cursor.as_bytes()).is_none(), "{cursor}");
        }
        assert_eq!(bench.run("SCAN x COUNT x"), err("ERR invalid cursor"));
        assert_eq!(bench.run("SCAN 0 COUNT 0"), error::syntax());
        assert_eq!(bench.run("SCAN 0 COUNT x"), error::not_an_integer());
        assert_eq!(bench.run("SCAN 0 MATCH"), error::syntax());
        assert_eq!(bench.run("SCAN 0 NOPE x"), error::syntax());
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
