//! The filter to measure: one in this process, or a key of a server.

use std::ops::ControlFlow;

use everbloom::{CuckooFilter, Layout, ScalableBloomFilter, Span, WindowedBloomFilter};
use everbloom_resp::Reply;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::client::{Client, ClientError};
use crate::failure::Failure;
use crate::servers::family::Family;

/// The length of a random string in bytes.
pub(super) const ITEM_LENGTH: usize = 64;

pub(super) type Item = [u8; ITEM_LENGTH];

/// The error rate of a filter that BF.ADD creates: see [`Subject::default_filter`].
pub(super) const DEFAULT_ERROR_RATE: f64 = 0.01;

#[derive(Debug)]
pub(super) enum Subject {
    Embedded(ScalableBloomFilter),
    Cuckoo(CuckooFilter),
    Server(ServerKey),
}

/// A key of our own on a server. It is deleted at the end.
#[derive(Debug)]
pub(super) struct ServerKey {
    client: Client,
    key: String,
    family: Family,
}

impl Subject {
    /// The filter that the first BF.ADD makes: error rate 0.01, capacity 100, expansion 2. A server
    /// makes it in its own default layout unless one is given.
    pub(super) fn default_filter(
        client: Option<Client>,
        layout: Option<Layout>,
    ) -> Result<Self, Failure> {
        const CAPACITY: u64 = 100;
        match (client, layout) {
            (Some(client), None) => Ok(Subject::Server(ServerKey::new(client, Family::Bloom))),
            (client, layout) => Self::reserved(client, DEFAULT_ERROR_RATE, CAPACITY, layout),
        }
    }

    /// The filter that BF.RESERVE makes.
    pub(super) fn reserved(
        client: Option<Client>,
        error_rate: f64,
        capacity: u64,
        layout: Option<Layout>,
    ) -> Result<Self, Failure> {
        let Some(client) = client else {
            return Self::embedded(error_rate, capacity, layout.unwrap_or(Layout::Classic));
        };
        let mut server = ServerKey::new(client, Family::Bloom);
        let (rate, capacity) = (error_rate.to_string(), capacity.to_string());
        let mut request = vec!["BF.RESERVE", &server.key, &rate, &capacity];
        if let Some(layout) = layout {
            let word = match layout {
                Layout::Classic => "CLASSIC",
                Layout::Blocked => "BLOCKED",
            };
            request.extend(["LAYOUT", word]);
        }
        server.client.demand(&request)?;
        Ok(Subject::Server(server))
    }

    /// The filter that BF.RESERVE with a window of the last items makes.
    pub(super) fn windowed(
        client: Option<Client>,
        error_rate: f64,
        capacity: u64,
    ) -> Result<Self, Failure> {
        let Some(client) = client else {
            let builder = ScalableBloomFilter::builder().error_rate(error_rate);
            let generations = WindowedBloomFilter::GENERATIONS;
            let builder = builder
                .capacity(capacity)
                .window(Span::Items, generations, 0);
            return builder.build().map(Subject::Embedded).map_err(not_made);
        };
        let mut server = ServerKey::new(client, Family::Bloom);
        let (rate, capacity) = (error_rate.to_string(), capacity.to_string());
        let request = [
            "BF.RESERVE",
            &server.key,
            &rate,
            &capacity,
            "WINDOW",
            "ITEMS",
        ];
        server.client.demand(&request)?;
        Ok(Subject::Server(server))
    }

    /// The filter that CF.RESERVE makes.
    pub(super) fn cuckoo(
        client: Option<Client>,
        capacity: u64,
        bucket_size: u8,
    ) -> Result<Self, Failure> {
        let Some(client) = client else {
            let builder = CuckooFilter::builder().capacity(capacity);
            let filter = builder.bucket_size(bucket_size).build();
            return filter.map(Subject::Cuckoo).map_err(not_made);
        };
        let mut server = ServerKey::new(client, Family::Cuckoo);
        let (capacity, size) = (capacity.to_string(), bucket_size.to_string());
        let request = ["CF.RESERVE", &server.key, &capacity, "BUCKETSIZE", &size];
        server.client.demand(&request)?;
        Ok(Subject::Server(server))
    }

