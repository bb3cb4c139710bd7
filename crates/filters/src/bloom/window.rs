//! A window: the layers of a filter grouped into generations, of which the oldest is dropped whole.
//!
//! ```text
//! oldest                                    newest
//! +----------+----------+----------+----------+----------+
//! |  layers  |  layers  |  layers  |  layers  |  layers  |    g + 1 generations, here g = 4
//! +----------+----------+----------+----------+----------+
//!  dropped when the next one begins            items enter here
//! ```
//!
//! A lookup tests all layers. An item enters the newest generation unless it is in that one
//! already, so an item that comes again lives on. Each generation is made for a g-th part of the
//! capacity and for a (g + 1)-th part of the error rate, so that all of them together keep the rate
//! when they are full.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::math::saturating_sum;
use crate::sizing::BlockedSize;

/// What a window remembers. [Example](crate::WindowedBloomFilter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// The last items, as many as the capacity. A generation ends when it is full. An item that
    /// is in two generations counts twice.
    Items,
    /// The items of so many ticks of the caller's clock. A generation takes a g-th part of them,
    /// rounded up, and grows when it is full.
    Ticks(u64),
}

/// By how much an item may be kept longer than promised, as a part of the span, so that a span that
/// the generations do not divide seldom needs more of them.
const ROUNDING: u128 = 100;

impl Span {
    /// The ticks, unless the span is of items. [Example](crate::WindowedBloomFilter::window).
    #[must_use]
    pub fn ticks(self) -> Option<u64> {
        match self {
            Span::Items => None,
            Span::Ticks(ticks) => Some(ticks),
        }
    }

    /// The span of so many ticks; 0 stands for one of items.
    /// [Example](crate::WindowedBloomFilter::window).
    #[must_use]
    pub fn of_ticks(ticks: u64) -> Span {
        match ticks {
            0 => Span::Items,
            _ => Span::Ticks(ticks),
        }
    }

    /// The generations of a window of this capacity for which so many were asked. A span of fewer
    /// ticks or items has one for each. One that they do not divide may have more, so that an item
    /// is kept at most a g-th part longer all the same, within [`ROUNDING`].
    pub(super) fn generations(self, capacity: u64, asked: u32) -> u32 {
        let span = self.ticks().unwrap_or(capacity);
        if span.is_multiple_of(asked.into()) {
            return asked;
        }
        let most = u32::try_from(span).map_or(MAX_GENERATIONS, |span| span.min(MAX_GENERATIONS));
        let least = asked.min(most);
        let kept = |g: &u32| u128::from(span.div_ceil((*g).into())) * (u128::from(*g) + 1);
        let parts = u128::from(least) * ROUNDING;
        let longest = u128::from(span) * (parts + ROUNDING + u128::from(least));
        let mut exact = (least.max(1)..=most).filter(|g| kept(g) * parts <= longest);
        let nearest = || (1..=most).min_by_key(kept);
        exact.next().or_else(nearest).unwrap_or(asked)
    }
}

/// The window of a filter. [Example](crate::WindowedBloomFilter::window).
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// What it remembers.
    pub span: Span,
    /// How many generations a span has, g. One more is kept, which is being filled.
    pub generations: u32,
    /// How many items it is made for.
    pub capacity: u64,
    /// The error rate that all generations keep together.
    pub error_rate: f64,
    /// Bytes of all layers that were dropped so far: a byte that is kept has the same number among
    /// all bytes that there ever were, however often a generation began meanwhile. After 2^62 bytes
    /// it begins at 0 again.
    pub dropped: u64,
    /// The generations that are kept, oldest first; at least one and at most g + 1.
    pub kept: Vec<Generation>,
}

/// Where a [`LayeredFilter`](super::layered::LayeredFilter) has its window. What never has one is
/// compiled without a trace of windows.
pub trait MaybeWindow: Clone {
    /// The window, if there is one.
    fn get(&self) -> Option<&Window>;

    /// The window, if there is one, to change it.
    fn get_mut(&mut self) -> Option<&mut Window>;
}

/// Never.
impl MaybeWindow for () {
    #[inline]
    fn get(&self) -> Option<&Window> {
        None
    }

    #[inline]
    fn get_mut(&mut self) -> Option<&mut Window> {
        None
    }
}

