//! BITCOUNT and BITPOS.

use std::ops::Range;

use everbloom_commands::Args;
use everbloom_commands::number::integer;
use everbloom_resp::Reply;
use everbloom_store::keyspace::View;

use super::super::strings::{inclusive, is_backwards, text_of};
use super::super::{Call, count, error, next_integer};
use super::bits;

/// The bits of a unit in which a range is given.
fn unit(word: Option<&[u8]>) -> Result<u64, Reply> {
    match word.map(<[u8]>::to_ascii_uppercase).as_deref() {
        None | Some(b"BYTE") => Ok(8),
        Some(b"BIT") => Ok(1),
        Some(_) => Err(error::syntax()),
    }
}

/// The bits from the unit `first` to the unit `last`.
fn bits_of(unit: u64, text: &[u8], first: i64, last: i64) -> Range<u64> {
    let units = inclusive(first, last, bits::len(text) / unit);
    units.start * unit..units.end * unit
}

/// `BITCOUNT key [start end [BYTE | BIT]]`
pub fn bitcount(call: &Call<'_>, view: &View<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let Some(text) = text_of(call.look_up(view, args.next_bytes()?))? else {
        return Ok(count(0));
    };
    let mut bits = 0..bits::len(text);
    if args.remaining() > 0 {
        bits = counted(args, text)?;
    }
    Ok(Reply::Integer(bits::count(text, bits).cast_signed()))
}

/// The range to count.
fn counted(mut args: Args<'_>, text: &[u8]) -> Result<Range<u64>, Reply> {
    if !(2..=3).contains(&args.remaining()) {
        return Err(error::syntax());
    }
    let (first, last) = (next_integer(&mut args)?, next_integer(&mut args)?);
    if is_backwards(first, last) {
        return Ok(0..0);
    }
    Ok(bits_of(unit(args.next_optional())?, text, first, last))
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`
pub fn bitpos(call: &Call<'_>, view: &View<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let key = args.next_bytes()?;
    let wanted = match next_integer(&mut args)? {
        0 => false,
        1 => true,
        _ => return Err(Reply::error("ERR The bit argument must be 1 or 0.")),
    };
    let Some(text) = text_of(call.look_up(view, key))? else {
        return Ok(Reply::Integer(if wanted { -1 } else { 0 }));
    };
    let has_end = args.remaining() >= 2;
    let range = searched(args, text)?;
    let found = bits::position(text, range.clone(), wanted);
    // After a string whose range has no end, there are zeros.
    let behind = !wanted && !has_end && !range.is_empty();
    let found = found.or_else(|| behind.then(|| bits::len(text)));
    Ok(Reply::Integer(found.map_or(-1, u64::cast_signed)))
}

/// The range to search.
fn searched(mut args: Args<'_>, text: &[u8]) -> Result<Range<u64>, Reply> {
    if args.remaining() > 3 {
        return Err(error::syntax());
    }
    if args.remaining() == 0 {
        return Ok(0..bits::len(text));
    }
    let first = next_integer(&mut args)?;
    let last = args.next_optional();
    // The unit is checked before the number in front of it.
    let unit = unit(args.next_optional())?;
    let last = match last {
        Some(last) => integer(last).ok_or_else(error::not_an_integer)?,
        None => -1,
    };
    Ok(bits_of(unit, text, first, last))
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
            (" -1 -2 NOPE", 0),
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
        for range in ["0", "0 1 NOPE", "0 1 BIT 1"] {
            assert_eq!(bench.run(&format!("BITCOUNT a {range}")), error::syntax());
            assert_eq!(bench.run(&format!("BITCOUNT none {range}")), int(0));
        }
        assert_eq!(bench.run("BITCOUNT a 0 x NOPE"), error::not_an_integer());
        bench.run("BF.ADD f x");
        assert_eq!(bench.run("BITCOUNT f 0"), error::wrong_type());
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
            ("none 0 5 x NOPE", 0),
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
        assert_eq!(bench.run("BITPOS none x"), error::not_an_integer());
        assert_eq!(bench.run("BITPOS a 0 0 x NOPE"), error::syntax());
        assert_eq!(bench.run("BITPOS a 0 0 x BIT"), error::not_an_integer());
        assert_eq!(bench.run("BITPOS a 0 0 1 BIT 1"), error::syntax());
        bench.run("BF.ADD f x");
        assert_eq!(bench.run("BITPOS f 2"), bit);
        assert_eq!(bench.run("BITPOS f 1 x"), error::wrong_type());
    }
}
