//! `everbloom remove`: takes records out of a cuckoo filter in a file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use everbloom::CuckooFilter;

use crate::failure::{Failure, say};
use crate::filter::OwnFilter;
use crate::filter_file::FilterFile;
use crate::number::{found_rate, grouped};
use crate::records::args::{RecordArgs, sources};
use crate::records::chunk::Digest;
use crate::records::shared::Shared;
use crate::records::signals::Signals;
use crate::records::tally::{Tally, read};

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
Remove only records that were put in. For a record that never was, and that the filter finds all
the same, it removes another one, which was put in and is then missed; that happens at most as often
as the error rate says. A record is removed as often as the input has it: if it was put in twice, it is there
until it was removed twice. A record that the filter does not find is counted, and changes nothing.

The filter must be a cuckoo filter; a Bloom filter can forget no record. What the file remembers of
the records holds here as for `build --append`.

FILE.bloom is replaced in one step, when all was read. After an error or a signal it is as it was. The
first record of --header is not removed.

Exit code: 0 when all records were removed, 1 when some were not in the filter and the others were
removed, 2 for an error, also when no record had the field; 130, 143 or 129 after SIGINT, SIGTERM or SIGHUP.

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
    let filter = OwnFilter::Cuckoo(filter);
    // The file remembers what was compared when records were put in, and keeps that.
    if missing < tally.keys {
        file.save(|to| filter.write_to(to))?;
    }
    if !args.quiet {
        summarize(&tally, missing, &filter, &args.records);
    }
    Ok(ExitCode::from(u8::from(missing > 0)))
}

fn open(path: &Path) -> Result<(FilterFile, CuckooFilter), Failure> {
    let mut file = FilterFile::open_existing(path)?;
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
    text += &tally.left_out(records);
    if missing > 0 {
        text += &format!("{} were not in the filter\n", grouped(missing));
    }
    let now = found_rate(stats.estimated_error_rate);
    text += &format!("of other records it finds {now}\n");
    say(&text);
}
