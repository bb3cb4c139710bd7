//! Each setting as data: its name, how it is read and how it is shown.

use std::path::{self, PathBuf};

use everbloom::sizing::RATE_CAP;
use everbloom::{CuckooFilter, Layout};
use everbloom_commands::number;

use everbloom_store::Fsync;

use super::listening;
pub use super::row::Parameter;
use super::row::{IMMUTABLE, MAX_INT, access, memory, number, ranged, read, word, yes_no};
use super::text::{choice, number, refused, show_path, show_yes_no, yes_no};

impl Parameter {
    /// The setting with this name, in any case.
    pub fn find(name: &str) -> Option<&'static Parameter> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        PARAMETERS
            .iter()
            .find(|p| is(p.name) || p.alias.is_some_and(is))
    }
}

const LOG_LEVELS: &[&str] = &["debug", "verbose", "notice", "warning", "nothing"];
const LAYOUTS: [(&str, Layout); 2] = [("classic", Layout::Classic), ("blocked", Layout::Blocked)];
const MEBIBYTE: i64 = 1 << 20;

/// All settings.
pub const PARAMETERS: &[Parameter] = &[
    listening::BIND,
    listening::PORT,
    listening::UNIX_SOCKET,
    listening::UNIX_SOCKET_PERMISSIONS,
    listening::TLS_PORT,
    listening::TLS_CERT_FILE,
    listening::TLS_KEY_FILE,
    listening::TLS_CA_CERT_FILE,
    listening::TLS_AUTH_CLIENTS,
    listening::TLS_PROTOCOLS,
    listening::BACKLOG,
    listening::KEEPALIVE,
    listening::METRICS_PORT,
    listening::METRICS_BIND,
    Parameter::new(
        "timeout",
        "Disconnect a client that was idle for this many seconds. 0 means never.",
        number!(timeout, 0, MAX_INT),
    ),
    Parameter::new(
        "io-threads",
        "Threads that serve connections. 0 means one per core.",
        number!(io_threads, 0, 1024),
    )
    .fixed(IMMUTABLE),
    // Each shard holds a part of every database, so more would waste memory.
    Parameter::new(
        "databases",
        "Number of databases.",
        number!(data.databases, 1, 4096),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "protected-mode",
        "Refuse clients from other machines while there is no password.",
        yes_no!(protected_mode),
    ),
    Parameter::new(
        "requirepass",
        "The password for AUTH. Empty: no password.",
        read!(requirepass, text => Ok(text.into())),
    ),
    Parameter::new(
        "maxclients",
        "Maximum number of connected clients.",
        number!(maxclients, 1, i64::from(u32::MAX)),
    ),
    Parameter::new(
        "maxmemory",
        "Refuse writes above this much memory, for example 4gb. 0 means no limit.",
        memory!(maxmemory, 0, i64::MAX),
    ),
    Parameter::new(
        "maxmemory-policy",
        "Only noeviction: filters are never evicted.",
        (
            |_| "noeviction".into(),
            |_, text| choice(text, &["noeviction"]).map(drop),
        ),
    ),
    Parameter::new(
        "save",
        "Pairs: save a snapshot after SECONDS if there were CHANGES. Empty: never.",
        access!(data.save, |points: &Vec<_>| show_save_points(points), text => save_points(text)),
    )
    .list(),
    Parameter::new(
        "dir",
        "The directory of the snapshot and the log.",
        access!(
            data.dir,
            |dir: &Option<PathBuf>| {
                let absolute = |dir: &PathBuf| path::absolute(dir).unwrap_or_else(|_| dir.clone());
                show_path(&dir.as_ref().map(absolute))
            },
            text => Ok((!text.is_empty()).then(|| text.into()))
        ),
    )
    .protected()
    // The directory is locked and holds the current log.
    .fixed(IMMUTABLE),
    Parameter::new(
        "dbfilename",
        "The file name of the snapshot.",
        read!(data.dbfilename, text => file_name(text, "dbfilename", "filename")),
    )
    .protected(),
    Parameter::new(
        "rdbcompression",
        "Compress long values in snapshots if that makes them much shorter.",
        yes_no!(data.rdbcompression),
    ),
    Parameter::new(
        "rdbchecksum",
        "Write a checksum into snapshots, and verify it when they are loaded.",
        yes_no!(data.rdbchecksum),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "stop-writes-on-bgsave-error",
        "Refuse writes when the last snapshot failed.",
        yes_no!(data.stop_writes_on_bgsave_error),
    ),
    Parameter::new(
        "rdb-unknown-values",
        "Values of unknown types: refuse to start, or skip them.",
        word!(
            data.rdb_skip_unknown_values,
            &[("refuse", false), ("skip", true)]
        ),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "appendonly",
        "Log every change, and load the log at the start.",
        yes_no!(data.appendonly),
    ),
    Parameter::new(
        "appenddirname",
        "The directory of the log, below dir.",
        read!(data.appenddirname, text => file_name(text, "appenddirname", "dirname")),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "appendfilename",
        "The beginning of the log's file names.",
        read!(data.appendfilename, text => file_name(text, "appendfilename", "filename")),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "appendfsync",
        "When the log is forced to the disk: always (before each reply), everysec or no.",
        word!(data.appendfsync, &FSYNC),
    ),
    Parameter::new(
        "aof-load-truncated",
        "Load a log whose end is incomplete, as after a power failure, with a warning.",
        yes_no!(data.aof_load_truncated),
    ),
    // A base that is not an RDB file can be read, but is never written.
    Parameter::new(
        "aof-use-rdb-preamble",
        "Only yes: a rewritten log begins with a snapshot.",
        (
            |_| show_yes_no(&true),
            |_, text| match yes_no(text)? {
                true => Ok(()),
                false => Err(
                    "a rewritten log always begins with an RDB file, so this must be yes".into(),
                ),
            },
        ),
    ),
    Parameter::new(
        "auto-aof-rewrite-percentage",
        "Rewrite the log when it has grown by this many percent. 0 means never.",
        number!(data.auto_aof_rewrite_percentage, 0, MAX_INT),
    ),
    Parameter::new(
        "auto-aof-rewrite-min-size",
        "Do not rewrite a shorter log.",
        memory!(data.auto_aof_rewrite_min_size, 0, i64::MAX),
    ),
    Parameter::new(
        "enable-debug-command",
        "Allow DEBUG: no, yes, or local (clients of this machine).",
        read!(enable_debug_command, text => one_of(text, &["no", "yes", "local"])),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "enable-protected-configs",
        "Allow CONFIG SET dbfilename: no, yes, or local (clients of this machine).",
        read!(enable_protected_configs, text => one_of(text, &["no", "yes", "local"])),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "proto-max-bulk-len",
        "Maximum length of an argument and of a string.",
        memory!(proto_max_bulk_len, MEBIBYTE, i64::MAX),
    ),
    Parameter::new(
        "client-query-buffer-limit",
        "Disconnect a client whose incomplete request is longer.",
        memory!(client_query_buffer_limit, MEBIBYTE, i64::MAX),
    ),
    Parameter::new(
        "client-output-buffer-limit",
        "CLASS HARD SOFT SECONDS: disconnect a client with more than HARD bytes of unread\n\
         replies, or with more than SOFT bytes for SECONDS. 0 means no limit.",
        (
            |s| s.client_output_buffer_limit.show(),
            |s, text| s.client_output_buffer_limit.set(text),
        ),
    )
    .list(),
    Parameter::new(
        "slowlog-log-slower-than",
        "Record commands that took this many microseconds in SLOWLOG. -1 means none.",
        number!(slowlog_log_slower_than, -1, i64::MAX),
    ),
    Parameter::new(
        "slowlog-max-len",
        "Number of commands that SLOWLOG keeps.",
        number!(slowlog_max_len, 0, i64::MAX),
    ),
    Parameter::new(
        "hz",
        "How many times a second keys whose time is over are looked for.",
        // Redis accepts any number and then clamps it to these bounds.
        read!(hz, text => number(text, 0, MAX_INT).map(|hz: u32| hz.clamp(1, 500))),
    ),
    Parameter::new(
        "loglevel",
        "Log level: debug, verbose, notice, warning or nothing.",
        read!(loglevel, text => one_of(text, LOG_LEVELS)),
    ),
    Parameter::new(
        "logfile",
        "Write log lines to this file; SIGHUP reopens it. Empty: standard output.",
        read!(logfile, text => Ok(text.into())),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "log-format",
        "text, or json: one object per line, with timestamp, level and message.",
        read!(log_format, text => one_of(text, &["text", "json"])),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "bf-error-rate",
        "Error rate of filters that BF.ADD creates.",
        (
            |s| s.bf_error_rate_text.clone(),
            |s, text| {
                let rate = number::error_rate(text.as_bytes());
                let rate = rate.map_err(|e| refused(e, "bf-error-rate", "(0.000000, 1.000000)"))?;
                s.bf.error_rate = rate.min(RATE_CAP);
                s.bf_error_rate_text = text.into();
                Ok(())
            },
        ),
    )
    .alias("bf.bf-error-rate"),
    Parameter::new(
        "bf-initial-size",
        "Capacity of filters that BF.ADD creates.",
        ranged!("bf-initial-size", bf.initial_size, s => number::CAPACITY),
    )
    .alias("bf.bf-initial-size"),
    Parameter::new(
        "bf-expansion-factor",
        "How many times larger each further layer of these filters is. 0 disables growth.",
        ranged!("bf-expansion-factor", bf.expansion, s => number::EXPANSION),
    )
    .alias("bf.bf-expansion-factor"),
    Parameter::new(
        "bf-default-layout",
        "Layout of these filters: classic (RedisBloom's), or blocked: faster, and keeps its\n\
         error rate when it grows.",
        word!(bf.layout, &LAYOUTS),
    )
    .alias("bf.bf-default-layout"),
    Parameter::new(
        "bf-max-filter-bytes",
        "Maximum bytes of one filter's bits. 0 means no limit.",
        memory!(bf_max_filter_bytes, 0, i64::MAX),
    ),
    Parameter::new(
        "cf-bucket-size",
        "Slots per bucket of filters that CF.ADD creates. More slots fill better and err more.",
        // A table has at least two buckets.
        ranged!("cf-bucket-size", cf.bucket_size,
            s => 1..=u8::try_from(s.cf.initial_size / 2).unwrap_or(u8::MAX)),
    )
    .alias("bf.cf-bucket-size"),
    Parameter::new(
        "cf-initial-size",
        "Minimum number of slots of these filters.",
        ranged!("cf-initial-size", cf.initial_size,
            s => 2 * u64::from(s.cf.bucket_size)..=*number::CAPACITY.end()),
    )
    .alias("bf.cf-initial-size"),
    Parameter::new(
        "cf-max-iterations",
        "Maximum number of items moved to make room for one.",
        ranged!("cf-max-iterations", cf.max_iterations, s => 1..=u16::MAX),
    )
    .alias("bf.cf-max-iterations"),
    Parameter::new(
        "cf-expansion-factor",
        "How many times larger each further table of these filters is. 0 disables growth.",
        ranged!("cf-expansion-factor", cf.expansion, s => 0..=CuckooFilter::MAX_EXPANSION),
    )
    .alias("bf.cf-expansion-factor"),
    Parameter::new(
        "cf-max-expansions",
        "Maximum number of tables of a cuckoo filter.",
        ranged!("cf-max-expansions", cf.max_expansions, s => 1..=1 << 16),
    )
    .alias("bf.cf-max-expansions"),
];

