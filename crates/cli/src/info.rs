//! `everbloom info`: what is in a filter file.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use everbloom::Layout;
use serde_json::json;

use crate::failure::Failure;
use crate::filter::Filter;
use crate::filter_file::FilterFile;
use crate::number::percent;

/// Say what a filter file holds, and whether it is damaged
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The filter, as `build` and `dedup --state` make it
    #[arg(value_name = "FILE.bloom")]
    filter: PathBuf,
    /// Print a JSON object; rates are shares of 1
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
All of the file is read, and its checksums are compared.

Exit code: 0 when the file is whole, 2 when it is damaged, or is no filter, or cannot be read.";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let filter = FilterFile::look(&args.filter)?;
    let bytes = fs::metadata(&args.filter)?.len();
    let text = if args.json {
        as_json(&filter, bytes)?
    } else {
        as_text(&filter, bytes)
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
    let now = filter.estimated_error_rate();
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
        filter.fill_ratio() * 100.0,
        filter.bits(),
        filter.hashes(),
        filter.layers(),
    );
    if now > filter.error_rate() && filter.is_overfull() {
        text += "warning     it finds more than it was made for, because it holds too many items\n";
    }
    text
}

fn as_json(filter: &Filter, bytes: u64) -> Result<String, Failure> {
    let (kind, layout) = names(filter);
    let document = json!({
        "type": kind,
        "layout": layout,
        "items": filter.len(),
        "capacity": filter.capacity(),
        "error_rate": filter.error_rate(),
        "expected_error_rate": filter.estimated_error_rate(),
        "fill_ratio": filter.fill_ratio(),
        "bits": filter.bits(),
        "hashes": filter.hashes(),
        "layers": filter.layers(),
        "file_bytes": bytes,
    });
    let mut text = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
    text.push('\n');
    Ok(text)
}