    fn embedded(error_rate: f64, capacity: u64, layout: Layout) -> Result<Self, Failure> {
        ScalableBloomFilter::builder()
            .error_rate(error_rate)
            .capacity(capacity)
            .layout(layout)
            .build()
            .map(Subject::Embedded)
            .map_err(not_made)
    }

    /// Adds the items. Returns how many of them the filter counted.
    pub(super) fn add(&mut self, items: &[Item]) -> Result<u64, Failure> {
        match self {
            Subject::Embedded(filter) => Ok(count(|count| filter.insert_each(items, count))),
            Subject::Cuckoo(filter) => Ok(count(|count| {
                filter.insert_each(items, false, u64::MAX, |reply| {
                    count(reply.is_ok());
                    ControlFlow::Continue(())
                });
            })),
            Subject::Server(server) => server.count_ones(
                match server.family {
                    Family::Bloom => &["BF.MADD"],
                    Family::Cuckoo => &["CF.INSERT", "ITEMS"],
                },
                items,
            ),
        }
    }

    pub(super) fn count_found(&mut self, items: &[Item]) -> Result<u64, Failure> {
        match self {
            Subject::Embedded(filter) => Ok(count(|count| filter.contains_each(items, count))),
            Subject::Cuckoo(filter) => Ok(count(|count| filter.contains_each(items, count))),
            Subject::Server(server) => server.count_ones(
                match server.family {
                    Family::Bloom => &["BF.MEXISTS"],
                    Family::Cuckoo => &["CF.MEXISTS"],
                },
                items,
            ),
        }
    }

    /// The false positive rate to expect from how full the layers or tables are. `None` when a
    /// server does not show that.
    pub(super) fn expected_error_rate(&mut self) -> Result<Option<f64>, Failure> {
        match self {
            Subject::Embedded(filter) => Ok(Some(filter.stats().estimated_error_rate)),
            Subject::Cuckoo(filter) => Ok(Some(filter.stats().estimated_error_rate)),
            Subject::Server(server) => server.expected_error_rate(),
        }
    }
}

fn not_made(error: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("cannot make such a filter: {error}"))
}

/// How many answers are true.
fn count(answer: impl FnOnce(&mut dyn FnMut(bool))) -> u64 {
    let mut count = 0;
    answer(&mut |found| count += u64::from(found));
    count
}

impl ServerKey {
    fn new(client: Client, family: Family) -> Self {
        let key = format!(
            "everbloom:measure:{:016x}",
            SmallRng::from_os_rng().random::<u64>()
        );
        Self {
            client,
            key,
            family,
        }
    }

    /// How many items a command answers with 1. `words` are its name, and what stands behind the
    /// key.
    fn count_ones(&mut self, words: &[&'static str], items: &[Item]) -> Result<u64, Failure> {
        let (command, behind) = words.split_first().unwrap_or((&"", &[]));
        let mut request: Vec<&[u8]> = vec![command.as_bytes(), self.key.as_bytes()];
        request.extend(behind.iter().map(|word| word.as_bytes()));
        request.extend(items.iter().map(|item| item.as_slice()));
        let Reply::Array(answers) = self.client.demand(&request)? else {
            return Err(ClientError::Unexpected { command }.into());
        };
        let mut ones = 0;
        for answer in answers {
            match answer {
                Reply::Integer(number) => ones += u64::from(number == 1),
                Reply::Boolean(flag) => ones += u64::from(flag),
                Reply::Error(text) => return Err(Failure::Other(text.into_owned())),
                _ => return Err(ClientError::Unexpected { command }.into()),
            }
        }
        Ok(ones)
    }

    /// Our server computes this from the bits or fingerprints. For RedisBloom we compute it from
    /// the counts that BF.DEBUG or CF.INFO shows.
    fn expected_error_rate(&mut self) -> Result<Option<f64>, Failure> {
        let (stats, otherwise) = match self.family {
            Family::Bloom => ("BF.STATS", Self::rate_of_layers as fn(&mut Self) -> _),
            Family::Cuckoo => ("CF.STATS", Self::rate_of_tables as fn(&mut Self) -> _),
        };
        if let Reply::Array(fields) = self.client.call(&[stats, &self.key])? {
            let text = field(&fields, "expected-error-rate").and_then(Reply::as_bytes);
            let text = text.and_then(|text| std::str::from_utf8(text).ok());
            return Ok(text.and_then(|text| text.parse().ok()));
        }
        otherwise(self)
    }

    fn rate_of_tables(&mut self) -> Result<Option<f64>, Failure> {
        let Reply::Array(fields) = self.client.call(&["CF.INFO", &self.key])? else {
            return Ok(None);
        };
        Ok(tables_error_rate(&fields))
    }

    fn rate_of_layers(&mut self) -> Result<Option<f64>, Failure> {
        let Reply::Array(lines) = self.client.call(&["BF.DEBUG", &self.key])? else {
            return Ok(None); // not every server has this command
        };
        let mut miss = 1.0;
        for line in lines.iter().skip(1) {
            let rate = match line {
                Reply::Bulk(bytes) => std::str::from_utf8(bytes).ok().and_then(layer_error_rate),
                _ => None,
            };
            let Some(rate) = rate else { return Ok(None) };
            miss *= 1.0 - rate;
        }
        Ok(Some(1.0 - miss))
    }
}

impl Drop for ServerKey {
    fn drop(&mut self) {
        // Ignore an error: the measurement is over. A server that cannot be reached keeps the key.
        let _ = self.client.call(&["DEL", &self.key]);
    }
}

/// The value of a field of a map, as RESP2 has maps.
fn field<'r>(fields: &'r [Reply], name: &str) -> Option<&'r Reply> {
    let (pairs, _) = fields.as_chunks::<2>();
    let mut pairs = pairs.iter();
    let [_, value] = pairs.find(|[label, _]| label.as_bytes() == Some(name.as_bytes()))?;
    Some(value)
}

