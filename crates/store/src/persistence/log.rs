//! Writes the journal's records to the log.
//!
//! The holder of the `Writer` takes all waiting data and writes it at once. Then the replies that
//! waited for it may be sent. Mostly the holder is the thread of an event loop, which then waits
//! for no other thread ([`write_now`]). Slow work has its own thread ([`run`]): an fsync that
//! replies wait for, a switch to a new file, errors.
//!
//! A failed fsync is final: the system may have dropped the data, and the next fsync would still
//! succeed. The log is then *lost*, as it is when there was no memory to record a change, or when
//! somebody else has removed or changed its files. Writes are refused until it is rewritten from
//! memory, and nothing is written meanwhile.
//!
//! A failed write, for example on a full disk, is retried as long as the log is kept. Replies to
//! the changes in it wait, and further writes are refused. Two things end this without room on the
//! disk: logging is switched off, or a rewrite has a new base, so the unwritten data is no longer
//! needed (`Writer::give_up`).
//!
//! Nothing is written, either, behind a torn end that the start could not move aside.
//!
//! With `appendfsync always` these failures end the server, unless the log is lost already or is
//! being begun (`Writer::is_fatal`).

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tracing::{error, info, warn};

use super::directory::{LogState, Persistence};
use super::log_writer::{CheckedFiles, Log, Writer};
use super::syncing::Syncer;
use crate::health::Cause;
use crate::settings::Fsync;
use crate::store::Store;
use crate::unwritten::{Mark, Next, Unwritten};

/// How long to wait for new data before checking whether an fsync or a retry of a failed write is
/// due.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// With `everysec`, the time from one fsync to the next.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// How long a check of the files waits for the running write or fsync.
const CHECK_PATIENCE: Duration = Duration::from_secs(1);

/// Why a log is lost for which there was no memory.
const NO_MEMORY: &str = "there was no memory to record a change";

/// What a writer shares with the rest of the store.
#[derive(Clone, Copy)]
struct Shared<'p> {
    store: &'p Store,
    persistence: &'p Persistence,
}

/// Writes the log until the journal is closed. `None` before the log begins.
pub fn run(store: &Store, persistence: &Persistence, log: Option<Log>) {
    begin(store, persistence, log);
    loop {
        store.journal.wait(POLL_INTERVAL);
        if !write_waiting(store, persistence) {
            return;
        }
    }
}

/// Begins the log, `None` if none is kept yet, for [`write_waiting`].
pub fn begin(store: &Store, persistence: &Persistence, log: Option<Log>) {
    let syncer = Syncer::new(&store.machine, &persistence.figures.syncs);
    let writer = Writer {
        log,
        syncer,
        switches: 0,
        lost: None,
        unwritten: None,
        checked: CheckedFiles::default(),
    };
    *persistence.writer.lock() = Some(writer);
}

/// Refuses writes because of a problem that the start has found, until the writer has solved it.
pub(super) fn refuse_writes(store: &Store, persistence: &Persistence, problem: String) {
    Shared { store, persistence }.trouble(Some(problem));
}

/// Writes the waiting data and syncs it when that is due. Returns false at the end of the journal,
/// and after a failure that ends the server.
pub fn write_waiting(store: &Store, persistence: &Persistence) -> bool {
    let mut writer = persistence.writer.lock();
    let shared = Shared { store, persistence };
    let goes_on = writer
        .as_mut()
        .is_some_and(|writer| writer.write_waiting(shared));
    if !goes_on {
        *writer = None;
    }
    goes_on
}

/// Looks whether the AOF's files are still those that were written. If not, writes are refused until
/// it is rewritten from memory. Skipped if a write or fsync does not return: a stop must not wait for
/// a disk that hangs.
pub fn check_files(store: &Store) {
    if let Some(persistence) = store.persistence()
        && let Some(mut writer) = persistence.writer.try_lock_for(CHECK_PATIENCE)
        && let Some(writer) = &mut *writer
    {
        writer.check_files(Shared { store, persistence });
    }
}

