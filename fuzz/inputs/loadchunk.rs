//! Inputs of the target `loadchunk`: a header, and commands on what it makes.
//!
//! A header of random bytes is never taken, so most inputs start from the header of a real filter
//! and change some numbers of it, with or without those that must follow.

use arbitrary::{Arbitrary, Unstructured};
use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{Check, FilterParts, LayerParts};
use everbloom::sizing::LayerSize;
use everbloom_commands::format::header;

/// The largest limit.
pub(crate) const LARGE: u64 = 1 << 20;

#[derive(Arbitrary, Debug)]
pub(crate) struct Input {
    pub(crate) limit: Limit,
    pub(crate) header: Header,
    pub(crate) steps: Vec<Step>,
}

/// The most that the bit arrays of a filter may take.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Limit {
    Tiny,
    Small,
    Large,
}

#[derive(Arbitrary, Debug)]
pub(crate) enum Header {
    /// Only the changes that leave it valid.
    Valid(Seed, Vec<Change>),
    Near(Seed, Vec<Change>),
    NearBytes(Seed, Vec<(u16, u8)>),
    Bytes(Vec<u8>),
}

/// A filter to start from. `rate` chooses the layout, too.
#[derive(Arbitrary, Debug)]
pub(crate) struct Seed {
    capacity: u8,
    rate: u8,
    expansion: u8,
    fixed: bool,
    items: u8,
}

/// A new number in a header. `layer` is taken modulo the number of layers.
#[derive(Arbitrary, Debug)]
pub(crate) enum Change {
    Items(Number),
    Options(Number),
    Expansion(Number),
    Repeat { layer: u8, times: u8 },
    Remove { layer: u8 },
    Layer { layer: u8, field: Field },
}

