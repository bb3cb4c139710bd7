//! The `everbloom` command: a server and a client, a tool that drops what was seen before, a
//! calculator of sizes, an experiment that measures a filter's error rate, and tools
//! that move filters between servers. Each subcommand has a module; `main` chooses one.

#![forbid(unsafe_code)]

mod build;
mod check;
mod client;
mod compare;
mod convert;
mod copy;
mod dedup;
mod description;
mod display;
mod failure;
mod filter;
mod filter_file;
mod generate;
mod info;
mod measure;
mod merge;
mod number;
mod other;
mod pages;
mod plan;
mod plot;
mod progress;
mod query;
mod records;
mod remove;
mod serve;
mod servers;
mod signals;
mod sort;
mod stable;

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use everbloom::host::memory::Memory;

/// Large filters are freed without a pause for other threads.
#[global_allocator]
static MEMORY: Memory = Memory;

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
  everbloom query                           type commands in a session
  everbloom plan 900M 0.1%                  how large must a filter be?
  everbloom dedup urls.txt                  print each line once
  everbloom build banned.bloom names.txt    make a filter file of lines
  everbloom check banned.bloom new.txt      print the lines that are in it
  everbloom measure                         measure false positives of two filters
  everbloom copy redis://a redis://b        copy all filters to another server
  everbloom compare redis://a redis://b     tell which filters differ

Exit codes, as those of grep: 0 for \"done\" or \"yes\", 1 for \"no\" or \"not all\", 2 for an error such
as a wrong flag, a file that cannot be read or a server that is not there; 129, 130 and 143 after
SIGHUP, SIGINT and SIGTERM. What 1 means is in the help of each subcommand.";

#[derive(Subcommand, Debug)]
enum Command {
    Serve(serve::Args),
    Query(query::Args),
    Plan(plan::Args),
    Dedup(dedup::Args),
    Build(build::Args),
    Remove(remove::Args),
    Check(check::Args),
    Info(info::Args),
    Merge(merge::Args),
    Shrink(merge::ShrinkArgs),
    Convert(convert::Args),
    Measure(measure::Args),
    Generate(generate::Args),
    Copy(copy::Args),
    Compare(compare::Args),
}

/// The subcommands as `--help` lists them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Server", &["serve", "query"]),
    ("Sizes", &["plan", "measure"]),
    ("Lines", &["dedup", "check"]),
    (
        "Filter files",
        &["build", "remove", "info", "merge", "shrink", "convert"],
    ),
    ("Between servers", &["copy", "compare"]),
    ("Packages", &["generate"]),
];

/// The command line, with a help that lists the subcommands in groups.
fn command_line() -> clap::Command {
    let mut command = Cli::command();
    for subcommand in command.get_subcommands_mut() {
        // `-h` is the host, as in redis-cli.
        if subcommand.get_arguments().any(|it| it.get_id() == "host") {
            let help = Arg::new("help").long("help").action(ArgAction::Help);
            let inner = std::mem::take(subcommand).disable_help_flag(true);
            *subcommand = inner.arg(help.help("Print help (also -h without a host)"));
        }
    }
    let mut list = String::new();
    for (title, names) in GROUPS {
        list += &format!("{title}:\n");
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            list += &format!("  {name:<9} {}\n", about.cloned().unwrap_or_default());
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

/// Prints the help that `-h` without a host asks for, and ends.
fn help_if_asked(matches: &ArgMatches) {
    if let Some((name, given)) = matches.subcommand()
        && let Ok(Some(host)) = given.try_get_one::<String>("host")
        && host.is_empty()
    {
        command_line().get_matches_from(["everbloom", name, "--help"]);
    }
}

fn main() -> ExitCode {
    let matches = command_line().get_matches();
    help_if_asked(&matches);
    let parsed = Cli::from_arg_matches(&matches);
    let outcome = match parsed.unwrap_or_else(|error| error.exit()).command {
        Command::Serve(args) => serve::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Dedup(args) => dedup::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Remove(args) => remove::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Shrink(args) => merge::run_shrink(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Generate(args) => generate::run(&args, command_line()),
        Command::Copy(args) => copy::run(&args),
        Command::Compare(args) => compare::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            let code = failure.exit_code();
            if code != 0 {
                failure::say(&failure.to_string());
            }
            ExitCode::from(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_command_line_is_consistent() {
        command_line().debug_assert();
    }

    #[test]
    fn every_subcommand_is_in_one_group() {
        let command = command_line();
        let mut names: Vec<_> = command.get_subcommands().map(|it| it.get_name()).collect();
        let mut grouped: Vec<_> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(names, grouped);
    }

    #[test]
    fn every_subcommand_explains_itself() {
        for subcommand in command_line().get_subcommands() {
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
