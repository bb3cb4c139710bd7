//! Filters to bytes and back.

use alloc::vec;
use alloc::vec::Vec;

use super::error::BytesError;
use super::head::{self, FilterType};
use super::input::{RECORD, version};
use super::old;
use super::view::BloomView;
use crate::bits::pages;
use crate::bloom::fixed::BloomFilter;
use crate::bloom::layered::LayeredFilter;
use crate::bloom::scalable::ScalableBloomFilter;
use crate::bloom::window::MaybeWindow;
use crate::bloom::windowed::WindowedBloomFilter;
use crate::cuckoo::CuckooFilter;
use crate::formats::redisbloom::{FilterParts, Options};
use crate::layer::Layer;

impl ScalableBloomFilter {
    /// The filter as bytes that every later version of this library reads. [`bytes`](crate::bytes)
    /// draws them.
    ///
    /// ```
    /// use everbloom::ScalableBloomFilter;
    /// let mut seen = ScalableBloomFilter::builder().build()?;
    /// seen.insert("a");
    /// let bytes = seen.to_bytes();
    /// assert_eq!(ScalableBloomFilter::from_bytes(&bytes)?, seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// Reads the filter from bytes that [`to_bytes`](Self::to_bytes) made, in this or an earlier
    /// version of the library.
    ///
    /// # Errors
    ///
    /// [`BytesError`] says what is wrong with the bytes. No input causes a panic, or an allocation
    /// for more bits than the input has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        of_kind(LayeredFilter::from_bytes(bytes)?)
    }
}

impl<W: MaybeWindow> LayeredFilter<W> {
    /// As [`ScalableBloomFilter::to_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(FilterType::Scalable, &self.parts(), self.layers())
    }
}

impl LayeredFilter {
    /// Reads the filter from bytes that [`to_bytes`](Self::to_bytes) made, with or without a
    /// window.
    ///
    /// # Errors
    ///
    /// As [`ScalableBloomFilter::from_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        from_bytes(FilterType::Scalable, bytes)
    }
}

impl BloomFilter {
    /// The filter as bytes that every later version of this library reads. [`bytes`](crate::bytes)
    /// draws them.
    ///
    /// ```
    /// use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::builder().capacity(1000).build()?;
    /// seen.insert("a");
    /// let bytes = seen.to_bytes();
    /// assert_eq!(BloomFilter::from_bytes(&bytes)?, seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let layers = core::slice::from_ref(&self.layer);
        to_bytes(FilterType::Fixed, &fixed_parts(self), layers)
    }

    /// Reads the filter from bytes that [`to_bytes`](Self::to_bytes) made, in this or an earlier
    /// version of the library.
    ///
    /// # Errors
    ///
    /// [`BytesError`] says what is wrong with the bytes. No input causes a panic, or an allocation
    /// for more bits than the input has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        fixed(from_bytes(FilterType::Fixed, bytes)?)
    }
}

macro_rules! try_from_bytes {
    ($($filter:ty),*) => {$(
        impl TryFrom<&[u8]> for $filter {
            type Error = BytesError;

            /// As `from_bytes`.
            fn try_from(bytes: &[u8]) -> Result<Self, BytesError> {
                Self::from_bytes(bytes)
            }
        }
    )*};
}

try_from_bytes!(
    BloomFilter,
    ScalableBloomFilter,
    WindowedBloomFilter,
    CuckooFilter
);

impl TryFrom<BloomView<'_>> for BloomFilter {
    type Error = BytesError;

    /// Copies the bits, after it has checked them.
    fn try_from(view: BloomView<'_>) -> Result<BloomFilter, BytesError> {
        fixed(view.load(FilterType::Fixed)?)
    }
}

impl TryFrom<BloomView<'_>> for LayeredFilter {
    type Error = BytesError;

    /// Copies the bits, after it has checked them.
    fn try_from(view: BloomView<'_>) -> Result<LayeredFilter, BytesError> {
        view.load(FilterType::Scalable)
    }
}

