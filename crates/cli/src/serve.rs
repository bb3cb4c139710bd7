//! `everbloom serve`: the server, configured as redis-server is.

mod log;
mod signals;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use everbloom::host::memory;
use everbloom_server::Server;
use everbloom_server::config::{Loaded, load};
use sd_notify::NotifyState;

use crate::failure::{Failure, say};
use log::Log;

/// Run a server that speaks the Redis protocol and the BF.* commands
#[derive(clap::Args, Debug)]
#[command(override_usage = "everbloom serve [CONFIG] [--NAME VALUE...]...", after_help = SETTINGS)]
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
  bind 127.0.0.1 -::1          addresses to listen on; one after a dash may be unavailable
  tls-port 0                   the TCP port for TLS; 0 means none
  unixsocket \"\"                the path of a Unix socket; empty means none
  metrics-port 0               the HTTP port of the page, /metrics, /health and /ready; 0 means none
  requirepass \"\"               the password for AUTH
  protected-mode yes           refuse clients from other machines while there is no password
  maxclients 10000             maximum number of connected clients
  timeout 0                    disconnect clients that were idle for so many seconds; 0 means never
  databases 16                 number of databases
  io-threads 0                 threads that serve connections; 0 means one per core
  maxmemory 0                  refuse writes above this much memory, such as 4gb; 0 means no limit
  proto-max-bulk-len 512mb     maximum length of an argument
  loglevel notice              debug, verbose, notice or warning
  logfile \"\"                   write log lines to this file; empty means standard output
  log-format text              text, or json: one object per line

  dir everbloom-data           the directory of the snapshot and the log
  appendonly yes               log every change, and load the log at the start
  appendfsync everysec         force the log to the disk: always, everysec or no
  save 3600 1 300 100 60 10000 save a snapshot after SECONDS if there were CHANGES; \"\" means never

  bf-error-rate 0.01           error rate of filters that BF.ADD creates
  bf-initial-size 100          capacity of these filters
  bf-expansion-factor 2        how many times larger each further layer is; 0 disables growth
  bf-default-layout classic    classic (RedisBloom's) or blocked (faster, keeps its rate)

Exit code: 0 after SHUTDOWN, SIGTERM or SIGINT, 1 when data could not be loaded or saved, 2 when
the server could not start. SHUTDOWN does not stop the server while its snapshot fails. If no log
holds the data, the first SIGTERM or SIGINT does not either; a second signal does.

Examples:
  everbloom serve
  everbloom serve everbloom.conf --port 7000
  everbloom serve --bind 0.0.0.0 --requirepass 'correct horse' --maxmemory 4gb";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let loaded = load(&args.words).map_err(|error| Failure::Other(error.to_string()))?;
    let log = Log::start(&loaded.settings)?;
    let outcome = serve(loaded, &log);
    log.flush();
    outcome
}

/// Runs the server until it ends.
fn serve(loaded: Loaded, log: &Log) -> Result<ExitCode, Failure> {
    memory::share();
    memory::keep_reserve();
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    // This comes before the start of the server, so that no signal is lost.
    let signals = signals::catch()?;
    let running = everbloom_watch::start(loaded.settings)
        .map_err(|error| Failure::Other(error.to_string()))?;
    greet(running.server());
    signals::attend(signals, Arc::clone(running.server()), log.clone())?;
    running.wait_until_loaded();
    if !running.server().store.health.is_loading() {
        tracing::info!("ready");
        tell_manager(NotifyState::Ready);
    }
    match running.wait() {
        Ok(()) => tracing::info!("stopped"),
        Err(why) => {
            // The log says why. Who started the server sees that too, unless the log is elsewhere.
            if log.is_file() {
                say(&why);
            }
            return Ok(ExitCode::from(1));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells the service manager that started the server, if one did: systemd, with `Type=notify`.
fn tell_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(false, &[state]) {
        tracing::warn!("cannot tell the service manager: {error}");
    }
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
