//! `everbloom serve`: the server, configured in redis-server's manner.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use everbloom_server::config::load;
use everbloom_server::{Server, Settings};
use tracing_subscriber::filter::LevelFilter;

use crate::Failure;

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
  requirepass \"\"               the password that clients must AUTH with
  protected-mode yes           without a password, refuse clients from other machines
  maxclients 10000             connections at a time
  timeout 0                    seconds until an idle client is disconnected; 0 is never
  databases 16                 databases for SELECT
  io-threads 0                 threads that serve connections; 0 is one a core
  maxmemory 0                  refuse writes above so much memory, such as 4gb; 0 is no limit
  proto-max-bulk-len 512mb     the longest argument of a command
  loglevel notice              debug, verbose, notice or warning

  bf-error-rate 0.01           the error rate of filters that BF.ADD creates
  bf-initial-size 100          their capacity
  bf-expansion-factor 2        how many times larger each further layer is; 0 is not to grow

Examples:
  everbloom serve
  everbloom serve everbloom.conf --port 7000
  everbloom serve --bind 0.0.0.0 --requirepass 'correct horse' --maxmemory 4gb";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let loaded = load(&args.words).map_err(|error| Failure::Usage(error.to_string()))?;
    start_log(&loaded.settings)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let running =
        Server::start(loaded.settings).map_err(|error| Failure::Server(error.to_string()))?;
    stop_on_signals(Arc::clone(running.server()))?;
    running.wait().map_err(Failure::Server)?;
    Ok(ExitCode::SUCCESS)
}

/// The log goes to the file that the settings name, or to standard output, as Redis's does.
fn start_log(settings: &Settings) -> Result<(), Failure> {
    let log = tracing_subscriber::fmt().with_max_level(level(&settings.loglevel));
    if settings.logfile.is_empty() {
        log.with_ansi(io::stdout().is_terminal()).init();
    } else {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&settings.logfile)
            .map_err(|error| {
                Failure::Usage(format!(
                    "cannot write the log {}: {error}",
                    settings.logfile
                ))
            })?;
        log.with_ansi(false).with_writer(file).init();
    }
    Ok(())
}

/// Redis's names for how much is logged; `notice` is what one wants in production.
fn level(name: &str) -> LevelFilter {
    match name {
        "debug" => LevelFilter::TRACE,
        "verbose" => LevelFilter::DEBUG,
        "warning" => LevelFilter::WARN,
        "nothing" => LevelFilter::OFF,
        _ => LevelFilter::INFO,
    }
}

/// Ends the server in order when the terminal or the system asks for it.
fn stop_on_signals(server: Arc<Server>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                if let Err(error) = asked_to_stop().await {
                    tracing::error!("cannot wait for signals: {error}");
                    return;
                }
                server.stop();
            });
        })?;
    Ok(())
}

#[cfg(unix)]
async fn asked_to_stop() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => tracing::info!("received SIGTERM, stopping"),
        _ = interrupt.recv() => tracing::info!("received SIGINT, stopping"),
    }
    Ok(())
}

#[cfg(not(unix))]
async fn asked_to_stop() -> io::Result<()> {
    tokio::signal::ctrl_c().await?;
    tracing::info!("interrupted, stopping");
    Ok(())
}
