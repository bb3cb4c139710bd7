//! `everbloom merge` puts filter files together, and `everbloom shrink` makes one smaller.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use everbloom::{ShrinkError, UnionError};
use everbloom_plot::label::percent;

use crate::failure::{Failure, say};
use crate::filter::{OwnFilter, Writable};
use crate::filter_file::FilterFile;
use crate::number::{self, found_rate, grouped};
use crate::other::Program;
use crate::records::selection::Selection;
use crate::records::signals::Signals;
use crate::sort::Sort;

/// Put filter files together: the result finds what any of them finds
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The file to write; a filter that is there is replaced. It may be one of the others, too
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The filters to put together
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The share of other records that the result may find [default: what the filters were made
    /// for]
    #[arg(short, long, value_name = "RATE", value_parser = number::rate)]
    error_rate: Option<f64>,
    /// Merge although another part of the records was put into one of them: the result remembers
    /// that of the first which remembers one
    #[arg(long)]
    any_selection: bool,
    /// No summary
    #[arg(short, long)]
    quiet: bool,
}

const HELP: &str = "\
The filters must be made for the same error rate, with the same layout, and in the blocked layout
with the same key. Either all of them grow or none. `build --like FILE` makes such a filter. So does
`build --seed N` with the same --error-rate in each run. A copy of a file has the same key, too.
Filters of DCSO's bloom must have the same capacity and error rate. Of each the same part of the
records must have been put in, as far as they remember it; --any-selection merges others too, for
values of one kind. Either all were made with --ignore-case or none.

Filters of the same size become one of that size, if it has room for the records of all. Otherwise
they are kept side by side in one file: it finds what any of them finds, and their error rates add
up. When that is more than they were made for, nothing is written, unless --error-rate allows it.

Deletable filters have no layers: they must be made with a --capacity for the records of all, or
nothing is written. A record that is in two of them is in the result twice.

Exit code: 0 when OUT is written, 2 for an error, 130, 143 or 129 after SIGINT, SIGTERM or SIGHUP;
then OUT is as it was.

Examples:
  everbloom build --capacity 10M monday.bloom monday.txt
  everbloom build --like monday.bloom tuesday.bloom tuesday.txt
  everbloom merge week.bloom monday.bloom tuesday.bloom
  everbloom merge --error-rate 0.02% all.bloom seen-1.bloom seen-2.bloom";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    // First, because the new file exists during the run and is removed at its end.
    let signals = Signals::catch(Arc::default())?;
    let mut out = FilterFile::open(&args.out)?;
    let [first, others @ ..] = args.files.as_slice() else {
        return Err(Failure::other("give a filter file"));
    };
    let (filter, selection) = union(first, others, args.any_selection, &signals)?;
    if let Some(code) = signals.exit_code() {
        return Ok(ExitCode::from(code));
    }
    match filter.sort() {
        Sort::Cuckoo => out.check_is_own(Sort::Cuckoo)?,
        _ => out.check_is_of(filter.program())?,
    }
    let now = check_rate(&filter, args.error_rate)?;
    out.remember(selection)?;
    out.save(|to| filter.write_to(to))?;
    if !args.quiet {
        summarize(&filter, now);
    }
    Ok(ExitCode::SUCCESS)
}

/// What the result of a merge of two files finds of other records.
pub(crate) fn rate_of(one: &Path, other: &Path) -> Result<f64, Failure> {
    check_rate(&union(one, &[other], false, &Signals::default())?.0, None)
}

