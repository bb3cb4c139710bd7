//! SET, SETNX, SETEX, PSETEX, GETSET, GETEX, GETDEL: strings with their expiry.

use everbloom_commands::command::ONE_KEY;
use everbloom_commands::flags::{DENYOOM, FAST};
use everbloom_commands::key_use::{CREATE, EXCHANGE_OR_READ, OVERWRITE, TAKE};
use everbloom_commands::{Answers, Args};
use everbloom_resp::Reply;

use super::expire::{TimeForm, set_expiry};
use super::strings::{new_text, text_of};
use super::{Call, Command, error, exchanges, flag, writes};
use crate::locked::Locked;
use everbloom_files::Value;
use everbloom_store::keyspace::KeyRef;

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Sets a key to a string.
    exchanges("set", -3, set).uses(EXCHANGE_OR_READ).since("1.0.0").flags(&[DENYOOM]),
    /// Sets a key to a string unless it exists.
    writes("setnx", 3, ONE_KEY, setnx).uses(CREATE).since("1.0.0").flags(&[DENYOOM, FAST]),
    /// Sets a key to a string that expires in some seconds.
    writes("setex", 4, ONE_KEY, |call, view| setex(call, view, TimeForm::Seconds))
        .uses(OVERWRITE).since("2.0.0").flags(&[DENYOOM]),
    /// Sets a key to a string that expires in some milliseconds.
    writes("psetex", 4, ONE_KEY, |call, view| setex(call, view, TimeForm::Milliseconds))
        .uses(OVERWRITE).since("2.6.0").flags(&[DENYOOM]),
    /// Sets a key to a string and returns the one it had.
    exchanges("getset", 3, getset).since("1.0.0").flags(&[DENYOOM, FAST]),
    /// Returns a key's string and changes its expiry.
    exchanges("getex", -2, getex).since("6.2.0").flags(&[FAST]),
    /// Returns a key's string and deletes the key.
    exchanges("getdel", 2, getdel).uses(TAKE).since("6.2.0").flags(&[FAST]),
};

/// The options of SET and GETEX.
#[derive(Default)]
struct Options<'a> {
    /// NX: only a key that does not exist.
    absent: bool,
    /// XX: only one that does.
    present: bool,
    /// GET: reply with the old string.
    get: bool,
    /// KEEPTTL: the expiry stays.
    keep: bool,
    /// PERSIST: the expiry is removed.
    persist: bool,
    /// EX, PX, EXAT or PXAT, and the number after it.
    time: Option<(TimeForm, &'a [u8])>,
}

impl<'a> Options<'a> {
    /// An option may be repeated. The last number counts.
    fn parse(mut args: Args<'a>, of_set: bool) -> Result<Self, Reply> {
        let mut options = Options::default();
        while let Some(word) = args.next_optional() {
            let form = match word.to_ascii_uppercase().as_slice() {
                b"EX" => TimeForm::Seconds,
                b"PX" => TimeForm::Milliseconds,
                b"EXAT" => TimeForm::UnixSeconds,
                b"PXAT" => TimeForm::UnixMilliseconds,
                word => {
                    let option = match word {
                        b"NX" if of_set => &mut options.absent,
                        b"XX" if of_set => &mut options.present,
                        b"GET" if of_set => &mut options.get,
                        b"KEEPTTL" if of_set => &mut options.keep,
                        b"PERSIST" if !of_set => &mut options.persist,
                        _ => return Err(error::syntax()),
                    };
                    *option = true;
                    continue;
                }
            };
            let number = args.next_optional().ok_or_else(error::syntax)?;
            if options.time.is_some_and(|(other, _)| other != form) {
                return Err(error::syntax());
            }
            options.time = Some((form, number));
        }
        let clash = (options.keep || options.persist) && options.time.is_some();
        if clash || options.absent && options.present {
            return Err(error::syntax());
        }
        Ok(options)
    }

    /// The Unix time in milliseconds at which the key is to expire.
    fn until(&self, call: &Call<'_>) -> Result<Option<i64>, Reply> {
        let until = self
            .time
            .map(|(form, number)| form.resolve(call, number, 1));
        until.transpose()
    }
}

/// Answers with the string of a key, or a null.
fn answer(call: &Call<'_>, answers: &mut dyn Answers, text: Option<&[u8]>) -> Result<(), Reply> {
    call.check_string_reply(text.map_or(0, <[u8]>::len) as u64)?;
    match text {
        None => answers.reply(Reply::Null),
        Some(text) if answers.text(text) => {}
        Some(_) => return Err(error::out_of_memory()),
    }
    Ok(())
}

