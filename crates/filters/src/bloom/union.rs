//! The union of filters that grow, and of filters that forget.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::mem;

use super::layered::LayeredFilter;
use super::layers::Layers;
use super::sets::{UnionError, rate_now, unite};
use super::window::{Generation, MaybeWindow, Span, Window};
use crate::error::first_broken;
use crate::layer::Layer;
use crate::layer::capture::Capture;
use crate::layer::layout::Layout;
use crate::sizing::BlockedSize;

impl<W: MaybeWindow> LayeredFilter<W> {
    /// As [`ScalableBloomFilter::union`](crate::ScalableBloomFilter::union), or
    /// [`WindowedBloomFilter::union`](crate::WindowedBloomFilter::union). A
    /// [capture](Self::begin_capture) in progress ends. The error rate to expect is
    /// [`rate_to_come`](Self::rate_to_come).
    ///
    /// # Errors
    ///
    /// [`UnionError`] names a parameter in which the filters differ; nothing has changed then. When
    /// it says that there is no memory, some of the other's layers may have been added.
    pub fn union(&mut self, other: &Self) -> Result<(), UnionError> {
        self.union_at(other, u64::MAX)
    }

    /// [`union`](Self::union) at a time of the clock that windows have: those whose newest
    /// generation lies far ahead of it [begin again](Self::begin_again) first.
    /// [Example](crate::WindowedBloomFilter::union_at).
    ///
    /// # Errors
    ///
    /// As [`union`](Self::union).
    pub fn union_at(&mut self, other: &Self, now: u64) -> Result<(), UnionError> {
        let widths = [self, other].map(|filter| filter.options().hash_width());
        let spans = [self, other].map(|it| it.window().map(|it| (it.span, it.generations)));
        first_broken([
            (spans[0] == spans[1], UnionError::Window),
            (
                !matches!(spans[0], Some((Span::Items, _))),
                UnionError::WindowOfItems,
            ),
            (self.layout() == other.layout(), UnionError::Layout),
            (self.key() == other.key(), UnionError::Key),
            (widths[0] == widths[1], UnionError::Hash),
            (self.valkey() == other.valkey(), UnionError::Hash),
            (self.is_fixed() == other.is_fixed(), UnionError::Growth),
        ])?;
        self.capture = Capture::default();
        match other.window() {
            Some(window) => {
                let mut window = window.clone();
                if window.is_ahead_of(now) {
                    window.begin_again(now);
                }
                self.begin_again(now);
                self.unite_generations(&window, &other.layers, now)?;
            }
            None => self.unite_layers(&other.layers)?,
        }
        self.items = 0;
        for layer in &mut self.layers {
            // The sum of the layers' counts must stay the filter's count.
            layer.set_len(layer.len().min(u64::MAX - self.items));
            self.items += layer.len();
        }
        Ok(())
    }

    /// The highest error rate that the filter will have, however many items it takes: each layer
    /// counts as what it may still become. Takes time linear in the number of layers, and in the
    /// bytes of those that hold more items than they are made for.
    #[must_use]
    pub fn rate_to_come(&self) -> f64 {
        let (expected, asked) = match self.window() {
            Some(window) => (self.rate_of_generations(window), window.error_rate),
            None => (
                rate_when_full(&self.layers) + self.growth(),
                self.error_rate(),
            ),
        };
        // A sum of parts of the given rate may be a rounding error more than that.
        match expected <= asked * (1.0 + 1e-9) {
            true => expected.min(asked),
            false => expected,
        }
    }

    /// The most that any g + 1 successive generations err together, those included that begin
    /// later.
    fn rate_of_generations(&self, window: &Window) -> f64 {
        let mut layers = &*self.layers;
        let rates = window
            .kept
            .iter()
            .rev()
            .enumerate()
            .map(|(age, generation)| {
                let older = layers.len().saturating_sub(generation.layers as usize);
                let (rest, own) = layers.split_at_checked(older).unwrap_or_default();
                layers = rest;
                match age {
                    0 => rate_when_full(own) + self.growth(),
                    _ => own.iter().map(rate_now).sum(),
                }
            });
        // Newest first.
        let rates: Vec<f64> = rates.collect();
        let begun = |later: usize| {
            let kept = rates.iter().take(window.most().saturating_sub(later));
            kept.sum::<f64>() + later as f64 * window.rate()
        };
        (0..window.most()).map(begun).fold(0.0, f64::max)
    }

