//! SETBIT and GETBIT.

use everbloom_commands::number::integer;
use everbloom_commands::{Answers, Changes, LazyContext, ReadSlot, Run, Slot};
use everbloom_files::{OutOfMemory, Text};
use everbloom_resp::Reply;
use smallvec::SmallVec;

use super::super::error;
use super::bits;
use crate::limits::{BITS_TOGETHER, MAX_BITS_TOGETHER};

pub const SETBIT: &str = "setbit";
pub const GETBIT: &str = "getbit";

/// Why a call is refused; the text is the reply.
pub type Refusal = &'static str;

/// An offset outside of any string.
pub const BAD_OFFSET: Refusal = "ERR bit offset is not an integer or out of range";
const BAD_BIT: Refusal = "ERR bit is not an integer or out of range";

/// An offset in a string of up to `limit` bytes.
#[inline]
pub fn parse_offset(text: &[u8], limit: usize) -> Result<u64, Refusal> {
    let offset = integer(text).ok_or(BAD_OFFSET)?;
    checked_offset(offset, limit)
}

/// An offset within a string of up to `limit` bytes.
#[inline]
pub fn checked_offset(offset: i64, limit: usize) -> Result<u64, Refusal> {
    let offset = u64::try_from(offset).map_err(|_| BAD_OFFSET)?;
    let inside = offset / 8 < limit as u64;
    inside.then_some(offset).ok_or(BAD_OFFSET)
}

/// A bit to set: its location and its value.
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

    /// Sets it, and extends the string if needed. Returns the old bit, and whether the string has
    /// changed.
    #[inline]
    fn make(self, text: &mut Text) -> Result<(bool, bool), OutOfMemory> {
        let grown = bits::reach(text, self.offset)?;
        text.edit();
        let old = bits::set(text, self.offset, self.on);
        Ok((old, grown || old != self.on))
    }
}

/// `SETBIT key offset value`
pub fn setbit(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_, Text>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let requests = match run.requests::<4>(SETBIT) {
        Ok(requests) => requests,
        Err(error) => return run.refuse(error, answers),
    };
    for group in requests.chunks(BITS_TOGETHER.get()) {
        let parsed = group.iter().map(|[_, _, offset, bit]| {
            let change = Change::parse([offset, bit], context.max_string_bytes)?;
            if let Slot::Held(text) = slot {
                bits::prefetch(text, change.offset);
            }
            Ok(change)
        });
        let parsed: SmallVec<[Result<Change, Refusal>; MAX_BITS_TOGETHER]> = parsed.collect();
        for (request, change) in group.iter().zip(parsed) {
            run.take(1);
            let change = match change {
                Ok(change) => change,
                Err(refusal) => {
                    answers.reply(Reply::error(refusal));
                    continue;
                }
            };
            let text = match slot {
                Slot::Held(text) => text,
                Slot::Vacant(value) => value.get_or_insert_default(),
                Slot::OtherType => {
                    answers.reply(error::wrong_type());
                    continue;
                }
            };
            let memory = text.memory();
            let Ok((old, changed)) = change.make(text) else {
                forget_empty(slot);
                answers.reply(error::out_of_memory());
                continue;
            };
            answers.integer(old.into());
            if changed {
                changes.repeat(request);
                changes.touch();
            }
            if text.memory() > memory {
                return;
            }
        }
    }
}

/// A new string that could not grow to its first bit makes no key.
#[cold]
fn forget_empty(slot: &mut Slot<'_, Text>) {
    if let Slot::Vacant(value) = slot {
        **value = value.take().filter(|text| !text.is_empty());
    }
}

/// `GETBIT key offset`
pub fn getbit(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: ReadSlot<'_, Text>,
    answers: &mut dyn Answers,
) {
    let offsets = match run.items(GETBIT) {
        Ok(offsets) => offsets,
        Err(error) => return run.refuse(error, answers),
    };
    let text = match slot {
        ReadSlot::Held(text) => Some(&**text),
        ReadSlot::Missing => Some(&[][..]),
        ReadSlot::OtherType => None,
    };
    let mut offsets = offsets.map(|offset| {
        let offset = parse_offset(offset, context.max_string_bytes)?;
        bits::prefetch(text.unwrap_or_default(), offset);
        Ok(offset)
    });
    while !run.is_empty() {
        let parsed: SmallVec<[Result<u64, Refusal>; MAX_BITS_TOGETHER]> =
            offsets.by_ref().take(BITS_TOGETHER.get()).collect();
        for offset in parsed {
            match (offset, text) {
                (Err(refusal), _) => {
                    run.refuse_next(Reply::error(refusal), answers);
                    continue;
                }
                (Ok(_), None) => answers.reply(error::wrong_type()),
                (Ok(offset), Some(text)) => answers.integer(bits::get(text, offset).into()),
            }
            run.take(1);
        }
    }
}

