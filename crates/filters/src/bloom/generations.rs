//! The generations of a filter with a window: which layers count, and when new ones begin.

use super::group::{self, is_one_at_most};
use super::layered::LayeredFilter;
use super::window::{Generation, MaybeWindow, Span, Window};
use crate::error::InsertError;
use crate::hash::item::Item;
use crate::layer::Layer;
use crate::math::saturating_sum;
use crate::sizing::BlockedSize;
use crate::sizing::LayerSize;

impl<W: MaybeWindow> LayeredFilter<W> {
    /// The window, if the filter forgets. [Example](crate::WindowedBloomFilter::window).
    #[must_use]
    #[inline]
    pub fn window(&self) -> Option<&Window> {
        self.window.get()
    }

    /// The layers that hold what the filter remembers at a time: all of them, unless it has a
    /// window and was not told of that time yet.
    /// [Example](crate::WindowedBloomFilter::contains_at).
    #[must_use]
    pub fn layers_at(&self, now: u64) -> &[Layer] {
        let outdated = |window: &Window| window.outdated(window.ended(now));
        let first = self.window().map_or(0, outdated);
        self.layers.get(first..).unwrap_or_default()
    }

    /// The number of items in those layers. [Example](crate::WindowedBloomFilter::window).
    #[must_use]
    pub fn len_at(&self, now: u64) -> u64 {
        if self.window().is_none() {
            return self.len();
        }
        saturating_sum(self.layers_at(now).iter().map(Layer::len))
    }

    /// [`contains_each`](Self::contains_each) at a time.
    /// [Example](crate::WindowedBloomFilter::contains_at).
    pub fn contains_each_at(
        &self,
        items: impl IntoIterator<Item: Item>,
        now: u64,
        mut emit: impl FnMut(bool),
    ) {
        let (layers, items) = (self.layers_at(now), items.into_iter());
        if is_one_at_most(&items) {
            return items.for_each(|item| emit(self.contains_in(layers, &item)));
        }
        group::contained_groups(layers, &self.hasher().0, items, emit);
    }

    /// Begins the generations that the clock asks for. Returns how many these are, and when the
    /// newest began, if there are any. After [`begin_again`](Self::begin_again) they are 0.
    /// [Example](crate::WindowedBloomFilter::advance).
    ///
    /// # Errors
    ///
    /// There is no memory for the new generation; nothing has changed then.
    pub fn advance_to(&mut self, now: u64) -> Result<Option<(u64, u64)>, InsertError> {
        if self.begin_again(now) {
            return Ok(Some((0, now)));
        }
        let Some(window) = self.window() else {
            return Ok(None);
        };
        let (count, ticks) = (window.ended(now), window.generation_ticks());
        if count == 0 {
            return Ok(None);
        }
        let passed = count.saturating_mul(ticks.unwrap_or(0));
        let began = window.newest().began.saturating_add(passed);
        self.advance(count, began)?;
        Ok(Some((count, began)))
    }

    /// Begins the window again at this time, if its newest generation lies more than a generation
    /// ahead of it: a clock was wrong. Every item that is found now is found for one window from
    /// now on. Returns whether it was so. [Example](crate::WindowedBloomFilter::insert_at).
    pub fn begin_again(&mut self, now: u64) -> bool {
        let window = self.window.get_mut();
        let ahead = window.filter(|window| window.is_ahead_of(now));
        ahead.map(|window| window.begin_again(now)).is_some()
    }

    /// When the clock lets the next layers be forgotten; `None` if it never does: without a window
    /// of ticks, and when only one empty layer is left.
    /// [Example](crate::WindowedBloomFilter::advance).
    #[must_use]
    #[inline]
    pub fn outdated_at(&self) -> Option<u64> {
        let window = self.window()?;
        if self.items == 0 && self.layers.len() == 1 {
            return None;
        }
        window.outdated_at()
    }

    /// Begins this many new generations, and drops those that are too old then. `now` is when the
    /// newest begins; a window of items has a count of its own. Without a window nothing happens.
    /// [Example](crate::WindowedBloomFilter::advance).
    ///
    /// # Errors
    ///
    /// There is no memory for the new generation; nothing has changed then.
    pub fn advance(&mut self, count: u64, now: u64) -> Result<(), InsertError> {
        self.advance_within(count, now, u64::MAX)
    }

