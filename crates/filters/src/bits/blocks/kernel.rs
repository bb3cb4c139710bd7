//! Which functions test blocks and insert into them: a list for each set of instructions, chosen
//! once for each layer.

use core::sync::atomic::{AtomicU8, Ordering};

use super::array::{Block, BlockArray};
use super::functions::{BlockedBits, Functions, Instructions, Kernel};
use super::lanes::COUNTS;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
use super::neon;
use super::portable;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use super::{avx2, avx512};
use crate::hash::DoubleHash;
use crate::sizing::BlockedSize;

/// The fastest first.
const ALL: [Instructions; 4] = [
    Instructions::Avx512,
    Instructions::Avx2,
    Instructions::Neon,
    Instructions::Portable,
];

/// The number of the set that was selected; of none, if none was.
static SELECTED: AtomicU8 = AtomicU8::new(u8::MAX);

/// Whether the processor has an instruction set: detected while it runs with `std`, and otherwise
/// as far as the compiler was told.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
macro_rules! has {
    ($feature:tt) => {{
        #[cfg(feature = "std")]
        let has = std::is_x86_feature_detected!($feature);
        #[cfg(not(feature = "std"))]
        let has = cfg!(target_feature = $feature);
        has
    }};
}

impl Instructions {
    /// The instructions that the processor has, the fastest first.
    pub fn available() -> impl Iterator<Item = Instructions> {
        ALL.into_iter().filter(|set| functions_of(*set).is_some())
    }

    /// The instructions that new filters use.
    #[must_use]
    pub fn current() -> Instructions {
        let number = SELECTED.load(Ordering::Relaxed);
        let selected = ALL.into_iter().find(|set| *set as u8 == number);
        let fastest = || Instructions::available().next();
        selected.or_else(fastest).unwrap_or(Instructions::Portable)
    }

    /// Sets the instructions for filters made from now on; false when the processor does not have
    /// them.
    #[must_use]
    pub fn select(self) -> bool {
        let is_available = Instructions::available().any(|set| set == self);
        if is_available {
            SELECTED.store(self as u8, Ordering::Relaxed);
        }
        is_available
    }

    /// A name in lower case, as for a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Instructions::Portable => "portable",
            Instructions::Avx2 => "avx2",
            Instructions::Avx512 => "avx512",
            Instructions::Neon => "neon",
        }
    }
}

/// The functions of these instructions, for each number of hashes; `None` when the processor does
/// not have them.
fn functions_of(instructions: Instructions) -> Option<&'static [Functions; COUNTS]> {
    let (has, functions) = match instructions {
        Instructions::Portable => (true, &portable::FUNCTIONS),
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        Instructions::Avx2 => (has!("avx2"), &avx2::FUNCTIONS),
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        Instructions::Avx512 => {
            let has = has!("avx512f") && has!("avx512vl") && has!("bmi2");
            (has, &avx512::FUNCTIONS)
        }
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        Instructions::Neon => (true, &neon::FUNCTIONS),
        #[allow(unreachable_patterns, reason = "no processor has all")]
        _ => return None,
    };
    has.then_some(functions)
}

impl Kernel {
    /// The functions of [`Instructions::current`] for layers with this many hashes; `None` when
    /// there are no such layers.
    pub(super) fn new(hashes: u32) -> Option<Kernel> {
        let functions = functions_of(Instructions::current()).unwrap_or(&portable::FUNCTIONS);
        Kernel::of(functions, hashes)
    }

    fn of(functions: &'static [Functions; COUNTS], hashes: u32) -> Option<Kernel> {
        let functions = functions.get(usize::try_from(hashes).ok()?);
        let functions = functions.filter(|_| hashes >= BlockedSize::MIN_HASHES);
        // SAFETY: `functions_of` has none that the processor cannot execute.
        functions.map(|functions| unsafe { Kernel::new_unchecked(functions) })
    }

    /// All that the processor can execute.
    #[cfg(any(test, fuzzing))]
    pub(super) fn all(hashes: u32) -> impl Iterator<Item = Kernel> {
        let functions = Instructions::available().filter_map(functions_of);
        functions.filter_map(move |functions| Kernel::of(functions, hashes))
    }

    /// Whether an item is in the blocks. One call hashes and tests, because neither can be inlined
    /// where the instructions are not known to exist.
    #[inline]
    pub(super) fn contains_item(self, bits: &BlockedBits, item: &[u8]) -> bool {
        // SAFETY: the value proves that the processor has the instructions.
        unsafe { (self.functions().contains_item)(bits, item) }
    }

    /// Whether all bits of an item are 1 in its block.
    #[inline]
    pub(super) fn contains(self, block: &Block, b: u64) -> bool {
        // SAFETY: as in `contains_item`.
        unsafe { (self.functions().contains)(block, b, self.lanes()) }
    }

    /// The items in the mask that are in any of the arrays: bit i for `pairs[i]`.
    #[inline]
    pub(super) fn contained(
        self,
        arrays: &[&BlockArray],
        pairs: &[DoubleHash; 32],
        mask: u32,
    ) -> u32 {
        // SAFETY: as in `contains_item`.
        unsafe { (self.functions().contained)(arrays, pairs, mask, self.lanes()) }
    }

    /// Inserts an item; whether it is new.
    #[inline]
    pub(super) fn insert_item(self, bits: &mut BlockedBits, item: &[u8]) -> bool {
        // SAFETY: as in `contains_item`.
        unsafe { (self.functions().insert_item)(bits, item) }
    }

    /// Sets all bits of an item in its block; whether one of them was 0.
    #[inline]
    pub(super) fn insert(self, block: &mut Block, b: u64) -> bool {
        // SAFETY: as in `contains_item`.
        unsafe { (self.functions().insert)(block, b, self.lanes()) }
    }

    /// Inserts those of the items in the mask, in order; which of them are new: bit i for
    /// `pairs[i]`.
    #[inline]
    pub(super) fn insert_group(
        self,
        bits: &mut BlockedBits,
        pairs: &[DoubleHash; 32],
        mask: u32,
    ) -> u32 {
        // SAFETY: as in `contains_item`.
        unsafe { (self.functions().insert_group)(bits, pairs, mask) }
    }

    /// Whether all bits of an item are 1 in its block, which threads share.
    #[inline]
    #[cfg(target_has_atomic = "64")]
    pub(super) fn contains_shared(self, words: &super::array::Words, b: u64) -> bool {
        // SAFETY: as in `contains_item`.
        unsafe { (self.functions().contains_shared)(words, b, self.lanes()) }
    }

    /// The words of a block in which the bits of an item are 1, as they lie in memory.
    #[inline]
    #[cfg(target_has_atomic = "64")]
    pub(super) fn mask_words(self, b: u64) -> [u64; 8] {
        // SAFETY: as in `contains_item`.
        unsafe { (self.functions().mask_words)(b, self.lanes()) }
    }
}
