//! EXPIRE, TTL and related commands.
//!
//! A log gets every expiry as a point in time, because a relative one would start again during a
//! replay.

use everbloom_commands::command::ONE_KEY;
use everbloom_commands::flags::FAST;
use everbloom_commands::key_use::UPDATE;
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use self::TimeForm::{Milliseconds, Seconds, UnixMilliseconds, UnixSeconds};
use super::{Call, Command, error, flag, reads, writes};
use crate::locked::Locked;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::{KeyRef, View};

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Makes a key expire in some seconds.
    writes("expire", -3, ONE_KEY, |call, view| expire(call, view, Seconds))
        .uses(UPDATE).since("1.0.0").flags(&[FAST]),
    /// Makes a key expire in some milliseconds.
    writes("pexpire", -3, ONE_KEY, |call, view| expire(call, view, Milliseconds))
        .uses(UPDATE).since("2.6.0").flags(&[FAST]),
    /// Makes a key expire at a Unix time in seconds.
    writes("expireat", -3, ONE_KEY, |call, view| expire(call, view, UnixSeconds))
        .uses(UPDATE).since("1.2.0").flags(&[FAST]),
    /// Makes a key expire at a Unix time in milliseconds.
    writes("pexpireat", -3, ONE_KEY, |call, view| expire(call, view, UnixMilliseconds))
        .uses(UPDATE).since("2.6.0").flags(&[FAST]),
    /// Takes the expiry off a key.
    writes("persist", 2, ONE_KEY, persist).uses(UPDATE).since("2.2.0").flags(&[FAST]),
    /// Tells in how many seconds a key expires.
    reads("ttl", 2, ONE_KEY, |call, view| expiry(call, view, Seconds))
        .since("1.0.0").flags(&[FAST]),
    /// Tells in how many milliseconds a key expires.
    reads("pttl", 2, ONE_KEY, |call, view| expiry(call, view, Milliseconds))
        .since("2.6.0").flags(&[FAST]),
    /// Tells the Unix time in seconds at which a key expires.
    reads("expiretime", 2, ONE_KEY, |call, view| expiry(call, view, UnixSeconds))
        .since("7.0.0").flags(&[FAST]),
    /// Tells the Unix time in milliseconds at which a key expires.
    reads("pexpiretime", 2, ONE_KEY, |call, view| expiry(call, view, UnixMilliseconds))
        .since("7.0.0").flags(&[FAST]),
};

/// How a time is written: its unit, and whether it counts from now or is a Unix time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeForm {
    Seconds,
    Milliseconds,
    UnixSeconds,
    UnixMilliseconds,
}

impl TimeForm {
    /// The number of milliseconds in a unit.
    fn unit(self) -> i64 {
        match self {
            Seconds | UnixSeconds => 1000,
            Milliseconds | UnixMilliseconds => 1,
        }
    }

    /// The start from which it counts, as a Unix time in milliseconds.
    fn base(self, now: Now) -> i64 {
        match self {
            Seconds | Milliseconds => i64::try_from(now.ms).unwrap_or(i64::MAX),
            UnixSeconds | UnixMilliseconds => 0,
        }
    }

    /// A number of at least `least` as a Unix time in milliseconds.
    pub(super) fn resolve(self, call: &Call<'_>, number: &[u8], least: i64) -> Result<i64, Reply> {
        let number = integer(number).ok_or_else(error::not_an_integer)?;
        number
            .checked_mul(self.unit())
            .and_then(|ms| ms.checked_add(self.base(call.now)))
            .filter(|_| number >= least)
            .ok_or_else(|| error::invalid_expire_time(call.command.name))
    }
}

/// The conditions under which EXPIRE sets an expiry.
#[derive(Debug, Default)]
struct Conditions {
    /// Only if the key has none.
    none: bool,
    /// Only if it has one.
    some: bool,
    /// Only if the new one is later.
    later: bool,
    /// Only if the new one is earlier.
    earlier: bool,
}

