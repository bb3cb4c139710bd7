//! The benchmarks: everbloom against other libraries, `everbloom serve` against redis-server, and
//! the module against its host.
//!
//! `library` times the filters themselves. `server` and `module` start servers and run `load`
//! against them in turn; `client` uses everbloom-client. All print markdown. They write it to
//! results/DATE-CPU, with the raw figures as JSON. docs/benchmarks.md says what they show.

mod client;
mod concurrency;
mod cpu;
mod entrances;
mod fills;
mod growth;
mod latency;
mod library;
mod load;
mod machine;
mod pauses;
mod plot;
mod server;
mod stats;

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use everbloom::host::Instructions;
use peak_alloc::PeakAlloc;

/// Counts the heap, because some rivals do not tell their size.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const USAGE: &str = "\
Usage: everbloom-benches library|server|module|client|concurrency|entrances|fills|growth
       |latency|pauses|plot|lessons [OPTION...]
       everbloom-benches load --command COMMAND [OPTION...]

  library      everbloom and other crates: time, false positives, bits per item
  server       everbloom serve and redis-server under load
  module       the module in redis-server, beside that one's own commands and everbloom serve
  client       a filter in a bitmap, from everbloom-client and as the recipes do it
  concurrency  one filter, one and two threads
  entrances    what TLS, a Unix socket and metrics cost, beside redis-server
  fills        memory and lookups of a large filter that is filled by and by
  growth       filters that grew, by several expansions, beside reserved ones
  latency      the time of single requests that come by a schedule, beside redis-server
  pauses       what others notice while something long is done, beside redis-server
  load         one load on one running server, as JSON
  plot         what library and server have written to --results, as SVG in docs/benchmarks
  lessons      docs/guide/principle.svg and table.svg: how a filter works, and its error rates

  --at ITEMS,RATE,BYTES  of the libraries' settings only this, such as 50000000,0.01,16
  --only NAME          of the libraries, or the servers' lines, only those whose names contain this;
                       may be repeated
  --instructions NAME  what the filters of this process use: portable, avx2, avx512 or neon
                       [default: the fastest that the processor has]
  --smoke              small and short: does it work?
  --everbloom PROGRAM  the command to start [default: the repository's release build]
  --module FILE        the module to load [default: the repository's release build]
  --redis-server PROGRAM
                       the peer, and the host of the module; may be valkey-server
                       [default: redis-server]
                       EVERBLOOM_VALKEY_BLOOM=FILE puts that module beside ours, in the same host
  --redisbloom FILE    its module, for `latency` [default: EVERBLOOM_REDISBLOOM, or without it]
  --results FOLDER     where DATE-CPU is made [default: results beside this crate]";

/// The command line.
struct Options {
    smoke: bool,
    /// The only setting of the libraries to measure, if one is given.
    at: Option<library::Setting>,
    /// Parts of the names of the libraries or lines to measure; all when there are none.
    only: Vec<String>,
    everbloom: PathBuf,
    module: PathBuf,
    redis_server: PathBuf,
    redisbloom: Option<PathBuf>,
    results: PathBuf,
}

impl Options {
    /// Whether a library or a line of this name is measured.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// Lets the filters use the instructions of this name.
fn select(name: &str) -> Result<()> {
    let named = Instructions::available().find(|set| set.name() == name);
    let is_selected = named.is_some_and(Instructions::select);
    ensure!(is_selected, "this processor does not have {name}");
    Ok(())
}

fn main() -> Result<()> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| here.join("../target"), PathBuf::from);
    let mut options = Options {
        smoke: false,
        at: None,
        only: Vec::new(),
        everbloom: target.join("release/everbloom"),
        module: target.join(format!("release/{DLL_PREFIX}everbloom_module{DLL_SUFFIX}")),
        redis_server: "redis-server".into(),
        redisbloom: std::env::var_os("EVERBLOOM_REDISBLOOM").map(PathBuf::from),
        results: here.join("results"),
    };
    let mut what = None;
    let mut args = std::env::args().skip(1);
    if std::env::args().nth(1).as_deref() == Some("load") {
        return load::run(&args.skip(1).collect::<Vec<_>>());
    }
    while let Some(arg) = args.next() {
        match (arg.as_str(), &what) {
            ("--smoke", _) => options.smoke = true,
            ("--at", _) => {
                let setting = args.next().unwrap_or_default();
                options.at = Some(library::Setting::parse(&setting).context(USAGE)?);
            }
            ("--only", _) => options.only.push(args.next().context(USAGE)?),
            ("--instructions", _) => select(&args.next().context(USAGE)?)?,
            ("--everbloom", _) => options.everbloom = args.next().unwrap_or_default().into(),
            ("--module", _) => options.module = args.next().unwrap_or_default().into(),
            ("--redis-server", _) => options.redis_server = args.next().unwrap_or_default().into(),
            ("--redisbloom", _) => options.redisbloom = Some(args.next().context(USAGE)?.into()),
            ("--results", _) => options.results = args.next().unwrap_or_default().into(),
            (
                "library" | "server" | "module" | "client" | "concurrency" | "entrances" | "fills"
                | "growth" | "latency" | "pauses" | "plot" | "lessons",
                None,
            ) => what = Some(arg),
            _ => bail!("{USAGE}"),
        }
    }
    // Servers start in other folders, so the paths must be absolute.
    options.everbloom = std::path::absolute(&options.everbloom)?;
    options.module = std::path::absolute(&options.module)?;
    options.redisbloom = match options.redisbloom {
        Some(file) => Some(std::path::absolute(file)?),
        None => None,
    };
    if options.redis_server.components().count() > 1 {
        options.redis_server = std::path::absolute(&options.redis_server)?;
    }
    match what.as_deref() {
        Some("library") => library::run(&options),
        Some("server") => server::run(&options, server::What::Server),
        Some("module") => server::run(&options, server::What::Module),
        Some("client") => client::run(&options),
        Some("plot") => plot::run(&options.results, &here.join("../docs/benchmarks")),
        Some("lessons") => plot::lessons(&here.join("../docs/guide")),
        Some("fills") => fills::run(&options),
        Some("growth") => growth::run(&options),
        Some("entrances") => entrances::run(&options),
        Some("latency") => latency::run(&options),
        Some("pauses") => pauses::run(&options),
        Some("concurrency") => concurrency::run(&options),
        _ => bail!("{USAGE}"),
    }
}
