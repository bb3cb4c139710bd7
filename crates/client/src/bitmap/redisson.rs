//! The layout of Redisson's `RBloomFilter`: HighwayHash-128 of the encoded item, with the key of
//! its reference implementation's example. The first position comes from the first half; for each
//! further one the second half and the first are added in turn. The sign bit is cleared before the
//! division.

use highway::{HighwayHash, HighwayHasher, Key};

const KEY: Key = Key([
    0x9e37_79b9_7f4a_7c15,
    0xf39c_c060_5ced_c834,
    0x1082_276b_f3a2_7251,
    0xf86c_6a11_d0c1_8e95,
]);

/// The key in which Redisson keeps the dimensions of a filter.
pub(super) fn config_key(name: &str) -> String {
    if name.contains('{') {
        format!("{name}:config")
    } else {
        format!("{{{name}}}:config")
    }
}

pub(super) fn positions(item: &[u8], hashes: u32, bits: u64) -> Vec<u64> {
    let [first, second] = HighwayHasher::new(KEY).hash128(item);
    let mut hash = first;
    let mut steps = [second, first].into_iter().cycle();
    let position = |_| {
        let position = (hash & (u64::MAX >> 1)) % bits;
        hash = hash.wrapping_add(steps.next().unwrap_or(0));
        position
    };
    (0..hashes).map(position).collect()
}

/// The bytes that Redisson's default codec, Kryo5, makes of a text. Add and look up these in a
/// filter that a Java program fills with strings without choosing a codec.
///
/// ```
/// use everbloom_client::redisson_default_item;
/// assert_eq!(redisson_default_item("ab"), [3, b'a', b'b' | 0x80]);
/// ```
#[must_use]
pub fn redisson_default_item(text: &str) -> Vec<u8> {
    // What the codec writes in front: the number of the class String.
    let mut bytes = vec![3];
    if text.is_ascii() && (2..=32).contains(&text.len()) {
        bytes.extend_from_slice(text.as_bytes());
        // The end of a short text is marked in its last byte.
        if let Some(last) = bytes.last_mut() {
            *last |= 0x80;
        }
        return bytes;
    }
    // Else the number of UTF-16 units and one more, six bits and then seven at a time.
    let mut count = text.encode_utf16().count() + 1;
    let mut low = |bits: u32, mark: u8, more: u8| {
        let part = count & ((1 << bits) - 1);
        count >>= bits;
        let more = if count > 0 { more } else { 0 };
        bytes.push(u8::try_from(part).unwrap_or(0) | mark | more);
        count > 0
    };
    let mut goes_on = low(6, 0x80, 0x40);
    while goes_on {
        goes_on = low(7, 0, 0x80);
    }
    for unit in text.encode_utf16() {
        push_unit(unit, &mut bytes);
    }
    bytes
}

/// A unit of UTF-16 in the form of UTF-8, also one that is half a character.
fn push_unit(unit: u16, bytes: &mut Vec<u8>) {
    let [high, low] = unit.to_be_bytes();
    match unit {
        0..0x80 => bytes.push(low),
        0x80..0x800 => bytes.extend([0xc0 | high << 2 | low >> 6, 0x80 | low & 0x3f]),
        _ => bytes.extend([
            0xe0 | high >> 4,
            0x80 | (high << 2 | low >> 6) & 0x3f,
            0x80 | low & 0x3f,
        ]),
    }
}
