//! Which server, who asks it and whom it trusts: the flags of every subcommand that talks to one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use super::credentials::Credentials;
use super::place::{Place, Url};
use crate::failure::Failure;

/// A server, as redis-cli takes it, a login and the files of TLS.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerArgs {
    /// Its host name or address [default: 127.0.0.1]
    #[arg(short = 'h', long, num_args = 0..=1, default_missing_value = "")]
    host: Option<String>,
    /// Its port [default: 6379]
    #[arg(short, long)]
    port: Option<u16>,
    /// The path of its Unix socket, in place of host and port
    #[arg(short, long, value_name = "PATH", conflicts_with_all = ["host", "port", "tls"])]
    socket: Option<PathBuf>,
    /// Speak TLS
    #[arg(long)]
    tls: bool,
    /// In one: redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], with rediss for TLS, or unix:///PATH
    #[arg(long, conflicts_with_all = ["host", "port", "socket", "tls"])]
    url: Option<String>,
    /// The user to log in as; the default user when only --pass is given
    #[arg(long, value_name = "NAME", requires = "pass")]
    user: Option<OsString>,
    /// The password; in the variable REDISCLI_AUTH other users do not see it
    #[arg(long, value_name = "PASSWORD")]
    pass: Option<OsString>,
    /// With TLS: the certificates to trust, as PEM [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub(super) cacert: Option<PathBuf>,
    /// With TLS: the certificate to show, as PEM
    #[arg(long, value_name = "FILE", requires = "cert_key")]
    pub(super) cert: Option<PathBuf>,
    /// With TLS: its private key, as PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(super) cert_key: Option<PathBuf>,
}

impl ServerArgs {
    /// The server that the flags or a word name, if they name one.
    pub(crate) fn url(&self, word: Option<&str>) -> Result<Option<Url>, Failure> {
        let by_flags = self.host.is_some() || self.port.is_some() || self.tls;
        let url = match (&self.url, &self.socket) {
            (Some(url), _) => parsed(url)?,
            (None, Some(path)) => Place::Unix(path.clone()).into(),
            (None, None) if by_flags => {
                let local = || "127.0.0.1".to_owned();
                let (host, port) = (self.host.clone(), self.port.unwrap_or(6379));
                let (host, tls) = (host.unwrap_or_else(local), self.tls);
                Place::Tcp { host, port, tls }.into()
            }
            (None, None) => return word.map(parsed).transpose(),
        };
        match word {
            None => Ok(Some(url)),
            Some(_) => Err(Failure::Other(format!(
                "two servers are named, and the one of the flags is {url}; leave one off"
            ))),
        }
    }

    /// Two places: those that two words name, or the server of the flags and that of one word.
    pub(crate) fn pair<T>(&self, words: &[String]) -> Result<[T; 2], Failure>
    where
        T: From<Url> + FromStr<Err = String>,
    {
        match (self.url(None)?, words) {
            (None, [first, second]) => Ok([parsed(first)?, parsed(second)?]),
            (Some(url), [second]) => Ok([url.into(), parsed(second)?]),
            (None, _) => Err(Failure::other(
                "name two, such as redis://HOST redis://HOST:PORT; -h, -p or --url may name the \
                 first",
            )),
            (Some(url), _) => Err(Failure::Other(format!(
                "the flags name {url}, the first of two; name one more"
            ))),
        }
    }

    /// The login for a server whose URL has none.
    pub(super) fn credentials(&self) -> Option<Credentials> {
        let from_environment = || std::env::var_os("REDISCLI_AUTH");
        Some(Credentials {
            user: self.user.clone(),
            is_optional: self.pass.is_none(),
            password: self.pass.clone().or_else(from_environment)?,
        })
    }
}

fn parsed<T: FromStr<Err = String>>(word: &str) -> Result<T, Failure> {
    word.parse().map_err(Failure::Other)
}
