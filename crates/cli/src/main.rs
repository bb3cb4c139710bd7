//! The `everbloom` command: a server, a client for one command, the experiment that shows what a
//! filter's error rate really is, and a load generator. One module a subcommand; `main` only
//! chooses.

#![forbid(unsafe_code)]

mod bench;
mod client;
mod display;
mod measure;
mod query;
mod serve;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::client::ClientError;

/// Bloom filters: a server that speaks Redis's BF.* commands, and tools around it
#[derive(Parser, Debug)]
#[command(name = "everbloom", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  everbloom serve                           listen on port 6379
  everbloom query BF.ADD seen 'some url'    send one command, print the reply
  everbloom measure                         measure false positives of two filters
  everbloom bench --pipeline 16             measure how fast a server answers";

#[derive(Subcommand, Debug)]
enum Command {
    Serve(serve::Args),
    Query(query::Args),
    Measure(measure::Args),
    Bench(bench::Args),
}

/// Why a subcommand ended early. Each kind has its exit code, so that scripts can tell a server
/// that said no from a server that was not there.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Server(String),
}

impl Failure {
    fn exit_code(&self) -> u8 {
        match self {
            Failure::Client(ClientError::Refused { .. }) | Failure::Server(_) => 1,
            // The reader of our output has gone (`| head`): nothing is wrong.
            Failure::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Failure::Client(_) | Failure::Io(_) | Failure::Usage(_) => 2,
        }
    }
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Bench(args) => bench::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            let code = failure.exit_code();
            if code != 0 {
                // With stderr closed there is nobody left to tell.
                let _ = writeln!(io::stderr(), "everbloom: {failure}");
            }
            ExitCode::from(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_explains_itself() {
        for subcommand in Cli::command().get_subcommands() {
            assert!(
                subcommand.get_about().is_some(),
                "{}",
                subcommand.get_name()
            );
            for argument in subcommand.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{} {}",
                    subcommand.get_name(),
                    argument
                );
            }
        }
    }

    #[test]
    fn exit_codes_tell_a_refusal_from_an_absent_server() {
        let refused = Failure::Client(ClientError::Refused {
            text: "ERR no".into(),
        });
        assert_eq!(refused.exit_code(), 1);
        assert_eq!(Failure::Client(ClientError::Closed).exit_code(), 2);
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::Io(pipe).exit_code(), 0);
    }
}
