//! The figures and the label of one filter, for people.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::filter::{Filter, FilterKind};
use crate::format::layout;
use crate::metrics::Metrics;

/// Bytes of a key that its label shows. A hash distinguishes longer keys.
const SHOWN: usize = 100;
/// Bytes of a key that are hashed: hashing all of a long one under a lock takes too long.
const HASHED: usize = 4096;

/// An error rate this many times the requested one is clearly above it.
const CLEARLY: f64 = 1.25;

/// The figures of one filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Its kind.
    pub kind: FilterKind,
    /// Bytes, 1, layers, items and capacity.
    pub metrics: Metrics,
    /// New items until it adds a layer or, if it does not grow, is full.
    pub room: u64,
    /// The share of its bits that are set, or of its slots that are used.
    pub fill_ratio: f64,
    /// The requested error rate. RedisBloom's cuckoo filters have none.
    pub asked: Option<f64>,
    /// The error rate to expect now.
    pub expected: f64,
    /// Whether that is clearly above the requested rate. Many small full filters are somewhat above
    /// or below it by chance.
    pub is_above: bool,
    /// Whether it refuses items when it is full.
    pub is_fixed: bool,
    /// The window, if the filter has one.
    pub window: Option<Forgets>,
}

/// The figures of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forgets {
    /// The milliseconds that it remembers; none if it remembers a number of items.
    pub ms: Option<u64>,
    /// The generations that are kept.
    pub generations: usize,
    /// When the next generation begins, in Unix milliseconds; none in a window of items.
    pub next_ms: Option<u64>,
}

impl Figures {
    /// The number of 64-byte blocks read from a large filter.
    pub fn of(filter: &Filter, blocks: u64) -> Self {
        let (kind, metrics) = (filter.kind(), Metrics::of(filter));
        match filter {
            Filter::Bloom(bloom) => {
                let sample = bloom.sample_blocks(blocks);
                let newest = bloom.layers().last();
                let expected = sample.estimated_error_rate;
                Figures {
                    kind,
                    metrics,
                    room: newest.map_or(0, |it| it.capacity().saturating_sub(it.len())),
                    fill_ratio: sample.fill_ratio,
                    asked: Some(bloom.error_rate()),
                    expected,
                    is_above: expected - sample.error > CLEARLY * bloom.error_rate(),
                    is_fixed: bloom.is_fixed() && bloom.window().is_none(),
                    window: bloom.window().map(|window| Forgets {
                        ms: window.span.ticks(),
                        generations: window.kept.len(),
                        next_ms: window.next_generation(),
                    }),
                }
            }
            Filter::Cuckoo(cuckoo) => {
                let stats = cuckoo.stats();
                Figures {
                    kind,
                    metrics,
                    room: cuckoo
                        .expected_until_growth()
                        .unwrap_or(cuckoo.capacity().saturating_sub(cuckoo.used())),
                    fill_ratio: stats.fill_ratio,
                    asked: stats.error_rate,
                    expected: stats.estimated_error_rate,
                    is_above: stats
                        .error_rate
                        .is_some_and(|asked| stats.estimated_error_rate > CLEARLY * asked),
                    is_fixed: cuckoo.expansion() == 0,
                    window: None,
                }
            }
        }
    }
}

/// The name of a kind, as in settings and replies.
pub fn kind_name(kind: FilterKind) -> &'static str {
    match kind {
        FilterKind::Bloom(it) => layout::name(it),
        FilterKind::Valkey => "valkey-bloom",
        FilterKind::Cuckoo => "cuckoo",
        FilterKind::KeyedCuckoo => "keyed-cuckoo",
    }
}

/// A key as text: invalid text and invisible characters are escaped. Two different keys of at most
/// 100 bytes have different texts.
pub fn label(key: &[u8]) -> String {
    let mut text = String::new();
    for chunk in key.get(..SHOWN).unwrap_or(key).utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '\\' || is_unseen(letter) {
                text.extend(letter.escape_default());
            } else {
                text.push(letter);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    if key.len() > SHOWN {
        let mut hasher = DefaultHasher::new();
        (key.len(), key.get(..HASHED).unwrap_or(key)).hash(&mut hasher);
        text.push_str(&format!("…{:016x}", hasher.finish()));
    }
    text
}

/// Whether a letter is invisible, or moves its neighbours.
fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_keys_have_different_labels() {
        let long = |end: &str| "k".repeat(SHOWN) + end;
        let (long_a, long_b) = (long("a"), long("b"));
        let keys: [&[u8]; 9] = [
            b"",
            "plain ünïcode".as_bytes(),
            b"\xff",
            b"\\xff",
            b"a\nb",
            b"a\\nb",
            &[b'k'; SHOWN],
            long_a.as_bytes(),
            long_b.as_bytes(),
        ];
        let labels: std::collections::BTreeSet<String> = keys.into_iter().map(label).collect();
        assert_eq!(labels.len(), keys.len());
        assert_eq!(label("plain ünïcode".as_bytes()), "plain ünïcode");
        assert_eq!(label(b"\xff\x00"), "\\xff\\u{0}");
        assert_eq!(label("a\u{202e}b".as_bytes()), "a\\u{202e}b");
        for label in labels {
            assert!(label.chars().count() <= SHOWN + 17, "{label}");
            assert!(!label.contains(char::is_control), "{label}");
        }
        // A letter that is cut at the end of the shown part.
        let cut = "k".repeat(SHOWN - 1) + "ü";
        assert!(label(cut.as_bytes()).contains("k\\xc3…"));
    }
}
