//! The items of a run. Each item is a function of its number, so no list of items is kept, and a
//! later run knows the items that an earlier run has added.

/// Bytes of an item.
pub(super) const ITEM_LENGTH: usize = 16;

/// The first number of items that are never added.
const ABSENT: u64 = 1 << 40;

/// The first number of items that the timed part adds.
const FRESH: u64 = 1 << 41;

/// What an item is to the filter when the timed part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// Added before. The number is below the count of items added before.
    Present(u64),
    /// Never added.
    Absent(u64),
    /// Added by the timed part itself, once.
    Fresh(u64),
}

impl ItemKind {
    /// The item's number.
    pub(super) fn number(self) -> u64 {
        match self {
            ItemKind::Present(index) => index,
            ItemKind::Absent(index) => ABSENT + index,
            ItemKind::Fresh(index) => FRESH + index,
        }
    }
}

/// A bijection, so that different numbers give different items. It is SplitMix64's finalizer
/// (Steele, Lea and Flood 2014).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn seeded(number: u64) -> u64 {
    mix(number ^ mix(1))
}

/// The item with this number: 16 hexadecimal digits.
pub(super) fn item(number: u64) -> [u8; ITEM_LENGTH] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut rest = seeded(number);
    std::array::from_fn(|_| {
        rest = rest.rotate_left(4);
        let digit = usize::from(rest.to_le_bytes()[0] & 15);
        DIGITS.get(digit).copied().unwrap_or(b'0')
    })
}

/// The part that holds the item with this number, when items are spread over so many parts. Items
/// that are added first go to the parts in turn, so that all parts get as many. The parts of the
/// others are drawn.
pub(super) fn share(number: u64, parts: u64) -> u64 {
    let place = if number < ABSENT {
        number
    } else {
        mix(seeded(number))
    };
    place % parts.max(1)
}

/// A Bloom filter in a Redis bitmap, as clients without filter commands keep it. Double hashing
/// gives the positions of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bitmap {
    pub(super) bits: u64,
    pub(super) hashes: usize,
    /// A number added to each position. It gives all positions the same number of digits, so that a
    /// request can be patched.
    base: u64,
    pub(super) digits: usize,
}

/// Redis accepts bit offsets below this.
const OFFSET_LIMIT: u64 = 1 << 32;

impl Bitmap {
    /// The best size for this capacity and error rate, by the textbook's formulas. `None` when it
    /// does not fit into a Redis string.
    pub(super) fn new(capacity: u64, error_rate: f64) -> Option<Self> {
        let ln2 = std::f64::consts::LN_2;
        let bits = (capacity as f64 * -error_rate.ln() / (ln2 * ln2)).ceil();
        let hashes = (-error_rate.log2()).round().max(1.0);
        if !(bits >= 1.0 && bits < OFFSET_LIMIT as f64 && hashes <= 64.0) {
            return None;
        }
        let (bits, hashes) = (bits as u64, hashes as usize);
        let (mut base, mut digits) = (1, 1);
        while base * 9 < bits {
            base *= 10;
            digits += 1;
        }
        (base + bits <= OFFSET_LIMIT).then_some(Self {
            bits,
            hashes,
            base,
            digits,
        })
    }

    /// The offset of the item's bit for one of the hashes.
    pub(super) fn offset(&self, number: u64, hash: usize) -> u64 {
        let first = seeded(number);
        let step = mix(first) | 1;
        self.base + first.wrapping_add(step.wrapping_mul(hash as u64)) % self.bits
    }

    /// The largest offset that is used.
    pub(super) fn last(&self) -> u64 {
        self.base + self.bits - 1
    }
}

/// Writes a number in decimal, with zeros in front to fill the room.
pub(super) fn write_decimal(mut number: u64, room: &mut [u8]) {
    for byte in room.iter_mut().rev() {
        *byte = b'0' + (number % 10).to_le_bytes()[0];
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn items_differ_by_number_and_kind() {
        let mut seen = HashSet::new();
        for index in 0..1000 {
            for kind in [ItemKind::Present, ItemKind::Absent, ItemKind::Fresh] {
                assert!(seen.insert(item(kind(index).number())));
            }
        }
        assert!(seen.iter().flatten().all(u8::is_ascii_hexdigit));
    }

    #[test]
    fn items_are_spread_evenly() {
        let mut counts = [[0; 2]; 100];
        for index in 0..10_000 {
            let part = |kind: ItemKind| usize::try_from(share(kind.number(), 100)).unwrap();
            counts[part(ItemKind::Present(index))][0] += 1;
            counts[part(ItemKind::Fresh(index))][1] += 1;
        }
        // The limit for what is drawn is six standard deviations.
        assert!(
            counts
                .iter()
                .all(|[turn, drawn]| *turn == 100 && (40..160).contains(drawn))
        );
        let in_turn = (0..100).all(|index| share(ItemKind::Fresh(index).number(), 100) == index);
        assert!(!in_turn);
    }

    #[test]
    fn a_bitmap_has_the_textbooks_size_and_offsets_of_one_length() {
        let bitmap = Bitmap::new(10_000_000, 0.001).unwrap();
        assert_eq!((bitmap.bits, bitmap.hashes), (143_775_876, 10));
        assert_eq!(bitmap.digits, 9);
        for number in 0..1000 {
            for hash in 0..bitmap.hashes {
                let offset = bitmap.offset(number, hash);
                assert_eq!(offset.to_string().len(), bitmap.digits);
                assert!(offset <= bitmap.last());
            }
        }
        assert_eq!(bitmap.last().to_string().len(), bitmap.digits);
        assert_eq!(Bitmap::new(1, 0.5).unwrap().last(), 2);
        assert_eq!(Bitmap::new(1_000_000_000, 0.001), None);
        assert_eq!(Bitmap::new(1000, 0.0), None);
    }

    #[test]
    fn decimals() {
        let mut room = *b"xxxxx";
        write_decimal(10_203, &mut room);
        assert_eq!(&room, b"10203");
    }
}
