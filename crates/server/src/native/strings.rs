//! GET, MGET, MSET, MSETNX, STRLEN, APPEND, GETRANGE, SUBSTR, SETRANGE.

use std::ops::Range;

use everbloom_commands::Args;
use everbloom_commands::command::{ALL_KEYS, KeySpec, ONE_KEY};
use everbloom_commands::flags::{DENYOOM, FAST};
use everbloom_commands::key_use::{CREATE, INSERT, INSPECT, OVERWRITE, UPDATE};
use everbloom_resp::Reply;

use super::{
    Call, Command, Selected, bulk, count, error, flag, gather, next_integer, reads, selects, writes,
};
use crate::locked::Locked;
use everbloom_files::{OutOfMemory, Text, Value};
use everbloom_store::keyspace::{Entry, KeyRef, ValueSlot, View, ViewMut};

/// Every other argument is a key.
const PAIRS: KeySpec = KeySpec::new(1, -1, 2);

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Returns a key's string.
    selects("get", 2, get).since("1.0.0").flags(&[FAST]),
    /// Returns the strings of several keys.
    reads("mget", -2, ALL_KEYS, mget).since("1.0.0").flags(&[FAST]),
    /// Sets several keys to strings.
    writes("mset", -3, PAIRS, mset)
        .uses(OVERWRITE).since("1.0.1").flags(&[DENYOOM]),
    /// Sets several keys to strings if none of them exists.
    writes("msetnx", -3, PAIRS, msetnx)
        .uses(CREATE).since("1.0.1").flags(&[DENYOOM]),
    /// Returns the length of a key's string.
    reads("strlen", 2, ONE_KEY, strlen).uses(INSPECT).since("2.2.0").flags(&[FAST]),
    /// Appends to a key's string.
    writes("append", 3, ONE_KEY, append).uses(INSERT).since("2.0.0").flags(&[DENYOOM, FAST]),
    /// Returns a part of a key's string.
    selects("getrange", 4, getrange).since("2.4.0"),
    /// Returns a part of a key's string.
    selects("substr", 4, getrange).since("1.0.0"),
    /// Overwrites a part of a key's string.
    writes("setrange", 4, ONE_KEY, setrange).uses(UPDATE).since("2.2.0").flags(&[DENYOOM]),
};

/// The string of an entry, or the error of a command that needs one.
pub(super) fn text_of(entry: Option<&Entry>) -> Result<Option<&[u8]>, Reply> {
    text_in(entry.map(|entry| &entry.value))
}

/// The same of a value.
fn text_in(value: Option<&Value>) -> Result<Option<&[u8]>, Reply> {
    match value {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(Value::Filter(_)) => Err(error::wrong_type()),
    }
}

/// A string as a value.
pub(super) fn new_text(bytes: &[u8]) -> Result<Value, Reply> {
    let text = Text::copy_of(bytes);
    text.map(Value::Text).map_err(|_| error::out_of_memory())
}

fn get(_: &[&[u8]], value: Option<&Value>) -> Result<Selected, Reply> {
    Ok(match text_in(value)? {
        None => Selected::Reply(Reply::Null),
        Some(text) => Selected::Bytes(None, 0..text.len() as u64),
    })
}

fn mget(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    let keys = call.args().rest().iter();
    let text = |key: &&[u8]| text_of(call.look_up(view, call.key(key))).ok().flatten();
    let texts: Vec<Option<&[u8]>> = gather(keys.map(|key| Ok(text(key))))?;
    let bytes = texts
        .iter()
        .fold(0, |sum: usize, text| sum.saturating_add(bytes_of(*text)));
    call.check_list_reply(bytes)?;
    let texts = texts.iter();
    Ok(Reply::Array(gather(
        texts.map(|text| text.map_or(Ok(Reply::Null), bulk)),
    )?))
}

/// At least the bytes that a string takes in a reply.
fn bytes_of(text: Option<&[u8]>) -> usize {
    const FRAMING: usize = 32;
    text.map_or(0, <[u8]>::len).saturating_add(FRAMING)
}

fn mset(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    set_all(call, view, call.args().next_pairs()?)?;
    Ok(Reply::OK)
}

fn msetnx(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let pairs = call.args().next_pairs()?;
    let mut names = pairs.iter().map(|[name, _]| name);
    let are_new = !names.any(|name| view.read().contains(call.key(name)));
    if are_new {
        set_all(call, view, pairs)?;
    }
    Ok(flag(are_new))
}

