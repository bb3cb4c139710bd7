//! Where a server is, as people write it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::credentials::Credentials;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp {
        host: String,
        port: u16,
        tls: bool,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, .. } => write!(f, "{host} port {port}"),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A server's address as `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, with `rediss` for TLS,
/// or `unix://[USER:PASSWORD@]/PATH[?db=DATABASE]`. IPv6 addresses are in brackets. Characters with
/// a meaning in a URL are written as `%40` in user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) place: Place,
    pub(crate) database: u32,
    pub(crate) credentials: Option<Credentials>,
}

impl Url {
    fn parse(url: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = url.split_once("://").ok_or("the scheme is missing")?;
        let tls = match scheme {
            "redis" => false,
            "rediss" => true,
            "unix" => return Self::parse_unix(rest),
            _ => return Err("another scheme"),
        };
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, rest),
        };
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match place
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or(port))),
            None => place
                .split_once(':')
                .map_or((place, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() {
            return Err("the host is missing");
        }
        let port = port.map_or(Ok(6379), str::parse);
        let database = if path.is_empty() { Ok(0) } else { path.parse() };
        Ok(Self {
            place: Place::Tcp {
                host: host.to_owned(),
                port: port.map_err(|_| "the port is not a port")?,
                tls,
            },
            database: database.map_err(|_| "the path is not the number of a database")?,
            credentials: login.map(Credentials::parse).transpose()?,
        })
    }

    fn parse_unix(rest: &str) -> Result<Self, &'static str> {
        let (login, path) = match rest.split_once('/') {
            Some(("", path)) => (None, path),
            Some((login, path)) => (Some(login.strip_suffix('@').ok_or(NO_PATH)?), path),
            None => return Err(NO_PATH),
        };
        let (path, database) = match path.split_once("?db=") {
            Some((path, database)) => (path, database.parse()),
            None => (path, Ok(0)),
        };
        Ok(Self {
            place: Place::Unix(format!("/{path}").into()),
            database: database.map_err(|_| "db is not the number of a database")?,
            credentials: login.map(Credentials::parse).transpose()?,
        })
    }
}

/// The server of this machine.
impl Default for Url {
    fn default() -> Self {
        let (host, port) = ("127.0.0.1".to_owned(), 6379);
        let tls = false;
        Place::Tcp { host, port, tls }.into()
    }
}

impl From<Place> for Url {
    fn from(place: Place) -> Self {
        Self {
            place,
            database: 0,
            credentials: None,
        }
    }
}

/// Whether a word is the URL of a server, and no file.
pub(crate) fn is_url(word: &str) -> bool {
    word.contains("://")
}

const NO_PATH: &str = "the path of a Unix socket begins with a slash";

impl FromStr for Url {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        const FORM: &str = "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]";
        Self::parse(url).map_err(|why| format!("'{}' is not {FORM}: {why}", without_login(url)))
    }
}

/// The address without the password.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before_database = match &self.place {
            Place::Tcp { host, port, tls } => {
                let scheme = if *tls { "rediss" } else { "redis" };
                if host.contains(':') {
                    write!(f, "{scheme}://[{host}]:{port}")?;
                } else {
                    write!(f, "{scheme}://{host}:{port}")?;
                }
                "/"
            }
            Place::Unix(path) => {
                write!(f, "unix://{}", path.display())?;
                "?db="
            }
        };
        match self.database {
            0 => Ok(()),
            database => write!(f, "{before_database}{database}"),
        }
    }
}

/// A URL that may be shown: a password may be in front of its last `@`.
fn without_login(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, rest)) => format!("redis://***@{rest}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let tcp = |host: &str, port, tls| {
            let host = host.to_owned();
            Place::Tcp { host, port, tls }
        };
        for (url, place) in [
            ("redis://localhost", tcp("localhost", 6379, false)),
            ("redis://10.0.0.1:7000/", tcp("10.0.0.1", 7000, false)),
            ("redis://[::1]", tcp("::1", 6379, false)),
            ("rediss://[::1]:7000", tcp("::1", 7000, true)),
            ("unix:///run/s", Place::Unix("/run/s".into())),
        ] {
            assert_eq!(url.parse(), Ok(Url::from(place)));
        }
        for wrong in [
            "localhost:6379",
            "redis://",
            "redis://:7000",
            "redis://a:b",
            "redis://a:70000",
            "redis://a/x",
            "unix://run/s",
            "unix:///run/s?db=x",
            "http://a",
        ] {
            assert!(wrong.parse::<Url>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn urls_with_everything() {
        let parsed: Url = "redis://me:p%40ss:w%25rd@[::1]:7000/3".parse().unwrap();
        assert_eq!(parsed.database, 3);
        let login = parsed.credentials.clone().unwrap();
        assert_eq!(login.user, Some("me".into()));
        assert_eq!(login.password, "p@ss:w%rd");
        assert_eq!(parsed.to_string(), "redis://[::1]:7000/3");
        let parsed: Url = "rediss://:secret@b".parse().unwrap();
        assert_eq!(parsed.to_string(), "rediss://b:6379");
        assert_eq!(parsed.credentials.unwrap().user, None);
        let parsed: Url = "unix://:secret@/run/s?db=2".parse().unwrap();
        assert_eq!(parsed.to_string(), "unix:///run/s?db=2");
        assert_eq!(parsed.credentials.unwrap().password, "secret");
    }

    #[test]
    fn no_error_shows_a_password() {
        for wrong in [
            "redis://me:secret@",
            "redis://me:secret@a:b",
            "redis://me:secret@a/x",
            "redis://secret@a",
            "redis://:secret%@a",
            "redis://:secret%4@a",
            "redis://:secret%ff@a",
            "http://me:secret@a",
            "me:secret@a",
            "unix://secret@/run/s",
        ] {
            let error = wrong.parse::<Url>().unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
