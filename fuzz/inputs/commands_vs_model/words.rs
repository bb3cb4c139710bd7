//! Arguments of any form.

use arbitrary::Arbitrary;
use everbloom::hash::Key;
use everbloom::host::{Generation, Window};
use everbloom::redisbloom::{CuckooParts, FilterParts, LayerParts, Options};
use everbloom::{Layout, Span};
use everbloom_commands::format::header;

/// Numbers of a header of a cuckoo filter, any or near to what they may be.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Cuckoo {
    items: u64,
    removed: u64,
    buckets: Number,
    tables: u16,
    bucket_size: u8,
    max_kicks: u16,
    expansion: u16,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    Power(u8),
    Any(u64),
}

/// Numbers of a header of a filter with a window.
#[derive(Arbitrary, Debug)]
pub(crate) struct ForgedWindow {
    span: Number,
    generations: u8,
    capacity: u8,
    dropped: Number,
    expansion: u32,
    /// Of each layer, its items, and when its generation began.
    layers: Vec<(Number, Number)>,
}

impl Number {
    fn get(self) -> u64 {
        match self {
            Number::Power(power) => 1 << (power % 64),
            Number::Any(number) => number,
        }
    }
}

impl ForgedWindow {
    /// The iterator and the header that BF.LOADCHUNK takes.
    fn words(&self) -> [Vec<u8>; 2] {
        let generations = u32::from(self.generations % 64) + 1;
        let most = generations as usize + 1;
        let mut began: Vec<u64> = self.layers.iter().map(|(_, began)| began.get()).collect();
        began.sort_unstable();
        began.truncate(most);
        let kept = began.iter().map(|began| Generation {
            layers: 1,
            began: *began,
        });
        let mut parts = FilterParts {
            options: 5 | Options::WINDOW,
            expansion: self.expansion,
            key: Some(Key::from_seed(1)),
            window: Some(Window {
                span: Span::of_ticks(self.span.get()),
                generations,
                capacity: self.capacity.into(),
                error_rate: 0.01,
                dropped: self.dropped.get(),
                kept: kept.collect(),
            }),
            ..FilterParts::default()
        };
        for (items, _) in self.layers.iter().take(most) {
            let layer = LayerParts {
                bytes: 64,
                items: items.get().min(u64::MAX - parts.items),
                capacity: 10,
                error_rate: 0.001,
                hashes: 7,
                ..LayerParts::default()
            };
            parts.items += layer.items;
            parts.layers.push(layer);
        }
        let iterator = parts.stream_start().saturating_add(1).to_string();
        [iterator.into_bytes(), header::encode_parts(&parts)]
    }
}

impl Cuckoo {
    fn header(self) -> Vec<u8> {
        let buckets = self.buckets.get();
        header::cuckoo::encode(&CuckooParts {
            items: self.items,
            removed: self.removed,
            buckets,
            tables: self.tables,
            bucket_size: self.bucket_size,
            max_kicks: self.max_kicks,
            expansion: self.expansion,
            keyed: None,
        })
    }
}

#[derive(Arbitrary, Debug)]
pub(crate) enum Word {
    Known(u8),
    Number(i16),
    Header(u8),
    CuckooHeader(Cuckoo),
    Bytes(Vec<u8>),
    ForgedWindow(ForgedWindow),
}

impl Word {
    /// The argument, or both that belong together.
    pub(crate) fn words(&self) -> Vec<Vec<u8>> {
        match self {
            Word::ForgedWindow(window) => window.words().into(),
            word => vec![word.bytes()],
        }
    }

    fn bytes(&self) -> Vec<u8> {
        const KNOWN: [&str; 27] = [
            "LAYOUT",
            "BLOCKED",
            "CLASSIC",
            "SEED",
            "ITEMS",
            "BUCKETSIZE",
            "MAXITERATIONS",
            "1",
            "CAPACITY",
            "ERROR",
            "EXPANSION",
            "NOCREATE",
            "NONSCALING",
            "i",
            "e",
            "n",
            "",
            "0.01",
            "0.9",
            "1e-323",
            "nan",
            "inf",
            "SIZE",
            "FILTERS",
            "1073741824",
            "9223372036854775807",
            "-9223372036854775808",
        ];
        match self {
            Word::Known(at) => KNOWN[usize::from(*at) % KNOWN.len()].into(),
            Word::Number(number) => number.to_string().into_bytes(),
            Word::Header(capacity) => {
                let builder = everbloom::host::LayeredFilter::builder().layout(Layout::Classic);
                let layout = match capacity % 2 {
                    0 => Layout::Classic,
                    _ => Layout::Blocked,
                };
                let builder = builder.capacity(u64::from(*capacity).max(1));
                let filter = match layout {
                    Layout::Classic => builder.build(),
                    Layout::Blocked => builder.layout(layout).seed(1).build(),
                };
                header::encode(&filter.unwrap())
            }
            Word::CuckooHeader(cuckoo) => cuckoo.header(),
            Word::Bytes(bytes) => bytes.clone(),
            Word::ForgedWindow(window) => window.words().concat(),
        }
    }
}
