//! A login.

use std::ffi::OsString;

/// The arguments of AUTH. Without a user, the password is the default user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(super) user: Option<OsString>,
    pub(super) password: OsString,
    /// Whether a server that has no password may be used without it.
    pub(super) is_optional: bool,
}

impl Credentials {
    /// `USER:PASSWORD` or `:PASSWORD`.
    pub(super) fn parse(login: &str) -> Result<Self, &'static str> {
        let (user, password) = login.split_once(':').ok_or("the password is missing")?;
        let user = unescape(user)?;
        Ok(Self {
            user: (!user.is_empty()).then(|| user.into()),
            password: unescape(password)?.into(),
            is_optional: false,
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
