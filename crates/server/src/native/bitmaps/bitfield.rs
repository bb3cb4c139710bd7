//! BITFIELD and BITFIELD_RO: integers of any width at any offset.

use everbloom_commands::Args;
use everbloom_commands::number::integer;
use everbloom_files::{Text, Value};
use everbloom_resp::Reply;
use everbloom_store::keyspace::{ValueSlot, View};

use super::super::strings::{change, text_of};
use super::super::{Call, append, error, gather, next_integer};
use super::bits;
use super::single::{BAD_OFFSET, checked_offset};
use crate::locked::Locked;

/// An integer in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    signed: bool,
    /// The width: 1 to 64 bits, or 1 to 63 for an unsigned number.
    width: u32,
    /// Its first bit.
    offset: u64,
}

/// The sign and the width of a type, such as `i16` or `u8`.
fn parse_type(word: &[u8]) -> Option<(bool, u32)> {
    let (signed, width, widest) = match word {
        [b'i', width @ ..] => (true, width, 64),
        [b'u', width @ ..] => (false, width, 63),
        _ => return None,
    };
    let width = u32::try_from(integer(width)?).ok()?;
    (1..=widest).contains(&width).then_some((signed, width))
}

impl Field {
    fn parse(word: &[u8], offset: &[u8], limit: usize) -> Result<Self, Reply> {
        let (signed, width) = parse_type(word).ok_or_else(|| {
            Reply::error(
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
                 supported but i64 is.",
            )
        })?;
        let (number, unit) = match offset {
            [b'#', number @ ..] => (number, i64::from(width)),
            number => (number, 1),
        };
        let offset = integer(number).and_then(|number| number.checked_mul(unit));
        let offset = offset.ok_or(BAD_OFFSET);
        let offset = offset.and_then(|offset| checked_offset(offset, limit));
        Ok(Field {
            signed,
            width,
            offset: offset.map_err(Reply::error)?,
        })
    }

    fn last_bit(self) -> u64 {
        self.offset + u64::from(self.width) - 1
    }

    fn least(self) -> i128 {
        if self.signed {
            -1 << (self.width - 1)
        } else {
            0
        }
    }

    fn greatest(self) -> i128 {
        (1 << (self.width - u32::from(self.signed))) - 1
    }

    fn get(self, text: &[u8]) -> i64 {
        self.number(bits::read(text, self.offset, self.width))
    }

    /// The number that these bits represent.
    fn number(self, bits: u64) -> i64 {
        let unused = 64 - self.width;
        if self.signed {
            (bits << unused).cast_signed() >> unused
        } else {
            bits.cast_signed()
        }
    }
}

/// How a number that does not fit its type is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

impl Overflow {
    fn parse(word: &[u8]) -> Result<Self, Reply> {
        match word.to_ascii_uppercase().as_slice() {
            b"WRAP" => Ok(Overflow::Wrap),
            b"SAT" => Ok(Overflow::Saturate),
            b"FAIL" => Ok(Overflow::Fail),
            _ => Err(Reply::error("ERR Invalid OVERFLOW type specified")),
        }
    }

    /// The number to write instead of `wanted`, if any.
    fn settle(self, wanted: i128, field: Field) -> Option<i64> {
        let (least, greatest) = (field.least(), field.greatest());
        let settled = match self {
            _ if (least..=greatest).contains(&wanted) => wanted,
            Overflow::Fail => return None,
            Overflow::Saturate => wanted.clamp(least, greatest),
            Overflow::Wrap => (wanted - least).rem_euclid(greatest - least + 1) + least,
        };
        i64::try_from(settled).ok()
    }
}

/// A subcommand: GET, or SET or INCRBY by a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FieldOperation {
    field: Field,
    change: Option<(Change, i64, Overflow)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Set,
    Add,
}

impl FieldOperation {
    /// The parsed arguments after the key.
    fn parse_all(mut args: Args<'_>, limit: usize) -> Result<Vec<Self>, Reply> {
        let mut operations = Vec::new();
        let mut overflow = Overflow::Wrap;
        while let Some(word) = args.next_optional() {
            let change = match (word.to_ascii_uppercase().as_slice(), args.remaining()) {
                (b"OVERFLOW", 1..) => {
                    overflow = Overflow::parse(args.next_bytes()?)?;
                    continue;
                }
                (b"GET", 2..) => None,
                (b"SET", 3..) => Some(Change::Set),
                (b"INCRBY", 3..) => Some(Change::Add),
                _ => return Err(error::syntax()),
            };
            let field = Field::parse(args.next_bytes()?, args.next_bytes()?, limit)?;
            let change = match change {
                None => None,
                Some(change) => Some((change, next_integer(&mut args)?, overflow)),
            };
            append(&mut operations, FieldOperation { field, change })?;
        }
        Ok(operations)
    }

    /// The last bit that it may write.
    fn last_bit(&self) -> Option<u64> {
        self.change.map(|_| self.field.last_bit())
    }