/// Always.
impl MaybeWindow for Box<Window> {
    #[inline]
    fn get(&self) -> Option<&Window> {
        Some(self)
    }

    #[inline]
    fn get_mut(&mut self) -> Option<&mut Window> {
        Some(self)
    }
}

/// It depends on the filter.
impl MaybeWindow for Option<Box<Window>> {
    #[inline]
    fn get(&self) -> Option<&Window> {
        self.as_deref()
    }

    #[inline]
    fn get_mut(&mut self) -> Option<&mut Window> {
        self.as_deref_mut()
    }
}

/// A generation of a window. [Example](crate::WindowedBloomFilter::window).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// How many layers it has. Only generations that were skipped have none.
    pub layers: u32,
    /// When it began: a time of the caller's clock, or how many items were inserted before.
    pub began: u64,
}

/// The most generations of a span.
pub const MAX_GENERATIONS: u32 = 64;

/// The most bytes that a window may have dropped, so that the iterators of its dump fit an `i64`.
/// No window drops so many, but one from outside may say that it did.
const MAX_DROPPED_BYTES: u64 = 1 << 62;

/// The part of a generation's error rate that its first layer takes, if it may grow. More items
/// than planned are the exception, so little is left for them.
const FIRST_SHARE: f64 = 0.75;

impl Window {
    /// How many generations may be kept.
    pub(crate) fn most(&self) -> usize {
        usize::try_from(self.generations).map_or(usize::MAX, |g| g.saturating_add(1))
    }

    pub(crate) fn newest(&self) -> Generation {
        self.kept.last().copied().unwrap_or_default()
    }

    /// The ticks of a generation, if the clock ends it.
    pub(super) fn generation_ticks(&self) -> Option<u64> {
        let ticks = self.span.ticks()?;
        Some(ticks.div_ceil(self.generations.max(1).into()).max(1))
    }

    /// How many generations have ended by now, according to the clock.
    /// [Example](crate::WindowedBloomFilter::window).
    #[must_use]
    pub fn ended(&self, now: u64) -> u64 {
        let age = now.saturating_sub(self.newest().began);
        self.generation_ticks().map_or(0, |ticks| age / ticks)
    }

    /// Whether the newest generation lies more than a generation ahead of the clock, which was
    /// wrong then or is now. A clock that goes back by less is waited for.
    /// [Example](crate::WindowedBloomFilter::window).
    #[must_use]
    pub fn is_ahead_of(&self, now: u64) -> bool {
        let ticks = self.generation_ticks();
        ticks.is_some_and(|ticks| self.newest().began > now.saturating_add(ticks))
    }

    /// Lets the newest generation begin now. All older ones become one, which has just ended, so
    /// every item that is found now is found for one window from now on.
    pub(crate) fn begin_again(&mut self, now: u64) {
        let oldest = self.kept.first().copied().unwrap_or_default();
        let older = Generation {
            layers: u32::try_from(self.past()).unwrap_or(u32::MAX),
            began: oldest.began.min(now),
        };
        let newest = Generation {
            began: now,
            ..self.newest()
        };
        self.kept.clear();
        self.kept.extend(Some(older).filter(|it| it.layers > 0));
        self.kept.push(newest);
    }

    /// When the clock ends the newest generation; `None` for a window of items.
    /// [Example](crate::WindowedBloomFilter::window).
    #[must_use]
    pub fn next_generation(&self) -> Option<u64> {
        let ticks = self.generation_ticks()?;
        Some(self.newest().began.saturating_add(ticks))
    }

    /// The generations that are kept and the items of each, oldest first, from the items of the
    /// layers. [Example](crate::WindowedBloomFilter::window).
    pub fn items(
        &self,
        mut of_layers: impl Iterator<Item = u64>,
    ) -> impl Iterator<Item = (Generation, u64)> {
        self.kept.iter().map(move |generation| {
            let layers = of_layers.by_ref().take(generation.layers as usize);
            (*generation, saturating_sum(layers))
        })
    }