#[derive(Arbitrary, Debug)]
pub(crate) enum Field {
    Bytes(Number),
    Bits(Number),
    /// Bytes and the bits that go with them.
    BytesAndBits(Number),
    Items(Number),
    Rate(f64),
    BitsPerEntry(f64),
    /// Bits per item and the hashes that go with them.
    Density(u16),
    Hashes(Number),
    Capacity(Number),
    Log2(u8),
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
    Madd(u16, u8),
    Exists(u16),
    ScanDump(Number),
    Info(u8),
    Debug,
    Card,
    /// A chunk of random bytes, somewhere.
    Load(Number, Vec<u8>),
    /// A chunk that ends a layer or lies within it, filled with one byte.
    Fill {
        layer: u8,
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
    /// between: layers that are added on the way do not count where a chunk is placed.
    pub(crate) fn requests(&self) -> Vec<Vec<Vec<u8>>> {
        let header = self.header.bytes();
        let layers = header::decode(&header).map_or(Vec::new(), |parts| parts.layers);
        let ends = ends(layers.iter().map(|layer| layer.bytes));
        let steps = self.steps.iter().filter_map(|step| step.request(&ends));
        [request("BF.LOADCHUNK", [b"1".to_vec(), header])]
            .into_iter()
            .chain(steps)
            .collect()
    }
}

/// Where layers of so many bytes end, one behind the other.
pub(crate) fn ends(bytes: impl Iterator<Item = u64>) -> Vec<u64> {
    let sum = |sum: &mut u64, bytes| {
        *sum = sum.saturating_add(bytes);
        Some(*sum)
    };
    bytes.scan(0, sum).collect()
}

fn request(name: &str, args: impl IntoIterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let head = [name.as_bytes().to_vec(), b"k".to_vec()];
    head.into_iter().chain(args).collect()
}

impl Step {
    /// The command of the step on a filter whose layers end at `ends`, unless it is none.
    pub(crate) fn request(&self, ends: &[u64]) -> Option<Vec<Vec<u8>>> {
        Some(match self {
            Step::Add(number) => request("BF.ADD", [item((*number).into())]),
            Step::Madd(first, count) => {
                let items = (0..=u16::from(*count)).map(|number| item(first.wrapping_add(number)));
                request("BF.MADD", items)
            }
            Step::Exists(number) => request("BF.EXISTS", [item(*number)]),
            Step::ScanDump(iterator) => request("BF.SCANDUMP", [iterator.signed()]),
            Step::Info(field) => {
                let fields = ["CAPACITY", "SIZE", "FILTERS", "ITEMS", "EXPANSION"];
                let field = fields.get(usize::from(*field));
                request("BF.INFO", field.map(|field| field.as_bytes().to_vec()))
            }
            Step::Debug => request("BF.DEBUG", []),
            Step::Card => request("BF.CARD", []),
            Step::Load(iterator, data) => {
                request("BF.LOADCHUNK", [iterator.signed(), data.clone()])
            }
            Step::Fill {
                layer,
                from_end,
                len,
                with,
            } => {
                let layer = usize::from(*layer).checked_rem(ends.len())?;
                let behind = ends[layer].saturating_add(1);
                let iterator = behind.saturating_sub((*from_end).into()).to_string();
                let data = vec![*with; (*len).into()];
                request("BF.LOADCHUNK", [iterator.into_bytes(), data])
            }
            Step::Free(_) => return None,
        })
    }
}

fn item(number: u16) -> Vec<u8> {
    number.to_string().into_bytes()
}

impl Header {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Header::Valid(seed, changes) => {
                let mut parts = seed.parts();
                for change in changes {
                    let mut next = parts.clone();
                    change.apply(&mut next);
                    let counts = next.layers.iter().map(|layer| layer.items);
                    next.items = counts.fold(0, u64::wrapping_add);
                    if next.validate(LARGE, Check::DumpHeader).is_ok() {
                        parts = next;
                    }
                }
                header::encode_parts(&parts)
            }
            Header::Near(seed, changes) => {
                let mut parts = seed.parts();
                changes.iter().for_each(|change| change.apply(&mut parts));
                header::encode_parts(&parts)
            }
            Header::NearBytes(seed, changes) => {
                let mut header = header::encode_parts(&seed.parts());
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
    fn parts(&self) -> FilterParts {
        // The blocked layout sizes no layer for as low a rate as the classic one does.
        let (layout, rates): (_, &[f64]) = match self.rate {
            ..0x80 => (Layout::Classic, &[0.25, 0.01, 1e-6, 1e-300, 1e-323]),
            0x80.. => (Layout::Blocked, &[0.25, 0.01, 1e-6]),
        };
        let builder = LayeredFilter::builder()
            .capacity(u64::from(self.capacity).max(1))
            .error_rate(rates[usize::from(self.rate) % rates.len()])
            .expansion(self.expansion.into())
            .layout(layout);
        let builder = match layout {
            Layout::Classic => builder,
            Layout::Blocked => builder.seed(7),
        };
        let builder = if self.fixed { builder.fixed() } else { builder };
        let mut filter = builder.build().unwrap();
        for number in 0..self.items {
            let _ = filter.try_insert(&item(number.into()));
            if filter.layers().len() == 8 {
                break;
            }
        }
        filter.parts()
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

    fn low(self) -> u32 {
        u32::try_from(self.get() & u64::from(u32::MAX)).unwrap()
    }
}

impl Change {
    fn apply(&self, parts: &mut FilterParts) {
        let layers = parts.layers.len();
        let place = |layer: u8| usize::from(layer).checked_rem(layers);
        match self {
            Change::Items(number) => parts.items = number.get(),
            Change::Options(number) => parts.options = number.low(),
            Change::Expansion(number) => parts.expansion = number.low(),
            Change::Repeat { layer, times } => {
                let layer = place(*layer).map(|at| parts.layers[at]);
                let copies = layer
                    .into_iter()
                    .flat_map(|layer| std::iter::repeat_n(layer, usize::from(*times)));
                parts.layers.extend(copies);
            }
            Change::Remove { layer } => {
                place(*layer).map(|at| parts.layers.remove(at));
            }
            Change::Layer { layer, field } => {
                if let Some(at) = place(*layer) {
                    field.apply(&mut parts.layers[at]);
                }
            }
        }
    }
}

impl Field {
    fn apply(&self, layer: &mut LayerParts) {
        match self {
            Field::Bytes(number) => layer.bytes = number.get(),
            Field::Bits(number) => layer.bits = number.get(),
            Field::BytesAndBits(number) => {
                layer.bytes = number.get();
                layer.bits = layer.bytes.wrapping_mul(8);
            }
            Field::Items(number) => layer.items = number.get(),
            Field::Rate(rate) => layer.error_rate = *rate,
            Field::BitsPerEntry(bits) => layer.bits_per_entry = *bits,
            Field::Density(bits) => {
                layer.bits_per_entry = f64::from(*bits) / 16.0;
                layer.hashes = LayerSize::hashes_of(layer.bits_per_entry).unwrap_or(1);
            }
            Field::Hashes(number) => layer.hashes = number.low(),
            Field::Capacity(number) => layer.capacity = number.get(),
            Field::Log2(log2_bits) => layer.log2_bits = *log2_bits,
        }
    }
}
