//! Reduction of hash values to bit positions.

/// A modulus with its reciprocal, so that a reduction costs two multiplications and no division.
///
/// With `M = floor((2^64 - 1) / m)` the estimate `floor(x * M / 2^64)` of `x / m` is right or one
/// too small for every 64-bit `x` and every `m > 0`, because `x / m - x * M / 2^64 =
/// x * (2^64 - m * M) / (m * 2^64) <= x / 2^64 < 1`; one conditional subtraction repairs it.
/// (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modulus {
    modulus: u64,
    reciprocal: u64,
}

impl Modulus {
    /// `modulus` is not 0.
    pub(crate) fn new(modulus: u64) -> Modulus {
        Modulus {
            modulus,
            reciprocal: u64::MAX / modulus,
        }
    }

    /// The modulus itself.
    #[inline]
    pub(crate) fn get(self) -> u64 {
        self.modulus
    }

    /// `x mod modulus`.
    #[inline]
    pub(crate) fn reduce(self, x: u64) -> u64 {
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = x.wrapping_sub(quotient.wrapping_mul(self.modulus));
        if rest >= self.modulus {
            rest - self.modulus
        } else {
            rest
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::Modulus;

    /// Moduli at every place where a reduction could go wrong.
    pub(in crate::hash) fn modulus() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(1_u64),
            1_u64..1000,
            (0_u32..64).prop_map(|log2| 1 << log2),
            (1_u32..64, any::<bool>()).prop_map(|(log2, up)| if up {
                (1 << log2) + 1
            } else {
                (1 << log2) - 1
            }),
            (1_u64..1 << 28).prop_map(|words| words * 64),
            1_u64..=1 << 63,
            Just(u64::MAX),
        ]
    }

    pub(in crate::hash) fn value() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            0_u64..1000,
            (0_u64..1000).prop_map(|n| u64::MAX - n),
            (0_u32..64).prop_map(|log2| 1 << log2),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn reduction_next_to_multiples_of_the_modulus(
            m in modulus(), factor in any::<u64>(), offset in 0_u64..3,
        ) {
            let multiple = m.wrapping_mul(factor % (u64::MAX / m).max(1));
            for x in [multiple.wrapping_add(offset), multiple.wrapping_sub(offset)] {
                prop_assert_eq!(Modulus::new(m).reduce(x), x % m);
            }
        }
    }
}
