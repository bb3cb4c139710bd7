//! Shares the parameters that many layers have in common.
//!
//! A program that keeps a filter for each of a million users makes them all alike. A layer's
//! parameters take more memory than the bits of its first item, so layers of one shape share them.

use alloc::sync::Arc;

use crate::error::BuildError;
use crate::hash::valkey;
use crate::hash::{DoubleHash, Modulus};
use crate::sizing::LayerSize;

/// The parameters of a layer, and the modulus of its bit positions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) size: LayerSize,
    pub(crate) modulus: Modulus,
}

impl Shape {
    /// The shape of one of the last layers, if its size is equal, or else a new allocation.
    pub(crate) fn shared(size: &LayerSize) -> Result<Arc<Shape>, BuildError> {
        #[cfg(feature = "std")]
        return recent::find_or_make(size);
        #[cfg(not(feature = "std"))]
        Shape::new(size).map(Arc::new)
    }

    pub(crate) fn new(size: &LayerSize) -> Result<Shape, BuildError> {
        let modulus = match size.log2_bits {
            0 => size.bytes.checked_mul(8),
            log2_bits => 1_u64.checked_shl(u32::from(log2_bits)),
        };
        // Every position must lie in the array; probing relies on it.
        let modulus = modulus.filter(|&modulus| modulus > 0 && (modulus - 1) / 8 < size.bytes);
        Ok(Shape {
            size: *size,
            modulus: Modulus::new(modulus.ok_or(BuildError::Unsizable)?),
        })
    }

    /// Where the item's bits lie, in a layer of RedisBloom.
    #[inline]
    pub(crate) fn positions(&self, pair: DoubleHash) -> impl Iterator<Item = u64> + use<> {
        pair.reduced(self.size.hashes, self.modulus)
    }

    /// Where the item's bits lie, in a layer of valkey-bloom.
    #[inline]
    pub(crate) fn valkey_positions(&self, pair: DoubleHash) -> impl Iterator<Item = u64> + use<> {
        let modulus = self.modulus;
        let position = move |index| modulus.reduce(valkey::position(pair.a, pair.b, index));
        (0..self.size.hashes).map(position)
    }
}

#[cfg(feature = "std")]
mod recent {
    use alloc::sync::Arc;
    use core::cell::RefCell;

    use super::Shape;
    use crate::error::BuildError;
    use crate::sizing::LayerSize;

    /// The shapes that were made last, newest first.
    type Recent = [Option<Arc<Shape>>; 16];

    std::thread_local! {
        /// Each thread has its own, so none waits for another.
        static RECENT: RefCell<Recent> = const { RefCell::new([const { None }; 16]) };
    }

    pub(super) fn find_or_make(size: &LayerSize) -> Result<Arc<Shape>, BuildError> {
        let is_same = |shape: &&Arc<Shape>| shape.size == *size;
        let find = |recent: &Recent| recent.iter().flatten().find(is_same).cloned();
        // The list is gone when the thread ends.
        let found = RECENT.try_with(|recent| find(&recent.borrow()));
        if let Ok(Some(same)) = found {
            return Ok(same);
        }
        let shape = Arc::new(Shape::new(size)?);
        let _ = RECENT.try_with(|recent| {
            let mut recent = recent.borrow_mut();
            recent.rotate_right(1);
            let [newest, ..] = &mut *recent;
            *newest = Some(Arc::clone(&shape));
        });
        Ok(shape)
    }
}
