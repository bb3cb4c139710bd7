//! Two filters, compared in bounded memory.

use everbloom::Layout;
use everbloom::redisbloom::{FilterParts, LayerParts};

use super::dump::{Header, Reader, ask_for_header, take_header};
use super::server::{Server, Trouble};

/// A filter, and where it is.
#[derive(Debug)]
pub(crate) struct Side<'a> {
    pub(crate) server: &'a mut Server,
    pub(crate) key: &'a [u8],
}

/// How two filters differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Difference {
    /// The first parameter that differs.
    pub(crate) parameter: Option<Parameter>,
    /// The number of layers of both. All layers that both have are compared.
    pub(crate) layers: [usize; 2],
    /// The items that both have counted.
    pub(crate) items: [u64; 2],
    /// Whether a layer has another count.
    pub(crate) counts: bool,
    /// The number of bits that are set in the first one only, and in the second one only.
    pub(crate) bits: [u64; 2],
}

/// A parameter, and its value in both filters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) values: [String; 2],
}

impl Difference {
    pub(crate) fn is_none(&self) -> bool {
        let [first, second] = self.layers;
        self.parameter.is_none() && first == second && !self.counts && self.bits == [0, 0]
    }

    /// Whether the second filter is an earlier state of the first one: the first one has all that
    /// is in the second one. A filter that was copied in part has the header of the first one and
    /// fewer bits, so it is one as well.
    pub(crate) fn is_growth(&self) -> bool {
        let ([layers, old_layers], [items, old_items]) = (self.layers, self.items);
        let [_, lost] = self.bits;
        self.parameter.is_none() && old_layers <= layers && old_items <= items && lost == 0
    }

    /// What differs, for people. `names` are those of the two sides.
    pub(crate) fn describe(&self, names: [&str; 2]) -> String {
        let [first, second] = names;
        if let Some(Parameter {
            name,
            values: [a, b],
        }) = &self.parameter
        {
            return format!("{name} {a} at {first}, {b} at {second}");
        }
        let mut parts = Vec::new();
        let [a, b] = self.layers;
        if a != b {
            parts.push(format!("layers {a} at {first}, {b} at {second}"));
        }
        let [a, b] = self.items;
        if a != b {
            parts.push(format!("items {a} at {first}, {b} at {second}"));
        } else if self.counts {
            parts.push("the items of the layers".to_owned());
        }
        for (count, place) in self.bits.into_iter().zip(names) {
            if count > 0 {
                let noun = if count == 1 { "bit" } else { "bits" };
                parts.push(format!("{count} {noun} at {place} only"));
            }
        }
        parts.join("; ")
    }
}

/// Compares two filters that are there. Both servers work at the same time.
pub(crate) fn compare(first: &mut Side<'_>, second: &mut Side<'_>) -> Result<Difference, Trouble> {
    let headers = headers(first, second)?;
    let [a, b] = &headers;
    let mut difference = of_headers(&a.parts, &b.parts);
    if difference.parameter.is_some() {
        return Ok(difference);
    }
    let length = a.length.min(b.length);
    let mut left = Reader::new(first.server, first.key, length)?;
    let mut right = Reader::new(second.server, second.key, length)?;
    // What is not yet compared of the last piece of each.
    let (mut x, mut y) = (Vec::new(), Vec::new());
    loop {
        if x.is_empty() {
            x = left.next(first.server)?.unwrap_or_default();
        }
        if y.is_empty() {
            y = right.next(second.server)?.unwrap_or_default();
        }
        // Servers may cut their filters into pieces of different lengths.
        let both = x.len().min(y.len());
        if both == 0 {
            return Ok(difference);
        }
        count_bits(&x, &y, &mut difference.bits);
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

/// Adds the numbers of bits that are set in one of them only.
fn count_bits(x: &[u8], y: &[u8], bits: &mut [u64; 2]) {
    let both = x.len().min(y.len());
    if x.get(..both) == y.get(..both) {
        return;
    }
    let [first, second] = bits;
    for (x, y) in x.iter().zip(y) {
        *first += u64::from((x & !y).count_ones());
        *second += u64::from((y & !x).count_ones());
    }
}

fn headers(first: &mut Side<'_>, second: &mut Side<'_>) -> Result<[Header; 2], Trouble> {
    ask_for_header(first.server, first.key);
    first.server.flush()?;
    ask_for_header(second.server, second.key);
    second.server.flush()?;
    Ok([take_header(first.server)?, take_header(second.server)?])
}

fn of_headers(a: &FilterParts, b: &FilterParts) -> Difference {
    let pairs = || a.layers.iter().zip(&b.layers);
    let parameter = of_filters(a, b).or_else(|| pairs().find_map(|(a, b)| of_layers(a, b)));
    Difference {
        parameter,
        layers: [a.layers.len(), b.layers.len()],
        items: [a.items, b.items],
        counts: a.items != b.items || pairs().any(|(a, b)| a.items != b.items),
        bits: [0, 0],
    }
}

fn parameter<T: PartialEq + ToString>(name: &'static str, a: &T, b: &T) -> Option<Parameter> {
    (a != b).then(|| Parameter {
        name,
        values: [a.to_string(), b.to_string()],
    })
}

fn of_filters(a: &FilterParts, b: &FilterParts) -> Option<Parameter> {
    let layout = |parts: &FilterParts| match parts.layout() {
        Layout::Classic => "classic",
        Layout::Blocked => "blocked",
    };
    parameter("layout", &layout(a), &layout(b))
        // The key is a secret of its filter.
        .or_else(|| {
            let values = || ["one", "another"].map(str::to_owned);
            (a.key != b.key).then(|| Parameter {
                name: "key of the hash",
                values: values(),
            })
        })
        .or_else(|| parameter("options", &a.options, &b.options))
        .or_else(|| parameter("expansion", &a.expansion, &b.expansion))
}

fn of_layers(a: &LayerParts, b: &LayerParts) -> Option<Parameter> {
    // Compared as bits, so that a NaN equals itself.
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits();
    let rate = (!same(a.error_rate, b.error_rate))
        .then(|| parameter("error rate", &a.error_rate, &b.error_rate))
        .flatten();
    parameter("capacity", &a.capacity, &b.capacity)
        .or(rate)
        .or_else(|| parameter("bits", &a.bits, &b.bits))
        .or_else(|| parameter("hashes", &a.hashes, &b.hashes))
        .or_else(|| parameter("modulus", &a.log2_bits, &b.log2_bits))
        .or_else(|| {
            let (a, b) = (a.bits_per_entry, b.bits_per_entry);
            (!same(a, b))
                .then(|| parameter("bits per item", &a, &b))
                .flatten()
        })
}
