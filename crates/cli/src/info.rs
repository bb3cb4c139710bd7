//! `everbloom info`: what is in a filter file.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use everbloom::{Span, Stats};
use everbloom_plot::label::percent;
use serde_json::{Map, Value};

use crate::description::{Description, Fingerprints};
use crate::failure::Failure;
use crate::filter_file::{FilterFile, Found, broken};
use crate::merge;
use crate::number::{found_rate, grouped, time};
use crate::records::case::Case;
use crate::records::selection::Selection;

/// Say what a filter file holds, and whether it is damaged
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The filter, as `build` and `dedup --state` make it, or of DCSO's bloom, or of Guava
    #[arg(value_name = "FILE.bloom")]
    filter: PathBuf,
    /// Another filter: say whether the two can be merged
    #[arg(value_name = "OTHER.bloom")]
    other: Option<PathBuf>,
    /// Print a JSON object; rates are shares of 1
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
All of the file is read, and its checksums are compared. Filters of DCSO's bloom and of Guava have
none, so only their sizes are compared. Guava does not write down the items, the capacity and the
error rate of a filter: the items are estimated from its bits.

A filter with a window forgets, as that of `dedup --window` and those of BF.RESERVE ... WINDOW. Its
items are those in all generations that are in the file.

Exit code: 0 when the file is whole, 1 when it cannot be merged with OTHER.bloom, 2 when one of
them is damaged, is no filter or cannot be read.

Examples:
  everbloom info seen.bloom
  everbloom info monday.bloom tuesday.bloom";

const OVER: &str =
    "warning     it finds more than it was made for: it has too many items, or has grown too far\n";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (found, selection) = FilterFile::look_at_any(&args.filter)?;
    let mut found = match found {
        Found::Own(filter) => filter.describe(),
        Found::Other(mut other) => other
            .describe()
            .map_err(|reason| broken(&args.filter, other.program(), &*reason))?,
    };
    found.selection = selection;
    let bytes = fs::metadata(&args.filter)?.len();
    let merge = args.other.as_deref();
    let merge = merge
        .map(|other| mergeable(&args.filter, other))
        .transpose()?;
    let text = if args.json {
        found.json(bytes, merge.as_ref())?
    } else {
        found.text(bytes, merge.as_ref())
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(u8::from(matches!(merge, Some(Err(_))))))
}

/// The error rate of the two merged, or why they cannot be.
fn mergeable(one: &Path, other: &Path) -> Result<Result<f64, String>, Failure> {
    match merge::rate_of(one, other) {
        Ok(rate) => Ok(Ok(rate)),
        Err(Failure::Unlike(why)) => Ok(Err(why)),
        Err(failure) => Err(failure),
    }
}

impl Description {
    /// The capacity and the error rate that the filter was made for, if it tells.
    fn made_for(&self) -> Option<(u64, f64)> {
        self.stats.capacity.zip(self.stats.error_rate)
    }

