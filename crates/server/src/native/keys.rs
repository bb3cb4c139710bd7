//! DEL, UNLINK, EXISTS, TYPE, TOUCH, RENAME, RENAMENX, COPY, MOVE.

use everbloom_commands::Args;
use everbloom_commands::command::{ONE_KEY, TWO_KEYS};
use everbloom_commands::flags::{DENYOOM, FAST};
use everbloom_commands::key_use::{CREATE, INSPECT, OVERWRITE, READ, TAKE};
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::{Call, Command, counts, error, flag, large, makes, reads, writes};
use crate::call::{CountFn, Outcome};
use crate::locked::Locked;
use everbloom_store::keyspace::{KeyRef, View};
use everbloom_store::reader::Copied;

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Deletes keys.
    counts("del", DELETE).since("1.0.0"),
    /// Deletes keys; their memory is freed later.
    counts("unlink", DELETE).since("4.0.0").flags(&[FAST]),
    /// Counts which of the named keys exist.
    counts("exists", CountFn::Read(|view, key| view.peek(key))).since("1.0.0").flags(&[FAST]),
    /// Names the type of a key's value.
    reads("type", 2, ONE_KEY, type_of).uses(INSPECT).since("1.0.0").flags(&[FAST]),
    /// Counts which of the named keys exist, and notes an access to each.
    counts("touch", CountFn::Read(|view, key| view.get(key))).since("3.2.1").flags(&[FAST]),
    /// Renames a key; a key of the new name is replaced.
    writes("rename", 3, TWO_KEYS, rename).uses(TAKE).uses_others(OVERWRITE).since("1.0.0"),
    /// Renames a key unless a key of the new name exists.
    writes("renamenx", 3, TWO_KEYS, renamenx)
        .uses(TAKE).uses_others(CREATE).since("1.0.0").flags(&[FAST]),
    /// Copies a key's value to another key.
    makes("copy", -3, TWO_KEYS, |call, view| copy(call, view, None, MAX_COPIES)).uses(READ).uses_others(OVERWRITE).since("6.2.0").flags(&[DENYOOM]),
    /// Moves a key to another database.
    writes("move", 3, ONE_KEY, move_key).since("1.0.0").flags(&[FAST]),
};

const DELETE: CountFn = CountFn::Write(|locked, key| locked.entry(key).delete());

fn type_of(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    let entry = call.peek(view, call.key(call.args().next_bytes()?));
    let name = entry.map_or("none", |entry| entry.value.type_name());
    Ok(Reply::simple(name))
}

fn rename(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let [from, to] = two_keys(call, &mut call.args())?;
    if !view.read().contains(from) {
        return Err(error::no_such_key());
    }
    if from.name != to.name {
        transfer(call, view, from, to);
    }
    Ok(Reply::OK)
}

fn renamenx(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let [from, to] = two_keys(call, &mut call.args())?;
    if !view.read().contains(from) {
        return Err(error::no_such_key());
    }
    let is_free = !view.read().contains(to);
    if is_free {
        transfer(call, view, from, to);
    }
    Ok(flag(is_free))
}

fn two_keys<'a>(call: &Call<'_>, args: &mut Args<'a>) -> Result<[KeyRef<'a>; 2], Reply> {
    Ok([call.key(args.next_bytes()?), call.key(args.next_bytes()?)])
}

/// Gives the value of one key to another one, with its expiry.
fn transfer(call: &Call<'_>, view: &mut Locked<'_>, from: KeyRef<'_>, to: KeyRef<'_>) {
    if let Some(entry) = view.entry(from).take() {
        let expires_at = entry.expires_at();
        view.entry(to).insert(entry.value, expires_at);
        view.log(from.db, call.args);
    }
}

/// How often another thread copies a value. It does so again when the value has become another.
const MAX_COPIES: usize = 4;

/// COPY, of which another thread may have made the copy.
fn copy(
    call: &Call<'_>,
    view: &mut Locked<'_>,
    copied: Option<&mut Copied>,
    copies: usize,
) -> Result<Outcome, Reply> {
    let (mut args, mut replace) = (call.args(), false);
    let [from, mut to] = two_keys(call, &mut args)?;
    while let Some(word) = args.next_optional() {
        match word.to_ascii_uppercase().as_slice() {
            b"REPLACE" => replace = true,
            b"DB" => {
                let number = args.next_optional().ok_or_else(error::syntax)?;
                to.db = db_index(number, view.keyspace().databases())?;
            }
            _ => return Err(error::syntax()),
        }
    }
    if to.db == from.db && from.name == to.name {
        return Err(error::same_object());
    }
    let entry = view.read().get(from);
    if copied.is_none() {
        call.count_look_ups(entry.is_some(), 1);
    }
    let Some(entry) = entry else {
        return Ok(flag(false).into());
    };
    if !replace && view.read().contains(to) {
        return Ok(flag(false).into());
    }
    let expires_at = entry.expires_at();
    large::check_fits(&call.context(), &entry.value)?;
    let current = copied.and_then(|copied| copied.current(&entry.value));
    let copy = match current {
        Some(copy) => copy,
        None if copies > 0 && call.leaves(entry.value.stream_len()) => {
            let rest = move |call: &Call<'_>, view: &mut Locked<'_>, copied: &mut Copied| {
                copy(call, view, Some(copied), copies - 1)
            };
            return Ok(large::copy(call, from.name, flag(false), rest));
        }
        None => entry.value.try_clone().ok_or_else(error::out_of_memory)?,
    };
    view.entry(to).insert(copy, expires_at);
    view.log(from.db, call.args);
    Ok(flag(true).into())
}

fn move_key(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let from = call.key(args.next_bytes()?);
    let mut to = from;
    to.db = db_index(args.next_bytes()?, view.keyspace().databases())?;
    if to.db == from.db {
        return Err(error::same_object());
    }
    let moves = view.read().contains(from) && !view.read().contains(to);
    if moves {
        transfer(call, view, from, to);
    }
    Ok(flag(moves))
}

/// The number of an existing database.
pub(super) fn db_index(text: &[u8], databases: usize) -> Result<usize, Reply> {
    let number = integer(text).ok_or_else(error::not_an_integer)?;
    let number = i32::try_from(number).map_err(|_| error::out_of_int_range())?;
    usize::try_from(number)
        .ok()
        .filter(|index| *index < databases)
        .ok_or_else(error::bad_db_index)
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
        assert_eq!(bench.run("COPY f g DB 0"), int(1));
        assert_eq!(bench.logged("COPY f g").unwrap(), "COPY f g");
        assert_eq!(bench.run("COPY f a"), int(0));
        assert_eq!(bench.run("MOVE f 0"), int(1));
        bench.run("BF.RESERVE blocked 0.01 10 LAYOUT BLOCKED");
        assert_eq!(bench.run("COPY blocked g"), int(0));
        assert_eq!(bench.run("COPY blocked g REPLACE"), int(1));
        bench.run("CF.ADD cuckoo x");
        assert_eq!(bench.run("COPY cuckoo c"), int(1));
        bench.run("BF.ADD g only");
        for (line, there) in [
            ("BF.EXISTS g only", true),
            ("BF.EXISTS blocked only", false),
            ("CF.EXISTS c x", true),
        ] {
            assert_eq!(bench.run(line), Reply::Boolean(there), "{line}");
        }
    }
}
