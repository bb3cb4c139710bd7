//! `everbloom check`: prints the records that are in a filter file, or those that are not.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::failure::{Failure, say};
use crate::filter_file::{FilterFile, Found, broken};
use crate::other::{Funnel, Program};
use crate::records::args::{RecordArgs, sources};
use crate::records::chunk::{Chunk, Digest};
use crate::records::input::Source;
use crate::records::output::Output;
use crate::records::shared::Shared;

/// Print the lines that are in a filter file, or with -v those that are not
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The filter, as `build` and `dedup --state` make it, or of DCSO's bloom, or of Guava
    #[arg(value_name = "FILE.bloom")]
    filter: PathBuf,
    /// The files to read, one after the other; `-` or none is standard input
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Print the records that are not in the filter
    #[arg(short = 'v', long)]
    invert: bool,
    /// Print only how many records would be printed
    #[arg(short, long)]
    count: bool,
    /// Print nothing, and end at the first record that would be printed
    #[arg(short, long, conflicts_with = "count")]
    quiet: bool,
    /// How the program in Java put items into a filter of Guava [default: utf8]
    #[arg(long, value_enum)]
    funnel: Option<Funnel>,
    #[command(flatten)]
    records: RecordArgs,
}

const HELP: &str = "\
Records are printed in their order, byte for byte. A record that was put into the filter is always
found. Of the others about as many are found as the error rate says, which `info` prints: so what
-v prints is certain. A record without the field is not in the filter. Files of gzip, zstd, xz and
bzip2 are unpacked; others, such as ZIP archives, are refused. A `dedup` or `build` may replace the
filter meanwhile. What is older than the window of a filter is not in it. Only if a program gave the
window a clock other than milliseconds since 1970, nothing is too old.

The end of a line may be CRLF, and a byte order mark at the start of a file is no part of its first
line, nor printed. With --null records are taken as they are.

With --csv a record ends where a line ends outside quotes. A quoted field is compared by its value;
without --field, all fields of a record are compared together. Quotes that are not those of CSV, as
in \"a\"b, are an error that names the line. A quote within a field that does not begin with one is
text, as in 5\" disk, and a warning says so. An empty line has no field, unless the header, or the
first record that is not empty, has one only. With --header, the first record of each input is its
header: that of the first input is printed, and the others must be equal to it. A name of digits, or
with a comma, is given in quotes, as in -f '\"2024\"'.

A filter remembers what was put in. One of whole lines is a list of values, which may be asked for
any one field of a record, or value of JSON. One of a field, or of several together, is asked for the
same part, and anything else is refused; --any-selection asks all the same, for values of one kind
that each table has in another place. A filter that remembers nothing, as those of earlier versions,
of programs and of servers, is asked for anything.

A filter of `build --ignore-case` finds capital and small letters alike, with the flag or without.
Another one is not asked with --ignore-case: it has capital letters as they were. One that remembers
nothing is, with --any-selection, for a list that is known to be in small letters.

A filter of DCSO's bloom, such as CIRCL's hashlookup, is known by its content, and read where it is:
let a `bloom insert` end first. A filter of Guava is what BloomFilter.writeTo wrote in Java. It does
not tell how items were put in: give --funnel.

Exit code, as that of grep: 0 when a record was printed or would be, 1 when none was, 2 for an
error, also when only one of many inputs could not be read, or when no record had the field.

