//! The filter to measure: one in this process, or a key of a server.

use std::ops::ControlFlow;

use everbloom::host::LayeredFilter;
use everbloom::{CuckooFilter, Layout, Span, WindowedBloomFilter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::failure::Failure;
use crate::servers::family::Family;
use crate::servers::server::{Requests, Server};

/// The length of a random string in bytes.
pub(super) const ITEM_LENGTH: usize = 64;

pub(super) type Item = [u8; ITEM_LENGTH];

#[derive(Debug)]
pub(super) enum Subject {
    Embedded(LayeredFilter),
    Cuckoo(CuckooFilter),
    Server(Box<ServerKey>),
}

/// A key of our own on a server. It is deleted at the end.
#[derive(Debug)]
pub(super) struct ServerKey {
    server: Server,
    key: String,
    family: Family,
}

/// The error rate and the capacity of the filter that the first BF.ADD makes.
pub(super) const DEFAULT: (f64, u64) = (0.01, 100);

/// What BF.RESERVE is told beside these two.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// A layout. Without one, a server uses its default and an embedded filter is classic.
    Layout(Option<Layout>),
    /// A window of the last items.
    Window,
}

impl Subject {
    /// The filter that the first BF.ADD makes. A server makes it in its own default layout unless
    /// one is given.
    pub(super) fn default_filter(
        server: Option<Server>,
        layout: Option<Layout>,
    ) -> Result<Self, Failure> {
        match (server, layout) {
            (Some(server), None) => Ok(Subject::Server(
                ServerKey::new(server, Family::Bloom).into(),
            )),
            (server, layout) => Self::reserved(server, DEFAULT, Shape::Layout(layout)),
        }
    }

    /// The filter that BF.RESERVE makes.
    pub(super) fn reserved(
        server: Option<Server>,
        (rate, capacity): (f64, u64),
        shape: Shape,
    ) -> Result<Self, Failure> {
        let Some(server) = server else {
            let builder = LayeredFilter::builder().error_rate(rate);
            let builder = builder.capacity(capacity);
            let builder = match shape {
                Shape::Layout(layout) => builder.layout(layout.unwrap_or(Layout::Classic)),
                Shape::Window => builder.window(Span::Items, WindowedBloomFilter::GENERATIONS, 0),
            };
            return builder.build().map(Subject::Embedded).map_err(not_made);
        };
        let (rate, capacity) = (rate.to_string(), capacity.to_string());
        let more: &[&str] = match shape {
            Shape::Window => &["WINDOW", "ITEMS"],
            Shape::Layout(Some(Layout::Classic)) => &["LAYOUT", "CLASSIC"],
            Shape::Layout(Some(Layout::Blocked)) => &["LAYOUT", "BLOCKED"],
            Shape::Layout(None) => &[],
        };
        let words = [&[&*rate, &*capacity], more].concat();
        Self::on_server(server, Family::Bloom, "BF.RESERVE", &words)
    }

    /// The filter that CF.RESERVE makes.
    pub(super) fn cuckoo(
        server: Option<Server>,
        capacity: u64,
        bucket_size: u8,
    ) -> Result<Self, Failure> {
        let Some(server) = server else {
            let builder = CuckooFilter::builder().slots(capacity);
            let filter = builder.bucket_size(bucket_size).build();
            return filter.map(Subject::Cuckoo).map_err(not_made);
        };
        let (capacity, size) = (capacity.to_string(), bucket_size.to_string());
        let words = [&*capacity, "BUCKETSIZE", &size];
        Self::on_server(server, Family::Cuckoo, "CF.RESERVE", &words)
    }

    fn on_server(
        server: Server,
        family: Family,
        command: &str,
        words: &[&str],
    ) -> Result<Self, Failure> {
        let mut key = ServerKey::new(server, family);
        let request = [&[command, &key.key], words].concat();
        let accept = |server: &mut Server, reply| server.accepted(reply, command).map(drop);
        key.server.execute(&Requests::of(&request), accept)?;
        Ok(Subject::Server(key.into()))
    }

    /// Adds the items. Returns how many of them the filter counted.
    pub(super) fn add(&mut self, items: &[Item]) -> Result<u64, Failure> {
        match self {
            Subject::Embedded(filter) => Ok(count(|count| filter.insert_each(items, count))),
            Subject::Cuckoo(filter) => Ok(count(|count| {
                filter.insert_each(items, u64::MAX, |reply| {
                    count(reply.is_ok());
                    ControlFlow::Continue(())
                });
            })),
            Subject::Server(server) => match server.family {
                Family::Bloom => server.count_ones("BF.MADD", &[], items),
                Family::Cuckoo => server.count_ones("CF.INSERT", &["ITEMS"], items),
            },
        }
    }

    pub(super) fn count_found(&mut self, items: &[Item]) -> Result<u64, Failure> {
        match self {
            Subject::Embedded(filter) => Ok(count(|count| filter.contains_each(items, count))),
            Subject::Cuckoo(filter) => Ok(count(|count| filter.contains_each(items, count))),
            Subject::Server(server) => match server.family {
                Family::Bloom => server.count_ones("BF.MEXISTS", &[], items),
                Family::Cuckoo => server.count_ones("CF.MEXISTS", &[], items),
            },
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
    fn new(server: Server, family: Family) -> Self {
        let key = format!(
            "everbloom:measure:{:016x}",
            SmallRng::from_os_rng().random::<u64>()
        );
        Self {
            server,
            key,
            family,
        }
    }

    /// How many items a command answers with 1. `behind` are the words behind the key.
    fn count_ones(
        &mut self,
        command: &'static str,
        behind: &[&str],
        items: &[Item],
    ) -> Result<u64, Failure> {
        let mut request: Vec<&[u8]> = vec![command.as_bytes(), self.key.as_bytes()];
        request.extend(behind.iter().map(|word| word.as_bytes()));
        request.extend(items.iter().map(|item| item.as_slice()));
        let mut ones = 0;
        let mut count = |is_one| ones += u64::from(is_one);
        let requests = Requests::of(&request);
        self.server.execute(&requests, |server, reply| {
            server.answers(reply, (command, items.len()), &mut count)
        })?;
        Ok(ones)
    }

    /// The rate that our server computes from bits or fingerprints. RedisBloom does not tell it.
    fn expected_error_rate(&mut self) -> Result<Option<f64>, Failure> {
        let command = match self.family {
            Family::Bloom => "BF.STATS",
            Family::Cuckoo => "CF.STATS",
        };
        let mut fields = None;
        let request = Requests::of(&[command, &self.key]);
        self.server.execute(&request, |_, reply| {
            fields = reply.into_elements();
            Ok(())
        })?;
        let Some(fields) = fields else {
            return Ok(None);
        };
        let (pairs, _) = fields.as_chunks::<2>();
        let rate = pairs.iter().find_map(|[name, rate]| {
            let is_rate = name.as_bytes() == Some(b"expected-error-rate");
            rate.as_bytes().filter(|_| is_rate)
        });
        let rate = rate.and_then(|rate| str::from_utf8(rate).ok());
        Ok(rate.and_then(|rate| rate.parse().ok()))
    }
}

impl Drop for ServerKey {
    fn drop(&mut self) {
        // Ignore an error: the measurement is over. A server that cannot be reached keeps the key.
        let request = Requests::of(&["DEL", &self.key]);
        let _ = self.server.execute(&request, |_, _| Ok(()));
    }
}
