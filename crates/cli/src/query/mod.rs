//! `everbloom query`: sends one command and prints its reply, or many in a session.

mod docs;
mod editor;
mod print;
mod session;

use std::ffi::OsString;
use std::process::ExitCode;

use everbloom_resp::Protocol;

use crate::client::{Client, ServerArgs, Target, is_url};
use crate::failure::Failure;
use print::print;

/// Send commands to a server and print the replies: one given here, or many typed in a session
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Speak RESP3: booleans, maps and doubles instead of integers, arrays and strings
    #[arg(long)]
    resp3: bool,
    /// The command and its arguments; none: a session. A redis://HOST in front names the server
    #[arg(value_name = "CMD", num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = "\
The reply is printed as redis-cli prints it on a terminal. Flags of this program stand before the
command. What follows the command's name is sent byte for byte.

Without a command, commands are read from the standard input, one per line. On a terminal, Tab
completes names, hints show the arguments to come, and `help COMMAND` explains a command. The lines
are kept for the next session in ~/.everbloom_history, or in the file that EVERBLOOM_HISTORY names.

Exit code: 0 for replies, 1 for an error reply, 2 when there was no reply. A session on a terminal
ends with 0.

Examples:
  everbloom query
  everbloom query BF.RESERVE seen 0.001 50000
  everbloom query redis://localhost:6379 BF.ADD seen user1
  everbloom query -h localhost -p 6379 --resp3 BF.INFO seen";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut words = args.words.as_slice();
    let mut url = None;
    if let [first, rest @ ..] = words
        && let Some(word) = first.to_str().filter(|word| is_url(word))
    {
        (url, words) = (Some(word), rest);
    }
    let url = args.server.url(url)?.unwrap_or_default();
    let mut target = Target::new(&url, &args.server)?;
    if args.resp3 {
        target.protocol = Protocol::Resp3;
    }
    let request: Vec<&[u8]> = words.iter().map(|word| word.as_encoded_bytes()).collect();
    let Some(name) = request.first() else {
        return session::run(&target);
    };
    if name.starts_with(b"-") {
        return Err(Failure::Other(format!(
            "there is no flag {}, and no command begins so; see everbloom query --help",
            String::from_utf8_lossy(name)
        )));
    }
    let reply = match Client::connect(&target)?.call(&request) {
        Err(error) if session::is_answer_to(&error, name) => return Ok(ExitCode::SUCCESS),
        reply => reply?,
    };
    print(&request, &reply)?;
    Ok(ExitCode::from(u8::from(reply.is_error())))
}
