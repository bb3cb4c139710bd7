//! DEL, UNLINK, EXISTS, TYPE, TOUCH, RENAME, RENAMENX, COPY, MOVE.

use everbloom_commands::number::integer;
use everbloom_commands::table::KeySpec;
use everbloom_commands::{Effect, Outcome};
use everbloom_resp::Reply;

use super::{ALL_KEYS, Call, Command, ONE_KEY, Run, TWO_KEYS, count, error, flag, settle};
use everbloom_files::Value;
use everbloom_store::keyspace::View;

/// The rows of this family.
pub const COMMANDS: &[Command] = &[
    Command {
        arity: -2,
        summary: "Deletes keys.",
        ..row("DEL", &["write"], ALL_KEYS, Run::Write(delete))
    },
    Command {
        arity: -2,
        since: "4.0.0",
        summary: "Deletes keys; their memory is freed later.",
        ..row("UNLINK", &["write", "fast"], ALL_KEYS, Run::Write(delete))
    },
    Command {
        arity: -2,
        summary: "Counts which of the named keys exist.",
        ..row("EXISTS", &["readonly", "fast"], ALL_KEYS, Run::Read(exists))
    },
    Command {
        arity: 2,
        summary: "Names the type of a key's value.",
        ..row("TYPE", &["readonly", "fast"], ONE_KEY, Run::Read(type_of))
    },
    Command {
        arity: -2,
        since: "3.2.1",
        summary: "Counts which of the named keys exist, and notes an access to each.",
        ..row("TOUCH", &["readonly", "fast"], ALL_KEYS, Run::Read(touch))
    },
    Command {
        arity: 3,
        summary: "Renames a key; a key of the new name is replaced.",
        ..row(
            "RENAME",
            &["write"],
            TWO_KEYS,
            Run::Write(|call, view| settle(rename(call, view, true))),
        )
    },
    Command {
        arity: 3,
        summary: "Renames a key unless a key of the new name exists.",
        ..row(
            "RENAMENX",
            &["write", "fast"],
            TWO_KEYS,
            Run::Write(|call, view| settle(rename(call, view, false))),
        )
    },
    Command {
        arity: -3,
        since: "6.2.0",
        summary: "Copies a key's value to another key.",
        ..row(
            "COPY",
            &["write", "denyoom"],
            TWO_KEYS,
            Run::Write(|call, view| settle(copy(call, view))),
        )
    },
    Command {
        arity: 3,
        summary: "Moves a key to another database.",
        ..row(
            "MOVE",
            &["write", "fast"],
            ONE_KEY,
            Run::Write(|call, view| settle(move_key(call, view))),
        )
    },
];

const fn row(
    name: &'static str,
    flags: &'static [&'static str],
    keys: KeySpec,
    run: Run,
) -> Command {
    Command {
        name,
        arity: 0,
        flags,
        keys,
        group: "generic",
        since: "1.0.0",
        summary: "",
        run,
    }
}

fn delete(call: &mut Call<'_>, view: &mut View<'_>) -> Outcome {
    let db = call.session.db;
    let keys = call.args_from(1);
    let deleted = keys.iter().filter(|key| view.delete(db, key)).count();
    if deleted == 0 {
        return Outcome::unchanged(0);
    }
    Outcome::verbatim(count(deleted))
}

fn exists(call: &mut Call<'_>, view: &View<'_>) -> Reply {
    let keys = call.args_from(1).iter();
    count(keys.filter(|key| call.peek(view, key).is_some()).count())
}

fn touch(call: &mut Call<'_>, view: &View<'_>) -> Reply {
    let keys = call.args_from(1).iter();
    count(keys.filter(|key| call.look_up(view, key).is_some()).count())
}

fn type_of(call: &mut Call<'_>, view: &View<'_>) -> Reply {
    let entry = call.peek(view, call.arg(1));
    Reply::simple(entry.map_or("none", |entry| entry.value.type_name()))
}

fn rename(call: &Call<'_>, view: &mut View<'_>, replace: bool) -> Result<Outcome, Reply> {
    let (db, from, to) = (call.session.db, call.arg(1), call.arg(2));
    let done = if replace { Reply::OK } else { flag(true) };
    if !view.contains(db, from) {
        return Err(error::no_such_key());
    }
    if from == to {
        let reply = if replace { Reply::OK } else { flag(false) };
        return Ok(Outcome::unchanged(reply));
    }
    if !replace && view.contains(db, to) {
        return Ok(Outcome::unchanged(flag(false)));
    }
    let Some(entry) = view.take(db, from) else {
        return Err(error::no_such_key());
    };
    let expires_at = entry.expires_at();
    view.insert(db, to, entry.value, expires_at);
    Ok(Outcome::verbatim(done))
}

fn copy(call: &Call<'_>, view: &mut View<'_>) -> Result<Outcome, Reply> {
    let (db, from, to) = (call.session.db, call.arg(1), call.arg(2));
    let options = CopyOptions::parse(call, view)?;
    if options.db == db && from == to {
        return Err(error::same_object());
    }
    let Some(entry) = call.look_up(view, from) else {
        return Ok(Outcome::unchanged(0));
    };
    if !options.replace && view.contains(options.db, to) {
        return Ok(Outcome::unchanged(0));
    }
    let Value::Text(text) = &entry.value else {
        // RedisBloom gives its host no way to copy a filter, and clients may rely on the refusal.
        return Err(Reply::error("ERR not supported for this module key"));
    };
    let (value, expires_at) = (Value::Text(text.clone()), entry.expires_at());
    view.insert(options.db, to, value, expires_at);
    Ok(Outcome::verbatim(1))
}

