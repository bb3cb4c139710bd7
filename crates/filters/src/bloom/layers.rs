//! The layers of a filter, in order.

use alloc::sync::Arc;
use alloc::vec::{self, Vec};
use core::mem::size_of;
use core::ops::{Deref, DerefMut};
use core::slice;

use crate::error::InsertError;
use crate::hash::FilterKey;
use crate::layer::Layer;
use crate::list::List;

/// The layers of a filter, oldest first. All share one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Layers(List<Layer>);

impl Layers {
    /// The only layer, if it is in the filter itself.
    #[inline]
    pub(crate) fn only(&self) -> Option<&Layer> {
        self.0.only()
    }

    /// The only layer, if it is in the filter itself, to change it.
    #[inline]
    pub(crate) fn only_mut(&mut self) -> Option<&mut Layer> {
        self.0.only_mut()
    }

    /// Heap bytes of the list.
    pub(crate) fn list_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    /// Makes room for one more layer.
    pub(crate) fn reserve_one(&mut self) -> Result<(), InsertError> {
        let bytes = (self.len() as u64 + 1).saturating_mul(size_of::<Layer>() as u64);
        let reserved = self.0.try_reserve_one();
        reserved.map_err(|_| InsertError::OutOfMemory { bytes })
    }

    /// Appends a layer, which shares the key of the others from now on.
    pub(crate) fn push(&mut self, mut layer: Layer) {
        let keeps_all = |key: &&Arc<FilterKey>| key.keeps_all();
        let key = self.first().and_then(Layer::filter_key);
        match layer.filter_key().filter(keeps_all) {
            // In a filter that has become large, all secrets are little.
            Some(all) if key.is_some_and(|key| !key.keeps_all()) => {
                self.iter_mut().for_each(|older| older.share_key(all));
            }
            _ => key.into_iter().for_each(|key| layer.share_key(key)),
        }
        self.0.push(layer);
    }

    /// Removes the last layer.
    pub(crate) fn pop(&mut self) -> Option<Layer> {
        self.0.pop()
    }

    /// Removes all layers but the first.
    pub(crate) fn keep_first(&mut self) {
        self.0.keep_first();
    }

    /// Removes the oldest layers, so many.
    pub(crate) fn drain_first(&mut self, count: usize) -> impl Iterator<Item = Layer> {
        self.0.drain_first(count)
    }
}

impl Deref for Layers {
    type Target = [Layer];

    #[inline]
    fn deref(&self) -> &[Layer] {
        &self.0
    }
}

impl DerefMut for Layers {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Layer] {
        &mut self.0
    }
}

impl From<[Layer; 1]> for Layers {
    fn from([layer]: [Layer; 1]) -> Layers {
        Layers(List::One(layer))
    }
}

impl From<Vec<Layer>> for Layers {
    fn from(mut layers: Vec<Layer>) -> Layers {
        let keys = || layers.iter().filter_map(Layer::filter_key);
        let key = keys().find(|key| key.keeps_all()).or(keys().next());
        if let Some(key) = key.map(Arc::clone) {
            layers.iter_mut().for_each(|layer| layer.share_key(&key));
        }
        Layers(layers.into())
    }
}

impl Extend<Layer> for Layers {
    fn extend<I: IntoIterator<Item = Layer>>(&mut self, layers: I) {
        layers.into_iter().for_each(|layer| self.push(layer));
    }
}

impl FromIterator<Layer> for Layers {
    fn from_iter<I: IntoIterator<Item = Layer>>(layers: I) -> Layers {
        layers.into_iter().collect::<Vec<_>>().into()
    }
}

impl IntoIterator for Layers {
    type Item = Layer;
    type IntoIter = vec::IntoIter<Layer>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'l> IntoIterator for &'l Layers {
    type Item = &'l Layer;
    type IntoIter = slice::Iter<'l, Layer>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'l> IntoIterator for &'l mut Layers {
    type Item = &'l mut Layer;
    type IntoIter = slice::IterMut<'l, Layer>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Layer};
    use crate::host::LayeredFilter;

    /// However the layers came into the filter: each key of its own would be memory that is not
    /// counted.
    #[test]
    fn all_layers_share_one_key() {
        let shares = |filter: &LayeredFilter| {
            let keys = || filter.layers.iter().filter_map(Layer::filter_key);
            let first = keys().next().unwrap();
            // The first layer has three blocks, so it was made without all secrets.
            first.keeps_all() && keys().all(|key| Arc::ptr_eq(key, first))
        };
        let builder = LayeredFilter::builder().capacity(100).seed(1);
        let mut grown = builder.build().unwrap();
        grown.extend(0..1000);
        assert!(grown.layers.len() > 2 && shares(&grown));
        let loaded = LayeredFilter::from_parts(&grown.parts(), u64::MAX).unwrap();
        assert!(shares(&loaded));
        let mut united = builder.build().unwrap();
        united.extend(5000..5050);
        united.union(&grown).unwrap();
        assert!(united.layers.len() > 2 && shares(&united));
    }
}
