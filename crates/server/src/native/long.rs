//! Work on values of megabytes, which commands [offload](crate::offload).

use std::ops::Range;
use std::sync::Arc;

use everbloom_commands::piece::{Content, Piece};
use everbloom_commands::table::ScanFn;
use everbloom_commands::{CommandError, Context};
use everbloom_files::rdb::payload::{self, DumpError, RestoreError};
use everbloom_files::{Text, Value};
use everbloom_resp::Reply;
use everbloom_resp::encode::{encode_array_len, encode_bulk_len, encode_integer};
use everbloom_store::clock::Now;
use everbloom_store::reader::Reader;

use super::{Call, error};
use crate::dispatch::value;
use crate::offload::{Done, MIN_OFFLOADED_BYTES, Work};
use crate::server::Server;

/// The value to read.
struct LongValue {
    server: Arc<Server>,
    db: usize,
    key: Vec<u8>,
    now: Now,
}

impl LongValue {
    fn new(call: &Call<'_>) -> Self {
        LongValue {
            server: Arc::clone(call.server),
            db: call.session.db,
            key: call.args.get(1).copied().unwrap_or_default().to_vec(),
            now: call.now,
        }
    }

    /// Reads a part of the current value. `begin` selects the part, and `put` appends the pieces.
    fn read<T>(
        &self,
        begin: impl FnOnce(&Value) -> Option<(T, Range<u64>)>,
        mut put: impl FnMut(&mut T, &[u8]) -> bool,
    ) -> Option<(T, Reader)> {
        let (db, key) = (self.db, &self.key);
        let (mut copy, mut reader) = Reader::begin(&self.server.store, db, key, self.now, begin)?;
        let all = reader.read_all(|piece| !self.server.is_stopping() && put(&mut copy, piece));
        all.then_some((copy, reader))
    }

    /// A copy of the whole value, and the reader that knows its later changes.
    fn copy(&self) -> Option<(Value, Reader)> {
        let begin = |value: &Value| {
            let copy = match value {
                Value::Text(text) => Value::Text(Text::with_capacity(text.len()).ok()?),
                Value::Filter(filter) => Value::Filter(filter.try_clone_empty()?),
            };
            Some(((copy, 0), 0..value.stream_len()))
        };
        let ((copy, _), reader) = self.read(begin, |(copy, at), piece| {
            let start = *at;
            *at += piece.len() as u64;
            match copy {
                Value::Text(text) => text.append(piece).is_ok(),
                Value::Filter(filter) => filter.load_chunk(start, piece).is_ok(),
            }
        })?;
        Some((copy, reader))
    }

    /// A reply that ends with bytes of the value: `begin` encodes the rest of it.
    fn reply(&self, begin: impl FnOnce(&Value) -> Option<(Vec<u8>, Range<u64>)>) -> Done {
        let put = |out: &mut Vec<u8>, piece: &[u8]| {
            out.extend_from_slice(piece);
            true
        };
        match self.read(begin, put) {
            Some((mut out, _)) => {
                out.extend_from_slice(b"\r\n");
                Done::Encoded(out)
            }
            None => Done::Nothing,
        }
    }
}

/// Offloads the copy of a string of this many bytes, if it is long.
pub fn offloads_copy(call: &Call<'_>, bytes: usize) -> bool {
    bytes > MIN_OFFLOADED_BYTES
        && call.offload(|| {
            let source = LongValue::new(call);
            Box::new(move |_| match source.copy() {
                Some((Value::Text(copy), reader)) => Done::Copied(Some(copy), reader),
                _ => Done::Nothing,
            })
        })
}

/// Offloads a reply with a part of a string of `len` bytes, if it is long. `part` selects the part
/// again, because the string may have another length by then.
pub fn offloads_text(
    call: &Call<'_>,
    len: usize,
    part: impl Fn(usize) -> Range<usize> + Send + 'static,
) -> bool {
    let is_long = part(len).len() > MIN_OFFLOADED_BYTES;
    let begin = move |value: &Value| match value {
        Value::Text(text) => {
            let part = part(text.len());
            let mut out = Vec::with_capacity(part.len() + 32);
            encode_bulk_len(part.len(), &mut out);
            Some((out, part.start as u64..part.end as u64))
        }
        Value::Filter(_) => None,
    };
    is_long && offloads_reply(call, begin)
}

