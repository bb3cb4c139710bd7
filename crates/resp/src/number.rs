//! Decimal numbers as the protocol writes them.

/// The value of a strict signed 64-bit decimal number, or `None`.
///
/// As in Redis, every number has exactly one spelling: no `+`, no space, no leading zero, no `-0`.
/// A number out of range is `None`.
///
/// ```
/// # use everbloom_resp::integer;
/// assert_eq!(integer(b"-17"), Some(-17));
/// assert_eq!(integer(b"017"), None);
/// assert_eq!(integer(b"+17"), None);
/// ```
#[must_use]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    // The value is negative until the end, because i64::MIN has no positive counterpart.
    let mut value: i64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value
            .checked_mul(10)?
            .checked_sub(i64::from(digit - b'0'))?;
    }
    if negative {
        Some(value)
    } else {
        value.checked_neg()
    }
}

#[cfg(test)]
mod tests {
    use super::integer;
    use proptest::prelude::*;

    #[test]
    fn only_one_spelling_per_number() {
        for text in [
            "", "-", "+1", "01", "-0", "00", "-01", " 1", "1 ", "1x", "x", "--1", "1-",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
        for text in [
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999999",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_number_reads_back(number: i64) {
            prop_assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }

        #[test]
        fn what_is_accepted_is_its_own_spelling(text in "[-+ 0-9]{0,21}") {
            if let Some(number) = integer(text.as_bytes()) {
                prop_assert_eq!(number.to_string(), text);
            }
        }

        #[test]
        fn the_ends_of_the_range(number in prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0)]) {
            prop_assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }
    }
}
