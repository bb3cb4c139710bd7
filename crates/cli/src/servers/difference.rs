//! Two filters, compared in bounded memory.

use everbloom::redisbloom::{CuckooParts, FilterParts};

use super::dump::{Parts, Reader, ask_for_header, take_header};
use super::family::Family;
use super::server::{Server, Trouble};
use crate::filter::layout_name;
use crate::number::grouped;

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
    /// The number of bits or fingerprints that are in the first one only, and in the second one
    /// only, each at its place.
    pub(crate) units: [u64; 2],
}

/// A parameter, and its value in both filters.
type Parameter = (&'static str, [String; 2]);

impl Difference {
    pub(crate) fn is_none(&self) -> bool {
        let [first, second] = self.parts;
        let [items, others] = self.items;
        let counts = items == others && self.counts.is_none();
        self.parameter.is_none() && first == second && counts && self.units == [0, 0]
    }

    /// Whether the second filter is an earlier state of the first one: the first one has all that
    /// is in the second one. A filter that was copied in part has the header of the first one and
    /// fewer bits, so it is one as well.
    ///
    /// Fingerprints move when others need their place, and items are deleted, so an earlier state
    /// of a cuckoo filter is not always known to be one.
    pub(crate) fn is_growth(&self) -> bool {
        let ([parts, old_parts], [items, old_items]) = (self.parts, self.items);
        let [_, lost] = self.units;
        self.parameter.is_none() && old_parts <= parts && old_items <= items && lost == 0
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
        let [a, b] = self.items;
        if a != b {
            let (a, b) = (grouped(a), grouped(b));
            parts.push(format!("items {a} at {first}, {b} at {second}"));
        } else if let Some(counts) = self.counts {
            parts.push(counts.to_owned());
        }
        let [unit, units] = self.family.units();
        for (count, place) in self.units.into_iter().zip(names) {
            if count > 0 {
                let noun = if count == 1 { unit } else { units };
                parts.push(format!("{} {noun} at {place} only", grouped(count)));
            }
        }
        parts.join("; ")
    }
}

/// Compares the filters of a family that both servers have at this key. Both work at the same time.
pub(crate) fn compare(
    first: &mut Server,
    second: &mut Server,
    key: &[u8],
    family: Family,
) -> Result<Difference, Trouble> {
    ask_for_header(first, key, family);
    first.flush()?;
    ask_for_header(second, key, family);
    second.flush()?;
    let a = take_header(first, key, family)?;
    let b = take_header(second, key, family)?;
    let mut difference = match (&a.parts, &b.parts) {
        (Parts::Bloom(a), Parts::Bloom(b)) => of_bloom(a, b),
        (Parts::Cuckoo(a), Parts::Cuckoo(b)) => of_cuckoo(a, b),
        _ => return Err(Trouble::filter("these are filters of different types")),
    };
    if difference.parameter.is_some() {
        return Ok(difference);
    }
    let length = a.length.min(b.length);
    let mut left = Reader::new(first, key, &a, length)?;
    let mut right = Reader::new(second, key, &b, length)?;
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
            return Ok(difference);
        }
        count_units(family, &x, &y, &mut difference.units);
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

fn of_bloom(a: &FilterParts, b: &FilterParts) -> Difference {
    let mut pairs = a.layers.iter().zip(&b.layers);
    let counts = pairs.any(|(a, b)| a.items != b.items);
    // The key is a secret of its filter.
    let unlike = a.layout() == b.layout() && (a.key, a.valkey) != (b.key, b.valkey);
    let key = unlike.then(|| ("key of the hash", ["one", "another"].map(str::to_owned)));
    Difference {
        family: Family::Bloom,
        parameter: key.or_else(|| first_unlike(bloom_parameters(a), bloom_parameters(b))),
        parts: [a.layers.len(), b.layers.len()],
        items: [a.items, b.items],
        counts: counts.then_some("the items of the layers"),
        units: [0, 0],
    }
}

fn of_cuckoo(a: &CuckooParts, b: &CuckooParts) -> Difference {
    let parameters = |parts: &CuckooParts| {
        vec![
            ("bucket size", parts.bucket_size.to_string()),
            ("buckets", parts.buckets.to_string()),
            ("iterations", parts.max_kicks.to_string()),
            ("expansion", parts.expansion.to_string()),
        ]
    };
    Difference {
        family: Family::Cuckoo,
        parameter: first_unlike(parameters(a), parameters(b)),
        parts: [a.tables.into(), b.tables.into()],
        items: [a.items, b.items],
        counts: (a.removed != b.removed).then_some("the count of deleted items"),
        units: [0, 0],
    }
}

type Parameters = Vec<(&'static str, String)>;

/// The parameters of a filter and of its layers. The shortest text of a number is another one's
/// only for an equal number.
fn bloom_parameters(parts: &FilterParts) -> Parameters {
    let mut all = vec![
        ("layout", layout_name(parts.layout()).to_owned()),
        ("options", parts.options.to_string()),
        ("expansion", parts.expansion.to_string()),
    ];
    for layer in &parts.layers {
        all.extend([
            ("capacity", layer.capacity.to_string()),
            ("error rate", layer.error_rate.to_string()),
            ("bits", layer.bits.to_string()),
            ("hashes", layer.hashes.to_string()),
            ("modulus", layer.log2_bits.to_string()),
            ("bits per item", layer.bits_per_entry.to_string()),
        ]);
    }
    all
}

/// The first parameter that differs. Layers that only one filter has do not count.
fn first_unlike(a: Parameters, b: Parameters) -> Option<Parameter> {
    let mut pairs = a.into_iter().zip(b);
    let ((name, a), (_, b)) = pairs.find(|(a, b)| a != b)?;
    Some((name, [a, b]))
}
