//! Filters one by one, for the page: those of the last walk, with their earlier numbers of items.
//!
//! The table has a limit in bytes. If not all filters fit, it keeps the largest.

use std::cmp::{Ordering, Reverse};

use everbloom_commands::figures::{Figures, kind_name, label};

/// The maximum bytes of a table. While a walk makes the next one, there are two.
const MAX_TABLE_BYTES: usize = 16 << 20;
/// The maximum length of the key of a filter in the table.
const MAX_KEY_BYTES: usize = 1024;
/// The ages in seconds at which the first, second, ... earlier reading is replaced by a later one.
const AGES: [u64; 5] = [60, 240, 960, 3840, 15360];

/// When a filter was read, in Unix time, and the items that it had.
pub type Reading = (u64, u64);

/// A filter.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of its database.
    pub db: usize,
    /// Its key.
    pub key: Box<[u8]>,
    /// Its figures.
    pub figures: Figures,
    /// When it was read, in Unix time.
    at: u64,
    /// Earlier readings, the latest first. The later ones are nearer to each other.
    past: [Option<Reading>; AGES.len()],
}

impl Row {
    fn bytes(&self) -> u64 {
        let [bytes, ..] = self.figures.metrics.figures();
        bytes
    }

    /// Earlier readings, the latest first.
    pub fn past(&self) -> impl Iterator<Item = Reading> {
        self.past.iter().flatten().copied()
    }

    /// Whether this may be the same filter at a later time, and not only one of the same name.
    fn may_be(&self, earlier: &Row) -> bool {
        let (now, then) = (&self.figures, &earlier.figures);
        let (sizes, earlier) = (now.metrics.figures(), then.metrics.figures());
        (now.kind, now.asked) == (then.kind, then.asked)
            && sizes.iter().zip(earlier).all(|(now, then)| *now >= then)
    }

    /// Takes over the readings of an earlier walk. Then adds a reading. Each slot takes the reading
    /// of the slot before, once that is old enough.
    fn follow(&mut self, earlier: Option<&Row>) {
        if let Some(row) = earlier.filter(|row| self.may_be(row)) {
            self.past = row.past;
        }
        let (at, items) = (self.at, self.figures.metrics.figures()[3]);
        let mut carried = Some((at, items));
        for (place, age) in self.past.iter_mut().zip(AGES) {
            // The clock may have been set back.
            if place.is_some_and(|(then, _)| then <= at && at - then < age) {
                return;
            }
            carried = std::mem::replace(place, carried);
            if carried.is_none() {
                return;
            }
        }
    }
}

/// The filters of a walk.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
    bytes: usize,
    /// Filters of this many bytes or fewer no longer fit.
    too_small: u64,
    /// The number of filters that did not fit.
    pub left_out: u64,
}

impl Table {
    /// Adds a filter, if it may fit.
    pub fn offer(&mut self, db: usize, key: &[u8], figures: Figures, at: u64) {
        let [bytes, ..] = figures.metrics.figures();
        if bytes <= self.too_small || key.len() > MAX_KEY_BYTES {
            self.left_out += 1;
            return;
        }
        self.bytes += size_of::<Row>() + key.len();
        self.rows.push(Row {
            db,
            key: key.into(),
            figures,
            at,
            past: [None; AGES.len()],
        });
    }

    /// If the table is too large, removes the smallest filters.
    pub fn trim(&mut self) {
        if self.bytes <= MAX_TABLE_BYTES {
            return;
        }
        // More than necessary, so that this happens rarely.
        let kept = self.rows.len() / 4 * 3;
        self.rows.sort_unstable_by_key(|row| Reverse(row.bytes()));
        self.too_small = self.rows.get(kept).map_or(0, Row::bytes);
        for row in self.rows.drain(kept..) {
            self.bytes -= size_of::<Row>() + row.key.len();
            self.left_out += 1;
        }
    }

    /// Ends the walk: takes over the readings from the table of an earlier walk.
    pub fn finish(&mut self, earlier: Option<&Table>) {
        self.rows.sort_unstable_by(|a, b| order(a, b.db, &b.key));
        for row in &mut self.rows {
            let earlier = earlier.and_then(|table| table.find(row.db, &row.key));
            row.follow(earlier);
        }
    }

    /// The number of filters.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// A filter, in a finished table.
    pub fn find(&self, db: usize, key: &[u8]) -> Option<&Row> {
        let at = self.rows.binary_search_by(|row| order(row, db, key)).ok()?;
        self.rows.get(at)
    }

