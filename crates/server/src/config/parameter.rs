//! Each setting as data: its name, how it is read and how it is shown.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{self, Path};

use everbloom::CuckooFilter;
use everbloom::sizing::RATE_CAP;
use everbloom_commands::format::layout;
use everbloom_commands::number::{self, NumberError};

use everbloom_store::Fsync;

use super::settings::Settings;
use super::text::{choice, memory, number, show_yes_no, split_words, yes_no};

/// One setting.
#[derive(Debug)]
pub struct Parameter {
    /// Its name in redis.conf, in lower case.
    pub name: &'static str,
    /// Another name that it answers to.
    pub alias: Option<&'static str>,
    /// Why CONFIG SET may not change it, if so.
    pub fixed: Option<&'static str>,
    /// Whether it takes any number of words, not one.
    pub list: bool,
    /// Its value as text; [`Parameter::set`] gives the same value back from it.
    pub get: fn(&Settings) -> String,
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

impl Parameter {
    /// Sets it from text; an error is what the text must be instead.
    pub fn set(&self, settings: &mut Settings, text: &str) -> Result<(), String> {
        (self.set)(settings, text)
    }

    /// The setting of this name, in any case.
    pub fn find(name: &str) -> Option<&'static Parameter> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        PARAMETERS
            .iter()
            .find(|p| is(p.name) || p.alias.is_some_and(is))
    }
}

/// How a setting is shown, and how it is read.
type Access = (
    fn(&Settings) -> String,
    fn(&mut Settings, &str) -> Result<(), String>,
);

impl Parameter {
    const fn new(name: &'static str, (get, set): Access) -> Self {
        Parameter {
            name,
            alias: None,
            fixed: None,
            list: false,
            get,
            set,
        }
    }

    const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    const fn fixed(mut self, why: &'static str) -> Self {
        self.fixed = Some(why);
        self
    }

    const fn list(mut self) -> Self {
        self.list = true;
        self
    }
}

/// The access to a field that shows itself, and how it is read.
macro_rules! read {
    ($field:ident $(.$inner:ident)?, $text:ident => $value:expr) => {
        (
            |s| s.$field$(.$inner)?.to_string(),
            |s, $text| put(&mut s.$field$(.$inner)?, $value),
        )
    };
}

/// The access to a field that is a number within bounds.
macro_rules! number {
    ($field:ident $(.$inner:ident)?, $least:expr, $most:expr) => {
        read!($field$(.$inner)?, text => number(text, $least, $most))
    };
}

/// The access to a field that is an amount of memory within bounds.
macro_rules! memory {
    ($field:ident $(.$inner:ident)?, $least:expr, $most:expr) => {
        read!($field$(.$inner)?, text => memory(text, $least, $most))
    };
}

/// The access to a field that is yes or no.
macro_rules! yes_no {
    ($field:ident $(.$inner:ident)?) => {
        (
            |s| show_yes_no(s.$field$(.$inner)?),
            |s, text| put(&mut s.$field$(.$inner)?, yes_no(text)),
        )
    };
}

/// It is read at the start alone.
const IMMUTABLE: &str = "can't set immutable config";
/// Whoever could change it from afar could write files anywhere.
const PROTECTED: &str = "can't set protected config";

const LOG_LEVELS: &[&str] = &["debug", "verbose", "notice", "warning", "nothing"];
const LAYOUTS: &[&str] = &["classic", "blocked"];
const INT: i64 = 2_147_483_647;
const MEBIBYTE: i64 = 1 << 20;

