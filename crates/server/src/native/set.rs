//! SET, SETNX, SETEX, PSETEX, GETSET, GETEX, GETDEL: strings with their expiry.

use everbloom_commands::Args;
use everbloom_commands::command::ONE_KEY;
use everbloom_commands::flags::{DENYOOM, FAST};
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::expire::{TimeForm, set_expiry};
use super::strings::{bulk_or_null, new_text, text_of};
use super::{Call, Command, error, flag, writes};
use crate::locked::Locked;

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Sets a key to a string.
    writes("set", -3, ONE_KEY, set).since("1.0.0").flags(&[DENYOOM]),
    /// Sets a key to a string unless it exists.
    writes("setnx", 3, ONE_KEY, setnx).since("1.0.0").flags(&[DENYOOM, FAST]),
    /// Sets a key to a string that expires in some seconds.
    writes("setex", 4, ONE_KEY, |call, view| setex(call, view, TimeForm::Seconds))
        .since("2.0.0").flags(&[DENYOOM]),
    /// Sets a key to a string that expires in some milliseconds.
    writes("psetex", 4, ONE_KEY, |call, view| setex(call, view, TimeForm::Milliseconds))
        .since("2.6.0").flags(&[DENYOOM]),
    /// Sets a key to a string and returns the one it had.
    writes("getset", 3, ONE_KEY, getset).since("1.0.0").flags(&[DENYOOM, FAST]),
    /// Returns a key's string and changes its expiry.
    writes("getex", -2, ONE_KEY, getex).since("6.2.0").flags(&[FAST]),
    /// Returns a key's string and deletes the key.
    writes("getdel", 2, ONE_KEY, getdel).since("6.2.0").flags(&[FAST]),
};

/// A time option: EX, PX, EXAT or PXAT and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Time<'a> {
    number: &'a [u8],
    form: TimeForm,
}

impl<'a> Time<'a> {
    /// The unit and the start of a time, if the word is one of the four.
    fn form(word: &[u8]) -> Option<TimeForm> {
        match word {
            b"EX" => Some(TimeForm::Seconds),
            b"PX" => Some(TimeForm::Milliseconds),
            b"EXAT" => Some(TimeForm::UnixSeconds),
            b"PXAT" => Some(TimeForm::UnixMilliseconds),
            _ => None,
        }
    }

    /// The time as a Unix time in milliseconds. Neither the number nor the time may be 0 or less.
    fn resolve(self, call: &Call<'_>) -> Result<i64, Reply> {
        let number = integer(self.number).ok_or_else(error::not_an_integer)?;
        Some(number)
            .filter(|number| *number > 0)
            .and_then(|number| self.form.resolve(number, call.now))
            .ok_or_else(|| error::invalid_expire_time(call.command.name))
    }
}

/// What happens to a key's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lifetime<'a> {
    /// No option.
    Unsaid,
    /// KEEPTTL.
    Kept,
    /// PERSIST.
    Removed,
    /// One of the time options.
    Until(Time<'a>),
}

impl<'a> Lifetime<'a> {
    /// Reads a time option and its number. The same option may be repeated and then replaces the
    /// earlier one; no other may be combined with it.
    fn take_time(&mut self, word: &[u8], number: Option<&'a [u8]>) -> Result<(), Reply> {
        let form = Time::form(word).ok_or_else(error::syntax)?;
        match *self {
            Lifetime::Unsaid => {}
            Lifetime::Until(time) if time.form == form => {}
            _ => return Err(error::syntax()),
        }
        let number = number.ok_or_else(error::syntax)?;
        *self = Lifetime::Until(Time { number, form });
        Ok(())
    }

    /// Reads an option without a value.
    fn take_word(&mut self, word: Lifetime<'a>) -> Result<(), Reply> {
        if *self != Lifetime::Unsaid && *self != word {
            return Err(error::syntax());
        }
        *self = word;
        Ok(())
    }
}

/// The options of SET.
struct Options<'a> {
    lifetime: Lifetime<'a>,
    /// NX: only a key that does not exist; XX: only one that does.
    wanted: Option<Presence>,
    /// GET: reply with the old string.
    get: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Absent,
    Present,
}