    /// The rows whose names contain `search`, which is in lower case, in the order of a column; the
    /// largest first if `down`. A missing number counts as 0.
    pub fn select(&self, search: &str, sort: &str, down: bool) -> Vec<&Row> {
        let found = |row: &&Row| {
            // The label shows escaped text, and the key has the parts that the label leaves out.
            search.is_empty()
                || label(&row.key).to_lowercase().contains(search)
                || String::from_utf8_lossy(&row.key)
                    .to_lowercase()
                    .contains(search)
        };
        let mut rows: Vec<&Row> = self.rows.iter().filter(found).collect();
        let number = |row: &&Row| {
            let figures = &row.figures;
            let [bytes, _, layers, items, capacity] = figures.metrics.figures();
            whole(match sort {
                "items" => items,
                "capacity" => capacity,
                "room" => figures.room,
                "layers" => layers,
                "fill" => return figures.fill_ratio,
                "asked" => return figures.asked.unwrap_or(0.0),
                "expected" => return figures.expected,
                _ => bytes,
            })
        };
        // They are in the order of their names, and a stable sort keeps that order among equals.
        match sort {
            "layout" => rows.sort_by_key(|row| kind_name(row.figures.kind)),
            "name" => rows.sort_by(|a, b| a.key.cmp(&b.key)),
            _ => rows.sort_by(|a, b| number(a).total_cmp(&number(b))),
        }
        if down {
            rows.reverse();
        }
        rows
    }
}

fn order(row: &Row, db: usize, key: &[u8]) -> Ordering {
    (row.db, &*row.key).cmp(&(db, key))
}

#[expect(clippy::cast_precision_loss, reason = "to be sorted by")]
fn whole(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use everbloom_commands::filter::Filter;

    use super::*;

    fn figures(capacity: u64, items: u64) -> Figures {
        let builder = everbloom::host::LayeredFilter::builder().capacity(capacity);
        let mut filter = builder.seed(1).build().unwrap();
        filter.extend(0..items);
        Figures::of(&Filter::Bloom(filter), 256)
    }

    #[test]
    fn the_largest_filters_have_a_place_and_memory_is_bounded() {
        let mut table = Table::default();
        let (small, large) = (figures(100, 0), figures(100_000, 0));
        let mut most = 0;
        for number in 0..300_000_u32 {
            let figures = if number % 100 == 0 { large } else { small };
            table.offer(0, &number.to_be_bytes(), figures, 0);
            most = most.max(table.bytes);
            if number % 1000 == 0 {
                table.trim();
                let rows = table.rows.iter();
                let bytes: usize = rows.map(|row| size_of::<Row>() + row.key.len()).sum();
                assert_eq!(bytes, table.bytes);
            }
        }
        assert!(
            most < MAX_TABLE_BYTES + 1000 * (size_of::<Row>() + 4),
            "{most}"
        );
        assert!(table.len() > 30_000, "{}", table.len());
        assert_eq!(table.len() as u64 + table.left_out, 300_000);
        table.finish(None);
        let found = |number: u32| table.find(0, &number.to_be_bytes());
        assert!(
            (0..300_000)
                .step_by(100)
                .all(|number| found(number).is_some())
        );
        table.offer(0, &[b'k'; MAX_KEY_BYTES + 1], large, 0);
        assert_eq!(table.len() as u64 + table.left_out, 300_001);
    }

    #[test]
    fn a_name_is_found_by_what_its_label_leaves_out() {
        let mut table = Table::default();
        let key = "k".repeat(200) + "-END";
        table.offer(0, key.as_bytes(), figures(100, 0), 0);
        table.offer(0, b"\xff", figures(100, 0), 0);
        let found = |search| table.select(search, "name", false).len();
        assert_eq!(
            [found(""), found("-end"), found("\\xff"), found("x")],
            [2, 1, 1, 1]
        );
    }

    #[test]
    fn readings_thin_out_with_age() {
        let after = |earlier: Option<&Table>, at, items| {
            let mut table = Table::default();
            table.offer(0, b"key", figures(1000, items), at);
            table.finish(earlier);
            table
        };
        let past = |table: &Table| -> Vec<u64> {
            let row = table.find(0, b"key").unwrap();
            row.past().map(|reading| reading.0).collect()
        };
        let start = 1_000_000;
        let mut table = after(None, start, 0);
        for step in 1..=2000 {
            let now = start + 15 * step;
            table = after(Some(&table), now, step / 20);
            let ages: Vec<u64> = past(&table).iter().map(|at| now - at).collect();
            assert!(ages.is_sorted(), "{ages:?}");
            for (number, age) in ages.iter().enumerate() {
                // None is older than its slot and those before it allow.
                let most: u64 = AGES[..=number].iter().map(|age| age + 15).sum();
                assert!(*age <= most, "{ages:?}");
            }
        }
        let ages: Vec<u64> = past(&table).iter().map(|at| start + 30_000 - at).collect();
        assert_eq!(ages.len(), AGES.len());
        assert!(ages[4] > AGES[3], "{ages:?}");
        // Fewer items: another filter.
        let other = after(Some(&table), start + 30_015, 1);
        assert_eq!(past(&other), [start + 30_015]);
        // A filter with another requested rate is another one, too.
        let mut other = Table::default();
        let builder = everbloom::host::LayeredFilter::builder().capacity(100_000);
        let mut filter = builder.error_rate(0.5).seed(1).build().unwrap();
        filter.extend(0..1000);
        let figures = Figures::of(&Filter::Bloom(filter), 256);
        other.offer(0, b"key", figures, start + 30_015);
        other.finish(Some(&table));
        assert_eq!(past(&other), [start + 30_015]);
        // The clock is set back.
        let back = after(Some(&table), start, 100);
        assert_eq!(past(&back)[0], start);
    }
}