/// All settings.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "bind",
        (
            |s| s.bind.join(" "),
            |s, text| {
                s.bind = words(text)?;
                if s.bind.is_empty() {
                    return Err("wrong number of arguments".into());
                }
                Ok(())
            },
        ),
    )
    .fixed(IMMUTABLE)
    .list(),
    Parameter::new("port", number!(port, 0, 65535)).fixed(IMMUTABLE),
    Parameter::new("tcp-backlog", number!(tcp_backlog, 0, INT)).fixed(IMMUTABLE),
    Parameter::new("tcp-keepalive", number!(tcp_keepalive, 0, INT)),
    Parameter::new("timeout", number!(timeout, 0, INT)),
    Parameter::new("io-threads", number!(io_threads, 0, 1024)).fixed(IMMUTABLE),
    // Every one of the shards holds its part of every database: more would be memory wasted.
    Parameter::new("databases", number!(data.databases, 1, 4096)).fixed(IMMUTABLE),
    Parameter::new("protected-mode", yes_no!(protected_mode)),
    Parameter::new("requirepass", read!(requirepass, text => Ok(text.into()))),
    Parameter::new("maxclients", number!(maxclients, 1, i64::from(u32::MAX))),
    Parameter::new("maxmemory", memory!(maxmemory, 0, i64::MAX)),
    Parameter::new(
        "maxmemory-policy",
        (
            |_| "noeviction".into(),
            |_, text| choice(text, &["noeviction"]).map(drop),
        ),
    ),
    Parameter::new(
        "save",
        (
            |s| {
                let points = s
                    .data
                    .save
                    .iter()
                    .map(|(after, most)| format!("{after} {most}"));
                points.collect::<Vec<_>>().join(" ")
            },
            |s, text| put(&mut s.data.save, save_points(text)),
        ),
    )
    .list(),
    Parameter::new(
        "dir",
        (
            |s| {
                let dir = s.data.dir.as_deref();
                let absolute = |dir: &Path| path::absolute(dir).unwrap_or_else(|_| dir.into());
                dir.map_or_else(String::new, |dir| absolute(dir).to_string_lossy().into())
            },
            |s, text| put(&mut s.data.dir, Ok((!text.is_empty()).then(|| text.into()))),
        ),
    )
    .fixed(PROTECTED),
    Parameter::new(
        "dbfilename",
        read!(data.dbfilename, text => file_name(text, "dbfilename", "filename")),
    )
    .fixed(PROTECTED),
    Parameter::new("rdbcompression", yes_no!(data.rdbcompression)),
    Parameter::new("rdbchecksum", yes_no!(data.rdbchecksum)).fixed(IMMUTABLE),
    Parameter::new(
        "stop-writes-on-bgsave-error",
        yes_no!(data.stop_writes_on_bgsave_error),
    ),
    Parameter::new(
        "rdb-unknown-values",
        (
            |s| {
                if s.data.rdb_skip_unknown_values {
                    "skip"
                } else {
                    "refuse"
                }
                .into()
            },
            |s, text| {
                let word = choice(text, &["refuse", "skip"]);
                put(
                    &mut s.data.rdb_skip_unknown_values,
                    word.map(|word| word == "skip"),
                )
            },
        ),
    )
    .fixed(IMMUTABLE),
    Parameter::new("appendonly", yes_no!(data.appendonly)),
    Parameter::new(
        "appenddirname",
        read!(data.appenddirname, text => file_name(text, "appenddirname", "dirname")),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "appendfilename",
        read!(data.appendfilename, text => file_name(text, "appendfilename", "filename")),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "appendfsync",
        (
            |s| {
                let fsync = FSYNC.iter().find(|(_, fsync)| *fsync == s.data.appendfsync);
                fsync.map_or("", |(word, _)| word).into()
            },
            |s, text| {
                let word = choice(text, &FSYNC.map(|(word, _)| word))?;
                let fsync = FSYNC.iter().find(|(known, _)| *known == word);
                s.data.appendfsync = fsync.map_or(s.data.appendfsync, |(_, fsync)| *fsync);
                Ok(())
            },
        ),
    ),
    Parameter::new("aof-load-truncated", yes_no!(data.aof_load_truncated)),
    // A base that is not an RDB file is read, and never written.
    Parameter::new(
        "aof-use-rdb-preamble",
        (
            |_| show_yes_no(true),
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
        number!(data.auto_aof_rewrite_percentage, 0, INT),
    ),
    Parameter::new(
        "auto-aof-rewrite-min-size",
        memory!(data.auto_aof_rewrite_min_size, 0, i64::MAX),
    ),
    Parameter::new(
        "enable-debug-command",
        read!(enable_debug_command, text => one_of(text, &["no", "yes", "local"])),
    )
    .fixed(IMMUTABLE),
    Parameter::new(
        "proto-max-bulk-len",
        memory!(proto_max_bulk_len, MEBIBYTE, i64::MAX),
    ),
    Parameter::new(
        "client-query-buffer-limit",
        memory!(client_query_buffer_limit, MEBIBYTE, i64::MAX),
    ),
    Parameter::new(
        "client-output-buffer-limit",
        (
            |s| s.client_output_buffer_limit.show(),
            |s, text| s.client_output_buffer_limit.set(text),
        ),
    )
    .list(),
    Parameter::new(
        "slowlog-log-slower-than",
        number!(slowlog_log_slower_than, -1, i64::MAX),
    ),
    Parameter::new("slowlog-max-len", number!(slowlog_max_len, 0, i64::MAX)),
    Parameter::new(
        "hz",
        // Redis takes any number and then keeps to these bounds.
        read!(hz, text => number(text, 0, INT).map(|hz: u32| hz.clamp(1, 500))),
    ),
    Parameter::new(
        "loglevel",
        read!(loglevel, text => one_of(text, LOG_LEVELS)),
    ),
    Parameter::new("logfile", read!(logfile, text => Ok(text.into()))).fixed(IMMUTABLE),
    Parameter::new(
        "bf-error-rate",
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
        read!(bf.initial_size, text => number::capacity(text.as_bytes())
            .map_err(|e| refused(e, "bf-initial-size", "[1, 1073741824]"))),
    )
    .alias("bf.bf-initial-size"),
    Parameter::new(
        "bf-expansion-factor",
        read!(bf.expansion, text => number::expansion(text.as_bytes())
            .map_err(|e| refused(e, "bf-expansion-factor", "[0, 32768]"))),
    )
    .alias("bf.bf-expansion-factor"),
    Parameter::new(
        "bf-default-layout",
        (
            |s| layout::name(s.bf.layout).into(),
            |s, text| {
                let word = choice(text, LAYOUTS)?;
                let found = layout::parse(word.as_bytes());
                s.bf.layout = found.unwrap_or(s.bf.layout);
                Ok(())
            },
        ),
    )
    .alias("bf.bf-default-layout"),
    Parameter::new(
        "bf-max-filter-bytes",
        memory!(bf_max_filter_bytes, 0, i64::MAX),
    ),
    Parameter::new(
        "cf-bucket-size",
        (
            |s| s.cf.bucket_size.to_string(),
            |s, text| {
                // A table has two buckets at least.
                let most = u8::try_from(s.cf.initial_size / 2).unwrap_or(u8::MAX);
                put(
                    &mut s.cf.bucket_size,
                    ranged("cf-bucket-size", text, 1..=most),
                )
            },
        ),
    )
    .alias("bf.cf-bucket-size"),
    Parameter::new(
        "cf-initial-size",
        (
            |s| s.cf.initial_size.to_string(),
            |s, text| {
                let range = 2 * u64::from(s.cf.bucket_size)..=*number::CAPACITY.end();
                put(
                    &mut s.cf.initial_size,
                    ranged("cf-initial-size", text, range),
                )
            },
        ),
    )
    .alias("bf.cf-initial-size"),
    Parameter::new(
        "cf-max-iterations",
        read!(cf.max_iterations, text => ranged("cf-max-iterations", text, 1..=u16::MAX)),
    )
    .alias("bf.cf-max-iterations"),
    Parameter::new(
        "cf-expansion-factor",
        read!(cf.expansion, text
            => ranged("cf-expansion-factor", text, 0..=CuckooFilter::MAX_EXPANSION)),
    )
    .alias("bf.cf-expansion-factor"),
    Parameter::new(
        "cf-max-expansions",
        read!(cf.max_expansions, text => ranged("cf-max-expansions", text, 1..=1 << 16)),
    )
    .alias("bf.cf-max-expansions"),
];

