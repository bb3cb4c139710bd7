//! The settings as typed values.

use std::path::PathBuf;

use everbloom_commands::context::{CuckooDefaults, Defaults};
use tokio_rustls::rustls::{ALL_VERSIONS, SupportedProtocolVersion};

use super::client_memory::ClientMemory;
use super::output_limit::OutputLimits;

/// Every setting. The default is a server in memory only, which reads and writes no file;
/// [`Settings::serving`] has the defaults of `everbloom serve`.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Addresses to listen on; one that begins with `-` may be unavailable.
    pub bind: Vec<String>,
    /// TCP port; 0 lets the system choose.
    pub port: u16,
    /// The path of a Unix socket; none = TCP only.
    pub unixsocket: Option<PathBuf>,
    /// Its permission bits; 0 leaves them to the umask.
    pub unixsocketperm: u32,
    /// TLS.
    pub tls: TlsSettings,
    /// Length of the kernel's queue of connections not yet accepted.
    pub tcp_backlog: u32,
    /// Seconds between probes of a silent connection; 0 = none.
    pub tcp_keepalive: u32,
    /// HTTP port of the metrics; 0 = none.
    pub metrics_port: u16,
    /// Addresses of that port, as in `bind`.
    pub metrics_bind: Vec<String>,
    /// Seconds after which a silent client is disconnected; 0 = never.
    pub timeout: u64,
    /// Worker threads; 0 = one per core.
    pub io_threads: usize,
    /// Refuse connections from other machines while there is no password.
    pub protected_mode: bool,
    /// The password; empty = none.
    pub requirepass: String,
    /// Maximum number of open connections.
    pub maxclients: usize,
    /// The most that `maxclients` may be. The system's limit on open files sets it at the start.
    pub max_maxclients: usize,
    /// Bytes that keys and buffers may take; 0 = no limit.
    pub maxmemory: u64,
    /// Maximum length of an argument.
    pub proto_max_bulk_len: usize,
    /// Maximum bytes of an incomplete request.
    pub client_query_buffer_limit: usize,
    /// Maximum bytes of unread replies.
    pub client_output_buffer_limit: OutputLimits,
    /// Maximum bytes that all clients hold together.
    pub maxmemory_clients: ClientMemory,
    /// Commands slower than this many microseconds are logged; negative = none.
    pub slowlog_log_slower_than: i64,
    /// Entries that the slow log keeps.
    pub slowlog_max_len: usize,
    /// How many times a second the background tasks run.
    pub hz: u32,
    /// `debug`, `verbose`, `notice`, `warning` or `nothing`.
    pub loglevel: String,
    /// Where the log goes; empty = standard output.
    pub logfile: String,
    /// `text`, or `json`.
    pub log_format: String,
    /// Defaults of new Bloom filters.
    pub bf: Defaults,
    /// Defaults of new cuckoo filters.
    pub cf: CuckooDefaults,
    /// `bf-error-rate` in its original form, for CONFIG GET.
    pub bf_error_rate_text: String,
    /// Maximum bytes of one filter; 0 means the machine's memory.
    pub bf_max_filter_bytes: u64,
    /// Where the data is stored, and when it is written.
    pub data: everbloom_store::Settings,
    /// Who may use DEBUG: `no`, `yes` or `local`.
    pub enable_debug_command: String,
    /// Who may change protected settings: `no`, `yes` or `local`.
    pub enable_protected_configs: String,
    /// The file that the settings were read from, which CONFIG REWRITE writes.
    pub config_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            bind: vec!["127.0.0.1".into(), "-::1".into()],
            port: 6379,
            unixsocket: None,
            unixsocketperm: 0,
            tls: TlsSettings::default(),
            tcp_backlog: 511,
            tcp_keepalive: 300,
            metrics_port: 0,
            metrics_bind: vec!["127.0.0.1".into()],
            timeout: 0,
            io_threads: 0,
            protected_mode: true,
            requirepass: String::new(),
            maxclients: 10_000,
            max_maxclients: usize::MAX,
            maxmemory: 0,
            proto_max_bulk_len: 512 << 20,
            client_query_buffer_limit: 1 << 30,
            client_output_buffer_limit: OutputLimits::default(),
            maxmemory_clients: ClientMemory::Percent(50),
            slowlog_log_slower_than: 10_000,
            slowlog_max_len: 128,
            hz: 10,
            loglevel: "notice".into(),
            logfile: String::new(),
            log_format: "text".into(),
            bf: Defaults::default(),
            cf: CuckooDefaults::default(),
            bf_error_rate_text: "0.01".into(),
            bf_max_filter_bytes: 0,
            data: everbloom_store::Settings::default(),
            enable_debug_command: "no".into(),
            enable_protected_configs: "no".into(),
            config_file: None,
        }
    }
}

impl Settings {
    /// The defaults of `everbloom serve`: a log in `everbloom-data`, synced once a second, and
    /// snapshots as in Redis.
    pub fn serving() -> Self {
        Settings {
            data: everbloom_store::Settings {
                dir: Some("everbloom-data".into()),
                save: vec![(3600, 1), (300, 100), (60, 10_000)],
                appendonly: true,
                ..everbloom_store::Settings::default()
            },
            ..Settings::default()
        }
    }
}

/// TLS settings for new connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// The port of TLS; 0 = none.
    pub port: u16,
    /// The file of the server's certificate and its issuers'.
    pub cert_file: Option<PathBuf>,
    /// The file of its private key.
    pub key_file: Option<PathBuf>,
    /// The file of the authorities that sign clients' certificates.
    pub ca_cert_file: Option<PathBuf>,
    /// Whether clients need a certificate.
    pub auth_clients: AuthClients,
    /// Accepted versions of TLS.
    pub protocols: TlsVersions,
}

impl Default for TlsSettings {
    fn default() -> Self {
        TlsSettings {
            port: 0,
            cert_file: None,
            key_file: None,
            ca_cert_file: None,
            auth_clients: AuthClients::Yes,
            protocols: ALL_VERSIONS,
        }
    }
}

/// Versions of TLS.
pub type TlsVersions = &'static [&'static SupportedProtocolVersion];

/// Whether clients need a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthClients {
    /// No; none is requested.
    No,
    /// Yes.
    Yes,
    /// No, but one that is sent must be valid.
    Optional,
}
