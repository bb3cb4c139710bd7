//! Settings of listening: addresses, ports, TLS, the Unix socket, and metrics.

use super::row::{IMMUTABLE, MAX_INT, Parameter, access, file_path, number, word};
use super::text::split_words;
use super::tls::{AUTH_CLIENTS, Protocols};

pub(super) const BIND: Parameter = Parameter::new(
    "bind",
    "Addresses to listen on. An address after a dash may be unavailable.",
    access!(bind, |list: &Vec<String>| list.join(" "), text => addresses(text)),
)
.fixed(IMMUTABLE)
.list();

pub(super) const PORT: Parameter = Parameter::new(
    "port",
    "The TCP port. 0 lets the system choose one, which the log names. With tls-port or\n\
     unixsocket, 0 closes the port.",
    number!(port, 0, 65535),
)
.fixed(IMMUTABLE);

pub(super) const UNIX_SOCKET: Parameter = Parameter::new(
    "unixsocket",
    "Path of a Unix socket to listen on. Empty: none.",
    file_path!(unixsocket),
)
.fixed(IMMUTABLE);

pub(super) const UNIX_SOCKET_PERMISSIONS: Parameter = Parameter::new(
    "unixsocketperm",
    "Permissions of the Unix socket, in octal. 0 leaves them to the umask.",
    access!(unixsocketperm, |bits| format!("{bits:o}"), text => permissions(text)),
)
.fixed(IMMUTABLE);

pub(super) const BACKLOG: Parameter = Parameter::new(
    "tcp-backlog",
    "Maximum number of connections that wait to be accepted.",
    number!(tcp_backlog, 0, MAX_INT),
)
.fixed(IMMUTABLE);

pub(super) const KEEPALIVE: Parameter = Parameter::new(
    "tcp-keepalive",
    "Probe a client that was silent for this many seconds. 0 means never.",
    number!(tcp_keepalive, 0, MAX_INT),
);

pub(super) const TLS_PORT: Parameter = Parameter::new(
    "tls-port",
    "The TCP port for TLS, on the same addresses. 0 means none; with `port 0`, only TLS.",
    number!(tls.port, 0, 65535),
)
.fixed(IMMUTABLE);

pub(super) const TLS_CERT_FILE: Parameter = Parameter::new(
    "tls-cert-file",
    "The server's certificate, followed by its issuers', as PEM. CONFIG SET and SIGHUP read\n\
     the TLS files again.",
    file_path!(tls.cert_file),
);

pub(super) const TLS_KEY_FILE: Parameter = Parameter::new(
    "tls-key-file",
    "The private key of the certificate, as PEM.",
    file_path!(tls.key_file),
);

pub(super) const TLS_CA_CERT_FILE: Parameter = Parameter::new(
    "tls-ca-cert-file",
    "Certificates of the authorities that sign clients' certificates, as PEM.",
    file_path!(tls.ca_cert_file),
);

pub(super) const TLS_AUTH_CLIENTS: Parameter = Parameter::new(
    "tls-auth-clients",
    "Require a client certificate: yes, no or optional.",
    word!(tls.auth_clients, &AUTH_CLIENTS),
);

pub(super) const TLS_PROTOCOLS: Parameter = Parameter::new(
    "tls-protocols",
    "Accepted versions of TLS.",
    access!(tls.protocols, Protocols::show, text => Protocols::read(text)),
)
.list();

pub(super) const METRICS_PORT: Parameter = Parameter::new(
    "metrics-port",
    "HTTP port of the page, /metrics (OpenMetrics), /health and /ready. 0 means none.",
    number!(metrics_port, 0, 65535),
)
.fixed(IMMUTABLE);

pub(super) const METRICS_BIND: Parameter = Parameter::new(
    "metrics-bind",
    "Addresses of the metrics port, like bind's. It needs no password and shows the names\n\
     of keys.",
    access!(metrics_bind, |list: &Vec<String>| list.join(" "), text => addresses(text)),
)
.fixed(IMMUTABLE)
.list();

fn permissions(text: &str) -> Result<u32, String> {
    let bits = u32::from_str_radix(text, 8).ok();
    bits.filter(|bits| *bits <= 0o777)
        .ok_or_else(|| "argument must be an octal number between 0 and 777".into())
}

fn addresses(text: &str) -> Result<Vec<String>, String> {
    let words = split_words(text).ok_or("unbalanced quotes")?;
    if words.is_empty() {
        return Err("wrong number of arguments".into());
    }
    Ok(words)
}
