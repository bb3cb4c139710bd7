//! `everbloom serve`: the server, configured as redis-server is.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use everbloom_server::config::load;
use everbloom_server::{Server, Settings};
use tracing_subscriber::filter::LevelFilter;

use crate::failure::Failure;

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
  logfile \"\"                   where the log goes; empty is standard output

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
    start_log(&loaded.settings)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    // This comes before the start of the server, so that no signal is lost.
    let signals = Signals::catch()?;
    let running =
        Server::start(loaded.settings).map_err(|error| Failure::Server(error.to_string()))?;
    greet(running.server());
    signals.stop(Arc::clone(running.server()))?;
    running.wait().map_err(Failure::Server)?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Logs the version, the addresses, the process and the number of threads.
fn greet(server: &Server) {
    let addresses: Vec<String> = server.addresses().iter().map(ToString::to_string).collect();
    tracing::info!(
        "everbloom {} listens on {}, process {}, {} threads",
        env!("CARGO_PKG_VERSION"),
        addresses.join(" and "),
        std::process::id(),
        server.workers.len()
    );
}

/// Sends the log to the file that the settings name, or to standard output, as Redis does.
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
                Failure::Server(format!(
                    "cannot write the log {}: {error}",
                    settings.logfile
                ))
            })?;
        log.with_ansi(false).with_writer(file).init();
    }
    Ok(())
}

/// The level for one of Redis's names. `notice` is the usual level in production.
fn level(name: &str) -> LevelFilter {
    match name {
        "debug" => LevelFilter::TRACE,
        "verbose" => LevelFilter::DEBUG,
        "warning" => LevelFilter::WARN,
        "nothing" => LevelFilter::OFF,
        _ => LevelFilter::INFO,
    }
}

/// The signals that ask the server to end.
struct Signals {
    runtime: tokio::runtime::Runtime,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    /// Catches the signals. From now on they do not end the process by themselves.
    fn catch() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        #[cfg(unix)]
        let (terminate, interrupt) = {
            use tokio::signal::unix::{SignalKind, signal};
            let _inside = runtime.enter();
            (
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            )
        };
        Ok(Signals {
            runtime,
            #[cfg(unix)]
            terminate,
            #[cfg(unix)]
            interrupt,
        })
    }

    /// Ends the server in order at the first signal. A further interrupt from the terminal ends the
    /// process at once.
    fn stop(mut self, server: Arc<Server>) -> io::Result<()> {
        let attend = move || {
            self.wait();
            server.stop();
            self.wait_for_interrupt();
            tracing::warn!("interrupted again, ending at once");
            std::process::exit(1);
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(attend)?;
        Ok(())
    }

    #[cfg(unix)]
    fn wait(&mut self) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.terminate.recv() => tracing::info!("received SIGTERM, stopping"),
                _ = self.interrupt.recv() => tracing::info!("received SIGINT, stopping"),
            }
        });
    }

    #[cfg(unix)]
    fn wait_for_interrupt(&mut self) {
        self.runtime.block_on(self.interrupt.recv());
    }

    #[cfg(not(unix))]
    fn wait(&mut self) {
        self.wait_for_interrupt();
        tracing::info!("interrupted, stopping");
    }

    #[cfg(not(unix))]
    fn wait_for_interrupt(&mut self) {
        if let Err(error) = self.runtime.block_on(tokio::signal::ctrl_c()) {
            tracing::error!("cannot wait for signals: {error}");
            thread::park();
        }
    }
}