/// Prefetches the bits at these offsets.
pub fn prefetch<'o>(text: &[u8], offsets: impl Iterator<Item = &'o [u8]>) {
    for offset in offsets.filter_map(integer) {
        bits::prefetch(text, offset.cast_unsigned());
    }
}

#[cfg(test)]
mod tests {
    use everbloom_commands::Context;
    use everbloom_commands::run::Replies;

    use super::super::super::flag;
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

    /// Runs requests of one command until all have replies.
    fn answers(
        words: &[&[u8]],
        width: usize,
        mut call: impl FnMut(&mut Run<'_>, &mut Replies),
    ) -> Vec<Reply> {
        let (mut run, mut replies) = (Run::of(words, width), Replies::default());
        while !run.is_empty() {
            call(&mut run, &mut replies);
        }
        replies.into_vec()
    }

    /// Reads or sets many bits, with errors between them, as a run and one by one.
    #[test]
    fn runs_answer_as_one_by_one() {
        let context: LazyContext<'_> = Context {
            max_string_bytes: 100,
            ..Context::default()
        }
        .into();
        let mut random = everbloom_dev::Random(1);
        let word = |random: &mut everbloom_dev::Random| match random.below(40) {
            0 => "x".to_owned(),
            1 => "800".to_owned(),
            _ => random.below(800).to_string(),
        };
        let (mut together, mut single) = (Text::from(vec![0; 3]), Text::from(vec![0; 3]));
        for _ in 0..200 {
            let mut words = Vec::new();
            for _ in 0..random.below(150) {
                let bit = random.pick(&["0", "1", "1", "2"]).to_owned();
                words.extend(["SETBIT".into(), "k".into(), word(&mut random), bit]);
            }
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            let before = together.memory();
            let replies = answers(&words, 4, |run, replies| {
                let memory = together.memory();
                let mut slot = Slot::Held(&mut together);
                setbit(&context, run, &mut slot, replies, &mut ());
                // It runs to the end unless the string has taken memory.
                assert!(run.is_empty() || together.memory() > memory);
            });
            assert!(together.memory() >= before);
            let expected = words.chunks(4).map(|request| {
                let change = Change::parse([request[2], request[3]], 100);
                let old = change.map(|change| change.make(&mut single).unwrap().0);
                old.map_or_else(Reply::error, flag)
            });
            assert_eq!(replies, expected.collect::<Vec<_>>());
            assert_eq!(together, single);

            let words: Vec<&[u8]> = words
                .chunks(4)
                .flat_map(|request| [&b"GETBIT"[..], b"k", request[2]])
                .collect();
            let mut refused = 0;
            let replies = answers(&words, 3, |run, replies| {
                getbit(&context, run, ReadSlot::Held(&together), replies);
                refused += run.refused();
            });
            let expected = words.chunks(3).map(|request| {
                let offset = parse_offset(request[2], 100);
                offset.map_or_else(Reply::error, |offset| flag(bits::get(&single, offset)))
            });
            let expected: Vec<Reply> = expected.collect();
            assert_eq!(replies, expected);
            assert_eq!(refused, expected.iter().filter(|it| it.is_error()).count());
        }
    }

    #[test]
    fn requests_of_a_run_on_another_type_are_refused_one_by_one() {
        let context = LazyContext::default();
        let words: [&[u8]; 6] = [b"GETBIT", b"k", b"1", b"GETBIT", b"k", b"x"];
        let mut refused = answers(&words, 3, |run, replies| {
            getbit(&context, run, ReadSlot::OtherType, replies);
        });
        let words: [&[u8]; 8] = [b"SETBIT", b"k", b"x", b"2", b"SETBIT", b"k", b"1", b"1"];
        refused.extend(answers(&words, 4, |run, replies| {
            setbit(&context, run, &mut Slot::OtherType, replies, &mut ());
        }));
        let (wrong, bad) = (error::wrong_type(), err(BAD_OFFSET));
        assert_eq!(refused, [wrong.clone(), bad.clone(), bad, wrong]);
    }
}
