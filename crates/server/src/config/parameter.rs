//! Each setting as data: its name, how it is read and how it is shown.

use std::path::{self, PathBuf};

use everbloom::sizing::RATE_CAP;
use everbloom::{CuckooFilter, Layout};
use everbloom_commands::number;
use everbloom_store::Fsync;
use tokio_rustls::rustls::ALL_VERSIONS;
use tokio_rustls::rustls::version::{TLS12, TLS13};

use super::client_memory::ClientMemory;
pub use super::row::Parameter;
use super::row::{access, settings};
use super::settings::{AuthClients, Settings, TlsVersions};
use super::text::{
    memory, number, one_of, path, ranged, read_word, refused, show_path, show_word, show_yes_no,
    split_words, string, yes_no,
};

impl Parameter {
    /// The setting with this name, in any case.
    pub fn find(name: &str) -> Option<&'static Parameter> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        PARAMETERS
            .iter()
            .find(|p| is(p.name) || p.alias.is_some_and(is))
    }
}

const MEBIBYTE: i64 = 1 << 20;
/// The maximum of a C int.
const MAX_INT: i64 = 2_147_483_647;

/// All settings.
pub const PARAMETERS: &[Parameter] = settings! {
    /// Addresses to listen on. An address after a dash may be unavailable.
    "bind": shown(bind, show_addresses, addresses()), fixed: true, list: true;
    /// The TCP port. 0 lets the system choose one, which the log names. With tls-port or
    /// unixsocket, 0 closes the port.
    "port": number(port, 0, 65535), fixed: true;
    /// Path of a Unix socket to listen on. Empty: none.
    "unixsocket": path(unixsocket), fixed: true;
    /// Permissions of the Unix socket, in octal. 0 leaves them to the umask.
    "unixsocketperm": shown(unixsocketperm, |bits| format!("{bits:o}"), permissions()), fixed: true;
    /// The TCP port for TLS, on the same addresses. 0 means none; with `port 0`, only TLS.
    "tls-port": number(tls.port, 0, 65535), fixed: true;
    /// The server's certificate, followed by its issuers', as PEM. CONFIG SET and SIGHUP read
    /// the TLS files again.
    "tls-cert-file": path(tls.cert_file);
    /// The private key of the certificate, as PEM.
    "tls-key-file": path(tls.key_file);
    /// Certificates of the authorities that sign clients' certificates, as PEM.
    "tls-ca-cert-file": path(tls.ca_cert_file);
    /// Require a client certificate: yes, no or optional.
    "tls-auth-clients": word(tls.auth_clients, &AUTH_CLIENTS);
    /// Accepted versions of TLS.
    "tls-protocols": word(tls.protocols, &PROTOCOLS), list: true;
    /// Maximum number of connections that wait to be accepted.
    "tcp-backlog": number(tcp_backlog, 0, MAX_INT), fixed: true;
    /// Probe a client that was silent for this many seconds. 0 means never.
    "tcp-keepalive": number(tcp_keepalive, 0, MAX_INT);
    /// HTTP port of the page, /metrics (OpenMetrics), /health and /ready. 0 means none.
    "metrics-port": number(metrics_port, 0, 65535), fixed: true;
    /// Addresses of the metrics port, like bind's. It needs no password and shows the names
    /// of keys.
    "metrics-bind": shown(metrics_bind, show_addresses, addresses()), fixed: true, list: true;
    /// Disconnect a client that was idle for this many seconds. 0 means never.
    "timeout": number(timeout, 0, MAX_INT);
    /// Threads that serve connections. 0 means one per core.
    "io-threads": number(io_threads, 0, 1024), fixed: true;
    // Each shard holds a part of every database, so more would waste memory.
    /// Number of databases.
    "databases": number(data.databases, 1, 4096), fixed: true;
    /// Refuse clients from other machines while there is no password.
    "protected-mode": yes_no(protected_mode);
    /// The password for AUTH. Empty: no password.
    "requirepass": string(requirepass);
    /// Maximum number of connected clients.
    "maxclients": special(|s| s.maxclients.to_string(), set_maxclients);
    /// Refuse writes above this much memory, for example 4gb. 0 means no limit.
    "maxmemory": memory(maxmemory, 0, i64::MAX);
    /// Above this much memory for all clients, disconnect those that hold most: bytes, or
    /// percent of maxmemory (never less than 64 MiB). 0 means no limit.
    "maxmemory-clients": special(
        |s| s.maxmemory_clients.show(),
        |s, text| ClientMemory::read(text).map(|limit| s.maxmemory_clients = limit)
    );
    /// Only noeviction: filters are never evicted.
    "maxmemory-policy": special(
        |_| "noeviction".into(),
        |_, text| one_of(text, &["noeviction"]).map(drop)
    );
    /// Pairs: save a snapshot after SECONDS if there were CHANGES. Empty: never.
    "save": shown(data.save, show_save_points, save_points()), list: true;
    // The directory is locked and holds the current log.
    /// The directory of the snapshot and the log.
    "dir": shown(data.dir, show_absolute, path()), protected: true, fixed: true;
    /// The file name of the snapshot.
    "dbfilename": file_name(data.dbfilename, "dbfilename", "filename"), protected: true;
    /// Compress long values in snapshots if that makes them much shorter.
    "rdbcompression": yes_no(data.rdbcompression);
    /// Write a checksum into snapshots, and verify it when they are loaded.
    "rdbchecksum": yes_no(data.rdbchecksum), fixed: true;
    /// Refuse writes when the last snapshot failed.
    "stop-writes-on-bgsave-error": yes_no(data.stop_writes_on_bgsave_error);
    /// Values of unknown types: refuse to start, or skip them.
    "rdb-unknown-values": word(data.rdb_skip_unknown_values, &UNKNOWN_VALUES), fixed: true;
    /// Log every change, and load the log at the start.
    "appendonly": yes_no(data.appendonly);
    /// The directory of the log, below dir.
    "appenddirname": file_name(data.appenddirname, "appenddirname", "dirname"), fixed: true;
    /// The beginning of the log's file names.
    "appendfilename": file_name(data.appendfilename, "appendfilename", "filename"), fixed: true;
    /// When the log is forced to the disk: always (before each reply), everysec or no.
    "appendfsync": word(data.appendfsync, &FSYNC);
    /// Load a log whose end is incomplete, as after a power failure, with a warning.
    "aof-load-truncated": yes_no(data.aof_load_truncated);
    // A base that is not an RDB file can be read, but is never written.
    /// Only yes: a rewritten log begins with a snapshot.
    "aof-use-rdb-preamble": special(|_| show_yes_no(&true), |_, text| only_yes(text));
    /// Rewrite the log when it has grown by this many percent. 0 means never.
    "auto-aof-rewrite-percentage": number(data.auto_aof_rewrite_percentage, 0, MAX_INT);
    /// Do not rewrite a shorter log.
    "auto-aof-rewrite-min-size": memory(data.auto_aof_rewrite_min_size, 0, i64::MAX);
    /// Allow DEBUG: no, yes, or local (clients of this machine).
    "enable-debug-command": one_of(enable_debug_command, WHO), fixed: true;
    /// Allow CONFIG SET dbfilename: no, yes, or local (clients of this machine).
    "enable-protected-configs": one_of(enable_protected_configs, WHO), fixed: true;
    /// Maximum length of an argument and of a string.
    "proto-max-bulk-len": memory(proto_max_bulk_len, MEBIBYTE, i64::MAX);
    /// Disconnect a client whose incomplete request is longer.
    "client-query-buffer-limit": memory(client_query_buffer_limit, MEBIBYTE, i64::MAX);
    /// CLASS HARD SOFT SECONDS: disconnect a client with more than HARD bytes of unread
    /// replies, or with more than SOFT bytes for SECONDS. 0 means no limit.
    "client-output-buffer-limit": special(
        |s| s.client_output_buffer_limit.show(),
        |s, text| s.client_output_buffer_limit.set(text)
    ), list: true;
    /// Record commands that took this many microseconds in SLOWLOG. -1 means none.
    "slowlog-log-slower-than": number(slowlog_log_slower_than, -1, i64::MAX);
    /// Number of commands that SLOWLOG keeps.
    "slowlog-max-len": number(slowlog_max_len, 0, i64::MAX);
    /// How many times a second the server looks for expired keys, due snapshots and idle clients.
    "hz": frequency(hz);
    /// Log level: debug, verbose, notice, warning or nothing.
    "loglevel": one_of(loglevel, &["debug", "verbose", "notice", "warning", "nothing"]);
    /// Write log lines to this file; SIGHUP reopens it. Empty: standard output.
    "logfile": string(logfile), fixed: true;
    /// text, or json: one object per line, with timestamp, level and message.
    "log-format": one_of(log_format, &["text", "json"]), fixed: true;
    /// Error rate of filters that BF.ADD creates.
    "bf-error-rate": special(|s| s.bf_error_rate_text.clone(), set_error_rate),
        alias: Some("bf.bf-error-rate");
    /// Capacity of filters that BF.ADD creates.
    "bf-initial-size": ranged(bf.initial_size, "bf-initial-size", s => number::CAPACITY),
        alias: Some("bf.bf-initial-size");
    /// How many times larger each further layer of these filters is. 0 disables growth.
    "bf-expansion-factor": ranged(bf.expansion, "bf-expansion-factor", s => number::EXPANSION),
        alias: Some("bf.bf-expansion-factor");
    /// Layout of these filters: classic (RedisBloom's), or blocked: faster, and keeps its
    /// error rate when it grows.
    "bf-default-layout": word(bf.layout, &LAYOUTS), alias: Some("bf.bf-default-layout");
    /// Maximum bytes of one filter's bits. 0 means no limit.
    "bf-max-filter-bytes": memory(bf_max_filter_bytes, 0, i64::MAX);
    // A table has at least two buckets.
    /// Slots per bucket of filters that CF.ADD creates. More slots fill better and err more.
    "cf-bucket-size": ranged(cf.bucket_size, "cf-bucket-size",
        s => 1..=u8::try_from(s.cf.initial_size / 2).unwrap_or(u8::MAX)),
        alias: Some("bf.cf-bucket-size");
    /// Minimum number of slots of these filters.
    "cf-initial-size": ranged(cf.initial_size, "cf-initial-size",
        s => 2 * u64::from(s.cf.bucket_size)..=*number::CAPACITY.end()),
        alias: Some("bf.cf-initial-size");
    /// Maximum number of items moved to make room for one.
    "cf-max-iterations": ranged(cf.max_iterations, "cf-max-iterations", s => 1..=u16::MAX),
        alias: Some("bf.cf-max-iterations");
    /// How many times larger each further table of these filters is. 0 disables growth.
    "cf-expansion-factor": ranged(cf.expansion, "cf-expansion-factor",
        s => 0..=CuckooFilter::MAX_EXPANSION),
        alias: Some("bf.cf-expansion-factor");
    /// Maximum number of tables of a cuckoo filter.
    "cf-max-expansions": ranged(cf.max_expansions, "cf-max-expansions", s => 1..=1 << 16),
        alias: Some("bf.cf-max-expansions");
};

