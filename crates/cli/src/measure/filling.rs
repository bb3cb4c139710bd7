//! The error rate while a filter fills: measured, and expected from how full the layers are.

use everbloom_plot::{Axis, Chart, Line, label};

use super::subject::{Item, Subject};
use super::sum;
use crate::failure::Failure;
use crate::progress::Progress;

/// How often the rate is measured while the filter fills.
const STEPS: usize = 20;

/// The curve of one filter.
pub(super) struct Filling {
    /// The layout, or the server.
    pub(super) name: String,
    points: Vec<Point>,
}

struct Point {
    /// Strings added so far.
    added: usize,
    measured: f64,
    /// One standard deviation of the sampling.
    deviation: f64,
    expected: Option<f64>,
}

/// Adds the strings step by step, and asks for all others after each step.
pub(super) fn fill(
    name: String,
    mut subject: Subject,
    added: &[Item],
    probed: &[Item],
    quiet: bool,
) -> Result<Filling, Failure> {
    let portion = added.len().div_ceil(STEPS).max(1);
    let portions = added.len().div_ceil(portion);
    let bar = Progress::of_items(&name, added.len() + portions * probed.len(), quiet);
    let mut points = Vec::new();
    let mut count = 0;
    for items in added.chunks(portion) {
        sum(items, &bar, |chunk| subject.add(chunk))?;
        count += items.len();
        let found = sum(probed, &bar, |chunk| subject.count_found(chunk))?;
        let probes = probed.len() as f64;
        let measured = found as f64 / probes;
        points.push(Point {
            added: count,
            measured,
            // The number of false positives among so many probes is binomial.
            deviation: (measured * (1.0 - measured) / probes).sqrt(),
            expected: subject.expected_error_rate()?,
        });
    }
    Ok(Filling { name, points })
}

/// A line for what is expected and dots for what was measured, of each filter.
pub(super) fn chart(fillings: &[Filling], asked: Option<f64>, capacity: u64, place: &str) -> Chart {
    let mut lines = Vec::new();
    let mut most = 0.0_f64;
    for (colour, filling) in fillings.iter().enumerate() {
        let Filling { name, points } = filling;
        let at = |point: &Point| point.added as f64;
        let expected = points
            .iter()
            .filter_map(|point| Some((at(point), point.expected?)));
        let expected: Vec<(f64, f64)> = [(0.0, 0.0)].into_iter().chain(expected).collect();
        if expected.len() > 1 {
            lines.push(Line::curve(format!("{name}, expected"), colour, expected));
        }
        let measured = points
            .iter()
            .map(|point| (at(point), point.measured))
            .collect();
        let errors = points.iter().map(|point| point.deviation).collect();
        lines.push(Line::curve(format!("{name}, measured"), colour, measured).measured(errors));
        most = points.iter().map(at).fold(most, f64::max);
    }
    let mut made = format!("made for {} items", label::count(capacity as f64));
    if let Some(asked) = asked {
        let rate = label::percent(asked);
        let line = vec![(0.0, asked), (most, asked)];
        lines.push(Line::curve(format!("asked for: {rate}"), 2, line).dashed());
        made += &format!(" at {rate}");
    }
    Chart {
        title: "Error rate while a filter fills".into(),
        subtitle: format!(
            "{place}: {made}. Dots: share of false positives, with one standard deviation"
        ),
        x: Axis::linear("strings added", label::count).within(0.0, most.max(1.0)),
        y: Axis::linear("error rate", label::percent),
        lines,
    }
}

#[cfg(test)]
mod tests {
    use everbloom::Layout;

    use super::super::random_items;
    use super::super::subject::Shape;
    use super::*;

    /// Checks that every measured rate is within five deviations of the expected one.
    fn check_points(filling: &Filling) {
        for point in &filling.points {
            let away = (point.measured - point.expected.unwrap()).abs();
            assert!(
                away <= 5.0 * point.deviation.max(1e-4),
                "{away} at {}",
                point.added
            );
        }
    }

    #[test]
    fn what_is_measured_is_what_is_expected() {
        let items = random_items(40_000, 3).unwrap();
        let (added, probed) = items.split_at(20_000);
        for layout in [Layout::Classic, Layout::Blocked] {
            let subject =
                Subject::reserved(None, (0.01, 10_000), Shape::Layout(Some(layout))).unwrap();
            let filling = fill("filter".into(), subject, added, probed, true).unwrap();
            assert_eq!(filling.points.len(), STEPS);
            check_points(&filling);
            let chart = chart(&[filling], Some(0.01), 10_000, "here");
            assert_eq!(chart.lines.len(), 3);
        }
    }

    #[test]
    fn a_cuckoo_filter_errs_as_expected_while_it_fills_and_grows() {
        let items = random_items(80_000, 3).unwrap();
        let (added, probed) = items.split_at(20_000);
        for bucket_size in [1, 4] {
            let subject = Subject::cuckoo(None, 10_000, bucket_size).unwrap();
            let filling = fill("filter".into(), subject, added, probed, true).unwrap();
            check_points(&filling);
            assert_eq!(chart(&[filling], None, 10_000, "here").lines.len(), 2);
        }
    }
}
