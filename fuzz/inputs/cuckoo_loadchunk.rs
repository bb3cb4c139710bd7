//! Inputs of the target `cuckoo_loadchunk`: a header, and commands on what it makes.
//!
//! Most inputs start from the header of a real filter and change some numbers of it: one of random
//! bytes is hardly ever taken.

use arbitrary::{Arbitrary, Unstructured};
use everbloom::CuckooFilter;
use everbloom::redisbloom::CuckooParts;
use everbloom_commands::format::header::cuckoo as header;

#[derive(Arbitrary, Debug)]
pub(crate) struct Input {
    pub(crate) limit: u8,
    pub(crate) header: Header,
    pub(crate) steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
pub(crate) enum Header {
    Near(Seed, Vec<Change>),
    NearBytes(Seed, Vec<(u8, u8)>),
    Bytes(Vec<u8>),
}

/// A filter to start from.
#[derive(Arbitrary, Debug)]
pub(crate) struct Seed {
    capacity: u8,
    bucket_size: u8,
    max_kicks: u8,
    expansion: u8,
    items: u8,
}

/// A new number in a header.
#[derive(Arbitrary, Debug)]
pub(crate) enum Change {
    Items(Number),
    Removed(Number),
    Buckets(Number),
    Tables(u16),
    BucketSize(u8),
    MaxKicks(u16),
    Expansion(u16),
}

/// Mostly numbers that lie near an edge.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Number {
    Small(u8),
    Large(u8),
    NearPower(u8, i8),
    Any(u64),
}

#[derive(Arbitrary, Debug)]
pub(crate) enum Step {
    Add(u8),
    AddIfAbsent(u8),
    Insert(u8, Vec<u8>),
    Delete(u8),
    Compact,
    Exists(u8),
    Count(u8),
    Info,
    ScanDump(Number),
    /// A chunk of random bytes, somewhere.
    Load(Number, Vec<u8>),
    /// A chunk near the end of a table, filled with one byte.
    Fill {
        table: u8,
        from_end: u8,
        len: u16,
        with: u8,
    },
    /// How much memory there is from now on.
    Free(Number),
}

impl Input {
    /// The input of these bytes, read as libFuzzer's macro does.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        Self::arbitrary_take_rest(Unstructured::new(bytes)).ok()
    }

    /// The commands of all steps, the header's before them, for a host that is asked nothing in
    /// between: tables that come and go on the way do not count where a chunk is placed.
    pub(crate) fn requests(&self) -> Vec<Vec<Vec<u8>>> {
        let header = self.header.bytes();
        let ends = header::decode(&header).map_or(Vec::new(), |parts| ends(&parts));
        let steps = self.steps.iter().filter_map(|step| step.request(&ends));
        let load = request("CF.LOADCHUNK", [b"1".to_vec(), header]);
        std::iter::once(load).chain(steps).collect()
    }
}

/// Where the tables end, laid end to end; of many only the first.
pub(crate) fn ends(parts: &CuckooParts) -> Vec<u64> {
    let mut end = 0_u64;
    let tables = (0..parts.tables.min(100)).map_while(|number| parts.table(number));
    tables
        .map(|(_, slots)| {
            end = end.saturating_add(slots);
            end
        })
        .collect()
}

fn request(name: &str, args: impl IntoIterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let head = [name.as_bytes().to_vec(), b"k".to_vec()];
    head.into_iter().chain(args).collect()
}

fn item(number: u8) -> Vec<u8> {
    number.to_string().into_bytes()
}

impl Step {
    /// The command of the step on a filter whose tables end at `ends`, unless it is none.
    pub(crate) fn request(&self, ends: &[u64]) -> Option<Vec<Vec<u8>>> {
        Some(match self {
            Step::Add(number) => request("CF.ADD", [item(*number)]),
            Step::AddIfAbsent(number) => request("CF.ADDNX", [item(*number)]),
            Step::Insert(first, more) => {
                let items = std::iter::once(first)
                    .chain(more)
                    .map(|number| item(*number));
                request("CF.INSERT", std::iter::once(b"ITEMS".to_vec()).chain(items))
            }
            Step::Delete(number) => request("CF.DEL", [item(*number)]),
            Step::Compact => request("CF.COMPACT", []),
            Step::Exists(number) => request("CF.EXISTS", [item(*number)]),
            Step::Count(number) => request("CF.COUNT", [item(*number)]),
            Step::Info => request("CF.INFO", []),
            Step::ScanDump(position) => request("CF.SCANDUMP", [position.signed()]),
            Step::Load(position, data) => {
                request("CF.LOADCHUNK", [position.signed(), data.clone()])
            }
            Step::Fill {
                table,
                from_end,
                len,
                with,
            } => {
                let table = usize::from(*table).checked_rem(ends.len())?;
                let behind = ends[table].saturating_add(1);
                let position = behind.saturating_sub((*from_end).into()).to_string();
                let data = vec![*with; (*len).into()];
                request("CF.LOADCHUNK", [position.into_bytes(), data])
            }
            Step::Free(_) => return None,
        })
    }
}

impl Header {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Header::Near(seed, changes) => {
                let mut parts = seed.parts();
                changes.iter().for_each(|change| change.apply(&mut parts));
                header::encode(&parts)
            }
            Header::NearBytes(seed, changes) => {
                let mut header = header::encode(&seed.parts());
                for (at, byte) in changes {
                    let at = usize::from(*at) % header.len();
                    header[at] = *byte;
                }
                header
            }
            Header::Bytes(bytes) => bytes.clone(),
        }
    }
}

impl Seed {
    fn parts(&self) -> CuckooParts {
        let builder = CuckooFilter::builder()
            .slots(self.capacity.into())
            .bucket_size(self.bucket_size % 8 + 1)
            .max_kicks(u16::from(self.max_kicks) + 1)
            .expansion(u16::from(self.expansion % 4));
        let mut filter = builder.build().unwrap();
        for number in 0..self.items {
            let _ = filter.insert(&item(number));
        }
        filter.parts()
    }
}

impl Change {
    fn apply(&self, parts: &mut CuckooParts) {
        match *self {
            Change::Items(number) => parts.items = number.get(),
            Change::Removed(number) => parts.removed = number.get(),
            Change::Buckets(number) => parts.buckets = number.get(),
            Change::Tables(number) => parts.tables = number,
            Change::BucketSize(number) => parts.bucket_size = number,
            Change::MaxKicks(number) => parts.max_kicks = number,
            Change::Expansion(number) => parts.expansion = number,
        }
    }
}

impl Number {
    pub(crate) fn get(self) -> u64 {
        match self {
            Number::Small(number) => number.into(),
            Number::Large(below) => u64::MAX - u64::from(below),
            Number::NearPower(power, by) => (1_u64 << (power % 64)).wrapping_add_signed(by.into()),
            Number::Any(number) => number,
        }
    }

    /// As an argument.
    fn signed(self) -> Vec<u8> {
        self.get().cast_signed().to_string().into_bytes()
    }
}
