//! OBJECT and MEMORY: details of how a key's value is stored.

use everbloom_commands::command::KeySpec;
use everbloom_commands::key_use::INSPECT;
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::subcommand::container;
use super::{Call, Command, count, error, reads};
use everbloom_files::Value;
use everbloom_store::keyspace::{Entry, View};

/// The key follows the subcommand.
const SECOND_ARGUMENT: KeySpec = KeySpec::new(2, 2, 1);

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Tells how a key's value is kept.
    container("object", OBJECT).since("2.2.3"),
    /// Tells how much memory is used.
    container("memory", MEMORY).since("4.0.0").group("server"),
};

const OBJECT: &[Command] = rows! {
    /// The form in which the value of <key> is kept.
    reads("object|encoding", 3, SECOND_ARGUMENT, |call, view| of_entry(call, view, encoding))
        .uses(INSPECT).since("2.2.3").usage("<key>"),
    /// Refused: the frequency of use is not tracked, for nothing is evicted.
    reads("object|freq", 3, SECOND_ARGUMENT, |call, view| of_entry(call, view, frequency))
        .uses(INSPECT).since("4.0.0").usage("<key>"),
    /// Seconds since <key> was used last.
    reads("object|idletime", 3, SECOND_ARGUMENT, |call, view| of_entry(call, view, idle_time))
        .uses(INSPECT).since("2.2.3").usage("<key>"),
    /// The number of references to the value of <key>: one.
    reads("object|refcount", 3, SECOND_ARGUMENT, |call, view| of_entry(call, view, references))
        .uses(INSPECT).since("2.2.3").usage("<key>"),
};

const MEMORY: &[Command] = rows! {
    /// Bytes that <key> and its value take.
    reads("memory|usage", -3, SECOND_ARGUMENT, usage).uses(INSPECT).since("4.0.0").usage("<key> [SAMPLES <count>]"),
};

/// The reply of a subcommand for the entry of its key.
fn of_entry(
    call: &Call<'_>,
    view: View<'_>,
    answer: fn(&Call<'_>, &Entry) -> Reply,
) -> Result<Reply, Reply> {
    let entry = call.peek(view, call.key(call.args().next_bytes()?));
    Ok(entry.map_or(Reply::Null, |entry| answer(call, entry)))
}

/// The name of Redis's encoding for such a value. A string is `raw` once it was changed, however
/// short it is.
fn encoding(_: &Call<'_>, entry: &Entry) -> Reply {
    const MAX_EMBEDDED_BYTES: usize = 44;
    Reply::bulk(match &entry.value {
        Value::Text(text) if text.is_edited() => "raw",
        Value::Text(text) if integer(text).is_some() => "int",
        Value::Text(text) if text.len() <= MAX_EMBEDDED_BYTES => "embstr",
        _ => "raw",
    })
}

fn idle_time(call: &Call<'_>, entry: &Entry) -> Reply {
    Reply::Integer(call.now.clock.wrapping_sub(entry.accessed()).into())
}

fn frequency(_: &Call<'_>, _: &Entry) -> Reply {
    Reply::error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
         that when switching between policies at runtime LRU and LFU data will take some time to \
         adjust.",
    )
}

fn references(_: &Call<'_>, _: &Entry) -> Reply {
    Reply::Integer(1)
}

