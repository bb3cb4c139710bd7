//! The pictures of the guide that need no numbers: how a filter works, and its error rates.

use everbloom::sizing::textbook;

use super::grid::{Grid, Row};

/// The bits of the example.
const BITS: usize = 16;
/// The items of the example and the positions that their hashes give.
const ADDED: [(&str, [usize; 3]); 3] = [
    ("apple", [2, 7, 13]),
    ("pear", [0, 7, 10]),
    ("lime", [3, 10, 14]),
];
const LOOKED_UP: [(&str, [usize; 3], &str); 3] = [
    ("apple", [2, 7, 13], "all 1: yes"),
    ("fig", [4, 7, 13], "bit 4 is 0: certainly no"),
    ("plum", [0, 2, 10], "all 1: a false positive"),
];

/// Colours of a bit that an item sets, that a lookup finds, and that it misses.
const SET: usize = 0;
const FOUND: usize = 2;
const MISSED: usize = 1;

fn row(name: String, cells: impl Iterator<Item = (String, Option<usize>)>, note: &str) -> Row {
    Row {
        name,
        cells: cells.collect(),
        note: note.into(),
    }
}

/// Three items are added to an array of bits, and three are looked up.
pub fn principle() -> Grid {
    let mut set = [false; BITS];
    let bits = |set: [bool; BITS], marked: &dyn Fn(usize, bool) -> Option<usize>| {
        let cell = |(at, is_set)| (u8::from(is_set).to_string(), marked(at, is_set));
        set.into_iter().enumerate().map(cell).collect::<Vec<_>>()
    };
    let numbers = (0..BITS).map(|at| (at.to_string(), None));
    let mut rows = vec![
        row("position".into(), numbers, ""),
        row("at first".into(), bits(set, &|_, _| None).into_iter(), ""),
    ];
    for (item, positions) in ADDED {
        let mut shared = Vec::new();
        for (at, bit) in set.iter_mut().enumerate() {
            if positions.contains(&at) && std::mem::replace(bit, true) {
                shared.push(format!("bit {at} was 1 already"));
            }
        }
        let cells = bits(set, &|at, _| positions.contains(&at).then_some(SET));
        rows.push(row(
            format!("add {item}"),
            cells.into_iter(),
            &shared.concat(),
        ));
    }
    for (item, positions, answer) in LOOKED_UP {
        let cells = bits(set, &|at, is_set| {
            let colour = if is_set { FOUND } else { MISSED };
            positions.contains(&at).then_some(colour)
        });
        rows.push(row(format!("is {item} there?"), cells.into_iter(), answer));
    }
    Grid {
        title: "Three items in a Bloom filter of 16 bits".into(),
        subtitle: "Three hashes give each item three positions, which are marked.".into(),
        rows,
    }
}

/// The error rate by hashes and by bits for each item, as the articles' tables have it.
pub fn table() -> Grid {
    const BITS_PER_ITEM: [u32; 14] = [2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32];
    const HASHES: u32 = 24;
    let rate = |bits: u32, hashes: u32| textbook::error_rate(bits.into(), hashes.into(), 1.0);
    let best = BITS_PER_ITEM.map(|bits| {
        let lower = |one: &u32, other: &u32| rate(bits, *one).total_cmp(&rate(bits, *other));
        (1..=HASHES).min_by(lower)
    });
    let names = BITS_PER_ITEM.iter().map(|bits| (bits.to_string(), None));
    let mut rows = vec![row("k \\ m/n".into(), names, "")];
    for hashes in 1..=HASHES {
        let cells = BITS_PER_ITEM.iter().zip(best).map(|(bits, best)| {
            let mark = (best == Some(hashes)).then_some(SET);
            (written(rate(*bits, hashes)), mark)
        });
        rows.push(row(hashes.to_string(), cells, ""));
    }
    Grid {
        title: "Error rate by bits per item (m/n) and hashes per item (k)".into(),
        subtitle: "Of a full filter: (1 - e^(-kn/m))^k. The lowest of each column is marked."
            .into(),
        rows,
    }
}

/// A rate in at most six letters.
fn written(rate: f64) -> String {
    if rate >= 0.001 {
        format!("{rate:.4}")
    } else {
        format!("{rate:.1e}")
    }
}
