//! Writes what the journal takes in.
//!
//! Whoever holds the `Writer` takes everything that waits and writes it at once; then all replies
//! may leave that waited for it. Mostly this is the thread of an event loop, which has to wait for
//! nobody then ([`write_now`]). Whatever can take long has a thread of its own ([`run`]): an fsync
//! that replies wait for, the way to a new file, trouble.
//!
//! An fsync that fails is final: the system may have dropped what it was to write, and the next one
//! would succeed all the same. So the log is *lost* then. Writes are refused until it was rewritten
//! from memory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::directory::Persistence;
use super::log_writer::{Log, Writer};
use super::syncing::Syncer;
use crate::journal::Unwritten;
use crate::settings::Fsync;
use crate::store::Store;

/// How long to wait for something to write before looking whether it is time for an fsync.
const PATIENCE: Duration = Duration::from_millis(100);
/// With `everysec`, the time from one fsync to the next.
const SECOND: Duration = Duration::from_secs(1);
/// How long to wait before a failed write is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// Where a writer is at work.
#[derive(Clone, Copy)]
struct Place<'p> {
    store: &'p Store,
    persistence: &'p Persistence,
}

/// Writes the log until the journal is closed. `None` while no log is kept yet.
pub fn run(store: &Store, persistence: &Persistence, log: Option<Log>) {
    let syncer = match Syncer::start(Arc::clone(&persistence.figures.syncs)) {
        Ok(syncer) => syncer,
        Err(problem) => return store.fail(format!("cannot start a thread: {problem}")),
    };
    let writer = Writer {
        log,
        syncer,
        switches: 0,
        lost: false,
        unwritten: None,
    };
    *persistence.writer.lock() = Some(writer);
    let place = Place { store, persistence };
    loop {
        store.journal.wait(PATIENCE);
        let mut writer = persistence.writer.lock();
        if !writer.as_mut().is_some_and(|writer| writer.turn(place)) {
            *writer = None;
            return;
        }
    }
}

/// Writes what waits, if that takes no time: no fsync is asked for nor under way, and nobody else
/// is at it. Otherwise the thread does it that runs [`run`].
pub fn write_now(store: &Store) {
    let Some(persistence) = store.persistence() else {
        return;
    };
    if store.settings().appendfsync == Fsync::Always {
        return;
    }
    if let Some(mut writer) = persistence.writer.try_lock()
        && let Some(writer) = &mut *writer
    {
        writer.write_now(Place { store, persistence });
    }
}

impl Writer {
    fn write_now(&mut self, place: Place<'_>) {
        let Some(log) = &mut self.log else { return };
        let journal = &place.store.journal;
        if self.unwritten.is_some() || self.syncer.is_busy() {
            return;
        }
        let Some(unwritten) = journal.take_commands() else {
            return;
        };
        if log.write(&unwritten.bytes).is_err() {
            // The thread tries again, and says so.
            self.unwritten = Some(unwritten);
            return;
        }
        place.count(unwritten.bytes.len());
        journal.set_written(unwritten.end);
        journal.return_buffer(unwritten.bytes);
    }

    /// Writes what waits, trying again as long as it takes; false when that was the end.
    fn turn(&mut self, place: Place<'_>) -> bool {
        let Place { store, .. } = place;
        let unwritten = self.unwritten.take();
        let unwritten = unwritten.unwrap_or_else(|| store.journal.take());
        let mut progress = Progress::default();
        loop {
            let fsync = store.settings().appendfsync;
            match self.advance(place, &unwritten, &mut progress, fsync) {
                Ok(()) => break,
                Err(problem) if fsync == Fsync::Always => {
                    // The clients whose changes are not on the disk never get a reply.
                    store.fail(format!(
                        "appendfsync is always and the log cannot be written: {problem}"
                    ));
                    return false;
                }
                Err(problem) => place.trouble(Some(problem.to_string())),
            }
            if unwritten.last || store.journal.is_closed() {
                store.fail("the end of the log could not be written".into());
                return false;
            }
            store.journal.let_go();
            thread::sleep(RETRY);
        }
        if !self.lost {
            place.trouble(None);
        } else if unwritten.last {
            store.fail("the log is not on the disk, for an fsync has failed".into());
            return false;
        }
        store.journal.set_written(unwritten.end);
        if unwritten.last {
            info!("the log is complete");
            return false;
        }
        store.journal.return_buffer(unwritten.bytes);
        true
    }

