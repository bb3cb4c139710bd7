//! Reading a whole file, and filters to write.

use std::io::Read;

use everbloom::host::LayeredFilter;
use everbloom::redisbloom::Check;
use everbloom::{CuckooFilter, Layout};
use everbloom_commands::Filter;
use everbloom_files::Value;
use everbloom_files::rdb::{Event, ReadError, Reader};

pub const LAYOUTS: [Layout; 2] = [Layout::Classic, Layout::Blocked];

/// A key as it was read.
#[derive(Debug, Clone)]
pub struct Key {
    pub db: u64,
    pub name: Vec<u8>,
    pub expires_at: Option<u64>,
    pub idle: Option<u64>,
    pub freq: Option<u8>,
    pub value: Value,
}

/// A file as it was read.
#[derive(Debug, Default)]
pub struct Contents {
    pub keys: Vec<Key>,
    pub aux: Vec<(String, String)>,
    pub skipped: Vec<(String, Option<Vec<u8>>)>,
    pub resizes: Vec<(u64, u64)>,
    pub bytes: u64,
}

impl Contents {
    pub fn key(&self, db: u64, name: &[u8]) -> &Key {
        let found = |key: &&Key| key.db == db && key.name == name;
        self.keys
            .iter()
            .find(found)
            .expect("the key is in the file")
    }
}

pub fn read(file: impl Read) -> Result<Contents, ReadError> {
    read_limited(file, u64::MAX)
}

pub fn read_limited(file: impl Read, max_filter_bytes: u64) -> Result<Contents, ReadError> {
    let mut reader = Reader::new(file, max_filter_bytes)?;
    let mut contents = Contents::default();
    let mut db = 0;
    loop {
        match reader.next_event()? {
            Event::Aux { name, value } => contents.aux.push((
                String::from_utf8_lossy(&name).into(),
                String::from_utf8_lossy(&value).into(),
            )),
            Event::SelectDb(number) => db = number,
            Event::Resize { keys, expiring } => contents.resizes.push((keys, expiring)),
            Event::Key {
                expires_at,
                idle,
                freq,
                key,
                value,
            } => {
                contents.keys.push(Key {
                    db,
                    name: key,
                    expires_at,
                    idle,
                    freq,
                    value,
                });
            }
            Event::Skipped { type_name, key } => contents.skipped.push((type_name.into(), key)),
            Event::End { bytes } => {
                assert_eq!(bytes, reader.position());
                contents.bytes = bytes;
                return Ok(contents);
            }
        }
    }
}

pub fn text(value: &Value) -> &[u8] {
    match value {
        Value::Text(text) => text,
        Value::Filter(_) => panic!("a filter instead of a string"),
    }
}

pub fn filter(value: &Value) -> &LayeredFilter {
    match value {
        Value::Filter(Filter::Bloom(filter)) => filter,
        _ => panic!("no Bloom filter"),
    }
}

/// A filter from a loader must be one that could be dumped and loaded again, and can be asked.
pub fn validate(filter: &Filter, limit: u64) {
    match filter {
        Filter::Bloom(filter) => {
            filter.parts().validate(limit, Check::RdbValue).unwrap();
            let _ = filter.contains("any item");
        }
        Filter::Cuckoo(filter) => {
            filter.parts().validate(limit).unwrap();
            let _ = filter.count("any item");
        }
    }
}

/// A filter of that capacity with that many items, which may be more.
pub fn filter_of(capacity: u64, items: u64) -> LayeredFilter {
    filter_in(Layout::Classic, capacity, items)
}

/// The same in a layout.
pub fn filter_in(layout: Layout, capacity: u64, items: u64) -> LayeredFilter {
    let builder = LayeredFilter::builder().capacity(capacity);
    let builder = match layout {
        Layout::Classic => builder.layout(layout),
        // The same filter each time.
        Layout::Blocked => builder.layout(layout).seed(1),
    };
    let mut filter = builder.build().unwrap();
    filter.extend((0..items).map(|i| format!("item:{i}")));
    filter
}

/// A cuckoo filter with an error rate of 0.1 %, made for so many items, with that many.
pub fn keyed_cuckoo_of(capacity: u64, items: u64) -> Filter {
    let builder = CuckooFilter::builder().capacity(capacity).error_rate(0.001);
    let mut filter = builder.seed(1).build().unwrap();
    for item in 0..items {
        filter.insert(&format!("item:{item}")).unwrap();
    }
    Filter::Cuckoo(filter)
}

/// A cuckoo filter that began with so many slots, with that many items.
pub fn cuckoo_of(capacity: u64, items: u64) -> Filter {
    let mut filter = CuckooFilter::builder().slots(capacity).build().unwrap();
    for item in 0..items {
        filter.insert(&format!("item:{item}")).unwrap();
    }
    Filter::Cuckoo(filter)
}
