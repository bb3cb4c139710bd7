//! A cuckoo filter with all its slots.

use everbloom::CuckooFilter;
use everbloom_commands::CuckooDefaults;

use crate::slow::Slow;

const FULL: &str = "Filter is full";
const CANNOT_GROW: &str = "ERR Insufficient memory";

/// A filter with all its slots.
#[derive(Clone)]
pub(crate) struct Model {
    pub(super) slow: Slow,
    pub(super) buckets: u64,
    pub(super) bucket_size: u8,
    pub(super) iterations: u16,
    pub(super) expansion: u16,
}

impl Model {
    pub(super) fn new(defaults: CuckooDefaults) -> Self {
        let bucket_size = defaults.bucket_size;
        let buckets = (defaults.initial_size / u64::from(bucket_size)).next_power_of_two();
        let builder = CuckooFilter::builder()
            .slots(buckets * u64::from(bucket_size))
            .bucket_size(bucket_size)
            .max_kicks(defaults.max_iterations)
            .expansion(defaults.expansion);
        Model {
            slow: Slow::new(&builder.build().unwrap()),
            buckets,
            bucket_size,
            iterations: defaults.max_iterations,
            expansion: defaults.expansion,
        }
    }

    /// What a limit counts: the slots, and of all tables but the first what they take beside.
    pub(super) fn bytes(&self) -> u64 {
        let slots: usize = self.slow.tables.iter().map(Vec::len).sum();
        let more = self.slow.tables.len() as u64 - 1;
        slots as u64 + more * CuckooFilter::BYTES_BESIDE_SLOTS
    }

    /// What the next table takes.
    fn next(&self) -> Option<u64> {
        let factor = u64::from(self.expansion).checked_pow(self.slow.tables.len() as u32)?;
        let slots = (self.buckets * u64::from(self.bucket_size)).checked_mul(factor)?;
        slots.checked_add(CuckooFilter::BYTES_BESIDE_SLOTS)
    }

    /// Inserts an item while new tables take no more than `room`, which goes down by what they do.
    pub(super) fn insert(
        &mut self,
        item: u16,
        absent: bool,
        room: &mut u64,
    ) -> Result<bool, &'static str> {
        if absent && self.slow.count(item) > 0 {
            return Ok(false);
        }
        let next = self.next().filter(|next| next <= room);
        let tables = self.slow.tables.len();
        self.slow.expansion = match next {
            Some(_) => self.expansion.into(),
            None => 0,
        };
        let inserted = self.slow.insert(item);
        if self.slow.tables.len() > tables {
            *room -= next.unwrap();
        }
        match (inserted, self.expansion) {
            (true, _) => Ok(true),
            (false, 0) => Err(FULL),
            (false, _) => Err(CANNOT_GROW),
        }
    }
}
