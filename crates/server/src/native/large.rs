//! What commands do with values of megabytes: read them, and make them.
//!
//! A command says which bytes it answers with, or what it makes, whatever the size. Little is done
//! at once, under the locks of the command. Much is [`Work`] for another thread: a [`ValueReader`]
//! reads a value as it was at one moment, while other commands change it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use everbloom_commands::replace::Replaced;
use everbloom_commands::table::ReplaceFn;
use everbloom_commands::{CommandError, Context, Filter, FilterKind};
use everbloom_files::rdb::payload::{self, DumpError, RestoreError};
use everbloom_files::{OutOfMemory, Outline, Value};
use everbloom_resp::Reply;
use everbloom_resp::encode::{encode_array_len, encode_bulk_len, encode_integer};
use everbloom_store::keyspace::{Entry, KeyRef, View};
use everbloom_store::reader::{Copied, ValueReader};

use super::{Call, Selected, bulk, error, gather};
use crate::call::{Done, Outcome, Work};
use crate::holds::{Hold, Holds};
use crate::locked::Locked;
use crate::reply_limit::{self, REPLY_TOO_LARGE};
use crate::server::Server;
use crate::slot::any_slot;

/// Answers with what `select` says of the value of the key.
pub fn read(
    call: &Call<'_>,
    view: View<'_>,
    select: impl Fn(&[&[u8]], Option<&Value>) -> Result<Selected, Reply> + Send + 'static,
) -> Result<Outcome, Reply> {
    let name = call.args.get(1).copied().unwrap_or_default();
    let value = call.look_up(view, call.key(name)).map(|entry| &entry.value);
    let (selected, payloads) = (select(call.args, value)?, Payloads::of(call));
    let bytes = match (&selected, value) {
        (Selected::Bytes(_, part), _) => part.end.saturating_sub(part.start),
        (Selected::Payload, Some(value)) => value.stream_len(),
        _ => 0,
    };
    // A payload may be much shorter than the value: its own limit ends it.
    match &selected {
        Selected::Bytes(..) => call.check_string_reply(bytes)?,
        // The header of a filter of many layers is long, too.
        Selected::Reply(Reply::Array(parts)) => {
            for part in parts.iter().filter_map(Reply::as_bytes) {
                call.check_string_reply(part.len() as u64)?;
            }
        }
        Selected::Reply(_) | Selected::Payload => {}
    }
    if call.leaves(bytes) {
        let source = Source::new(call, name);
        let work = move |args: &[&[u8]]| source.answer(|value| select(args, value), payloads);
        return Ok(Work::new(work).into());
    }
    answer_at_once(selected, value, payloads).map(Outcome::Reply)
}

/// Reads what was selected of a value.
fn answer_at_once(
    selected: Selected,
    value: Option<&Value>,
    payloads: Payloads,
) -> Result<Reply, Reply> {
    Ok(match (selected, value) {
        (Selected::Reply(reply), _) => reply,
        (Selected::Payload, Some(value)) => Reply::Bulk(payloads.of_value(value)?),
        (Selected::Payload, None) => Reply::Null,
        (Selected::Bytes(number, part), value) => {
            let bytes = value.map(|value| value.bytes(part)).unwrap_or_default();
            let bytes = match bytes {
                Cow::Borrowed(bytes) => bulk(bytes)?,
                Cow::Owned(bytes) => Reply::Bulk(bytes),
            };
            match number {
                Some(number) => Reply::Array(vec![Reply::Integer(number), bytes]),
                None => bytes,
            }
        }
    })
}

/// A key whose value another thread reads.
struct Source {
    server: Arc<Server>,
    db: usize,
    name: Vec<u8>,
}

impl Source {
    fn new(call: &Call<'_>, name: &[u8]) -> Self {
        Source {
            server: Arc::clone(call.server),
            db: call.session.db,
            name: name.to_vec(),
        }
    }

