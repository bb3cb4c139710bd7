//! `everbloom serve`: the server, configured in redis-server's manner.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::Failure;

/// Run a server that speaks the Redis protocol and the BF.* commands
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "everbloom serve [CONFIG] [--NAME VALUE...]...",
    after_help = SETTINGS
)]
pub(crate) struct Args {
    /// A configuration file, then settings that override it
    #[arg(
        value_name = "CONFIG|--NAME VALUE",
        num_args = 0..,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

const SETTINGS: &str = "\
Settings have the names and the meaning they have in redis.conf, in the file as `port 7000`, here
as `--port 7000`. The main ones, with their defaults:

  port 6379                    the TCP port; 0 lets the system choose
  bind 127.0.0.1 -::1          the addresses to listen on; a dash lets an address be missing
  requirepass \"\"               the password that clients must AUTH with
  protected-mode yes           without a password, refuse clients from other machines
  maxclients 10000             connections at a time
  timeout 0                    seconds until an idle client is disconnected; 0 is never
  databases 16                 databases for SELECT
  io-threads 0                 threads that serve connections; 0 is one a core
  maxmemory 0                  refuse writes above so much memory, such as 4gb; 0 is no limit
  proto-max-bulk-len 512mb     the longest argument of a command
  loglevel notice              debug, verbose, notice or warning

  bf-error-rate 0.01           the error rate of filters that BF.ADD creates
  bf-initial-size 100          their capacity
  bf-expansion-factor 2        how many times larger each further layer is; 0 is not to grow

Examples:
  everbloom serve
  everbloom serve everbloom.conf --port 7000
  everbloom serve --bind 0.0.0.0 --requirepass 'correct horse' --maxmemory 4gb";

/// The words of the command line, sorted: a file, then settings with their values.
#[derive(Debug, Default, PartialEq, Eq)]
struct Words {
    file: Option<PathBuf>,
    settings: Vec<(String, Vec<String>)>,
}

/// Sorts the words: each `--name` begins a setting, the words up to the next are its values, and
/// a word before the first setting is the file.
fn sort(words: &[OsString]) -> Result<Words, String> {
    let mut sorted = Words::default();
    for word in words {
        let text = word.to_str();
        match (
            text.and_then(|text| text.strip_prefix("--")),
            sorted.settings.last_mut(),
        ) {
            (Some(""), _) => return Err("a setting has no name: '--'".to_owned()),
            (Some(name), _) => sorted.settings.push((name.to_owned(), Vec::new())),
            (None, Some((name, values))) => match text {
                Some(value) => values.push(value.to_owned()),
                None => return Err(format!("the value of --{name} is not UTF-8")),
            },
            (None, None) if sorted.file.is_none() => sorted.file = Some(PathBuf::from(word)),
            (None, None) => {
                return Err(format!("a second configuration file: '{}'", word.display()));
            }
        }
    }
    Ok(sorted)
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let words = sort(&args.words).map_err(Failure::Usage)?;
    Err(Failure::Server(format!(
        "no server is built in; it would have taken {words:?}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(words: &[&str]) -> Result<Words, String> {
        sort(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn no_words_are_all_defaults() {
        assert_eq!(sorted(&[]), Ok(Words::default()));
    }

    #[test]
    fn a_file_then_settings_with_any_number_of_values() {
        let words = sorted(&[
            "my.conf", "--port", "7000", "--bind", "a", "-::1", "--save", "", "--x",
        ]);
        let setting = |name: &str, values: &[&str]| {
            (
                name.to_owned(),
                values.iter().map(|&value| value.to_owned()).collect(),
            )
        };
        let expected = Words {
            file: Some("my.conf".into()),
            settings: vec![
                setting("port", &["7000"]),
                setting("bind", &["a", "-::1"]),
                setting("save", &[""]),
                setting("x", &[]),
            ],
        };
        assert_eq!(words, Ok(expected));
    }

    #[test]
    fn a_second_file_and_a_nameless_setting_are_refused() {
        assert!(sorted(&["a.conf", "b.conf"]).is_err());
        assert!(sorted(&["--", "7000"]).is_err());
    }
}
