//! Medians, and numbers in a form for people.

/// The median: the middle value, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// The distance from the smallest to the largest value, as a part of the median.
pub fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (most - least) / median(values)
}

/// A short form: `1.23 M`, `456 k`.
pub fn short(number: f64) -> String {
    match number {
        n if n >= 1e7 => format!("{:.1} M", n / 1e6),
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n if n >= 1e3 => format!("{:.0} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(spread(&[2.0, 1.0, 3.0]), 1.0);
    }

    #[test]
    fn short_numbers() {
        assert_eq!(short(12_345_678.0), "12.3 M");
        assert_eq!(short(2_340_000.0), "2.34 M");
        assert_eq!(short(45_600.0), "46 k");
    }
}
