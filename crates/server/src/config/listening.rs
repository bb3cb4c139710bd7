//! The settings of the ways in: addresses, ports, TLS, the Unix socket, and metrics.

use super::row::{IMMUTABLE, INT, Parameter, file_path, number, put};
use super::text::split_words;
use super::tls::{AuthClients, Protocols};

pub(super) const BIND: Parameter = Parameter::new(
    "bind",
    "The addresses to listen on. A dash before one lets it be missing.",
    (
        |s| s.bind.join(" "),
        |s, text| put(&mut s.bind, addresses(text)),
    ),
)
.fixed(IMMUTABLE)
.list();

pub(super) const PORT: Parameter = Parameter::new(
    "port",
    "The TCP port. 0 lets the system choose one, which the log names; beside tls-port or\n\
     unixsocket it is none.",
    number!(port, 0, 65535),
)
.fixed(IMMUTABLE);

pub(super) const UNIX_SOCKET: Parameter = Parameter::new(
    "unixsocket",
    "The path of a Unix socket to listen on. Empty: none.",
    file_path!(unixsocket),
)
.fixed(IMMUTABLE);

pub(super) const UNIX_SOCKET_PERMISSIONS: Parameter = Parameter::new(
    "unixsocketperm",
    "Who may connect to it, as chmod's octal digits. 0 is what the umask leaves.",
    (
        |s| format!("{:o}", s.unixsocketperm),
        |s, text| put(&mut s.unixsocketperm, permissions(text)),
    ),
)
.fixed(IMMUTABLE);

pub(super) const BACKLOG: Parameter = Parameter::new(
    "tcp-backlog",
    "How many connections may wait to be accepted.",
    number!(tcp_backlog, 0, INT),
)
.fixed(IMMUTABLE);

pub(super) const KEEPALIVE: Parameter = Parameter::new(
    "tcp-keepalive",
    "Ask a client that was silent for so many seconds whether it is there. 0 is never.",
    number!(tcp_keepalive, 0, INT),
);

pub(super) const TLS_PORT: Parameter = Parameter::new(
    "tls-port",
    "The TCP port of TLS, on the same addresses. 0 is none; `port 0` beside it is TLS alone.",
    number!(tls.port, 0, 65535),
)
.fixed(IMMUTABLE);

pub(super) const TLS_CERT_FILE: Parameter = Parameter::new(
    "tls-cert-file",
    "The server's certificate and those that vouch for it, as PEM. CONFIG SET and SIGHUP read\n\
     the files of TLS anew.",
    file_path!(tls.cert_file),
);

pub(super) const TLS_KEY_FILE: Parameter = Parameter::new(
    "tls-key-file",
    "Its private key, as PEM.",
    file_path!(tls.key_file),
);

pub(super) const TLS_CA_CERT_FILE: Parameter = Parameter::new(
    "tls-ca-cert-file",
    "The certificates that vouch for clients, as PEM.",
    file_path!(tls.ca_cert_file),
);

pub(super) const TLS_AUTH_CLIENTS: Parameter = Parameter::new(
    "tls-auth-clients",
    "Whether clients must show a certificate: yes, no, or optional.",
    (
        |s| s.tls.auth_clients.show().into(),
        |s, text| put(&mut s.tls.auth_clients, AuthClients::read(text)),
    ),
);

pub(super) const TLS_PROTOCOLS: Parameter = Parameter::new(
    "tls-protocols",
    "The versions of TLS that are spoken.",
    (
        |s| s.tls.protocols.show().into(),
        |s, text| put(&mut s.tls.protocols, Protocols::read(text)),
    ),
)
.list();

pub(super) const METRICS_PORT: Parameter = Parameter::new(
    "metrics-port",
    "The HTTP port of a page, /metrics (in OpenMetrics format), /health and /ready. 0 is none.",
    number!(metrics_port, 0, 65535),
)
.fixed(IMMUTABLE);

pub(super) const METRICS_BIND: Parameter = Parameter::new(
    "metrics-bind",
    "The addresses of that port, as bind's. Whoever reaches it sees the names of keys, and\n\
     needs no password.",
    (
        |s| s.metrics_bind.join(" "),
        |s, text| put(&mut s.metrics_bind, addresses(text)),
    ),
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
