//! The state of one connection.

use std::collections::TryReserveError;
use std::sync::Arc;

use everbloom_resp::Protocol;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::Watches;
use parking_lot::MutexGuard;

use crate::clients::{Client, ClientState};
use crate::config::Settings;

/// A command waiting for EXEC.
#[derive(Debug)]
pub struct Queued {
    /// The index of the command in the registry.
    pub command: usize,
    /// Its arguments, the name first.
    pub args: Vec<Vec<u8>>,
}

impl Queued {
    /// The arguments, as a call has them.
    ///
    /// # Errors
    /// There is no memory for the list.
    pub fn words(&self) -> Result<Vec<&[u8]>, TryReserveError> {
        let mut words = Vec::new();
        words.try_reserve_exact(self.args.len())?;
        words.extend(self.args.iter().map(Vec::as_slice));
        Ok(words)
    }
}

/// An open MULTI.
#[derive(Debug, Default)]
pub struct Transaction {
    /// The commands so far.
    pub queued: Vec<Queued>,
    /// Bytes that they take.
    pub bytes: usize,
    /// A command was refused: EXEC will refuse all.
    pub aborted: bool,
}

impl Transaction {
    /// Queues a command, unless EXEC will refuse all.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn queue(&mut self, command: usize, args: &[&[u8]]) -> Result<(), TryReserveError> {
        if self.aborted {
            return Ok(());
        }
        let mut copies: Vec<Vec<u8>> = Vec::new();
        copies.try_reserve_exact(args.len())?;
        let mut bytes = size_of::<Queued>();
        for arg in args {
            let mut copy = Vec::new();
            copy.try_reserve_exact(arg.len())?;
            copy.extend_from_slice(arg);
            bytes += size_of::<Vec<u8>>() + arg.len();
            copies.push(copy);
        }
        self.queued.try_reserve(1)?;
        self.queued.push(Queued {
            command,
            args: copies,
        });
        self.bytes += bytes;
        Ok(())
    }

    /// Makes EXEC refuse the transaction, and drops the queued commands.
    pub fn abort(&mut self) {
        *self = Transaction {
            aborted: true,
            ..Transaction::default()
        };
    }
}

/// One connection's state between commands.
#[derive(Debug)]
pub struct Session {
    /// The connection, as the others see it.
    pub client: Arc<Client>,
    /// The selected database.
    pub db: usize,
    /// The protocol of the replies.
    pub protocol: Protocol,
    /// Whether the password was given, or none was needed then.
    pub authenticated: bool,
    /// The open MULTI.
    pub transaction: Option<Transaction>,
    /// The watched keys.
    pub watches: Option<Watches>,
    /// Whether the reply to the command that runs is dropped.
    pub silent: bool,
    /// The position in the journal after the last change of this connection.
    pub written: u64,
    /// While EXEC runs, the bytes of its replies so far: the shards of the queued commands are
    /// locked already.
    pub executing: Option<usize>,
    /// Whether to close the connection once the replies so far are sent.
    pub closing: bool,
}

impl Session {
    /// A new connection.
    pub fn new(client: Arc<Client>, authenticated: bool) -> Self {
        Session {
            client,
            db: 0,
            protocol: Protocol::default(),
            authenticated,
            transaction: None,
            watches: None,
            silent: false,
            written: 0,
            executing: None,
            closing: false,
        }
    }

    /// Whether it must give the password first.
    pub fn must_log_in(&self, settings: &Settings) -> bool {
        !self.authenticated && !settings.requirepass.is_empty()
    }

    /// Shows the state to other connections.
    pub fn publish(&self, now: Now) -> MutexGuard<'_, ClientState> {
        self.client.set_active(now);
        let mut state = self.client.state.lock();
        state.db = self.db;
        state.queued = self.transaction.as_ref().map(|t| t.queued.len());
        state.watched = self.watches.as_ref().map_or(0, Watches::len);
        state
    }

    /// Bytes that the watched keys take.
    pub fn watched_bytes(&self) -> usize {
        self.watches.as_ref().map_or(0, Watches::memory)
    }

    /// Ends all watches.
    pub fn unwatch(&mut self) {
        if let Some(watches) = self.watches.take() {
            watches.end();
        }
    }

    /// Records how far the log must be written before this connection's replies may be sent.
    #[inline]
    pub fn wrote(&mut self, position: u64) {
        self.written = self.written.max(position);
    }
}
