//! Running commands that no client sent: those of the log.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use everbloom_commands::flags::SELECTS;
use everbloom_resp::Reply;
use thiserror::Error;

use crate::clients::Client;
use crate::clock::Now;
use crate::config::Settings;
use crate::dispatch;
use crate::journal::Record;
use crate::keyspace::View;
use crate::native::Call;
use crate::registry::Registry;
use crate::server::Server;
use crate::session::Session;
use crate::stats::WorkerStats;

/// Why a command could not be run again.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// There is none of this name.
    #[error(
        "unknown command '{0}' (to leave such commands out, start with --rdb-unknown-values skip)"
    )]
    Unknown(String),
    /// It has too many arguments, or too few.
    #[error("wrong number of arguments for '{0}'")]
    Arity(&'static str),
    /// It selects a database that is not there.
    #[error("it selects a database beyond the {0} that the setting `databases` gives")]
    Database(usize),
}

/// Runs commands one after the other, as a client with all rights would.
#[derive(Debug)]
pub struct Replayer<'s> {
    server: &'s Arc<Server>,
    settings: &'s Settings,
    session: Session,
    stats: Arc<WorkerStats>,
    /// Commands that were answered with an error.
    refused: u64,
    first_refusal: Option<String>,
}

impl<'s> Replayer<'s> {
    /// Begins in database 0.
    pub fn new(server: &'s Arc<Server>, settings: &'s Settings) -> Self {
        let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let client = Arc::new(Client::unlisted(nobody));
        Replayer {
            server,
            settings,
            session: Session::new(client, true),
            stats: WorkerStats::new(Registry::get().commands().len()),
            refused: 0,
            first_refusal: None,
        }
    }

    /// The moment of all commands. Nothing expires meanwhile: a key whose time has come by now had
    /// not expired for the commands that found it.
    pub fn now() -> Now {
        Now {
            ms: 0,
            ..Now::read()
        }
    }

    /// How many commands were answered with an error, and the first of them with its answer.
    pub fn refusals(&self) -> Option<(u64, &str)> {
        let first = self.first_refusal.as_deref()?;
        Some((self.refused, first))
    }

    /// Runs a command. An error that it answers is counted only, for Redis does not look at it.
    pub fn run(&mut self, args: &[&[u8]]) -> Result<(), ReplayError> {
        self.run_with(args, dispatch::run)
    }

    /// The same on a view that holds the whole keyspace, at the moment [`Replayer::now`]. Nothing
    /// goes into the journal.
    pub fn run_in_view(&mut self, args: &[&[u8]], view: &mut View<'_>) -> Result<(), ReplayError> {
        self.run_with(args, |call| {
            dispatch::run_in_view(call, view, &mut Record::default())
        })
    }

    fn run_with(
        &mut self,
        args: &[&[u8]],
        run: impl FnOnce(&mut Call<'_>) -> Reply,
    ) -> Result<(), ReplayError> {
        let name = args.first().copied().unwrap_or_default();
        let Some(command) = Registry::get().find(name) else {
            return Err(ReplayError::Unknown(
                String::from_utf8_lossy(name).into_owned(),
            ));
        };
        if !command.accepts(args.len()) {
            return Err(ReplayError::Arity(command.name));
        }
        let reply = run(&mut Call {
            server: self.server,
            stats: &self.stats,
            settings: self.settings,
            session: &mut self.session,
            command: &command.row,
            args,
            now: Self::now(),
        });
        // What follows would change the keys of another database.
        if command.flags.has(SELECTS) && reply.is_error() {
            return Err(ReplayError::Database(self.settings.databases));
        }
        if let Reply::Error(text) = &reply {
            self.refused += 1;
            self.first_refusal
                .get_or_insert_with(|| format!("{}: {text}", command.name));
        }
        Ok(())
    }
}