    fn key(&self) -> KeyRef<'_> {
        self.server.store.keyspace.key(self.db, &self.name)
    }

    /// Answers with what `select` says of the value as it is now.
    fn answer(
        &self,
        select: impl Fn(Option<&Value>) -> Result<Selected, Reply>,
        payloads: Payloads,
    ) -> Done {
        let mut other = None;
        let begun = ValueReader::begin(&self.server.store, self.key(), |value| {
            let selected = select(Some(value));
            let part = match &selected {
                Ok(Selected::Bytes(_, part)) => Some(part.clone()),
                Ok(Selected::Payload) => Some(0..value.stream_len()),
                Ok(Selected::Reply(_)) | Err(_) => None,
            };
            other = Some(selected);
            Some((value.outline(), part?))
        });
        let selected = other.unwrap_or_else(|| select(None));
        let encoded = match (selected, begun) {
            (Ok(Selected::Bytes(number, part)), Some((_, reader))) => {
                self.bytes(number, &part, reader)
            }
            (Ok(Selected::Payload), Some((outline, reader))) => {
                self.payload(&outline, payloads, reader)
            }
            // There is no value by now, or none that is read.
            (selected, _) => {
                let reply = selected.and_then(|it| answer_at_once(it, None, payloads));
                return Done::Reply(reply.unwrap_or_else(|refusal| refusal));
            }
        };
        encoded.map_or_else(Done::Reply, Done::Encoded)
    }

    /// A reply that ends with the bytes of a reader, encoded.
    fn bytes(
        &self,
        number: Option<i64>,
        part: &Range<u64>,
        mut reader: ValueReader,
    ) -> Result<Vec<u8>, Reply> {
        const MAX_HEAD_BYTES: usize = 64;
        let no_memory = |_| error::out_of_memory();
        let len = usize::try_from(part.end - part.start).map_err(no_memory)?;
        let mut out = Vec::new();
        out.try_reserve_exact(len.saturating_add(MAX_HEAD_BYTES))
            .map_err(|_| error::out_of_memory())?;
        if let Some(number) = number {
            encode_array_len(2, &mut out);
            encode_integer(number, &mut out);
        }
        encode_bulk_len(len, &mut out);
        let mut piece = Vec::new();
        while self.next(&mut reader, &mut piece) {
            out.extend_from_slice(&piece);
        }
        if !reader.is_at_end() {
            return Err(incomplete());
        }
        out.extend_from_slice(b"\r\n");
        Ok(out)
    }

    /// The payload of a reader's value as a reply, encoded.
    fn payload(
        &self,
        outline: &Outline,
        payloads: Payloads,
        mut reader: ValueReader,
    ) -> Result<Vec<u8>, Reply> {
        let mut out = payloads.of_pieces(outline, |piece| self.next(&mut reader, piece))?;
        // The payload becomes the reply, so that it is not in memory twice.
        let mut head = Vec::new();
        encode_bulk_len(out.len(), &mut head);
        out.try_reserve_exact(head.len() + 2)
            .map_err(|_| error::out_of_memory())?;
        out.splice(..0, head);
        out.extend_from_slice(b"\r\n");
        Ok(out)
    }

    fn next(&self, reader: &mut ValueReader, piece: &mut Vec<u8>) -> bool {
        !self.server.is_stopping() && reader.next(piece)
    }

    /// A copy of the value; `None` when there is none.
    fn copy(&self) -> Result<Option<Copied>, OutOfMemory> {
        let go_on = || !self.server.is_stopping();
        Copied::make(&self.server.store, self.key(), go_on)
    }
}

/// Copies the value of a key, and goes on with `rest`; `missing` is the reply when there is none.
pub fn copy(
    call: &Call<'_>,
    name: &[u8],
    missing: Reply,
    mut rest: impl FnMut(&Call<'_>, &mut Locked<'_>, &mut Copied) -> Result<Outcome, Reply>
    + Send
    + 'static,
) -> Outcome {
    let source = Source::new(call, name);
    let work = move |_: &[&[u8]]| match source.copy() {
        Ok(Some(mut copied)) => Done::Rest(Box::new(move |call, locked| {
            rest(call, locked, &mut copied)
        })),
        Ok(None) => Done::Reply(missing),
        Err(OutOfMemory) => Done::Reply(error::out_of_memory()),
    };
    Work::new(work).into()
}

/// Makes the filter of the first key anew, of those of all keys.
pub fn replace(
    call: &Call<'_>,
    locked: &mut Locked<'_>,
    function: ReplaceFn,
    reads_bits: bool,
) -> Result<Outcome, Reply> {
    let context = call.context();
    let values = gather(values_of(call, locked.read()).map(Ok))?;
    let filters = values.iter().flatten();
    let (names, places) = each_once(call.command.keys.of(call.args))?;
    let distinct = names.iter().filter_map(|(_, place)| *values.get(*place)?);
    let sum = |weight: fn(&Value) -> u64| {
        let bytes = distinct
            .clone()
            .map(|it| it.stream_len().saturating_mul(weight(it)));
        bytes.fold(0_u64, u64::saturating_add)
    };
    let (bytes, work) = (sum(|_| 1), sum(work_per_byte));
    // What holds something else is refused at once. Copies take as much memory as the new filter.
    let are_filters = filters
        .clone()
        .all(|value| matches!(value, Value::Filter(_)));
    let have_room = bytes <= context.free_bytes / 2;
    if reads_bits && are_filters && have_room && call.leaves(work) {
        let sources = names.iter();
        let making = Making {
            holds: Arc::clone(&call.server.holds),
            sources: gather(sources.map(|(name, _)| Ok((Source::new(call, name), None))))?,
            places,
            function,
            context,
            is_again: false,
            hold: None,
        };
        return Ok(making.work().into());
    }
    let slots = gather(values.iter().map(|value| Ok(any_slot(*value))))?;
    let made = function(&context.into(), call.args, &slots)?;
    Ok(store(call, locked, made))
}

