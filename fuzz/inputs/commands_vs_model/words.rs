//! Arguments of any form.

use arbitrary::Arbitrary;
use everbloom::Layout;
use everbloom::redisbloom::CuckooParts;
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

impl Cuckoo {
    fn header(self) -> Vec<u8> {
        let buckets = match self.buckets {
            Number::Power(power) => 1 << (power % 64),
            Number::Any(number) => number,
        };
        header::cuckoo::encode(&CuckooParts {
            items: self.items,
            removed: self.removed,
            buckets,
            tables: self.tables,
            bucket_size: self.bucket_size,
            max_kicks: self.max_kicks,
            expansion: self.expansion,
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
}

impl Word {
    pub(crate) fn bytes(&self) -> Vec<u8> {
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
        }
    }
}
