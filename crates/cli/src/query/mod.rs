//! `everbloom query`: sends one command and prints its reply, or many in a session.

mod docs;
mod editor;
mod print;
mod session;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use everbloom_resp::{Protocol, Reply};

use crate::client::{Client, LoginArgs, Place, Target, parse_place};
use crate::failure::Failure;
use print::print;

/// Send commands to a server and print the replies: one here, or many typed in a session
#[derive(clap::Args, Debug)]
// `-h` is the host, as in redis-cli.
#[command(after_help = HELP, disable_help_flag = true)]
pub(crate) struct Args {
    /// The server's host name or address
    #[arg(short = 'h', long, default_value = "127.0.0.1")]
    host: String,
    /// The server's port
    #[arg(short, long, default_value_t = 6379)]
    port: u16,
    /// The path of a Unix socket, in place of host and port
    #[arg(short, long, value_name = "PATH", conflicts_with_all = ["host", "port", "tls"])]
    socket: Option<PathBuf>,
    /// Speak TLS
    #[arg(long)]
    tls: bool,
    /// The same in one: `redis://HOST[:PORT]`; `rediss://` is TLS, `unix:///PATH` a Unix socket
    #[arg(long, value_name = "URL", conflicts_with_all = ["host", "port", "socket", "tls"])]
    url: Option<String>,
    /// Speak RESP3: booleans, maps and doubles instead of integers, arrays and strings
    #[arg(long)]
    resp3: bool,
    #[command(flatten)]
    login: LoginArgs,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// The command and its arguments, sent byte for byte; none: a session
    #[arg(
        value_name = "CMD",
        num_args = 0..,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

const HELP: &str = "\
The reply is printed as redis-cli prints it on a terminal. Flags of this program stand before
the command; whatever follows the command's name belongs to the command.

Without a command the commands are read from the standard input, one a line. On a terminal Tab
completes their names, the arguments to come are shown behind what is typed, `help COMMAND` explains
one, and the lines are kept for the next session in ~/.everbloom_history, or where EVERBLOOM_HISTORY
says.

Exit code: 0 for replies, 1 for an error reply, 2 when there was no reply. A session on a terminal
ends with 0.

Examples:
  everbloom query
  everbloom query BF.RESERVE seen 0.001 50000
  everbloom query -p 7000 --resp3 BF.INFO seen";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let protocol = if args.resp3 {
        Protocol::Resp3
    } else {
        Protocol::Resp2
    };
    let place = match (&args.url, &args.socket) {
        (Some(url), _) => parse_place(url).map_err(Failure::Usage)?,
        (None, Some(path)) => Place::Unix(path.clone()),
        (None, None) => Place::Tcp {
            host: args.host.clone(),
            port: args.port,
            tls: args.tls,
        },
    };
    let mut target = Target::new(place, args.login.credentials(), &args.login.tls)?;
    target.protocol = protocol;
    let request: Vec<&[u8]> = args
        .command
        .iter()
        .map(|arg| arg.as_encoded_bytes())
        .collect();
    match request.first() {
        None => return session::run(&target),
        Some(flag) if flag.starts_with(b"-") => {
            return Err(Failure::Usage(format!(
                "there is no flag {}, and no command begins so; see everbloom query --help",
                String::from_utf8_lossy(flag)
            )));
        }
        Some(_) => {}
    }
    let reply = match Client::connect(&target)?.call(&request) {
        Err(error) if error.is_answer_to(&request) => return Ok(ExitCode::SUCCESS),
        reply => reply?,
    };
    print(&request, &reply)?;
    Ok(if matches!(reply, Reply::Error(_)) {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}