/// The filters of all files in one, or of some when a signal comes.
fn union(
    first: &Path,
    others: &[impl AsRef<Path>],
    any_selection: bool,
    signals: &Signals,
) -> Result<(Writable, Selection), Failure> {
    // Without a lock: the output, which may be one of them, has its own.
    let (mut merged, mut selection) = FilterFile::look_at_writable(first)?;
    if !others.is_empty() {
        let renewed = merged.renewed();
        merged = renewed.map_err(|error| unlike(first, first, error))?;
    }
    // The file whose selection it is.
    let mut remembering = first;
    for path in others.iter().map(AsRef::as_ref) {
        if signals.exit_code().is_some() {
            break;
        }
        let (filter, other) = FilterFile::look_at_writable(path)?;
        check_family(&merged, &filter, (first, path))?;
        let united = selection.union(&other, any_selection).ok_or_else(|| {
            let otherwise = match selection.case == other.case {
                true => ", or give --any-selection if the values are of one kind all the same",
                false => "",
            };
            Failure::Unlike(format!(
                "{} remembers {selection}, and {} {other}; build one of them again with the \
                 options of the other{otherwise}",
                remembering.display(),
                path.display()
            ))
        })?;
        if selection.part.is_none() {
            remembering = path;
        }
        selection = united;
        let united = merged.union(filter);
        merged = united.map_err(|error| unlike(first, path, error))?;
    }
    Ok((merged, selection))
}

/// Fails for filters of two programs, and for a cuckoo filter and a Bloom filter.
fn check_family(
    merged: &Writable,
    filter: &Writable,
    (first, path): (&Path, &Path),
) -> Result<(), Failure> {
    let (first, path) = (first.display(), path.display());
    if merged.program() != filter.program() {
        let [one, other] =
            [merged, filter].map(|filter| filter.program().map_or("everbloom", Program::name));
        return Err(Failure::Unlike(format!(
            "{first} is a filter of {one} and {path} one of {other}; only filters of one program \
             can be merged"
        )));
    }
    let families = [merged, filter].map(|filter| match filter.sort() {
        Sort::Cuckoo => "a cuckoo filter",
        Sort::Fixed | Sort::Growing | Sort::Windowed => "a Bloom filter",
    });
    match families {
        [one, other] if one == other => Ok(()),
        [one, other] => Err(Failure::Unlike(format!(
            "{first} is {one} and {path} {other}; build one of them again with --like the other"
        ))),
    }
}

fn unlike(first: &Path, path: &Path, error: UnionError) -> Failure {
    let what = match error {
        UnionError::Layout => "have different layouts",
        UnionError::Key => "have different keys",
        UnionError::Hash => "have different hashes",
        UnionError::ErrorRate => "were made for different error rates",
        UnionError::Window => "have different windows",
        UnionError::WindowOfItems => "cannot be merged: whose items were the last is unknown",
        UnionError::Growth => "cannot be merged, because one of them grows and the other does not",
        UnionError::Bits | UnionError::Hashes | UnionError::Capacity => "have different sizes",
        UnionError::Room => {
            return Failure::Unlike(format!(
                "there is no room for the records of {} beside those of the files before it; build \
                 them again with a --capacity for the records of all",
                path.display()
            ));
        }
        _ => return Failure::Other(error.to_string()),
    };
    let (first, path) = (first.display(), path.display());
    Failure::Unlike(format!(
        "{first} and {path} {what}; build one of them again with --like the other"
    ))
}

/// The error rate of the filter now. Fails when it is worse than what was asked for, or allowed
/// now.
fn check_rate(filter: &Writable, allowed: Option<f64>) -> Result<f64, Failure> {
    let (stats, _) = filter.stats();
    let now = stats.estimated_error_rate;
    let (limit, what) = match allowed {
        Some(limit) => (limit, "--error-rate allows"),
        None if !filter.is_overfull() => return Ok(now),
        None => (
            stats.error_rate.unwrap_or_default(),
            "the filters were made for",
        ),
    };
    if now <= limit {
        return Ok(now);
    }
    // A rate that is rounded is not smaller then.
    let enough = percent((now * 1.06).min(0.99)).replace(' ', "");
    Err(Failure::Unlike(format!(
        "the merged filter would find {} of other records, and {what} {}; give --error-rate \
         {enough} to have it all the same, or build the filters again with a lower --error-rate \
         or a larger --capacity",
        percent(now),
        percent(limit),
    )))
}

