//! OBJECT and MEMORY: what a key's value is made of.

use everbloom_commands::number::integer;
use everbloom_commands::table::KeySpec;
use everbloom_resp::Reply;

use super::{Call, Command, Run, answer, count, error};
use everbloom_files::Value;
use everbloom_store::keyspace::{Entry, View};

/// The key follows the subcommand.
const SECOND_ARGUMENT: KeySpec = KeySpec {
    first: 2,
    last: 2,
    step: 1,
};

/// The rows of this family.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "OBJECT",
        arity: -2,
        flags: &[],
        keys: SECOND_ARGUMENT,
        group: "generic",
        since: "2.2.3",
        summary: "Tells how a key's value is kept.",
        run: Run::Read(|call, view| answer(object(call, view))),
    },
    Command {
        name: "MEMORY",
        arity: -2,
        flags: &[],
        keys: SECOND_ARGUMENT,
        group: "server",
        since: "4.0.0",
        summary: "Tells how much memory is used.",
        run: Run::Read(|call, view| answer(memory(call, view))),
    },
];

const OBJECT_HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    The form in which the value of <key> is kept.",
    "FREQ <key>",
    "    How often <key> is used; needs an LFU policy.",
    "IDLETIME <key>",
    "    Seconds since <key> was used last.",
    "REFCOUNT <key>",
    "    References to the value of <key>.",
    "HELP",
    "    Print this help.",
];

const MEMORY_HELP: &[&str] = &[
    "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR",
    "    What is wrong with the use of memory.",
    "MALLOC-STATS",
    "    Figures of the memory allocator.",
    "PURGE",
    "    Return unused memory to the system.",
    "STATS",
    "    How much memory is used.",
    "USAGE <key> [SAMPLES <count>]",
    "    Bytes that <key> and its value take.",
    "HELP",
    "    Print this help.",
];

fn help(lines: &[&'static str]) -> Reply {
    Reply::Array(lines.iter().map(|line| Reply::simple(*line)).collect())
}

/// The subcommand's word in upper case, once the number of arguments is right for it.
fn subcommand(call: &Call<'_>, arities: &[(&str, i32)]) -> Result<String, Reply> {
    let word = call.arg(1);
    let (container, given) = (call.command, call.args.len());
    let Some((name, arity)) = arities
        .iter()
        .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
    else {
        return Err(error::unknown_subcommand(word, container.name));
    };
    let wanted = usize::try_from(arity.unsigned_abs()).unwrap_or(usize::MAX);
    if given == wanted || *arity < 0 && given > wanted {
        return Ok((*name).to_owned());
    }
    let name = name.to_ascii_lowercase();
    Err(error::wrong_arity(&format!("{}|{name}", container.lower)))
}

fn object(call: &Call<'_>, view: &View<'_>) -> Result<Reply, Reply> {
    const ARITIES: [(&str, i32); 5] = [
        ("ENCODING", 3),
        ("FREQ", 3),
        ("IDLETIME", 3),
        ("REFCOUNT", 3),
        ("HELP", 2),
    ];
    let name = subcommand(call, &ARITIES)?;
    if name == "HELP" {
        return Ok(help(OBJECT_HELP));
    }
    let Some(entry) = call.peek(view, call.arg(2)) else {
        return Ok(Reply::Null);
    };
    match name.as_str() {
        "ENCODING" => Ok(Reply::bulk(encoding(entry))),
        "IDLETIME" => {
            let idle = call.now.clock.wrapping_sub(entry.accessed());
            Ok(Reply::Integer(i64::from(idle)))
        }
        // Values are never shared between keys here; Redis shares the small integers.
        "REFCOUNT" => Ok(Reply::Integer(1)),
        _ => Err(Reply::error(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please \
             note that when switching between policies at runtime LRU and LFU data will take some \
             time to adjust.",
        )),
    }
}

/// The name of the form in which Redis keeps a value just set. (It keeps one that was appended to
/// as `raw`, however short it is; here that leaves no trace.)
pub(super) fn encoding(entry: &Entry) -> &'static str {
    const LONGEST_EMBEDDED: usize = 44;
    match &entry.value {
        Value::Text(text) if integer(text).is_some() => "int",
        Value::Text(text) if text.len() <= LONGEST_EMBEDDED => "embstr",
        _ => "raw",
    }
}

