//! SETBIT and GETBIT, and batches of them.

use std::ops::ControlFlow;

use everbloom_commands::Outcome;
use everbloom_commands::number::integer;
use everbloom_files::{Text, Value};
use everbloom_resp::Reply;
use everbloom_store::keyspace::View;
use smallvec::SmallVec;

use super::super::strings::text_of;
use super::super::{Call, error, flag};
use super::bits;

/// Why a call is refused, as the text of the reply.
pub type Refusal = &'static str;

/// An offset that is no place in a string.
pub const BAD_OFFSET: Refusal = "ERR bit offset is not an integer or out of range";
const BAD_BIT: Refusal = "ERR bit is not an integer or out of range";

/// Requests of a batch whose bits are asked for before the first of them is read.
const GROUP: usize = 64;

/// An offset in a string of up to `limit` bytes.
#[inline]
pub fn parse_offset(text: &[u8], limit: usize) -> Result<u64, Refusal> {
    let offset = integer(text).ok_or(BAD_OFFSET)?;
    checked_offset(offset, limit)
}

/// An offset that lies in a string of up to `limit` bytes.
#[inline]
pub fn checked_offset(offset: i64, limit: usize) -> Result<u64, Refusal> {
    let offset = u64::try_from(offset).map_err(|_| BAD_OFFSET)?;
    let inside = offset / 8 < limit as u64;
    inside.then_some(offset).ok_or(BAD_OFFSET)
}

/// A bit that is to be set: where, and to what.
#[derive(Debug, Clone, Copy)]
struct Change {
    offset: u64,
    on: bool,
}

impl Change {
    #[inline]
    fn parse([offset, bit]: [&[u8]; 2], limit: usize) -> Result<Self, Refusal> {
        let offset = parse_offset(offset, limit)?;
        let on = match bit {
            b"0" => false,
            b"1" => true,
            _ => return Err(BAD_BIT),
        };
        Ok(Change { offset, on })
    }

    /// Whether nothing would change.
    #[inline]
    fn is_made(self, text: &[u8]) -> bool {
        bits::reaches(text, self.offset) && bits::get(text, self.offset) == self.on
    }

    /// Makes it in a string that grows if it must; returns what the bit was.
    #[inline]
    fn make(self, text: &mut Text) -> bool {
        bits::reach(text, self.offset);
        bits::set(text, self.offset, self.on)
    }
}

/// `SETBIT key offset value`
pub fn setbit(call: &Call<'_>, view: &mut View<'_>) -> Result<Outcome, Reply> {
    let (db, mut args) = (call.session.db, call.args());
    let key = args.next_bytes()?;
    let words = [args.next_bytes()?, args.next_bytes()?];
    let change = Change::parse(words, call.settings.proto_max_bulk_len).map_err(Reply::error)?;
    let old = match text_of(view.get(db, key))? {
        Some(text) if change.is_made(text) => return Ok(Outcome::unchanged(flag(change.on))),
        Some(_) => view.modify(db, key, |value| match value {
            Value::Text(text) => change.make(text),
            Value::Filter(_) => false,
        }),
        None => {
            let mut text = Text::default();
            change.make(&mut text);
            view.insert(db, key, Value::Text(text), None);
            None
        }
    };
    Ok(Outcome::verbatim(flag(old.unwrap_or(false))))
}

/// `GETBIT key offset`
pub fn getbit(call: &Call<'_>, view: &View<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let (key, offset) = (args.next_bytes()?, args.next_bytes()?);
    let offset = parse_offset(offset, call.settings.proto_max_bulk_len).map_err(Reply::error)?;
    let text = text_of(call.look_up(view, key))?;
    Ok(flag(bits::get(text.unwrap_or_default(), offset)))
}

/// Asks for the bits at these offsets.
pub fn ask_ahead<'o>(text: &[u8], offsets: impl Iterator<Item = &'o [u8]>) {
    for offset in offsets.filter_map(integer) {
        bits::prefetch(text, offset.cast_unsigned());
    }
}