const AUTH_CLIENTS: [(&str, AuthClients); 3] = [
    ("no", AuthClients::No),
    ("yes", AuthClients::Yes),
    ("optional", AuthClients::Optional),
];

/// Older versions are broken and cannot be enabled. As in Redis, an empty value is the default.
const PROTOCOLS: [(&str, TlsVersions); 5] = [
    ("TLSv1.2 TLSv1.3", ALL_VERSIONS),
    ("TLSv1.3 TLSv1.2", ALL_VERSIONS),
    ("TLSv1.2", &[&TLS12]),
    ("TLSv1.3", &[&TLS13]),
    ("", ALL_VERSIONS),
];

/// Who may use what a setting guards; `local` are clients of this machine.
const WHO: &[&str] = &["no", "yes", "local"];

const UNKNOWN_VALUES: [(&str, bool); 2] = [("refuse", false), ("skip", true)];

const LAYOUTS: [(&str, Layout); 2] = [("classic", Layout::Classic), ("blocked", Layout::Blocked)];

/// The words for when the log is forced to the disk, in the order in which Redis lists them.
const FSYNC: [(&str, Fsync); 3] = [
    ("everysec", Fsync::EverySecond),
    ("always", Fsync::Always),
    ("no", Fsync::No),
];

fn show_addresses(list: &[String]) -> String {
    list.join(" ")
}

