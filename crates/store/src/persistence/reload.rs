//! DEBUG RELOAD: loads the keys again from the snapshot file, while a view holds all of them, so
//! that nothing else changes them.

use std::sync::atomic::Ordering::Relaxed;

use thiserror::Error;

use super::jobs::{self, JobError};
use super::load::{self, LoadError};
use crate::keyspace::View;
use crate::store::Store;

/// Why the keys were not loaded again.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// They were not saved.
    #[error(transparent)]
    Save(#[from] JobError),
    /// They were saved and cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Loads the keys from the snapshot file; with `save`, saves them there first.
///
/// The log stays correct. With `save` the keys are the same as before. Without it, the log is
/// rewritten as soon as the view is released.
///
/// # Errors
///
/// The keys could not be saved or loaded. The view then keeps its keys.
pub fn through_snapshot(store: &Store, view: &mut View<'_>, save: bool) -> Result<(), ReloadError> {
    let persistence = store.persistence().ok_or(JobError::NoDirectory)?;
    if store.health.is_loading() {
        return Err(JobError::Loading.into());
    }
    if save {
        jobs::save_view(store, persistence, view)?;
    }
    load::load_snapshot_into(store, persistence, view)?;
    if !save && store.journal.is_logging() {
        let figures = &persistence.figures;
        figures.rewrite_scheduled.store(true, Relaxed);
    }
    Ok(())
}
