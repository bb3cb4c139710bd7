//! C's `%g`, in which BF.DEBUG writes error rates.

/// Significant digits of `%g` without a precision.
const DIGITS: i32 = 6;

/// The number as `printf("%g")` writes it: six significant digits without trailing zeros, and an
/// exponent of at least two digits when it is below -4 or above 5.
///
/// ```
/// # use everbloom_commands::format::g;
/// assert_eq!(g::format(0.005), "0.005");
/// assert_eq!(g::format(0.0000625), "6.25e-05");
/// ```
pub fn format(number: f64) -> String {
    if !number.is_finite() {
        return if number.is_nan() {
            "nan".into()
        } else {
            format!("{number}")
        };
    }
    // Rounding may reach the next power of ten, so the exponent comes from the rounded form.
    let scientific = format!("{:.5e}", number);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return trim(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.unsigned_abs())
}

/// Removes the zeros at the end of the fraction, and the point if no digit is left behind it.
fn trim(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn equals_what_c_prints() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (0.25, "0.25"),
            (0.005, "0.005"),
            (0.000_5, "0.0005"),
            (0.000_1, "0.0001"),
            (0.000_099_999_9, "9.99999e-05"),
            (0.000_099_999_99, "0.0001"),
            (6.25e-5, "6.25e-05"),
            (5e-301, "5e-301"),
            (5e-324, "4.94066e-324"),
            (0.001_953_125, "0.00195312"),
            (0.000_976_562_5, "0.000976562"),
            (0.015_625, "0.015625"),
            (1.0 / 3.0, "0.333333"),
            (2.0 / 3.0, "0.666667"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.23457e+06"),
            (999_999.5, "1e+06"),
            (1e100, "1e+100"),
            (-1.5, "-1.5"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (number, text) in cases {
            assert_eq!(format(number), text, "{number:e}");
        }
    }
}
