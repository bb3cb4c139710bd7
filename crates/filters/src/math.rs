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
    pub(crate) fn floor(x: f64) -> f64 {
        x.floor()
    }
    pub(crate) fn ceil(x: f64) -> f64 {
        x.ceil()
    }
}

#[cfg(not(feature = "std"))]
mod imp {
    pub(crate) use libm::{
        ceil, exp, expm1 as exp_m1, floor, log as ln, log1p as ln_1p, pow as powf,
    };
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
