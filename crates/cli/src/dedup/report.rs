//! What is said on stderr: progress on a terminal, and the summary.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::args::Args;
use super::memory::{Local, Memory};
use super::reader::Shared;

/// What nobody needs to know better.
const LEAST_PERCENT: f64 = 0.000_001;

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) records: u64,
    /// Those that were printed, or would be.
    pub(super) kept: u64,
    pub(super) keyless: u64,
}

/// A line on the terminal while the run lasts.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// With the bytes there are to read, if that is known. indicatif shows nothing when stderr is
    /// not a terminal. Where the records go to the same terminal, it would be in their way.
    pub(super) fn new(total: Option<u64>, args: &Args) -> Self {
        if args.quiet || (!args.count && io::stdout().is_terminal()) {
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

    pub(super) fn update(&self, shared: &Shared, tally: &Tally) {
        if self.0.is_hidden() {
            return;
        }
        self.0.set_position(shared.read.load(Ordering::Relaxed));
        let Tally { records, kept, .. } = tally;
        self.0.set_message(format!("{records} in, {kept} out"));
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// Says how it went.
pub(super) fn summarize(tally: &Tally, memory: &Memory, args: &Args) {
    if args.quiet {
        return;
    }
    let Tally {
        records,
        kept,
        keyless,
    } = *tally;
    let repeats = if args.repeated { kept } else { records - kept };
    let mut text = format!("{records} records in, {kept} out, {repeats} repeats");
    if keyless > 0 {
        let _ = write!(text, "; {keyless} had no such field and are no repeats");
    }
    if let Memory::Local(local) = memory {
        describe(local, &mut text);
    }
    for line in text.lines() {
        // Ignore the error: if stderr is closed, nobody can read it.
        let _ = writeln!(io::stderr(), "everbloom: {line}");
    }
}

fn describe(local: &Local, text: &mut String) {
    let Local { filter, loss, .. } = local;
    let now = filter.estimated_error_rate();
    let asked = filter.error_rate();
    // Writing to a text does not fail.
    let _ = write!(
        text,
        "\nthe filter has {} of {} items and {:.1} % of its bits are 1; it takes {:.1} MB",
        filter.len(),
        filter.capacity(),
        filter.fill_ratio() * 100.0,
        filter.memory_usage() as f64 / 1e6,
    );
    let _ = write!(
        text,
        "\nnew records lost as false positives: about {:.1}, {} of them; the next ones: {}",
        loss.records(),
        percent(loss.share()),
        percent(now),
    );
    if loss.share() > asked || now > asked {
        let _ = write!(
            text,
            "\nwarning: the filter is too full for its error rate of {}: it now loses {} of the \
             new records; begin a new state with a larger --capacity",
            percent(asked),
            percent(now),
        );
    }
}

/// With two digits that are not 0.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < LEAST_PERCENT {
        return format!("less than {LEAST_PERCENT} %");
    }
    let digits = (0..9).find(|digits| percent * 10_f64.powi(*digits) >= 10.0);
    let digits = usize::try_from(digits.unwrap_or(9)).unwrap_or(0);
    format!("{percent:.digits$} %")
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn percentages() {
        assert_eq!(percent(0.0), "less than 0.000001 %");
        assert_eq!(percent(1e-12), "less than 0.000001 %");
        assert_eq!(percent(0.000_000_123), "0.000012 %");
        assert_eq!(percent(0.0001), "0.010 %");
        assert_eq!(percent(0.25), "25 %");
        assert_eq!(percent(1.0), "100 %");
    }
}