    /// Its reply, and the number to write if that differs from the current one.
    fn evaluate(&self, text: &[u8]) -> (Reply, Option<i64>) {
        let (field, old) = (self.field, self.field.get(text));
        let Some((change, number, overflow)) = self.change else {
            return (Reply::Integer(old), None);
        };
        let wanted = match change {
            // For an unsigned type, a number below 0 counts as too large.
            Change::Set if !field.signed => i128::from(number.cast_unsigned()),
            Change::Set => number.into(),
            Change::Add => i128::from(old) + i128::from(number),
        };
        let Some(new) = overflow.settle(wanted, field) else {
            return (Reply::Null, None);
        };
        let reply = if change == Change::Add { new } else { old };
        (Reply::Integer(reply), (new != old).then_some(new))
    }

    fn run(&self, text: &mut Text) -> Reply {
        let (reply, new) = self.evaluate(text);
        if let Some(number) = new {
            let Field { offset, width, .. } = self.field;
            bits::write(text, offset, width, number.cast_unsigned());
        }
        reply
    }
}

/// The replies to operations that change nothing.
fn replies(operations: &[FieldOperation], text: &[u8]) -> Result<Reply, Reply> {
    let replies = operations.iter().map(|one| Ok(one.evaluate(text).0));
    gather(replies).map(Reply::Array)
}

/// `BITFIELD key [GET type offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET type offset value |
/// INCRBY type offset increment> ...]`
pub fn bitfield(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let key = call.key(args.next_bytes()?);
    let operations = FieldOperation::parse_all(args, call.settings.proto_max_bulk_len)?;
    let Some(last_bit) = operations.iter().filter_map(FieldOperation::last_bit).max() else {
        let text = text_of(call.look_up(view.read(), key))?.unwrap_or_default();
        return replies(&operations, text);
    };
    let changes = |text: &[u8]| {
        let mut changes = operations.iter().map(|one| one.evaluate(text).1);
        !bits::reaches(text, last_bit) || changes.any(|change| change.is_some())
    };
    if let Some(text) = text_of(view.read().get(key))?
        && !changes(text)
    {
        let replies = replies(&operations, text);
        // Redis makes it a string of its own before it compares.
        view.entry(key).change(|found| {
            if let ValueSlot::Held(Value::Text(text)) = found {
                text.edit();
            }
        });
        return replies;
    }
    let mut replies = Vec::new();
    let reserved = replies.try_reserve_exact(operations.len());
    reserved.map_err(|_| error::out_of_memory())?;
    // The string grows even if no number is written.
    change(view, key, |text| {
        bits::reach(text, last_bit)?;
        replies.extend(operations.iter().map(|one| one.run(text)));
        Ok(())
    })?;
    view.log(key.db, call.args);
    Ok(Reply::Array(replies))
}