    /// What all layers together err that the filter, or the newest generation, may still get.
    fn growth(&self) -> f64 {
        let Some(newest) = self.layers.last() else {
            return 0.0;
        };
        let mut rate = newest.error_rate();
        match (self.window(), self.layout()) {
            _ if self.is_fixed() => 0.0,
            // As in valkey-bloom, these do not keep their rate when they grow.
            _ if self.valkey().is_some() => 0.0,
            // 1/2 + 1/4 + ...
            (None, Layout::Classic) => rate,
            (window, _) => {
                let all = window.map_or(self.error_rate(), Window::rate);
                let current = self.layers.iter().skip(self.past());
                let mut left = all - current.map(Layer::error_rate).sum::<f64>();
                let (mut capacity, mut sum) = (newest.capacity(), 0.0);
                // Equal layers take all of it in the end.
                if window.is_none() && self.expansion() == 1 {
                    return left.max(rate / 2.0);
                }
                // Each layer takes a part of what is left, as in `grow`.
                for _ in 0..MAX_GROWTH {
                    let share = match window {
                        Some(_) => 0.5,
                        None => {
                            capacity = capacity.saturating_mul(self.expansion().into());
                            BlockedSize::share(capacity)
                        }
                    };
                    rate = left.max(rate / 2.0) * share;
                    left -= rate;
                    sum += rate;
                }
                sum
            }
        }
    }

    fn unite_layers(&mut self, others: &[Layer]) -> Result<(), UnionError> {
        let mut merging = Merging::new(&mut self.layers, others);
        for layer in others.iter().filter(|layer| has_bits(layer)) {
            if !merging.unite_with_any(layer) {
                merging.push(copy(layer)?);
            }
        }
        // The first layer says what error rate was given.
        if let Some((_, later)) = self.layers.split_first_mut() {
            later.sort_by(growth);
        }
        Ok(())
    }

    fn unite_generations(
        &mut self,
        other: &Window,
        others: &[Layer],
        now: u64,
    ) -> Result<(), UnionError> {
        let copies = others.iter().map(copy).collect::<Result<Layers, _>>()?;
        let bytes = self.stream_len();
        let Some(window) = self.window.get_mut() else {
            return Ok(());
        };
        // From here on nothing fails. The pairs of generations are newest first.
        let (own_began, other_began) = (window.newest().began, other.newest().began);
        let newest = own_began.max(other_began);
        // The newest generation may begin up to a generation later than now. Until now, each window
        // forgets what it would have forgotten alone. The time from now to that beginning does not
        // count for its items: they stay up to a generation longer, and none is lost too early.
        let until = |began: u64| newest.min(now.max(began));
        let mut mine = by_age(window, until(own_began), mem::take(&mut self.layers));
        let theirs = by_age(other, until(other_began), copies);
        for (age, theirs) in theirs.into_iter().enumerate() {
            let Some(generation) = mine.get_mut(age) else {
                mine.push(theirs);
                continue;
            };
            generation.began = generation.began.max(theirs.began);
            generation.add(theirs.layers);
        }
        window.dropped = window.dropped_after(bytes);
        window.kept.clear();
        let mut began = 0;
        for generation in mine.into_iter().rev() {
            // A generation holds few layers.
            let layers = u32::try_from(generation.layers.len()).unwrap_or(u32::MAX);
            began = generation.began.max(began);
            window.kept.push(Generation { layers, began });
            self.layers.extend(generation.layers);
        }
        Ok(())
    }
}

/// More layers than a filter gets whose layers grow: each takes at least an eighth of what the others
/// left.
const MAX_GROWTH: usize = 64;

/// The error rate of these layers once the last one, which takes the items, is full.
fn rate_when_full(layers: &[Layer]) -> f64 {
    let Some((newest, older)) = layers.split_last() else {
        return 0.0;
    };
    older.iter().map(rate_now).sum::<f64>() + rate_now(newest).max(newest.error_rate())
}

/// A generation with its layers.
struct Aged {
    began: u64,
    layers: Layers,
}

impl Aged {
    fn add(&mut self, layers: Layers) {
        if layers.iter().any(has_bits) {
            // An empty layer would take a part of the error rate once it is filled.
            let older = mem::take(&mut self.layers);
            self.layers.extend(older.into_iter().filter(has_bits));
        }
        let mut merging = Merging::new(&mut self.layers, &layers);
        for layer in layers {
            // The newest generation has a layer, be it empty.
            let is_needed = merging.layers.is_empty() || has_bits(&layer);
            if is_needed && !merging.unite_with_any(&layer) {
                merging.push(layer);
            }
        }
        self.layers.sort_by(growth);
    }
}

