//! A filter in borrowed bytes.

use alloc::vec::Vec;
use core::fmt;

use super::error::BytesError;
use super::head::{FilterType, Head, padded};
use super::input::{Input, version};
use crate::bits::array::{count_ones, prefetch_bit, test_bit};
use crate::bits::blocks::BorrowedBlocks;
use crate::bits::fill::Fill;
use crate::bloom::group::Group;
use crate::bloom::layered::LayeredFilter;
use crate::bloom::stats::Stats;
use crate::formats::redisbloom::{FilterParts, LayerParts, Options, PartsError};
use crate::hash::item::Item;
use crate::hash::item_hash::ItemHash;
use crate::hash::{DoubleHash, Hasher, Key, Secrets};
use crate::layer::classic::RUN;
use crate::layer::kind::Kind;
use crate::layer::layout::Layout;
use crate::layer::shape::Shape;
use crate::math::saturating_sum;
use crate::sizing::BlockedSize;

/// A filter in borrowed bytes: in a file that is mapped into memory, in the program itself, or in a
/// message. Nothing is copied, so a filter of any size is ready at once.
///
/// The bytes are those of `to_bytes` of [`BloomFilter`](crate::BloomFilter),
/// [`ScalableBloomFilter`](crate::ScalableBloomFilter) or
/// [`WindowedBloomFilter`](crate::WindowedBloomFilter), in either layout and at any address. A view has
/// no clock: of a window it finds the items of all generations that were kept.
///
/// ```
/// use everbloom::{BloomFilter, BloomView, Layout};
///
/// let builder = BloomFilter::builder().capacity(1000).layout(Layout::Blocked);
/// let mut seen = builder.build()?;
/// seen.insert("a");
/// let bytes = seen.to_bytes(); // or include_bytes!("seen.bloom"), or a memory map
///
/// let view = BloomView::new(&bytes)?;
/// assert!(view.contains("a"));
/// let mut answers = Vec::new();
/// view.contains_each(["a", "b"], |found| answers.push(found));
/// assert_eq!(answers, [true, false]);
/// assert_eq!((view.len(), view.capacity(), view.error_rate()), (1, 1000, 0.01));
/// assert!(!view.is_empty());
/// assert_eq!((view.layout(), view.key()), (seen.layout(), seen.key()));
/// assert_eq!((view.stats().bits, view.stats().hashes), (seen.bits(), seen.hashes()));
///
/// let again = BloomFilter::try_from(view)?;
/// assert_eq!(again, seen);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`new`](Self::new) checks the header, in time that does not depend on the number of bits.
/// [`verify`](Self::verify) reads all bits and checks that none was changed. A view of changed bits
/// gives wrong answers, but is otherwise safe. The same holds when another program changes a mapped
/// file. The example `shared` maps a file in two processes, with memmap2.
#[derive(Clone)]
pub struct BloomView<'a> {
    head: Head,
    hasher: ItemHash,
    /// Oldest first, one for each layer of the header.
    layers: Vec<LayerView<'a>>,
}

/// The bits of a layer.
#[derive(Clone)]
struct LayerView<'a> {
    bits: &'a [u8],
    /// The zeros behind them.
    padding: &'a [u8],
    test: Test<'a>,
}

/// How the bits are tested.
#[derive(Clone)]
enum Test<'a> {
    Classic(Shape),
    Valkey(Shape),
    Blocked(BorrowedBlocks<'a>),
}