fn set_all(call: &Call<'_>, view: &mut Locked<'_>, pairs: &[[&[u8]; 2]]) -> Result<(), Reply> {
    let texts = gather(pairs.iter().map(|[_, text]| new_text(text)))?;
    for ([name, _], text) in pairs.iter().zip(texts) {
        view.entry(call.key(name)).insert(text, None);
    }
    view.log(call.session.db, call.args);
    Ok(())
}

fn strlen(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    let text = text_of(call.look_up(view, call.key(call.args().next_bytes()?)))?;
    Ok(count(text.map_or(0, <[u8]>::len)))
}

/// The length of a string to be written, if it is allowed.
fn checked_len(call: &Call<'_>, len: usize, more: usize) -> Result<usize, Reply> {
    len.checked_add(more)
        .filter(|total| *total <= call.settings.proto_max_bulk_len)
        .ok_or_else(error::string_too_long)
}

/// Changes the string of a key that holds no filter, a new one if there is none. Without memory
/// nothing changes.
pub(super) fn change<R>(
    view: &mut ViewMut<'_>,
    key: KeyRef<'_>,
    change: impl FnOnce(&mut Text) -> Result<R, OutOfMemory>,
) -> Result<R, Reply> {
    let mut entry = view.entry(key);
    let (changed, _) = entry.change(|found| match found {
        ValueSlot::Held(Value::Text(text)) => change(text).map_err(|_| error::out_of_memory()),
        ValueSlot::Held(Value::Filter(_)) => Err(error::wrong_type()),
        ValueSlot::Vacant(value) => {
            let mut text = Text::default();
            let changed = change(&mut text).map_err(|_| error::out_of_memory())?;
            *value = Some(Value::Text(text));
            Ok(changed)
        }
    });
    if changed.is_ok() {
        entry.touch();
    }
    changed
}

fn append(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let (key, more) = (call.key(args.next_bytes()?), args.next_bytes()?);
    let len = text_of(view.read().get(key))?.map_or(0, <[u8]>::len);
    let total = checked_len(call, len, more.len())?;
    change(view, key, |text| text.append(more))?;
    view.log(key.db, call.args);
    Ok(count(total))
}

fn getrange(request: &[&[u8]], value: Option<&Value>) -> Result<Selected, Reply> {
    let mut args = Args::new("getrange", request);
    args.next_bytes()?;
    let (start, end) = (next_integer(&mut args)?, next_integer(&mut args)?);
    let len = text_in(value)?.map_or(0, <[u8]>::len);
    Ok(Selected::Bytes(None, part(start, end, len as u64)))
}

/// The part that GETRANGE returns of a string of this length.
fn part(start: i64, end: i64, len: u64) -> Range<u64> {
    match is_backwards(start, end) {
        true => 0..0,
        false => inclusive(start, end, len),
    }
}

/// Redis's own rule: without it -1 -2 would be clamped to a range of one byte in a short string.
pub(super) fn is_backwards(first: i64, last: i64) -> bool {
    first < 0 && last < 0 && first > last
}

/// The indexes from `first` to `last`, both included, among `len`. Either may count from the end.
/// Before the start becomes the start.
pub(super) fn inclusive(first: i64, last: i64, len: u64) -> Range<u64> {
    let from_start = |index: i64| match index {
        0.. => index.unsigned_abs(),
        _ => len.saturating_sub(index.unsigned_abs()),
    };
    let end = from_start(last).saturating_add(1).min(len);
    from_start(first).min(end)..end
}

