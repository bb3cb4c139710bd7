//! Numbers in x87 extended precision, 64 bits of significand: what Redis adds in for INCRBYFLOAT.
//!
//! Sums come out digit for digit as from Redis on x86-64, where C's `long double` is this format:
//! in a double, 0.1 + 0.2 would be 0.30000000000000004. Of C's `strtold` the decimal forms are
//! read, and the infinities; hexadecimal forms are not numbers here.

use std::cmp::Ordering;
use std::fmt;

/// A significand has its top bit set: a number is `significand * 2^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extended {
    negative: bool,
    magnitude: Magnitude,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Magnitude {
    Zero,
    Finite { significand: u64, exponent: i32 },
    Infinite,
}

/// Exponents of the largest and of the smallest number; those below the smallest normal number have
/// fewer bits in a `long double`, which no sum printed with 17 decimals can show.
const MAX_EXPONENT: i32 = 16383 - 63;
const MIN_EXPONENT: i32 = -16445 - 63;
/// Redis reads no longer numbers.
const MAX_LEN: usize = 5 * 1024;
/// Decimals of a number in print, and ten to that power.
const DECIMALS: usize = 17;
const SCALE: u128 = 100_000_000_000_000_000;

impl Extended {
    /// Reads a number. Too large or too small a one is none, as for Redis.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= MAX_LEN {
            return None;
        }
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] | rest => (false, rest),
        };
        let word = rest.to_ascii_lowercase();
        let magnitude = if word == b"inf" || word == b"infinity" {
            Magnitude::Infinite
        } else {
            Decimal::parse(rest)?.magnitude()?
        };
        Some(Extended {
            negative,
            magnitude,
        })
    }

    /// Whether it is not infinite.
    pub fn is_finite(&self) -> bool {
        self.magnitude != Magnitude::Infinite
    }

    /// The sum, to the nearest, ties to even; `None` for infinity less infinity.
    pub fn plus(self, other: Self) -> Option<Self> {
        use Magnitude::{Finite, Infinite, Zero};
        match (self.magnitude, other.magnitude) {
            (Infinite, Infinite) if self.negative != other.negative => None,
            (Infinite, _) | (_, Zero) => Some(self),
            (_, Infinite) | (Zero, _) => Some(other),
            (
                Finite {
                    significand: a,
                    exponent: a_exponent,
                },
                Finite {
                    significand: b,
                    exponent: b_exponent,
                },
            ) => {
                let (a, b) = ((a_exponent, a), (b_exponent, b));
                // The top bits are set, so the exponents decide first.
                Some(if a >= b {
                    sum(self.negative, a, self.negative == other.negative, b)
                } else {
                    sum(other.negative, b, self.negative == other.negative, a)
                })
            }
        }
    }
}

/// `large + small` or `large - small`; both are an exponent and a significand.
fn sum(negative: bool, large: (i32, u64), same_sign: bool, small: (i32, u64)) -> Extended {
    // 62 bits below the larger significand hold enough of the smaller one; what is cut off there
    // only has to leave a trace in the lowest of them.
    const GUARD: u32 = 62;
    let shift = (large.0 - small.0).unsigned_abs();
    let (a, b) = (u128::from(large.1) << GUARD, u128::from(small.1) << GUARD);
    let kept = b.checked_shr(shift).unwrap_or(0);
    let cut_off = shift > 0 && (shift >= 128 || b & ((1 << shift) - 1) != 0);
    let kept = kept | u128::from(cut_off);
    let total = if same_sign { a + kept } else { a - kept };
    let magnitude = round(total, large.0 - GUARD.cast_signed(), false);
    Extended {
        negative: negative && magnitude != Magnitude::Zero,
        magnitude,
    }
}

/// The number nearest to `bits * 2^exponent`, ties to even; `more` says that something was cut off
/// below the bits.
fn round(bits: u128, exponent: i32, more: bool) -> Magnitude {
    if bits == 0 {
        return Magnitude::Zero;
    }
    let excess = 64 - bits.leading_zeros().cast_signed();
    let mut exponent = exponent + excess;
    let significand = if excess <= 0 {
        bits << excess.unsigned_abs()
    } else {
        let excess = excess.unsigned_abs();
        let (kept, rest) = (bits >> excess, bits & ((1 << excess) - 1));
        let half = 1u128 << (excess - 1);
        let up = match rest.cmp(&half) {
            Ordering::Less => false,
            Ordering::Equal => more || kept & 1 == 1,
            Ordering::Greater => true,
        };
        kept + u128::from(up)
    };
    // Rounding up may carry into a 65th bit, and then all the others are zero.
    let significand = u64::try_from(significand).unwrap_or_else(|_| {
        exponent += 1;
        1 << 63
    });
    if exponent > MAX_EXPONENT {
        return Magnitude::Infinite;
    }
    if exponent < MIN_EXPONENT {
        return Magnitude::Zero;
    }
    Magnitude::Finite {
        significand,
        exponent,
    }
}