/// What a byte of a value takes, in the time of a byte of bits: the items of a cuckoo filter are added
/// one by one.
fn work_per_byte(value: &Value) -> u64 {
    match value {
        Value::Filter(Filter::Cuckoo(_)) => 16,
        _ => 1,
    }
}

/// Names without repetition, each with the place at which it is first; and for each of all names its
/// number among these.
type Distinct<'n> = (Vec<(&'n [u8], usize)>, Vec<usize>);

/// Finds names that repeat. A command may name one key many times.
fn each_once<'n>(names: impl Iterator<Item = &'n [u8]>) -> Result<Distinct<'n>, Reply> {
    let mut numbers = HashMap::new();
    let mut distinct: Vec<(&[u8], usize)> = Vec::new();
    let places = names.enumerate().map(|(place, name)| {
        numbers.try_reserve(1).map_err(|_| error::out_of_memory())?;
        let next = numbers.len();
        let number = *numbers.entry(name).or_insert(next);
        if number == next {
            distinct
                .try_reserve(1)
                .map_err(|_| error::out_of_memory())?;
            distinct.push((name, place));
        }
        Ok(number)
    });
    let places = gather(places)?;
    Ok((distinct, places))
}

/// The values of all keys of a command.
fn values_of<'v>(call: &Call<'_>, view: View<'v>) -> impl Iterator<Item = Option<&'v Value>> {
    call.keys()
        .map(move |key| view.get(key).map(|entry| &entry.value))
}

/// Stores the filter that the first key holds from now on.
fn store(call: &Call<'_>, locked: &mut Locked<'_>, (filter, reply): (Filter, Reply)) -> Outcome {
    let key = call.key(call.args.get(1).copied().unwrap_or_default());
    let expires_at = locked.read().peek(key).and_then(Entry::expires_at);
    let value = Value::Filter(filter);
    locked.entry(key).insert(value, expires_at);
    locked.log(key.db, call.args);
    reply.into()
}

/// A filter that is made of large ones, on another thread: of copies of them. The log repeats the
/// command with the filters as they are when the new one appears. So if they have changed by then,
/// the keys are held, the copies are brought up to date, and it is made again.
struct Making {
    /// The keys that are held, of all such work.
    holds: Arc<Holds>,
    /// The keys, each once, and copies of what they hold.
    sources: Vec<(Source, Option<Copied>)>,
    /// Of each key that the command names, its number among these.
    places: Vec<usize>,
    function: ReplaceFn,
    context: Context,
    /// Whether it is made again. If the filters change all the same, it is made under the locks.
    is_again: bool,
    /// Keeps others from adding to the filters meanwhile.
    hold: Option<Hold>,
}

impl Making {
    fn work(mut self) -> Work {
        Work::new(move |request| {
            if self.is_again {
                let keys = self.sources.iter();
                let keys = keys.map(|(source, _)| Ok((source.db, source.name.clone())));
                match gather(keys) {
                    Ok(keys) => self.hold = Some(Hold::new(&self.holds, keys)),
                    Err(refusal) => return Done::Reply(refusal),
                }
            }
            let copied = self.copy();
            let slots = self.places.iter();
            let slots = slots.map(|place| Ok(any_slot(self.copy_at(*place).map(Copied::value))));
            let slots = copied
                .and_then(|()| gather(slots).map_err(|_| OutOfMemory))
                .ok();
            let made = slots.map(|slots| (self.function)(&self.context.into(), request, &slots));
            let (mut making, mut made) = (Some(self), made);
            Done::Rest(Box::new(move |call, locked| {
                Making::finish(&mut making, &mut made, call, locked)
            }))
        })
    }

    /// The copy of what the key of that number holds; `None` if it holds nothing.
    fn copy_at(&self, number: usize) -> Option<&Copied> {
        let (_, copied) = self.sources.get(number)?;
        copied.as_ref()
    }

    /// Copies what the keys hold, or brings the copies up to date.
    fn copy(&mut self) -> Result<(), OutOfMemory> {
        for (source, copied) in &mut self.sources {
            let go_on = || !source.server.is_stopping();
            if !copied.as_mut().is_some_and(|copied| copied.refresh(go_on)) {
                *copied = source.copy()?;
            }
            if let Some(copied) = copied {
                copied.refresh(go_on);
            }
        }
        Ok(())
    }

