//! The benchmarks: everbloom against other libraries, and `everbloom serve` against redis-server.
//!
//! `library` times the filters themselves; `server` starts both servers and puts the load of
//! `everbloom bench` on them in turn. Both print markdown and write it, with the raw figures as
//! JSON, to results/DATE-CPU. docs/benchmarks.md says what they show.

mod concurrency;
mod library;
mod machine;
mod plot;
mod server;
mod stats;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use peak_alloc::PeakAlloc;

/// Counts the heap: some rivals do not tell their size.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const USAGE: &str = "\
Usage: everbloom-benches library|server|concurrency|plot [--at SETTING] [--smoke] [--everbloom PROGRAM] [--results FOLDER]

  library      everbloom and other crates: time, false positives, bits per item
  server       everbloom serve and redis-server under the load of everbloom bench
  concurrency  one filter, one and two threads
  plot         what library and server have written to --results, as SVG in docs/benchmarks

  --at ITEMS,RATE,BYTES  of the libraries' settings only this, such as 50000000,0.01,16
  --smoke              small and short: does it work?
  --everbloom PROGRAM  the command to start [default: the repository's release build]
  --results FOLDER     where DATE-CPU is made [default: results beside this crate]";

/// The command line.
struct Options {
    smoke: bool,
    /// The one setting of the libraries that is wanted.
    at: Option<library::Setting>,
    everbloom: PathBuf,
    results: PathBuf,
}

fn main() -> Result<()> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| here.join("../target"), PathBuf::from);
    let mut options = Options {
        smoke: false,
        at: None,
        everbloom: target.join("release/everbloom"),
        results: here.join("results"),
    };
    let mut what = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), &what) {
            ("--smoke", _) => options.smoke = true,
            ("--at", _) => {
                let setting = args.next().unwrap_or_default();
                options.at = Some(library::Setting::parse(&setting).context(USAGE)?);
            }
            ("--everbloom", _) => options.everbloom = args.next().unwrap_or_default().into(),
            ("--results", _) => options.results = args.next().unwrap_or_default().into(),
            ("library" | "server" | "concurrency" | "plot", None) => what = Some(arg),
            _ => bail!("{USAGE}"),
        }
    }
    // Servers are started in folders of their own.
    options.everbloom = std::path::absolute(&options.everbloom)?;
    match what.as_deref() {
        Some("library") => library::run(&options),
        Some("server") => server::run(&options),
        Some("plot") => plot::run(&options.results, &here.join("../docs/benchmarks")),
        Some("concurrency") => concurrency::run(&options),
        _ => bail!("{USAGE}"),
    }
}
