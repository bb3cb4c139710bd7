//! Two filters, compared in bounded memory.

use everbloom::redisbloom::{CuckooParts, FilterParts, LayerParts};
use everbloom_commands::Parts;

use super::answers;
use super::dump::{Header, PieceReader, ask_for_header, take_header};
use super::family::Family;
use super::server::Server;
use crate::failure::Failure;
use crate::filter::layout_name;
use crate::number::{grouped, time};

/// How two filters of a family differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    pub(crate) family: Family,
    /// The first parameter that differs.
    pub(crate) parameter: Option<Parameter>,
    /// The number of layers or tables of both. All that both have are compared.
    pub(crate) parts: [usize; 2],
    /// The items that both have counted.
    pub(crate) items: [u64; 2],
    /// The name of another count that differs.
    pub(crate) counts: Option<&'static str>,
    /// How the generations of two windows relate.
    generations: Generations,
    /// The number of bits or fingerprints that are in the first one only, and in the second one
    /// only, each at its place.
    pub(crate) units: [u64; 2],
    /// Random items that only the first one finds, and only the second one.
    pub(crate) answers: [u64; 2],
}

/// How the generations of two windows relate. Filters without a window have equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generations {
    Equal,
    /// The second one can be an earlier state: those that both have began at the same times, and
    /// the first one has the newest.
    Later,
    Unlike,
}

/// A parameter, and its value in both filters.
type Parameter = (&'static str, [String; 2]);

/// What a filter has become since its header was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Still,
    /// It is the same filter, and has all bytes that it had: each piece that was read meanwhile has
    /// the bits of all items that were there before.
    Grown,
    /// A window has dropped a generation, or another filter is there: the pieces are of no state.
    Moved,
}

impl Change {
    /// From the headers before and after.
    pub(crate) fn between(before: &Header, after: &Header) -> Self {
        if before.bytes == after.bytes {
            return Self::Still;
        }
        let difference = of_parts(&after.parts, &before.parts);
        let same = difference.is_some_and(|difference| difference.parameter.is_none());
        if same && before.start == after.start {
            Self::Grown
        } else {
            Self::Moved
        }
    }
}

impl Difference {
    pub(crate) fn is_none(&self) -> bool {
        let [first, second] = self.parts;
        let [items, others] = self.items;
        let counts = items == others && self.counts.is_none();
        let generations = self.generations == Generations::Equal;
        let bits = self.units == [0, 0] && self.answers == [0, 0];
        self.parameter.is_none() && first == second && counts && generations && bits
    }

    /// Whether the second filter is an earlier state of the first one: the first one has all that
    /// is in the second one. A filter that was copied in part has the header of the first one and
    /// fewer bits, so it is one as well.
    ///
    /// Fingerprints move when others need their place, and items are deleted, so an earlier state
    /// of a cuckoo filter is not always known to be one. A window loses parts and items.
    pub(crate) fn is_growth(&self) -> bool {
        let ([parts, old_parts], [items, old_items]) = (self.parts, self.items);
        let [_, lost] = self.units;
        let grown = match self.generations {
            Generations::Equal => old_parts <= parts && old_items <= items,
            Generations::Later => true,
            Generations::Unlike => false,
        };
        self.parameter.is_none() && grown && lost == 0
    }

    /// What differs, for people. `names` are those of the two sides.
    pub(crate) fn describe(&self, names: [&str; 2]) -> String {
        let [first, second] = names;
        if let Some((name, [a, b])) = &self.parameter {
            return format!("{name} {a} at {first}, {b} at {second}");
        }
        let mut parts = Vec::new();
        let [a, b] = self.parts;
        if a != b {
            let noun = self.family.parts();
            parts.push(format!("{noun} {a} at {first}, {b} at {second}"));
        }
        if self.generations != Generations::Equal {
            parts.push("the generations of the window".to_owned());
        }
        let [a, b] = self.items;
        if a != b {
            let (a, b) = (grouped(a), grouped(b));
            parts.push(format!("items {a} at {first}, {b} at {second}"));
        } else if let Some(counts) = self.counts {
            parts.push(counts.to_owned());
        }
        let found = ["random item found", "random items found"];
        for (nouns, counts) in [(self.family.units(), self.units), (found, self.answers)] {
            let [one, many] = nouns;
            for (count, place) in counts.into_iter().zip(names) {
                if count > 0 {
                    let noun = if count == 1 { one } else { many };
                    parts.push(format!("{} {noun} at {place} only", grouped(count)));
                }
            }
        }
        parts.join("; ")
    }
}