impl<'a> Options<'a> {
    fn parse(mut args: Args<'a>) -> Result<Self, Reply> {
        let mut options = Options {
            lifetime: Lifetime::Unsaid,
            wanted: None,
            get: false,
        };
        while let Some(word) = args.next_optional() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => options.want(Presence::Absent)?,
                b"XX" => options.want(Presence::Present)?,
                b"GET" => options.get = true,
                b"KEEPTTL" => options.lifetime.take_word(Lifetime::Kept)?,
                word => options.lifetime.take_time(word, args.next_optional())?,
            }
        }
        Ok(options)
    }

    fn want(&mut self, presence: Presence) -> Result<(), Reply> {
        if self.wanted.is_some_and(|wanted| wanted != presence) {
            return Err(error::syntax());
        }
        self.wanted = Some(presence);
        Ok(())
    }
}

fn set(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let (db, mut args) = (call.session.db, call.args());
    let (key, text) = (args.next_bytes()?, args.next_bytes()?);
    let options = Options::parse(args)?;
    let until = match options.lifetime {
        Lifetime::Until(time) => Some(time.resolve(call)?),
        _ => None,
    };
    let mut reply = Reply::OK;
    if options.get {
        reply = bulk_or_null(text_of(call.look_up(view, key))?);
    }
    let present = view.peek(db, key);
    let refused = options
        .wanted
        .is_some_and(|wanted| (wanted == Presence::Present) != present.is_some());
    if refused {
        let reply = if options.get { reply } else { Reply::Null };
        return Ok(reply);
    }
    if options.lifetime == Lifetime::Kept {
        let kept = present.and_then(|entry| entry.expires_at());
        let value = new_text(text)?;
        view.insert(db, key, value, kept);
        view.log(db, &[b"SET", key, text, b"KEEPTTL"]);
        return Ok(reply);
    }
    store(view, db, key, text, until)?;
    Ok(reply)
}

/// Stores a string under a key, until a Unix time in milliseconds or without an expiry.
fn store(
    view: &mut Locked<'_>,
    db: usize,
    key: &[u8],
    text: &[u8],
    until: Option<i64>,
) -> Result<(), Reply> {
    let at = until.and_then(|at| u64::try_from(at).ok());
    view.insert(db, key, new_text(text)?, at);
    match at {
        None => view.log(db, &[b"SET", key, text]),
        Some(at) => {
            let at = at.to_string();
            view.log(db, &[b"SET", key, text, b"PXAT", at.as_bytes()]);
        }
    }
    Ok(())
}

fn setnx(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let (db, mut args) = (call.session.db, call.args());
    let (key, text) = (args.next_bytes()?, args.next_bytes()?);
    if view.contains(db, key) {
        return Ok(flag(false));
    }
    store(view, db, key, text, None)?;
    Ok(flag(true))
}

fn setex(call: &Call<'_>, view: &mut Locked<'_>, form: TimeForm) -> Result<Reply, Reply> {
    let (db, mut args) = (call.session.db, call.args());
    let (key, number, text) = (args.next_bytes()?, args.next_bytes()?, args.next_bytes()?);
    let until = Time { number, form }.resolve(call)?;
    store(view, db, key, text, Some(until))?;
    Ok(Reply::OK)
}

fn getset(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let (db, mut args) = (call.session.db, call.args());
    let (key, text) = (args.next_bytes()?, args.next_bytes()?);
    let reply = bulk_or_null(text_of(call.look_up(view, key))?);
    store(view, db, key, text, None)?;
    Ok(reply)
}

fn getdel(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let (db, key) = (call.session.db, call.args().next_bytes()?);
    let reply = bulk_or_null(text_of(call.look_up(view, key))?);
    if view.delete(db, key) {
        view.log(db, &[b"DEL", key]);
    }
    Ok(reply)
}

fn getex(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let (db, mut args) = (call.session.db, call.args());
    let key = args.next_bytes()?;
    let mut lifetime = Lifetime::Unsaid;
    while let Some(word) = args.next_optional() {
        match word.to_ascii_uppercase().as_slice() {
            b"PERSIST" => lifetime.take_word(Lifetime::Removed)?,
            word => lifetime.take_time(word, args.next_optional())?,
        }
    }
    let entry = call.look_up(view, key);
    let Some(text) = text_of(entry)? else {
        return Ok(Reply::Null);
    };
    let reply = Reply::bulk(text);
    let expires = entry.is_some_and(|entry| entry.expires_at().is_some());
    match lifetime {
        Lifetime::Until(time) => {
            let at = time.resolve(call)?;
            set_expiry(call, view, key, at);
        }
        Lifetime::Removed if expires => {
            view.set_expiry(db, key, None);
            view.log(db, &[b"PERSIST", key]);
        }
        _ => {}
    }
    Ok(reply)
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
