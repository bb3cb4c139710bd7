//! `everbloom compare`: whether two servers have the same filters.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::client::{ServerArgs, Url};
use crate::display::quoted;
use crate::failure::Failure;
use crate::number::grouped;
use crate::servers::difference::{Difference, Side, compare};
use crate::servers::dump::READABLE;
use crate::servers::family::Family;
use crate::servers::server::{Kind, Server, Trouble};
use crate::servers::walk::Walk;

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
everbloom serve: parameters, number of items, every bit or fingerprint. It reads both piece by
piece, so filters of any size need less than 150 MB of memory here; filters of valkey-bloom are held
in memory. Keys of other types and expiry are not compared.

Each filter that differs, or that only one server has, gets a line. While somebody adds items,
filters that were equal can look different: compare when nobody adds.

Of a Cluster, run it for each primary as OLD, and again for each primary as NEW.

Exit code: 0 when all filters are equal, 1 when not, 2 for an error.

Examples:
  everbloom compare redis://old redis://new:6380
  everbloom compare --match 'seen:*' --json redis://old redis://new | jq .differences";

/// What was found.
#[derive(Debug, Default, Serialize)]
struct Tally {
    equal: u64,
    different: u64,
    only_old: u64,
    only_new: u64,
}

impl Tally {
    fn all_equal(&self) -> bool {
        self.different == 0 && self.only_old == 0 && self.only_new == 0
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let [old, new] = args.server.pair::<Url>(&args.words)?;
    let mut old = Server::connect(&old, &args.server)?;
    old.must_know(READABLE)?;
    let mut new = Server::connect(&new, &args.server)?;
    new.must_know(READABLE)?;
    let mut report = Report::new(args);
    let mut tally = Tally::default();
    compare_all(&mut old, &mut new, args, &mut report, &mut tally)?;
    report.finish(&tally)?;
    Ok(ExitCode::from(u8::from(!tally.all_equal())))
}

fn compare_all(
    old: &mut Server,
    new: &mut Server,
    args: &Args,
    report: &mut Report,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let ended = |trouble: Trouble| trouble.into_failure("\nNot all filters were compared.");
    let pattern = args
        .pattern
        .as_ref()
        .map(|pattern| pattern.as_encoded_bytes());
    let names = [old.name().to_owned(), new.name().to_owned()];
    let mut walk = Walk::new(pattern);
    while let Some(page) = walk.page(old).map_err(ended)? {
        for (key, family) in page.filters {
            match compare_key(old, new, &key, family).map_err(ended)? {
                Finding::Equal => tally.equal += 1,
                Finding::Gone => {}
                Finding::Missing(there) => {
                    tally.only_old += 1;
                    report.missing(&key, &names, 1, &there)?;
                }
                Finding::Different(difference) => {
                    tally.different += 1;
                    report.different(&key, &names, &difference)?;
                }
                Finding::Unreadable(why) => {
                    tally.different += 1;
                    report.unreadable(&key, &why)?;
                }
            }
        }
    }
    let mut walk = Walk::new(pattern);
    while let Some(page) = walk.page(new).map_err(ended)? {
        for (key, family) in page.filters {
            let there = old.find(&key).map_err(ended)?;
            if there != Kind::Filter(family) {
                tally.only_new += 1;
                report.missing(&key, &names, 0, &there)?;
            }
        }
    }
    Ok(())
}

/// What a comparison of one key found.
#[derive(Debug)]
enum Finding {
    Equal,
    Different(Difference),
    /// What the new server has instead.
    Missing(Kind),
    /// The old server has it no more.
    Gone,
    Unreadable(String),
}

fn compare_key(
    old: &mut Server,
    new: &mut Server,
    key: &[u8],
    family: Family,
) -> Result<Finding, Trouble> {
    old.settle()?;
    let there = new.find(key)?;
    if there != Kind::Filter(family) {
        return Ok(Finding::Missing(there));
    }
    let mut first = Side { server: old, key };
    let mut second = Side { server: new, key };
    match compare(&mut first, &mut second, family) {
        Ok(difference) if difference.is_none() => Ok(Finding::Equal),
        Ok(difference) => Ok(Finding::Different(difference)),
        // It may have been deleted or have expired since it was found.
        Err(Trouble::Filter(why)) => {
            if old.find(key)? != Kind::Filter(family) {
                return Ok(Finding::Gone);
            }
            match new.find(key)? {
                there if there == Kind::Filter(family) => Ok(Finding::Unreadable(why)),
                other => Ok(Finding::Missing(other)),
            }
        }
        Err(trouble) => Err(trouble),
    }
}

/// Writes findings as they come: there may be more than memory holds.
struct Report {
    out: BufWriter<io::Stdout>,
    json: bool,
    quiet: bool,
    /// The number of findings so far.
    count: u64,
}

impl Report {
    fn new(args: &Args) -> Self {
        Self {
            out: BufWriter::new(io::stdout()),
            json: args.json,
            quiet: args.quiet,
            count: 0,
        }
    }