/// Writes the waiting data, if that is quick: no fsync is due or running, and no other thread is
/// writing. Otherwise the thread of [`run`] writes it.
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
        writer.write_now(Shared { store, persistence });
    }
}

impl Writer {
    fn write_now(&mut self, shared: Shared<'_>) {
        let Some(log) = &mut self.log else { return };
        let journal = &shared.store.journal;
        if self.unwritten.is_some()
            || self.lost.is_some()
            || self.syncer.is_busy()
            || log.is_behind_torn_end()
        {
            return;
        }
        let Some(mut unwritten) = journal.take_commands() else {
            return;
        };
        while let Some(Next::Bytes(bytes)) = unwritten.next() {
            if let Err(problem) = log.write(bytes) {
                // The thread retries.
                self.unwritten = Some(unwritten);
                shared.trouble(Some(problem.to_string()));
                return;
            }
            shared.count(bytes.len());
            unwritten.skip();
        }
        journal.set_written(unwritten.end());
        journal.return_buffer(unwritten.into_buffer());
    }

    /// Writes the waiting data, or keeps it for the next call; false at the end of the journal.
    fn write_waiting(&mut self, shared: Shared<'_>) -> bool {
        let Shared { store, persistence } = shared;
        let mut unwritten = match self.unwritten.take() {
            Some(mut unwritten) => {
                store.journal.take_after(&mut unwritten);
                unwritten
            }
            None => store.journal.take(),
        };
        let fsync = store.settings().appendfsync;
        while let Err(problem) = self.advance(shared, &mut unwritten, fsync) {
            if self.give_up(shared, &mut unwritten, fsync) {
                continue;
            }
            if self.is_fatal(shared, fsync) {
                // The clients whose changes are not on the disk never get a reply.
                store.fail(format!(
                    "appendfsync is always and the log cannot be written: {problem}"
                ));
                return false;
            }
            shared.trouble(Some(problem.to_string()));
            if unwritten.is_last() {
                store.fail(format!(
                    "the end of the log could not be written: {problem}"
                ));
                return false;
            }
            persistence.failed_writes.fetch_add(1, Relaxed);
            self.unwritten = Some(unwritten);
            return true;
        }
        shared.trouble(None);
        store.journal.set_written(unwritten.end());
        if unwritten.is_last() {
            if self.log.is_some() && persistence.log_state() == LogState::On {
                info!("the log is complete");
            }
            return false;
        }
        store.journal.return_buffer(unwritten.into_buffer());
        true
    }

    fn advance(
        &mut self,
        shared: Shared<'_>,
        unwritten: &mut Unwritten,
        fsync: Fsync,
    ) -> io::Result<()> {
        self.take_sync_results(shared, unwritten, fsync)?;
        if unwritten.is_last() || self.checked.is_due(shared.store.machine.uptime()) {
            self.check_files(shared);
        }
        self.move_torn_end(shared, unwritten.is_last(), fsync)?;
        while let Some(next) = unwritten.next() {
            match next {
                // The base will hold all data before a new file.
                Next::Bytes(_) if self.lost.is_some() && unwritten.has_marks() => {}
                Next::Bytes(bytes) => {
                    // Data after that waits for the base.
                    self.check_lost()?;
                    if let Some(log) = &mut self.log {
                        log.write(bytes)?;
                        shared.count(bytes.len());
                    }
                }
                Next::Mark(Mark::NewFile, files) => self.next_file(shared, fsync, files)?,
                Next::Mark(Mark::LogEnds, _) => {
                    self.sync(shared, fsync)?;
                    self.end_log(shared);
                }
                Next::Mark(Mark::Lost, _) => self.lose(shared, NO_MEMORY),
            }
            unwritten.skip();
        }
        self.check_lost()?;
        if fsync == Fsync::Always || unwritten.is_last() {
            self.sync(shared, fsync)?;
            self.check_lost()
        } else if fsync == Fsync::EverySecond {
            self.sync_meanwhile(shared)
        } else {
            Ok(())
        }
    }