/// The expected false positive rate of a cuckoo filter, from CF.INFO: 1 − (1 − 1/255)^(2bl) for the
/// bucket size b and the sum l of the loads of all tables, which are all of one size.
fn tables_error_rate(info: &[Reply]) -> Option<f64> {
    let number = |name| Some(field(info, name)?.as_integer()? as f64);
    if number("Number of filters")? > 1.0 && number("Expansion rate")? > 1.0 {
        return None;
    }
    // As many fingerprints as items are spread over the buckets, and a lookup reads two of each
    // table.
    let compared = 2.0 * number("Number of items inserted")? / number("Number of buckets")?;
    Some(-(compared * (-1.0_f64 / 255.0).ln_1p()).exp_m1())
}

/// The expected false positive rate of one layer, from its line in BF.DEBUG. With m bits, k hashes
/// and n items, a bit is zero with probability (1 - 1/m)^(kn). A false positive needs k bits that
/// are set.
fn layer_error_rate(line: &str) -> Option<f64> {
    let field = |name: &str| -> Option<f64> {
        let (_, value) = line
            .split(' ')
            .filter_map(|field| field.split_once(':'))
            .find(|(n, _)| *n == name)?;
        value.parse().ok()
    };
    let (bits, hashes, items) = (field("bits")?, field("hashes")?, field("size")?);
    let fill = -(hashes * items * (-1.0 / bits).ln_1p()).exp_m1();
    Some(fill.powf(hashes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_tell_their_rate() {
        let info = |tables: i64, expansion: i64| {
            let numbers = [
                ("Number of buckets", 512),
                ("Number of filters", tables),
                ("Number of items inserted", 1024),
                ("Expansion rate", expansion),
            ];
            let pair =
                |(name, number): (&'static str, i64)| [Reply::simple(name), Reply::Integer(number)];
            numbers.map(pair).as_flattened().to_vec()
        };
        let rate = tables_error_rate(&info(1, 1)).unwrap();
        assert!((rate - 0.015_594).abs() < 1e-6, "{rate}");
        assert_eq!(tables_error_rate(&info(2, 1)), Some(rate));
        assert_eq!(tables_error_rate(&info(2, 4)), None);
        assert_eq!(tables_error_rate(&[]), None);
    }

    #[test]
    fn a_layer_tells_its_rate() {
        let line = "bytes:144 bits:1152 hashes:8 hashwidth:64 capacity:100 size:100 ratio:0.005";
        let rate = layer_error_rate(line).unwrap();
        assert!((0.003..0.005).contains(&rate), "{rate}");
        let empty = "bytes:144 bits:1152 hashes:8 hashwidth:64 capacity:100 size:0 ratio:0.005";
        assert_eq!(layer_error_rate(empty), Some(0.0));
        assert_eq!(layer_error_rate("size:100"), None);
    }
}