/// The generations that are still kept at this time, newest first: as many without layers come
/// first as have ended by then.
fn by_age(window: &Window, now: u64, layers: impl IntoIterator<Item = Layer>) -> Vec<Aged> {
    let mut layers = layers.into_iter();
    let ended = usize::try_from(window.ended(now)).unwrap_or(usize::MAX);
    let kept = window.kept.iter().map(|generation| Aged {
        began: generation.began,
        layers: layers.by_ref().take(generation.layers as usize).collect(),
    });
    let mut aged: Vec<Aged> = kept.collect();
    for _ in 0..ended.min(window.most()) {
        aged.push(Aged {
            began: now,
            layers: Layers::default(),
        });
    }
    aged.reverse();
    aged.truncate(window.most());
    aged
}

/// The count of a layer that was loaded may be wrong; its bits decide.
fn has_bits(layer: &Layer) -> bool {
    !layer.is_empty() || layer.fill().ratio > 0.0
}

/// The most layers of one size that a layer is tried with. Few filters have more: each try takes
/// time linear in the bytes of a layer.
const MAX_TRIED: usize = 16;

/// The layers that other ones are merged into.
struct Merging<'l> {
    layers: &'l mut Layers,
    /// Where the layers of each size are that another one has, in order.
    by_size: BTreeMap<SizeKey, Vec<usize>>,
}

/// All fields of a [`LayerSize`](crate::sizing::LayerSize), in an order.
type SizeKey = (u64, u64, u32, u8, u64, u64);

fn size_key(layer: &Layer) -> SizeKey {
    let size = layer.size();
    let rates = [size.error_rate, size.bits_per_entry].map(f64::to_bits);
    let (bytes, hashes, log2_bits) = (size.bytes, size.hashes, size.log2_bits);
    (size.capacity, bytes, hashes, log2_bits, rates[0], rates[1])
}

impl<'l> Merging<'l> {
    fn new(layers: &'l mut Layers, others: &[Layer]) -> Self {
        let sizes = others.iter().map(|layer| (size_key(layer), Vec::new()));
        let mut by_size: BTreeMap<_, Vec<usize>> = sizes.collect();
        for (position, layer) in layers.iter().enumerate() {
            if let Some(positions) = by_size.get_mut(&size_key(layer)) {
                positions.push(position);
            }
        }
        Merging { layers, by_size }
    }

    /// Merges a layer into one of the last of its size, if the result is no worse than both apart,
    /// and there is memory to find out.
    fn unite_with_any(&mut self, layer: &Layer) -> bool {
        let positions = self.by_size.get(&size_key(layer));
        let positions = positions.map_or(&[][..], Vec::as_slice);
        let first = positions.len().saturating_sub(MAX_TRIED);
        for position in positions.iter().skip(first) {
            let Some(mine) = self.layers.get_mut(*position) else {
                continue;
            };
            if mine.len().saturating_add(layer.len()) <= mine.capacity() {
                unite(mine, layer);
                return true;
            }
            let Ok(mut united) = copy(mine) else {
                return false;
            };
            unite(&mut united, layer);
            let apart = mine.fill().error_rate + layer.fill().error_rate;
            if united.len() <= united.capacity() || united.fill().error_rate <= apart {
                *mine = united;
                return true;
            }
        }
        false
    }

    fn push(&mut self, layer: Layer) {
        let positions = self.by_size.entry(size_key(&layer)).or_default();
        positions.push(self.layers.len());
        self.layers.push(layer);
    }
}

fn copy(layer: &Layer) -> Result<Layer, UnionError> {
    layer.try_clone().map_err(|_| UnionError::OutOfMemory)
}

/// The order in which layers are made: ever larger, ever smaller error rates. Items are inserted
/// into the last one, so that of equal layers this is the one with the most room.
fn growth(one: &Layer, other: &Layer) -> Ordering {
    let larger = one.capacity().cmp(&other.capacity());
    let stricter = || other.error_rate().total_cmp(&one.error_rate());
    let emptier = || other.len().cmp(&one.len());
    larger.then_with(stricter).then_with(emptier)
}
