//! `everbloom serve`: the server, configured as redis-server is.

mod log;
mod manager;
mod signals;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use everbloom_server::Server;
use everbloom_server::config::{Loaded, load};

use crate::failure::Failure;
use log::Log;
use signals::Signals;

/// Run a server that speaks the Redis protocol and the BF.* commands
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "everbloom serve [CONFIG] [--NAME VALUE...]...",
    after_help = SETTINGS
)]
pub(crate) struct Args {
    /// A configuration file, then settings that override it
    #[arg(
        value_name = "CONFIG|--NAME VALUE",
        num_args = 0..,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

const SETTINGS: &str = "\
Settings have the names and the meaning they have in redis.conf, in the file as `port 7000`, here
as `--port 7000`. The main ones, with their defaults:

  port 6379                    the TCP port; 0 lets the system choose
  bind 127.0.0.1 -::1          the addresses to listen on; a dash lets an address be missing
  tls-port 0                   the TCP port of TLS; 0 is none
  unixsocket \"\"                the path of a Unix socket; empty is none
  metrics-port 0               the HTTP port of /metrics, /health and /ready; 0 is none
  requirepass \"\"               the password that clients must AUTH with
  protected-mode yes           without a password, refuse clients from other machines
  maxclients 10000             connections at a time
  timeout 0                    seconds until an idle client is disconnected; 0 is never
  databases 16                 databases for SELECT
  io-threads 0                 threads that serve connections; 0 is one a core
  maxmemory 0                  refuse writes above so much memory, such as 4gb; 0 is no limit
  proto-max-bulk-len 512mb     the longest argument of a command
  loglevel notice              debug, verbose, notice or warning
  logfile \"\"                   the log; SIGHUP reopens it; empty is standard output
  log-format text              text, or json: an object a line

  dir everbloom-data           the directory of snapshots and of the log of changes
  appendonly yes               log every change, and read the log back at the start
  appendfsync everysec         force the log to the disk: always, everysec or no
  save 3600 1 300 100 60 10000 a snapshot after so many seconds with so many changes; \"\" is none

  bf-error-rate 0.01           the error rate of filters that BF.ADD creates
  bf-initial-size 100          their capacity
  bf-expansion-factor 2        how many times larger each further layer is; 0 is not to grow
  bf-default-layout classic    classic, as RedisBloom, or blocked: faster, and exact when grown

Examples:
  everbloom serve
  everbloom serve everbloom.conf --port 7000
  everbloom serve --bind 0.0.0.0 --requirepass 'correct horse' --maxmemory 4gb";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let loaded = load(&args.words).map_err(|error| Failure::Server(error.to_string()))?;
    let log = Log::start(&loaded.settings)?;
    let outcome = serve(loaded, &log);
    log.flush();
    outcome
}

/// Runs the server until it ends.
fn serve(loaded: Loaded, log: &Log) -> Result<ExitCode, Failure> {
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    // This comes before the start of the server, so that no signal is lost.
    let signals = Signals::catch()?;
    let running =
        Server::start(loaded.settings).map_err(|error| Failure::Server(error.to_string()))?;
    greet(running.server());
    signals.attend(Arc::clone(running.server()), log.clone())?;
    running.wait_until_loaded();
    if !running.server().store.health.is_loading() {
        tracing::info!("ready");
        manager::ready();
    }
    match running.wait() {
        Ok(()) => tracing::info!("stopped"),
        // The log says why. Who started the server sees that too, unless the log is elsewhere.
        Err(why) if log.is_file() => return Err(Failure::Server(why)),
        Err(_) => return Ok(ExitCode::from(1)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Logs the version, the addresses, the process and the number of threads.
fn greet(server: &Server) {
    let entrances: Vec<String> = server.entrances().iter().map(ToString::to_string).collect();
    tracing::info!(
        "everbloom {} listens on {}, process {}, {} threads",
        env!("CARGO_PKG_VERSION"),
        entrances.join(" and "),
        std::process::id(),
        server.workers.len()
    );
}
