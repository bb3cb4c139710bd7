//! SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE, and DUMP and RESTORE.
//!
//! A log gets RESTORE with the expiry as a point in time and with REPLACE. So replaying it twice
//! has the same result as once.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use everbloom_commands::Args;
use everbloom_commands::command::ONE_KEY;
use everbloom_commands::flags::{
    ADMIN, DENYOOM, FAST, Flags, LOADING, NO_ASYNC_LOADING, NO_MULTI, NOSCRIPT, STALE,
};
use everbloom_commands::key_use::OVERWRITE;
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::Handler::Plain;
use super::{Call, Command, Selected, error, large, makes, selects};
use crate::call::{Done, Outcome, Work};
use crate::locked::Locked;
use everbloom_files::Value;
use everbloom_files::rdb::payload;
use everbloom_store::Store;
use everbloom_store::journal::encode_command;
use everbloom_store::persistence::Persistence;
use everbloom_store::persistence::figures::JobFigures;
use everbloom_store::persistence::jobs::{self, JobError};

const BACKGROUND: Flags = Flags::of(&[ADMIN, NOSCRIPT, NO_ASYNC_LOADING]);

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Saves all keys to the snapshot file.
    Command::new("save", 1, Plain(save)).since("1.0.0").flags(&[BACKGROUND, NO_MULTI]),
    /// Saves all keys to the snapshot file in the background.
    Command::new("bgsave", -1, Plain(background_save)).since("1.0.0").flags(&[BACKGROUND]),
    /// Rewrites the log in the background.
    Command::new("bgrewriteaof", 1, Plain(rewrite_log)).since("1.0.0").flags(&[BACKGROUND]),
    /// Returns the Unix time of the last good snapshot.
    Command::new("lastsave", 1, Plain(last_save)).since("1.0.0").flags(&[LOADING, STALE, FAST]),
    /// Returns a value as bytes that RESTORE takes.
    selects("dump", 2, dump).since("2.6.0").group("generic"),
    /// Creates a key from the bytes of DUMP.
    makes("restore", -4, ONE_KEY, |call, view| restore(call, view, &mut None)).uses(OVERWRITE).since("2.6.0").flags(&[DENYOOM]).group("generic"),
};

fn data_directory<'c>(call: &Call<'c>) -> Result<&'c Persistence, Reply> {
    call.server
        .store
        .persistence()
        .ok_or_else(|| refused(&JobError::NoDirectory))
}

fn refused(problem: &JobError) -> Reply {
    Reply::error(format!("ERR {problem}"))
}

const SAVE_RUNS: &str = "ERR Background save already in progress";
const REWRITE_RUNS: &str = "ERR Background append only file rewriting already in progress";
fn save(call: &mut Call<'_>) -> Result<Reply, Reply> {
    match jobs::save(&call.server.store) {
        Ok(()) => Ok(Reply::OK),
        Err(JobError::Busy) => Err(Reply::error(SAVE_RUNS)),
        Err(problem) => {
            tracing::error!("the snapshot failed: {problem}");
            Err(refused(&problem))
        }
    }
}

/// SCHEDULE changes nothing: a snapshot that must wait for another job is always scheduled.
fn background_save(call: &mut Call<'_>) -> Result<Reply, Reply> {
    match call.args().rest() {
        [] => {}
        [word] if word.eq_ignore_ascii_case(b"SCHEDULE") => {}
        _ => return Err(error::syntax()),
    }
    let figures = &data_directory(call)?.figures;
    let texts = ("Background saving", SAVE_RUNS);
    start(call, &figures.save, texts, jobs::save_in_background)
}

fn rewrite_log(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let figures = &data_directory(call)?.figures;
    let texts = ("Background append only file rewriting", REWRITE_RUNS);
    start(call, &figures.rewrite, texts, jobs::rewrite_in_background)
}

