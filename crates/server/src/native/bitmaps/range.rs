//! BITCOUNT and BITPOS.

use std::ops::Range;

use everbloom_commands::Args;
use everbloom_commands::number::integer;
use everbloom_resp::Reply;
use everbloom_store::keyspace::View;

use super::super::strings::{inclusive, is_backwards, text_of};
use super::super::{Call, error, next_integer};
use super::bits;

/// The bits of a unit in which a range is given.
fn unit(word: Option<&[u8]>) -> Result<u64, Reply> {
    match word.map(<[u8]>::to_ascii_uppercase).as_deref() {
        None | Some(b"BYTE") => Ok(8),
        Some(b"BIT") => Ok(1),
        Some(_) => Err(error::syntax()),
    }
}

/// The units from `first` to `last`, as the arguments of a command name them.
#[derive(Clone, Copy)]
struct Units {
    first: i64,
    last: i64,
    /// The bits of a unit.
    width: u64,
}

impl Units {
    /// The range of these units in a string, in bits.
    fn bits(self, text: &[u8]) -> Range<u64> {
        let units = inclusive(self.first, self.last, bits::len(text) / self.width);
        units.start * self.width..units.end * self.width
    }
}

/// `BITCOUNT key [start end [BYTE | BIT]]`
pub fn bitcount(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let key = call.key(args.next_bytes()?);
    let counted = counted(args)?;
    let text = text_of(call.look_up(view, key))?.unwrap_or_default();
    let bits = match counted {
        None => 0..bits::len(text),
        Some(units) if is_backwards(units.first, units.last) => 0..0,
        Some(units) => units.bits(text),
    };
    Ok(Reply::Integer(bits::count(text, bits).cast_signed()))
}

/// The units to count; `None` for all.
fn counted(mut args: Args<'_>) -> Result<Option<Units>, Reply> {
    if args.remaining() == 0 {
        return Ok(None);
    }
    if !(2..=3).contains(&args.remaining()) {
        return Err(error::syntax());
    }
    let (first, last) = (next_integer(&mut args)?, next_integer(&mut args)?);
    let width = unit(args.next_optional())?;
    Ok(Some(Units { first, last, width }))
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`
pub fn bitpos(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let key = call.key(args.next_bytes()?);
    let wanted = match next_integer(&mut args)? {
        0 => false,
        1 => true,
        _ => return Err(Reply::error("ERR The bit argument must be 1 or 0.")),
    };
    let has_end = args.remaining() >= 2;
    let searched = searched(args)?;
    let Some(text) = text_of(call.look_up(view, key))? else {
        return Ok(Reply::Integer(if wanted { -1 } else { 0 }));
    };
    let range = searched.bits(text);
    let found = bits::position(text, range.clone(), wanted);
    // After a string whose range has no end, there are zeros.
    let behind = !wanted && !has_end && !range.is_empty();
    let found = found.or_else(|| behind.then(|| bits::len(text)));
    Ok(Reply::Integer(found.map_or(-1, u64::cast_signed)))
}

/// The units to search.
fn searched(mut args: Args<'_>) -> Result<Units, Reply> {
    if args.remaining() > 3 {
        return Err(error::syntax());
    }
    let first = match args.remaining() {
        0 => 0,
        _ => next_integer(&mut args)?,
    };
    let last = args.next_optional();
    // The unit is checked before the number in front of it.
    let width = unit(args.next_optional())?;
    let last = match last {
        Some(last) => integer(last).ok_or_else(error::not_an_integer)?,
        None => -1,
    };
    Ok(Units { first, last, width })
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Bench, err, int};
    use super::*;

    #[test]
    fn ones_are_counted_in_bytes_or_bits_from_either_end() {
        let mut bench = Bench::default();
        bench.run("SET a foobar");
        for (range, ones) in [
            ("", 26),
            (" 0 0", 4),
            (" 1 1", 6),
            (" 1 1 byte", 6),
            (" 5 30 BIT", 17),
            (" -2 -1", 7),
            (" -1 -2", 0),
            (" 5 2", 0),
            (" 0 -100", 4),
            (" -100 -99", 4),
            (" 0 9223372036854775807 bit", 26),
            (" -9223372036854775808 9223372036854775807 bit", 26),
            (" 9223372036854775807 9223372036854775807 bit", 0),
        ] {
            assert_eq!(
                bench.run(&format!("BITCOUNT a{range}")),
                int(ones),
                "{range}"
            );
        }
        // The arguments are checked before the key, as in Redis 7.4.
        bench.run("BF.ADD f x");
        for key in ["a", "none", "f"] {
            for range in ["0", "0 1 NOPE", "-1 -2 NOPE", "0 1 BIT 1"] {
                let line = format!("BITCOUNT {key} {range}");
                assert_eq!(bench.run(&line), error::syntax(), "{line}");
            }
            for range in ["0 x NOPE", "a b", "0 b"] {
                let line = format!("BITCOUNT {key} {range}");
                assert_eq!(bench.run(&line), error::not_an_integer(), "{line}");
            }
        }
        assert_eq!(bench.run("BITCOUNT none 0 1"), int(0));
        assert_eq!(bench.run("BITCOUNT f 0 1"), error::wrong_type());
    }

    #[test]
    fn the_first_bit_is_found_and_zeros_follow_a_string_without_an_end() {
        let mut bench = Bench::default();
        bench.run_words(&[b"SET", b"a", b"\xff\xf0\x00"]);
        bench.run_words(&[b"SET", b"ones", b"\xff\xff\xff"]);
        bench.run("SET empty ''");
        for (line, position) in [
            ("a 0", 12),
            ("a 1", 0),
            ("a 1 2", -1),
            ("a 0 2", 16),
            ("a 1 1 -1 BYTE", 8),
            ("a 1 7 15 BIT", 7),
            ("a 0 7 11 bit", -1),
            ("a 0 -12 -1 bit", 12),
            ("ones 0", 24),
            ("ones 0 0", 24),
            ("ones 0 2", 24),
            ("ones 0 3", -1),
            ("ones 0 0 -1", -1),
            ("ones 0 0 100", -1),
            ("ones 0 5 6 BIT", -1),
            ("ones 1 -100 -100", 0),
            ("empty 0", -1),
            ("empty 0 0", -1),
            ("none 0 5 6 BIT", 0),
            ("none 1", -1),
        ] {
            assert_eq!(
                bench.run(&format!("BITPOS {line}")),
                int(position),
                "{line}"
            );
        }
        let bit = err("ERR The bit argument must be 1 or 0.");
        assert_eq!(bench.run("BITPOS none 2 x"), bit);
        bench.run("BF.ADD f x");
        for key in ["a", "none", "f"] {
            assert_eq!(bench.run(&format!("BITPOS {key} 2")), bit);
            for range in ["0 0 x NOPE", "0 1 hello hello2", "0 0 1 BIT 1"] {
                let line = format!("BITPOS {key} {range}");
                assert_eq!(bench.run(&line), error::syntax(), "{line}");
            }
            for range in ["x", "0 a b", "0 0 x", "0 0 x BIT"] {
                let line = format!("BITPOS {key} {range}");
                assert_eq!(bench.run(&line), error::not_an_integer(), "{line}");
            }
        }
        assert_eq!(bench.run("BITPOS f 1 0"), error::wrong_type());
    }
}
