//! `everbloom build`: a filter file of the records of files.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use everbloom::dcso::DcsoFilter;
use everbloom::hash::Key;
use everbloom::host::LayeredFilter;
use everbloom::{BloomFilter, CuckooFilter, InsertError, Layout};
use everbloom_plot::label;

use crate::failure::{Failure, say};
use crate::filter::{OwnFilter, Writable, layouts};
use crate::filter_file::FilterFile;
use crate::number::{self, found_rate, grouped};
use crate::other::Program;
use crate::records::args::{RecordArgs, sources};
use crate::records::case::Case;
use crate::records::chunk::Digest;
use crate::records::input::Source;
use crate::records::selection::Selection;
use crate::records::shared::Shared;
use crate::records::signals::Signals;
use crate::records::tally::{Tally, read};
use crate::sort::Sort;

/// The error rate without --error-rate.
const ERROR_RATE: f64 = 0.0001;

/// The capacity of a filter that grows, without --capacity and without a file to count.
const CAPACITY: u64 = 1 << 20;

/// Make a filter file of lines, for `check`, a program, or Python
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The file to write; a filter of the same format and kind that is there is replaced
    #[arg(value_name = "FILE.bloom")]
    filter: PathBuf,
    /// The files to read, one after the other; `-` or none is standard input
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Expected distinct records [default: as many records as the files have, which are read twice]
    #[arg(short, long, value_name = "N", value_parser = number::items)]
    capacity: Option<u64>,
    /// The share of other records that `check` may find [default: 0.0001]
    #[arg(short, long, value_name = "RATE", value_parser = number::rate)]
    error_rate: Option<f64>,
    /// Make a filter that grows beyond its capacity, as those of `dedup`
    #[arg(short, long)]
    growing: bool,
    /// Make a cuckoo filter, from which records can be removed. It takes at least its capacity, and
    /// is then full, unless it is --growing
    #[arg(long, conflicts_with = "layout")]
    deletable: bool,
    /// Where the bits of a record lie [default: blocked]
    #[arg(short, long, value_parser = layouts())]
    layout: Option<Layout>,
    /// Make the key of the hash from this number: filters of the same seed, capacity and rate can
    /// be merged [default: a random key]
    #[arg(short, long, value_name = "N")]
    seed: Option<u64>,
    /// Make a filter that can be merged with that of this file: all parameters are taken from it
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["capacity", "error_rate", "growing", "deletable", "layout", "seed"]
    )]
    like: Option<PathBuf>,
    /// Add the records to the filter that is there, whose format and parameters hold
    #[arg(
        short,
        long,
        conflicts_with_all = [
            "capacity", "error_rate", "growing", "deletable", "layout", "seed", "like", "format"
        ]
    )]
    append: bool,
    /// Whose program is to read the filter
    #[arg(long, value_enum, default_value_t = Format::Everbloom)]
    format: Format,
    #[command(flatten)]
    records: RecordArgs,
    /// No progress, no summary
    #[arg(short, long)]
    quiet: bool,
}

const HELP: &str = "\
Files of gzip, zstd, xz and bzip2 are unpacked; others, such as ZIP archives, are refused. Standard
input can be read only once, so it needs --capacity or --growing. A filter of fixed size is smaller
and faster than one that grows. It takes more records than its capacity, and then finds more that
were never put in; the summary warns.

The end of a line may be CRLF, and a byte order mark at the start of a file is no part of its first
line. With --null records are taken as they are.

With --csv a record ends where a line ends outside quotes. A quoted field is compared by its value;
without --field, all fields of a record are compared together. Quotes that are not those of CSV, as
in \"a\"b, are an error that names the line. A quote within a field that does not begin with one is
text, as in 5\" disk, and the summary warns. An empty line has no field, unless the header, or the
first record that is not empty, has one only. With --header, the first record of each input is its
header. That of the first input names the fields, and the others must be equal to it; none is put
into the filter. A name of digits, or with a comma, is given in quotes, as in -f '\"2024\"'.

The file remembers what of the records was put in, so that `check` and --append refuse to compare
another part of them; --any-selection lets them go on. With --ignore-case capital and small letters
are equal by Unicode's simple case folding, and bytes that are no UTF-8 are taken as they are. The
file remembers that, too, so `check`, --append and --like do the same without the flag. A
program gets such a filter only if it reads this note. DCSO's filters remember nothing.

A filter of --format dcso is for DCSO's bloom, flor and plaso. It has a fixed size and no key, so
that anyone can choose records that collide.

With --deletable it is a cuckoo filter, from which `remove` takes records. It has each record as
often as the input has it, at most 8 times in a table, so leave repeats out with `sort -u`. Its
error rate is from 1e-9 to 0.5. When it is full, no record is added, and an error says so; with
--growing it grows, at the same error rate. It has a secret key, or that of --seed.

The blocked layout has a secret key, so that nobody can choose records that collide. With --seed,
those who know the number can. The classic layout has no key, so anyone can.

FILE.bloom is replaced in one step, when all was read. After an error or a signal it is as it was.

Exit code: 0 when the file is written, 2 for an error, also when no record had the field; 130, 143 or 129 after SIGINT, SIGTERM or
SIGHUP.

