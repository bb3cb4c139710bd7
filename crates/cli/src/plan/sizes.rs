//! The sizes of filters, and the search for the capacity or the rate that fits into some memory.

use everbloom::host::Window;
use everbloom::sizing::BlockedSize;
use everbloom::sizing::{LayerSize, Rounding, textbook};
use everbloom::{Span, WindowedBloomFilter};

/// The filters that a plan compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Classic,
    ClassicGrowing,
    Blocked,
    BlockedGrowing,
    RedisBloom,
    RedisBloomFixed,
    /// Only if it is asked for.
    Windowed,
}

pub(super) const CHOICES: [Choice; 6] = [
    Choice::Classic,
    Choice::ClassicGrowing,
    Choice::Blocked,
    Choice::BlockedGrowing,
    Choice::RedisBloom,
    Choice::RedisBloomFixed,
];

/// A filter as it will be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) kind: Choice,
    pub(super) capacity: u64,
    /// The error rate asked for.
    pub(super) rate: f64,
    pub(super) bytes: u64,
    pub(super) hashes: u32,
}

impl Choice {
    pub(super) fn name(self) -> &'static str {
        match self {
            Choice::Classic => "classic",
            Choice::ClassicGrowing => "classic, may grow",
            Choice::Blocked => "blocked",
            Choice::BlockedGrowing => "blocked, may grow",
            Choice::RedisBloom => "RedisBloom",
            Choice::RedisBloomFixed => "RedisBloom, NONSCALING",
            Choice::Windowed => "blocked, with a window",
        }
    }

    /// The dimensions that the library, or RedisBloom, gives such a filter; `None` when it refuses.
    /// Only filters that do not grow take a number of hashes; it is the best unless it is given.
    pub(super) fn size(self, capacity: u64, rate: f64, hashes: Option<u32>) -> Option<Size> {
        if let Some(hashes) = hashes {
            return self.with_hashes(capacity, rate, hashes);
        }
        let classic = |size: LayerSize| (size.bytes, size.hashes);
        let in_blocks = |size: BlockedSize| (size.bytes, size.hashes);
        let (bytes, hashes) = match self {
            Choice::Classic => classic(LayerSize::new(capacity, rate, Rounding::Words)?),
            // RedisBloom's sizes are those of the classic layout, which has its bits.
            Choice::ClassicGrowing | Choice::RedisBloom => {
                classic(LayerSize::first(capacity, rate)?)
            }
            Choice::RedisBloomFixed => classic(LayerSize::only(capacity, rate)?),
            Choice::Blocked => in_blocks(BlockedSize::new(capacity, rate)?),
            Choice::BlockedGrowing => in_blocks(BlockedSize::first(capacity, rate)?),
            Choice::Windowed => {
                let window = Window {
                    // Of any length that the generations divide.
                    span: Span::Ticks(WindowedBloomFilter::GENERATIONS.into()),
                    generations: WindowedBloomFilter::GENERATIONS,
                    capacity,
                    error_rate: rate,
                    kept: Vec::new(),
                    dropped: 0,
                };
                let (bytes, hashes) = in_blocks(window.size(0)?);
                let generations = u64::from(window.generations) + 1;
                (bytes.checked_mul(generations)?, hashes)
            }
        };
        Some(Size {
            kind: self,
            capacity,
            rate,
            bytes,
            hashes,
        })
    }

    /// The smallest filter with these hashes that keeps the rate.
    fn with_hashes(self, capacity: u64, rate: f64, hashes: u32) -> Option<Size> {
        let unit = self.unit();
        let made = |units: u64| self.of_bytes(units * unit, hashes, capacity);
        let keeps = |units: u64| made(units).is_some_and(|size| size.rate <= rate);
        let most = (1 << 60) / unit;
        if !keeps(most) {
            return None;
        }
        let size = made(1 + last(0, most, |units| !keeps(units)))?;
        Some(Size { rate, ..size })
    }

    /// The filter with as many of these bytes as it can use, these hashes, and the rate that
    /// follows.
    pub(super) fn of_bytes(self, bytes: u64, hashes: u32, capacity: u64) -> Option<Size> {
        let bits = bytes / self.unit() * self.unit() * 8;
        let (bytes, rate) = match self {
            Choice::Classic => {
                let size = LayerSize::from_bits(bits, hashes, Some(capacity))?;
                (size.bytes, size.error_rate)
            }
            Choice::Blocked => {
                let size = BlockedSize::from_bits(bits, hashes, Some(capacity))?;
                (size.bytes, size.error_rate)
            }
            _ => return None,
        };
        Some(Size {
            kind: self,
            capacity,
            rate,
            bytes,
            hashes,
        })
    }

    /// What its bytes are a multiple of: a word, or a block.
    fn unit(self) -> u64 {
        match self {
            Choice::Blocked => u64::from(BlockedSize::BLOCK_BITS / 8),
            _ => 8,
        }
    }

    /// The filter of most items that fits into so many bytes.
    pub(super) fn most_items(self, rate: f64, memory: u64, hashes: Option<u32>) -> Option<Size> {
        let fits = |capacity: u64| {
            let size = self.size(capacity, rate, hashes);
            size.is_some_and(|size| size.bytes <= memory)
        };
        // A large first layer of the blocked layout keeps less of the rate for the layers to come,
        // so it takes fewer bits than one that is a little smaller.
        let (low, high) = match self {
            Choice::BlockedGrowing if !fits(BlockedSize::LARGE) => (0, BlockedSize::LARGE),
            Choice::BlockedGrowing => (BlockedSize::LARGE, 1 << 62),
            _ => (0, 1 << 62),
        };
        self.size(last(low, high, fits), rate, hashes)
    }

    /// The filter of the lowest rate that fits into so many bytes. The rate is rounded up to three
    /// digits, so that a filter made with the rate as it is printed is the one that is meant.
    pub(super) fn lowest_rate(self, capacity: u64, memory: u64) -> Option<Size> {
        let fitting = |rate: f64| {
            let size = self.size(capacity, rate, None);
            size.filter(|size| size.bytes <= memory)
        };
        if let Some(size) = fitting(BlockedSize::MIN_RATE) {
            return Some(size);
        }
        let most = 0.999;
        fitting(most)?;
        let (mut low, mut high) = (BlockedSize::MIN_RATE.ln(), f64::ln(most));
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if fitting(middle.exp()).is_some() {
                high = middle;
            } else {
                low = middle;
            }
        }
        let found = rounded_up(high.exp());
        // A blocked filter that may grow takes up to an eighth more than it must, so that its
        // layers have as many hashes as each other. A lower rate may spare that and fit, too.
        let below = match self {
            Choice::BlockedGrowing => 150,
            _ => 0,
        };
        let lower = (1..=below).map(|step| rounded_up(found * 0.99_f64.powi(step)));
        lower.rev().chain([found]).find_map(fitting)
    }
}

