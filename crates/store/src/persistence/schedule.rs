//! Starts snapshots and rewrites automatically.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tracing::{error, warn};

use super::directory::{LogState, Persistence};
use super::figures::JobFigures;
use super::jobs::{JobError, rewrite_in_background, save, save_in_background};
use super::log::check_files;
use super::stall;
use crate::health::Cause;
use crate::limits::BACKLOG_BYTES;
use crate::settings::Settings;
use crate::store::Store;

/// Starts the jobs that are due: save points, a log that has grown, and jobs that waited.
pub fn attend(store: &Arc<Store>) {
    let Some(persistence) = store.persistence() else {
        return;
    };
    if store.health.is_loading() {
        return;
    }
    look_at_backlog(store, persistence);
    stall::look(store);
    let settings = store.settings();
    tell_end_of_refusal(store, persistence, &settings);
    if persistence.is_busy() {
        return;
    }
    let figures = &persistence.figures;
    let missing = persistence.is_log_missing() && rested(store, &figures.rewrite);
    let started = if missing
        || is_scheduled(store, &figures.rewrite)
        || log_is_lost(store, persistence)
        || log_has_grown(store, &settings)
    {
        rewrite_in_background(store)
    } else if is_scheduled(store, &figures.save) || save_is_due(store, persistence, &settings) {
        save_in_background(store)
    } else {
        return;
    };
    if let Err(problem) = started {
        error!("cannot start a snapshot: {problem}");
    }
}

/// Checks for a log that is neither written nor failing, because the disk does not complete an
/// fsync or a write. Clients that reconnect and retry would add waiting data without bounds.
fn look_at_backlog(store: &Store, persistence: &Persistence) {
    let written = store.journal.written();
    let before = persistence.figures.seen_written.swap(written, Relaxed);
    let behind = store.journal.backlog() > BACKLOG_BYTES.get_u64() && written == before;
    if behind && !store.health.is_log_failing() {
        error!("the disk does not take the log, so writes are refused until it does");
    }
    store.health.set(Cause::LogBehind, behind);
}

/// Says when writes are taken again, whatever the reasons were for which they were refused.
fn tell_end_of_refusal(store: &Store, persistence: &Persistence, settings: &Settings) {
    let refused = store.refuses_writes(settings);
    if persistence.figures.refused.swap(refused, Relaxed) && !refused {
        warn!("writes are taken again");
    }
}

/// The seconds before a failed snapshot or rewrite is retried.
const RETRY_SECONDS: u64 = 5;

fn rested(store: &Store, job: &JobFigures) -> bool {
    has_passed(store, &job.last_try, RETRY_SECONDS) || !job.failed.load(Relaxed)
}

/// Whether a job that a client has scheduled is due. It stays scheduled while its thread cannot
/// start.
fn is_scheduled(store: &Store, job: &JobFigures) -> bool {
    job.scheduled.load(Relaxed) && rested(store, job)
}

/// Whether more than so many seconds have passed since the machine had this uptime.
fn has_passed(store: &Store, since: &AtomicU64, seconds: u64) -> bool {
    let now = store.machine.uptime().as_secs();
    now.saturating_sub(since.load(Relaxed)) > seconds
}

/// Whether a save point is reached, or a failed snapshot is to be tried again. If a log holds
/// everything, that waits for the next save point: another try would take the log's room. So would
/// one before a lost log is rewritten.
fn save_is_due(store: &Store, persistence: &Persistence, settings: &Settings) -> bool {
    let figures = &persistence.figures;
    let changes = store.journal.changes() - figures.saved_changes.load(Relaxed);
    let mut points = settings.save.iter();
    let reached = |&(after, most): &(u64, u64)| {
        changes >= most && has_passed(store, &figures.saved_at, after)
    };
    let failed = store.lacks_snapshot(settings) && !persistence.is_lost();
    rested(store, &figures.save) && (failed || points.any(reached))
}

fn log_is_lost(store: &Store, persistence: &Persistence) -> bool {
    persistence.is_lost() && rested(store, &persistence.figures.rewrite)
}

