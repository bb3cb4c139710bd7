//! The threads. One reads, some find and hash the keys, and the caller takes the chunks in the
//! order in which they were read.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use super::case::Case;
use super::chunk::{Chunk, Digest, Digester};
use super::csv::columns::CsvKey;
use super::input::Source;
use super::keys::KeyOf;
use super::reader::RecordReader;
use super::shared::Shared;

/// More would only wait for the thread that judges.
const MOST_WORKERS: usize = 8;

/// Chunks that may wait at each end of a worker.
const WAITING: usize = 2;

/// How often to look whether a signal came while nothing does.
const PATIENCE: Duration = Duration::from_millis(50);

/// The chunks, digested.
pub(crate) struct Pipeline {
    shared: Arc<Shared>,
    /// One for each worker, asked in turn.
    digested: Vec<Receiver<Chunk>>,
    empty: Sender<Chunk>,
    taken: u64,
}

impl Pipeline {
    pub(crate) fn start(
        sources: Vec<Source>,
        terminator: u8,
        (key_of, case): (&KeyOf, Case),
        digest: &Digest,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = cores.clamp(1, MOST_WORKERS);
        let (empty, refill) = channel();
        let mut workers = Vec::new();
        let mut digested = Vec::new();
        for _ in 0..count {
            let (to_worker, chunks) = sync_channel::<Chunk>(WAITING);
            let (done, from_worker) = sync_channel(WAITING);
            let mut digester = Digester {
                terminator,
                key_of: key_of.clone(),
                case,
                digest: digest.clone(),
                table: Vec::new(),
            };
            let work = move || {
                for mut chunk in chunks {
                    digester.digest(&mut chunk);
                    if done.send(chunk).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new().name("keys".to_owned()).spawn(work)?;
            workers.push(to_worker);
            digested.push(from_worker);
        }
        for _ in 0..count * WAITING + 2 {
            // It has a receiver: that is here.
            let _ = empty.send(Chunk::default());
        }
        let reader = RecordReader {
            terminator,
            csv: match key_of {
                KeyOf::Csv(key) => Some(CsvKey::clone(key)),
                KeyOf::Whole | KeyOf::Fields { .. } | KeyOf::Json(_) => None,
            },
            shared: Arc::clone(&shared),
            empty: refill,
            workers,
        };
        let read = move || reader.run(&sources);
        thread::Builder::new()
            .name("reader".to_owned())
            .spawn(read)?;
        Ok(Self {
            shared,
            digested,
            empty,
            taken: 0,
        })
    }

    /// The next chunk; `None` at the end, or when a signal came and what was read has been taken.
    pub(crate) fn next(&mut self) -> io::Result<Option<Chunk>> {
        self.next_or(|| Ok(()))
    }

    /// As [`Self::next`]. Calls `idle` again and again while there is none.
    pub(crate) fn next_or<E: From<io::Error>>(
        &mut self,
        mut idle: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<Chunk>, E> {
        let turn = usize::try_from(self.taken).unwrap_or(0) % self.digested.len().max(1);
        let Some(worker) = self.digested.get(turn) else {
            return Ok(None);
        };
        loop {
            match worker.recv_timeout(PATIENCE) {
                Ok(chunk) => {
                    self.taken += 1;
                    return Ok(Some(chunk));
                }
                Err(why) => {
                    let is_end = match why {
                        RecvTimeoutError::Timeout => self.shared.will_not_open(),
                        RecvTimeoutError::Disconnected => self.shared.done.load(Ordering::Acquire),
                    };
                    if is_end && self.taken == self.shared.chunks.load(Ordering::Acquire) {
                        return Ok(None);
                    }
                    if why == RecvTimeoutError::Disconnected {
                        return Err(io::Error::other("a thread ended before its work did").into());
                    }
                    idle()?;
                }
            }
        }
    }

    /// Takes a chunk back to fill it again.
    pub(crate) fn recycle(&self, chunk: Chunk) {
        // Ignore the error: the reader has ended.
        let _ = self.empty.send(chunk);
    }
}