fn set(call: &Call<'_>, view: &mut Locked<'_>, answers: &mut dyn Answers) -> Result<(), Reply> {
    let mut args = call.args();
    let (key, text) = (call.key(args.next_bytes()?), args.next_bytes()?);
    let options = Options::parse(args, true)?;
    let until = options.until(call)?;
    let old = match options.get {
        true => text_of(call.look_up(view.read(), key))?,
        false => None,
    };
    let present = view.read().peek(key);
    let is_set = !(options.absent && present.is_some() || options.present && present.is_none());
    let kept = present.and_then(|entry| entry.expires_at());
    let value = is_set.then(|| new_text(text)).transpose()?;
    match (options.get, is_set) {
        (true, _) => answer(call, answers, old)?,
        (false, true) => answers.reply(Reply::OK),
        (false, false) => answers.reply(Reply::Null),
    }
    match value {
        None => {}
        Some(value) if options.keep => {
            view.entry(key).insert(value, kept);
            view.log(key.db, &[b"SET", key.name, text, b"KEEPTTL"]);
        }
        Some(value) => store(view, key, text, value, until),
    }
    Ok(())
}

/// Stores a string under a key, until a Unix time in milliseconds or without an expiry.
fn store(view: &mut Locked<'_>, key: KeyRef<'_>, text: &[u8], value: Value, until: Option<i64>) {
    let at = until.and_then(|at| u64::try_from(at).ok());
    view.entry(key).insert(value, at);
    match at {
        None => view.log(key.db, &[b"SET", key.name, text]),
        Some(at) => {
            let at = at.to_string();
            view.log(key.db, &[b"SET", key.name, text, b"PXAT", at.as_bytes()]);
        }
    }
}

fn setnx(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let (key, text) = (call.key(args.next_bytes()?), args.next_bytes()?);
    if view.read().contains(key) {
        return Ok(flag(false));
    }
    store(view, key, text, new_text(text)?, None);
    Ok(flag(true))
}

fn setex(call: &Call<'_>, view: &mut Locked<'_>, form: TimeForm) -> Result<Reply, Reply> {
    let mut args = call.args();
    let (key, number, text) = (
        call.key(args.next_bytes()?),
        args.next_bytes()?,
        args.next_bytes()?,
    );
    let until = form.resolve(call, number, 1)?;
    store(view, key, text, new_text(text)?, Some(until));
    Ok(Reply::OK)
}

fn getset(call: &Call<'_>, view: &mut Locked<'_>, answers: &mut dyn Answers) -> Result<(), Reply> {
    let mut args = call.args();
    let (key, text) = (call.key(args.next_bytes()?), args.next_bytes()?);
    let old = text_of(call.look_up(view.read(), key))?;
    let value = new_text(text)?;
    answer(call, answers, old)?;
    store(view, key, text, value, None);
    Ok(())
}

fn getdel(call: &Call<'_>, view: &mut Locked<'_>, answers: &mut dyn Answers) -> Result<(), Reply> {
    let key = call.key(call.args().next_bytes()?);
    answer(call, answers, text_of(call.look_up(view.read(), key))?)?;
    if view.entry(key).delete() {
        view.log(key.db, &[b"DEL", key.name]);
    }
    Ok(())
}