    /// The dimensions of the first layer of a generation, for its part of the capacity or for this
    /// many items; `None` when there is no such layer.
    /// [Example](crate::WindowedBloomFilter::window).
    #[must_use]
    pub fn size(&self, items: u64) -> Option<BlockedSize> {
        let generations = u64::from(self.generations.max(1));
        let capacity = match self.span {
            Span::Ticks(ticks) if !ticks.is_multiple_of(generations) => {
                let part = u128::from(ticks.div_ceil(generations));
                let capacity = (u128::from(self.capacity) * part).div_ceil(ticks.into());
                u64::try_from(capacity).ok()?
            }
            _ => self.capacity.div_ceil(generations),
        };
        let rate = self.rate();
        match self.span {
            Span::Items => BlockedSize::new(capacity, rate),
            Span::Ticks(_) => BlockedSize::new(capacity.max(items), rate * FIRST_SHARE),
        }
    }

    /// The dimensions of the first layer of the next generation. If the newest one, whose layers
    /// have so many bytes, got more items than planned, that one is likely to get as many, or a few
    /// more.
    pub(super) fn next_size(&self, items: u64, bytes: u64) -> Option<BlockedSize> {
        // A loaded filter may count items for which its bits have no room. They would let a header
        // of a few bytes decide about a layer of any size.
        let most = bytes.saturating_mul(2);
        let planned = self.size(0)?;
        if items <= planned.capacity {
            return Some(planned);
        }
        let likely = self.size(items.saturating_add(items / 20));
        likely.filter(|size| size.bytes <= most).or(Some(planned))
    }

    /// The error rate of a generation.
    pub(crate) fn rate(&self) -> f64 {
        self.error_rate / f64::from(self.generations.saturating_add(1))
    }

    /// The number of layers of these generations.
    pub(super) fn layers_of(generations: &[Generation]) -> usize {
        generations.iter().map(|it| it.layers as usize).sum()
    }

    /// How many layers are older than the newest generation.
    pub(super) fn past(&self) -> usize {
        let older = self.kept.split_last().map_or(&[][..], |(_, older)| older);
        Self::layers_of(older)
    }

    /// How many layers are dropped when so many generations begin.
    pub(super) fn outdated(&self, begun: u64) -> usize {
        let begun = usize::try_from(begun).unwrap_or(usize::MAX);
        let dropped = self.kept.len().saturating_add(begun);
        let dropped = dropped.saturating_sub(self.most());
        Self::layers_of(self.kept.get(..dropped).unwrap_or(&self.kept))
    }

    /// When the clock has ended so many generations that a layer is outdated.
    pub(super) fn outdated_at(&self) -> Option<u64> {
        let ticks = self.generation_ticks()?;
        let kept = self.kept.iter();
        let empty = kept.take_while(|generation| generation.layers == 0).count();
        let begun = self.most().saturating_sub(self.kept.len()) + empty + 1;
        let begun = u64::try_from(begun).unwrap_or(u64::MAX);
        let passed = begun.saturating_mul(ticks);
        Some(self.newest().began.saturating_add(passed))
    }

    /// The bytes that were dropped so far, once so many more are. Beyond the maximum the number is 0
    /// again, not the maximum: a dump in progress would take other bytes for those that it reads
    /// next if their numbers stayed the same.
    pub(super) fn dropped_after(&self, bytes: u64) -> u64 {
        let dropped = self.dropped.checked_add(bytes);
        dropped
            .filter(|dropped| *dropped <= MAX_DROPPED_BYTES)
            .unwrap_or(0)
    }

    /// The same with the newest generation only, of one layer, after all bytes were dropped.
    pub(crate) fn emptied(&self, bytes: u64) -> Window {
        let newest = Generation {
            layers: 1,
            ..self.newest()
        };
        Window {
            dropped: self.dropped_after(bytes),
            kept: Vec::from([newest]),
            ..*self
        }
    }

    /// Whether it is all that a window of so many layers must be.
    #[must_use]
    pub(crate) fn is_valid(&self, layers: usize) -> bool {
        let counts = self.kept.iter().map(|it| u64::from(it.layers));
        // Written so that NaN fails.
        (1..=MAX_GENERATIONS).contains(&self.generations)
            && self.span != Span::Ticks(0)
            && self.capacity > 0
            && self.error_rate > 0.0
            && self.error_rate < 1.0
            && self.dropped <= MAX_DROPPED_BYTES
            && self.kept.len() <= self.most()
            && self.newest().layers > 0
            && counts.sum::<u64>() == layers as u64
            && self.kept.is_sorted_by_key(|generation| generation.began)
    }
}
