//! A worker: one thread with one event loop, and what its connections share.
//!
//! A connection runs a batch without giving way, so that the buffers of the worker serve them all
//! in turn.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use everbloom_resp::Batch;
use everbloom_store::persistence::log;
use tokio::sync::{Mutex, Notify};

use super::stream::Incoming;
use crate::clients::Client;
use crate::config::Settings;
use crate::server::Server;
use crate::stats::WorkerStats;

/// Bytes read from a socket at once: some thousand small commands, and still within the L2 cache.
pub const INPUT: usize = 64 << 10;
/// An output buffer that grew beyond this is not kept.
const OUTPUT_KEPT: usize = 256 << 10;
/// Nor are more of them than this.
const OUTPUTS_KEPT: usize = 64;

/// A connection as the main thread hands it over.
pub type Accepted = (Incoming, Arc<Client>);

/// What the connections of one thread share.
pub struct Worker {
    /// The server.
    pub server: Arc<Server>,
    /// This worker's figures.
    pub stats: Arc<WorkerStats>,
    /// Where bytes are read to.
    pub input: RefCell<Box<[u8]>>,
    /// The requests found in them.
    pub batch: Cell<Batch>,
    /// Their arguments; empty between batches, kept for its allocation.
    pub args: Cell<Vec<&'static [u8]>>,
    /// Buffers for replies, as many as there were connections with unsent ones.
    outputs: RefCell<Vec<Vec<u8>>>,
    settings: RefCell<(u64, Arc<Settings>)>,
    /// Connections wait here for the log.
    pub(super) logged: Notify,
    /// Who holds it has its long work done. One after the other, so that its memory is bounded.
    pub(super) long_work: Mutex<()>,
}

impl Worker {
    /// Worker number `index` of a server.
    pub fn new(server: Arc<Server>, stats: Arc<WorkerStats>) -> Self {
        let settings = (server.config.version(), server.config.snapshot());
        Worker {
            server,
            stats,
            input: RefCell::new(vec![0; INPUT].into_boxed_slice()),
            batch: Cell::new(Batch::new()),
            args: Cell::new(Vec::new()),
            outputs: RefCell::new(Vec::new()),
            settings: RefCell::new(settings),
            logged: Notify::new(),
            long_work: Mutex::new(()),
        }
    }

    /// Returns once replies to changes before this position of the journal may leave.
    pub async fn logged(&self, position: u64) {
        let store = &self.server.store;
        if store.journal.written() >= position {
            return;
        }
        log::write_now(store);
        let _waiting = store.journal.expect_further();
        loop {
            // In this order no step forward is missed.
            let further = self.logged.notified();
            if store.journal.written() >= position {
                return;
            }
            store.journal.nudge();
            further.await;
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<Settings> {
        let version = self.server.config.version();
        let mut known = self.settings.borrow_mut();
        if known.0 != version {
            *known = (version, self.server.config.snapshot());
        }
        Arc::clone(&known.1)
    }

    /// An empty buffer for replies.
    pub fn take_output(&self) -> Vec<u8> {
        self.outputs.borrow_mut().pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub fn give_output(&self, mut output: Vec<u8>) {
        let mut outputs = self.outputs.borrow_mut();
        if output.capacity() <= OUTPUT_KEPT && outputs.len() < OUTPUTS_KEPT {
            output.clear();
            outputs.push(output);
        } else {
            self.free(output);
        }
    }

    /// Frees a buffer, on another thread if it is a long one: the system takes its time.
    pub fn free(&self, buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if bytes > OUTPUT_KEPT {
            let buffer = Some(buffer).into_iter();
            let keyspace = &self.server.store.keyspace;
            keyspace.free(buffer.map(everbloom::host::give_back), bytes);
        }
    }
}