    /// Stores the filter, if it is made of what the keys hold now.
    fn finish(
        making: &mut Option<Making>,
        made: &mut Option<Replaced>,
        call: &Call<'_>,
        locked: &mut Locked<'_>,
    ) -> Result<Outcome, Reply> {
        let is_current = |making: &Making| {
            let mut pairs = making.places.iter().zip(values_of(call, locked.read()));
            pairs.all(|(place, value)| match (making.copy_at(*place), value) {
                (Some(copied), Some(value)) => copied.is_current(value),
                (None, None) => true,
                _ => false,
            })
        };
        if making.as_ref().is_some_and(is_current)
            && let Some(made) = made.take()
        {
            let (filter, reply) = made?;
            let fits = filter.stream_len() <= call.context().max_new_filter_bytes();
            return match fits {
                true => Ok(store(call, locked, (filter, reply))),
                false => Err(too_large(&call.context())),
            };
        }
        let is_made = made.is_some();
        // It may be large, and the worker must not wait until it is freed.
        call.server.store.keyspace.free(made.take(), usize::MAX);
        if let Some(mut making) = making.take_if(|it| !it.is_again && is_made) {
            making.is_again = true;
            return Ok(making.work().into());
        }
        let Some(making) = making else {
            return Err(error::out_of_memory());
        };
        replace(call, locked, making.function, false)
    }
}

/// What a client may do whose payload of a filter is refused.
fn in_pieces(kind: FilterKind) -> &'static str {
    match kind {
        FilterKind::Bloom(_) | FilterKind::Valkey => {
            "BF.SCANDUMP and BF.LOADCHUNK move a filter in pieces"
        }
        FilterKind::Cuckoo | FilterKind::KeyedCuckoo => {
            "CF.SCANDUMP and CF.LOADCHUNK move a filter in pieces"
        }
    }
}

/// How payloads are made.
#[derive(Clone, Copy)]
struct Payloads {
    compression: bool,
    /// Their maximum length in a request.
    longest: usize,
    /// Their maximum length in a reply.
    most: usize,
}

impl Payloads {
    fn of(call: &Call<'_>) -> Self {
        let longest = call.settings.proto_max_bulk_len;
        let most = reply_limit::string_within(reply_limit::of_one(call.settings));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Payloads {
            compression: call.settings.data.rdbcompression,
            longest,
            most: most.min(longest),
        }
    }

    fn of_value(self, value: &Value) -> Result<Vec<u8>, Reply> {
        let made = payload::dump(value, self.compression, self.most);
        made.map_err(|problem| {
            let kind = match value {
                Value::Text(_) => None,
                Value::Filter(filter) => Some(filter.kind()),
            };
            self.refusal(problem, kind)
        })
    }

    fn of_pieces(
        self,
        outline: &Outline,
        next: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Vec<u8>, Reply> {
        let made = payload::dump_in_pieces(outline, self.compression, self.most, next);
        made.map_err(|problem| {
            let kind = match outline {
                Outline::Text(_) => None,
                Outline::Filter(parts) => Some(parts.kind()),
            };
            self.refusal(problem, kind)
        })
    }

    /// The refusal of a payload: of a filter of that kind, or of a string.
    fn refusal(self, problem: DumpError, kind: Option<FilterKind>) -> Reply {
        match (problem, kind.map(in_pieces)) {
            (DumpError::TooLong, Some(in_pieces)) if self.most < self.longest => {
                Reply::error(format!("{REPLY_TOO_LARGE}; {in_pieces}"))
            }
            (DumpError::TooLong, None) if self.most < self.longest => Reply::error(REPLY_TOO_LARGE),
            (DumpError::TooLong, Some(in_pieces)) => Reply::error(format!(
                "ERR the payload would be longer than proto-max-bulk-len ({} bytes), so that no \
                 RESTORE could take it; {in_pieces}",
                self.longest
            )),
            (DumpError::TooLong, None) => error::string_too_long(),
            (DumpError::OutOfMemory, _) => Reply::error(format!("ERR {problem}")),
            (DumpError::Incomplete, _) => incomplete(),
        }
    }
}

/// The reply when the bytes of a value have not come to their end.
fn incomplete() -> Reply {
    Reply::error("ERR the value was not read to its end")
}

/// The value in a payload, or the reply that refuses it.
pub fn restored(context: &Context, payload: &[u8]) -> Result<Value, Reply> {
    let value = payload::restore(payload, context.max_new_filter_bytes());
    let value = value.map_err(|problem| match problem {
        RestoreError::Memory(_) => too_large(context),
        problem => Reply::error(problem.to_string()),
    })?;
    if let Value::Filter(filter) = &value {
        context.check_loaded(filter.kind(), filter.arrays())?;
    }
    Ok(value)
}

/// Refuses a value for which memory has become short since it was made.
pub fn check_fits(context: &Context, value: &Value) -> Result<(), Reply> {
    match value {
        Value::Filter(filter) if filter.stream_len() > context.max_new_filter_bytes() => {
            Err(too_large(context))
        }
        _ => Ok(()),
    }
}

/// The reply for a filter that is larger than allowed.
fn too_large(context: &Context) -> Reply {
    if context.free_bytes < context.max_filter_bytes {
        error::out_of_memory()
    } else {
        CommandError::InsufficientMemory.into()
    }
}

#[cfg(test)]
mod tests {
    use everbloom_resp::{Protocol, encode};

