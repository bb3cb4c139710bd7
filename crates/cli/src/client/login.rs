//! Who a client is, and whom it trusts: the flags of every subcommand that asks a server.

use std::ffi::OsString;
use std::path::PathBuf;

/// The arguments of AUTH. Without a user, the password is the default user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: Option<OsString>,
    pub(crate) password: OsString,
}

/// The flags of a login.
#[derive(clap::Args, Debug)]
pub(crate) struct LoginArgs {
    /// The user to log in as; the default user when only --pass is given
    #[arg(long, value_name = "NAME", requires = "pass")]
    user: Option<OsString>,
    /// The password; REDISCLI_AUTH in the environment keeps it out of the process list
    #[arg(long, value_name = "PASSWORD")]
    pass: Option<OsString>,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

/// The flags of TLS.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct TlsArgs {
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

impl LoginArgs {
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        let password = self
            .pass
            .clone()
            .or_else(|| std::env::var_os("REDISCLI_AUTH"))?;
        Some(Credentials {
            user: self.user.clone(),
            password,
        })
    }
}

impl Credentials {
    /// `USER:PASSWORD` or `:PASSWORD`.
    pub(super) fn parse(login: &str) -> Result<Self, &'static str> {
        let (user, password) = login.split_once(':').ok_or("the password is missing")?;
        let user = unescape(user)?;
        Ok(Self {
            user: (!user.is_empty()).then(|| user.into()),
            password: unescape(password)?.into(),
        })
    }
}

/// A text whose characters may be written as `%40`.
fn unescape(text: &str) -> Result<String, &'static str> {
    const WRONG: &str = "a % in user or password without two hexadecimal digits (write it as %25)";
    let mut bytes = text.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        plain.push(if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let code = digit().zip(digit()).map(|(high, low)| high * 16 + low);
            code.and_then(|code| u8::try_from(code).ok()).ok_or(WRONG)?
        } else {
            byte
        });
    }
    String::from_utf8(plain).map_err(|_| "user or password is not UTF-8")
}
