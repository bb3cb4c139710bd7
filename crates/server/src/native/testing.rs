//! Runs command lines without sockets, for the tests of the families.

#![cfg(test)]

use std::sync::Arc;
use std::time::Instant;

use everbloom_commands::run::Replies;
use everbloom_resp::{Batch, Limits, Reply, RequestParser};

use super::Call;
use super::table::registry;
use crate::address::Address;
use crate::call::{Done, Finished, Outcome, Registered};
use crate::config::Settings;
use crate::dispatch::execute::{Executed, execute};
use crate::dispatch::executor::Executor;
use crate::dispatch::keys::OwnKeys;
use crate::dispatch::run;
use crate::server::Server;
use crate::session::Session;
use everbloom_store::clock::Now;

/// A connection to its own server.
#[derive(Debug)]
pub struct Bench {
    /// The server.
    pub server: Arc<Server>,
    /// The connection.
    pub session: Session,
    /// The time of the commands. It does not advance by itself.
    pub now: Now,
}

impl Default for Bench {
    /// A server with the default settings.
    fn default() -> Self {
        Self::with(Settings::default())
    }
}

impl Bench {
    /// A server with these settings.
    pub fn with(settings: Settings) -> Self {
        let server = Server::new(settings, 1, registry().len(), None);
        let addr = Address::Ip("127.0.0.1:1".parse().unwrap());
        let now = Now::read();
        let client = server.clients.enter(addr.clone(), addr, 10, now).unwrap();
        Bench {
            session: Session::new(client, true),
            server,
            now,
        }
    }

    /// Runs a line of words that are separated by single spaces; `''` is an empty word.
    pub fn run(&mut self, line: &str) -> Reply {
        self.run_words(&words(line))
    }

    /// Runs a command of any bytes.
    pub fn run_words(&mut self, args: &[&[u8]]) -> Reply {
        let command = registry().find(args[0]).unwrap();
        let command = match command.of_call(args) {
            Ok(command) => command,
            Err(unknown) => return unknown,
        };
        self.with_call(command, args, |call| {
            if !call.command.accepts(call.args.len()) {
                return call.command.wrong_arity().into();
            }
            let mut replies = Replies::default();
            let outcome = run::run(call, OwnKeys, &mut replies);
            let reply = outcome.map(Outcome::into_reply);
            reply.or(replies.into_last()).unwrap_or(Reply::Null)
        })
    }

    /// Runs a command of a connection that can wait; `None` if it has answered.
    pub fn begin(&mut self, args: &[&[u8]]) -> Option<Outcome> {
        self.with_call(registry().find(args[0]).unwrap(), args, |call| {
            call.can_wait = true;
            run::run(call, OwnKeys, &mut Replies::default())
        })
    }

    /// Runs the rest of a command whose work is done.
    pub fn finish(&mut self, args: &[&[u8]], done: Done) -> Outcome {
        match done {
            Done::Reply(reply) => reply.into(),
            Done::Encoded(reply) => panic!("{} bytes of a reply", reply.len()),
            Done::Unlocked(rest) => {
                let command = registry().find(args[0]).unwrap();
                self.with_call(command, args, |call| rest(call).into())
            }
            Done::Rest(rest) => self.with_call(registry().find(args[0]).unwrap(), args, |call| {
                call.can_wait = true;
                run::finish(call, rest)
            }),
        }
    }

    /// Executes requests in the protocol as a connection does, of which the first may have finished
    /// work. Their time is up at once. Returns the replies, too.
    pub fn execute(&mut self, requests: &[u8], finished: Option<Finished>) -> (Executed, Vec<u8>) {
        let (mut parser, mut batch) = (RequestParser::new(), Batch::new());
        let parsed = parser.parse(requests, &Limits::default(), &mut batch);
        parsed.unwrap();
        let mut args = Vec::new();
        batch.resolve(requests, &mut args);
        let (now, mut out) = (Instant::now(), Vec::new());
        let mut executor = Executor {
            server: &self.server,
            stats: &Arc::clone(&self.server.workers[0]),
            settings: &mut self.server.config.snapshot(),
            session: &mut self.session,
            now: self.now,
            until: now,
            mark: now,
            last: None,
            out: &mut out,
        };
        (execute(&mut executor, &batch, &args, 0, finished), out)
    }

    /// The command that a log gets for a line, as words: `None` for nothing.
    pub fn logged(&mut self, line: &str) -> Option<String> {
        self.logged_words(&words(line))
    }

    /// The same for a command of any bytes.
    pub fn logged_words(&mut self, args: &[&[u8]]) -> Option<String> {
        self.server.store.journal.set_logging(true);
        self.server.store.journal.take();
        self.run_words(args);
        let unwritten = self.server.store.journal.take().to_bytes();
        let mut parser = RequestParser::new();
        let mut batch = Batch::new();
        parser
            .parse(&unwritten, &Limits::default(), &mut batch)
            .unwrap();
        let mut args = Vec::new();
        batch.resolve(&unwritten, &mut args);
        let commands = (0..batch.len()).map(|at| &args[batch.range(at)]);
        let lines = commands
            .filter(|command| command[0] != b"SELECT")
            .map(|command| String::from_utf8_lossy(&command.join(&b' ')).into_owned());
        lines.reduce(|all, line| format!("{all} {line}"))
    }

    /// Advances the time.
    pub fn wait(&mut self, ms: u64) {
        self.now.ms += ms;
        self.now.clock += u32::try_from(ms / 1000).unwrap();
    }

    /// Gives a call of a command without arguments to a function.
    pub fn with_call_of<R>(&mut self, name: &str, work: impl FnOnce(&mut Call<'_>) -> R) -> R {
        let args = [name.as_bytes()];
        self.with_call(registry().find(args[0]).unwrap(), &args, work)
    }

    fn with_call<R>(
        &mut self,
        command: &'static Registered,
        args: &[&[u8]],
        work: impl FnOnce(&mut Call<'_>) -> R,
    ) -> R {
        let settings = self.server.config.snapshot();
        let stats = Arc::clone(&self.server.workers[0]);
        work(&mut Call {
            server: &self.server,
            registry: registry(),
            session: &mut self.session,
            stats: &stats,
            settings: &settings,
            command,
            args,
            now: self.now,
            can_wait: false,
        })
    }
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ')
        .map(|word| if word == "''" { "" } else { word }.as_bytes())
        .collect()
}

/// A bulk reply.
pub fn bulk(text: &str) -> Reply {
    Reply::bulk(text)
}

/// An integer reply.
pub fn int(n: i64) -> Reply {
    Reply::Integer(n)
}

/// An error reply.
pub fn err(text: &'static str) -> Reply {
    Reply::error(text)
}
