//! Runs the commands of the log, which have no client.

use std::borrow::Cow;
use std::sync::Arc;

use everbloom::Layout;
use everbloom_commands::flags::SELECTS;
use everbloom_commands::{Answers, CommandError, CuckooDefaults, Defaults};
use everbloom_files::aof::is_bracket;
use everbloom_resp::{Batch, Reply};
use everbloom_store::clock::Now;
use everbloom_store::replay::{Replay, ReplayError};

use super::keys::OwnKeys;
use super::{pipeline, run};
use crate::call::{Call, Registered};
use crate::clients::Client;
use crate::config::Settings;
use crate::error;
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
            // More than any machine has. 0 would mean the memory of this one.
            maxmemory: u64::MAX,
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
            stats: WorkerStats::new(registry().len()),
            refused: 0,
            first_refusal: None,
        }
    }
}

impl Replayer<'_> {
    fn call<'c>(&'c mut self, command: &'static Registered, args: &'c [&'c [u8]]) -> Call<'c> {
        Call {
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
            can_wait: false,
        }
    }

    /// Counts errors. One that a log must not have is returned, with the number of its command.
    fn count(
        &mut self,
        command: &Registered,
        failures: Failures,
    ) -> Result<(), (usize, ReplayError)> {
        if let Some(number) = failures.lacks_memory {
            return Err((number, ReplayError::OutOfMemory(command.name)));
        }
        self.refused += failures.refused;
        if let Some(text) = failures.first {
            self.first_refusal
                .get_or_insert_with(|| format!("{}: {text}", command.name));
        }
        Ok(())
    }
}

/// The row of a command of the log.
fn find(args: &[&[u8]]) -> Result<&'static Registered, ReplayError> {
    let name = args.first().copied().unwrap_or_default();
    let Some(command) = registry().find(name) else {
        let name = String::from_utf8_lossy(name).into_owned();
        return Err(match args.len() {
            0 | 1 => ReplayError::UnknownWord(name),
            _ => ReplayError::Unknown(name),
        });
    };
    match command.accepts(args.len()) {
        true => Ok(command),
        false => Err(ReplayError::Arity(command.name)),
    }
}

/// Discards the answers of commands, but for errors.
#[derive(Debug, Default)]
struct Failures {
    /// Answers so far, of commands that each have one answer without elements.
    answers: usize,
    /// Answers that were errors, and the first of them.
    refused: u64,
    first: Option<Cow<'static, str>>,
    /// The number of the first command that, or a part of which, was refused for memory. It was not
    /// when it was logged, so without it something would be lost.
    lacks_memory: Option<usize>,
}

impl Failures {
    fn note(&mut self, lacks_memory: bool) {
        if lacks_memory {
            self.lacks_memory.get_or_insert(self.answers);
        }
    }
}

const LACKS_MEMORY: [CommandError; 3] = [
    CommandError::InsufficientMemory,
    CommandError::CannotGrow,
    CommandError::CuckooCannotGrow,
];

/// The same, with texts that bad data have, too. What BF.LOAD has in a log was loaded once.
const TOO_LARGE: [CommandError; 3] = [
    CommandError::TooLarge,
    CommandError::CuckooTooLarge,
    CommandError::BadObject,
];

impl Answers for Failures {
    fn boolean(&mut self, _: bool) {
        self.answers += 1;
    }

    fn integer(&mut self, _: i64) {
        self.answers += 1;
    }

    fn array(&mut self, _: usize) {}

    fn element_error(&mut self, error: CommandError) {
        self.stands_for(error);
    }

    fn stands_for(&mut self, error: CommandError) {
        self.note(LACKS_MEMORY.contains(&error) || TOO_LARGE.contains(&error));
    }

    fn error(&mut self, error: CommandError) {
        self.stands_for(error);
        self.reply(error.into());
    }

    fn reply(&mut self, reply: Reply) {
        let is_of_memory = |error: CommandError| reply == error.into();
        self.note(reply == error::out_of_memory() || LACKS_MEMORY.into_iter().any(is_of_memory));
        self.answers += 1;
        if let Reply::Error(text) = reply {
            self.refused += 1;
            self.first.get_or_insert(text);
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

    fn check(&self, args: &[&[u8]]) -> Result<(), ReplayError> {
        find(args).map(drop)
    }

    fn run(&mut self, args: &[&[u8]]) -> Result<(), ReplayError> {
        let command = find(args)?;
        let mut failures = Failures::default();
        if let Some(outcome) = run::run(&mut self.call(command, args), OwnKeys, &mut failures) {
            failures.reply(outcome.into_reply());
        }
        // The commands after a bad SELECT would change the keys of another database.
        if command.flags.has(SELECTS) && failures.refused > 0 {
            return Err(ReplayError::Database(self.settings.data.databases));
        }
        self.count(command, failures).map_err(|(_, error)| error)
    }

    fn run_batch(
        &mut self,
        batch: &Batch,
        args: &[&[u8]],
        first: usize,
    ) -> Result<(), (usize, ReplayError)> {
        let mut next = first;
        while next < batch.len() {
            let request = args.get(batch.range(next)).unwrap_or_default();
            let command = match find(request) {
                // All of the transaction is in the batch.
                _ if is_bracket(request) => {
                    next += 1;
                    continue;
                }
                Ok(command) => command,
                Err(error) => return Err((next, error)),
            };
            if command.is_on_value() {
                let (mut call, mut failures) = (self.call(command, request), Failures::default());
                let done = pipeline::execute_together(&mut call, &mut failures, batch, args, next);
                if done > 0 {
                    let judged = self.count(command, failures);
                    judged.map_err(|(number, error)| (next + number, error))?;
                    next += done;
                    continue;
                }
            }
            self.run(request).map_err(|error| (next, error))?;
            next += 1;
        }
        Ok(())
    }

    fn refusals(&self) -> Option<(u64, &str)> {
        let first = self.first_refusal.as_deref()?;
        Some((self.refused, first))
    }
}