fn one_of(text: &str, words: &[&'static str]) -> Result<String, String> {
    choice(text, words).map(Into::into)
}

/// The words for when the log is forced to the disk, in the order in which Redis lists them.
const FSYNC: [(&str, Fsync); 3] = [
    ("everysec", Fsync::EverySecond),
    ("always", Fsync::Always),
    ("no", Fsync::No),
];

fn show_save_points(points: &[(u64, u64)]) -> String {
    let shown = points.iter().map(|(after, most)| format!("{after} {most}"));
    shown.collect::<Vec<_>>().join(" ")
}

/// Pairs of seconds and changes.
fn save_points(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let invalid = || "Invalid save parameters".to_owned();
    let numbers: Vec<u64> = text
        .split_ascii_whitespace()
        .map(|word| number(word, 0, i64::MAX).map_err(|_| invalid()))
        .collect::<Result<_, _>>()?;
    numbers
        .chunks(2)
        .map(|pair| match *pair {
            [after, most] if after > 0 => Ok((after, most)),
            _ => Err(invalid()),
        })
        .collect()
}

fn file_name(text: &str, setting: &str, kind: &str) -> Result<String, String> {
    if text.contains(['/', '\\', '\0']) || matches!(text, "." | "..") {
        return Err(format!("{setting} can't be a path, just a {kind}"));
    }
    if text.is_empty() {
        return Err(format!("{setting} can't be empty"));
    }
    Ok(text.into())
}
