//! `everbloom generate`: what packages ship beside the binary, made from what the binary knows.

mod manual;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Arg;
use clap_complete::Shell;
use everbloom_server::config::{explained, load};

use crate::failure::Failure;

/// Write a configuration file, man pages or a shell's completions
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Every setting of the server with an explanation, and its default or what is given here
    Conf {
        /// Settings, as `serve` takes them
        #[arg(
            value_name = "CONFIG|--NAME VALUE",
            num_args = 0..,
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        words: Vec<OsString>,
    },
    /// A man page for each subcommand
    Man {
        /// The folder that they are written into, which is made if it is missing
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// What a shell needs to complete words
    Completions {
        /// The shell
        #[arg(value_name = "SHELL", value_enum)]
        shell: Shell,
    },
}

pub(crate) fn run(args: &Args, command: clap::Command) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Conf { words } => {
            let loaded = load(words).map_err(|error| Failure::Other(error.to_string()))?;
            io::stdout().write_all(explained(&loaded.settings).as_bytes())?;
        }
        What::Man { folder } => {
            let unwritten = |error| Failure::of_file("write man pages to", folder, error);
            let mut command = with_settings(command)?.disable_help_subcommand(true);
            command.build();
            fs::create_dir_all(folder)
                .and_then(|()| manual::write_pages(&command, folder))
                .map_err(unwritten)?;
        }
        What::Completions { shell } => {
            let (mut command, mut script) = (with_settings(command)?, Vec::new());
            clap_complete::generate(*shell, &mut command, "everbloom", &mut script);
            if *shell == Shell::Bash {
                script.extend_from_slice(FILES_IN_BASH.as_bytes());
            }
            io::stdout().write_all(&script)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The command line with a flag for each setting of `serve`, which reads them as words.
fn with_settings(command: clap::Command) -> Result<clap::Command, Failure> {
    let loaded = load(&[]).map_err(|error| Failure::Other(error.to_string()))?;
    let (mut flags, mut about) = (Vec::new(), Vec::new());
    for line in explained(&loaded.settings).lines() {
        if let Some(text) = line.strip_prefix("# ") {
            about.push(text.to_owned());
        } else if let Some((name, value)) = line.split_once(' ') {
            // clap keeps the names of flags for the rest of the process.
            let name: &str = name.to_owned().leak();
            let help = format!("{} [default: {value}]", about.join(" "));
            let flag = Arg::new(name).long(name).value_name("VALUE").help(help);
            flags.push(flag.help_heading("Settings"));
            about.clear();
        }
    }
    Ok(command.mut_subcommand("serve", |serve| serve.args(flags)))
}

/// What clap's script for bash lacks: names of files where a flag may stand too.
const FILES_IN_BASH: &str = r#"
_everbloom_more() {
    _everbloom "$@"
    local cur="${COMP_WORDS[COMP_CWORD]}" word words=()
    if [[ ${cur} != -* ]] ; then
        for word in "${COMPREPLY[@]}" ; do
            [[ ${word} == -* ]] || words+=("${word}")
        done
        COMPREPLY=("${words[@]}")
    fi
}
complete -F _everbloom_more -o bashdefault -o default everbloom
"#;
