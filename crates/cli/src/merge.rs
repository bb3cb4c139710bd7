//! `everbloom merge` puts filter files together, and `everbloom shrink` makes one smaller.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use everbloom::{BloomFilter, ShrinkError, UnionError};

use crate::failure::Failure;
use crate::filter::Filter;
use crate::filter_file::FilterFile;
use crate::number::{self, percent};

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
}

const HELP: &str = "\
The filters must be alike: of fixed size, with the same capacity, error rate and layout, and in the
blocked layout with the same key. `build --like FILE` makes such a filter. So does `build --seed N`
with the same --capacity and --error-rate in each run. Make each large enough for all records
together, because the result has the same size.

Exit code: 0 when OUT is written, 2 for an error; then OUT is as it was.

Example:
  everbloom build --capacity 10M monday.bloom monday.txt
  everbloom build --like monday.bloom tuesday.bloom tuesday.txt
  everbloom merge week.bloom monday.bloom tuesday.bloom";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut out = FilterFile::open(&args.out)?;
    out.check_is_filter()?;
    let mut merged: Option<(BloomFilter, &Path)> = None;
    for path in &args.files {
        // Without a lock: the output, which may be one of them, has its own.
        let filter = fixed(FilterFile::look(path)?, path)?;
        match &mut merged {
            None => merged = Some((filter, path)),
            Some((merged, first)) => merged
                .union(&filter)
                .map_err(|error| unlike(first, path, error))?,
        }
    }
    if let Some((filter, _)) = merged {
        out.save(|to| filter.write_to(to))?;
        summarize(&filter);
    }
    Ok(ExitCode::SUCCESS)
}

fn fixed(filter: Filter, path: &Path) -> Result<BloomFilter, Failure> {
    match filter {
        Filter::Fixed(filter) => Ok(filter),
        Filter::Growing(_) => Err(Failure::Usage(format!(
            "{} holds a filter that grows, and only those of fixed size can be merged or shrunk; \
             build it without --growing",
            path.display()
        ))),
    }
}

fn unlike(first: &Path, path: &Path, error: UnionError) -> Failure {
    let what = match error {
        UnionError::Layout => "layouts",
        UnionError::Key => "keys",
        UnionError::Bits => "sizes",
        UnionError::Hashes => "numbers of hashes",
        UnionError::Capacity => "capacities",
        UnionError::ErrorRate => "error rates",
    };
    let (first, path) = (first.display(), path.display());
    Failure::Usage(format!(
        "{first} and {path} have different {what}; build one of them again with --like the other"
    ))
}

fn summarize(filter: &BloomFilter) {
    let now = filter.estimated_error_rate();
    let mut text = format!(
        "everbloom: about {} of {} items; of other records it finds {}\n",
        filter.len(),
        filter.capacity(),
        percent(now)
    );
    if filter.len() > filter.capacity() && now > filter.error_rate() {
        text += "everbloom: warning: that is more than it was made for; build the filters again \
                 with a --capacity for all records together\n";
    }
    // Ignore the error: if stderr is closed, nobody can read it.
    let _ = io::stderr().write_all(text.as_bytes());
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
}

const SHRINK_HELP: &str = "\
For a filter that was made for too many items. It must be of fixed size and in the blocked layout.
It keeps its items, its key and its error rate. One that would not become smaller stays as it is.

Exit code: 0 when that is done, 2 for an error; then the file is as it was.

Example:
  everbloom shrink --capacity 2M seen.bloom";

pub(crate) fn run_shrink(args: &ShrinkArgs) -> Result<ExitCode, Failure> {
    // Opening it to write would make the file.
    let path = &args.file;
    if !path.exists() {
        return Err(Failure::Usage(format!(
            "there is no file {}; give the name of a filter file",
            path.display()
        )));
    }
    let mut file = FilterFile::open(path)?;
    let mut filter = fixed(file.read_any()?, path)?;
    let items = filter.len().max(1);
    let capacity = args.capacity.unwrap_or(items);
    if capacity < items {
        return Err(Failure::Usage(format!(
            "{} has {items} items, and would find too many others with room for {capacity}; give \
             --capacity {items} or more",
            path.display()
        )));
    }
    let before = filter.bits();
    filter.shrink_to(capacity).map_err(|error| {
        let path = path.display();
        Failure::Usage(match error {
            ShrinkError::Layout => format!(
                "{path} has the classic layout, which cannot be shrunk; build it again with \
                 --capacity {capacity}"
            ),
            error => format!("cannot shrink {path}: {error}"),
        })
    })?;
    if filter.bits() < before {
        file.save(|to| filter.write_to(to))?;
    }
    let text = format!(
        "everbloom: {} bytes of bits, {} before; of other records it finds {}\n",
        filter.bits() / 8,
        before / 8,
        percent(filter.estimated_error_rate())
    );
    // Ignore the error: if stderr is closed, nobody can read it.
    let _ = io::stderr().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}