    /// A filter that one server does not have. `which` is that server's number.
    fn missing(
        &mut self,
        key: &[u8],
        names: &[String; 2],
        which: usize,
        there: &Kind,
    ) -> io::Result<()> {
        let name = names.get(which).map_or("", String::as_str);
        let text = match there.describe() {
            Some(there) => format!("missing at {name}, which has {there}"),
            None => format!("missing at {name}"),
        };
        let side = if which == 0 { "old" } else { "new" };
        self.write(key, text, |finding| finding.missing = Some(side))
    }

    fn different(
        &mut self,
        key: &[u8],
        names: &[String; 2],
        difference: &Difference,
    ) -> io::Result<()> {
        let [old, new] = names;
        let text = difference.describe([old, new]);
        self.write(key, text, |finding| finding.set(difference))
    }

    fn unreadable(&mut self, key: &[u8], why: &str) -> io::Result<()> {
        self.write(key, format!("cannot be read: {why}"), |_| {})
    }

    fn write(
        &mut self,
        key: &[u8],
        text: String,
        fill: impl FnOnce(&mut JsonFinding),
    ) -> io::Result<()> {
        self.count += 1;
        if self.quiet {
            return Ok(());
        }
        if !self.json {
            return writeln!(self.out, "{}: {text}", quoted(key));
        }
        let mut finding = JsonFinding::new(key, text);
        fill(&mut finding);
        let lead = if self.count == 1 {
            "{\"differences\":[\n"
        } else {
            ",\n"
        };
        self.out.write_all(lead.as_bytes())?;
        serde_json::to_writer(&mut self.out, &finding)?;
        Ok(())
    }

    fn finish(&mut self, tally: &Tally) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        if self.json {
            let lead: &[u8] = match self.count {
                0 => b"{\"differences\":[],",
                _ => b"\n],",
            };
            self.out.write_all(lead)?;
            // The rest of the object, without its brace.
            let sums = serde_json::to_string(tally)?;
            writeln!(self.out, "{}", sums.trim_start_matches('{'))?;
        } else {
            let Tally {
                equal,
                different,
                only_old,
                only_new,
            } = *tally;
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

/// A finding as JSON. Pairs are the old server's value and the new one's.
#[derive(Debug, Serialize)]
struct JsonFinding {
    /// The name; bytes that are not UTF-8 as `\xff`.
    key: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<[String; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<[usize; 2]>,
    /// Those of a cuckoo filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<[usize; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<[u64; 2]>,
    /// The numbers of bits that only one of them has.
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<[u64; 2]>,
    /// The numbers of fingerprints that only one of them has.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprints: Option<[u64; 2]>,
}

impl JsonFinding {
    fn new(key: &[u8], text: String) -> Self {
        let plain = std::str::from_utf8(key).map(str::to_owned);
        Self {
            key: plain.unwrap_or_else(|_| key.escape_ascii().to_string()),
            text,
            missing: None,
            parameter: None,
            values: None,
            layers: None,
            tables: None,
            items: None,
            bits: None,
            fingerprints: None,
        }
    }

    fn set(&mut self, difference: &Difference) {
        let (parts, units) = match difference.family {
            Family::Bloom => (&mut self.layers, &mut self.bits),
            Family::Cuckoo => (&mut self.tables, &mut self.fingerprints),
        };
        *parts = Some(difference.parts);
        self.items = Some(difference.items);
        match &difference.parameter {
            Some(parameter) => {
                self.parameter = Some(parameter.name);
                self.values = Some(parameter.values.clone());
            }
            // Only filters with the same parameters are compared further.
            None => *units = Some(difference.units),
        }
    }
}
