//! Numbers as people read them on an axis or at a line.

/// Three digits, without zeros at the end: `1.25`, `0.001`, `1000`. Very small numbers have an
/// exponent.
///
/// ```
/// use everbloom_plot::label::short;
/// assert_eq!([0.0, 9.587, 14.377, 1234.6].map(short), ["0", "9.59", "14.4", "1235"]);
/// assert_eq!(short(0.00001234), "1.23e-5");
/// ```
#[must_use]
pub fn short(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && magnitude < 1e-3 {
        let text = format!("{value:.2e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trimmed(digits));
    }
    let decimals = match magnitude {
        m if m >= 100.0 => 0,
        m if m >= 10.0 => 1,
        m if m >= 1.0 || m == 0.0 => 2,
        m if m >= 0.1 => 3,
        m if m >= 0.01 => 4,
        _ => 5,
    };
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

/// With k, M, G or T: `250k` is 250 000.
///
/// ```
/// use everbloom_plot::label::count;
/// assert_eq!([12.0, 1000.0, 2.5e5, 9e8, 1e15].map(count), ["12", "1k", "250k", "900M", "1e15"]);
/// ```
#[must_use]
pub fn count(value: f64) -> String {
    let (unit, letter) = match value.abs() {
        m if m >= 999.5e12 => return format!("{value:e}"),
        m if m >= 999.5e9 => (1e12, "T"),
        m if m >= 999.5e6 => (1e9, "G"),
        m if m >= 999.5e3 => (1e6, "M"),
        m if m >= 999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{}{letter}", short(value / unit))
}

/// A rate in percent: `0.1 %`.
///
/// ```
/// assert_eq!(everbloom_plot::label::percent(0.001), "0.1 %");
/// ```
#[must_use]
pub fn percent(rate: f64) -> String {
    format!("{} %", short(100.0 * rate))
}

/// With KiB, MiB, GiB, TiB or PiB.
///
/// ```
/// use everbloom_plot::label::bytes;
/// assert_eq!([64.0, 1_198_136.0, 1e12].map(bytes), ["64 B", "1.14 MiB", "931 GiB"]);
/// ```
#[must_use]
pub fn bytes(value: f64) -> String {
    let (mut rest, mut unit) = (value, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if rest.abs() >= 999.5 {
            (rest, unit) = (rest / 1024.0, larger);
        }
    }
    format!("{} {unit}", short(rest))
}