fn getex(call: &Call<'_>, view: &mut Locked<'_>, answers: &mut dyn Answers) -> Result<(), Reply> {
    let mut args = call.args();
    let key = call.key(args.next_bytes()?);
    let options = Options::parse(args, false)?;
    let entry = call.look_up(view.read(), key);
    let text = text_of(entry)?;
    let until = match text {
        Some(_) => options.until(call)?,
        None => None,
    };
    let expires = entry.is_some_and(|entry| entry.expires_at().is_some());
    answer(call, answers, text)?;
    if let Some(at) = until {
        set_expiry(call, view, key, at);
    } else if options.persist && expires {
        view.entry(key).set_expiry(None);
        view.log(key.db, &[b"PERSIST", key.name]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, bulk, err, int};
    use super::*;

    #[test]
    fn set_heeds_presence_and_answers_the_old() {
        let mut bench = Bench::default();
        assert_eq!(bench.run("SET a 1 XX"), Reply::Null);
        assert_eq!(bench.run("SET a 1 NX GET"), Reply::Null);
        assert_eq!(bench.run("SET a 2 NX GET"), bulk("1"));
        assert_eq!(bench.run("SET a 2 NX"), Reply::Null);
        assert_eq!(bench.run("SETNX a 2"), int(0));
        assert_eq!(bench.run("SET a 2 xx get"), bulk("1"));
        assert_eq!(bench.run("GETSET a 3"), bulk("2"));
        assert_eq!(bench.run("GETDEL a"), bulk("3"));
        assert_eq!(bench.run("GETDEL a"), Reply::Null);
        assert_eq!(bench.run("SETNX a 4"), int(1));
        bench.run("BF.ADD f x");
        assert_eq!(bench.run("SET f 1 GET"), error::wrong_type());
        assert_eq!(bench.run("SET f 1 NX"), Reply::Null);
        assert_eq!(bench.run("SET f 1"), Reply::OK);
        assert_eq!(bench.run("TYPE f"), Reply::simple("string"));
    }

    #[test]
    fn expiries_are_set_kept_and_cleared() {
        let mut bench = Bench::default();
        bench.run("SET a 1 EX 100");
        assert_eq!(bench.run("TTL a"), int(100));
        bench.run("SET a 2 KEEPTTL");
        assert_eq!(bench.run("TTL a"), int(100));
        bench.run("SET a 3");
        assert_eq!(bench.run("TTL a"), int(-1));
        bench.run("SET a 3 PXAT 99999999999999");
        assert_eq!(bench.run("PEXPIRETIME a"), int(99_999_999_999_999));
        assert_eq!(bench.run("GETEX a PERSIST"), bulk("3"));
        assert_eq!(bench.run("TTL a"), int(-1));
        bench.run("PSETEX a 1500 4");
        assert_eq!(bench.run("PTTL a"), int(1500));
        assert_eq!(bench.run("SET a 5 EXAT 1"), Reply::OK);
        assert_eq!(bench.run("GET a"), Reply::Null);
    }

    #[test]
    fn logs_get_what_does_not_depend_on_the_time() {
        let mut bench = Bench::default();
        bench.now.ms = 5000;
        for (line, logged) in [
            ("SET a 1 EX 10", Some("SET a 1 PXAT 15000")),
            ("SET a 1 PX 10 NX", None),
            ("SET a 1 XX GET", Some("SET a 1")),
            ("SET a 1 KEEPTTL", Some("SET a 1 KEEPTTL")),
            ("SETEX a 10 1", Some("SET a 1 PXAT 15000")),
            ("PSETEX a 10 1", Some("SET a 1 PXAT 5010")),
            ("GETEX a", None),
            ("GETEX a PERSIST", Some("PERSIST a")),
            ("GETEX a PERSIST", None),
            ("GETEX a EX 10", Some("PEXPIREAT a 15000")),
            ("GETEX a EXAT 5", Some("DEL a")),
            ("GETEX a EX 10", None),
            ("SETNX a 1", Some("SET a 1")),
            ("GETSET a 2", Some("SET a 2")),
            ("GETDEL a", Some("DEL a")),
            ("GETDEL a", None),
        ] {
            assert_eq!(bench.logged(line).as_deref(), logged, "{line}");
        }
    }

    #[test]
    fn options_that_clash_are_refused() {
        let mut bench = Bench::default();
        for line in [
            "SET a 1 NX XX",
            "SET a 1 EX",
            "SET a 1 EX 10 PX 10",
            "SET a 1 EX 10 KEEPTTL",
            "SET a 1 KEEPTTL EX 10",
            "SET a 1 PERSIST",
            "SET a 1 NOPE",
            "GETEX a KEEPTTL",
            "GETEX a NX",
            "GETEX a PERSIST EX 10",
        ] {
            assert_eq!(bench.run(line), error::syntax(), "{line}");
        }
        assert_eq!(bench.run("SET a 1 EX 10 EX 20 NX NX"), Reply::OK);
        assert_eq!(bench.run("TTL a"), int(20));
        for (line, name) in [
            ("SET a 1 EX 0", "set"),
            ("SET a 1 EX 9223372036854775807", "set"),
            ("SET a 1 PX 9223372036854775807", "set"),
            ("SETEX a -1 1", "setex"),
            ("GETEX a PXAT 0", "getex"),
        ] {
            assert_eq!(bench.run(line), error::invalid_expire_time(name), "{line}");
        }
        assert_eq!(bench.run("SET a 1 EX x"), error::not_an_integer());
        assert_eq!(bench.run("GETEX none PX x"), Reply::Null);
        let text = "ERR wrong number of arguments for 'set' command";
        assert_eq!(bench.run("SET a"), err(text));
    }
}
