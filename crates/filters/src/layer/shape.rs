//! Shares the parameters that many layers have in common.
//!
//! A program that keeps a filter for each of a million users makes them all alike. A layer's
//! parameters take more memory than the bits of its first item, so layers of one shape share them.

use alloc::sync::Arc;

use crate::error::BuildError;
use crate::hash::valkey::{self, ValkeyBloom};
use crate::hash::{DoubleHash, Modulus};
use crate::sizing::LayerSize;

/// The parameters of a layer, and the modulus of its bit positions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) size: LayerSize,
    pub(crate) modulus: Modulus,
    /// Of a filter of valkey-bloom.
    pub(crate) valkey: Option<Arc<ValkeyBloom>>,
}

impl Shape {
    pub(crate) fn new(
        size: &LayerSize,
        valkey: Option<Arc<ValkeyBloom>>,
    ) -> Result<Shape, BuildError> {
        let modulus = match size.log2_bits {
            0 => size.bytes.checked_mul(8),
            log2_bits => 1_u64.checked_shl(u32::from(log2_bits)),
        };
        // Every position must lie in the array; probing relies on it.
        let modulus = modulus.filter(|&modulus| modulus > 0 && (modulus - 1) / 8 < size.bytes);
        let mut size = *size;
        if valkey.is_some() {
            // valkey-bloom stores no bits per item: they follow.
            size.bits_per_entry = size.bits() as f64 / size.capacity as f64;
        }
        Ok(Shape {
            size,
            modulus: Modulus::new(modulus.ok_or(BuildError::Unsizable)?),
            valkey,
        })
    }

    /// The shape of one of the last layers if it is equal, or else a new allocation.
    pub(crate) fn shared(self) -> Arc<Shape> {
        #[cfg(feature = "std")]
        return recent::find_or_keep(self);
        #[cfg(not(feature = "std"))]
        Arc::new(self)
    }

    /// Where the item's bits lie, in the classic layout.
    #[inline]
    pub(crate) fn positions(&self, pair: DoubleHash) -> impl Iterator<Item = u64> + Clone + use<> {
        let (modulus, is_valkey, mut x) = (self.modulus, self.valkey.is_some(), pair.a);
        (0..self.size.hashes).map(move |index| {
            if is_valkey {
                return modulus.reduce(valkey::position(pair.a, pair.b, index));
            }
            let position = modulus.reduce(x);
            x = x.wrapping_add(pair.b);
            position
        })
    }
}

#[cfg(feature = "std")]
mod recent {
    use alloc::sync::Arc;
    use core::cell::RefCell;

    use super::Shape;

    /// The shapes that were made last, newest first.
    type Recent = [Option<Arc<Shape>>; 16];

    std::thread_local! {
        /// Each thread has its own, so none waits for another.
        static RECENT: RefCell<Recent> = const { RefCell::new([const { None }; 16]) };
    }

    pub(super) fn find_or_keep(shape: Shape) -> Arc<Shape> {
        let find = |recent: &Recent| recent.iter().flatten().find(|it| ***it == shape).cloned();
        // The list is gone when the thread ends.
        let found = RECENT.try_with(|recent| find(&recent.borrow()));
        if let Ok(Some(same)) = found {
            return same;
        }
        let shape = Arc::new(shape);
        let _ = RECENT.try_with(|recent| {
            let mut recent = recent.borrow_mut();
            recent.rotate_right(1);
            let [newest, ..] = &mut *recent;
            *newest = Some(Arc::clone(&shape));
        });
        shape
    }
}
