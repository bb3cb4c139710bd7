//! `everbloom compare`: whether two servers have the same filters.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use everbloom_resp::quoted;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::client::{ServerArgs, Url};
use crate::failure::{Failure, say, unless_unread};
use crate::number::grouped;
use crate::servers::difference::{Difference, compare};
use crate::servers::dump::READABLE;
use crate::servers::family::Family;
use crate::servers::server::{Content, Server};
use crate::servers::walk::{Walk, unmatched};

/// Tell whether two servers have the same filters
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "everbloom compare [OPTIONS] OLD NEW\n       \
                      everbloom compare [OPTIONS] -h HOST -p PORT NEW",
    after_help = HELP
)]
pub(crate) struct Args {
    /// Two servers: redis://HOST[:PORT]
    #[arg(value_name = "OLD NEW", num_args = 0..=2)]
    words: Vec<String>,
    /// Compare only filters whose names match, as in KEYS: 'seen:*'
    #[arg(long = "match", value_name = "PATTERN")]
    pattern: Option<OsString>,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
    /// Print nothing; only the exit code tells
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = "\
When the flags name a server, it is OLD. --user and --pass are for servers without a login in their
URL.

Compares Bloom and cuckoo filters of RedisBloom, Redis or Valkey with the everbloom module, and
everbloom serve: parameters, windows, number of items, every bit or fingerprint. Where all of these
are equal, it asks both for up to 65 536 random items. It reads both piece by piece, so filters of
any size need less than 150 MB of memory here; filters of valkey-bloom are held in memory. Keys of
other types and expiry are not compared.

Each filter that differs, or that only one server has, gets a line. While somebody adds items,
filters that were equal can look different: compare when nobody adds.

Of a Cluster, run it for each primary as OLD, and again for each primary as NEW.

Exit code: 0 when all filters are equal, 1 when not, or when --match chose none, 2 for an error.

Examples:
  everbloom compare redis://old redis://new:6380
  everbloom compare --match 'seen:*' --json redis://old redis://new | jq .differences";

/// The numbers of keys.
#[derive(Debug, Default, Serialize)]
struct Sums {
    equal: u64,
    different: u64,
    only_old: u64,
    only_new: u64,
}

impl Sums {
    fn findings(&self) -> u64 {
        self.different + self.only_old + self.only_new
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let [old, new] = &args.server.pair::<Url>(&args.words)?;
    let mut comparison = Comparison {
        old: Server::connect(old, &args.server, READABLE)?,
        new: Server::connect(new, &args.server, READABLE)?,
        out: BufWriter::new(io::stdout()),
        json: args.json,
        quiet: args.quiet,
        sums: Sums::default(),
    };
    let pattern = args.pattern.as_ref().map(|it| it.as_encoded_bytes());
    let compared = comparison.compare_all(pattern);
    // When nobody reads on, a difference was found, or all is counted.
    unless_unread(compared.and_then(|()| Ok(comparison.finish()?)))?;
    let sums = &comparison.sums;
    let unmatched = unmatched(pattern, sums.equal + sums.findings());
    if let Some(text) = unmatched.as_ref().filter(|_| !args.quiet) {
        say(text);
    }
    let is_equal = sums.findings() == 0 && unmatched.is_none();
    Ok(ExitCode::from(u8::from(!is_equal)))
}

/// What a comparison of one key found.
#[derive(Debug)]
enum Finding {
    Equal,
    Different(Difference),
    /// What the new server has instead.
    Missing(Content),
    /// The old server has it no more.
    Gone,
    Unreadable(String),
}

/// Both servers. Differences are printed as they are found, because they may not fit into memory.
struct Comparison {
    old: Server,
    new: Server,
    out: BufWriter<io::Stdout>,
    json: bool,
    quiet: bool,
    sums: Sums,
}

impl Comparison {
    fn compare_all(&mut self, pattern: Option<&[u8]>) -> Result<(), Failure> {
        let ended = |failure: Failure| failure.then("\nNot all filters were compared.");
        let mut walk = Walk::new(pattern);
        while let Some(page) = walk.page(&mut self.old).map_err(ended)? {
            for (key, family) in page.filters {
                match self.compare_key(&key, family).map_err(ended)? {
                    Finding::Equal => self.sums.equal += 1,
                    Finding::Gone => {}
                    Finding::Missing(there) => {
                        let at = self.new.name().to_owned();
                        self.sums.only_old += 1;
                        self.write(&key, missing(&at, &there), vec![("missing", "new".into())])?;
                    }
                    Finding::Different(difference) => {
                        let text = difference.describe([self.old.name(), self.new.name()]);
                        self.sums.different += 1;
                        self.write(&key, text, fields(&difference))?;
                    }
                    Finding::Unreadable(why) => {
                        self.sums.different += 1;
                        self.write(&key, format!("cannot be read: {why}"), Vec::new())?;
                    }
                }
            }
        }
        let mut walk = Walk::new(pattern);
        while let Some(page) = walk.page(&mut self.new).map_err(ended)? {
            for (key, family) in page.filters {
                let there = self.old.find(&key).map_err(ended)?;
                if there != Content::Filter(family) {
                    let at = self.old.name().to_owned();
                    self.sums.only_new += 1;
                    self.write(&key, missing(&at, &there), vec![("missing", "old".into())])?;
                }
            }
        }
        Ok(())
    }