/// Offloads a reply that ends with bytes of a value.
fn offloads_reply(
    call: &Call<'_>,
    begin: impl FnOnce(&Value) -> Option<(Vec<u8>, Range<u64>)> + Send + 'static,
) -> bool {
    call.offload(|| {
        let source = LongValue::new(call);
        Box::new(move |_| source.reply(begin))
    })
}

/// Offloads a piece of a filter, if it is long. The function says again which bytes these are,
/// because the filter may have changed by then.
pub fn offloads_piece(call: &Call<'_>, piece: &Piece, function: ScanFn) -> bool {
    let len = |part: &Range<u64>| part.end.saturating_sub(part.start);
    let is_long = |part: &Range<u64>| len(part) > MIN_OFFLOADED_BYTES as u64;
    if !matches!(&piece.content, Content::Bytes(part) if is_long(part)) {
        return false;
    }
    let request: Vec<Vec<u8>> = call.args.iter().map(|word| word.to_vec()).collect();
    offloads_reply(call, move |value| {
        let words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        let piece = function(&words, value::any_slot(Some(value))).ok()?;
        let Content::Bytes(part) = piece.content else {
            return None;
        };
        let mut out = Vec::new();
        encode_array_len(2, &mut out);
        encode_integer(piece.next, &mut out);
        encode_bulk_len(usize::try_from(len(&part)).ok()?, &mut out);
        Some((out, part))
    })
}

/// Offloads the payload of a value, if it is large. The value is copied for it. If two copies do
/// not fit in memory, or the payload may be too long, the payload is made in place.
pub fn offloads_payload(call: &Call<'_>, value: &Value) -> bool {
    let (compression, most) = limits(call);
    let room = usize::try_from(call.context().free_bytes).unwrap_or(usize::MAX);
    let copied = MIN_OFFLOADED_BYTES + 1..=room.min(most.saturating_mul(4));
    copied.contains(&value.memory())
        && call.offload(|| {
            let source = LongValue::new(call);
            Box::new(move |_| {
                let Some((value, _)) = source.copy() else {
                    return Done::Nothing;
                };
                let payload = match payload_of(&value, compression, most) {
                    Ok(payload) => payload,
                    Err(refusal) => return Done::Reply(refusal),
                };
                drop(value);
                // The payload becomes the reply, so that it is not in memory twice.
                let (mut head, mut out) = (Vec::new(), payload);
                encode_bulk_len(out.len(), &mut head);
                out.reserve_exact(head.len() + 2);
                out.splice(..0, head);
                out.extend_from_slice(b"\r\n");
                Done::Encoded(out)
            })
        })
}

/// Makes the payload of a value immediately.
pub fn payload(call: &Call<'_>, value: &Value) -> Result<Vec<u8>, Reply> {
    let (compression, most) = limits(call);
    payload_of(value, compression, most)
}

/// Whether payloads are compressed, and their maximum length.
fn limits(call: &Call<'_>) -> (bool, usize) {
    (
        call.settings.data.rdbcompression,
        call.settings.proto_max_bulk_len,
    )
}

fn payload_of(value: &Value, compression: bool, most: usize) -> Result<Vec<u8>, Reply> {
    payload::dump(value, compression, most).map_err(|problem| match (problem, value) {
        (DumpError::TooLong, Value::Filter(_)) => Reply::error(format!(
            "ERR the payload would be longer than proto-max-bulk-len ({most} bytes), so that no \
             RESTORE could take it; BF.SCANDUMP and BF.LOADCHUNK move a filter in pieces"
        )),
        (DumpError::TooLong, Value::Text(_)) => error::string_too_long(),
        (DumpError::OutOfMemory, _) => Reply::error(format!("ERR {problem}")),
    })
}

