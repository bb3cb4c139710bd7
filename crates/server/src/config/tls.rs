//! TLS settings for new connections.

use std::path::PathBuf;

use super::text::split_words;

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
    /// Whether TLS 1.2 and TLS 1.3 are accepted.
    pub protocols: Protocols,
}

impl Default for TlsSettings {
    fn default() -> Self {
        TlsSettings {
            port: 0,
            cert_file: None,
            key_file: None,
            ca_cert_file: None,
            auth_clients: AuthClients::Yes,
            protocols: Protocols::default(),
        }
    }
}

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

pub(super) const AUTH_CLIENTS: [(&str, AuthClients); 3] = [
    ("no", AuthClients::No),
    ("yes", AuthClients::Yes),
    ("optional", AuthClients::Optional),
];

/// Accepted versions of TLS. Older ones are broken and cannot be enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocols {
    /// TLS 1.2.
    pub tls12: bool,
    /// TLS 1.3.
    pub tls13: bool,
}

impl Default for Protocols {
    fn default() -> Self {
        Protocols {
            tls12: true,
            tls13: true,
        }
    }
}

impl Protocols {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let words = split_words(text).ok_or("unbalanced quotes")?;
        let mut protocols = Protocols {
            tls12: false,
            tls13: false,
        };
        for word in &words {
            match word.to_ascii_lowercase().as_str() {
                "tlsv1.2" => protocols.tls12 = true,
                "tlsv1.3" => protocols.tls13 = true,
                _ => return Err("argument must be words of 'TLSv1.2' and 'TLSv1.3'".into()),
            }
        }
        // As in Redis, an empty value means the default.
        Ok(if words.is_empty() {
            Protocols::default()
        } else {
            protocols
        })
    }

    pub(super) fn show(&self) -> String {
        match (self.tls12, self.tls13) {
            (true, false) => "TLSv1.2",
            (false, true) => "TLSv1.3",
            _ => "TLSv1.2 TLSv1.3",
        }
        .into()
    }
}