impl<'a> BloomView<'a> {
    /// A view of the filter in these bytes. Takes time linear in the number of layers, and reads no
    /// bits.
    ///
    /// # Errors
    ///
    /// [`BytesError`] says what is wrong with the header. Bytes of versions 1 and 2 have no view:
    /// [`BytesError::Old`] says how to convert them to version 3.
    pub fn new(bytes: &'a [u8]) -> Result<BloomView<'a>, BytesError> {
        // Bytes shorter than a header may be something else.
        version(bytes)?;
        let mut input = Input(bytes);
        let head = Head::read(|place| {
            place.copy_from_slice(input.slice(place.len())?);
            Ok::<(), BytesError>(())
        })?;
        let (expected, found) = (head.len, bytes.len() as u64 - head.note_len);
        if expected != found {
            return Err(BytesError::Length { expected, found });
        }
        let parts = &head.parts;
        let hasher = match parts.kind() {
            Kind::Classic => Hasher::Classic(Options(parts.options).hash_width()),
            Kind::Valkey(valkey) => Hasher::Valkey(valkey),
            Kind::Blocked(key) => Hasher::Blocked(Secrets::new(key)),
        };
        let layers = parts.layers.iter().enumerate();
        let layers = layers.map(|(number, part)| LayerView::new(&mut input, number, part, parts));
        let layers = layers.collect::<Result<_, _>>()?;
        Ok(BloomView {
            head,
            hasher: ItemHash(hasher),
            layers,
        })
    }

    /// Checks the bits. Takes time linear in their number.
    ///
    /// ```
    /// use everbloom::bytes::BytesError;
    /// use everbloom::{BloomFilter, BloomView};
    /// let mut bytes = BloomFilter::builder().capacity(1000).build()?.to_bytes();
    /// bytes[500] ^= 1;
    /// let view = BloomView::new(&bytes)?;
    /// assert_eq!(view.verify(), Err(BytesError::BitsChecksum { layer: 0 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BytesError::BitsChecksum`] names the layer whose bits were changed;
    /// [`BytesError::Reserved`] when the bytes between the layers are not zeros.
    pub fn verify(&self) -> Result<(), BytesError> {
        for (number, layer) in self.layers.iter().enumerate() {
            self.head.check_bits(number, layer.bits)?;
            if layer.padding.iter().any(|byte| *byte != 0) {
                return Err(BytesError::Reserved);
            }
        }
        Ok(())
    }

    /// The filter, if it has this type.
    pub(super) fn load(&self, kind: FilterType) -> Result<LayeredFilter, BytesError> {
        self.head.kind.expect(kind)?;
        self.verify()?;
        let mut filter = self.head.empty_filter()?;
        for (layer, view) in filter.layers.iter_mut().zip(&self.layers) {
            layer.load(view.bits);
        }
        Ok(filter)
    }

    /// Whether the item was inserted: false is certain, true may be an error.
    #[must_use]
    pub fn contains<T: Item + ?Sized>(&self, item: &T) -> bool {
        self.contains_hash(self.hash(item))
    }

    /// [`contains`](Self::contains) for each item in turn, faster than one by one. Calls `emit`
    /// with each answer. It reads ahead in the iterator.
    pub fn contains_each(&self, items: impl IntoIterator<Item: Item>, mut emit: impl FnMut(bool)) {
        let mut items = items.into_iter();
        let mut group = Group::default();
        while group.fill(&mut items, &self.hasher.0) {
            for pair in group.pairs() {
                let newest_first = self.layers.iter().rev();
                newest_first.for_each(|layer| layer.prefetch(*pair));
            }
            let pairs = group.pairs().iter();
            pairs.for_each(|pair| emit(self.contains_hash(*pair)));
        }
    }

    /// The two hash values of an item in this filter, as
    /// [`BloomFilter::hash`](crate::BloomFilter::hash) gives them.
    ///
    /// ```
    /// # use everbloom::{BloomFilter, BloomView};
    /// let mut seen = BloomFilter::new(1000, 0.01);
    /// seen.insert("a");
    /// let bytes = seen.to_bytes();
    /// let view = BloomView::new(&bytes)?;
    /// assert_eq!(view.hash("a"), seen.hash("a"));
    /// assert!(view.contains_hash(view.hash("a")));
    /// # Ok::<(), everbloom::bytes::BytesError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn hash<T: Item + ?Sized>(&self, item: &T) -> DoubleHash {
        self.hasher.hash(item)
    }

    /// [`contains`](Self::contains) for an item that is hashed already. [Example](Self::hash).
    #[must_use]
    #[inline]
    pub fn contains_hash(&self, hash: DoubleHash) -> bool {
        // The newest layer is the largest, so it is the likeliest to have the item.
        self.layers.iter().rev().any(|layer| layer.contains(hash))
    }

