//! A cuckoo filter written down as directly as it goes.

use everbloom::CuckooFilter;
use everbloom::hash::murmur64a;

#[derive(Clone)]
pub(crate) struct Slow {
    pub(crate) tables: Vec<Vec<u8>>,
    pub(crate) items: u64,
    pub(crate) removed: u64,
    buckets: usize,
    bucket_size: usize,
    max_kicks: u16,
    /// 0 when it may not grow.
    pub(crate) expansion: usize,
}

fn other(bucket: u64, fingerprint: u8) -> u64 {
    bucket ^ (u64::from(fingerprint) * 0x5bd1_e995)
}

impl Slow {
    pub(crate) fn new(filter: &CuckooFilter) -> Slow {
        Slow {
            tables: vec![vec![0; filter.slots() as usize]],
            items: 0,
            removed: 0,
            buckets: filter.buckets() as usize,
            bucket_size: filter.bucket_size().into(),
            max_kicks: filter.max_kicks(),
            expansion: filter.expansion().into(),
        }
    }

    fn key(item: u16) -> (u64, u8) {
        let hash = murmur64a(&item.to_le_bytes(), 0);
        (hash, (hash % 255 + 1) as u8)
    }

    /// The slots of both buckets, in order.
    fn slots(&self, table: usize, hash: u64, fingerprint: u8) -> Vec<usize> {
        let size = self.bucket_size;
        let buckets = (self.tables[table].len() / size) as u64;
        [hash, other(hash, fingerprint)]
            .into_iter()
            .map(|bucket| (bucket % buckets) as usize * size)
            .flat_map(|start| start..start + size)
            .collect()
    }

    pub(crate) fn count(&self, item: u16) -> u64 {
        let (hash, fingerprint) = Slow::key(item);
        let in_table = |table: usize| {
            let slots = self.slots(table, hash, fingerprint).into_iter();
            slots
                .filter(|at| self.tables[table][*at] == fingerprint)
                .count() as u64
        };
        (0..self.tables.len()).map(in_table).sum()
    }

    fn place(&mut self, table: usize, hash: u64, fingerprint: u8) -> bool {
        for at in self.slots(table, hash, fingerprint) {
            if self.tables[table][at] == 0 {
                self.tables[table][at] = fingerprint;
                return true;
            }
        }
        false
    }

    fn kick(&mut self, hash: u64, fingerprint: u8) -> bool {
        let size = self.bucket_size;
        let table = self.tables.last_mut().unwrap();
        let before = table.clone();
        let buckets = (table.len() / size) as u64;
        let (mut victim, mut bucket, mut in_hand) = (0, hash % buckets, fingerprint);
        for _ in 0..self.max_kicks {
            std::mem::swap(&mut in_hand, &mut table[bucket as usize * size + victim]);
            bucket = other(bucket, in_hand) % buckets;
            let start = bucket as usize * size;
            if let Some(free) = (start..start + size).find(|at| table[*at] == 0) {
                table[free] = in_hand;
                return true;
            }
            victim = (victim + 1) % size;
        }
        *table = before;
        false
    }

    pub(crate) fn insert(&mut self, item: u16) -> bool {
        let (hash, fingerprint) = Slow::key(item);
        let tables = (0..self.tables.len()).rev();
        let mut placed = tables
            .into_iter()
            .any(|table| self.place(table, hash, fingerprint));
        placed = placed || self.kick(hash, fingerprint);
        if !placed {
            if self.expansion == 0 {
                return false;
            }
            let factor = self.expansion.pow(self.tables.len() as u32);
            self.tables
                .push(vec![0; self.buckets * factor * self.bucket_size]);
            self.place(self.tables.len() - 1, hash, fingerprint);
        }
        self.items += 1;
        true
    }

    pub(crate) fn remove(&mut self, item: u16) -> bool {
        let (hash, fingerprint) = Slow::key(item);
        for table in (0..self.tables.len()).rev() {
            for at in self.slots(table, hash, fingerprint) {
                if self.tables[table][at] == fingerprint {
                    self.tables[table][at] = 0;
                    self.items = self.items.saturating_sub(1);
                    self.removed += 1;
                    if self.tables.len() > 1 && self.removed as f64 > self.items as f64 * 0.1 {
                        self.compact(false);
                    }
                    return true;
                }
            }
        }
        false
    }

    pub(crate) fn compact(&mut self, go_on: bool) {
        for table in (1..self.tables.len()).rev() {
            let mut stuck = false;
            for at in 0..self.tables[table].len() {
                let fingerprint = self.tables[table][at];
                if fingerprint == 0 {
                    continue;
                }
                let bucket = (at / self.bucket_size) as u64;
                if (0..table).any(|older| self.place(older, bucket, fingerprint)) {
                    self.tables[table][at] = 0;
                } else {
                    stuck = true;
                }
            }
            if !stuck && table + 1 == self.tables.len() {
                self.tables.pop();
            }
            if stuck && !go_on {
                break;
            }
        }
        self.removed = 0;
    }

    pub(crate) fn load(&mut self, at: u64, data: &[u8]) -> bool {
        let mut at = at as usize;
        for table in &mut self.tables {
            if at < table.len() {
                let place = table.get_mut(at..at + data.len());
                return place.is_some_and(|place| {
                    place.copy_from_slice(data);
                    true
                });
            }
            at -= table.len();
        }
        false
    }
}