/// Starts a background job, or schedules it while another one runs.
fn start(
    call: &Call<'_>,
    job: &JobFigures,
    (what, running): (&str, &'static str),
    begin: impl FnOnce(&Arc<Store>) -> Result<(), JobError>,
) -> Result<Reply, Reply> {
    if job.is_running() {
        return Err(Reply::error(running));
    }
    let begun = match call.session.executing.is_some() {
        true => Err(JobError::Busy),
        false => begin(&call.server.store),
    };
    match begun {
        Ok(()) => Ok(Reply::simple(format!("{what} started"))),
        Err(JobError::Busy) => {
            job.scheduled.store(true, Relaxed);
            Ok(Reply::simple(format!("{what} scheduled")))
        }
        Err(problem) => Err(refused(&problem)),
    }
}

/// Without a data directory, this is the time of the start, as in Redis before its first snapshot.
fn last_save(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let time = match call.server.store.persistence() {
        Some(persistence) => persistence.figures.last_save.load(Relaxed),
        None => (call.now.ms / 1000).saturating_sub(call.server.started.elapsed().as_secs()),
    };
    Ok(Reply::Integer(i64::try_from(time).unwrap_or(i64::MAX)))
}

fn dump(_: &[&[u8]], value: Option<&Value>) -> Result<Selected, Reply> {
    Ok(match value {
        Some(_) => Selected::Payload,
        None => Selected::Reply(Reply::Null),
    })
}

/// What was made of a payload, perhaps by another thread.
struct Made {
    value: Result<Value, Reply>,
    expires_at: Option<u64>,
    /// What the log gets, if that is made already.
    record: Option<Vec<u8>>,
}

/// RESTORE, of which another thread may have made the value.
fn restore(
    call: &Call<'_>,
    view: &mut Locked<'_>,
    made: &mut Option<Made>,
) -> Result<Outcome, Reply> {
    let mut args = call.args();
    let (key, ttl, bytes) = (
        call.key(args.next_bytes()?),
        args.next_bytes()?,
        args.next_bytes()?,
    );
    let (replace, absolute) = restore_options(args)?;
    if view.read().contains(key) && !replace {
        return Err(Reply::error("BUSYKEY Target key name already exists."));
    }
    let expires_at = restored_expiry(call, ttl, absolute)?;
    let context = call.context();
    let made = match made.take() {
        Some(made) => made,
        // A short payload may become a large value. A long one is not read here.
        None if call.leaves(bytes.len() as u64) || call.leaves(payload::unpacked_bytes(bytes)) => {
            return Ok(restore_elsewhere(call, expires_at).into());
        }
        None => Made {
            value: large::restored(&context, bytes),
            expires_at,
            record: None,
        },
    };
    let value = made.value?;
    large::check_fits(&context, &value)?;
    if made.expires_at.is_some_and(|at| at <= call.now.ms) {
        if view.entry(key).delete() {
            view.log(key.db, &[b"DEL", key.name]);
        }
        return Ok(Reply::OK.into());
    }
    view.entry(key).insert(value, made.expires_at);
    match made.record {
        Some(record) => view.log_encoded(key.db, record),
        None => {
            let at = expires_text(made.expires_at);
            view.log(key.db, &logged_restore(key.name, &at, bytes));
        }
    }
    Ok(Reply::OK.into())
}

/// Whether RESTORE replaces a key, and whether its expiry is a point in time.
fn restore_options(mut args: Args<'_>) -> Result<(bool, bool), Reply> {
    let (mut replace, mut absolute) = (false, false);
    while let Some(word) = args.next_optional() {
        match word.to_ascii_uppercase().as_slice() {
            b"REPLACE" => replace = true,
            b"ABSTTL" => absolute = true,
            // Nothing is evicted here, so these only must be numbers.
            b"IDLETIME" | b"FREQ" => {
                let number = args.next_optional().ok_or_else(error::syntax)?;
                integer(number).ok_or_else(error::not_an_integer)?;
            }
            _ => return Err(error::syntax()),
        }
    }
    Ok((replace, absolute))
}

/// The point in time that RESTORE's expiry means.
fn restored_expiry(call: &Call<'_>, ttl: &[u8], absolute: bool) -> Result<Option<u64>, Reply> {
    let ttl = integer(ttl).ok_or_else(error::not_an_integer)?;
    let ttl = u64::try_from(ttl);
    let ttl = ttl.map_err(|_| Reply::error("ERR Invalid TTL value, must be >= 0"))?;
    Ok(match ttl {
        0 => None,
        at if absolute => Some(at),
        // A log is read with signed numbers.
        ttl => Some(call.now.ms.saturating_add(ttl).min(i64::MAX.unsigned_abs())),
    })
}

/// Makes the value, and the long record of it, on another thread.
fn restore_elsewhere(call: &Call<'_>, expires_at: Option<u64>) -> Work {
    let (context, logs) = (call.context(), call.server.store.journal.is_logging());
    Work::new(move |args: &[&[u8]]| {
        let word = |at: usize| args.get(at).copied().unwrap_or_default();
        let (key, payload) = (word(1), word(3));
        let value = large::restored(&context, payload);
        let at = expires_text(expires_at);
        let record = match logs && value.is_ok() {
            true => encode_command(&logged_restore(key, &at, payload)),
            false => None,
        };
        let mut made = Some(Made {
            value,
            expires_at,
            record,
        });
        Done::Rest(Box::new(move |call, view| restore(call, view, &mut made)))
    })
}

/// An expiry as RESTORE has it.
fn expires_text(expires_at: Option<u64>) -> String {
    expires_at.unwrap_or(0).to_string()
}

/// What a log gets.
fn logged_restore<'a>(key: &'a [u8], at: &'a str, payload: &'a [u8]) -> [&'a [u8]; 6] {
    [
        b"RESTORE",
        key,
        at.as_bytes(),
        payload,
        b"REPLACE",
        b"ABSTTL",
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, bulk, err, int};
    use super::*;
    use crate::config::Settings;
    use everbloom::CuckooFilter;
    use everbloom::redisbloom::CuckooParts;
    use everbloom_commands::Filter;
    use everbloom_files::rdb::payload::DumpError;
    use everbloom_resp::Protocol;
    use everbloom_resp::encode::encode;

    #[test]
    fn a_value_dumped_is_restored_with_its_expiry() {
        let mut bench = Bench::default();
        bench.run("SET a hello");
        bench.run("BF.ADD f x");
        for (from, to) in [("a", "b"), ("f", "g")] {
            let Reply::Bulk(bytes) = bench.run(&format!("DUMP {from}")) else {
                panic!("a payload");
            };
            let restore = |bench: &mut Bench, ttl: &str, options: &[&[u8]]| {
                let words: &[&[u8]] = &[b"RESTORE", to.as_bytes(), ttl.as_bytes(), &bytes];
                bench.run_words(&[words, options].concat())
            };
            assert_eq!(restore(&mut bench, "0", &[]), Reply::OK);
            assert_eq!(bench.run(&format!("DUMP {to}")), Reply::Bulk(bytes.clone()));
            assert_eq!(
                restore(&mut bench, "5000", &[]),
                err("BUSYKEY Target key name already exists.")
            );
            assert_eq!(restore(&mut bench, "5000", &[b"replace"]), Reply::OK);
            assert_eq!(bench.run(&format!("PTTL {to}")), int(5000));
            let at = (bench.now.ms + 7000).to_string();
            let options: &[&[u8]] = &[b"ABSTTL", b"REPLACE", b"IDLETIME", b"100", b"FREQ", b"9"];
            assert_eq!(restore(&mut bench, &at, options), Reply::OK);
            assert_eq!(bench.run(&format!("PTTL {to}")), int(7000));
            // An expiry in the past removes the existing key.
            assert_eq!(
                restore(&mut bench, "1", &[b"ABSTTL", b"REPLACE"]),
                Reply::OK
            );
            assert_eq!(bench.run(&format!("EXISTS {to}")), int(0));
        }
        assert_eq!(bench.run("DUMP none"), Reply::Null);
        assert_eq!(bench.run("GET a"), bulk("hello"));
    }

    #[test]
    fn a_payload_that_no_restore_could_take_is_refused() {
        let mut bench = Bench::with(Settings {
            proto_max_bulk_len: 100_000,
            ..Settings::default()
        });
        bench.run("BF.RESERVE full 0.01 100000");
        bench.run("BF.RESERVE sparse 0.01 100000");
        for first in (0..70_000).step_by(1000) {
            let items: Vec<_> = (first..first + 1000).map(|i: u32| i.to_string()).collect();
            bench.run(&format!("BF.MADD full {}", items.join(" ")));
        }
        assert_eq!(
            bench.run("DUMP full"),
            err(
                "ERR the payload would be longer than proto-max-bulk-len (100000 bytes), so that \
                 no RESTORE could take it; BF.SCANDUMP and BF.LOADCHUNK move a filter in pieces"
            )
        );
        assert!(matches!(bench.run("DUMP sparse"), Reply::Bulk(bytes) if bytes.len() < 3000));
        // The limit of replies may be the lower one. The way out is the same.
        let changed = bench.server.config.update(|settings| {
            settings.client_output_buffer_limit.normal.hard = 50_000;
            Ok::<(), ()>(())
        });
        changed.unwrap();
        let refused = bench.run("DUMP full");
        let text = refused.as_error().unwrap();
        assert!(text.contains("client-output-buffer-limit"), "{text}");
        assert!(text.ends_with("BF.SCANDUMP and BF.LOADCHUNK move a filter in pieces"));
        // It leads to the end of the filter.
        let (mut iterator, mut pieces) = (0, 0);
        loop {
            let scan = format!("BF.SCANDUMP full {iterator}");
            let reply = bench.run(&scan).into_elements().expect(&scan);
            let [Reply::Integer(next), Reply::Bulk(piece)] = &reply[..] else {
                panic!("{scan}");
            };
            let mut encoded = Vec::new();
            encode(&Reply::Array(reply.clone()), Protocol::Resp2, &mut encoded);
            assert!(encoded.len() <= 50_000, "{scan}: {} bytes", encoded.len());
            if *next == 0 {
                break;
            }
            iterator = *next;
            pieces += 1;
            let next = iterator.to_string();
            let load: &[&[u8]] = &[b"BF.LOADCHUNK", b"copy", next.as_bytes(), piece];
            assert_eq!(bench.run_words(load), Reply::OK);
        }
        assert!(pieces > 3, "{pieces}");
        assert_eq!(bench.run("BF.INFO copy"), bench.run("BF.INFO full"));
        assert_eq!(bench.run("BF.EXISTS copy 69999"), Reply::Boolean(true));
        bench.run("CF.RESERVE cuckoo 100000");
        for first in (0..60_000).step_by(1000) {
            let items: Vec<_> = (first..first + 1000).map(|i: u32| i.to_string()).collect();
            bench.run(&format!("CF.INSERT cuckoo ITEMS {}", items.join(" ")));
        }
        let refused = bench.run("DUMP cuckoo");
        let text = refused.as_error().unwrap();
        assert!(text.ends_with("CF.SCANDUMP and CF.LOADCHUNK move a filter in pieces"));
        let piece = bench.run("CF.SCANDUMP cuckoo 1");
        assert!(!piece.is_error(), "{piece:?}");
        // The envelope counts, too: the reply has at most the allowed length.
        let text = Value::Text(b"0123456789-text"[..].into());
        let len = payload::dump(&text, true, usize::MAX).unwrap().len();
        assert_eq!(payload::dump(&text, true, len).unwrap().len(), len);
        let refused = payload::dump(&text, true, len - 1);
        assert_eq!(refused, Err(DumpError::TooLong));
    }

    #[test]
    fn a_filter_of_very_many_tables_is_not_restored() {
        let mut bench = Bench::default();
        for (tables, most, taken) in [(1024, 32, true), (1025, 32, false), (1025, 2000, true)] {
            let parts = CuckooParts {
                buckets: 1,
                tables,
                bucket_size: 1,
                max_kicks: 1,
                expansion: 1,
                ..CuckooParts::default()
            };
            let filter = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
            let value = Value::Filter(Filter::Cuckoo(filter));
            let payload = payload::dump(&value, true, usize::MAX).unwrap();
            bench.run(&format!("CONFIG SET cf-max-expansions {most}"));
            let reply = bench.run_words(&[b"RESTORE", b"k", b"0", &payload, b"REPLACE"]);
            let expected = match taken {
                true => Reply::OK,
                false => err("Maximum expansions reached"),
            };
            assert_eq!(reply, expected, "{tables} of {most}");
        }
    }

    #[test]
    fn a_log_gets_a_point_in_time() {
        let mut bench = Bench::default();
        bench.now.ms = 1_000_000;
        let bytes = payload::dump(&Value::Text(Vec::new().into()), true, 100).unwrap();
        let payload = String::from_utf8_lossy(&bytes).into_owned();
        let mut logged = |words: &[&[u8]]| {
            let text = bench.logged_words(words)?;
            Some(text.replace(&payload, "<payload>"))
        };
        let plain: &[&[u8]] = &[b"RESTORE", b"k", b"0", &bytes];
        assert_eq!(
            logged(plain).unwrap(),
            "RESTORE k 0 <payload> REPLACE ABSTTL"
        );
        let relative: &[&[u8]] = &[b"RESTORE", b"k", b"500", &bytes, b"REPLACE"];
        assert_eq!(
            logged(relative).unwrap(),
            "RESTORE k 1000500 <payload> REPLACE ABSTTL"
        );
        // As late as a log can say.
        let latest = b"9223372036854775807";
        let relative: &[&[u8]] = &[b"RESTORE", b"k", latest, &bytes, b"REPLACE"];
        assert_eq!(
            logged(relative).unwrap(),
            "RESTORE k 9223372036854775807 <payload> REPLACE ABSTTL"
        );
        let past: &[&[u8]] = &[b"RESTORE", b"k", b"5", &bytes, b"REPLACE", b"ABSTTL"];
        assert_eq!(logged(past).unwrap(), "DEL k");
        assert_eq!(logged(past), None);
        assert_eq!(logged(&[b"RESTORE", b"k", b"0", b"damaged"]), None);
    }

    #[test]
    fn bad_arguments_have_redisses_texts_in_redisses_order() {
        let mut bench = Bench::default();
        bench.run("SET k v");
        for (line, text) in [
            ("RESTORE k x x", "BUSYKEY Target key name already exists."),
            (
                "RESTORE n x x",
                "ERR value is not an integer or out of range",
            ),
            ("RESTORE n -1 x", "ERR Invalid TTL value, must be >= 0"),
            (
                "RESTORE n 0 x",
                "ERR DUMP payload version or checksum are wrong",
            ),
            ("RESTORE n 0 x FREQ", "ERR syntax error"),
            (
                "RESTORE n 0 x FREQ x",
                "ERR value is not an integer or out of range",
            ),
            ("RESTORE n 0 x NOW", "ERR syntax error"),
            ("BGSAVE NOW", "ERR syntax error"),
            ("BGSAVE SCHEDULE NOW", "ERR syntax error"),
        ] {
            assert_eq!(bench.run(line), err(text), "{line}");
        }
        assert_eq!(bench.run("GET k"), bulk("v"));
    }

    #[test]
    fn without_a_data_directory_there_is_nothing_to_save_to() {
        let mut bench = Bench::default();
        for line in ["SAVE", "BGSAVE", "BGSAVE SCHEDULE", "BGREWRITEAOF"] {
            let refusal = err("ERR the server has no data directory");
            assert_eq!(bench.run(line), refusal, "{line}");
        }
        assert!(matches!(bench.run("LASTSAVE"), Reply::Integer(time) if time > 0));
    }
}
