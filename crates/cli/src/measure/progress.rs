//! How far a measurement is, on stderr.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The number of items sent, or hashed, between two updates of the progress bar.
pub(super) const CHUNK: usize = 1000;

/// A bar on stderr, unless it is to be quiet. indicatif shows nothing when stderr is no terminal.
pub(super) fn progress(name: &str, steps: usize, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(steps as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent}%") {
        bar.set_style(style);
    }
    bar.set_message(name.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
