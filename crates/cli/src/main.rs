//! The `everbloom` command: a server, a client for one command, a tool that drops what was seen
//! before, an experiment that measures a filter's error rate, and a load generator. Each subcommand
//! has a module; `main` chooses one.
//!
//! ```text
//! floors
//! serve query dedup measure bench
//! serve::signals measure::subject measure::table dedup::judge dedup::pipeline dedup::state
//! serve::log bench::report dedup::report
//! bench::setup dedup::memory dedup::signals
//! bench::args bench::load dedup::args dedup::reader dedup::server
//! bench::target dedup::chunk dedup::input
//! bench::requests bench::histogram dedup::keys dedup::unpack dedup::output dedup::loss
//! bench::keys dedup::json
//! bench::items bench::scan
//! failure display
//! client filter_file
//! ```

#![forbid(unsafe_code)]

mod bench;
mod client;
mod dedup;
mod display;
mod failure;
mod filter_file;
mod measure;
mod query;
mod serve;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
  everbloom dedup urls.txt                  print each line once
  everbloom measure                         measure false positives of two filters
  everbloom bench --pipeline 16             measure how fast a server answers";

#[derive(Subcommand, Debug)]
enum Command {
    Serve(serve::Args),
    Query(query::Args),
    Dedup(dedup::Args),
    Measure(measure::Args),
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Dedup(args) => dedup::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Bench(args) => bench::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            let code = failure.exit_code();
            if code != 0 {
                // Ignore the error: if stderr is closed, nobody can read the message.
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
}
