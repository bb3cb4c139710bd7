//! How far the work is, on stderr. indicatif shows nothing when stderr is no terminal.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar, or a line where the end is not known. It is gone when this is.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Progress in bytes read, with their total if it is known.
    pub(crate) fn of_input(total: Option<u64>, hidden: bool) -> Self {
        let template = match total {
            Some(_) => "{percent}% {wide_bar} {binary_bytes_per_sec}, {eta} left, {msg}",
            None => "{binary_bytes} read, {binary_bytes_per_sec}, {msg}",
        };
        Self::new(total, template, hidden)
    }

    /// Progress in measured items.
    pub(crate) fn of_items(name: &str, total: usize, hidden: bool) -> Self {
        let progress = Self::new(Some(total as u64), "{msg} {wide_bar} {percent}%", hidden);
        progress.0.set_message(name.to_owned());
        progress
    }

    /// Progress of one filter after the other. The sums so far are before the bar.
    pub(crate) fn of_filters(hidden: bool) -> Self {
        let template = "{prefix} {msg} {wide_bar} {percent}% {binary_bytes_per_sec} {eta}";
        let progress = Self::new(Some(0), template, hidden);
        // With a length of 0 the bar would begin full.
        progress.0.set_length(1);
        progress
    }

    fn new(total: Option<u64>, template: &str, hidden: bool) -> Self {
        if hidden {
            return Self(ProgressBar::hidden());
        }
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        // A thread costs `copy` memory, and its pieces come often enough.
        if total != Some(0) {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    /// Shows how much is done, and a text.
    pub(crate) fn update(&self, done: u64, message: impl FnOnce() -> String) {
        if !self.0.is_hidden() {
            self.0.set_position(done);
            self.0.set_message(message());
        }
    }

    /// Shows the sums of the filters that are done.
    pub(crate) fn sum(&self, text: String) {
        self.0.set_prefix(text);
    }

    /// Shows a filter with this many bytes to move, of which nothing is done.
    pub(crate) fn begin(&self, what: &'static str, length: u64) {
        self.0.reset();
        self.0.set_length(length.max(1));
        self.0.set_message(what);
    }

    /// Shows what is done with the rest of these bytes.
    pub(crate) fn go_on(&self, what: &'static str) {
        self.0.set_message(what);
    }

    pub(crate) fn advance(&self, count: usize) {
        self.0.inc(count as u64);
    }

    /// Writes a line to stderr, terminal or not.
    pub(crate) fn say(&self, line: &str) {
        // Ignore the error: if stderr is closed, nobody can read the line.
        self.0.suspend(|| {
            let _ = writeln!(io::stderr(), "{line}");
        });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