fn ranged<N>(name: &str, text: &str, range: RangeInclusive<N>) -> Result<N, String>
where
    N: TryFrom<i64> + PartialOrd + Display,
{
    number::within(text.as_bytes(), &range).map_err(|error| {
        let range = format!("[{}, {}]", range.start(), range.end());
        refused(error, name, &range)
    })
}

fn one_of(text: &str, words: &[&'static str]) -> Result<String, String> {
    choice(text, words).map(Into::into)
}

fn put<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}

/// The words for when the log is forced to the disk, in the order in which Redis lists them.
const FSYNC: [(&str, Fsync); 3] = [
    ("everysec", Fsync::EverySecond),
    ("always", Fsync::Always),
    ("no", Fsync::No),
];

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
    if text.contains('/') {
        return Err(format!("{setting} can't be a path, just a {kind}"));
    }
    if matches!(text, "" | "." | "..") {
        return Err(format!("{setting} can't be empty"));
    }
    Ok(text.into())
}

fn words(text: &str) -> Result<Vec<String>, String> {
    split_words(text).ok_or_else(|| "unbalanced quotes".into())
}

/// What RedisBloom says to a value of its own settings.
fn refused(error: NumberError, name: &str, range: &str) -> String {
    match error {
        NumberError::Syntax => format!("Invalid value for `{name}`"),
        NumberError::Range => format!("Value for `{name}` must be in the range {range}"),
    }
}