fn addresses(text: &str) -> Result<Vec<String>, String> {
    let words = split_words(text).ok_or("unbalanced quotes")?;
    if words.is_empty() {
        return Err("wrong number of arguments".into());
    }
    Ok(words)
}

fn permissions(text: &str) -> Result<u32, String> {
    let bits = u32::from_str_radix(text, 8).ok();
    bits.filter(|bits| *bits <= 0o777)
        .ok_or_else(|| "argument must be an octal number between 0 and 777".into())
}

fn show_absolute(dir: &Option<PathBuf>) -> String {
    let absolute = |dir: &PathBuf| path::absolute(dir).unwrap_or_else(|_| dir.clone());
    show_path(&dir.as_ref().map(absolute))
}

fn only_yes(text: &str) -> Result<(), String> {
    yes_no(text)?
        .then_some(())
        .ok_or_else(|| "a rewritten log always begins with an RDB file, so this must be yes".into())
}

/// The words are Redis's.
fn set_maxclients(settings: &mut Settings, text: &str) -> Result<(), String> {
    let wanted = number(text, 1, u32::MAX.into())?;
    let most = settings.max_maxclients;
    if wanted > most {
        return Err(format!(
            "The operating system is not able to handle the specified number of clients, try \
             with {most}"
        ));
    }
    settings.maxclients = wanted;
    Ok(())
}

/// Redis accepts any number and then clamps it to these bounds.
fn frequency(text: &str) -> Result<u32, String> {
    number(text, 0, MAX_INT).map(|hz: u32| hz.clamp(1, 500))
}

fn set_error_rate(settings: &mut Settings, text: &str) -> Result<(), String> {
    let rate = number::error_rate(text.as_bytes());
    let rate = rate.map_err(|e| refused(e, "bf-error-rate", "(0.000000, 1.000000)"))?;
    settings.bf.error_rate = rate.min(RATE_CAP);
    settings.bf_error_rate_text = text.into();
    Ok(())
}

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