/// The last number for which it holds. It holds at `low`, and not at `high`.
fn last(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// To three digits.
fn rounded_up(rate: f64) -> f64 {
    let text = format!("{rate:.2e}");
    let near: f64 = text.parse().unwrap_or(rate);
    if near >= rate {
        return near;
    }
    let (_, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digit: f64 = format!("1e{exponent}").parse().unwrap_or(0.0);
    let above = format!("{:.2e}", near + digit / 100.0);
    above.parse().unwrap_or(rate)
}

impl Size {
    pub(super) fn bits(&self) -> u64 {
        self.bytes.saturating_mul(8)
    }

    pub(super) fn bits_per_item(&self) -> f64 {
        self.bits() as f64 / self.capacity as f64
    }

    /// The error rate to expect when the filter holds as many items as its capacity. That of a
    /// window is the one asked for: its generations have several sizes.
    pub(super) fn expected_rate(&self) -> f64 {
        match self.kind {
            Choice::Windowed => self.rate,
            _ => self.rate_at(self.capacity as f64),
        }
    }

    /// The error rate of a full filter of the classic layout by the textbook, which holds for large
    /// filters.
    pub(super) fn textbook_rate(&self) -> f64 {
        let (bits, hashes) = (self.bits() as f64, f64::from(self.hashes));
        textbook::error_rate(bits, hashes, self.capacity as f64)
    }

    /// The error rate when the filter holds so many items and has not grown.
    pub(super) fn rate_at(&self, items: f64) -> f64 {
        match self.kind {
            Choice::Blocked | Choice::BlockedGrowing => {
                let blocks = self.bits() as f64 / f64::from(BlockedSize::BLOCK_BITS);
                BlockedSize::rate_at_load(items / blocks, self.hashes)
            }
            _ => LayerSize::rate_at(self.bits(), self.hashes, items),
        }
    }
}

/// What would find the same items without a filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Other {
    pub(super) name: &'static str,
    pub(super) bytes: f64,
    pub(super) assumed: String,
}

/// Bytes of a MD5.
const MD5: f64 = 16.0;

pub(super) fn others(capacity: u64, rate: f64, item_bytes: u64) -> [Other; 3] {
    let items = capacity as f64;
    [
        Other {
            name: "set of strings",
            bytes: items * item_bytes as f64,
            assumed: format!("the strings alone, {item_bytes} bytes each (--item-bytes)"),
        },
        Other {
            name: "set of MD5s",
            bytes: items * MD5,
            assumed: format!("the sums alone, {MD5} bytes each"),
        },
        Other {
            name: "plain bitmap",
            bytes: textbook::bits_with_hashes(items, rate, 1.0) / 8.0,
            assumed: "one bit an item, from one hash, wrong as often".into(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn rates_are_rounded_up_to_three_digits() {
        let cases = [
            (0.001234, 0.00124),
            (0.01, 0.01),
            (0.009996, 0.01),
            (1.0001e-9, 1.01e-9),
        ];
        for (rate, rounded) in cases {
            assert_eq!(rounded_up(rate), rounded, "{rate}");
        }
    }

    /// What a filter takes leads back to its capacity and to its rate, within a word or a block.
    #[test]
    fn there_and_back_again() {
        let mut rng = SmallRng::seed_from_u64(13);
        for _ in 0..40 {
            let most = 1_u64 << rng.random_range(1..36);
            let capacity = rng.random_range(1..most);
            let rate = f64::exp(rng.random_range(f64::ln(1e-12)..f64::ln(0.2)));
            for kind in CHOICES {
                let there = kind.size(capacity, rate, None).unwrap();
                let unit = if kind.name().starts_with("blocked") {
                    64
                } else {
                    8
                };

                let back = kind.most_items(rate, there.bytes, None).unwrap();
                let case = format!("{kind:?} {capacity} {rate}");
                assert!(
                    back.capacity >= capacity && back.bytes <= there.bytes,
                    "{case} {back:?}"
                );
                // A large first layer in the blocked layout takes less than a small one.
                if kind != Choice::BlockedGrowing || back.capacity < BlockedSize::LARGE {
                    let more = kind.size(back.capacity + 1, rate, None).unwrap();
                    assert!(more.bytes > there.bytes, "{case} {back:?}");
                    assert!(back.bytes + 2 * unit >= there.bytes, "{case} {back:?}");
                }

                let back = kind.lowest_rate(capacity, there.bytes).unwrap();
                assert!(
                    back.rate <= rate * 1.011 && back.bytes <= there.bytes,
                    "{case} {back:?}"
                );
            }
        }
    }
}