fn memory(call: &Call<'_>, view: &View<'_>) -> Result<Reply, Reply> {
    const ARITIES: [(&str, i32); 6] = [
        ("USAGE", -3),
        ("STATS", 2),
        ("DOCTOR", 2),
        ("MALLOC-STATS", 2),
        ("PURGE", 2),
        ("HELP", 2),
    ];
    Ok(match subcommand(call, &ARITIES)?.as_str() {
        "USAGE" => usage(call, view)?,
        "STATS" => stats(call),
        "DOCTOR" => doctor(call),
        "MALLOC-STATS" => Reply::bulk("Stats not supported for the current allocator"),
        "PURGE" => Reply::OK,
        _ => help(MEMORY_HELP),
    })
}

fn usage(call: &Call<'_>, view: &View<'_>) -> Result<Reply, Reply> {
    let mut words = call.args_from(3).iter();
    while let Some(word) = words.next() {
        let samples = words
            .next()
            .filter(|_| word.eq_ignore_ascii_case(b"SAMPLES"))
            .ok_or_else(error::syntax)?;
        // Nothing is sampled, all is counted; the number must be one all the same.
        if integer(samples).ok_or_else(error::not_an_integer)? < 0 {
            return Err(error::syntax());
        }
    }
    let entry = view.peek(call.session.db, call.arg(2));
    Ok(entry.map_or(Reply::Null, |entry| count(entry.memory())))
}

/// Figures under Redis's names. Of keys and values the keyspace keeps account; what the process
/// takes besides is what it has resident above that.
fn stats(call: &Call<'_>) -> Reply {
    let server = call.server;
    let used = server.used_memory();
    let peak = server
        .stats
        .peak_memory
        .load(std::sync::atomic::Ordering::Relaxed);
    let resident = crate::system::resident_memory().unwrap_or(used);
    let number = |n: u64| Reply::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    let pairs = [
        ("peak.allocated", number(peak)),
        ("total.allocated", number(used)),
        ("dataset.bytes", number(used)),
        ("dataset.percentage", Reply::Double(percent(used, resident))),
        ("peak.percentage", Reply::Double(percent(used, peak))),
        ("allocator.resident", number(resident)),
    ];
    let pairs = pairs.map(|(name, figure)| (Reply::bulk(name), figure));
    Reply::Map(pairs.into())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a percentage needs no sixteen digits"
)]
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 100.0;
    }
    part as f64 * 100.0 / whole as f64
}

fn doctor(call: &Call<'_>) -> Reply {
    let (used, settings) = (call.server.used_memory(), call.settings);
    let limit = settings.maxmemory;
    let report = if call.server.over_memory_limit(settings) {
        format!(
            "Keys and values take {used} bytes, more than maxmemory ({limit}): commands that \
             would take more are refused. Delete keys, or raise maxmemory.\n"
        )
    } else if limit > 0 && used > limit / 10 * 9 {
        format!(
            "Keys and values take {used} bytes, more than nine tenths of maxmemory ({limit}).\n"
        )
    } else {
        "No memory problem was found.\n".to_owned()
    };
    Reply::verbatim(report)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, bulk, err, int};
    use super::*;

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
        assert_eq!(bench.run("OBJECT REFCOUNT int"), int(1));
        assert_eq!(bench.run("OBJECT REFCOUNT none"), Reply::Null);
        assert!(bench.run("OBJECT FREQ int").is_error());
        assert_eq!(
            bench.run("OBJECT FREQ"),
            err("ERR wrong number of arguments for 'object|freq' command")
        );
        assert_eq!(
            bench.run("OBJECT NOPE x"),
            err("ERR unknown subcommand 'NOPE'. Try OBJECT HELP.")
        );
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
        let Reply::Map(stats) = bench.run("MEMORY STATS") else {
            panic!("a map");
        };
        assert_eq!(stats[1], (bulk("total.allocated"), int(small + large)));
        for line in [
            "MEMORY DOCTOR",
            "MEMORY HELP",
            "MEMORY PURGE",
            "OBJECT HELP",
        ] {
            assert!(!bench.run(line).is_error(), "{line}");
        }
    }
}