/// The value in a payload; `None` when the work is offloaded, and the caller returns.
pub fn restored(call: &Call<'_>, payload: &[u8]) -> Option<Result<Value, Reply>> {
    let made = call.session.offload.find(|done| match done {
        Done::Made(value) => value.take(),
        _ => None,
    });
    let context = call.context();
    let most = context.max_new_filter_bytes();
    // Memory may have become short meanwhile.
    let fits = |value: &Value| match value {
        Value::Filter(filter) => filter.stream_len() <= most,
        Value::Text(_) => true,
    };
    match made {
        Some(Ok(value)) if !fits(&value) => return Some(Err(too_large(&context))),
        Some(_) => return made,
        None => {}
    }
    let restore = move |payload: &[u8]| {
        payload::restore(payload, most).map_err(|problem| match problem {
            RestoreError::Memory(_) => too_large(&context),
            problem => Reply::error(problem.to_string()),
        })
    };
    let offloads = payload.len() > MIN_OFFLOADED_BYTES
        && call.offload(|| -> Work {
            Box::new(move |args| {
                let payload = args.get(3).copied().unwrap_or_default();
                Done::Made(Some(restore(payload)))
            })
        });
    (!offloads).then(|| restore(payload))
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
    use std::time::Duration;

    use super::super::testing::{Bench, bulk, int};
    use super::*;
    use crate::offload::Offload;

    const LEN: usize = 2 * MIN_OFFLOADED_BYTES;

    /// A connection that may wait, to a server with a long string and a long filter.
    fn bench() -> Bench {
        let mut bench = Bench::default();
        bench.run_words(&[b"SET", b"a", &[b'a'; LEN]]);
        bench.run("BF.RESERVE f 0.01 4000000");
        bench.run("BF.MADD f x y z");
        bench.session.offload.enable();
        bench
    }

    /// Another connection to the same server.
    fn other(bench: &Bench) -> Bench {
        let addr = bench.session.client.addr.clone();
        let clients = &bench.server.clients;
        let client = clients.enter(addr.clone(), addr, 100, bench.now).unwrap();
        Bench {
            server: Arc::clone(&bench.server),
            session: crate::session::Session::new(client, true),
            now: bench.now,
        }
    }

    /// Runs a command that must offload work, and does that work; `meddle` runs before it.
    fn offload(bench: &mut Bench, words: &[&[u8]], meddle: impl FnOnce(&mut Bench)) {
        bench.run_words(words);
        let work = bench
            .session
            .offload
            .take_work()
            .expect("work is offloaded");
        meddle(&mut other(bench));
        bench.session.offload.set_done(work(words), Duration::ZERO);
    }

    /// The reply from the offloaded work.
    fn made(bench: &Bench) -> Vec<u8> {
        let made = bench.session.offload.take_reply();
        let Some(Done::Encoded(reply)) = made else {
            panic!("no reply: {made:?}");
        };
        reply
    }

    fn encoded(reply: &Reply) -> Vec<u8> {
        let mut out = Vec::new();
        everbloom_resp::encode(reply, everbloom_resp::Protocol::Resp2, &mut out);
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
            "BF.SCANDUMP f 1",
            "BF.SCANDUMP f 1000001",
        ] {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let changed = other(&bench).run(line);
            offload(&mut bench, &words, |_| ());
            assert!(made(&bench) == encoded(&changed), "{line}");
            offload(&mut bench, &words, |other| {
                other.run("APPEND a more");
                other.run("BF.ADD f w");
            });
            let changed = other(&bench).run(line);
            assert!(made(&bench) == encoded(&changed), "{line}, changed");
        }
    }

    #[test]
    fn a_key_that_is_gone_by_then_is_answered_by_the_command() {
        let mut bench = bench();
        for line in ["GET a", "DUMP f"] {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            offload(&mut bench, &words, |other| {
                other.run("DEL a f");
            });
            assert_eq!(bench.run(line), Reply::Null);
            bench = super::tests::bench();
        }
    }

    #[test]
    fn a_copy_is_of_the_source_when_it_appears() {
        let mut bench = bench();
        let words: &[&[u8]] = &[b"COPY", b"a", b"b"];
        offload(&mut bench, words, |_| ());
        assert_eq!(bench.run("COPY a b"), int(1));
        bench.session.offload.forget();
        let source = other(&bench).run("GET a");
        assert!(other(&bench).run("GET b") == source);

        let words: &[&[u8]] = &[b"COPY", b"a", b"c"];
        offload(&mut bench, words, |_| ());
        // The copy is finished, but not yet stored.
        assert_eq!(other(&bench).run("EXISTS c"), int(0));
        other(&bench).run("SETRANGE a 7 changed");
        assert_eq!(bench.run("COPY a c"), int(1));
        bench.session.offload.forget();
        assert_eq!(other(&bench).run("GETRANGE c 7 13"), bulk("changed"));
    }

    #[test]
    fn a_payload_is_read_first_and_the_key_looked_at_again() {
        let mut bench = bench();
        let Reply::Bulk(payload) = other(&bench).run("DUMP a") else {
            panic!("a payload");
        };
        let long = [&payload[..], &[1; MIN_OFFLOADED_BYTES]].concat();
        let restore: &[&[u8]] = &[b"RESTORE", b"b", b"0", &long];
        offload(&mut bench, restore, |_| ());
        let refusal = "ERR DUMP payload version or checksum are wrong";
        assert_eq!(bench.run_words(restore), Reply::error(refusal));
        bench.session.offload.forget();

        let value = Value::Text(vec![b'b'; LEN].into());
        let payload = payload_of(&value, false, usize::MAX).unwrap();
        let restore: &[&[u8]] = &[b"RESTORE", b"b", b"0", &payload];
        offload(&mut bench, restore, |other| {
            other.run("SET b busy");
        });
        let busy = Reply::error("BUSYKEY Target key name already exists.");
        assert_eq!(bench.run_words(restore), busy);
        bench.session.offload.forget();
        let replace: &[&[u8]] = &[b"RESTORE", b"b", b"0", &payload, b"REPLACE"];
        offload(&mut bench, replace, |_| ());
        assert_eq!(bench.run_words(replace), Reply::OK);
        bench.session.offload.forget();
        assert_eq!(other(&bench).run("STRLEN b"), int(2 << 20));
    }

    /// Changes the settings of the server.
    fn change(bench: &Bench, change: impl FnOnce(&mut crate::config::Settings)) {
        let changed = bench.server.update_settings(|settings| {
            change(settings);
            Ok::<(), ()>(())
        });
        assert_eq!(changed, Ok(()));
    }

    #[test]
    fn what_no_payload_can_hold_is_not_copied_for_one() {
        let mut bench = bench();
        change(&bench, |settings| settings.proto_max_bulk_len = 1 << 20);
        assert_ne!(bench.run("DUMP f"), Reply::Null);
        assert!(!bench.session.offload.is_requested());
        let used = bench.server.used_memory();
        change(&bench, |settings| {
            settings.proto_max_bulk_len = 512 << 20;
            settings.maxmemory = used + 1000;
        });
        assert_ne!(bench.run("DUMP f"), Reply::Null);
        assert!(!bench.session.offload.is_requested());
    }

    #[test]
    fn a_filter_that_was_read_first_must_fit_when_it_appears() {
        let mut bench = bench();
        let source = LongValue {
            server: Arc::clone(&bench.server),
            db: 0,
            key: b"f".to_vec(),
            now: bench.now,
        };
        let (value, _) = source.copy().unwrap();
        let payload = payload_of(&value, false, usize::MAX).unwrap();
        let restore: &[&[u8]] = &[b"RESTORE", b"g", b"0", &payload];
        offload(&mut bench, restore, |other| {
            change(other, |settings| settings.bf_max_filter_bytes = 1000);
        });
        let refusal = Reply::error("ERR Insufficient memory to create filter");
        assert_eq!(bench.run_words(restore), refusal);
        assert_eq!(bench.run_words(restore), refusal);
    }

    #[test]
    fn a_filter_for_which_memory_is_short_is_refused_as_such() {
        let mut bench = bench();
        bench.session.offload = Offload::default();
        bench.run("CF.RESERVE c 4000000");
        let payloads = [bench.run("DUMP f"), bench.run("DUMP c")];
        let used = bench.server.used_memory();
        change(&bench, |settings| settings.maxmemory = used + 100_000);
        let oom = Reply::error("OOM command not allowed when used memory > 'maxmemory'.");
        for payload in &payloads {
            let restore: &[&[u8]] = &[b"RESTORE", b"g", b"0", payload.as_bytes().unwrap()];
            assert_eq!(bench.run_words(restore), oom);
            assert_eq!(bench.run("EXISTS g"), int(0));
        }
        change(&bench, |settings| settings.maxmemory = 0);
        for payload in &payloads {
            let restore: &[&[u8]] = &[b"RESTORE", b"g", b"0", payload.as_bytes().unwrap()];
            assert_eq!(bench.run_words(restore), Reply::OK);
            bench.run("DEL g");
        }
    }

    #[test]
    fn short_values_and_transactions_offload_nothing() {
        let mut bench = bench();
        bench.run("SET short x");
        for line in [
            "GET short",
            "DUMP short",
            "GETRANGE a 0 9",
            "BF.SCANDUMP f 0",
        ] {
            assert_ne!(bench.run(line), Reply::Null, "{line}");
            assert!(!bench.session.offload.is_requested(), "{line}");
        }
        bench.session.executing = true;
        for line in ["GET a", "COPY a b", "DUMP f"] {
            assert_ne!(bench.run(line), Reply::Null, "{line}");
            assert!(!bench.session.offload.is_requested(), "{line}");
        }
    }
}