Examples:
  everbloom build banned.bloom names.txt
  everbloom build --error-rate 1e-6 hashes.bloom sums-*.txt.gz
  crawl | everbloom build --growing seen.bloom
  everbloom build --csv --header -f email banned.bloom banned.csv
  everbloom build --like monday.bloom tuesday.bloom tuesday.txt
  everbloom build --append banned.bloom more.txt
  everbloom build --deletable --capacity 2M absent.bloom ids.txt
  everbloom build --format dcso known.bloom sums.txt";

/// A format on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The library's own
    Everbloom,
    /// That of DCSO's bloom
    Dcso,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let sources = sources(&args.inputs);
    check_format(args)?;
    args.records.key_of()?;
    let shared = Arc::new(Shared::default());
    // First, because the new file exists during the run and is removed at its end.
    let signals = Signals::catch(Arc::clone(&shared))?;
    let mut file = FilterFile::open(&args.filter)?;
    file.check_apart(&sources)?;
    let (like, selection) = given(args, &mut file)?;
    match args.format {
        _ if args.append => {}
        Format::Dcso => file.check_is_of(Some(Program::Dcso))?,
        Format::Everbloom => {
            let sort = match &like {
                Some(like) => like.sort(),
                None if args.deletable => Sort::Cuckoo,
                None if args.growing => Sort::Growing,
                None => Sort::Fixed,
            };
            file.check_is_own(sort)?;
        }
    }
    let stopped = || signals.exit_code().map(ExitCode::from);

    let mut filter = match like {
        Some(filter) => filter,
        None => {
            let capacity = capacity(args, &sources, &shared)?;
            if let Some(code) = stopped() {
                return Ok(code);
            }
            make(args, capacity)?
        }
    };
    let keys = (selection.case, &filter.digest());
    let tally = read(
        (&args.records, args.quiet),
        &sources,
        keys,
        &shared,
        |chunk| {
            let inserted = filter.insert_all(chunk);
            inserted.map_err(unwritten)
        },
    )?;
    if let Some(code) = stopped() {
        return Ok(code);
    }
    let is_replaced = !file.is_new() && !args.append;
    if let Writable::Own(own) = &filter {
        file.remember(selection.of_items(own.items()))?;
    }
    file.save(|to| filter.write_to(to))?;
    if !args.quiet {
        let bytes = file.bytes()?;
        summarize(&tally, &filter, bytes, args);
        if is_replaced {
            say(&format!(
                "{} had another filter, which is replaced; --append adds to it",
                args.filter.display()
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The filter that is given, by --like or --append, and what the new one remembers.
fn given(args: &Args, file: &mut FilterFile) -> Result<(Option<Writable>, Selection), Failure> {
    let (filter, selection) = match &args.like {
        Some(path) => {
            let (filter, selection) = FilterFile::look(path)?;
            let is_empty = filter.items() == 0;
            let agreed = args.records.agree(path.display(), &selection, is_empty);
            let (case, filter) = (agreed?.case, empty_like(filter)?);
            let part = args.records.selection()?.part;
            (Some(Writable::Own(filter)), Selection { part, case })
        }
        None if args.append => {
            let filter = filled(&args.filter, file)?;
            let is_empty = match &filter {
                Writable::Own(filter) => filter.items() == 0,
                Writable::Dcso(_) => check_case_of_dcso(args).map(|()| false)?,
            };
            let (path, selection) = (args.filter.display(), file.selection());
            let selection = args.records.agree(path, selection, is_empty)?;
            (Some(filter), selection)
        }
        None => (None, args.records.selection()?),
    };
    // What cannot be remembered is refused before the run. DCSO's filters remember nothing.
    let is_dcso = args.format == Format::Dcso || matches!(filter, Some(Writable::Dcso(_)));
    if !is_dcso {
        selection.to_note()?;
    }
    Ok((filter, selection))
}

/// No filter is written, because it took not all records.
fn unwritten(error: InsertError) -> Failure {
    match error {
        InsertError::Full => Failure::other(
            "the filter has no more room, and nothing was written; build it again with a larger \
             --capacity, or with --growing. A deletable filter has a record as often as the input: \
             if there are repeats, leave them out with `sort -u`",
        ),
        InsertError::Copies => Failure::other(
            "the filter has no room for one more copy of a record, and nothing was written; \
             leave repeats out with `sort -u`",
        ),
        error => {
            let next = ", and no filter was written; give a larger --capacity";
            Failure::ungrown(error).then(next)
        }
    }
}

/// A filter of DCSO's has neither a layout nor a key, does not grow, and remembers nothing of its
/// records.
fn check_format(args: &Args) -> Result<(), Failure> {
    if args.format == Format::Dcso {
        check_case_of_dcso(args)?;
    }
    let is_own = args.growing || args.deletable || args.layout.is_some() || args.seed.is_some();
    if args.format == Format::Dcso && (is_own || args.like.is_some()) {
        return Err(Failure::other(
            "a filter of DCSO's bloom has a fixed size and no key; leave --growing, --deletable, \
             --layout, --seed and --like off",
        ));
    }
    Ok(())
}

fn check_case_of_dcso(args: &Args) -> Result<(), Failure> {
    if args.records.ignore_case {
        return Err(Failure::other(
            "a filter of DCSO's bloom cannot remember --ignore-case; leave it off, and build the \
             filter of records in small letters, or of records in capital letters",
        ));
    }
    Ok(())
}

/// The capacity that was asked for, or what the files need.
fn capacity(args: &Args, sources: &[Source], shared: &Arc<Shared>) -> Result<u64, Failure> {
    if let Some(capacity) = args.capacity {
        return Ok(capacity);
    }
    if !sources.iter().any(Source::is_stream) {
        let inputs = (&args.records, args.quiet);
        let tally = read(
            inputs,
            sources,
            (Case::Kept, &Digest::Count),
            shared,
            |_| Ok(()),
        )?;
        shared.restart();
        return Ok(tally.keys.max(1));
    }
    if args.growing {
        return Ok(CAPACITY);
    }
    Err(Failure::other(
        "standard input and pipes cannot be counted before they are read; give --capacity N, or \
         --growing",
    ))
}

fn make(args: &Args, capacity: u64) -> Result<Writable, Failure> {
    let layout = args.layout.unwrap_or(Layout::Blocked);
    let rate = args.error_rate.unwrap_or(ERROR_RATE);
    let key = args.seed.map(Key::from_seed);
    if key.is_some() && layout == Layout::Classic {
        return Err(Failure::other(
            "the classic layout has no key; leave --seed off: filters of the same capacity and \
             error rate can be merged",
        ));
    }
    let made = if args.format == Format::Dcso {
        DcsoFilter::new(capacity, rate).map(Writable::Dcso)
    } else if args.deletable {
        return make_deletable(args, capacity, rate).map(Writable::Own);
    } else if args.growing {
        let builder = LayeredFilter::builder().layout(layout);
        let builder = builder.capacity(capacity).error_rate(rate);
        let builder = match key {
            Some(key) => builder.key(key),
            None => builder,
        };
        builder.build().map(OwnFilter::Growing).map(Writable::Own)
    } else {
        let builder = BloomFilter::builder().layout(layout);
        let builder = builder.capacity(capacity).error_rate(rate);
        let builder = match key {
            Some(key) => builder.key(key),
            None => builder,
        };
        builder.build().map(OwnFilter::Fixed).map(Writable::Own)
    };
    made.map_err(|error| Failure::unmade(capacity, error))
}

fn make_deletable(args: &Args, capacity: u64, rate: f64) -> Result<OwnFilter, Failure> {
    let builder = CuckooFilter::builder().capacity(capacity).error_rate(rate);
    let builder = match args.seed {
        Some(seed) => builder.seed(seed),
        None => builder,
    };
    let made = match args.growing {
        true => builder.build(),
        false => builder.expansion(0).build(),
    };
    let made = made.map(OwnFilter::Cuckoo);
    made.map_err(|error| Failure::unmade_because(capacity, error))
}

/// The filter of a file, to add to it.
fn filled(path: &Path, file: &mut FilterFile) -> Result<Writable, Failure> {
    if file.is_new() {
        return Err(Failure::Other(format!(
            "there is no filter {}; leave --append off to make it",
            path.display()
        )));
    }
    let mut filter = file.read_writable()?;
    if let Writable::Own(filter) = &mut filter {
        let forgotten = filter.forget();
        forgotten.map_err(|error| Failure::Other(error.to_string()))?;
    }
    Ok(filter)
}

fn empty_like(filter: OwnFilter) -> Result<OwnFilter, Failure> {
    let unmade = |error: &dyn Display| Failure::Other(format!("cannot make the filter: {error}"));
    match filter {
        OwnFilter::Fixed(filter) => {
            let empty = filter.empty_like().map(OwnFilter::Fixed);
            empty.map_err(|error| unmade(&error))
        }
        OwnFilter::Growing(filter) => {
            let empty = filter.empty_like().map(OwnFilter::from);
            empty.map_err(|error| unmade(&error))
        }
        OwnFilter::Cuckoo(filter) => {
            let empty = filter.empty_like().map(OwnFilter::Cuckoo);
            empty.map_err(|error| unmade(&error))
        }
    }
}

/// `bytes` are those of the file.
fn summarize(tally: &Tally, filter: &Writable, bytes: u64, args: &Args) {
    let (stats, _) = filter.stats();
    let now = stats.estimated_error_rate;
    let mut text = format!(
        "{} records in, {} in the filter; the file has {} bytes\n",
        grouped(tally.records),
        grouped(stats.items),
        grouped(bytes),
    );
    text += &tally.left_out(&args.records);
    text += &format!("of other records it finds {}\n", found_rate(now));
    let made_for = stats.capacity.zip(stats.error_rate);
    if let Some((_, asked)) =
        made_for.filter(|(capacity, asked)| stats.items > *capacity && now > *asked)
    {
        text += &format!(
            "warning: that is more than {}; build it again with --capacity {} or more\n",
            label::percent(asked),
            tally.keys,
        );
    }
    say(&text);
}
