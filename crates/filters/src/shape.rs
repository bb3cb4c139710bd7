//! What many layers have in common, kept once.
//!
//! Programs that keep a filter for each of a million users make them all alike. What a layer was
//! made for takes more memory than the bits of its first item, so layers of one shape share it.

use alloc::sync::Arc;

use crate::hash::Modulus;
use crate::sizing::LayerSize;

/// What a layer was made for, and what its bit positions are taken modulo of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) size: LayerSize,
    pub(crate) modulus: Modulus,
}

impl Shape {
    /// The shape with these dimensions: shared with one of the last layers, if one has the same.
    /// `modulus` is not 0.
    pub(crate) fn shared(size: &LayerSize, modulus: u64) -> Arc<Shape> {
        let shape = Shape {
            size: *size,
            modulus: Modulus::new(modulus),
        };
        #[cfg(feature = "std")]
        return recent::find_or_keep(shape);
        #[cfg(not(feature = "std"))]
        Arc::new(shape)
    }
}

#[cfg(feature = "std")]
mod recent {
    use alloc::sync::Arc;
    use std::sync::{Mutex, PoisonError};

    use super::Shape;

    /// The shapes that were made last, in turn.
    struct Recent {
        shapes: [Option<Arc<Shape>>; 16],
        next: usize,
    }

    static RECENT: Mutex<Recent> = Mutex::new(Recent {
        shapes: [const { None }; 16],
        next: 0,
    });

    pub(super) fn find_or_keep(shape: Shape) -> Arc<Shape> {
        // Whatever a thread that panicked has left is a valid list.
        let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.shapes.iter().flatten();
        if let Some(same) = known.into_iter().find(|known| ***known == shape) {
            return Arc::clone(same);
        }
        let shape = Arc::new(shape);
        let next = recent.next;
        if let Some(place) = recent.shapes.get_mut(next) {
            *place = Some(Arc::clone(&shape));
        }
        recent.next = (next + 1) % recent.shapes.len();
        shape
    }
}