impl TryFrom<BloomView<'_>> for ScalableBloomFilter {
    type Error = BytesError;

    /// Copies the bits, after it has checked them.
    fn try_from(view: BloomView<'_>) -> Result<ScalableBloomFilter, BytesError> {
        of_kind(view.try_into()?)
    }
}

impl TryFrom<BloomView<'_>> for WindowedBloomFilter {
    type Error = BytesError;

    /// Copies the bits, after it has checked them.
    fn try_from(view: BloomView<'_>) -> Result<WindowedBloomFilter, BytesError> {
        of_kind(view.try_into()?)
    }
}

impl TryFrom<ScalableBloomFilter> for BloomFilter {
    type Error = ScalableBloomFilter;

    /// The one layer of a filter that does not grow, for the other way round than `From`; gives
    /// back any other filter.
    ///
    /// ```
    /// use everbloom::{BloomFilter, ScalableBloomFilter};
    /// let seen = BloomFilter::new(1000, 0.01);
    /// assert_eq!(BloomFilter::try_from(ScalableBloomFilter::from(seen.clone())), Ok(seen));
    /// assert!(BloomFilter::try_from(ScalableBloomFilter::new(1000, 0.01)).is_err());
    /// ```
    fn try_from(filter: ScalableBloomFilter) -> Result<BloomFilter, ScalableBloomFilter> {
        only_layer(filter.0).map_err(ScalableBloomFilter)
    }
}

impl TryFrom<LayeredFilter> for BloomFilter {
    type Error = LayeredFilter;

    /// The one layer of a filter that does not grow; gives back any other filter.
    fn try_from(filter: LayeredFilter) -> Result<BloomFilter, LayeredFilter> {
        only_layer(filter)
    }
}

fn only_layer<W: MaybeWindow>(
    mut filter: LayeredFilter<W>,
) -> Result<BloomFilter, LayeredFilter<W>> {
    if FilterType::Fixed.check(&filter.parts()).is_ok()
        && let Some(layer) = filter.layers.pop()
    {
        return Ok(BloomFilter { layer });
    }
    Err(filter)
}

/// The filter with a window or without, as its type asks.
pub(super) fn of_kind<F: TryFrom<LayeredFilter>>(filter: LayeredFilter) -> Result<F, BytesError> {
    F::try_from(filter).map_err(|_| BytesError::Kind)
}

/// Everything about the filter except its bits.
pub(super) fn fixed_parts(filter: &BloomFilter) -> FilterParts {
    FilterParts {
        items: filter.len(),
        options: Options::modern(false).bits(),
        key: filter.key(),
        layers: vec![filter.layer.parts()],
        ..FilterParts::default()
    }
}

/// The filter of fixed size, which passed [`FilterType::check`].
pub(super) fn fixed(filter: LayeredFilter) -> Result<BloomFilter, BytesError> {
    let mut layers = filter.layers;
    let layer = layers.pop().ok_or(BytesError::Reserved)?;
    Ok(BloomFilter { layer })
}

fn to_bytes(kind: FilterType, parts: &FilterParts, layers: &[Layer]) -> Vec<u8> {
    let head = head::write(kind, parts, layers);
    let bits = layers
        .iter()
        .map(|layer| layer.as_bytes().len().next_multiple_of(RECORD));
    // Large parts that stay zero take no memory.
    let mut out = vec![0; head.len() + bits.sum::<usize>()];
    let (start, mut rest) = out.split_at_mut(head.len());
    start.copy_from_slice(&head);
    for layer in layers {
        let bits = layer.as_bytes();
        let (place, more) = rest.split_at_mut(bits.len().next_multiple_of(RECORD));
        pages::copy(place.split_at_mut(bits.len()).0, &bits);
        rest = more;
    }
    out
}

fn from_bytes(kind: FilterType, bytes: &[u8]) -> Result<LayeredFilter, BytesError> {
    match version(bytes)? {
        old::CLASSIC | old::BLOCKED => old::read(kind, bytes),
        _ => BloomView::new(bytes)?.load(kind),
    }
}
