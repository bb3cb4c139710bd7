//! Filters of a release go on growing: their newest layer is filled, then they get as many items
//! again. All are found, the error rate is what was asked for, and the old layers stay.

use std::fmt::Debug;
use std::str::FromStr;

use everbloom::host::{Layer, LayeredFilter};
use everbloom::{Layout, ScalableBloomFilter, WindowedBloomFilter};
use everbloom_dev::Client;
use everbloom_resp::Reply;
use serde_json::Value;

use super::keys::{add, chunks_of, family, show, statistics};
use super::{entries, items};

/// Lookups of items that were not added.
const LOOKUPS: usize = 4000;

/// The error rates of a filter.
struct Rates {
    asked: f64,
    /// Those that each layer was made for.
    layers: Vec<f64>,
    /// What the statistics expect. This includes what double hashing costs in small arrays of the
    /// classic layout, which may be more than was asked for.
    expected: f64,
    layout: Layout,
}

impl Rates {
    /// Checks that so many mistakes fit, with four standard deviations for chance.
    fn check(&self, mistakes: usize, name: &str) {
        let made_for: f64 = self.layers.iter().sum();
        assert!(made_for <= self.asked, "{name}: {made_for}");
        let rate = match self.layout {
            Layout::Classic => self.asked.max(self.expected),
            Layout::Blocked => self.asked,
        };
        let lookups = LOOKUPS as f64;
        let most = rate * lookups + 4.0 * (rate * (1.0 - rate) * lookups).sqrt();
        assert!(mistakes as f64 <= most, "{name}: {mistakes}, {most}");
    }
}

/// The filter of these bytes, if it grows or has a window.
pub(crate) fn read(bytes: &[u8]) -> Option<LayeredFilter> {
    let growing = ScalableBloomFilter::from_bytes(bytes).map(LayeredFilter::from);
    let windowed = || WindowedBloomFilter::from_bytes(bytes).map(LayeredFilter::from);
    growing.or_else(|_| windowed()).ok()
}

/// Checks the growth of a filter that [`read`] knows.
pub(crate) fn of_file(bytes: &[u8], name: &str, members: usize) {
    let old = read(bytes).unwrap();
    let mut filter = old.clone();
    let newest = old.layers().last().unwrap();
    let room = newest.capacity() - newest.len();
    let more = items("more", members + usize::try_from(room).unwrap());
    filter.insert_each(&more, |_| ());
    let full = old.layers().len() - 1;
    assert!(old.layers()[..full] == filter.layers()[..full], "{name}");
    assert!(filter.layers().len() > old.layers().len(), "{name}");
    let filter = match ScalableBloomFilter::try_from(filter) {
        Ok(filter) => read(&filter.to_bytes()).unwrap(),
        Err(filter) => {
            let filter = WindowedBloomFilter::try_from(filter).unwrap();
            read(&filter.to_bytes()).unwrap()
        }
    };
    for item in items("item", members).iter().chain(&more) {
        assert!(filter.contains(item), "{name}: {item}");
    }
    let others = items("another", LOOKUPS);
    let mistakes = others.iter().filter(|item| filter.contains(item)).count();
    let rates = Rates {
        asked: filter.error_rate(),
        layers: filter.layers().iter().map(Layer::error_rate).collect(),
        expected: filter.stats().estimated_error_rate,
        layout: filter.layout(),
    };
    rates.check(mistakes, name);
}

/// The filters of a server.
pub(crate) fn of_keys(client: &mut Client, expected: &Value, source: &str) {
    for filter in growing(expected) {
        let (key, name) = (filter.key, format!("{source}: {}", filter.key));
        if family(key) == "CF" {
            add(client, key, &items("more", filter.more));
            continue;
        }
        let old = Layers::of(client, key);
        client.ok(&format!(
            "BF.MADD {key} {}",
            items("more", filter.more).join(" ")
        ));
        let layers = Layers::of(client, key);
        old.check(&layers, &name);
        let found = exist(client, key, &items("another", LOOKUPS));
        let mistakes = found.iter().filter(|found| **found).count();
        let statistics = statistics(client, key);
        let rate = |name: &str| statistics[name].as_str().unwrap().parse().unwrap();
        let rates = Rates {
            asked: rate("error-rate"),
            layers: layers.numbers("ratio:"),
            expected: rate("expected-error-rate"),
            layout: match statistics["layout"].as_str() {
                Some("classic") => Layout::Classic,
                _ => Layout::Blocked,
            },
        };
        rates.check(mistakes, &name);
    }
    check_members(client, expected, source);
}

/// Checks that the items are there which were added before and since.
pub(crate) fn check_members(client: &mut Client, expected: &Value, source: &str) {
    for Growing { key, count, more } in growing(expected) {
        for (what, count) in [("item", count), ("more", more)] {
            let found = exist(client, key, &items(what, count));
            assert!(!found.contains(&false), "{source}: {key}: {what}");
        }
    }
}

/// A key that grows or forgets, how many items it got, and how many more it gets.
struct Growing<'e> {
    key: &'e str,
    count: usize,
    more: usize,
}

fn growing(expected: &Value) -> impl Iterator<Item = Growing<'_>> {
    let filters = entries(&expected["keys"]["filters"], "filters");
    let filters = filters.filter(|(key, _)| !key.ends_with("-fixed"));
    let filters = filters.map(|(key, said)| {
        let count = usize::try_from(said["items"].as_u64().unwrap()).unwrap();
        let room = said["stats"]["items-until-next-layer"].as_str();
        // A cuckoo filter has no layers.
        let room = room.map_or(0, |room| room.parse().unwrap());
        let more = count + room;
        Growing { key, count, more }
    });
    filters.filter(|filter| filter.count > 0)
}

fn exist(client: &mut Client, key: &str, items: &[String]) -> Vec<bool> {
    let line = format!("{}.MEXISTS {key} {}", family(key), items.join(" "));
    let Reply::Array(answers) = client.ok(&line) else {
        panic!("{key}: no answers")
    };
    answers
        .iter()
        .map(|it| it.as_integer() == Some(1))
        .collect()
}

/// The layers of a key.
struct Layers {
    /// BF.DEBUG's, oldest first.
    lines: Vec<String>,
    /// All bit arrays, end to end.
    bits: Vec<u8>,
}

impl Layers {
    fn of(client: &mut Client, key: &str) -> Layers {
        let Reply::Array(lines) = client.ok(&format!("BF.DEBUG {key}")) else {
            panic!("{key}: no layers")
        };
        let chunks = chunks_of(client, key).into_iter().skip(1);
        Layers {
            lines: lines.iter().skip(1).map(show).collect(),
            bits: chunks.flat_map(|(_, bytes)| bytes).collect(),
        }
    }

    /// Checks that all layers but the newest are in these, too.
    fn check(&self, now: &Layers, name: &str) {
        let full = self.lines.len() - 1;
        assert_eq!(self.lines[..full], now.lines[..full], "{name}");
        assert!(now.lines.len() > self.lines.len(), "{name}");
        let bytes: usize = self.numbers::<usize>("bytes:")[..full].iter().sum();
        assert!(self.bits[..bytes] == now.bits[..bytes], "{name}");
    }

    /// The numbers that follow this word in each line.
    fn numbers<T: FromStr<Err: Debug>>(&self, word: &str) -> Vec<T> {
        let number = |line: &String| {
            let mut numbers = line
                .split(' ')
                .filter_map(|number| number.strip_prefix(word));
            numbers.next().unwrap().parse().unwrap()
        };
        self.lines.iter().map(number).collect()
    }
}
