//! Running the commands of the log, which no client sent.

use std::sync::Arc;

use everbloom::Layout;
use everbloom_commands::flags::SELECTS;
use everbloom_commands::{CuckooDefaults, Defaults};
use everbloom_resp::Reply;
use everbloom_store::clock::Now;
use everbloom_store::replay::{Replay, ReplayError};

use super::run;
use crate::call::Call;
use crate::clients::Client;
use crate::config::Settings;
use crate::native::table::registry;
use crate::server::Server;
use crate::session::Session;
use crate::stats::WorkerStats;

/// Runs commands one after the other, as a client with all rights would.
#[derive(Debug)]
pub struct Replayer<'s> {
    server: &'s Arc<Server>,
    settings: Settings,
    session: Session,
    stats: Arc<WorkerStats>,
    /// Commands that were answered with an error.
    refused: u64,
    first_refusal: Option<String>,
}

impl<'s> Replayer<'s> {
    /// Runs commands on the keys of this server.
    pub fn new(server: &'s Arc<Server>) -> Self {
        let settings = server.config.snapshot();
        // What was accepted once is not refused now because of a setting.
        let settings = Settings {
            maxmemory: 0,
            bf_max_filter_bytes: 0,
            // Our own log says the layout of every filter. One that does not is RedisBloom's.
            bf: Defaults {
                layout: Layout::Classic,
                ..settings.bf
            },
            cf: CuckooDefaults {
                max_expansions: u32::MAX,
                ..settings.cf
            },
            proto_max_bulk_len: usize::MAX,
            ..Settings::clone(&settings)
        };
        Replayer {
            server,
            settings,
            session: nobody(),
            stats: WorkerStats::new(registry().commands().len()),
            refused: 0,
            first_refusal: None,
        }
    }
}

/// The session of no client, in database 0.
fn nobody() -> Session {
    Session::new(Arc::new(Client::unlisted()), true)
}

impl Replay for Replayer<'_> {
    fn begin(&mut self) {
        self.session = nobody();
        self.refused = 0;
        self.first_refusal = None;
    }

    fn run(&mut self, args: &[&[u8]]) -> Result<(), ReplayError> {
        let name = args.first().copied().unwrap_or_default();
        let Some(command) = registry().find(name) else {
            let name = String::from_utf8_lossy(name).into_owned();
            return Err(ReplayError::Unknown(name));
        };
        if !command.accepts(args.len()) {
            return Err(ReplayError::Arity(command.name));
        }
        let reply = run::run(&mut Call {
            server: self.server,
            registry: registry(),
            stats: &self.stats,
            settings: &self.settings,
            session: &mut self.session,
            command: &command.row,
            args,
            // Nothing expires meanwhile: a key whose time has come by now had not expired for the
            // commands that found it.
            now: Now {
                ms: 0,
                ..Now::read()
            },
        });
        // What follows would change the keys of another database.
        if command.flags.has(SELECTS) && reply.is_error() {
            return Err(ReplayError::Database(self.settings.data.databases));
        }
        if let Reply::Error(text) = &reply {
            self.refused += 1;
            self.first_refusal
                .get_or_insert_with(|| format!("{}: {text}", command.name));
        }
        Ok(())
    }

    fn refusals(&self) -> Option<(u64, &str)> {
        let first = self.first_refusal.as_deref()?;
        Some((self.refused, first))
    }
}