/// Executes GETBIT for each of these offsets; `emit` gets the answers in order. `None` for a string
/// is a value of another type. Returns how many of the requests looked at the key.
pub fn get_each(
    offsets: &[&[u8]],
    text: Option<&[u8]>,
    limit: usize,
    mut emit: impl FnMut(Result<bool, Refusal>),
) -> usize {
    let mut looked = 0;
    for group in offsets.chunks(GROUP) {
        let parsed = group.iter().map(|offset| {
            let offset = parse_offset(offset, limit)?;
            bits::prefetch(text.unwrap_or_default(), offset);
            Ok(offset)
        });
        let parsed: SmallVec<[Result<u64, Refusal>; GROUP]> = parsed.collect();
        for offset in parsed {
            looked += usize::from(offset.is_ok());
            let text = text.ok_or(error::WRONG_TYPE);
            emit(offset.and_then(|offset| Ok(bits::get(text?, offset))));
        }
    }
    looked
}

/// One SETBIT of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Offset and bit, as they came.
    pub words: [&'a [u8]; 2],
    /// What the bit was.
    pub old: Result<bool, Refusal>,
    /// Whether the string is another now.
    pub changed: bool,
    /// Whether it is longer.
    pub grown: bool,
}

/// Executes SETBIT for each of these offsets and bits; `emit` gets the answers in order, and may
/// end the batch. `None` for a string is a value of another type; one that does not exist is empty,
/// and stays so if no request is valid. Returns how many requests were executed.
pub fn set_each<'a>(
    changes: &[[&'a [u8]; 2]],
    mut text: Option<&mut Text>,
    limit: usize,
    mut emit: impl FnMut(Answer<'a>) -> ControlFlow<()>,
) -> usize {
    let mut executed = 0;
    for group in changes.chunks(GROUP) {
        let parsed = group.iter().map(|words| {
            let change = Change::parse(*words, limit)?;
            bits::prefetch(text.as_deref().map_or(&[], |text| text), change.offset);
            Ok(change)
        });
        let parsed: SmallVec<[Result<Change, Refusal>; GROUP]> = parsed.collect();
        for (words, change) in group.iter().zip(parsed) {
            let mut grown = false;
            let mut changed = false;
            let mut make = || {
                let change = change?;
                let text = text.as_mut().ok_or(error::WRONG_TYPE)?;
                grown = bits::reach(text, change.offset);
                let old = bits::set(text, change.offset, change.on);
                changed = grown || old != change.on;
                Ok(old)
            };
            let (words, old) = (*words, make());
            executed += 1;
            let answer = Answer {
                words,
                old,
                changed,
                grown,
            };
            if emit(answer).is_break() {
                return executed;
            }
        }
    }
    executed
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Bench, bulk, err, int};
    use super::*;
    use crate::config::Settings;

    #[test]
    fn bits_are_set_and_read() {
        let mut bench = Bench::default();
        assert_eq!(bench.run("GETBIT a 9"), int(0));
        assert_eq!(bench.run("SETBIT a 9 1"), int(0));
        assert_eq!(bench.run("SETBIT a 9 1"), int(1));
        assert_eq!(bench.run("GETBIT a 9"), int(1));
        assert_eq!(bench.run("GET a"), bulk("\0@"));
        bench.run("PEXPIRE a 100");
        assert_eq!(bench.run("SETBIT a 9 0"), int(1));
        assert_eq!(bench.run("PTTL a"), int(100));
        assert_eq!(bench.run("SETBIT a 23 0"), int(0));
        assert_eq!(bench.run("STRLEN a"), int(3));
        assert_eq!(bench.run("GETBIT a 4294967295"), int(0));
    }

    #[test]
    fn what_is_no_place_and_no_bit_is_refused_before_the_key_is_looked_at() {
        let mut bench = Bench::default();
        bench.run("BF.ADD f x");
        for offset in ["x", "-1", "''", "01", "4294967296", "9223372036854775808"] {
            for line in [format!("SETBIT f {offset} 2"), format!("GETBIT f {offset}")] {
                assert_eq!(bench.run(&line), err(BAD_OFFSET), "{line}");
            }
        }
        for bit in ["2", "-1", "x", "01", "''"] {
            assert_eq!(bench.run(&format!("SETBIT f 1 {bit}")), err(BAD_BIT));
        }
        assert_eq!(bench.run("SETBIT f 1 1"), error::wrong_type());
        assert_eq!(bench.run("GETBIT f 1"), error::wrong_type());
        let mut bench = Bench::with(Settings {
            proto_max_bulk_len: 10,
            ..Settings::default()
        });
        assert_eq!(bench.run("SETBIT a 79 0"), int(0));
        assert_eq!(bench.run("SETBIT a 80 0"), err(BAD_OFFSET));
        assert_eq!(bench.run("STRLEN a"), int(10));
    }

    #[test]
    fn logs_get_what_changed() {
        let mut bench = Bench::default();
        for (line, logged) in [
            ("SETBIT a 8 0", true),
            ("SETBIT a 8 0", false),
            ("SETBIT a 8 1", true),
            ("SETBIT a 8 1", false),
            ("SETBIT a 15 0", false),
            ("SETBIT a 16 0", true),
            ("SETBIT a x 0", false),
        ] {
            assert_eq!(bench.logged(line).as_deref(), logged.then_some(line));
        }
    }

    /// Reads or sets many bits, with errors between them, as a batch and one by one.
    #[test]
    fn batches_answer_as_one_by_one() {
        let mut random = everbloom_dev::Random(1);
        let word = |random: &mut everbloom_dev::Random| match random.below(40) {
            0 => "x".to_owned(),
            1 => "800".to_owned(),
            _ => random.below(800).to_string(),
        };
        for ends_grown in [false, true] {
            let (mut batch, mut single) = (Text::from(vec![0; 3]), Text::from(vec![0; 3]));
            for _ in 0..100 {
                let lines: Vec<[String; 2]> = (0..random.below(150))
                    .map(|_| {
                        [
                            word(&mut random),
                            random.pick(&["0", "1", "1", "2"]).to_owned(),
                        ]
                    })
                    .collect();
                let lines: Vec<[&[u8]; 2]> = lines
                    .iter()
                    .map(|words| words.each_ref().map(String::as_bytes))
                    .collect();
                let mut rest = lines.as_slice();
                while !rest.is_empty() {
                    let mut answers = Vec::new();
                    let executed = set_each(rest, Some(&mut batch), 100, |answer| {
                        answers.push((answer.old, answer.changed));
                        match answer.grown && ends_grown {
                            true => ControlFlow::Break(()),
                            false => ControlFlow::Continue(()),
                        }
                    });
                    assert_eq!(answers.len(), executed);
                    let (done, left) = rest.split_at(executed);
                    for (at, (words, answer)) in done.iter().zip(answers).enumerate() {
                        let before = single.clone();
                        let old = Change::parse(*words, 100).map(|change| change.make(&mut single));
                        assert_eq!(answer, (old, before != single));
                        let grew = single.len() > before.len();
                        assert!(!ends_grown || !grew || at + 1 == executed);
                    }
                    assert_eq!(batch, single);
                    rest = left;
                }
                let offsets: Vec<&[u8]> = lines.iter().map(|words| words[0]).collect();
                let mut found = Vec::new();
                let looked = get_each(&offsets, Some(&batch), 100, |bit| found.push(bit));
                let expected: Vec<_> = offsets
                    .iter()
                    .map(|offset| Ok(bits::get(&single, parse_offset(offset, 100)?)))
                    .collect();
                assert_eq!(found, expected);
                assert_eq!(looked, expected.iter().filter(|bit| bit.is_ok()).count());
            }
        }
        let mut refused = Vec::new();
        get_each(&[b"1", b"x"], None, 100, |bit| refused.push(bit));
        let changes: [[&[u8]; 2]; 3] = [[b"1", b"1"], [b"x", b"2"], [b"1", b"2"]];
        set_each(&changes, None, 100, |answer| {
            refused.push(answer.old);
            ControlFlow::Continue(())
        });
        let wrong = Err(error::WRONG_TYPE);
        assert_eq!(
            refused,
            [wrong, Err(BAD_OFFSET), wrong, Err(BAD_OFFSET), Err(BAD_BIT)]
        );
    }
}