    /// [`advance`](Self::advance), if the filter gets at most so many bytes longer by it. It mostly
    /// gets shorter.
    ///
    /// # Errors
    ///
    /// It would take more, or there is no memory; nothing has changed then.
    pub fn advance_within(
        &mut self,
        count: u64,
        now: u64,
        max_bytes: u64,
    ) -> Result<(), InsertError> {
        let (Some(window), Some(newest)) = (self.window.get_mut(), self.layers.last()) else {
            return Ok(());
        };
        if count == 0 {
            return Ok(());
        }
        let generation = self.layers.iter().skip(window.past());
        let items = saturating_sum(generation.clone().map(Layer::len));
        let bytes = saturating_sum(generation.map(Layer::bytes));
        let size = match count {
            1 => window.next_size(items, bytes),
            _ => window.size(0),
        };
        let size = size.ok_or(InsertError::CannotGrow)?.as_layer();
        // An empty layer serves the next generation. So a window that gets no items only shrinks.
        let is_kept = items == 0 && window.newest().layers == 1 && *newest.size() == size;
        let outdated = window.outdated(count);
        let outdated = outdated.min(self.layers.len() - usize::from(is_kept));
        let layer = if is_kept {
            None
        } else {
            let dropped = self.layers.iter().take(outdated).map(Layer::bytes);
            let max_bytes = max_bytes.saturating_add(saturating_sum(dropped));
            let layer = newest.like(&size, max_bytes);
            let layer = layer.map_err(InsertError::of_growth)?;
            // A dropped layer leaves its room to the new one.
            if outdated == 0 {
                self.layers.reserve_one()?;
            }
            Some(layer)
        };
        if is_kept && let Some(newest) = window.kept.last_mut() {
            newest.layers = 0;
        }
        let last = window.newest().began;
        let began = match window.span {
            Span::Items => last.saturating_add(items),
            Span::Ticks(_) => now.max(last),
        };
        let begun = usize::try_from(count).map_or(window.most(), |count| count.min(window.most()));
        for skipped in (0..begun).rev() {
            let layers = u32::from(skipped == 0);
            window.kept.push(Generation { layers, began });
        }
        let dropped = window.kept.len().saturating_sub(window.most());
        window.kept.drain(..dropped);
        for layer in self.layers.drain_first(outdated) {
            self.items = self.items.saturating_sub(layer.len());
            window.dropped = window.dropped_after(layer.bytes());
            self.capture.keep_first(layer);
        }
        self.layers.extend(layer);
        Ok(())
    }

    /// Extends the newest generation until now, although the clock has ended it.
    pub(crate) fn prolong(&mut self, now: u64) {
        if let Some(newest) = self.newest_generation() {
            newest.began = newest.began.max(now);
        }
    }

    /// How many layers are older than the generation that items enter.
    #[inline]
    pub(crate) fn past(&self) -> usize {
        self.window().map_or(0, Window::past)
    }

    /// When the newest generation began: of a window of items, this differs between any two.
    #[inline]
    pub(crate) fn began(&self) -> u64 {
        self.window().map_or(0, |window| window.newest().began)
    }

    /// The dimensions of one more layer of the newest generation.
    pub(crate) fn next_in_generation(&self, window: &Window) -> Option<LayerSize> {
        let newest = self.layers.last()?;
        let taken = self
            .layers
            .iter()
            .skip(window.past())
            .map(Layer::error_rate);
        let left = window.rate() - taken.sum::<f64>();
        // A layer takes half of what is left. A loaded filter may have taken too much.
        let rate = left.max(newest.error_rate() / 2.0) / 2.0;
        let capacity = newest.capacity().checked_mul(self.expansion().into())?;
        BlockedSize::new(capacity, rate).map(BlockedSize::as_layer)
    }

    /// The newest generation has got a layer.
    pub(crate) fn note_growth(&mut self) {
        if let Some(newest) = self.newest_generation() {
            newest.layers = newest.layers.saturating_add(1);
        }
    }

    fn newest_generation(&mut self) -> Option<&mut Generation> {
        self.window.get_mut()?.kept.last_mut()
    }
}
