//! The layers of a value, as they arrive.

use everbloom::redisbloom::{LayerParts, PartsError};

use super::fields::{FieldReader, ValueError};

/// The layers that have arrived, and their bit arrays.
pub(super) struct Arrived {
    pub(super) layers: Vec<LayerParts>,
    pub(super) arrays: Vec<Vec<u8>>,
    /// The bytes that further bit arrays may take.
    left: u64,
    limit: u64,
}

impl Arrived {
    pub(super) fn new(limit: u64) -> Arrived {
        Arrived {
            layers: Vec::new(),
            arrays: Vec::new(),
            left: limit,
            limit,
        }
    }

    /// Reads the bit array and the item count of a layer. Its other fields were read and are valid.
    pub(super) fn push<R: FieldReader>(
        &mut self,
        mut layer: LayerParts,
        reader: &mut R,
    ) -> Result<(), ValueError<R::Error>> {
        self.left = self
            .left
            .checked_sub(layer.bytes)
            .ok_or(PartsError::TooLarge { limit: self.limit })?;
        let array = reader.bytes(layer.bytes).map_err(ValueError::Read)?;
        if array.len() as u64 != layer.bytes {
            return Err(ValueError::BitArray {
                layer: self.layers.len(),
                bytes: array.len() as u64,
                expected: layer.bytes,
            });
        }
        layer.items = reader.unsigned().map_err(ValueError::Read)?;
        self.arrays.push(array);
        self.layers.push(layer);
        Ok(())
    }
}
