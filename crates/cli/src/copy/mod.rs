//! `everbloom copy`: copies the filters of one server to another one.
//!
//! - [`file`]: one filter between a server and a file
//! - [`transfer`]: one filter, whole or not at all

mod destination;
mod file;
mod transfer;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use everbloom_plot::label;
use everbloom_resp::quoted;

use crate::client::{ServerArgs, Url, is_url};
use crate::failure::{Failure, say, unless_unread};
use crate::number::grouped;
use crate::progress::Progress;
use crate::records::signals::Signals;
use crate::servers::dump::{READABLE, WRITABLE};
use crate::servers::server::Server;
use crate::servers::walk::{Walk, unmatched};
use file::Remote;
use transfer::{Outcome, Transfer};

/// Copy all filters of one server to another one, or one filter from or to a file
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "everbloom copy [OPTIONS] FROM TO\n       \
                      everbloom copy [OPTIONS] -h HOST -p PORT TO",
    after_help = HELP
)]
pub(crate) struct Args {
    /// Two servers, redis://HOST[:PORT]; or a key, redis://HOST#KEY, and a filter file
    #[arg(value_name = "FROM TO", num_args = 0..=2)]
    words: Vec<String>,
    /// Between servers: copy only filters whose names match, as in KEYS: 'seen:*'
    #[arg(long = "match", value_name = "PATTERN")]
    pattern: Option<OsString>,
    /// Overwrite keys at the destination that hold something else, or the file
    #[arg(long)]
    replace: bool,
    /// Do not read each copied filter back to compare it, nor ask both servers for items
    #[arg(long)]
    no_verify: bool,
    /// Show no progress, and say nothing at the end when all went well
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = "\
When the flags name a server, it is FROM. --user and --pass are for servers without a login in their
URL.

Copies Bloom and cuckoo filters between RedisBloom, Redis or Valkey with the everbloom module, and
everbloom serve, in any direction: all of a filter, bit for bit, and when the key expires. Keys of
other types are only counted. It needs less than 150 MB of memory for filters of any size. Filters of
valkey-bloom are copied from it, not to it, and each is held in memory. Blocked filters (TYPE answers
everbloom) and cuckoo filters with an error rate (everblmCF) do not go to RedisBloom. Of a Cluster,
give each primary as FROM in turn, and any as TO.

Nobody sees half a filter. Each one is loaded under a temporary name (KEY:everbloom-copy:...), read
back and compared, and then renamed. Both servers are also asked for up to 65 536 random items. What
a killed copy left expires after ten minutes.

At the destination, a key that
  does not exist                        gets the filter
  holds an equal filter                 only expires when the source does: after a copy that ended
                                        early, run the same command again, and it copies the rest
  holds an earlier state of the filter  is replaced, if nobody changes it meanwhile
  holds anything else                   stays as it is, and is named; --replace overwrites it

Bloom filters in use: what was added before the copy began is always copied. A filter that changes
meanwhile is named: stop adding and run the same command again. Do not add at the destination before
that. A window that drops a generation while it is read is read again, and after three times named
and not copied.

Cuckoo filters in use: one that changes as long as it is read is named and not copied. When it has
changed since it was copied, `copy` often cannot tell that it is a later state, because items move:
--replace brings the new state.

A file has one Bloom filter, and no expiry. It is replaced in one step, and the key appears whole.
What follows the first # is the key, as it is. A key cannot remember what of the records was put
in: that is said, and a filter of `build --ignore-case` is refused. RedisBloom takes files of `build --growing --layout
classic`.

Exit code: 0 when all filters are at the destination; 1 when some could not be copied, or changed
while they were copied, or --match chose none; 2 for an error.

Examples:
  everbloom copy redis://old redis://new:6380
  everbloom copy seen.bloom redis://host#seen
  everbloom copy redis://host#seen seen.bloom
  everbloom copy --match 'seen:*' redis://old/1 redis://:secret@new/1";

/// What has become of the filters.
#[derive(Debug, Default)]
struct Tally {
    copied: u64,
    bytes: u64,
    present: u64,
    gone: u64,
    changed: u64,
    failed: u64,
    others: u64,
    /// The source's other databases that have keys.
    databases: Vec<u32>,
    /// How long it took.
    time: Duration,
}

/// What is copied from, or to.
#[derive(Debug)]
enum Side {
    Server(Url),
    Key(Remote),
    File(PathBuf),
}

impl From<Url> for Side {
    fn from(url: Url) -> Self {
        Self::Server(url)
    }
}

impl FromStr for Side {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        if !is_url(word) {
            return Ok(Self::File(word.into()));
        }
        // All behind the first `#` is the key, byte for byte.
        match word.split_once('#') {
            None => word.parse().map(Self::Server),
            Some((url, key)) => Ok(Self::Key(Remote {
                url: url.parse()?,
                key: key.as_bytes().to_vec(),
            })),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    let refused = |why: &str| Err(Failure::other(why));
    match args.server.pair(&args.words)? {
        [Side::Server(from), Side::Server(to)] => copy_servers(args, &from, &to),
        [Side::File(_), Side::File(_)] => {
            refused("one of the two must be a server, such as redis://HOST or redis://HOST#KEY")
        }
        [Side::File(_), Side::Server(_)] | [Side::Server(_), Side::File(_)] => {
            refused("a file goes to and comes from one key: write it as redis://HOST#KEY")
        }
        [Side::Key(_), _] | [_, Side::Key(_)] if args.pattern.is_some() => {
            refused("--match is for two servers; a file has one filter")
        }
        [Side::Key(from), Side::File(to)] => {
            // First, because the new file exists during the run and is removed at its end.
            let signals = Signals::catch(Arc::default())?;
            match (file::save(&from, &to, args, &signals), signals.exit_code()) {
                (Err(_), Some(code)) => Ok(ExitCode::from(code)),
                (saved, _) => {
                    let (bytes, changed) = saved?;
                    copied_one(args, began, bytes, changed)
                }
            }
        }
        [Side::File(from), Side::Key(to)] => {
            let bytes = file::load(&from, &to, args)?;
            copied_one(args, began, bytes, false)
        }
        [Side::Key(_), _] | [_, Side::Key(_)] => {
            refused("one key goes to or comes from a file; between servers, --match chooses keys")
        }
    }
}

fn copied_one(args: &Args, began: Instant, bytes: u64, changed: bool) -> Result<ExitCode, Failure> {
    let mut tally = Tally::default();
    tally.add(&Outcome::Copied { bytes, changed });
    tally.time = began.elapsed();
    tally.print(args.quiet)
}

fn copy_servers(args: &Args, from: &Url, to: &Url) -> Result<ExitCode, Failure> {
    if from == to {
        return Err(Failure::Other(format!(
            "{from} would be copied to itself; name another server as TO"
        )));
    }
    let mut source = Server::connect(from, &args.server, READABLE)?;
    let mut destination = Server::connect(to, &args.server, WRITABLE)?;

    let began = Instant::now();
    let mut tally = Tally::default();
    let mut transfer = Transfer {
        source: &mut source,
        destination: &mut destination,
        replace: args.replace,
        verify: !args.no_verify,
        token: transfer::token(),
    };
    let outcome = copy_all(&mut transfer, args, &mut tally);
    tally.time = began.elapsed();
    if outcome.is_ok() {
        tally.databases = source.other_databases();
    }
    let code = tally.print(args.quiet && outcome.is_ok());
    outcome.map_err(|failure| {
        failure.then(
            "\nEvery filter at the destination is whole. Run the same command again: it copies the \
             rest.",
        )
    })?;
    match unmatched(args.pattern(), tally.filters()) {
        Some(text) => {
            say(&text);
            Ok(ExitCode::from(1))
        }
        None => code,
    }
}

/// Copies filter after filter. Returns the failure that ends it all.
fn copy_all(transfer: &mut Transfer<'_>, args: &Args, tally: &mut Tally) -> Result<(), Failure> {
    let mut walk = Walk::new(args.pattern());
    let progress = Progress::of_filters(args.quiet);
    while let Some(page) = walk.page(transfer.source)? {
        tally.others += page.others;
        for (key, family) in page.filters {
            let bytes = label::bytes(tally.bytes as f64);
            let [copied, present] = [tally.copied, tally.present].map(grouped);
            progress.sum(format!("{copied} copied ({bytes}), {present} skipped"));
            match transfer.copy(&key, family, &progress) {
                Ok(outcome) => {
                    if tally.add(&outcome) {
                        progress.say(&format!(
                            "everbloom: {}: changed while it was copied, so new items may be \
                             missing; run this again when nobody adds",
                            quoted(&key)
                        ));
                    }
                }
                Err(Failure::Filter(why)) => {
                    tally.failed += 1;
                    progress.say(&format!("everbloom: {}: {why}", quoted(&key)));
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok(())
}

impl Args {
    fn pattern(&self) -> Option<&[u8]> {
        let pattern = self.pattern.as_ref();
        pattern.map(|pattern| pattern.as_encoded_bytes())
    }
}

impl Tally {
    /// The filters that were found.
    fn filters(&self) -> u64 {
        self.copied + self.present + self.gone + self.failed
    }

    /// Returns whether the filter changed while it was copied.
    fn add(&mut self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Copied { bytes, changed } => {
                self.copied += 1;
                self.bytes = self.bytes.saturating_add(*bytes);
                self.changed += u64::from(*changed);
                return *changed;
            }
            Outcome::Present => self.present += 1,
            Outcome::Gone => self.gone += 1,
        }
        false
    }

    /// Prints it, unless it says nothing new and nobody wants to read that. Returns the exit code.
    fn print(&self, quiet: bool) -> Result<ExitCode, Failure> {
        let is_complete = self.failed == 0 && self.changed == 0;
        if !(quiet && is_complete) {
            unless_unread(write!(io::stdout(), "{self}").map_err(Failure::from))?;
        }
        Ok(ExitCode::from(u8::from(!is_complete)))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filters = |count: u64| if count == 1 { "filter" } else { "filters" };
        let seconds = self.time.as_secs_f64();
        let bytes = label::bytes(self.bytes as f64);
        let (copied, noun) = (grouped(self.copied), filters(self.copied));
        writeln!(f, "{copied} {noun} copied, {bytes} in {seconds:.1} s")?;
        for (count, what) in [
            (self.present, "skipped: equal at the destination"),
            (self.gone, "skipped: deleted or expired meanwhile"),
            (self.changed, "changed while being copied"),
            (self.failed, "not copied, see above"),
        ] {
            if count > 0 {
                writeln!(f, "{} {} {what}", grouped(count), filters(count))?;
            }
        }
        if self.others > 0 {
            let noun = if self.others == 1 { "key" } else { "keys" };
            writeln!(f, "{} {noun} of other types left", grouped(self.others))?;
        }
        for number in &self.databases {
            writeln!(
                f,
                "database {number} has keys too: copy it with /{number} behind the URLs"
            )?;
        }
        Ok(())
    }
}