    fn compare_key(&mut self, key: &[u8], family: Family) -> Result<Finding, Failure> {
        let Self { old, new, .. } = self;
        old.settle()?;
        let there = new.find(key)?;
        if there != Content::Filter(family) {
            return Ok(Finding::Missing(there));
        }
        match compare(old, new, key, family) {
            Ok(difference) if difference.is_none() => Ok(Finding::Equal),
            Ok(difference) => Ok(Finding::Different(difference)),
            // It may have been deleted or have expired since it was found.
            Err(Failure::Filter(why)) => {
                if old.find(key)? != Content::Filter(family) {
                    return Ok(Finding::Gone);
                }
                match new.find(key)? {
                    there if there == Content::Filter(family) => Ok(Finding::Unreadable(why)),
                    other => Ok(Finding::Missing(other)),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    /// Writes a finding, which is counted: the name, bytes that are not UTF-8 as `\xff`, the text,
    /// and the fields.
    fn write(&mut self, key: &[u8], text: String, fields: Fields) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        if !self.json {
            return writeln!(self.out, "{}: {text}", quoted(key));
        }
        let plain = std::str::from_utf8(key).map(str::to_owned);
        let name = plain.unwrap_or_else(|_| key.escape_ascii().to_string());
        let named = [("key", name.into()), ("text", text.into())];
        let all = named.into_iter().chain(fields);
        let all: Map<_, _> = all.map(|(name, value)| (name.to_owned(), value)).collect();
        let lead = match self.sums.findings() {
            1 => "{\"differences\":[\n",
            _ => ",\n",
        };
        write!(self.out, "{lead}{}", Value::from(all))
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        if self.json {
            let lead = match self.sums.findings() {
                0 => "{\"differences\":[],",
                _ => "\n],",
            };
            // The rest of the object, without its brace.
            let sums = serde_json::to_string(&self.sums)?;
            writeln!(self.out, "{lead}{}", sums.trim_start_matches('{'))?;
        } else {
            let Sums {
                equal,
                different,
                only_old,
                only_new,
            } = self.sums;
            let [equal, different, only_old, only_new] =
                [equal, different, only_old, only_new].map(grouped);
            writeln!(
                self.out,
                "{equal} equal, {different} different, {only_old} only at the old server, \
                 {only_new} only at the new one"
            )?;
        }
        self.out.flush()
    }
}

/// The line for a filter that one server lacks, with what it has instead.
fn missing(at: &str, there: &Content) -> String {
    match there.describe() {
        Some(there) => format!("missing at {at}, which has {there}"),
        None => format!("missing at {at}"),
    }
}

/// What a finding has in JSON beside its text.
type Fields = Vec<(&'static str, Value)>;

/// A difference. Pairs are the old server's value and the new one's.
fn fields(difference: &Difference) -> Fields {
    let mut fields = vec![
        (difference.family.parts(), json!(difference.parts)),
        ("items", json!(difference.items)),
    ];
    match &difference.parameter {
        Some((name, values)) => {
            fields.push(("parameter", (*name).into()));
            fields.push(("values", json!(values)));
        }
        // Only filters with the same parameters are compared further.
        None => {
            let [_, units] = difference.family.units();
            fields.push((units, json!(difference.units)));
            fields.push(("random_items_found", json!(difference.answers)));
        }
    }
    fields
}