/// `BITFIELD_RO key [GET type offset ...]`
pub fn bitfield_ro(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let key = call.key(args.next_bytes()?);
    let operations = FieldOperation::parse_all(args, call.settings.proto_max_bulk_len)?;
    if operations.iter().any(|one| one.last_bit().is_some()) {
        let text = "ERR BITFIELD_RO only supports the GET subcommand";
        return Err(Reply::error(text));
    }
    let text = text_of(call.look_up(view, key))?.unwrap_or_default();
    replies(&operations, text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::testing::{Bench, bulk, err, int};
    use super::*;

    fn ints(numbers: &[i64]) -> Reply {
        Reply::Array(numbers.iter().copied().map(int).collect())
    }

    const BAD_TYPE: &str = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 \
                            is not supported but i64 is.";

    #[test]
    fn numbers_are_read_written_and_added_to() {
        let mut bench = Bench::default();
        for (operations, replies) in [
            ("SET u8 0 255 GET i8 0 GET u4 6", &[0, -1, 12][..]),
            (
                "SET i5 #1 -3 GET i5 5 GET u5 #1 GET u5 #0",
                &[-4, -3, 29, 31],
            ),
            ("INCRBY i64 #0 -9223372036854775808", &[0]),
            ("get u1 4294967295", &[0]),
            ("", &[]),
            ("OVERFLOW sat", &[]),
        ] {
            let line = format!("BITFIELD a {operations}");
            let replies = match operations {
                line if line.starts_with("INCRBY") => {
                    let before = bench.run("BITFIELD_RO a GET i64 0");
                    let Reply::Array(before) = before else {
                        panic!()
                    };
                    vec![before[0].as_integer().unwrap() ^ i64::MIN]
                }
                _ => replies.to_vec(),
            };
            assert_eq!(bench.run(line.trim_end()), ints(&replies), "{line}");
        }
        assert_eq!(
            bench.run("BITFIELD_RO none GET i64 7 GET u63 9"),
            ints(&[0, 0])
        );
        assert_eq!(bench.run("EXISTS none"), int(0));
    }

    #[test]
    fn numbers_too_large_wrap_saturate_or_fail() {
        let mut bench = Bench::default();
        for (operation, reply, holds) in [
            ("OVERFLOW WRAP INCRBY u8 0 300", int(44), "GET u8 0 44"),
            ("OVERFLOW SAT INCRBY u8 0 300", int(255), "GET u8 0 255"),
            ("OVERFLOW FAIL INCRBY u8 0 300", Reply::Null, "GET u8 0 0"),
            ("OVERFLOW WRAP INCRBY u8 0 -1", int(255), "GET u8 0 255"),
            ("OVERFLOW SAT INCRBY u8 0 -1", int(0), "GET u8 0 0"),
            ("OVERFLOW SAT SET u8 0 -1", int(0), "GET u8 0 255"),
            ("OVERFLOW WRAP SET u8 0 -2", int(0), "GET u8 0 254"),
            ("OVERFLOW FAIL SET u8 0 256", Reply::Null, "GET u8 0 0"),
            ("OVERFLOW SAT SET i8 0 -129", int(0), "GET i8 0 -128"),
            ("OVERFLOW WRAP INCRBY i8 0 128", int(-128), "GET i8 0 -128"),
            ("OVERFLOW SAT INCRBY i8 0 128", int(127), "GET i8 0 127"),
        ] {
            bench.run("DEL a");
            let line = format!("BITFIELD a {operation}");
            assert_eq!(bench.run(&line), Reply::Array(vec![reply]), "{line}");
            let (get, number) = holds.rsplit_once(' ').unwrap();
            let number = number.parse().unwrap();
            assert_eq!(
                bench.run(&format!("BITFIELD a {get}")),
                ints(&[number]),
                "{line}"
            );
        }
    }

    #[test]
    fn logs_get_what_changed_and_strings_that_grew() {
        let mut bench = Bench::default();
        for (operations, logged) in [
            ("OVERFLOW FAIL SET u8 8 256", true),
            ("OVERFLOW FAIL SET u8 8 256", false),
            ("SET u8 8 0", false),
            ("SET u8 8 1", true),
            ("SET u8 8 1 GET u8 8 INCRBY u8 8 0", false),
            ("SET u8 8 0 SET u8 8 1", true),
            ("SET u8 16 0", true),
            ("OVERFLOW FAIL SET u8 24 256", true),
            ("GET u8 999", false),
            ("", false),
        ] {
            let line = format!("BITFIELD a {operations}");
            let line = line.trim_end();
            assert_eq!(bench.logged(line).as_deref(), logged.then_some(line));
        }
        assert_eq!(bench.run("GET a"), bulk("\0\u{1}\0\0"));
    }

    #[test]
    fn errors_come_in_redis_order_and_nothing_is_changed() {
        let mut bench = Bench::default();
        bench.run("BF.ADD f x");
        let syntax = "ERR syntax error";
        let integer = "ERR value is not an integer or out of range";
        for (operations, text) in [
            ("SET u8 0 1 NOPE", syntax),
            ("GET u8", syntax),
            ("SET u8 0", syntax),
            ("OVERFLOW", syntax),
            (
                "OVERFLOW NOPE GET x 0",
                "ERR Invalid OVERFLOW type specified",
            ),
            ("GET u64 x", BAD_TYPE),
            ("GET u0 0", BAD_TYPE),
            ("GET i65 0", BAD_TYPE),
            ("GET U8 0", BAD_TYPE),
            ("GET '' 0", BAD_TYPE),
            ("SET u8 -1 x", BAD_OFFSET),
            ("GET u8 #x", BAD_OFFSET),
            ("GET u8 #536870912", BAD_OFFSET),
            ("GET u63 #9223372036854775807", BAD_OFFSET),
            ("SET u8 0 x", integer),
            ("INCRBY u8 0 9223372036854775808", integer),
            ("SET u8 0 1", error::WRONG_TYPE),
            ("GET u8 0", error::WRONG_TYPE),
        ] {
            assert_eq!(
                bench.run(&format!("BITFIELD f {operations}")),
                err(text),
                "{operations}"
            );
        }
        let only = "ERR BITFIELD_RO only supports the GET subcommand";
        assert_eq!(bench.run("BITFIELD_RO f SET u8 0 1"), err(only));
        assert_eq!(bench.run("BITFIELD_RO f GET u8 0"), error::wrong_type());
    }

    proptest! {
        /// How Redis adds: by the lowest bits of the sum.
        #[test]
        fn sums_wrap_as_their_lowest_bits(
            signed: bool, width in 1_u32..=63, number: i64, step: i64, widest: bool,
        ) {
            let width = if widest && signed { 64 } else { width };
            let field = Field { signed, width, offset: 0 };
            let number = field.number(number.cast_unsigned() & (u64::MAX >> (64 - width)));
            prop_assert!((field.least()..=field.greatest()).contains(&i128::from(number)));
            let sum = i128::from(number) + i128::from(step);
            let lowest = number.wrapping_add(step).cast_unsigned() & (u64::MAX >> (64 - width));
            let wrapped = Overflow::Wrap.settle(sum, field);
            prop_assert_eq!(wrapped, Some(field.number(lowest)));
            let fits = Overflow::Fail.settle(sum, field);
            prop_assert_eq!(fits, wrapped.filter(|wrapped| i128::from(*wrapped) == sum));
        }
    }
}