Examples:
  everbloom check banned.bloom names.txt          those that are (almost certainly) banned
  everbloom check -v seen.bloom urls.txt          those that certainly were never seen
  everbloom check -q seen.bloom <<< some-url && echo known
  everbloom check --csv --header -f email banned.bloom users.csv
  everbloom check --json .url seen.bloom crawl.jsonl.zst
  sha1sum * | sed 's/^[^ ]*/\\U&/' | everbloom check -f 1 -d ' ' hashlookup-full.bloom
  everbloom check --funnel long users.guava ids.txt";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (mut filter, selection) = FilterFile::look_at_any(&args.filter)?;
    let path = args.filter.display();
    let is_empty = matches!(&filter, Found::Own(filter) if filter.items() == 0);
    let case = args.records.agree_to_look_up(path, &selection, is_empty)?;
    let digest = match &filter {
        Found::Own(filter) => filter.digest(),
        Found::Other(_) => Digest::Keys,
    };
    let is_guavas = matches!(&filter, Found::Other(other) if other.program() == Program::Guava);
    if args.funnel.is_some() && !is_guavas {
        return Err(Failure::Other(format!(
            "{} is no filter of Guava; leave --funnel off",
            args.filter.display()
        )));
    }
    let shared = Arc::new(Shared::default());
    let sources = sources(&args.inputs);
    let prints = !args.count && !args.quiet;
    let own = Source::File(args.filter.clone());
    let inputs = sources.iter().chain([&own]);
    let mut output = prints.then(|| Output::stdout(inputs)).transpose()?;
    let mut pipeline = args.records.start(&sources, case, &digest, &shared)?;
    let mut selected = 0;
    let (mut records, mut keys, mut lacking, mut cut) = (0, 0, 0, 0);
    let mut found = Vec::new();
    while let Some(mut chunk) = pipeline.next()? {
        select(&mut filter, &chunk, args, &mut found)?;
        let then = "; without --strict it would be no member";
        args.records.check(&chunk, records, then)?;
        records += chunk.ends.len() as u64;
        selected += found.iter().filter(|found| **found).count() as u64;
        keys += (chunk.ends.len() - chunk.keyless.len()) as u64;
        lacking += chunk.lacking.len() as u64;
        cut += chunk.cut_quotes;
        // As long as no record has the field, it may be a mistake.
        if args.quiet && selected > 0 && keys > 0 {
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(output) = &mut output {
            output.write(&chunk.header).map_err(|(_, error)| error)?;
            let (kept, _) = chunk.compact(&found);
            let kept = chunk.buffer.get(..kept).unwrap_or_default();
            output.write(kept).map_err(|(_, error)| error)?;
        }
        pipeline.recycle(chunk);
    }
    if let Some(output) = output {
        output.close()?;
    }
    if args.count {
        writeln!(io::stdout(), "{selected}")?;
    }
    if let Some(warning) = args.records.cut_quotes(cut).filter(|_| !args.quiet) {
        say(&warning);
    }
    args.records
        .check_any(keys, lacking, ", so none was looked up")?;
    Ok(ExitCode::from(
        match shared.failed.load(Ordering::Relaxed) {
            0 => u8::from(selected == 0),
            _ => 2,
        },
    ))
}

/// For each record whether it is printed. One without a key is no member.
fn select(
    filter: &mut Found,
    chunk: &Chunk,
    args: &Args,
    selected: &mut Vec<bool>,
) -> Result<(), Failure> {
    selected.clear();
    let invert = args.invert;
    if chunk.keyless.is_empty() {
        return contains_each(filter, chunk, args, |found| selected.push(found != invert));
    }
    selected.resize(chunk.ends.len(), true);
    for record in &chunk.keyless {
        if let Some(place) = selected.get_mut(*record) {
            *place = false;
        }
    }
    let mut with_key = selected.iter_mut().filter(|has_key| **has_key);
    contains_each(filter, chunk, args, |found| {
        if let Some(place) = with_key.next() {
            *place = found;
        }
    })?;
    if invert {
        selected.iter_mut().for_each(|selected| *selected ^= true);
    }
    Ok(())
}

/// Calls `emit` for each key with whether it is in the filter.
fn contains_each(
    filter: &mut Found,
    chunk: &Chunk,
    args: &Args,
    emit: impl FnMut(bool),
) -> Result<(), Failure> {
    match filter {
        Found::Own(filter) => {
            filter.contains_all(chunk, emit);
            Ok(())
        }
        Found::Other(other) => other
            .contains_each(args.funnel, chunk.each_key(), emit)
            .map_err(|reason| broken(&args.filter, other.program(), &*reason)),
    }
}
