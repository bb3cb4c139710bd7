//! `everbloom plan`: how large a filter must be, or how much fits into some memory.

mod json;
mod pictures;
mod question;
mod sizes;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;

use everbloom::sizing::BlockedSize;

use crate::failure::Failure;
use crate::number;
use crate::plot::{self, Destination};
use pictures::Picture;
use question::{Plan, Question};

/// Plan a filter: memory, hashes and error rate, in both layouts and in RedisBloom
#[derive(clap::Args, Debug)]
#[command(after_help = HELP, allow_negative_numbers = true)]
pub(crate) struct Args {
    /// How many items the filter will hold: 9e8, 900M, 3*10^8
    #[arg(value_name = "CAPACITY", value_parser = capacity)]
    items: Option<u64>,
    /// How often it may say "yes" for items that were never added: 0.001, 1/1000, 0.1%
    #[arg(value_name = "ERROR", value_parser = number::rate)]
    error: Option<f64>,
    /// The same as CAPACITY
    #[arg(short, long, value_name = "N", value_parser = number::items, conflicts_with = "items")]
    capacity: Option<u64>,
    /// The same as ERROR
    #[arg(
        short,
        long,
        alias = "rate",
        value_name = "RATE",
        value_parser = number::rate,
        conflicts_with = "error"
    )]
    error_rate: Option<f64>,
    /// The most memory the filter may take: 2G, 512MiB
    #[arg(long, value_name = "BYTES", value_parser = number::memory)]
    memory: Option<u64>,
    /// The same in bits (m): 9585059, 8Mi. They are rounded up to a multiple of 64
    #[arg(short = 'm', long, value_parser = number::items, conflicts_with = "memory")]
    bits: Option<u64>,
    /// The hashes per item (k), from 2 to 32 [default: the best number]
    #[arg(
        short = 'k',
        long,
        value_name = "COUNT",
        value_parser = number::whole::<u32>(BlockedSize::MIN_HASHES.into(), BlockedSize::MAX_HASHES.into()),
        conflicts_with = "window"
    )]
    hashes: Option<u32>,
    /// Plan for a filter that forgets, too: CAPACITY items come in this time, such as 12h, 7d or 4w
    #[arg(long, value_name = "TIME", value_parser = number::duration)]
    window: Option<u64>,
    /// Show the error rate of a filter that holds up to four times its capacity
    #[arg(long)]
    overfill: bool,
    /// The length of an item, to compare with a set of strings
    #[arg(long, value_name = "BYTES", value_parser = number::memory, default_value = "64")]
    item_bytes: u64,
    /// Draw a picture into an SVG file; `-` draws it in the terminal
    #[arg(long, value_name = "FILE", value_parser = plot::destination)]
    plot: Option<Destination>,
    /// What the picture shows; without --plot it is drawn in the terminal
    #[arg(long, value_name = "WHAT", value_enum)]
    picture: Option<Picture>,
    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Give two of capacity, error rate and memory (or bits); plan finds the third.

  everbloom plan 900M 0.1%                     how much memory?
  everbloom plan -e 0.1% --memory 512M         how many items?
  everbloom plan -c 1e9 --memory 2G            what is the error rate?
  everbloom plan -c 1e6 -m 8Mi -k 5            what is the error rate with 8 Mi bits and 5 hashes?
  everbloom plan 1e6 1% -k 3                   how much memory with 3 hashes?
  everbloom plan 1e6 1% --overfill             and when it holds more than that?
  everbloom plan 1e6 1% --window 7d            and if it forgets what is a week old?
  everbloom plan 1e6 1% --picture memory       memory against error rate, in the terminal
  everbloom plan 1e6 1% --plot rates.svg       the error rate while it fills, as a picture

With --hashes there are only filters that do not grow: others choose the number themselves.

Numbers may have suffixes, `*`, `/` and `^`. K, M, G, T and P are powers of 1000; Ki, Mi, Gi, Ti and
Pi are powers of 1024. Put a number with `*` or spaces in quotes.

`may grow` is a filter that adds layers when it is full: its first layer reserves a part of the
error rate for them, so it needs more bits. RedisBloom's figures are those of BF.RESERVE.

Exit code: 0, or 2 for an error, also when nothing fits.";

/// Reads CAPACITY, which is easily confused with ERROR.
fn capacity(text: &str) -> Result<u64, String> {
    number::items(text).map_err(|error| match number::rate(text) {
        Ok(_) => "this is an error rate: order swapped? The capacity comes first".into(),
        Err(_) => error,
    })
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let destination = match (&args.plot, args.picture) {
        (Some(destination), _) => Some(destination.clone()),
        (None, picture) => picture.map(|_| Destination::Terminal),
    };
    if args.json && destination == Some(Destination::Terminal) {
        return Err(Failure::other(
            "JSON and a picture cannot share the output: draw into a file with --plot FILE",
        ));
    }
    let question = Question {
        capacity: args.items.or(args.capacity),
        rate: args.error.or(args.error_rate),
        memory: args.memory.or(args.bits.map(|bits| bits.div_ceil(64) * 8)),
        hashes: args.hashes,
    };
    let plan = Plan::new(question, args.item_bytes, args.overfill, args.window)?;
    let text = if args.json {
        json::render(&plan)?
    } else {
        table::render(&plan)
    };
    io::stdout().write_all(text.as_bytes())?;
    if let Some(destination) = destination {
        if destination == Destination::Terminal {
            io::stdout().write_all(b"\n")?;
        }
        let picture = args.picture.unwrap_or(Picture::Items);
        plot::draw(&picture.chart(&plan), &destination)?;
    }
    Ok(ExitCode::SUCCESS)
}
