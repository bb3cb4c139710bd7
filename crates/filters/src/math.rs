//! The few elementary functions the crate needs, from `std` or from `libm`.
//!
//! Sizes are stored in dumps, so a different last bit of a logarithm would show. With `std` they
//! come from the platform's C library, as RedisBloom's do.

#[cfg(feature = "std")]
mod imp {
    pub(crate) fn ln(x: f64) -> f64 {
        x.ln()
    }
    pub(crate) fn ln_1p(x: f64) -> f64 {
        x.ln_1p()
    }
    pub(crate) fn exp(x: f64) -> f64 {
        x.exp()
    }
    pub(crate) fn exp_m1(x: f64) -> f64 {
        x.exp_m1()
    }
    pub(crate) fn powf(x: f64, y: f64) -> f64 {
        x.powf(y)
    }
    pub(crate) fn ceil(x: f64) -> f64 {
        x.ceil()
    }
    pub(crate) fn sqrt(x: f64) -> f64 {
        x.sqrt()
    }
}

#[cfg(all(not(feature = "std"), not(feature = "libm")))]
compile_error!("without the feature `std`, everbloom needs the feature `libm`");

#[cfg(all(not(feature = "std"), feature = "libm"))]
mod imp {
    pub(crate) use super::precise::ln;
    pub(crate) use libm::{ceil, exp, expm1 as exp_m1, log1p as ln_1p, pow as powf, sqrt};
}

/// The natural logarithm, correctly rounded except in cases too close to decide.
///
/// `libm`'s differs from common C libraries already for 0.01, and one last bit would make a dump
/// that RedisBloom would not have written. Theirs are within 0.52 units of the last place, so this
/// agrees with them in all but a case in a thousand.
#[cfg(any(test, not(feature = "std")))]
mod precise {
    use core::f64::consts::{FRAC_1_SQRT_2, LN_2};

    /// ln 2 minus the nearest `f64`.
    const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;

    /// A number as the unevaluated sum of two, about 106 bits (T. J. Dekker, "A floating-point
    /// technique for extending the available precision", 1971).
    #[derive(Clone, Copy)]
    struct Double(f64, f64);

    impl Double {
        /// The exact sum.
        fn sum(a: f64, b: f64) -> Double {
            let sum = a + b;
            let b_part = sum - a;
            Double(sum, (a - (sum - b_part)) + (b - b_part))
        }

        fn add(self, other: Double) -> Double {
            let Double(high, error) = Double::sum(self.0, other.0);
            Double::sum(high, error + (self.1 + other.1))
        }

        fn mul(self, other: Double) -> Double {
            let high = self.0 * other.0;
            let error = libm::fma(self.0, other.0, -high);
            Double::sum(high, error + (self.0 * other.1 + self.1 * other.0))
        }

        fn div(self, other: Double) -> Double {
            let first = self.0 / other.0;
            let rest = self.add(other.mul(Double(-first, 0.0)));
            let second = rest.0 / other.0;
            let rest = rest.add(other.mul(Double(-second, 0.0)));
            Double::sum(first, second).add(Double(rest.0 / other.0, 0.0))
        }
    }

    pub(crate) fn ln(x: f64) -> f64 {
        if !(x > 0.0 && x < f64::INFINITY) {
            return libm::log(x);
        }
        // x = m * 2^e with m near 1, and ln m = 2 artanh((m - 1) / (m + 1)).
        let (mut m, mut e) = libm::frexp(x);
        if m < FRAC_1_SQRT_2 {
            (m, e) = (m * 2.0, e - 1);
        }
        let s = Double(m - 1.0, 0.0).div(Double::sum(m, 1.0));
        let square = s.mul(s);
        // |s| < 0.172, so that the terms from s^47 on are below 2^-119 of the first.
        let mut series = Double(0.0, 0.0);
        for n in (0..23).rev() {
            let odd = f64::from(2 * n + 1);
            series = series
                .mul(square)
                .add(Double(1.0, 0.0).div(Double(odd, 0.0)));
        }
        let ln_m = series.mul(s).mul(Double(2.0, 0.0));
        Double(LN_2, LN_2_REST)
            .mul(Double(f64::from(e), 0.0))
            .add(ln_m)
            .0
    }
}