    /// The number of items inserted, without those that [`contains`](Self::contains) found already.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.head.parts.items
    }

    /// Whether nothing was inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is a [`ScalableBloomFilter`](crate::ScalableBloomFilter), or one with a window,
    /// and not a [`BloomFilter`](crate::BloomFilter).
    /// [Example](Self::parts).
    #[must_use]
    pub fn is_scalable(&self) -> bool {
        self.head.kind == FilterType::Scalable
    }

    /// Everything about the filter except its bits, layer by layer.
    ///
    /// ```
    /// use everbloom::{BloomView, ScalableBloomFilter};
    /// let mut seen = ScalableBloomFilter::builder().build()?;
    /// seen.extend((0..1000).map(|i| format!("item {i}")));
    /// let bytes = seen.to_bytes();
    /// let view = BloomView::new(&bytes)?;
    /// assert!(view.is_scalable());
    /// assert_eq!(view.parts().layers.len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn parts(&self) -> &FilterParts {
        &self.head.parts
    }

    /// Where the bits of an item lie.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.parts().layout()
    }

    /// The key of the hash, in the blocked layout.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        self.parts().key
    }

    /// The sum of the layers' capacities; `u64::MAX` when that is more.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        saturating_sum(self.parts().layers.iter().map(|layer| layer.capacity))
    }

    /// The given error rate: at the capacity, or at any size for a filter that grows.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        let parts = self.parts();
        let is_fixed = Options(parts.options).has(Options::NO_SCALING);
        let is_whole = is_fixed || parts.valkey.is_some();
        let rate = |first: &LayerParts| {
            let (capacity, rate) = (first.capacity, first.error_rate);
            parts.layout().whole_rate(is_whole, capacity, rate)
        };
        let window = parts.window.as_ref().map(|window| window.error_rate);
        window
            .or_else(|| parts.layers.first().map(rate))
            .unwrap_or(0.0)
    }

    /// The parameters, contents and error rate of the filter. Takes time linear in the number of
    /// bits.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let parts = self.parts();
        let layers = parts.layers.iter().zip(&self.layers);
        let layers = layers.map(|(part, layer)| {
            let (usable, fill) = layer.fill(part.hashes);
            (part.size(), usable, fill)
        });
        Stats::of_layers(parts.items, self.error_rate(), layers)
    }
}

impl<'a> LayerView<'a> {
    /// The next layer.
    fn new(
        input: &mut Input<'a>,
        number: usize,
        part: &LayerParts,
        parts: &FilterParts,
    ) -> Result<LayerView<'a>, BytesError> {
        let whole = padded(part.bytes).ok_or(BytesError::Truncated)?;
        let whole = usize::try_from(whole).map_err(|_| BytesError::Truncated)?;
        let mut whole = Input(input.slice(whole)?);
        let len = usize::try_from(part.bytes).map_err(|_| BytesError::Truncated)?;
        let bits = whole.slice(len)?;
        let shape = || Shape::new(&part.size()).ok();
        let test = match parts.kind() {
            Kind::Classic => shape().map(Test::Classic),
            Kind::Valkey(_) => shape().map(Test::Valkey),
            Kind::Blocked(_) => BorrowedBlocks::new(bits, part.hashes).map(Test::Blocked),
        };
        Ok(LayerView {
            bits,
            padding: whole.0,
            test: test.ok_or(PartsError::Bits { layer: number })?,
        })
    }

    /// How many bits items may set, and what the number of ones says.
    fn fill(&self, hashes: u32) -> (u64, Fill) {
        match &self.test {
            Test::Classic(shape) | Test::Valkey(shape) => {
                let bits = shape.modulus.get();
                (bits, Fill::of_classic(count_ones(self.bits), bits, hashes))
            }
            Test::Blocked(_) => {
                let blocks = self.bits.chunks(BlockedSize::BLOCK_BITS as usize / 8);
                let fill = Fill::of_blocks(blocks.map(count_ones), hashes);
                (self.bits.len() as u64 * 8, fill)
            }
        }
    }

    #[inline]
    fn contains(&self, pair: DoubleHash) -> bool {
        match &self.test {
            Test::Classic(shape) => {
                let mut positions = shape.positions(pair);
                positions.all(|position| test_bit(self.bits, position))
            }
            Test::Valkey(shape) => {
                let mut positions = shape.valkey_positions(pair);
                positions.all(|position| test_bit(self.bits, position))
            }
            Test::Blocked(blocks) => blocks.contains(pair),
        }
    }

    #[inline]
    fn prefetch(&self, pair: DoubleHash) {
        match &self.test {
            Test::Classic(shape) => {
                let first = shape.positions(pair).take(RUN as usize);
                first.for_each(|position| prefetch_bit(self.bits, position));
            }
            Test::Valkey(shape) => {
                let first = shape.valkey_positions(pair).take(RUN as usize);
                first.for_each(|position| prefetch_bit(self.bits, position));
            }
            Test::Blocked(blocks) => blocks.prefetch(pair),
        }
    }
}

impl fmt::Debug for BloomView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("BloomView");
        debug.field("kind", &self.head.kind);
        debug.field("parts", self.parts()).finish()
    }
}
