//! How numbers in arguments are written, and their ranges.
//!
//! RedisBloom's host parses numbers, and hosts differ in rare cases. This is the grammar of Redis
//! 8. Integers are in canonical decimal form only. Error rates are in decimal form. They may
//! overflow to infinity or underflow to zero, and the range check then refuses them.

use std::ops::RangeInclusive;

pub use everbloom_resp::integer;

use crate::error::CommandError;

/// The range of capacities.
pub const CAPACITY: RangeInclusive<u64> = 1..=1 << 30;
/// The range of expansions. 0 means that the filter does not grow.
pub const EXPANSION: RangeInclusive<u32> = 0..=32768;

/// Why a number was refused. The commands turn this into their own error texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// Not a number at all.
    Syntax,
    /// A number outside the allowed range.
    Range,
}

impl NumberError {
    /// The error text for either.
    pub(crate) fn or(self, syntax: CommandError, range: CommandError) -> CommandError {
        match self {
            NumberError::Syntax => syntax,
            NumberError::Range => range,
        }
    }
}

/// A capacity within [`CAPACITY`].
pub fn capacity(text: &[u8]) -> Result<u64, NumberError> {
    within(text, &CAPACITY)
}

/// The ranges of valkey-bloom.
pub(crate) const VALKEY_CAPACITY: RangeInclusive<u64> = 1..=i64::MAX as u64;
pub(crate) const VALKEY_EXPANSION: RangeInclusive<u32> = 0..=u32::MAX;

/// An integer within a range.
pub fn within<N: TryFrom<i64> + PartialOrd>(
    text: &[u8],
    range: &RangeInclusive<N>,
) -> Result<N, NumberError> {
    let number = integer(text).ok_or(NumberError::Syntax)?;
    let number = N::try_from(number).ok().filter(|it| range.contains(it));
    number.ok_or(NumberError::Range)
}

/// Bytes from `100`, `1k` (1000), `1kb` (1024), and so on up to `gb`, in any case.
pub fn memory(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = text.split_at_checked(digits)?;
    let factor: u64 = match &*unit.to_ascii_lowercase() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    str::from_utf8(digits)
        .ok()?
        .parse::<u64>()
        .ok()?
        .checked_mul(factor)
}

/// An expansion within [`EXPANSION`].
pub fn expansion(text: &[u8]) -> Result<u32, NumberError> {
    within(text, &EXPANSION)
}

/// A seed: an integer from 0 to 2^64 - 1.
pub fn seed(text: &[u8]) -> Result<u64, NumberError> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        b"0" if text.len() == 1 => {}
        [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {}
        _ => return Err(NumberError::Syntax),
    }
    // The text is ASCII digits with a sign, so only the range can still be wrong.
    let number = std::str::from_utf8(text).map(str::parse);
    number
        .map_err(|_| NumberError::Syntax)?
        .map_err(|_| NumberError::Range)
}

/// A decimal floating-point number. `inf` and `infinity` are numbers, NaN is not.
pub fn float(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

/// An error rate strictly between 0 and 1. The filter's builder lowers rates above 0.25.
pub fn error_rate(text: &[u8]) -> Result<f64, NumberError> {
    let rate = float(text).ok_or(NumberError::Syntax)?;
    if rate > 0.0 && rate < 1.0 {
        Ok(rate)
    } else {
        Err(NumberError::Range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_canonical_decimals() {
        let good: [(&[u8], i64); 6] = [
            (b"0", 0),
            (b"1", 1),
            (b"-1", -1),
            (b"100", 100),
            (b"9223372036854775807", i64::MAX),
            (b"-9223372036854775808", i64::MIN),
        ];
        for (text, number) in good {
            assert_eq!(integer(text), Some(number));
        }
        let bad: [&[u8]; 16] = [
            b"",
            b"-",
            b"-0",
            b"00",
            b"01",
            b"-01",
            b"+1",
            b" 1",
            b"1 ",
            b"1.0",
            b"1e3",
            b"0x1",
            b"9223372036854775808",
            b"-9223372036854775809",
            b"1_0",
            b"\xff",
        ];
        for text in bad {
            assert_eq!(integer(text), None, "{text:?}");
        }
    }

    #[test]
    fn seeds_are_canonical_decimals_of_64_bits() {
        assert_eq!(seed(b"0"), Ok(0));
        assert_eq!(seed(b"18446744073709551615"), Ok(u64::MAX));
        for text in [
            &b"18446744073709551616"[..],
            b"-1",
            b"-99999999999999999999",
        ] {
            assert_eq!(seed(text), Err(NumberError::Range));
        }
        for text in [
            &b""[..],
            b"-",
            b"-0",
            b"00",
            b"01",
            b"+1",
            b"1.0",
            b"0x1",
            b" 1",
            b"\xff",
        ] {
            assert_eq!(seed(text), Err(NumberError::Syntax));
        }
    }

    #[test]
    fn error_rates_are_decimals_strictly_between_zero_and_one() {
        let good: [(&[u8], f64); 10] = [
            (b"0.01", 0.01),
            (b".01", 0.01),
            (b"1e-2", 0.01),
            (b"1E-0002", 0.01),
            (b"+0.01", 0.01),
            (b"00.01", 0.01),
            (b"5e-324", 5e-324),
            (b"0.9999999999999999", 0.9999999999999999),
            (b"1e-323", 1e-323),
            (b"9.e-1", 0.9),
        ];
        for (text, rate) in good {
            assert_eq!(error_rate(text), Ok(rate), "{text:?}");
        }
        let out_of_range: [&[u8]; 12] = [
            b"0",
            b"1",
            b"1.",
            b"-0.1",
            b"1.5",
            b"inf",
            b"-inf",
            b"+Infinity",
            b"INF",
            b"1e400",
            b"1e-400",
            b"-0",
        ];
        for text in out_of_range {
            assert_eq!(error_rate(text), Err(NumberError::Range), "{text:?}");
        }
        let not_numbers: [&[u8]; 16] = [
            b"", b" 0.1", b"0.1 ", b"1e", b".", b"0,1", b"1_0", b"0.1x", b"nan", b"NaN", b"-nan",
            b"nan(1)", b"0x1p-3", b"abc", b"\xff", b"0.1\0",
        ];
        for text in not_numbers {
            assert_eq!(error_rate(text), Err(NumberError::Syntax), "{text:?}");
        }
    }

    #[test]
    fn ranges_include_their_ends() {
        assert_eq!(capacity(b"1073741824"), Ok(1 << 30));
        assert_eq!(capacity(b"1073741825"), Err(NumberError::Range));
        assert_eq!(capacity(b"0"), Err(NumberError::Range));
        assert_eq!(capacity(b"-1"), Err(NumberError::Range));
        assert_eq!(capacity(b"9223372036854775808"), Err(NumberError::Syntax));
        assert_eq!(expansion(b"32768"), Ok(32768));
        assert_eq!(expansion(b"0"), Ok(0));
        assert_eq!(expansion(b"32769"), Err(NumberError::Range));
        assert_eq!(expansion(b"4294967296"), Err(NumberError::Range));
        assert_eq!(expansion(b"-1"), Err(NumberError::Range));
    }
}
