//! What is shown on stderr while filters are copied, if stderr is a terminal.

use std::io::{self, Write};

use everbloom_plot::label;
use indicatif::{ProgressBar, ProgressStyle};

use crate::number::grouped;

/// A bar for the filter in hand, behind the sums of those before it.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        let bar = if quiet {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(0)
        };
        let template = "{prefix} {msg} {wide_bar} {percent}% {binary_bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Shows the sums.
    pub(super) fn count(&self, copied: u64, present: u64, bytes: u64) {
        let bytes = label::bytes(bytes as f64);
        let (copied, present) = (grouped(copied), grouped(present));
        let text = format!("{copied} copied ({bytes}), {present} skipped");
        self.bar.set_prefix(text);
    }

    /// Shows a filter of this many bytes, none of which has gone yet.
    pub(super) fn begin(&self, what: &'static str, length: u64) {
        self.bar.set_message(what);
        self.bar.set_length(length);
        self.bar.reset();
    }

    pub(super) fn advance(&self, bytes: usize) {
        self.bar.inc(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// Writes a line to stderr, terminal or not.
    pub(super) fn say(&self, line: &str) {
        // Ignore the error: if stderr is closed, nobody can read the line.
        self.bar.suspend(|| {
            let _ = writeln!(io::stderr(), "{line}");
        });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
