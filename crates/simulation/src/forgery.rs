//! Headers of dumps in which a client has changed numbers to their extremes.

use std::ops::Range;

/// The first bytes of a header of ours.
const OURS: &[u8] = b"everbloom\r\n";

/// What whole numbers become, cut to the width of their fields.
const NUMBERS: [u64; 9] = [
    0,
    1,
    0x7fff_ffff,
    1 << 53,
    1 << 62,
    i64::MAX as u64,
    1 << 63,
    0xfffe_0000_0000_0000,
    u64::MAX,
];

/// What error rates become.
const RATES: [f64; 6] = [0.0, f64::MIN_POSITIVE, 1e-9, 0.999_999, 1.0, f64::NAN];

/// A field of a header.
#[derive(Debug, Clone)]
enum Field {
    Number(Range<usize>),
    Rate(usize),
}

/// A field of a header and the number of its new value, each modulo what there is.
pub type Change = (usize, usize);

/// Makes changes to a header of a cuckoo filter, or of a Bloom filter. Returns how much higher the iterators
/// of the dump are then.
pub fn forge(header: &mut [u8], is_cuckoo: bool, changes: &[Change]) -> i64 {
    let before = dropped(header);
    let fields = match is_cuckoo {
        true => cuckoo_fields(),
        false => bloom_fields(header),
    };
    for (field, value) in changes {
        let (range, value) = match fields[field % fields.len()].clone() {
            Field::Number(range) => (range, NUMBERS[value % NUMBERS.len()].to_le_bytes()),
            Field::Rate(at) => (at..at + 8, RATES[value % RATES.len()].to_le_bytes()),
        };
        if range.end <= header.len() {
            let len = range.len();
            header[range].copy_from_slice(&value[..len]);
        }
    }
    if is_cuckoo {
        return 0;
    }
    add_items_up(header);
    dropped(header).wrapping_sub(before)
}

/// The bytes that a window has dropped; iterators begin behind them.
fn dropped(header: &[u8]) -> i64 {
    match (layers(header).0 >= 92, header.get(80..88)) {
        (true, Some(bytes)) => i64::from_le_bytes(bytes.try_into().unwrap()),
        _ => 0,
    }
}

fn cuckoo_fields() -> Vec<Field> {
    // The number of tables stays: thousands of them would take long.
    let ranges = [0..8, 8..16, 16..24, 32..34, 34..36, 36..38];
    ranges.map(Field::Number).into()
}

/// Where the layers begin, how many bytes each has, and where its items are.
fn layers(header: &[u8]) -> (usize, usize, usize) {
    let number = |at: usize| header.get(at).copied().unwrap_or(0);
    match header.starts_with(OURS) {
        false => (20, 53, 16),
        true if number(14) == 2 => (76, 36, 8),
        true if number(28) & 16 == 0 => (52, 36, 8),
        true => (92 + 12 * usize::from(number(88)), 36, 8),
    }
}

fn layer_count(header: &[u8]) -> usize {
    let (first, layer_bytes, _) = layers(header);
    header.len().saturating_sub(first) / layer_bytes
}

/// Not the bytes of the layers, which the chunks must fit.
fn bloom_fields(header: &[u8]) -> Vec<Field> {
    let (first, layer_bytes, items) = layers(header);
    let is_ours = header.starts_with(OURS);
    let number = |at: usize, len: usize| Field::Number(at..at + len);
    let mut fields = vec![number(if is_ours { 32 } else { 16 }, 4)];
    if first >= 92 {
        let window = [number(52, 8), number(60, 4), number(64, 8), number(80, 8)];
        fields.extend(window);
        fields.push(Field::Rate(72));
        fields.extend((92..first).step_by(12).map(|at| number(at + 4, 8)));
        // Every second change is one of the window.
        let again = fields.clone().into_iter().cycle();
        fields.extend(again.take(3 * layer_count(header)));
    }
    for at in (first..header.len()).step_by(layer_bytes) {
        let (capacity, rate) = if is_ours { (16, 24) } else { (44, 24) };
        fields.extend([number(at + items, 8), number(at + capacity, 8)]);
        fields.push(Field::Rate(at + rate));
    }
    fields
}

/// A header must say that the filter has the items of its layers together.
fn add_items_up(header: &mut [u8]) {
    let (first, layer_bytes, items) = layers(header);
    let number = |at: usize| {
        let bytes = header.get(at + items..at + items + 8);
        bytes.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
    };
    let layers = (first..header.len()).step_by(layer_bytes);
    let sum = layers.map(number).fold(0, u64::wrapping_add);
    let total = match header.starts_with(OURS) {
        false => 0..8,
        true => 16..24,
    };
    header[total].copy_from_slice(&sum.to_le_bytes());
}
