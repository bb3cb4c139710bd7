//! `everbloom info`: what is in a filter file.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use everbloom::{Layout, Stats};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::filter::Filter;
use crate::filter_file::{FilterFile, FilterFileError, Found};
use crate::number::percent;
use crate::other::{Figures, Program};

/// Say what a filter file holds, and whether it is damaged
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The filter, as `build` and `dedup --state` make it, or of DCSO's bloom, or of Guava
    #[arg(value_name = "FILE.bloom")]
    filter: PathBuf,
    /// Print a JSON object; rates are shares of 1
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
All of the file is read, and its checksums are compared. Filters of DCSO's bloom and of Guava have
none, so only their sizes are compared. Guava does not write down the items, the capacity and the
error rate of a filter: the items are estimated from its bits.

Exit code: 0 when the file is whole, 2 when it is damaged, or is no filter, or cannot be read.";

const OVER: &str =
    "warning     it finds more than it was made for, because it holds too many items\n";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let found = FilterFile::look_at_any(&args.filter)?;
    let bytes = fs::metadata(&args.filter)?.len();
    let text = match found {
        Found::Own(filter) if args.json => as_json(own_json(&filter, bytes))?,
        Found::Own(filter) => as_text(&filter, bytes),
        Found::Other(mut other) => {
            let figures = other
                .figures()
                .map_err(|reason| FilterFileError::other(&args.filter, other.program(), reason))?;
            if args.json {
                as_json(other_json(&figures, bytes))?
            } else {
                other_text(&figures, bytes)
            }
        }
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn names(filter: &Filter) -> (&'static str, &'static str) {
    let kind = if filter.grows() { "growing" } else { "fixed" };
    let layout = match filter.layout() {
        Layout::Blocked => "blocked",
        Layout::Classic => "classic",
    };
    (kind, layout)
}

fn as_text(filter: &Filter, bytes: u64) -> String {
    let (kind, layout) = names(filter);
    let stats = filter.stats();
    let now = stats.estimated_error_rate;
    let mut text = format!(
        "type        {kind}, {layout}\n\
         items       {} of {}\n\
         error rate  {} asked for, {} expected now\n\
         fill        {:.1} % of {} bits are 1\n\
         hashes      {}\n\
         layers      {}\n\
         file        {bytes} bytes\n",
        filter.len(),
        filter.capacity(),
        percent(filter.error_rate()),
        percent(now),
        stats.fill_ratio * 100.0,
        stats.bits,
        stats.hashes,
        filter.layers(),
    );
    if now > filter.error_rate() && filter.is_overfull() {
        text += OVER;
    }
    text
}

/// The same of a filter of another program.
fn other_text(figures: &Figures, bytes: u64) -> String {
    let mut text = format!("type        {}", figures.program);
    if let Some(strategy) = figures.strategy {
        text += &format!(", {strategy}");
    }
    let stats = figures.stats;
    let now = percent(stats.estimated_error_rate);
    match made_for(&stats) {
        Some((capacity, rate)) => {
            text += &format!("\nitems       {} of {capacity}\n", stats.items);
            text += &format!(
                "error rate  {} asked for, {now} expected now\n",
                percent(rate)
            );
        }
        None => {
            text += &format!("\nitems       about {}\n", stats.items);
            text += &format!("error rate  {now} expected now\n");
        }
    }
    text += &format!(
        "fill        {:.1} % of {} bits are 1\n\
         hashes      {}\n",
        stats.fill_ratio * 100.0,
        stats.bits,
        stats.hashes,
    );
    if figures.data > 0 {
        text += &format!("data        {} bytes attached\n", figures.data);
    }
    text += &format!("file        {bytes} bytes\n");
    let is_over = |(capacity, rate)| stats.items > capacity && stats.estimated_error_rate > rate;
    if made_for(&stats).is_some_and(is_over) {
        text += OVER;
    }
    text
}

/// The capacity and the error rate that the filter was made for, if it tells.
fn made_for(stats: &Stats) -> Option<(u64, f64)> {
    stats.capacity.zip(stats.error_rate)
}

fn own_json(filter: &Filter, bytes: u64) -> Value {
    let (kind, layout) = names(filter);
    let stats = filter.stats();
    json!({
        "type": kind,
        "layout": layout,
        "items": filter.len(),
        "capacity": filter.capacity(),
        "error_rate": filter.error_rate(),
        "expected_error_rate": stats.estimated_error_rate,
        "fill_ratio": stats.fill_ratio,
        "bits": stats.bits,
        "hashes": stats.hashes,
        "layers": filter.layers(),
        "file_bytes": bytes,
    })
}

fn other_json(figures: &Figures, bytes: u64) -> Value {
    let kind = match figures.program {
        Program::Dcso => "dcso",
        Program::Guava => "guava",
    };
    let stats = figures.stats;
    let mut document = json!({
        "type": kind,
        "expected_error_rate": stats.estimated_error_rate,
        "fill_ratio": stats.fill_ratio,
        "bits": stats.bits,
        "hashes": stats.hashes,
        "file_bytes": bytes,
    });
    let mut set = |name: &str, value: Value| {
        if let Some(fields) = document.as_object_mut() {
            fields.insert(name.to_owned(), value);
        }
    };
    if let Some(strategy) = figures.strategy {
        set("strategy", strategy.into());
    }
    match made_for(&stats) {
        Some((capacity, rate)) => {
            set("items", stats.items.into());
            set("capacity", capacity.into());
            set("error_rate", rate.into());
            set("data_bytes", figures.data.into());
        }
        None => set("estimated_items", stats.items.into()),
    }
    document
}

fn as_json(document: Value) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
    text.push('\n');
    Ok(text)
}