    /// Moves the torn end aside that the start could not move, if there is one. A stop tries
    /// `at_once`.
    fn move_torn_end(&mut self, shared: Shared<'_>, at_once: bool, fsync: Fsync) -> io::Result<()> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        match log.move_torn_end(at_once).map_err(io::Error::other)? {
            Some(mut truncated) => self.note_sync(shared, truncated.sync(), fsync),
            None => Ok(()),
        }
    }

    /// Whether a failure ends the server. With `always` it does, unless a base makes up for it: the
    /// next one of a lost log, or the first one of a log that is being begun. If there is no first
    /// base, that log ends, and its data is not needed.
    fn is_fatal(&self, shared: Shared<'_>, fsync: Fsync) -> bool {
        fsync == Fsync::Always
            && self.lost.is_none()
            && shared.persistence.log_state() == LogState::On
    }

    /// After a failure: drops data that is no longer needed, if there is any. Then writing may go
    /// on.
    fn give_up(&mut self, shared: Shared<'_>, unwritten: &mut Unwritten, fsync: Fsync) -> bool {
        if let Some(files) = unwritten.drop_ended_log() {
            self.end_log(shared);
            self.count_files(shared, files);
            return true;
        }
        let based = shared.persistence.based.load(Relaxed) > self.switches;
        if self.lost.is_some() || !based || !unwritten.has_bytes_before_new_file() {
            return false;
        }
        // Another file follows, so the end of this one must be sound, and on the disk.
        let sound = self.log.as_mut().is_none_or(|log| log.write(&[]).is_ok());
        if !sound || self.sync(shared, fsync).is_err() {
            return false;
        }
        self.lose(shared, "data that could not be written was dropped");
        true
    }

    /// Stops the log.
    fn end_log(&mut self, shared: Shared<'_>) {
        if self.log.take().is_some() {
            info!("the log ends here");
        }
        // What becomes of its last fsync says nothing of the next log.
        self.syncer.forget();
        shared.note_sync_began(None);
        self.lost = None;
        shared.persistence.lost.store(0, Relaxed);
    }

    /// From now on only a base that precedes the next file makes the log complete.
    fn lose(&mut self, shared: Shared<'_>, why: &str) {
        let why = format!("{why}, so the AOF is rewritten from memory first");
        if let Some(log) = &mut self.log {
            log.forget_torn_end();
        }
        shared.persistence.lost.store(self.switches + 1, Relaxed);
        shared.trouble(Some(self.lost.get_or_insert(why).clone()));
    }

    /// An error while the log may be incomplete.
    fn check_lost(&self) -> io::Result<()> {
        match &self.lost {
            Some(why) => Err(io::Error::other(why.clone())),
            None => Ok(()),
        }
    }

    /// Checks the files of the log. If they are not as they were written, the log is lost, also with
    /// `always`: the data is in memory alone then, so the server must not end.
    fn check_files(&mut self, shared: Shared<'_>) {
        if let Some(log) = self.log.as_ref().filter(|_| self.lost.is_none())
            && let Err(problem) = self.checked.check(shared.persistence, log)
        {
            self.lose(shared, &problem);
        }
    }

    /// Switches to a new file, as this many rewrites requested. If none can be created, those
    /// rewrites fail, and the log stays in the current file.
    fn next_file(&mut self, shared: Shared<'_>, fsync: Fsync, rewrites: u64) -> io::Result<()> {
        self.sync(shared, fsync)?;
        let finished = self.log.as_ref().and_then(Log::good_len);
        match shared.persistence.next_file(finished) {
            Ok(file) => self.log = Some(Log::new(file, 0, shared.store.machine.uptime())),
            Err(problem) if self.log.is_some() => {
                warn!("the log cannot go on in a new file: {problem}");
                shared.persistence.log.lock().failed = self.switches + rewrites;
            }
            Err(problem) => return Err(problem),
        }
        self.count_files(shared, rewrites);
        Ok(())
    }

    fn count_files(&mut self, shared: Shared<'_>, files: u64) {
        let Shared { persistence, .. } = shared;
        self.switches += files;
        persistence.log.lock().switches = self.switches;
    }

    /// Takes the results of the running fsync and of the rewrite of a lost log. Waits for the fsync
    /// if that takes too long.
    fn take_sync_results(
        &mut self,
        shared: Shared<'_>,
        unwritten: &Unwritten,
        fsync: Fsync,
    ) -> io::Result<()> {
        let synced = if self.syncer.is_behind() && !unwritten.is_empty() {
            self.syncer.wait()
        } else {
            self.syncer.look()
        };
        shared.note_sync_began(self.syncer.began());
        self.note_sync(shared, synced, fsync)?;
        if !shared.persistence.is_lost() {
            self.lost = None;
        }
        Ok(())
    }

    /// With `everysec`: begins an fsync when one is due.
    fn sync_meanwhile(&mut self, shared: Shared<'_>) -> io::Result<()> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let now = shared.store.machine.uptime();
        let due = log.unsynced && now.saturating_sub(log.last_sync) >= SYNC_INTERVAL;
        if !due || self.syncer.is_busy() || self.lost.is_some() {
            return Ok(());
        }
        self.syncer.begin(log.file.sync_elsewhere()?)?;
        shared.note_sync_began(self.syncer.began());
        log.unsynced = false;
        log.last_sync = now;
        Ok(())
    }

    /// Returns once the file is on the disk, or is known to be lost.
    fn sync(&mut self, shared: Shared<'_>, fsync: Fsync) -> io::Result<()> {
        let mut synced = self.syncer.wait();
        shared.note_sync_began(None);
        if let Some(log) = &mut self.log
            && self.lost.is_none()
        {
            synced = synced.and_then(|()| log.sync(&shared.persistence.figures.syncs));
            log.last_sync = shared.store.machine.uptime();
        }
        self.note_sync(shared, synced, fsync)
    }

    /// A failed fsync ends the server if that [is fatal](Self::is_fatal). Otherwise the log is lost
    /// until it is rewritten.
    fn note_sync(
        &mut self,
        shared: Shared<'_>,
        synced: io::Result<()>,
        fsync: Fsync,
    ) -> io::Result<()> {
        let Err(problem) = synced else { return Ok(()) };
        if self.is_fatal(shared, fsync) {
            return Err(problem);
        }
        self.lose(
            shared,
            &format!("an fsync of the AOF has failed ({problem})"),
        );
        Ok(())
    }
}

impl Shared<'_> {
    /// Records how much was written.
    fn count(self, bytes: usize) {
        let written = u64::try_from(bytes).unwrap_or(0);
        let figures = &self.persistence.figures;
        figures.log_size.fetch_add(written, Relaxed);
        figures.log_file_size.fetch_add(written, Relaxed);
    }

    /// Notes when the running fsync began, for those who look for a stall.
    fn note_sync_began(self, began: Option<Duration>) {
        *self.persistence.figures.log_sync_began.lock() = began;
    }

    /// Refuses writes from now on because of a problem, or accepts them again.
    fn trouble(self, problem: Option<String>) {
        let mut known = self.persistence.figures.log_error.lock();
        match (&*known, &problem) {
            (None, None) => return,
            (None, Some(problem)) => {
                error!("the log cannot be written, so writes are refused: {problem}");
                self.persistence.figures.refused.store(true, Relaxed);
            }
            (Some(_), None) => warn!("the AOF is no longer in trouble"),
            (Some(_), Some(_)) => {}
        }
        *known = problem;
        self.store.health.set(Cause::LogFailing, known.is_some());
    }
}