struct CopyOptions {
    db: usize,
    replace: bool,
}

impl CopyOptions {
    fn parse(call: &Call<'_>, view: &View<'_>) -> Result<Self, Reply> {
        let mut options = CopyOptions {
            db: call.session.db,
            replace: false,
        };
        let mut words = call.args_from(3).iter();
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"REPLACE") {
                options.replace = true;
            } else if word.eq_ignore_ascii_case(b"DB") {
                let number = words.next().ok_or_else(error::syntax)?;
                options.db = db_index(number, view)?;
            } else {
                return Err(error::syntax());
            }
        }
        Ok(options)
    }
}

fn move_key(call: &Call<'_>, view: &mut View<'_>) -> Result<Outcome, Reply> {
    let (db, key) = (call.session.db, call.arg(1));
    let to = db_index(call.arg(2), view)?;
    if to == db {
        return Err(error::same_object());
    }
    if !view.contains(db, key) || view.contains(to, key) {
        return Ok(Outcome::unchanged(0));
    }
    let moved = view.take(db, key);
    let effect = moved.as_ref().map_or(Effect::None, |_| Effect::Verbatim);
    let touched = moved.is_some();
    if let Some(entry) = moved {
        let expires_at = entry.expires_at();
        view.insert(to, key, entry.value, expires_at);
    }
    Ok(Outcome {
        reply: flag(touched),
        effect,
        touched,
    })
}

/// The number of a database that is there.
fn db_index(text: &[u8], view: &View<'_>) -> Result<usize, Reply> {
    let number = int(text)?;
    usize::try_from(number)
        .ok()
        .filter(|index| *index < view.databases())
        .ok_or_else(error::bad_db_index)
}

/// A number of 32 bits.
pub(super) fn int(text: &[u8]) -> Result<i32, Reply> {
    let number = integer(text).ok_or_else(error::not_an_integer)?;
    i32::try_from(number).map_err(|_| error::out_of_int_range())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, bulk, err, int};
    use super::*;

    #[test]
    fn keys_are_counted_deleted_and_typed() {
        let mut bench = Bench::default();
        bench.run("MSET a 1 b 2");
        bench.run("BF.ADD f x");
        assert_eq!(bench.run("EXISTS a a f none"), int(3));
        assert_eq!(bench.run("TOUCH a none f"), int(2));
        assert_eq!(bench.run("TYPE a"), Reply::simple("string"));
        assert_eq!(bench.run("TYPE f"), Reply::simple("MBbloom--"));
        bench.run("BF.RESERVE g 0.01 10 LAYOUT BLOCKED");
        assert_eq!(bench.run("TYPE g"), Reply::simple("everbloom"));
        assert_eq!(bench.run("DEL g"), int(1));
        assert_eq!(bench.run("TYPE none"), Reply::simple("none"));
        assert_eq!(bench.logged("DEL none"), None);
        assert_eq!(bench.logged("DEL a none").unwrap(), "DEL a none");
        assert_eq!(bench.run("UNLINK b b f"), int(2));
        assert_eq!(bench.server.store.keyspace.memory(), 0);
    }

    #[test]
    fn names_change_with_value_and_expiry() {
        let mut bench = Bench::default();
        assert_eq!(bench.run("RENAME a b"), err("ERR no such key"));
        bench.run("SET a 1 PX 5000");
        assert_eq!(bench.run("RENAME a a"), Reply::OK);
        assert_eq!(bench.run("RENAMENX a a"), int(0));
        assert_eq!(bench.run("RENAME a b"), Reply::OK);
        assert_eq!(bench.run("PTTL b"), int(5000));
        bench.run("SET c 2");
        assert_eq!(bench.logged("RENAMENX b c"), None);
        assert_eq!(bench.run("GET c"), bulk("2"));
        assert_eq!(bench.run("RENAME b c"), Reply::OK);
        assert_eq!(bench.run("EXISTS b"), int(0));
        bench.run("BF.ADD f x");
        assert_eq!(bench.run("RENAME f c"), Reply::OK);
        assert_eq!(bench.run("TYPE c"), Reply::simple("MBbloom--"));
    }

    #[test]
    fn copies_and_moves_reach_other_databases() {
        let mut bench = Bench::default();
        bench.run("SET a 1 PX 5000");
        assert_eq!(bench.run("COPY a a"), error::same_object());
        assert_eq!(bench.run("COPY a a DB 1"), int(1));
        assert_eq!(bench.logged("COPY a a DB 1"), None);
        assert_eq!(bench.run("COPY a b REPLACE DB 16"), error::bad_db_index());
        assert_eq!(bench.run("COPY a b DB"), error::syntax());
        assert_eq!(bench.run("COPY none b"), int(0));
        assert_eq!(bench.run("MOVE a 1"), int(0));
        assert_eq!(bench.run("MOVE a 2"), int(1));
        assert_eq!(bench.run("MOVE a 0"), error::same_object());
        assert_eq!(bench.run("MOVE a 99999999999"), error::out_of_int_range());
        bench.session.db = 2;
        assert_eq!(bench.run("PTTL a"), int(5000));
        bench.run("BF.ADD f x");
        let refusal = err("ERR not supported for this module key");
        assert_eq!(bench.run("COPY f g"), refusal);
        assert_eq!(bench.run("COPY f a"), int(0));
        assert_eq!(bench.run("MOVE f 0"), int(1));
        bench.run("BF.RESERVE blocked 0.01 10 LAYOUT BLOCKED");
        assert_eq!(bench.run("COPY blocked g"), refusal);
    }
}
