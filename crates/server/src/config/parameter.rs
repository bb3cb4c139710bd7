//! Each setting as data: its name, how it is read and how it is shown.

use std::path::{self, Path};

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

/// What the rows have in common.
const BASE: Parameter = Parameter {
    name: "",
    alias: None,
    fixed: None,
    list: false,
    get: |_| String::new(),
    set: |_, _| Ok(()),
};

/// It is read at the start alone.
const IMMUTABLE: Option<&str> = Some("can't set immutable config");
/// Whoever could change it from afar could write files anywhere.
const PROTECTED: Option<&str> = Some("can't set protected config");

const LOG_LEVELS: &[&str] = &["debug", "verbose", "notice", "warning", "nothing"];
const LAYOUTS: &[&str] = &["classic", "blocked"];
const INT: i64 = 2_147_483_647;
const MEBIBYTE: i64 = 1 << 20;

/// All settings.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "bind",
        fixed: IMMUTABLE,
        list: true,
        get: |s| s.bind.join(" "),
        set: |s, text| {
            s.bind = words(text)?;
            if s.bind.is_empty() {
                return Err("wrong number of arguments".into());
            }
            Ok(())
        },
        ..BASE
    },
    Parameter {
        name: "port",
        fixed: IMMUTABLE,
        get: |s| s.port.to_string(),
        set: |s, text| put(&mut s.port, number(text, 0, 65535)),
        ..BASE
    },
    Parameter {
        name: "tcp-backlog",
        fixed: IMMUTABLE,
        get: |s| s.tcp_backlog.to_string(),
        set: |s, text| put(&mut s.tcp_backlog, number(text, 0, INT)),
        ..BASE
    },
    Parameter {
        name: "tcp-keepalive",
        get: |s| s.tcp_keepalive.to_string(),
        set: |s, text| put(&mut s.tcp_keepalive, number(text, 0, INT)),
        ..BASE
    },
    Parameter {
        name: "timeout",
        get: |s| s.timeout.to_string(),
        set: |s, text| put(&mut s.timeout, number(text, 0, INT)),
        ..BASE
    },
    Parameter {
        name: "io-threads",
        fixed: IMMUTABLE,
        get: |s| s.io_threads.to_string(),
        set: |s, text| put(&mut s.io_threads, number(text, 0, 1024)),
        ..BASE
    },
    Parameter {
        name: "databases",
        fixed: IMMUTABLE,
        get: |s| s.data.databases.to_string(),
        // Every one of the shards holds its part of every database: more would be memory wasted.
        set: |s, text| put(&mut s.data.databases, number(text, 1, 4096)),
        ..BASE
    },
    Parameter {
        name: "protected-mode",
        get: |s| show_yes_no(s.protected_mode),
        set: |s, text| put(&mut s.protected_mode, yes_no(text)),
        ..BASE
    },
    Parameter {
        name: "requirepass",
        get: |s| s.requirepass.clone(),
        set: |s, text| put(&mut s.requirepass, Ok(text.into())),
        ..BASE
    },
    Parameter {
        name: "maxclients",
        get: |s| s.maxclients.to_string(),
        set: |s, text| put(&mut s.maxclients, number(text, 1, i64::from(u32::MAX))),
        ..BASE
    },
    Parameter {
        name: "maxmemory",
        get: |s| s.maxmemory.to_string(),
        set: |s, text| put(&mut s.maxmemory, memory(text, 0, i64::MAX)),
        ..BASE
    },
    Parameter {
        name: "maxmemory-policy",
        get: |_| "noeviction".into(),
        set: |_, text| choice(text, &["noeviction"]).map(drop),
        ..BASE
    },
    Parameter {
        name: "save",
        list: true,
        get: |s| {
            let points = s
                .data
                .save
                .iter()
                .map(|(after, most)| format!("{after} {most}"));
            points.collect::<Vec<_>>().join(" ")
        },
        set: |s, text| put(&mut s.data.save, save_points(text)),
        ..BASE
    },
    Parameter {
        name: "dir",
        fixed: PROTECTED,
        get: |s| {
            let dir = s.data.dir.as_deref();
            let absolute = |dir: &Path| path::absolute(dir).unwrap_or_else(|_| dir.into());
            dir.map_or_else(String::new, |dir| absolute(dir).to_string_lossy().into())
        },
        set: |s, text| put(&mut s.data.dir, Ok((!text.is_empty()).then(|| text.into()))),
        ..BASE
    },
    Parameter {
        name: "dbfilename",
        fixed: PROTECTED,
        get: |s| s.data.dbfilename.clone(),
        set: |s, text| {
            put(
                &mut s.data.dbfilename,
                file_name(text, "dbfilename", "filename"),
            )
        },
        ..BASE
    },
    Parameter {
        name: "rdbcompression",
        get: |s| show_yes_no(s.data.rdbcompression),
        set: |s, text| put(&mut s.data.rdbcompression, yes_no(text)),
        ..BASE
    },
    Parameter {
        name: "rdbchecksum",
        fixed: IMMUTABLE,
        get: |s| show_yes_no(s.data.rdbchecksum),
        set: |s, text| put(&mut s.data.rdbchecksum, yes_no(text)),
        ..BASE
    },
    Parameter {
        name: "stop-writes-on-bgsave-error",
        get: |s| show_yes_no(s.data.stop_writes_on_bgsave_error),
        set: |s, text| put(&mut s.data.stop_writes_on_bgsave_error, yes_no(text)),
        ..BASE
    },
    Parameter {
        name: "rdb-unknown-values",
        fixed: IMMUTABLE,
        get: |s| {
            if s.data.rdb_skip_unknown_values {
                "skip"
            } else {
                "refuse"
            }
            .into()
        },
        set: |s, text| {
            let word = choice(text, &["refuse", "skip"]);
            put(
                &mut s.data.rdb_skip_unknown_values,
                word.map(|word| word == "skip"),
            )
        },
        ..BASE
    },
    Parameter {
        name: "appendonly",
        get: |s| show_yes_no(s.data.appendonly),
        set: |s, text| put(&mut s.data.appendonly, yes_no(text)),
        ..BASE
    },
    Parameter {
        name: "appenddirname",
        fixed: IMMUTABLE,
        get: |s| s.data.appenddirname.clone(),
        set: |s, text| {
            put(
                &mut s.data.appenddirname,
                file_name(text, "appenddirname", "dirname"),
            )
        },
        ..BASE
    },
    Parameter {
        name: "appendfilename",
        fixed: IMMUTABLE,
        get: |s| s.data.appendfilename.clone(),
        set: |s, text| {
            put(
                &mut s.data.appendfilename,
                file_name(text, "appendfilename", "filename"),
            )
        },
        ..BASE
    },
    Parameter {
        name: "appendfsync",
        get: |s| {
            let fsync = FSYNC.iter().find(|(_, fsync)| *fsync == s.data.appendfsync);
            fsync.map_or("", |(word, _)| word).into()
        },
        set: |s, text| {
            let word = choice(text, &FSYNC.map(|(word, _)| word))?;
            let fsync = FSYNC.iter().find(|(known, _)| *known == word);
            s.data.appendfsync = fsync.map_or(s.data.appendfsync, |(_, fsync)| *fsync);
            Ok(())
        },
        ..BASE
    },
    Parameter {
        name: "aof-load-truncated",
        get: |s| show_yes_no(s.data.aof_load_truncated),
        set: |s, text| put(&mut s.data.aof_load_truncated, yes_no(text)),
        ..BASE
    },
    Parameter {
        // A base that is not an RDB file is read, and never written.
        name: "aof-use-rdb-preamble",
        get: |_| show_yes_no(true),
        set: |_, text| match yes_no(text)? {
            true => Ok(()),
            false => {
                Err("a rewritten log always begins with an RDB file, so this must be yes".into())
            }
        },
        ..BASE
    },
    Parameter {
        name: "auto-aof-rewrite-percentage",
        get: |s| s.data.auto_aof_rewrite_percentage.to_string(),
        set: |s, text| {
            put(
                &mut s.data.auto_aof_rewrite_percentage,
                number(text, 0, INT),
            )
        },
        ..BASE
    },
    Parameter {
        name: "auto-aof-rewrite-min-size",
        get: |s| s.data.auto_aof_rewrite_min_size.to_string(),
        set: |s, text| {
            put(
                &mut s.data.auto_aof_rewrite_min_size,
                memory(text, 0, i64::MAX),
            )
        },
        ..BASE
    },
    Parameter {
        name: "enable-debug-command",
        fixed: IMMUTABLE,
        get: |s| s.enable_debug_command.clone(),
        set: |s, text| {
            let word = choice(text, &["no", "yes", "local"]);
            put(&mut s.enable_debug_command, word.map(Into::into))
        },
        ..BASE
    },
    Parameter {
        name: "proto-max-bulk-len",
        get: |s| s.proto_max_bulk_len.to_string(),
        set: |s, text| put(&mut s.proto_max_bulk_len, memory(text, MEBIBYTE, i64::MAX)),
        ..BASE
    },
    Parameter {
        name: "client-query-buffer-limit",
        get: |s| s.client_query_buffer_limit.to_string(),
        set: |s, text| {
            let limit = memory(text, MEBIBYTE, i64::MAX);
            put(&mut s.client_query_buffer_limit, limit)
        },
        ..BASE
    },
    Parameter {
        name: "slowlog-log-slower-than",
        get: |s| s.slowlog_log_slower_than.to_string(),
        set: |s, text| put(&mut s.slowlog_log_slower_than, number(text, -1, i64::MAX)),
        ..BASE
    },
    Parameter {
        name: "slowlog-max-len",
        get: |s| s.slowlog_max_len.to_string(),
        set: |s, text| put(&mut s.slowlog_max_len, number(text, 0, i64::MAX)),
        ..BASE
    },
    Parameter {
        name: "hz",
        get: |s| s.hz.to_string(),
        set: |s, text| {
            // Redis takes any number and then keeps to these bounds.
            put(
                &mut s.hz,
                number(text, 0, INT).map(|hz: u32| hz.clamp(1, 500)),
            )
        },
        ..BASE
    },
    Parameter {
        name: "loglevel",
        get: |s| s.loglevel.clone(),
        set: |s, text| put(&mut s.loglevel, choice(text, LOG_LEVELS).map(Into::into)),
        ..BASE
    },
    Parameter {
        name: "logfile",
        fixed: IMMUTABLE,
        get: |s| s.logfile.clone(),
        set: |s, text| put(&mut s.logfile, Ok(text.into())),
        ..BASE
    },
    Parameter {
        name: "bf-error-rate",
        alias: Some("bf.bf-error-rate"),
        get: |s| s.bf_error_rate_text.clone(),
        set: |s, text| {
            let rate = number::error_rate(text.as_bytes());
            let rate = rate.map_err(|e| refused(e, "bf-error-rate", "(0.000000, 1.000000)"))?;
            s.bf.error_rate = rate.min(RATE_CAP);
            s.bf_error_rate_text = text.into();
            Ok(())
        },
        ..BASE
    },
    Parameter {
        name: "bf-initial-size",
        alias: Some("bf.bf-initial-size"),
        get: |s| s.bf.initial_size.to_string(),
        set: |s, text| {
            let size = number::capacity(text.as_bytes());
            let size = size.map_err(|e| refused(e, "bf-initial-size", "[1, 1073741824]"));
            put(&mut s.bf.initial_size, size)
        },
        ..BASE
    },
    Parameter {
        name: "bf-expansion-factor",
        alias: Some("bf.bf-expansion-factor"),
        get: |s| s.bf.expansion.to_string(),
        set: |s, text| {
            let expansion = number::expansion(text.as_bytes());
            let expansion = expansion.map_err(|e| refused(e, "bf-expansion-factor", "[0, 32768]"));
            put(&mut s.bf.expansion, expansion)
        },
        ..BASE
    },
    Parameter {
        name: "bf-default-layout",
        alias: Some("bf.bf-default-layout"),
        get: |s| layout::name(s.bf.layout).into(),
        set: |s, text| {
            let word = choice(text, LAYOUTS)?;
            let found = layout::parse(word.as_bytes());
            s.bf.layout = found.unwrap_or(s.bf.layout);
            Ok(())
        },
        ..BASE
    },
    Parameter {
        name: "bf-max-filter-bytes",
        get: |s| s.bf_max_filter_bytes.to_string(),
        set: |s, text| put(&mut s.bf_max_filter_bytes, memory(text, 0, i64::MAX)),
        ..BASE
    },
];

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