    use super::super::testing::{Bench, bulk, int};
    use super::*;

    const LEN: usize = 2 << 20;

    /// A connection to a server with a long string and large filters.
    fn bench() -> Bench {
        let mut bench = Bench::default();
        bench.run_words(&[b"SET", b"a", &[b'a'; LEN]]);
        bench.run("BF.RESERVE f 0.01 4000000");
        bench.run("BF.MADD f x y z");
        bench.run("BF.RESERVE w 0.01 8000000 WINDOW ITEMS");
        bench.run("BF.MADD w x y z");
        bench.run("CF.RESERVE c 4000000");
        bench.run("CF.ADD c x");
        bench
    }

    /// The work of a command.
    fn work(bench: &mut Bench, words: &[&[u8]]) -> Work {
        match bench.begin(words) {
            Some(Outcome::Work(work)) => work,
            other => panic!("{other:?} at once"),
        }
    }

    fn words(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(str::as_bytes).collect()
    }

    /// Runs a command to its end, with its work; `meddle` runs before and behind it. Also returns how
    /// often there was work.
    fn run_counted(
        bench: &mut Bench,
        words: &[&[u8]],
        mut meddle: impl FnMut(&mut Bench),
    ) -> (Reply, usize) {
        let (mut outcome, mut works) = (bench.begin(words).unwrap(), 0);
        loop {
            match outcome {
                Outcome::Reply(reply) => return (reply, works),
                Outcome::Work(work) => {
                    works += 1;
                    meddle(bench);
                    let done = work.run(words).done;
                    meddle(bench);
                    outcome = bench.finish(words, done);
                }
            }
        }
    }

    /// The same of a command that has work.
    fn run(bench: &mut Bench, words: &[&[u8]], meddle: impl FnMut(&mut Bench)) -> Reply {
        let (reply, works) = run_counted(bench, words, meddle);
        assert!(works > 0, "{reply:?} at once");
        reply
    }

