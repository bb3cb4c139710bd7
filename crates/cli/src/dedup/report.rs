//! What is said on stderr at the end: the summary.

use everbloom_plot::label::{self, percent};

use crate::failure::say;
use crate::number::{found_rate, grouped};

use super::args::Args;
use super::memory::{Local, Memory};

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) records: u64,
    /// Records that were printed, or would be without `--count`.
    pub(super) kept: u64,
    /// Records that have the field.
    pub(super) keys: u64,
    /// Those that lack it. An empty line of a table lacks nothing.
    pub(super) lacking: u64,
    pub(super) cut_quotes: u64,
}

impl Tally {
    pub(super) fn progress(&self) -> String {
        format!("{} in, {} out", grouped(self.records), grouped(self.kept))
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
        lacking,
        cut_quotes,
        ..
    } = *tally;
    let repeats = if args.repeated { kept } else { records - kept };
    let noun = if repeats == 1 { "repeat" } else { "repeats" };
    let [records, kept, repeats] = [records, kept, repeats].map(grouped);
    let mut text = format!("{records} records in, {kept} out, {repeats} {noun}");
    if lacking > 0 {
        let lacking = grouped(lacking);
        text += &format!("; {lacking} had no such field and are no repeats");
    }
    if let Some(warning) = args.records.cut_quotes(cut_quotes) {
        text += &format!("\n{warning}");
    }
    if let Memory::Local(local) = memory {
        text += &described(local);
    }
    say(&text);
}

fn described(Local { filter, loss, .. }: &Local) -> String {
    let stats = filter.stats();
    let now = stats.estimated_error_rate;
    let asked = filter.error_rate();
    let mut text = format!(
        "\nthe filter has {} of {} items and {:.1} % of its bits are 1; it takes {}\n\
         new records dropped by mistake: {}; of the next ones: {}",
        grouped(filter.len()),
        grouped(filter.capacity()),
        stats.fill_ratio * 100.0,
        label::bytes(filter.memory_usage() as f64),
        dropped(loss.records(), loss.share()),
        one_in(now),
    );
    if loss.share() > asked || now > asked {
        text += &format!(
            "\nwarning: the filter is too full for its error rate of {}: it now loses {} of the \
             new records; begin a new state with a larger --capacity",
            percent(asked),
            found_rate(now),
        );
    }
    text
}

/// The number and the share of the new records that were dropped.
fn dropped(records: f64, share: f64) -> String {
    if records < 0.05 {
        return "probably none".to_owned();
    }
    format!("about {records:.1} ({})", one_in(share))
}

/// A rate as `1 in 840 000`, in two digits.
fn one_in(rate: f64) -> String {
    let one_of = 1.0 / rate;
    if one_of.is_nan() || one_of > 1e15 {
        return "none".to_owned();
    }
    let unit = 10_f64.powf(one_of.log10().floor() - 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 1e15"
    )]
    let rounded = (unit.max(1.0) * (one_of / unit.max(1.0)).round()) as u64;
    format!("1 in {}", grouped(rounded))
}

#[test]
fn rates_as_one_in_so_many() {
    for (rate, text) in [
        (1.19e-6, "1 in 840 000"),
        (0.011, "1 in 91"),
        (0.5, "1 in 2"),
        (1.0, "1 in 1"),
        (0.0, "none"),
        (1e-30, "none"),
    ] {
        assert_eq!(one_in(rate), text);
    }
}
