//! Runs the commands of the log, which have no client.

use std::borrow::Cow;
use std::sync::Arc;

use everbloom::Layout;
use everbloom_commands::flags::SELECTS;
use everbloom_commands::{Answers, CommandError, CuckooDefaults, Defaults};
use everbloom_resp::Reply;
use everbloom_store::clock::Now;
use everbloom_store::replay::{Replay, ReplayError};

use super::run;
use crate::call::Call;
use crate::clients::Client;
use crate::config::Settings;
use crate::native::error;
use crate::native::table::registry;
use crate::server::Server;
use crate::session::Session;
use crate::stats::WorkerStats;

/// Runs commands one after the other, with the rights of an unrestricted client.
#[derive(Debug)]
pub struct Replayer<'s> {
    server: &'s Arc<Server>,
    settings: Settings,
    session: Session,
    stats: Arc<WorkerStats>,
    /// Commands that replied with an error.
    refused: u64,
    first_refusal: Option<String>,
}

impl<'s> Replayer<'s> {
    /// Runs commands on the keys of this server.
    pub fn new(server: &'s Arc<Server>) -> Self {
        let settings = server.config.snapshot();
        // A command that was accepted once must not be refused now because of a setting.
        let settings = Settings {
            maxmemory: 0,
            bf_max_filter_bytes: 0,
            // Our own log has the layout of every filter. A filter without one is RedisBloom's.
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

/// Discards the answers of one command, but for errors.
#[derive(Debug, Default)]
struct Failures {
    text: Option<Cow<'static, str>>,
    /// The command, or a part of it, was refused for memory. It was not when it was logged, so
    /// without it something would be lost.
    lacks_memory: bool,
}

const LACKS_MEMORY: [CommandError; 3] = [
    CommandError::InsufficientMemory,
    CommandError::CannotGrow,
    CommandError::CuckooCannotGrow,
];

impl Answers for Failures {
    fn boolean(&mut self, _: bool) {}

    fn integer(&mut self, _: i64) {}

    fn array(&mut self, _: usize) {}

    fn element_error(&mut self, error: CommandError) {
        self.lacks_memory |= LACKS_MEMORY.contains(&error);
    }

    fn reply(&mut self, reply: Reply) {
        self.lacks_memory |= reply == error::out_of_memory()
            || LACKS_MEMORY.into_iter().any(|error| reply == error.into());
        if let Reply::Error(text) = reply {
            self.text = Some(text);
        }
    }
}

/// A session without a client, in database 0.
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
        let mut call = Call {
            server: self.server,
            registry: registry(),
            stats: &self.stats,
            settings: &self.settings,
            session: &mut self.session,
            command: &command.row,
            args,
            // Keys do not expire during the replay: a key that has expired by now was still alive
            // for the commands that used it.
            now: Now {
                ms: 0,
                ..Now::read()
            },
        };
        let mut failures = Failures::default();
        if let Some(reply) = run::run(&mut call, &mut failures) {
            failures.reply(reply);
        }
        // The commands after a bad SELECT would change the keys of another database.
        if command.flags.has(SELECTS) && failures.text.is_some() {
            return Err(ReplayError::Database(self.settings.data.databases));
        }
        if failures.lacks_memory {
            return Err(ReplayError::OutOfMemory(command.name));
        }
        if let Some(text) = failures.text {
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