    fn advance(
        &mut self,
        place: Place<'_>,
        unwritten: &Unwritten,
        progress: &mut Progress,
        fsync: Fsync,
    ) -> io::Result<()> {
        self.heed_syncer(place, unwritten, fsync)?;
        loop {
            let switch = unwritten.switches.get(progress.switches).copied();
            let until = switch.unwrap_or(unwritten.bytes.len());
            let bytes = unwritten
                .bytes
                .get(progress.bytes..until)
                .unwrap_or_default();
            if let Some(log) = &mut self.log
                && !bytes.is_empty()
            {
                log.write(bytes)?;
                place.count(bytes.len());
            }
            progress.bytes = until;
            if switch.is_none() {
                break;
            }
            self.next_file(place, fsync)?;
            progress.switches += 1;
        }
        if !unwritten.logging && self.log.is_some() {
            // No log is kept any more: it is complete.
            self.sync(place, fsync)?;
            info!("the log ends here");
            self.log = None;
            self.lost = false;
            place.persistence.lost.store(0, Relaxed);
        }
        if fsync == Fsync::Always || unwritten.last {
            self.sync(place, fsync)
        } else if fsync == Fsync::EverySecond {
            self.sync_meanwhile(place)
        } else {
            Ok(())
        }
    }

    fn next_file(&mut self, place: Place<'_>, fsync: Fsync) -> io::Result<()> {
        self.sync(place, fsync)?;
        let Place { persistence, .. } = place;
        self.log = Some(Log::new(persistence.next_file()?, 0));
        self.switches += 1;
        persistence.log.lock().switches = self.switches;
        persistence.switched.notify_all();
        Ok(())
    }

    /// Learns what has come of the fsync under way, for which it waits if that takes too long, and
    /// of the rewrite of a log that is lost.
    fn heed_syncer(
        &mut self,
        place: Place<'_>,
        unwritten: &Unwritten,
        fsync: Fsync,
    ) -> io::Result<()> {
        let figures = &place.persistence.figures;
        let synced = if self.syncer.is_behind() && !unwritten.bytes.is_empty() {
            figures.delayed_syncs.fetch_add(1, Relaxed);
            self.syncer.wait()
        } else {
            self.syncer.look()
        };
        figures.log_syncing.store(self.syncer.is_busy(), Relaxed);
        self.judge(place, synced, fsync)?;
        if self.lost && !place.persistence.is_lost() {
            self.lost = false;
            // What was written since the rewrite began must be on the disk before all is well.
            self.sync(place, fsync)?;
        }
        Ok(())
    }

    /// With `everysec`: begins an fsync when it is time for one.
    fn sync_meanwhile(&mut self, place: Place<'_>) -> io::Result<()> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let due = log.unsynced && log.last_sync.elapsed() >= SECOND;
        if !due || self.syncer.is_busy() || self.lost {
            return Ok(());
        }
        self.syncer.begin(log.file.sync_elsewhere()?)?;
        place.persistence.figures.log_syncing.store(true, Relaxed);
        log.unsynced = false;
        log.last_sync = Instant::now();
        Ok(())
    }

    /// Returns once the file is on the disk, or is known to be lost.
    fn sync(&mut self, place: Place<'_>, fsync: Fsync) -> io::Result<()> {
        let mut synced = self.syncer.wait();
        place.persistence.figures.log_syncing.store(false, Relaxed);
        if let Some(log) = &mut self.log
            && !self.lost
        {
            synced = synced.and_then(|()| log.sync(&place.persistence.figures.syncs));
        }
        self.judge(place, synced, fsync)
    }

    /// With `always`, an fsync that fails is the end. Otherwise the log is lost until it was
    /// rewritten.
    fn judge(&mut self, place: Place<'_>, synced: io::Result<()>, fsync: Fsync) -> io::Result<()> {
        let Err(problem) = synced else { return Ok(()) };
        if fsync == Fsync::Always {
            return Err(problem);
        }
        self.lost = true;
        place.persistence.lost.store(self.switches + 1, Relaxed);
        place.trouble(Some(format!(
            "an fsync of the log has failed, so it is rewritten from memory: {problem}"
        )));
        Ok(())
    }
}

/// How much of what waits is written.
#[derive(Debug, Default)]
struct Progress {
    bytes: usize,
    switches: usize,
}

impl Place<'_> {
    /// So much was written.
    fn count(self, bytes: usize) {
        let written = u64::try_from(bytes).unwrap_or(0);
        let figures = &self.persistence.figures;
        figures.log_size.fetch_add(written, Relaxed);
        figures.log_file_size.fetch_add(written, Relaxed);
    }

    /// Refuses writes from now on because of a problem, or takes them again.
    fn trouble(self, problem: Option<String>) {
        let mut known = self.persistence.figures.log_error.lock();
        match (&*known, &problem) {
            (None, None) => return,
            (None, Some(problem)) => {
                error!("the log cannot be written, so writes are refused: {problem}");
            }
            (Some(_), None) => warn!("the log can be written again"),
            (Some(_), Some(_)) => {}
        }
        *known = problem;
        self.store.health.set_log_failing(known.is_some());
    }
}