fn setrange(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let (key, offset, part) = (
        call.key(args.next_bytes()?),
        next_integer(&mut args)?,
        args.next_bytes()?,
    );
    let offset = usize::try_from(offset).map_err(|_| Reply::error("ERR offset is out of range"))?;
    let text = text_of(view.read().get(key))?;
    if part.is_empty() {
        let len = text.map_or(0, <[u8]>::len);
        return Ok(count(len));
    }
    let end = checked_len(call, offset, part.len())?;
    let len = change(view, key, |text| {
        text.fill_up(end)?;
        text.part_mut(offset..end).copy_from_slice(part);
        Ok(text.len())
    })?;
    view.log(key.db, call.args);
    Ok(count(len))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, bulk, err, int};
    use super::*;
    use crate::config::Settings;

    /// As in Redis, a long string reserves up to 1 MiB more than it holds. If it doubled, a string
    /// that grew by a byte would count twice.
    #[test]
    fn a_long_string_that_grows_counts_little_more_than_it_holds() {
        let mut bench = Bench::default();
        for grow in [
            "SETBIT k 160000000 1",
            "SETRANGE k 20000000 x",
            "APPEND k x",
            "BITFIELD k SET u8 160000000 1",
        ] {
            assert_eq!(bench.run("SETBIT k 159999999 1"), int(0));
            let used = bench.server.used_memory();
            bench.run(grow);
            assert_eq!(bench.run("STRLEN k"), int(20_000_001));
            let more = bench.server.used_memory() - used;
            assert!(more < 2_000_000, "{grow}: {more}");
            let usage = bench.run("MEMORY USAGE k").as_integer().unwrap();
            assert!((20_000_001..22_000_000).contains(&usage), "{grow}: {usage}");
            bench.run("DEL k");
        }
    }

    #[test]
    fn strings_are_read_and_written_many_at_a_time() {
        let mut bench = Bench::default();
        assert_eq!(bench.run("MSET a 1 b 2 a 3"), Reply::OK);
        bench.run("BF.ADD f x");
        assert_eq!(
            bench.run("MGET a f none b"),
            Reply::Array(vec![bulk("3"), Reply::Null, Reply::Null, bulk("2")])
        );
        assert_eq!(bench.run("GET f"), error::wrong_type());
        assert_eq!(
            bench.run("MSET a 1 b"),
            err("ERR wrong number of arguments for 'mset' command")
        );
        assert_eq!(bench.logged("MSETNX c 1 f 2"), None);
        assert_eq!(bench.run("EXISTS c"), int(0));
        assert_eq!(bench.run("MSETNX c 1 c 2"), int(1));
        assert_eq!(bench.run("MSET f 1"), Reply::OK);
        assert_eq!(bench.run("STRLEN f"), int(1));
    }

    #[test]
    fn parts_are_read_from_either_end() {
        let mut bench = Bench::default();
        bench.run("SET a hello");
        for (range, part) in [
            ("0 -1", "hello"),
            ("1 3", "ell"),
            ("-3 -2", "ll"),
            ("-100 1", "he"),
            ("3 100", "lo"),
            ("5 9", ""),
            ("3 1", ""),
            ("-1 -100", ""),
            // Up to version 7, an end before the string is its first byte.
            ("-100 -99", "h"),
            ("0 -5", "h"),
            ("0 -6", "h"),
            ("0 -9223372036854775808", "h"),
            ("1 -100", ""),
            ("9223372036854775807 9223372036854775807", ""),
        ] {
            assert_eq!(
                bench.run(&format!("GETRANGE a {range}")),
                bulk(part),
                "{range}"
            );
        }
        assert_eq!(bench.run("SUBSTR none 0 -1"), bulk(""));
        assert_eq!(bench.run("GETRANGE none x 1"), error::not_an_integer());
    }

    #[test]
    fn parts_are_written_and_gaps_are_zero() {
        let mut bench = Bench::default();
        assert_eq!(bench.logged("SETRANGE a 5 ''"), None);
        assert_eq!(bench.run("EXISTS a"), int(0));
        assert_eq!(bench.run("SETRANGE a 2 xy"), int(4));
        assert_eq!(bench.run("GET a"), bulk("\0\0xy"));
        bench.run("PEXPIRE a 100");
        assert_eq!(bench.run("SETRANGE a 0 ab"), int(4));
        assert_eq!(bench.run("APPEND a z"), int(5));
        assert_eq!(bench.run("GET a"), bulk("abxyz"));
        assert_eq!(bench.run("PTTL a"), int(100));
        assert_eq!(
            bench.run("SETRANGE a -1 x"),
            err("ERR offset is out of range")
        );
        assert_eq!(
            bench.run("SETRANGE a 536870911 xy"),
            error::string_too_long()
        );
        let far = "SETRANGE a 9223372036854775807 xy";
        assert_eq!(bench.run(far), error::string_too_long());
        assert_eq!(bench.run("SETRANGE a 99999999999 ''"), int(5));
    }

    #[test]
    fn strings_end_at_the_limit() {
        let mut bench = Bench::with(Settings {
            proto_max_bulk_len: 10,
            ..Settings::default()
        });
        bench.run("SET a 12345678");
        assert_eq!(bench.run("APPEND a 90"), int(10));
        assert_eq!(bench.run("APPEND a 1"), error::string_too_long());
        assert_eq!(bench.run("STRLEN a"), int(10));
    }
}
