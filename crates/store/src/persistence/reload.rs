//! DEBUG RELOAD: the keys as they come back from the snapshot file, while a view holds all of them,
//! so that nothing else changes them.

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

/// Loads the keys from the snapshot file, after they were saved there, if `save`.
///
/// The log stays right: with `save` the keys are what they were. Without, it is rewritten as soon
/// as the view is released.
///
/// # Errors
///
/// They could not be saved, or not be loaded. The view then holds what it held.
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