fn log_has_grown(store: &Store, settings: &Settings) -> bool {
    let Some(persistence) = store.persistence() else {
        return false;
    };
    let figures = &persistence.figures;
    store.journal.is_logging()
        && settings.auto_aof_rewrite_percentage > 0
        && rested(store, &figures.rewrite)
        && figures.log_size.load(Relaxed) > settings.auto_aof_rewrite_min_size
        && figures.log_growth() >= settings.auto_aof_rewrite_percentage
}

/// How often a stop checks whether the rewrite of a lost log has ended.
const REWRITE_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Makes a snapshot before the server stops, if there are save points, or as `wanted` says. A lost
/// log is rewritten in any case, because the next start reads the log and not the snapshot.
///
/// An error says why the server must not stop: data would be lost.
pub fn save_before_stop(store: &Arc<Store>, wanted: Option<bool>) -> Result<(), String> {
    let persistence = store.persistence();
    let Some(persistence) = persistence.filter(|_| !store.health.is_loading()) else {
        return match wanted {
            Some(true) => Err("there is no data directory, or its data is being loaded".into()),
            _ => Ok(()),
        };
    };
    check_files(store);
    // The snapshot cancels a running job, and must not cancel this rewrite.
    rewrite_lost_log(store, persistence)?;
    let is_saved = wanted.unwrap_or(!store.settings().save.is_empty());
    if is_saved {
        save_over_jobs(store, persistence)?;
    }
    match persistence.log_state() {
        // An fsync may have failed during the snapshot.
        LogState::On => rewrite_lost_log(store, persistence),
        LogState::Beginning if !is_saved => {
            Err("the first file of the log is being written".into())
        }
        LogState::Failed(why) if !is_saved => Err(format!("no log could be begun: {why}")),
        LogState::Off | LogState::Beginning | LogState::Failed(_) => Ok(()),
    }
}

/// Makes a snapshot, and cancels the job that runs in the background, if any.
fn save_over_jobs(store: &Store, persistence: &Persistence) -> Result<(), String> {
    let mut saved = save(store);
    if matches!(saved, Err(JobError::Busy)) {
        persistence.end_jobs();
        saved = save(store);
    }
    match saved {
        // A client's SAVE is still running. The snapshot at the end follows it.
        Ok(()) | Err(JobError::Busy) => Ok(()),
        Err(problem) => Err(format!("the snapshot failed: {problem}")),
    }
}

/// Returns once no log is lost. A lost one is rewritten from memory, by the job that runs or by
/// another one.
fn rewrite_lost_log(store: &Arc<Store>, persistence: &Persistence) -> Result<(), String> {
    let failures = || persistence.figures.rewrite_failures.load(Relaxed);
    let mut before = failures();
    while persistence.log_state() == LogState::On && persistence.is_lost() {
        let now = failures();
        // A server that ends meanwhile waits for this thread, and cancels the rewrite.
        if now > before || store.is_stopping() || store.failure().is_some() {
            return Err("the log may not be whole, and could not be rewritten from memory".into());
        }
        before = now;
        match rewrite_in_background(store) {
            Ok(()) | Err(JobError::Busy) => store.machine.sleep(REWRITE_POLL_INTERVAL),
            Err(problem) => {
                return Err(format!(
                    "the log may not be whole, and could not be rewritten from memory: {problem}"
                ));
            }
        }
    }
    Ok(())
}

/// Makes a last snapshot, if there are save points. The store has failed if that fails, or if a log
/// is wanted and none is kept.
pub fn save_at_end(store: &Store, wanted: Option<bool>) {
    let settings = store.settings();
    let Some(persistence) = store.persistence() else {
        return;
    };
    let figures = &persistence.figures;
    let saved = figures.save.done.load(Relaxed) > 0
        && !figures.save.failed.load(Relaxed)
        && figures.saved_changes.load(Relaxed) == store.journal.changes();
    if !saved
        && wanted.unwrap_or(!settings.save.is_empty())
        && let Err(problem) = save(store)
    {
        store.fail(format!("the snapshot at the end failed: {problem}"));
    }
    if let LogState::Failed(why) = persistence.log_state() {
        store.fail(format!(
            "appendonly is yes, and no log could be begun: {why}"
        ));
    }
}