impl fmt::Display for Extended {
    /// With up to 17 decimals and no zeros at the end of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = match self.magnitude {
            Magnitude::Infinite => ("inf".to_owned(), 0),
            Magnitude::Zero => ("0".to_owned(), 0),
            Magnitude::Finite {
                significand,
                exponent,
            } => match u32::try_from(exponent) {
                Ok(shift) => (Big::from(significand).shifted_left(shift).to_decimal(), 0),
                Err(_) => {
                    let scaled = scaled(significand, exponent.unsigned_abs());
                    ((scaled / SCALE).to_string(), scaled % SCALE)
                }
            },
        };
        let fraction = format!("{decimals:0DECIMALS$}");
        let fraction = fraction.trim_end_matches('0');
        let sign = match self.negative && (whole != "0" || !fraction.is_empty()) {
            true => "-",
            false => "",
        };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

/// `significand * 10^17 / 2^shift`, to the nearest, ties to even.
fn scaled(significand: u64, shift: u32) -> u128 {
    let product = u128::from(significand) * SCALE;
    let Some(kept) = product.checked_shr(shift) else {
        return 0;
    };
    let rest = product & ((1 << shift) - 1);
    let half = 1u128 << (shift - 1);
    kept + u128::from(rest > half || rest == half && kept & 1 == 1)
}

/// `digits * 10^exponent`.
struct Decimal {
    digits: Vec<u8>,
    exponent: i32,
}

impl Decimal {
    /// Digits with at most one point among them, then an exponent or none.
    fn parse(text: &[u8]) -> Option<Self> {
        let at = text
            .iter()
            .position(|byte| byte.eq_ignore_ascii_case(&b'e'));
        let (mantissa, exponent) = match at {
            None => (text, 0),
            Some(at) => (text.get(..at)?, exponent(text.get(at + 1..)?)?),
        };
        let (whole, fraction) = match mantissa.iter().position(|byte| *byte == b'.') {
            None => (mantissa, &[][..]),
            Some(at) => (mantissa.get(..at)?, mantissa.get(at + 1..)?),
        };
        let digits = [whole, fraction].concat();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let fraction = i32::try_from(fraction.len()).ok()?;
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        Some(Decimal {
            digits: digits.get(zeros..)?.to_vec(),
            exponent: exponent - fraction,
        })
    }

    /// The number nearest to it; `None` if it is too large, or too small to be told from zero.
    fn magnitude(&self) -> Option<Magnitude> {
        const LARGEST: i32 = 4940;
        const SMALLEST: i32 = -4960;
        if self.digits.is_empty() {
            return Some(Magnitude::Zero);
        }
        let top = self.exponent + i32::try_from(self.digits.len()).ok()?;
        if !(SMALLEST..=LARGEST).contains(&top) {
            return None;
        }
        let mut numerator = Big::from_decimal(&self.digits);
        let mut denominator = Big::from(1);
        let power = if self.exponent < 0 {
            &mut denominator
        } else {
            &mut numerator
        };
        for _ in 0..self.exponent.unsigned_abs() {
            power.multiply_add(10, 0);
        }
        let (bits, exponent, more) = quotient(numerator, denominator);
        Some(round(bits, exponent, more))
            .filter(|m| !matches!(m, Magnitude::Zero | Magnitude::Infinite))
    }
}

/// A decimal exponent; one beyond all numbers is cut to what is beyond them still.
fn exponent(text: &[u8]) -> Option<i32> {
    const BEYOND: i32 = 1_000_000;
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0i32, |number, digit| {
        (number * 10 + i32::from(digit - b'0')).min(BEYOND)
    });
    Some(if negative { -number } else { number })
}

/// At least 66 bits of `numerator / denominator`, the exponent of the lowest of them, and whether
/// there is a rest.
fn quotient(numerator: Big, denominator: Big) -> (u128, i32, bool) {
    const BITS: u32 = 66;
    let shift = (BITS + denominator.bits()).cast_signed() - numerator.bits().cast_signed();
    let (mut rest, mut divisor) = if shift >= 0 {
        (numerator.shifted_left(shift.unsigned_abs()), denominator)
    } else {
        (numerator, denominator.shifted_left(shift.unsigned_abs()))
    };
    // The quotient lies between 2^65 and 2^67: long division from bit 66 down.
    divisor = divisor.shifted_left(BITS);
    let mut bits = 0u128;
    for _ in 0..=BITS {
        bits <<= 1;
        if rest.compare(&divisor) != Ordering::Less {
            rest.subtract(&divisor);
            bits |= 1;
        }
        rest = rest.shifted_left(1);
    }
    (bits, -shift, rest.bits() > 0)
}

/// A natural number of any size: 32 bits a limb, the lowest first, no zero limb at the top.
#[derive(Debug, Clone)]
struct Big(Vec<u32>);

