//! `everbloom remove`: takes records out of a cuckoo filter in a file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use everbloom::CuckooFilter;

use crate::build::{Tally, read};
use crate::failure::{Failure, say};
use crate::filter::OwnFilter;
use crate::filter_file::FilterFile;
use crate::number::{found_rate, grouped};
use crate::records::args::{RecordArgs, sources};
use crate::records::chunk::Digest;
use crate::records::shared::Shared;
use crate::records::signals::Signals;

/// Take records out of a filter file that `build --deletable` made
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The filter, which is replaced
    #[arg(value_name = "FILE.bloom")]
    filter: PathBuf,
    /// The files to read, one after the other; `-` or none is standard input
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    records: RecordArgs,
    /// No progress, no summary
    #[arg(short, long)]
    quiet: bool,
}

const HELP: &str = "\
Remove only records that were put in. A record that never was, and that the filter finds all the
same, takes a record with it that was put in and is then missed; that happens as often as the error
rate says. A record is removed as often as the input has it: if it was put in twice, it is there
until it was removed twice. A record that the filter does not find is counted, and changes nothing.

The filter must be a cuckoo filter; a Bloom filter can forget no record. What the file remembers of
the records holds here as for `build --append`.

FILE.bloom is replaced in one step, when all was read. After an error or a signal it is as it was.

Exit code: 0 when the file is written, 1 when some of the records were not in the filter, 2 for an
error, also when no record had the field; 130, 143 or 129 after SIGINT, SIGTERM or SIGHUP.

Example:
  everbloom remove absent.bloom created.txt";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let sources = sources(&args.inputs);
    args.records.key_of()?;
    let shared = Arc::new(Shared::default());
    let signals = Signals::catch(Arc::clone(&shared))?;
    let (mut file, mut filter) = open(&args.filter)?;
    file.check_apart(&sources)?;
    let (path, filled) = (args.filter.display(), file.selection());
    let selection = args.records.agree(path, filled, filter.is_empty())?;
    let mut missing = 0_u64;
    let keys = (selection.case, &Digest::Keys);
    let tally = read(
        (&args.records, args.quiet),
        &sources,
        keys,
        &shared,
        |chunk| {
            let missed = chunk.each_key().filter(|key| !filter.remove(*key));
            missing += missed.count() as u64;
            Ok(())
        },
    )?;
    if let Some(code) = signals.exit_code() {
        return Ok(ExitCode::from(code));
    }
    file.remember(selection)?;
    let filter = OwnFilter::Cuckoo(filter);
    file.save(|to| filter.write_to(to))?;
    if !args.quiet {
        summarize(&tally, missing, &filter, &args.records);
    }
    Ok(ExitCode::from(u8::from(missing > 0)))
}

fn open(path: &Path) -> Result<(FilterFile, CuckooFilter), Failure> {
    // Opening it to write would make the file.
    if !path.exists() {
        return Err(Failure::Other(format!(
            "there is no file {}; give the name of a filter file",
            path.display()
        )));
    }
    let mut file = FilterFile::open(path)?;
    match file.read_any()? {
        OwnFilter::Cuckoo(filter) => Ok((file, filter)),
        OwnFilter::Fixed(_) | OwnFilter::Growing(_) => Err(Failure::Other(format!(
            "{} is a Bloom filter, which can forget no record; build one with --deletable",
            path.display()
        ))),
    }
}

fn summarize(tally: &Tally, missing: u64, filter: &OwnFilter, records: &RecordArgs) {
    let stats = filter.stats();
    let mut text = format!(
        "{} records in, {} removed, {} in the filter now\n",
        grouped(tally.records),
        grouped(tally.keys.saturating_sub(missing)),
        grouped(stats.items),
    );
    let keyless = tally.records.saturating_sub(tally.keys);
    if keyless > 0 {
        text += &format!("{} had no such field and were left out\n", grouped(keyless));
    }
    if let Some(warning) = records.cut_quotes(tally.cut_quotes) {
        text += &format!("{warning}\n");
    }
    if missing > 0 {
        text += &format!("{} were not in the filter\n", grouped(missing));
    }
    let now = found_rate(stats.estimated_error_rate);
    text += &format!("of other records it finds {now}\n");
    say(&text);
}
