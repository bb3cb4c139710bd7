//! A worker: one thread with one event loop, and the state that its connections share.
//!
//! A connection runs a batch without giving others a turn, so all connections can use the worker's
//! buffers in turn.

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

/// Bytes read from a socket at once: some thousand small commands that still fit in the L2 cache.
pub const INPUT_BYTES: usize = 64 << 10;
/// An output buffer that grew beyond this is dropped.
const MAX_SPARE_OUTPUT_BYTES: usize = 256 << 10;
/// The maximum number of spare buffers.
const MAX_SPARE_OUTPUTS: usize = 64;

/// A connection from the main thread.
pub type Accepted = (Incoming, Arc<Client>);

/// The state that the connections of one thread share.
pub struct Worker {
    /// The server.
    pub server: Arc<Server>,
    /// This worker's figures.
    pub stats: Arc<WorkerStats>,
    /// The read buffer.
    pub input: RefCell<Box<[u8]>>,
    /// The requests found in it.
    pub batch: Cell<Batch>,
    /// Their arguments; empty between batches, kept for its allocation.
    pub args: Cell<Vec<&'static [u8]>>,
    /// Buffers for replies, at most as many as there were connections with unsent ones.
    outputs: RefCell<Vec<Vec<u8>>>,
    settings: RefCell<(u64, Arc<Settings>)>,
    /// Connections wait here for the log.
    pub(super) logged: Notify,
    /// The right to run long work. One holder at a time, so that memory is bounded.
    pub(super) long_work: Mutex<()>,
}

impl Worker {
    /// Worker number `index` of a server.
    pub fn new(server: Arc<Server>, stats: Arc<WorkerStats>) -> Self {
        let settings = (server.config.version(), server.config.snapshot());
        Worker {
            server,
            stats,
            input: RefCell::new(vec![0; INPUT_BYTES].into_boxed_slice()),
            batch: Cell::new(Batch::new()),
            args: Cell::new(Vec::new()),
            outputs: RefCell::new(Vec::new()),
            settings: RefCell::new(settings),
            logged: Notify::new(),
            long_work: Mutex::new(()),
        }
    }

    /// Returns once replies to changes before this position of the journal may be sent.
    pub async fn logged(&self, position: u64) {
        let store = &self.server.store;
        if store.journal.written() >= position {
            return;
        }
        log::write_now(store);
        let _waiting = store.journal.count_waiting();
        loop {
            // This order misses no progress.
            let notified = self.logged.notified();
            if store.journal.written() >= position {
                return;
            }
            store.journal.wake_for_records();
            notified.await;
        }
    }

    /// The current settings.
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

    /// Returns a buffer.
    pub fn give_output(&self, mut output: Vec<u8>) {
        let mut outputs = self.outputs.borrow_mut();
        if output.capacity() <= MAX_SPARE_OUTPUT_BYTES && outputs.len() < MAX_SPARE_OUTPUTS {
            output.clear();
            outputs.push(output);
        } else {
            self.free(output);
        }
    }

    /// Frees a buffer, on another thread if it is long, because that is slow.
    pub fn free(&self, buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if bytes > MAX_SPARE_OUTPUT_BYTES {
            self.server.store.keyspace.free(Some(buffer), bytes);
        }
    }
}