impl From<u64> for Big {
    fn from(number: u64) -> Self {
        let mut big = Big(Vec::new());
        big.push_carry(number);
        big
    }
}

/// The low and the high half.
fn halves(number: u64) -> (u32, u64) {
    let low = u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0);
    (low, number >> 32)
}

impl Big {
    fn from_decimal(digits: &[u8]) -> Self {
        let mut big = Big(Vec::new());
        for digit in digits {
            big.multiply_add(10, u32::from(digit - b'0'));
        }
        big
    }

    fn push_carry(&mut self, mut carry: u64) {
        while carry > 0 {
            let (low, high) = halves(carry);
            self.0.push(low);
            carry = high;
        }
    }

    fn multiply_add(&mut self, factor: u32, term: u32) {
        let mut carry = u64::from(term);
        for limb in &mut self.0 {
            let (low, high) = halves(u64::from(*limb) * u64::from(factor) + carry);
            *limb = low;
            carry = high;
        }
        self.push_carry(carry);
    }

    fn bits(&self) -> u32 {
        let limbs = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let top = self.0.last().map_or(0, |limb| limb.leading_zeros());
        limbs * u32::BITS - top
    }

    fn shifted_left(&self, shift: u32) -> Self {
        let limbs = usize::try_from(shift / u32::BITS).unwrap_or(0);
        let mut shifted = Big(self.0.clone());
        shifted.multiply_add(1 << (shift % u32::BITS), 0);
        if !shifted.0.is_empty() {
            shifted.0.splice(0..0, std::iter::repeat_n(0, limbs));
        }
        shifted
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_len = self.0.len().cmp(&other.0.len());
        by_len.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Subtracts a number that is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        for (limb, other) in self.0.iter_mut().zip(others) {
            let (difference, under) = limb.overflowing_sub(other);
            let (difference, under_again) = difference.overflowing_sub(u32::from(borrow));
            *limb = difference;
            borrow = under || under_again;
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// The digits, most significant first.
    fn to_decimal(&self) -> String {
        const BASE: u64 = 1_000_000_000;
        let mut rest = self.0.clone();
        let mut groups = Vec::new();
        while !rest.is_empty() {
            let mut remainder = 0;
            for limb in rest.iter_mut().rev() {
                let number = remainder << 32 | u64::from(*limb);
                *limb = u32::try_from(number / BASE).unwrap_or(u32::MAX);
                remainder = number % BASE;
            }
            groups.push(remainder);
            while rest.last() == Some(&0) {
                rest.pop();
            }
        }
        let digits: String = groups
            .iter()
            .rev()
            .map(|group| format!("{group:09}"))
            .collect();
        match digits.trim_start_matches('0') {
            "" => "0".to_owned(),
            digits => digits.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum_of(a: &str, b: &str) -> String {
        let number = |text: &str| Extended::parse(text.as_bytes()).unwrap();
        number(a).plus(number(b)).unwrap().to_string()
    }

    #[test]
    fn sums_are_those_of_redis() {
        // Taken from Redis 7.0.15 on x86-64.
        for (a, b, sum) in [
            ("0.1", "0.2", "0.3"),
            ("10.5", "0.1", "10.6"),
            ("3000", "0.1", "3000.10000000000000009"),
            (
                "123456789.123456789",
                "0.000000001",
                "123456789.12345678999554366",
            ),
            ("1e18", "0.5", "1000000000000000000.5"),
            ("1e20", "1", "100000000000000000000"),
            ("1e19", "-0.25", "10000000000000000000"),
            ("1e22", "0.1", "10000000000000000000000"),
            ("18446744073709551615", "0.5", "18446744073709551616"),
            ("18446744073709551617", "0", "18446744073709551616"),
            ("9007199254740993", "1e-17", "9007199254740993"),
            (
                "0.00000000000000001",
                "0.000000000000000005",
                "0.00000000000000002",
            ),
            ("5.0e3", "-5000", "0"),
            ("-0", "0", "0"),
            ("-1e-20", "0", "0"),
            ("1e-4950", "0", "0"),
            ("-1.5", "1", "-0.5"),
        ] {
            assert_eq!(sum_of(a, b), sum, "{a} {b}");
            assert_eq!(sum_of(b, a), sum, "{b} {a}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            " 1",
            "1 ",
            "x",
            "1x",
            ".",
            "e5",
            "1e",
            "1e+",
            "--1",
            "+-1",
            "1.2.3",
            "nan",
            "1e4933",
            "1e-4952",
            "1e99999999999",
            "0x10",
        ] {
            assert_eq!(Extended::parse(text.as_bytes()), None, "{text}");
        }
        for text in [
            "1.",
            ".5",
            "+1",
            "1E5",
            "0e99999999999",
            "INFINITY",
            "-inf",
            "1e4932",
        ] {
            assert!(Extended::parse(text.as_bytes()).is_some(), "{text}");
        }
    }
}