pub(crate) use imp::*;

/// The whole part of a number: 0 for NaN and everything below 1, `u64::MAX` for everything above.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the saturating conversion is what callers rely on"
)]
pub(crate) fn whole(x: f64) -> u64 {
    x as u64
}

/// `x^exponent`, without a logarithm.
pub(crate) const fn power(x: f64, exponent: u32) -> f64 {
    let (mut result, mut base, mut exponent) = (1.0, x, exponent);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// The square root of a normal positive number or 0, as [`sqrt`] rounds it, but while compiling.
#[expect(
    clippy::cast_sign_loss,
    reason = "half the exponent is more than -1023"
)]
pub(crate) const fn root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // x = mantissa * 2^exponent with an even exponent, and a mantissa whose root has 55 bits:
    // two more than a number has. The last one says whether there are others.
    let exponent = (x.to_bits() >> 52) as i32 - 1075;
    let shift = 56 + (exponent & 1);
    let mantissa = ((x.to_bits() & ((1 << 52) - 1) | 1 << 52) as u128) << shift;
    let whole = mantissa.isqrt();
    let rounded = (whole | (whole * whole != mantissa) as u128) as f64;
    rounded * f64::from_bits((((exponent - shift) / 2 + 1023) as u64) << 52)
}

/// The sum of numbers, or `u64::MAX` when it is more.
pub(crate) fn saturating_sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::{precise, root, sqrt};

    #[test]
    fn the_root_of_constants_is_rounded_as_that_of_the_processor() {
        let mut x = 1.0 / 3.0;
        for step in 0..100_000 {
            for x in [
                x,
                1e-20 * x,
                1e300 * x,
                f64::from(step),
                x.round(),
                f64::MIN_POSITIVE,
            ] {
                assert_eq!(root(x), sqrt(x), "{x:e}");
            }
            x = (x * 1.618_033_988_749_895) % 1e6;
        }
        assert_eq!(root(f64::MAX), f64::MAX.sqrt());
    }

    #[test]
    #[cfg(all(feature = "std", target_os = "linux", target_env = "gnu"))]
    fn agrees_with_the_c_library() {
        let (mut same, mut all) = (0_u32, 0_u32);
        for numerator in 1..1000 {
            for power in 1..12 {
                let mut rate = f64::from(numerator) / 10_f64.powi(power);
                while rate >= 1e-15 {
                    all += 1;
                    let (ours, theirs) = (precise::ln(rate), rate.ln());
                    same += u32::from(ours == theirs);
                    let last_place = (theirs.next_up() - theirs).abs();
                    assert!(
                        (ours - theirs).abs() <= last_place,
                        "{rate:e}: {ours} {theirs}"
                    );
                    rate *= 0.5;
                }
            }
        }
        assert!(f64::from(same) > 0.999 * f64::from(all), "{same} of {all}");
    }

    #[test]
    fn is_exact_where_it_shows_most() {
        assert_eq!(precise::ln(0.01), -4.605_170_185_988_091);
        assert_eq!(precise::ln(0.005), -5.298_317_366_548_036);
        assert_eq!(precise::ln(1.0), 0.0);
        assert_eq!(precise::ln(0.5), -core::f64::consts::LN_2);
        assert_eq!(precise::ln(5e-324), -744.440_071_921_381_2);
        assert_eq!(
            precise::ln(1.0_f64.next_down()),
            -1.110_223_024_625_156_5e-16
        );
        assert_eq!(precise::ln(0.0), f64::NEG_INFINITY);
        assert!(precise::ln(-1.0).is_nan() && precise::ln(f64::NAN).is_nan());
    }
}
