//! The report as an aligned table.

use everbloom_plot::label::percent;

use crate::number::grouped;

/// The results of one filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    /// The error rate that was asked for. A cuckoo filter takes none.
    pub(super) asked: Option<f64>,
    /// The items that the filter counted. It does not count a string that tests positive when it is
    /// added.
    pub(super) items: u64,
    pub(super) missed: u64,
    pub(super) probes: u64,
    pub(super) false_positives: u64,
    /// Computed from the fill ratio of the layers, if the subject shows it.
    pub(super) expected: Option<f64>,
}

const HEADINGS: [&str; 7] = [
    "filter",
    "items",
    "missed",
    "false positives",
    "asked for",
    "expected",
    "measured",
];

/// The table, with names to the left, figures to the right and two spaces between columns.
pub(super) fn render(rows: &[Row]) -> String {
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let widths: [usize; HEADINGS.len()] = std::array::from_fn(|column| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    });
    let mut text = String::new();
    for line in &lines {
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            if column == 0 {
                text.push_str(&format!("{cell:<width$}"));
            } else {
                text.push_str(&format!("  {cell:>width$}"));
            }
        }
        text.push('\n');
    }
    text
}

fn cells(row: &Row) -> [String; HEADINGS.len()] {
    let probes = row.probes as f64;
    let rate = row.false_positives as f64 / probes;
    // The number of false positives among n probes is binomial.
    let deviation = (rate * (1.0 - rate) / probes).sqrt();
    [
        row.name.clone(),
        grouped(row.items),
        grouped(row.missed),
        grouped(row.false_positives),
        row.asked.map_or("-".to_owned(), percent),
        row.expected.map_or("-".to_owned(), percent),
        format!("{:.3} % ± {:.3}", 100.0 * rate, 100.0 * deviation),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_aligned() {
        let rows = [
            Row {
                name: "default, grown from 100".into(),
                asked: Some(0.01),
                items: 49_680,
                missed: 0,
                probes: 50_000,
                false_positives: 565,
                expected: Some(0.008_9),
            },
            Row {
                name: "reserved 1e-7 50000".into(),
                asked: Some(1e-7),
                items: 50_000,
                missed: 0,
                probes: 50_000,
                false_positives: 0,
                expected: None,
            },
        ];
        let expected = "\
filter                    items  missed  false positives  asked for  expected         measured
default, grown from 100  49 680       0              565        1 %    0.89 %  1.130 % ± 0.047
reserved 1e-7 50000      50 000       0                0     1e-5 %         -  0.000 % ± 0.000
";
        assert_eq!(render(&rows), expected);
    }
}
