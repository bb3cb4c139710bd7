//! How far the reading is, on a terminal.

use std::sync::atomic::Ordering;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::reader::Shared;

/// A line on the terminal while the run lasts.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// With the bytes there are to read, if that is known. indicatif shows nothing when stderr is
    /// not a terminal.
    pub(crate) fn new(total: Option<u64>, hidden: bool) -> Self {
        if hidden {
            return Self(ProgressBar::hidden());
        }
        let (bar, template) = match total {
            Some(total) => (
                ProgressBar::new(total),
                "{percent}% {wide_bar} {binary_bytes_per_sec}, {eta} left, {msg}",
            ),
            None => (
                ProgressBar::no_length(),
                "{binary_bytes} read, {binary_bytes_per_sec}, {msg}",
            ),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    pub(crate) fn update(&self, shared: &Shared, message: impl FnOnce() -> String) {
        if self.0.is_hidden() {
            return;
        }
        self.0.set_position(shared.read.load(Ordering::Relaxed));
        self.0.set_message(message());
    }

    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}
