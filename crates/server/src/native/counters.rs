//! INCR, DECR, INCRBY, DECRBY: strings that hold numbers.

use everbloom_commands::command::ONE_KEY;
use everbloom_commands::flags::{DENYOOM, FAST};
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::strings::text_of;
use super::{Call, Command, error, next_integer, writes};
use crate::locked::Locked;
use everbloom_files::Value;

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Adds 1 to a key's integer.
    writes("incr", 2, ONE_KEY, |call, view| add(call, view, 1))
        .since("1.0.0").flags(&[DENYOOM, FAST]),
    /// Subtracts 1 from a key's integer.
    writes("decr", 2, ONE_KEY, |call, view| add(call, view, -1))
        .since("1.0.0").flags(&[DENYOOM, FAST]),
    /// Adds to a key's integer.
    writes("incrby", 3, ONE_KEY, incrby).since("1.0.0").flags(&[DENYOOM, FAST]),
    /// Subtracts from a key's integer.
    writes("decrby", 3, ONE_KEY, decrby).since("1.0.0").flags(&[DENYOOM, FAST]),
};

/// The number argument after the key.
fn step(call: &Call<'_>) -> Result<i64, Reply> {
    let mut args = call.args();
    args.next_bytes()?;
    next_integer(&mut args)
}

fn incrby(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let step = step(call)?;
    add(call, view, step)
}

fn decrby(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let step = step(call)?
        .checked_neg()
        .ok_or_else(|| Reply::error("ERR decrement would overflow"))?;
    add(call, view, step)
}

fn add(call: &Call<'_>, view: &mut Locked<'_>, step: i64) -> Result<Reply, Reply> {
    let key = call.key(call.args().next_bytes()?);
    let text = text_of(view.read().get(key))?;
    let is_new = text.is_none();
    let number = integer(text.unwrap_or(b"0")).ok_or_else(error::not_an_integer)?;
    let sum = number
        .checked_add(step)
        .ok_or_else(|| Reply::error("ERR increment or decrement would overflow"))?;
    let mut digits = itoa::Buffer::new();
    let digits = Value::Text(digits.format(sum).as_bytes().into());
    if is_new {
        view.entry(key).insert(digits, None);
    } else {
        view.entry(key).modify(|value| *value = digits);
    }
    view.log(key.db, call.args);
    Ok(sum.into())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, err, int};
    use super::*;

    #[test]
    fn integers_are_counted_within_64_bits() {
        let mut bench = Bench::default();
        assert_eq!(bench.run("INCR a"), int(1));
        assert_eq!(bench.run("DECRBY a 10"), int(-9));
        bench.run("PEXPIRE a 500");
        assert_eq!(bench.run("INCRBY a 9"), int(0));
        assert_eq!(bench.run("PTTL a"), int(500));
        assert_eq!(bench.logged("DECR a").unwrap(), "DECR a");
        bench.run("SET a 9223372036854775807");
        let overflow = "ERR increment or decrement would overflow";
        assert_eq!(bench.run("INCR a"), err(overflow));
        let lowest = "DECRBY a -9223372036854775808";
        assert_eq!(bench.run(lowest), err("ERR decrement would overflow"));
        for text in ["017", "1.0", "''", "x"] {
            bench.run(&format!("SET a {text}"));
            assert_eq!(bench.logged("INCR a"), None);
            assert_eq!(bench.run("INCR a"), error::not_an_integer());
        }
        bench.run("BF.ADD f x");
        assert_eq!(bench.run("INCR f"), error::wrong_type());
        assert_eq!(bench.run("INCRBY a x"), error::not_an_integer());
    }
}
