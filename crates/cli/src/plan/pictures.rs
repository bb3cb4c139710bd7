//! The pictures of a plan.

use everbloom::sizing::BlockedSize;
use everbloom::sizing::textbook;
use everbloom_plot::{Axis, Chart, Line, label};

use super::question::Plan;
use super::sizes::{Choice, Size};
use crate::number::grouped;

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Picture {
    /// The error rate against the items (p against n)
    Items,
    /// The error rate against the bits (p against m)
    Bits,
    /// The error rate against the hashes (p against k)
    Hashes,
    /// The error rate of filters that hold up to four times their capacity
    Overfill,
    /// The memory against the error rate
    Memory,
}

/// Points of a curve.
const POINTS: u32 = 240;

/// Colours of the layouts, in all pictures.
const CLASSIC: usize = 0;
const BLOCKED: usize = 1;

impl Picture {
    pub(super) fn chart(self, plan: &Plan) -> Chart {
        match self {
            Picture::Items => items(plan),
            Picture::Bits => bits(plan),
            Picture::Hashes => hashes(plan),
            Picture::Overfill => overfill(plan),
            Picture::Memory => memory(plan),
        }
    }
}

/// Equal steps from `from` to `to`.
fn steps(from: f64, to: f64) -> impl Iterator<Item = f64> {
    (0..=POINTS).map(move |step| from + (to - from) * f64::from(step) / f64::from(POINTS))
}

/// Equal factors from `from` to `to`.
fn factors(from: f64, to: f64) -> impl Iterator<Item = f64> {
    steps(from.ln(), to.ln()).map(f64::exp)
}

fn curve(xs: impl Iterator<Item = f64>, y: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    xs.map(|x| (x, y(x))).collect()
}

/// An axis of rates from far below the planned one to 1.
fn rate_axis(plan: &Plan) -> Axis {
    let least = (plan.rate() / 1000.0).max(1e-15);
    Axis::logarithmic("error rate", label::percent).within(least, 1.0)
}

/// The planned rate, from one side to the other.
fn asked(plan: &Plan, from: f64, to: f64) -> Line {
    let text = format!("asked for: {}", label::percent(plan.rate()));
    Line::curve(text, 2, curve([from, to].into_iter(), |_| plan.rate())).dashed()
}

fn items(plan: &Plan) -> Chart {
    let most = 3.0 * plan.capacity() as f64;
    let line = |size: &Size, colour| {
        let points = curve(steps(0.0, most), |items| size.rate_at(items));
        Line::curve(size.kind.name(), colour, points)
    };
    Chart {
        title: "Error rate while a filter fills".into(),
        subtitle: format!(
            "Made for {} items: {} bits in the classic layout, {} in the blocked one",
            grouped(plan.capacity()),
            grouped(plan.classic.bits()),
            grouped(plan.blocked.bits())
        ),
        x: Axis::linear("items in the filter (n)", label::count).within(0.0, most),
        y: rate_axis(plan),
        lines: vec![
            line(&plan.classic, CLASSIC),
            line(&plan.blocked, BLOCKED),
            asked(plan, 0.0, most),
        ],
    }
}

/// The rate with the best hash count for so many bits, in the classic layout.
fn best_classic(bits: f64, items: f64) -> f64 {
    let best = textbook::hashes(bits, items).round().max(1.0);
    textbook::error_rate(bits, best, items)
}

fn best_blocked(bits: f64, items: f64) -> f64 {
    let load = items * f64::from(BlockedSize::BLOCK_BITS) / bits;
    let rates = (BlockedSize::MIN_HASHES..=BlockedSize::MAX_HASHES)
        .map(|hashes| BlockedSize::rate_at_load(load, hashes));
    rates.fold(1.0, f64::min)
}

fn bits(plan: &Plan) -> Chart {
    let items = plan.capacity() as f64;
    let bytes = plan.blocked.bytes as f64;
    let (from, to) = (bytes / 5.0, bytes * 2.0);
    let line = |name, colour, rate: fn(f64, f64) -> f64| {
        let points = curve(steps(from, to), |bytes| rate(bytes * 8.0, items));
        Line::curve(name, colour, points)
    };
    Chart {
        title: "Error rate against memory".into(),
        subtitle: format!(
            "With {} items in the filter and the best number of hashes",
            grouped(plan.capacity())
        ),
        x: Axis::linear("memory (m)", label::bytes)
            .binary()
            .within(0.0, to),
        y: rate_axis(plan),
        lines: vec![
            line("classic", CLASSIC, best_classic),
            line("blocked", BLOCKED, best_blocked),
            asked(plan, 0.0, to),
        ],
    }
}