    /// The encoded reply of a command that only reads.
    fn read(bench: &mut Bench, line: &str, meddle: impl FnOnce(&mut Bench)) -> Vec<u8> {
        let words = words(line);
        let work = work(bench, &words);
        meddle(bench);
        match work.run(&words).done {
            Done::Encoded(reply) => reply,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn encoded(reply: &Reply) -> Vec<u8> {
        let mut out = Vec::new();
        encode(reply, Protocol::Resp2, &mut out);
        out
    }

    #[test]
    fn a_long_reply_is_that_of_the_command_when_the_work_is_done() {
        let mut bench = bench();
        for line in [
            "GET a",
            "GETRANGE a 5 -3",
            "GETRANGE a -2000000 -1",
            "DUMP a",
            "DUMP f",
            "DUMP w",
            "DUMP c",
            "BF.SCANDUMP f 1",
            "BF.SCANDUMP f 1000001",
            "CF.SCANDUMP c 1",
        ] {
            let reply = read(&mut bench, line, |_| ());
            assert!(reply == encoded(&bench.run(line)), "{line}");
            let reply = read(&mut bench, line, |bench| {
                bench.run("APPEND a more");
                bench.run("BF.ADD f w");
                bench.run("CF.ADD c w");
            });
            assert!(reply == encoded(&bench.run(line)), "{line}, changed");
        }
    }

    #[test]
    fn a_key_that_is_gone_or_another_by_then_is_answered_for_what_it_is() {
        let wrong_type = error::wrong_type();
        for (line, meddle, expected) in [
            ("GET a", "DEL a", Reply::Null),
            ("GETRANGE a 0 -1", "DEL a", bulk("")),
            ("DUMP f", "DEL f", Reply::Null),
            ("GET a", "RENAME f a", wrong_type.clone()),
            (
                "BF.SCANDUMP f 1",
                "RENAME a f",
                CommandError::WrongType.into(),
            ),
            ("BF.SCANDUMP f 1", "DEL f", CommandError::NotFound.into()),
            ("COPY a b", "DEL a", int(0)),
        ] {
            let mut bench = bench();
            let work = work(&mut bench, &words(line));
            bench.run(meddle);
            match work.run(&words(line)).done {
                Done::Reply(reply) => assert_eq!(reply, expected, "{line}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    /// Changes of every kind: in a few bytes, in many, in none, of the counts only.
    const CHANGES: [&str; 6] = [
        "SETRANGE a 7 changed",
        "APPEND a more",
        "BF.MADD f 1 2 3 4 5 6 7 8 9 10 11 12",
        "BF.MADD w 1 2 3 4 5 6 7 8 9 10 11 12",
        "CF.ADD c y",
        "CF.ADD c x",
    ];

    #[test]
    fn a_copy_is_of_the_source_when_it_appears() {
        let mut bench = bench();
        for key in ["a", "f", "w", "c"] {
            for changes in [&[][..], &CHANGES] {
                let line = format!("COPY {key} copy REPLACE");
                let reply = run(&mut bench, &words(&line), |bench| {
                    changes.iter().for_each(|change| drop(bench.run(change)));
                });
                assert_eq!(reply, int(1));
                let copy = bench.run("DUMP copy");
                assert!(
                    copy == bench.run(&format!("DUMP {key}")),
                    "{key}, {changes:?}"
                );
            }
        }
    }

    /// What is copied may not only change, but have other arrays by then.
    #[test]
    fn what_is_another_filter_by_then_is_copied_again() {
        for (key, meddle) in [
            ("w", "BF.ADVANCE w"),
            ("a", "SET a short"),
            ("f", "BF.CLEAR f"),
            ("c", "RENAME f c"),
        ] {
            let mut bench = bench();
            let copy = format!("COPY {key} copy");
            let copy = words(&copy);
            let done = work(&mut bench, &copy).run(&copy).done;
            bench.run(meddle);
            let again = match bench.finish(&copy, done) {
                Outcome::Work(work) => bench.finish(&copy, work.run(&copy).done),
                // The new value is short.
                Outcome::Reply(reply) if key == "a" => reply.into(),
                Outcome::Reply(reply) => panic!("{meddle}: {reply:?}"),
            };
            assert_eq!(again.into_reply(), int(1), "{meddle}");
            let copy = bench.run("DUMP copy");
            assert!(copy == bench.run(&format!("DUMP {key}")), "{meddle}");
        }
    }

    /// A server with filters that can be merged and made smaller.
    fn blocked() -> Bench {
        let mut bench = Bench::default();
        bench.now.ms = 1_700_000_000_000;
        for (key, capacity, window) in [
            ("f", 1_000_000, ""),
            ("g", 1_000_000, ""),
            ("w", 8_000_000, " WINDOW SECONDS 100"),
            ("v", 8_000_000, " WINDOW SECONDS 100"),
        ] {
            let line = format!("BF.RESERVE {key} 0.01 {capacity} SEED 7 LAYOUT BLOCKED{window}");
            assert_eq!(bench.run(&line), Reply::OK);
            bench.run(&format!("BF.MADD {key} 1 2 3 {key}"));
        }
        for (key, options) in [
            ("x", "ERROR 0.01 SEED 7"),
            ("y", "ERROR 0.01 SEED 7"),
            ("r", "EXPANSION 2"),
            ("s", "EXPANSION 2"),
        ] {
            let line = format!("CF.RESERVE {key} 100000 {options}");
            assert_eq!(bench.run(&line), Reply::OK);
            bench.run(&format!("CF.INSERT {key} ITEMS 1 2 3 {key}"));
        }
        bench
    }

    /// Commands that make a filter of large ones: before one, what makes its destination.
    const MAKERS: [(&str, &str); 9] = [
        ("DEL new", "BF.MERGE new f g"),
        ("COPY f new REPLACE", "BF.MERGE new g f"),
        ("COPY f new REPLACE", "BF.MERGE new new"),
        ("COPY f new REPLACE", "BF.MERGE new f g f g new f"),
        ("COPY f new REPLACE", "BF.SHRINK new 100000"),
        ("DEL new", "BF.MERGE new v w"),
        ("DEL new", "CF.MERGE new x y"),
        ("COPY x new REPLACE", "CF.MERGE new y x new y"),
        ("COPY r new REPLACE", "CF.MERGE new s r"),
    ];

    #[test]
    fn a_filter_made_of_large_ones_is_that_of_the_command_at_once() {
        for (before, maker) in MAKERS {
            let mut bench = blocked();
            bench.run(before);
            let (reply, works) = run_counted(&mut bench, &words(maker), |_| ());
            assert_eq!(works, 1);
            let made = bench.run("DUMP new");
            bench.run(before);
            assert_eq!(bench.run(maker), reply, "{maker}");
            assert!(bench.run("DUMP new") == made, "{maker}");
        }
    }

    /// What is added while it is made, to one of them or to the destination, is in it.
    #[test]
    fn a_filter_made_of_large_ones_has_what_they_have_when_it_appears() {
        const ADD: [&str; 7] = [
            "CF.ADD x a",
            "CF.ADD new a",
            "BF.ADD f a",
            "BF.ADD g a",
            "BF.ADD new a",
            "BF.ADD v a",
            "DEL new",
        ];
        for (before, maker) in MAKERS {
            for change in ADD {
                let mut bench = blocked();
                bench.run(before);
                let mut changes = 2;
                let meddle = |bench: &mut Bench| {
                    if changes > 0 {
                        changes -= 1;
                        bench.run(change);
                    }
                };
                let reply = run(&mut bench, &words(maker), meddle);
                let made = bench.run("DUMP new");
                let mut twin = blocked();
                for line in [before, change, change] {
                    twin.run(line);
                }
                assert_eq!(twin.run(maker), reply, "{change}, {maker}");
                assert!(twin.run("DUMP new") == made, "{change}, {maker}");
            }
        }
    }

    #[test]
    fn a_filter_of_large_ones_that_change_all_the_time_is_made_at_once_in_the_end() {
        for (before, maker) in MAKERS {
            let mut bench = blocked();
            bench.run(before);
            let mut item = 100;
            let changed = run_counted(&mut bench, &words(maker), |bench| {
                item += 1;
                for key in ["f", "g", "v", "x", "s", "new"] {
                    if bench.run(&format!("EXISTS {key}")) == int(1) {
                        bench.run(&format!("BF.ADD {key} {item}"));
                        bench.run(&format!("CF.ADD {key} {item}"));
                    }
                }
            });
            assert_eq!(changed.1, 2, "{maker}");
            assert!(!bench.server.holds.any(), "{maker}");
            assert!(!changed.0.is_error(), "{changed:?}");
            let family = &maker[..2];
            let found = bench.run(&format!("{family}.EXISTS new {item}"));
            assert!(
                [Reply::Boolean(true), int(1)].contains(&found),
                "{maker}: {found:?}"
            );
        }
    }

    /// Others go on, those who read it included.
    #[test]
    fn who_adds_to_a_filter_that_is_held_waits() {
        let mut bench = blocked();
        let hold = Hold::new(
            &bench.server.holds,
            vec![(0, b"f".to_vec()), (0, b"g".to_vec())],
        );
        let add = words("BF.ADD f a");
        let adding = work(&mut bench, &add);
        for line in ["BF.EXISTS f a", "BF.ADD w a", "BF.ADD h a", "BF.INFO g"] {
            assert!(bench.begin(&words(line)).is_none(), "{line}");
        }
        assert_eq!(bench.run("BF.EXISTS f a"), Reply::Boolean(false));
        // A log and a transaction do not wait.
        assert_eq!(bench.run("BF.ADD g a"), Reply::Boolean(true));
        drop(hold);
        assert!(!bench.server.holds.any());
        let done = adding.run(&add).done;
        assert_eq!(bench.finish(&add, done).into_reply(), Reply::Boolean(true));
        assert_eq!(bench.run("BF.EXISTS f a"), Reply::Boolean(true));
    }

    #[test]
    fn a_filter_that_is_not_made_of_bits_or_of_no_filter_is_no_work() {
        let mut bench = blocked();
        bench.run_words(&[b"SET", b"a", &[b'a'; LEN]]);
        for (line, reply) in [
            ("BF.CLEAR f", Reply::OK),
            ("BF.MERGE f a", error::wrong_type()),
            ("BF.SHRINK a 1000", error::wrong_type()),
        ] {
            let outcome = bench.begin(&words(line));
            assert!(
                matches!(&outcome, Some(Outcome::Reply(it)) if *it == reply),
                "{line}"
            );
        }
        // Without memory for the copies the filter is made at once.
        let used = bench.server.used_memory();
        change(&bench, |settings| settings.maxmemory = used + 3_000_000);
        let outcome = bench.begin(&words("BF.SHRINK f 1000"));
        assert!(matches!(outcome, Some(Outcome::Reply(Reply::Double(_)))));
    }

    #[test]
    fn a_payload_is_read_first_and_the_key_looked_at_again() {
        let mut bench = bench();
        let Reply::Bulk(payload) = bench.run("DUMP a") else {
            panic!("a payload");
        };
        let long = [&payload[..], &[1; LEN]].concat();
        let restore: &[&[u8]] = &[b"RESTORE", b"b", b"0", &long];
        let refusal = "ERR DUMP payload version or checksum are wrong";
        assert_eq!(run(&mut bench, restore, |_| ()), Reply::error(refusal));

        let value = Value::Text(vec![b'b'; LEN].into());
        let payload = payload::dump(&value, false, usize::MAX).unwrap();
        let restore: &[&[u8]] = &[b"RESTORE", b"b", b"0", &payload];
        let busy = Reply::error("BUSYKEY Target key name already exists.");
        let meddle = |bench: &mut Bench| drop(bench.run("SET b busy"));
        assert_eq!(run(&mut bench, restore, meddle), busy);
        let replace: &[&[u8]] = &[b"RESTORE", b"b", b"0", &payload, b"REPLACE"];
        assert_eq!(run(&mut bench, replace, |_| ()), Reply::OK);
        assert_eq!(bench.run("STRLEN b"), int(2 << 20));
    }

    /// What counts is what the payload becomes.
    #[test]
    fn a_short_payload_of_a_large_value_is_work() {
        let mut bench = bench();
        for key in ["a", "f", "w", "c"] {
            let Reply::Bulk(payload) = bench.run(&format!("DUMP {key}")) else {
                panic!("a payload");
            };
            assert!(payload.len() < LEN / 8, "{key}");
            let restore: &[&[u8]] = &[b"RESTORE", b"copy", b"0", &payload, b"REPLACE"];
            assert_eq!(run(&mut bench, restore, |_| ()), Reply::OK);
            assert!(bench.run("DUMP copy") == Reply::Bulk(payload), "{key}");
        }
        let value = bench.run("DUMP f");
        let cut = &value.as_bytes().unwrap()[..1000];
        let damaged: &[&[u8]] = &[b"RESTORE", b"d", b"0", cut];
        assert!(bench.begin(damaged).unwrap().into_reply().is_error());
    }

    /// Changes the settings of the server.
    fn change(bench: &Bench, change: impl FnOnce(&mut crate::config::Settings)) {
        let changed = bench.server.update_settings(|settings| {
            change(settings);
            Ok::<(), ()>(())
        });
        assert_eq!(changed, Ok(()));
    }

    /// No copy is made for a payload, so other clients need not wait when memory is short.
    #[test]
    fn a_payload_takes_its_own_memory_only() {
        let mut bench = bench();
        let expected = bench.run("DUMP f");
        let used = bench.server.used_memory();
        change(&bench, |settings| settings.maxmemory = used + 1000);
        assert!(read(&mut bench, "DUMP f", |_| ()) == encoded(&expected));
        change(&bench, |settings| settings.proto_max_bulk_len = 1 << 10);
        let refusal = bench.run("DUMP f");
        assert!(refusal.is_error());
        let dump = words("DUMP f");
        let work = work(&mut bench, &dump);
        assert_eq!(
            bench.finish(&dump, work.run(&dump).done).into_reply(),
            refusal
        );
    }

    #[test]
    fn a_filter_that_was_read_first_must_fit_when_it_appears() {
        let mut bench = bench();
        let payload = bench.run("DUMP f");
        let payload = payload.as_bytes().unwrap();
        let restore: &[&[u8]] = &[b"RESTORE", b"g", b"0", payload];
        let refusal = Reply::error("ERR Insufficient memory to create filter");
        for words in [restore, &words("COPY f g")] {
            let reply = run(&mut bench, words, |bench| {
                change(bench, |settings| settings.bf_max_filter_bytes = 1000);
            });
            assert_eq!(reply, refusal);
            assert_eq!(bench.run_words(words), refusal);
            change(&bench, |settings| settings.bf_max_filter_bytes = 0);
        }
    }

    #[test]
    fn a_filter_for_which_memory_is_short_is_refused_as_such() {
        let mut bench = bench();
        let payloads = [bench.run("DUMP f"), bench.run("DUMP c")];
        let payloads = payloads.map(|payload| payload.as_bytes().unwrap().to_vec());
        let mut commands = vec![words("COPY f g"), words("COPY c g")];
        for payload in &payloads {
            commands.push(vec![b"RESTORE", b"g", b"0", payload]);
        }
        let used = bench.server.used_memory();
        change(&bench, |settings| settings.maxmemory = used + 100_000);
        let oom = Reply::error("OOM command not allowed when used memory > 'maxmemory'.");
        for command in &commands {
            assert_eq!(bench.run_words(command), oom);
            assert_eq!(bench.run("EXISTS g"), int(0));
        }
        change(&bench, |settings| settings.maxmemory = 0);
        for command in &commands {
            assert!(!bench.run_words(command).is_error());
            bench.run("DEL g");
        }
    }

    #[test]
    fn little_is_done_at_once_and_so_is_all_of_a_call_that_cannot_wait() {
        let mut bench = bench();
        bench.run("SET short x");
        bench.run("BF.ADD small x");
        for line in [
            "GET short",
            "DUMP short",
            "COPY short copy",
            "COPY small copied",
            "GETRANGE a 0 9",
            "BF.SCANDUMP f 0",
        ] {
            let outcome = bench.begin(&words(line));
            assert!(matches!(outcome, Some(Outcome::Reply(_))), "{line}");
        }
        assert_eq!(bench.run("GETRANGE a 0 3"), bulk("aaaa"));
        for line in ["GET a", "COPY a b", "COPY f g", "DUMP f"] {
            assert!(!bench.run(line).is_error(), "{line}");
        }
    }
}