/// Compares the filters of a family that both servers have at this key. Both work at the same time.
///
/// If all bytes are equal, both servers are also asked for items, because a server may return the
/// same wrong pieces each time.
pub(crate) fn compare(
    first: &mut Server,
    second: &mut Server,
    key: &[u8],
    family: Family,
) -> Result<Difference, Failure> {
    ask_for_header(first, key, family);
    first.flush()?;
    ask_for_header(second, key, family);
    second.flush()?;
    let a = take_header(first, key, family)?;
    let b = take_header(second, key, family)?;
    let Some(mut difference) = of_parts(&a.parts, &b.parts) else {
        return Err(Failure::filter("these are filters of different types"));
    };
    if difference.parameter.is_some() || difference.generations == Generations::Unlike {
        return Ok(difference);
    }
    count_all_units(
        [first, second],
        key,
        family,
        [&a, &b],
        &mut difference.units,
    )?;
    if difference.is_none() {
        let probes = answers::Probes::of(a.length);
        difference.answers = probes.compare(first, key, second, key, family)?;
    }
    Ok(difference)
}

/// Counts the bits or fingerprints that are in one of them only, of the bytes that both have.
fn count_all_units(
    servers: [&mut Server; 2],
    key: &[u8],
    family: Family,
    headers: [&Header; 2],
    units: &mut [u64; 2],
) -> Result<(), Failure> {
    let ([first, second], [a, b]) = (servers, headers);
    let both = a.start.max(b.start)..a.end().min(b.end());
    let mut left = PieceReader::new(first, key, a, both.clone())?;
    let mut right = PieceReader::new(second, key, b, both)?;
    // What is not yet compared of the last piece of each.
    let (mut x, mut y) = (Vec::new(), Vec::new());
    loop {
        if x.is_empty() {
            x = left.next(first)?.unwrap_or_default();
        }
        if y.is_empty() {
            y = right.next(second)?.unwrap_or_default();
        }
        // Servers may cut their filters into pieces of different lengths.
        let both = x.len().min(y.len());
        if both == 0 {
            return Ok(());
        }
        count_units(family, &x, &y, units);
        cut(&mut x, both);
        cut(&mut y, both);
    }
}

fn cut(piece: &mut Vec<u8>, length: usize) {
    if piece.len() == length {
        piece.clear();
    } else {
        piece.drain(..length);
    }
}

/// Adds the numbers of bits or fingerprints that are in one of them only.
fn count_units(family: Family, x: &[u8], y: &[u8], units: &mut [u64; 2]) {
    let both = x.len().min(y.len());
    if x.get(..both) == y.get(..both) {
        return;
    }
    let only = |x: u8, y: u8| match family {
        Family::Bloom => (x & !y).count_ones(),
        // A slot that holds something else, unless it is empty.
        Family::Cuckoo => u32::from(x != y && x != 0),
    };
    let [first, second] = units;
    for (x, y) in x.iter().zip(y) {
        *first += u64::from(only(*x, *y));
        *second += u64::from(only(*y, *x));
    }
}

/// How the headers of two filters differ; `None` if they are of different families.
fn of_parts(a: &Parts, b: &Parts) -> Option<Difference> {
    match (a, b) {
        (Parts::Bloom(a), Parts::Bloom(b)) => Some(of_bloom(a, b)),
        (Parts::Cuckoo(a), Parts::Cuckoo(b)) => Some(of_cuckoo(a, b)),
        _ => None,
    }
}

fn of_bloom(a: &FilterParts, b: &FilterParts) -> Difference {
    // The key is a secret of its filter.
    let unlike = a.layout() == b.layout() && (a.key, a.valkey) != (b.key, b.valkey);
    let key = unlike.then(unlike_keys);
    let parameter = key.or_else(|| first_unlike(of_filter(a), of_filter(b)));
    let (both, generations) = common(a, b);
    let layers = |(a, b): &(Placed, Placed)| (of_layer(a.layer), of_layer(b.layer));
    let (ours, theirs): (Vec<_>, Vec<_>) = both.iter().map(layers).unzip();
    let parameter = parameter.or_else(|| first_unlike(ours.concat(), theirs.concat()));
    let counts = both.iter().any(|(a, b)| a.layer.items != b.layer.items);
    Difference {
        family: Family::Bloom,
        parameter,
        parts: [a.layers.len(), b.layers.len()],
        items: [a.items, b.items],
        counts: counts.then_some("the items of the layers"),
        generations,
        units: [0, 0],
        answers: [0, 0],
    }
}

/// A layer, the number of its first byte, and when its generation began.
#[derive(Clone, Copy, Debug)]
struct Placed<'a> {
    layer: &'a LayerParts,
    start: u64,
    began: Option<u64>,
}