fn hashes(plan: &Plan) -> Chart {
    let most =
        (2 * plan.classic.hashes.max(plan.blocked.hashes)).clamp(12, BlockedSize::MAX_HASHES);
    let rate = |size: &Size, hashes| Size { hashes, ..*size }.rate_at(plan.capacity() as f64);
    let line = |size: &Size, least: u32, colour| {
        let points = (least..=most).map(|hashes| (f64::from(hashes), rate(size, hashes)));
        Line::curve(size.kind.name(), colour, points.collect()).dotted()
    };
    Chart {
        title: "Error rate against the number of hashes".into(),
        subtitle: format!(
            "With {} items in {} bits (classic) or {} (blocked). Planned: {} and {} hashes",
            grouped(plan.capacity()),
            grouped(plan.classic.bits()),
            grouped(plan.blocked.bits()),
            plan.classic.hashes,
            plan.blocked.hashes
        ),
        x: Axis::linear("hashes an item (k)", label::count).within(0.0, most.into()),
        y: Axis::logarithmic("error rate", label::percent)
            .within(plan.rate() / 3.0, rate(&plan.classic, 1).max(plan.rate())),
        lines: vec![
            line(&plan.classic, 1, CLASSIC),
            line(&plan.blocked, BlockedSize::MIN_HASHES, BLOCKED),
            asked(plan, 0.0, most.into()),
        ],
    }
}

fn overfill(plan: &Plan) -> Chart {
    let mut rates = vec![0.1, 0.01, 0.001];
    let is_planned = |rate: &f64| (rate / plan.rate() - 1.0).abs() <= 0.01;
    if !rates.iter().any(is_planned) {
        rates.push(plan.rate());
    }
    let mut lines = Vec::new();
    for (colour, rate) in rates.into_iter().enumerate() {
        for kind in [Choice::Classic, Choice::Blocked] {
            let Some(size) = plan.size(kind, plan.capacity(), rate) else {
                continue;
            };
            let points = curve(steps(0.0, 4.0), |times| {
                size.rate_at(times * plan.capacity() as f64)
            });
            let text = format!("{} {}", label::percent(rate), kind.name());
            let mut line = Line::curve(text, colour, points);
            line.dashed = kind == Choice::Blocked;
            lines.push(line);
        }
    }
    Chart {
        title: "Error rate of filters that hold more than they were made for".into(),
        subtitle: format!(
            "Made for {} items at different rates",
            grouped(plan.capacity())
        ),
        x: Axis::linear("items / capacity", label::short).within(0.0, 4.0),
        y: Axis::linear("error rate", label::percent).within(0.0, 1.0),
        lines,
    }
}

fn memory(plan: &Plan) -> Chart {
    let (least, most) = ((plan.rate() / 1000.0).clamp(1e-12, 1e-6), 0.5);
    let line = |kind: Choice, colour| {
        let sizes = factors(least, most).filter_map(|rate| plan.size(kind, plan.capacity(), rate));
        let points = sizes.map(|size| (size.rate, size.bytes as f64));
        Line::curve(kind.name(), colour, points.collect())
    };
    let mut lines = vec![
        line(Choice::Classic, CLASSIC),
        line(Choice::Blocked, BLOCKED),
    ];
    for (colour, other) in (2..).zip(&plan.others) {
        let bytes = |rate: f64| match other.name {
            "plain bitmap" => textbook::bits_with_hashes(plan.capacity() as f64, rate, 1.0) / 8.0,
            _ => other.bytes,
        };
        let points = curve(factors(least, most), bytes);
        lines.push(Line::curve(other.name, colour, points).dashed());
    }
    let sets = plan.others.iter().take(2);
    let largest = sets.map(|other| other.bytes).fold(0.0, f64::max);
    let smallest = plan.size(Choice::Classic, plan.capacity(), most);
    let smallest = smallest.map_or(1.0, |size| size.bytes as f64);
    Chart {
        title: "Memory against error rate".into(),
        subtitle: format!(
            "For {} items. Sets: {}; {}",
            grouped(plan.capacity()),
            "the strings or sums alone",
            "bitmap: one bit an item, from one hash"
        ),
        x: Axis::logarithmic("error rate", label::percent).within(least, most),
        y: Axis::logarithmic("memory", label::bytes)
            .binary()
            .within(smallest / 1.5, largest * 3.0),
        lines,
    }
}