impl Conditions {
    fn parse(words: &[&[u8]]) -> Result<Self, Reply> {
        let mut conditions = Conditions::default();
        for word in words {
            let condition = match word.to_ascii_uppercase().as_slice() {
                b"NX" => &mut conditions.none,
                b"XX" => &mut conditions.some,
                b"GT" => &mut conditions.later,
                b"LT" => &mut conditions.earlier,
                _ => {
                    let word = error::shown(word);
                    return Err(Reply::error(format!("ERR Unsupported option {word}")));
                }
            };
            *condition = true;
        }
        let either = conditions.later || conditions.earlier;
        if conditions.none && (conditions.some || either) {
            return Err(Reply::error(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if conditions.later && conditions.earlier {
            return Err(Reply::error(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(conditions)
    }

    /// Whether they allow `next` to replace `present`. No expiry counts as later than any.
    fn allow(&self, present: Option<i64>, next: i64) -> bool {
        !(self.none && present.is_some()
            || self.some && present.is_none()
            || self.later && present.is_none_or(|at| next <= at)
            || self.earlier && present.is_some_and(|at| next >= at))
    }
}

fn expire(call: &Call<'_>, view: &mut Locked<'_>, form: TimeForm) -> Result<Reply, Reply> {
    let mut args = call.args();
    let (key, number) = (call.key(args.next_bytes()?), args.next_bytes()?);
    let conditions = Conditions::parse(args.rest())?;
    let at = form.resolve(call, number, i64::MIN)?;
    let Some(entry) = view.read().get(key) else {
        return Ok(flag(false));
    };
    let present = entry.expires_at().and_then(|at| i64::try_from(at).ok());
    if !conditions.allow(present, at) {
        return Ok(flag(false));
    }
    set_expiry(call, view, key, at);
    Ok(flag(true))
}

/// Sets the expiry of a key to a Unix time in milliseconds. If that is over, deletes the key.
pub(super) fn set_expiry(call: &Call<'_>, view: &mut Locked<'_>, key: KeyRef<'_>, at: i64) {
    match u64::try_from(at).ok().filter(|at| *at > call.now.ms) {
        Some(at) => {
            view.entry(key).set_expiry(Some(at));
            view.log(key.db, &[b"PEXPIREAT", key.name, at.to_string().as_bytes()]);
        }
        None => {
            view.entry(key).delete();
            view.log(key.db, &[b"DEL", key.name]);
        }
    }
}

fn persist(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let key = call.key(call.args().next_bytes()?);
    let expires = view
        .read()
        .get(key)
        .is_some_and(|e| e.expires_at().is_some());
    if !expires {
        return Ok(flag(false));
    }
    view.entry(key).set_expiry(None);
    view.log(key.db, call.args);
    Ok(flag(true))
}

fn expiry(call: &Call<'_>, view: View<'_>, form: TimeForm) -> Result<Reply, Reply> {
    let Some(entry) = call.peek(view, call.key(call.args().next_bytes()?)) else {
        return Ok(Reply::Integer(-2));
    };
    let Some(at) = entry.expires_at() else {
        return Ok(Reply::Integer(-1));
    };
    let at = i64::try_from(at).unwrap_or(i64::MAX);
    let ms = at.saturating_sub(form.base(call.now)).max(0);
    // Rounded to the nearest second, as in Redis.
    Ok(Reply::Integer(
        ms.saturating_add(form.unit() / 2) / form.unit(),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, bulk, err, int};
    use super::*;

    #[test]
    fn keys_expire_when_their_time_has_come() {
        let mut bench = Bench::default();
        assert_eq!(bench.run("TTL a"), int(-2));
        bench.run("SET a 1");
        assert_eq!(bench.run("TTL a"), int(-1));
        assert_eq!(bench.run("EXPIRE a 10"), int(1));
        bench.wait(400);
        assert_eq!(bench.run("TTL a"), int(10));
        assert_eq!(bench.run("PTTL a"), int(9600));
        bench.wait(9_599);
        assert_eq!(bench.run("GET a"), bulk("1"));
        bench.wait(1);
        assert_eq!(bench.run("GET a"), Reply::Null);
        assert_eq!(bench.run("PEXPIRETIME a"), int(-2));
        assert_eq!(bench.run("EXPIRE a 10"), int(0));
    }

    #[test]
    fn logs_get_points_in_time() {
        let mut bench = Bench::default();
        bench.run("SET a 1");
        bench.now.ms = 1_000_000;
        assert_eq!(bench.logged("EXPIRE a 10").unwrap(), "PEXPIREAT a 1010000");
        assert_eq!(
            bench.logged("PEXPIREAT a 2000000").unwrap(),
            "PEXPIREAT a 2000000"
        );
        assert_eq!(bench.run("EXPIRETIME a"), int(2000));
        assert_eq!(bench.logged("PERSIST a").unwrap(), "PERSIST a");
        assert_eq!(bench.logged("PERSIST a"), None);
        assert_eq!(bench.logged("EXPIRE none 10"), None);
        assert_eq!(bench.logged("EXPIREAT a 1000").unwrap(), "DEL a");
        assert_eq!(bench.run("EXISTS a"), int(0));
    }

    #[test]
    fn conditions_compare_with_the_present_expiry() {
        let mut bench = Bench::default();
        bench.run("SET a 1");
        for (line, reply) in [
            ("EXPIRE a 100 XX", 0),
            ("EXPIRE a 100 GT", 0),
            ("EXPIRE a 100 LT", 1),
            ("EXPIRE a 100 NX", 0),
            ("EXPIRE a 100 GT", 0),
            ("EXPIRE a 101 gt xx", 1),
            ("EXPIRE a 101 LT", 0),
            ("EXPIRE a -1 GT", 0),
            ("PEXPIRE a -1 LT", 1),
            ("EXISTS a", 0),
        ] {
            assert_eq!(bench.run(line), int(reply), "{line}");
        }
    }

    #[test]
    fn bad_expiries_are_refused() {
        let mut bench = Bench::default();
        bench.run("SET a 1");
        for (line, text) in [
            ("EXPIRE a x", "ERR value is not an integer or out of range"),
            ("EXPIRE a x y", "ERR Unsupported option y"),
            (
                "EXPIRE a 9223372036854775807",
                "ERR invalid expire time in 'expire' command",
            ),
            (
                "PEXPIRE a 9223372036854775807",
                "ERR invalid expire time in 'pexpire' command",
            ),
            (
                "EXPIRE a 1 NX XX",
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ),
            (
                "EXPIRE a 1 GT LT",
                "ERR GT and LT options at the same time are not compatible",
            ),
        ] {
            assert_eq!(bench.run(line), err(text), "{line}");
        }
        assert_eq!(bench.run("PEXPIREAT a 9223372036854775807"), int(1));
        assert_eq!(bench.run("EXPIRETIME a"), int(i64::MAX / 1000));
        assert_eq!(bench.run("PEXPIREAT a -9223372036854775808"), int(1));
    }
}