fn usage(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let key = args.next_bytes()?;
    while let Some(word) = args.next_optional() {
        let samples = args
            .next_optional()
            .filter(|_| word.eq_ignore_ascii_case(b"SAMPLES"))
            .ok_or_else(error::syntax)?;
        // Everything is counted without sampling, but the number must still be valid.
        if integer(samples).ok_or_else(error::not_an_integer)? < 0 {
            return Err(error::syntax());
        }
    }
    let entry = view.peek(call.key(key));
    Ok(entry.map_or(Reply::Null, |entry| count(entry.memory())))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, bulk, err, int};
    use super::*;

    #[test]
    fn a_string_that_was_changed_is_kept_raw_until_it_is_set() {
        let mut bench = Bench::default();
        bench.run("MSET n 17 m 17 bits 1 same 17 copied 17");
        for (line, key, name) in [
            ("APPEND n 1", "n", "raw"),
            ("SET n 171", "n", "int"),
            ("SETRANGE n 0 2", "n", "raw"),
            ("COPY n copied REPLACE", "copied", "raw"),
            ("INCR n", "n", "int"),
            ("SETBIT bits 6 1", "bits", "raw"),
            ("SETBIT same 7 1", "same", "raw"),
            ("BITFIELD m SET u8 0 50", "m", "raw"),
            ("SET m 17", "m", "int"),
            ("BITFIELD m GET u8 0", "m", "int"),
            ("BITFIELD m SET u8 0 49", "m", "raw"),
            ("GETSET m short", "m", "embstr"),
            ("APPEND m ''", "m", "raw"),
            // A key that APPEND makes is set.
            ("APPEND new 17", "new", "int"),
            ("SETRANGE ranged 0 17", "ranged", "raw"),
            ("BITOP AND anded n n", "anded", "raw"),
        ] {
            bench.run(line);
            let encoding = bench.run(&format!("OBJECT ENCODING {key}"));
            assert_eq!(encoding, bulk(name), "{line}");
        }
    }

    #[test]
    fn values_tell_how_they_are_kept() {
        let mut bench = Bench::default();
        bench.run("BF.ADD filter x");
        bench.run("BF.RESERVE blocked 0.01 10 LAYOUT BLOCKED");
        bench.run(&format!("SET raw {}", "x".repeat(45)));
        bench.run(&format!("SET short {}", "x".repeat(44)));
        bench.run("MSET int -17 notint 017 empty ''");
        for (key, name) in [
            ("filter", "raw"),
            ("blocked", "raw"),
            ("raw", "raw"),
            ("short", "embstr"),
            ("int", "int"),
            ("notint", "embstr"),
            ("empty", "embstr"),
        ] {
            assert_eq!(bench.run(&format!("OBJECT ENCODING {key}")), bulk(name));
        }
        assert_eq!(
            bench.run("OBJECT ENCODING"),
            err("ERR wrong number of arguments for 'object|encoding' command")
        );
        assert_eq!(
            bench.run("OBJECT NOPE x"),
            err("ERR unknown subcommand 'NOPE'. Try OBJECT HELP.")
        );
    }

    /// The texts are those of redis-server 7.0.15.
    #[test]
    fn references_are_one_and_frequencies_none() {
        let mut bench = Bench::default();
        bench.run("SET a 1");
        assert_eq!(bench.run("OBJECT REFCOUNT a"), int(1));
        let text = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. \
                    Please note that when switching between policies at runtime LRU and LFU data \
                    will take some time to adjust.";
        assert_eq!(bench.run("OBJECT FREQ a"), err(text));
        for line in ["OBJECT REFCOUNT none", "OBJECT FREQ none"] {
            assert_eq!(bench.run(line), Reply::Null, "{line}");
        }
    }

    #[test]
    fn looking_does_not_count_as_use() {
        let mut bench = Bench::default();
        bench.run("SET a 1");
        bench.wait(7_000);
        for line in ["TYPE a", "TTL a", "EXISTS a", "MEMORY USAGE a"] {
            bench.run(line);
        }
        assert_eq!(bench.run("OBJECT IDLETIME a"), int(7));
        bench.run("TOUCH a");
        assert_eq!(bench.run("OBJECT IDLETIME a"), int(0));
    }

    #[test]
    fn memory_is_told_of_keys_and_of_all() {
        let mut bench = Bench::default();
        bench.run("SET a 1");
        let small = bench.run("MEMORY USAGE a").as_integer().unwrap();
        bench.run("BF.RESERVE f 0.01 1000000");
        let large = bench.run("MEMORY USAGE f SAMPLES 0").as_integer().unwrap();
        assert!(small > 0 && small < 200, "{small}");
        assert!(large > 1_000_000, "{large}");
        assert_eq!(bench.run("MEMORY USAGE none"), Reply::Null);
        assert_eq!(bench.run("MEMORY USAGE a SAMPLES -1"), error::syntax());
        assert_eq!(
            bench.run("MEMORY USAGE a SAMPLES x"),
            error::not_an_integer()
        );
        for line in ["MEMORY HELP", "OBJECT HELP"] {
            assert!(!bench.run(line).is_error(), "{line}");
        }
    }
}