fn placed(parts: &FilterParts) -> Vec<Placed<'_>> {
    let mut start = parts.stream_start();
    let kept = parts.window.iter().flat_map(|window| &window.kept);
    let mut began = kept.flat_map(|it| std::iter::repeat_n(it.began, it.layers as usize));
    let mut all = Vec::new();
    for layer in &parts.layers {
        all.push(Placed {
            layer,
            start,
            began: began.next(),
        });
        start = start.saturating_add(layer.bytes);
    }
    all
}

/// The layers that both filters have, and how the generations of their windows relate. The number
/// of a byte stays the same while a window drops others, so it tells which layers belong together.
fn common<'a>(
    a: &'a FilterParts,
    b: &'a FilterParts,
) -> (Vec<(Placed<'a>, Placed<'a>)>, Generations) {
    let start = a.stream_start().max(b.stream_start());
    let from_start = |parts| {
        placed(parts)
            .into_iter()
            .skip_while(move |it| it.start < start)
    };
    let both: Vec<_> = from_start(a).zip(from_start(b)).collect();
    let (Some(window), Some(other)) = (&a.window, &b.window) else {
        return (both, Generations::Equal);
    };
    if (&window.kept, window.dropped) == (&other.kept, other.dropped) {
        return (both, Generations::Equal);
    }
    let alike = |(a, b): &(Placed, Placed)| a.start == b.start && a.began == b.began;
    let is_later = !both.is_empty()
        && both.iter().all(alike)
        && from_start(a).count() >= from_start(b).count();
    let generations = if is_later {
        Generations::Later
    } else {
        Generations::Unlike
    };
    (both, generations)
}

fn of_cuckoo(a: &CuckooParts, b: &CuckooParts) -> Difference {
    // The key is a secret of its filter.
    let keys = a.keyed.zip(b.keyed).filter(|(a, b)| a.key != b.key);
    let key = keys.map(|_| unlike_keys());
    let parameter = key.or_else(|| first_unlike(of_tables(a), of_tables(b)));
    Difference {
        family: Family::Cuckoo,
        parameter,
        parts: [a.tables.into(), b.tables.into()],
        items: [a.items, b.items],
        counts: (a.removed != b.removed).then_some("the count of deleted items"),
        generations: Generations::Equal,
        units: [0, 0],
        answers: [0, 0],
    }
}

fn unlike_keys() -> Parameter {
    ("key of the hash", ["one", "another"].map(str::to_owned))
}

/// The parameters of a cuckoo filter.
fn of_tables(parts: &CuckooParts) -> Parameters {
    let number = |number: Option<u8>| number.map_or("none".to_owned(), |it| it.to_string());
    let rate = parts.keyed.map(|keyed| keyed.error_rate.to_string());
    vec![
        ("error rate", rate.unwrap_or("none".to_owned())),
        (
            "bits of a slot",
            number(parts.keyed.map(|keyed| keyed.width)),
        ),
        (
            "bits of later slots",
            number(parts.keyed.map(|keyed| keyed.step)),
        ),
        ("bucket size", parts.bucket_size.to_string()),
        ("buckets", parts.buckets.to_string()),
        ("iterations", parts.max_kicks.to_string()),
        ("expansion", parts.expansion.to_string()),
    ]
}

type Parameters = Vec<(&'static str, String)>;

/// The parameters of a filter. The shortest text of a number is another one's only for an equal
/// number.
fn of_filter(parts: &FilterParts) -> Parameters {
    let mut all = vec![("layout", layout_name(parts.layout()).to_owned())];
    match &parts.window {
        None => all.push(("window", "none".to_owned())),
        Some(window) => all.extend([
            (
                "window",
                window.span.ticks().map_or("of items".to_owned(), time),
            ),
            ("generations", window.generations.to_string()),
            ("capacity", window.capacity.to_string()),
            ("error rate", window.error_rate.to_string()),
        ]),
    }
    all.extend([
        ("options", parts.options.to_string()),
        ("expansion", parts.expansion.to_string()),
    ]);
    all
}

fn of_layer(layer: &LayerParts) -> Parameters {
    vec![
        ("capacity", layer.capacity.to_string()),
        ("error rate", layer.error_rate.to_string()),
        ("bits", layer.bits.to_string()),
        ("hashes", layer.hashes.to_string()),
        ("modulus", layer.log2_bits.to_string()),
        ("bits per item", layer.bits_per_entry.to_string()),
    ]
}

/// The first parameter that differs. What only one filter has does not count.
fn first_unlike(a: Parameters, b: Parameters) -> Option<Parameter> {
    let mut pairs = a.into_iter().zip(b);
    let ((name, a), (_, b)) = pairs.find(|(a, b)| a != b)?;
    Some((name, [a, b]))
}
