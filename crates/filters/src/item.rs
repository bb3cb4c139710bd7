//! Items that are no bytes.

use core::hash::{Hash, Hasher};

use crate::hash::{SEED64, murmur64a};

/// The eight bytes that stand for any `Hash` value as an item.
///
/// The bytes depend on what the type's `Hash` implementation writes and on nothing else: not on the
/// process. A filter that is kept in a file still fits its items after a restart, as long as the
/// type and its `Hash` implementation stay as they are. Numbers and their lengths are taken alike
/// whatever the platform's byte order and the width of its `usize`; but slices and vectors of
/// numbers wider than a byte write their memory as it is, so filters of such items stay on their
/// kind of platform.
///
/// Two values that nobody chose for it get the same bytes with probability 2^-64, far below any
/// error rate. But this hash is public and has no key, and it can be inverted: whoever chooses the
/// values can make many with the same bytes at once. A filter cannot tell these apart, whatever its
/// layout and its key. For values that strangers choose, make items of their bytes instead.
///
/// Note that a `str` hashed this way is another item than its own bytes.
///
/// ```
/// use everbloom::{BloomFilter, hashed};
///
/// #[derive(Hash)]
/// struct Visit<'a> { user: u64, page: &'a str }
///
/// let mut seen = BloomFilter::builder().capacity(1000).build()?;
/// let visit = Visit { user: 7, page: "/index" };
/// assert!(seen.insert(&hashed(&visit)));
/// assert!(seen.contains(&hashed(&visit)));
/// assert!(!seen.contains(&hashed(&Visit { user: 8, ..visit })));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[must_use]
pub fn hashed<T: Hash + ?Sized>(value: &T) -> [u8; 8] {
    let mut hasher = ItemHasher { state: SEED64 };
    value.hash(&mut hasher);
    hasher.finish().to_le_bytes()
}

/// Chains MurmurHash64A: what one write gives is the seed of the next. Each write's length enters
/// its hash, so that "ab", "c" and "a", "bc" differ.
struct ItemHasher {
    state: u64,
}

impl Hasher for ItemHasher {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write(&mut self, bytes: &[u8]) {
        self.state = murmur64a(bytes, self.state);
    }

    // The default implementations write native-endian bytes, and as many as a `usize` has.
    fn write_u16(&mut self, value: u16) {
        self.write(&value.to_le_bytes());
    }

    fn write_u32(&mut self, value: u32) {
        self.write(&value.to_le_bytes());
    }

    fn write_u64(&mut self, value: u64) {
        self.write(&value.to_le_bytes());
    }

    fn write_u128(&mut self, value: u128) {
        self.write(&value.to_le_bytes());
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_i16(&mut self, value: i16) {
        self.write(&value.to_le_bytes());
    }

    fn write_i32(&mut self, value: i32) {
        self.write(&value.to_le_bytes());
    }

    fn write_i64(&mut self, value: i64) {
        self.write(&value.to_le_bytes());
    }

    fn write_i128(&mut self, value: i128) {
        self.write(&value.to_le_bytes());
    }

    fn write_isize(&mut self, value: isize) {
        self.write_i64(value as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::hashed;

    #[test]
    fn bytes_never_change() {
        // Filters in files depend on these. Computed by a MurmurHash64A in another language.
        assert_eq!(hashed(&7_u64), VECTORS[0]);
        assert_eq!(hashed("foo"), VECTORS[1]);
        assert_eq!(hashed(&(1_u8, -2_i32, true)), VECTORS[2]);
    }

    const VECTORS: [[u8; 8]; 3] = [
        [214, 131, 106, 90, 227, 22, 52, 173],
        [115, 101, 165, 66, 148, 63, 172, 218],
        [230, 46, 164, 97, 18, 239, 192, 242],
    ];

    #[test]
    fn width_and_boundaries() {
        assert_eq!(hashed(&7_usize), hashed(&7_u64));
        assert_eq!(hashed(&-7_isize), hashed(&-7_i64));
        assert_ne!(hashed(&7_u32), hashed(&7_u64));
        assert_ne!(hashed(&("ab", "c")), hashed(&("a", "bc")));
        assert_eq!(hashed("foo"), hashed(&alloc::string::String::from("foo")));
    }
}
