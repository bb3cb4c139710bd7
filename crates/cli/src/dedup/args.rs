//! The flags.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::client::ServerArgs;
use crate::number;
use crate::records::args::RecordArgs;

/// The error rate without --error-rate.
pub(super) const ERROR_RATE: f64 = 0.0001;

/// The milliseconds between two saves without --save-every.
pub(super) const SAVE_EVERY: u64 = 5 * 60 * 1000;

/// Print each line the first time it is seen, in this run and in earlier ones
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The files to read, one after the other; `-` or none is standard input. A redis://HOST
    /// among them names the server of --key
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Remember from run to run in this file, which the first run makes
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Forget what is older: print each record once in this time, such as 12h, 30d or 4w
    #[arg(long, value_name = "TIME", value_parser = number::duration, requires = "state")]
    pub(super) window: Option<u64>,
    /// Save the state this often during the run [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = number::duration, requires = "state")]
    pub(super) save_every: Option<u64>,
    /// Expected distinct records; the filter grows beyond [default: a guess from the sizes of the
    /// files]
    #[arg(short, long, value_name = "N", value_parser = number::items)]
    pub(super) capacity: Option<u64>,
    /// The share of new records that may be lost, taken for repeats [default: 0.0001]
    #[arg(short, long, value_name = "RATE", value_parser = number::rate)]
    pub(super) error_rate: Option<f64>,
    /// Make the key of the hash from this number, so that each run with the same input prints the
    /// same records [default: a random key]
    #[arg(long, value_name = "N", conflicts_with = "key")]
    pub(super) seed: Option<u64>,
    #[command(flatten)]
    pub(super) records: RecordArgs,
    /// Print only the records that were seen before
    #[arg(long)]
    pub(super) repeated: bool,
    /// Print only how many records would be printed, and remember nothing
    #[arg(long)]
    pub(super) count: bool,
    /// Remember in the filter of this key on a server, which many machines may share
    #[arg(long, value_name = "NAME", conflicts_with_all = ["state", "count"])]
    pub(super) key: Option<OsString>,
    /// No progress, no summary
    #[arg(short, long)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

const HELP: &str = "\
Records are printed in their order, byte for byte; the last one of a file gets an end if it has
none. Files of gzip, zstd, xz and bzip2 are unpacked; others, such as ZIP archives, are refused.

The end of a line may be CRLF, so a line with it repeats one without. A byte order mark at the start
of a file is no part of its first line, nor printed. With --null records are taken as they are.

With --csv a record ends where a line ends outside quotes. A quoted field is compared by its value;
without --field, all fields of a record are compared together. Quotes that are not those of CSV, as
in \"a\"b, are an error that names the line. A quote within a field that does not begin with one is
text, as in 5\" disk, and the summary warns. An empty line has no field, unless the header, or the
first record that is not empty, has one only. With --header, the first record of each input is its
header: that of the first input is printed, and the others must be equal to it. A name of digits, or
with a comma, is given in quotes, as in -f '\"2024\"'.

A Bloom filter remembers: no repeat is ever printed, and of the new records about --error-rate are
lost. The summary on stderr says how many to expect. With --repeated the filter's errors are records
that are printed and were not seen before.

A record without the field, or that is not JSON with that value, counts as new each time. A
JSON value that is not a string is compared as it is written, so 1 and \"1\" are one value, and 1 and
1.0 are two. null counts as missing. Of several fields or values, a record must have all. Without
--csv, --field does not know the quotes of CSV; where they matter, the summary warns.

With --state, the file is locked during the run. It is replaced every five minutes, or as
--save-every says, and at the end, also on SIGINT, SIGTERM and SIGHUP. When saving takes long, it is
done less often, so that it takes a twentieth of the time. A run that is killed, also by a second
signal, leaves the file as it was last saved, and a further run prints what came later once more.
The capacity and the error rate of the file hold.

A record is remembered when it was written to standard output: when that fails, a further run prints
the rest. If standard output is a file, it is on the disk before the state is replaced.

With --seed, the records that the filter takes for repeats by mistake are the same in each run. With
--state, too, records are then handled in pieces of 256 KiB, not as they arrive. Who knows the number
can choose records that collide. A window depends on the time, with a seed or without.

The file remembers what was compared: the field, the path, CSV, what is between fields, and whether
records end with NUL. A run that compares something else is refused; --any-selection lets it go on,
for values of one kind that each input has in another place. A file that remembers nothing, as those
of earlier versions and of programs, takes any part of a record, and remembers that of the first run
that saves it. It takes --ignore-case only with --any-selection, for items that are known to be in
small letters.

With --ignore-case, records that differ in capital and small letters only are repeats, by
Unicode's simple case folding. Bytes that are no UTF-8 are compared as they are. A state
remembers it, so later runs do the same without the flag. A server does not: give it in each run.

With --window 30d, a record that comes again within thirty days of when it was printed is a repeat.
It is printed again after 37.5 days at the latest. --capacity is the number of records that are new
in that time. Later runs know the window.

With --key, any server with BF.RESERVE and BF.INSERT will do. The filter is made when it is missing.
Otherwise its parameters hold, and --capacity and --error-rate have no effect. Without --capacity it
is made for a million records.

Exit code: 0 when all was read, or when the reader of the output has ended; 2 for an error, also
when only one of many inputs could not be read, or when no record had the field; 130, 143 or 129 after SIGINT, SIGTERM or SIGHUP.

Examples:
  everbloom dedup urls.txt > unique.txt
  crawl | everbloom dedup --state seen.bloom > new.txt
  crawl | everbloom dedup --window 30d --state month.bloom > again.txt
  everbloom dedup --json .text part-*.jsonl.zst > corpus.jsonl
  everbloom dedup --field 1,3 --count table.tsv
  everbloom dedup --csv --header --field email users.csv > unique.csv
  find . -print0 | everbloom dedup -0 --key files redis://10.0.0.1";