    fn text(&self, bytes: u64, merge: Option<&Result<f64, String>>) -> String {
        let stats = &self.stats;
        let mut text = format!("type        {}", self.kind[1]);
        if let Some((_, variant)) = self.variant {
            text += &format!(", {variant}");
        }
        let now = found_rate(stats.estimated_error_rate);
        let items = grouped(stats.items);
        text += &match stats.capacity.map(grouped) {
            Some(capacity) => format!(
                "\nitems       {items} of {capacity}{}\n",
                self.window.as_ref().map_or("", |_| ", in all generations"),
            ),
            None => format!("\nitems       about {items}\n"),
        };
        text += &match self.made_for() {
            Some((_, rate)) => format!(
                "error rate  {} asked for, {now} expected now\n",
                percent(rate)
            ),
            None => format!("error rate  {now} expected now\n"),
        };
        let fill = stats.fill_ratio * 100.0;
        text += &match &self.fingerprints {
            Some(fingerprints) => fingerprints.text(stats),
            None => format!(
                "fill        {fill:.1} % of {} bits are 1\nhashes      {}\n",
                grouped(stats.bits),
                stats.hashes
            ),
        };
        if self.selection != Selection::default() {
            text += &format!("compared    {}\n", self.selection);
        }
        if let Some(layers) = self.layers {
            text += &format!("layers      {layers}\n");
        }
        if let Some(window) = &self.window {
            let capacity = grouped(window.capacity);
            // Others than `dedup` and the server may have a clock of seconds.
            text += &match window.span {
                Span::Ticks(ticks) => format!(
                    "window      {}, for {capacity} items (if its clock has milliseconds)\n",
                    time(ticks)
                ),
                Span::Items => format!("window      the last {capacity} items\n"),
            };
            let (kept, most) = (window.kept.len(), window.generations + 1);
            text += &format!("generations {kept} of at most {most}\n");
        }
        if self.data > 0 {
            text += &format!("data        {} bytes attached\n", grouped(self.data));
        }
        text += &format!("file        {} bytes\n", grouped(bytes));
        let errs = |(_, rate)| stats.estimated_error_rate > rate;
        if self.is_overfull && self.made_for().is_some_and(errs) {
            text += OVER;
        }
        match merge {
            Some(Ok(rate)) => {
                text += &format!(
                    "merge       yes; then it finds {} of others\n",
                    found_rate(*rate)
                );
            }
            Some(Err(why)) => text += &format!("merge       no: {why}\n"),
            None => {}
        }
        text
    }

    fn json(&self, bytes: u64, merge: Option<&Result<f64, String>>) -> Result<String, Failure> {
        let stats = &self.stats;
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        set("type", self.kind[0].into());
        set("expected_error_rate", stats.estimated_error_rate.into());
        set("fill_ratio", stats.fill_ratio.into());
        set("bits", stats.bits.into());
        set("file_bytes", bytes.into());
        if let Some((name, variant)) = self.variant {
            set(name, variant.into());
        }
        match stats.capacity {
            Some(capacity) => {
                set("items", stats.items.into());
                set("capacity", capacity.into());
            }
            None => set("estimated_items", stats.items.into()),
        }
        if let Some((_, rate)) = self.made_for() {
            set("error_rate", rate.into());
        }
        match (&self.fingerprints, self.layers) {
            (Some(fingerprints), _) => {
                set("fingerprint_bits", fingerprints.bits.into());
                set("slots", fingerprints.slots.into());
                set("tables", fingerprints.tables.into());
                set("expansion", fingerprints.expansion.into());
            }
            (None, layers) => {
                set("hashes", stats.hashes.into());
                match layers {
                    Some(layers) => set("layers", layers.into()),
                    None if self.made_for().is_some() => set("data_bytes", self.data.into()),
                    None => {}
                }
            }
        }
        if let Some(part) = &self.selection.part {
            set("compared", part.as_str().into());
        }
        if self.selection.case == Case::Ignored {
            set("ignores_case", true.into());
        }
        if let Some(window) = &self.window {
            set("window_ticks", window.span.ticks().into());
            set("window_capacity", window.capacity.into());
            set("window_generations", window.generations.into());
            set("generations", window.kept.len().into());
        }
        match merge {
            Some(Ok(rate)) => set("merged_error_rate", (*rate).into()),
            Some(Err(why)) => set("not_mergeable", why.as_str().into()),
            None => {}
        }
        let mut text = serde_json::to_string_pretty(&fields).map_err(io::Error::from)?;
        text.push('\n');
        Ok(text)
    }
}

impl Fingerprints {
    fn text(&self, stats: &Stats) -> String {
        let fill = stats.fill_ratio * 100.0;
        let mut text = format!(
            "fill        {fill:.1} % of {} slots are in use\n",
            grouped(self.slots)
        );
        text += &match self.tables {
            1 => format!("slots       {} bits each\n", self.bits),
            _ => format!("slots       {} bits each in the first table\n", self.bits),
        };
        if stats.items > 0 {
            let bits = stats.bits as f64 / stats.items as f64;
            text += &format!("memory      {bits:.1} bits an item\n");
        }
        let growth = if self.expansion == 0 {
            ", and it does not grow"
        } else {
            ""
        };
        text += &format!("tables      {}{growth}\n", self.tables);
        text
    }
}