fn summarize(filter: &Writable, now: f64) {
    let (stats, _) = filter.stats();
    let mut text = format!(
        "about {} items in a filter for {}; of other records it finds {}\n",
        grouped(stats.items),
        grouped(stats.capacity.unwrap_or_default()),
        found_rate(now)
    );
    let full = filter.full_error_rate();
    if stats.error_rate.is_some_and(|asked| full > asked) && full > now {
        text += &format!(
            "the filters are side by side; when all are full it finds {}\n",
            found_rate(full)
        );
    }
    say(&text);
}

/// Make a filter file smaller, with the same items
#[derive(clap::Args, Debug)]
#[command(after_help = SHRINK_HELP)]
pub(crate) struct ShrinkArgs {
    /// The filter, which is replaced
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Items to keep room for [default: as many as it has]
    #[arg(short, long, value_name = "N", value_parser = number::items)]
    capacity: Option<u64>,
    /// No summary
    #[arg(short, long)]
    quiet: bool,
}

const SHRINK_HELP: &str = "\
For a filter that was made for too many items. It must be of fixed size and in the blocked layout.
It keeps its items, its key and its error rate. Its size is halved, once or several times; an odd
number of blocks of 64 bytes becomes the next lower power of two. It may have room for more items than
--capacity says.

Exit code: 0 when that is done, 1 when it would not become smaller, 2 for an error; then the file is
as it was.

Example:
  everbloom shrink --capacity 2M seen.bloom";

pub(crate) fn run_shrink(args: &ShrinkArgs) -> Result<ExitCode, Failure> {
    let path = &args.file;
    let mut file = FilterFile::open_existing(path)?;
    let mut filter = match file.read_any()? {
        OwnFilter::Fixed(filter) => filter,
        OwnFilter::Growing(_) => {
            return Err(Failure::Other(format!(
                "{} has layers, and only a filter of one can be shrunk; build it again with \
                 --capacity, without --growing",
                path.display()
            )));
        }
        OwnFilter::Cuckoo(_) => {
            return Err(Failure::Other(format!(
                "{} is a cuckoo filter, which cannot be shrunk; build it again with --capacity",
                path.display()
            )));
        }
    };
    let items = filter.len().max(1);
    let capacity = args.capacity.unwrap_or(items);
    if capacity < items {
        return Err(Failure::Other(format!(
            "{} has {items} items, and would find too many others with room for {capacity}; give \
             --capacity {items} or more",
            path.display()
        )));
    }
    let before = filter.bits();
    match filter.shrink_to(capacity) {
        Ok(_) => file.save(|to| filter.write_to(to))?,
        Err(error) => return unshrunk(path, capacity, error, args.quiet),
    }
    if args.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    let text = format!(
        "{} bytes of bits, {} before; room for {} items; of other records it finds {}\n",
        grouped(filter.bits() / 8),
        grouped(before / 8),
        grouped(filter.capacity()),
        found_rate(filter.stats().estimated_error_rate)
    );
    say(&text);
    Ok(ExitCode::SUCCESS)
}

/// The answer when the file stays as it is.
fn unshrunk(
    path: &Path,
    capacity: u64,
    error: ShrinkError,
    is_quiet: bool,
) -> Result<ExitCode, Failure> {
    let path = path.display();
    let answer = match error {
        ShrinkError::NotSmaller(most) => format!(
            "{path} stays as it is: no smaller size has room for {} items; --capacity {most}, or \
             less, makes it smaller",
            grouped(capacity)
        ),
        ShrinkError::Smallest => format!(
            "{path} stays as it is: no smaller size keeps the error rate for the items that it has"
        ),
        ShrinkError::Layout => {
            return Err(Failure::Other(format!(
                "{path} has the classic layout, which cannot be shrunk; build it again with \
                 --capacity {capacity}"
            )));
        }
        error => return Err(Failure::Other(format!("cannot shrink {path}: {error}"))),
    };
    if !is_quiet {
        say(&answer);
    }
    Ok(ExitCode::from(1))
}
