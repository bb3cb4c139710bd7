//! What the server remembers of one connection.

use std::sync::Arc;

use everbloom_resp::Protocol;

use crate::clients::Client;
use crate::offload::Offload;

/// Whether replies are sent: CLIENT REPLY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyMode {
    /// All of them.
    #[default]
    On,
    /// None.
    Off,
    /// Not that of the command that set it, nor the next.
    SkipNext,
    /// Not this one.
    Skip,
}

/// A command waiting for EXEC.
#[derive(Debug)]
pub struct Queued {
    /// Which command: its place in the registry.
    pub command: usize,
    /// Its arguments, the name first.
    pub args: Vec<Vec<u8>>,
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
    pub fn queue(&mut self, command: usize, args: &[&[u8]]) {
        if self.aborted {
            return;
        }
        let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.to_vec()).collect();
        let held = args.iter().map(|arg| size_of::<Vec<u8>>() + arg.len());
        self.bytes += size_of::<Queued>() + held.sum::<usize>();
        self.queued.push(Queued { command, args });
    }

    /// Lets EXEC refuse all; nothing of it is needed any more.
    pub fn abort(&mut self) {
        *self = Transaction {
            aborted: true,
            ..Transaction::default()
        };
    }
}

/// A key that this connection watches.
#[derive(Debug)]
pub struct Watch {
    /// The key's database.
    pub db: usize,
    /// Its name.
    pub key: Vec<u8>,
    /// Its version when the watch began.
    pub version: u64,
    /// Whether it was there then.
    pub present: bool,
}

/// One connection's state between commands.
#[derive(Debug)]
pub struct Session {
    /// The connection, as the others see it.
    pub client: Arc<Client>,
    /// The selected database.
    pub db: usize,
    /// What the client wants replies in.
    pub protocol: Protocol,
    /// Whether the password was given, or none is needed.
    pub authenticated: bool,
    /// The open MULTI.
    pub transaction: Option<Transaction>,
    /// The keys watched.
    pub watches: Vec<Watch>,
    /// Whether replies are sent.
    pub reply_mode: ReplyMode,
    /// The position in the journal behind the last change this connection made.
    pub written: u64,
    /// EXEC is running: the shards that the queued commands name are locked already.
    pub executing: bool,
    /// The offloaded work of the command that runs next.
    pub offload: Offload,
    /// Close the connection once the replies so far are sent.
    pub closing: bool,
}

impl Session {
    /// A connection that was just opened.
    pub fn new(client: Arc<Client>, authenticated: bool) -> Self {
        Session {
            client,
            db: 0,
            protocol: Protocol::default(),
            authenticated,
            transaction: None,
            watches: Vec::new(),
            reply_mode: ReplyMode::On,
            written: 0,
            executing: false,
            offload: Offload::default(),
            closing: false,
        }
    }

    /// Notes how far the journal must be in the log before this connection's replies may leave.
    #[inline]
    pub fn wrote(&mut self, position: u64) {
        self.written = self.written.max(position);
    }
}
